"""A llama.cpp server in a process of its own: `python -m docmemo.models.llamacpp_server --model FILE.gguf ...`.

Started by `docmemo models serve --backend llamacpp`. It ends when its parent ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m docmemo.models.llamacpp_server", description=__doc__)
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--mmproj", help="GGUF file of the image encoder; without it images are refused")
    parser.add_argument("--alias", required=True, help="name of the model in the API")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--slot-context", type=int, required=True, help="tokens each request may have")
    parser.add_argument("--parallel", type=int, default=1, help="requests at the same time")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: as many as there are cores")
    parser.add_argument("--gpu-layers", type=int, default=-1, help="layers on a GPU; -1: llama.cpp decides")
    return parser.parse_args(argv)


def parameters(options: argparse.Namespace) -> Any:
    """llama.cpp's parameters. `n_ctx` is shared by all slots, so it is the slots' context times their number."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    if options.mmproj:
        params.mmproj.path = options.mmproj
    params.model_alias = {options.alias}
    params.hostnames = [options.host]
    params.port = options.port
    params.cors_origins, params.cors_origins_explicit = "http://127.0.0.1", True  # by default any web page may ask it
    params.n_parallel = options.parallel
    params.n_ctx = options.slot_context * options.parallel
    params.fit_params = (
        False  # else it may shorten the context to fit the memory, and requests would be refused later
    )
    params.n_gpu_layers = options.gpu_layers
    if options.threads:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    key = os.environ.get("DOCMEMO_SERVED_API_KEY", "")
    if key:
        params.api_keys = [key]
    return params


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until a signal comes."""
    import xllamacpp

    end = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: end.set())
    options = arguments(argv)
    try:
        server = xllamacpp.Server(parameters(options))
    except RuntimeError as error:
        sys.exit(f"llama.cpp cannot serve {options.model}: {error}")
    print(f"listening on {server.listening_address}", file=sys.stderr, flush=True)  # noqa: T201
    end.wait()
    sys.stderr.flush()
    os._exit(0)  # its destructor waits for requests that are being answered


if __name__ == "__main__":
    main()
