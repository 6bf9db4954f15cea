"""CPU milliseconds one model call costs this process, with page images that are encoded already.

    python -m benchmarks.client_overhead [--calls 300] [--images 5] [--kilobytes 400] [--concurrency 8]

A trivial server, a process of its own on loopback, answers at once. Measured is the CPU time (user and system) of
this process a call: building the request, sending its megabytes, reading, checking and journaling the reply. Budget,
limiter, journal and counting are the real ones. Besides: the OpenAI client's own `create`, where the images pass
through its transformation and a JSON encoder; the system's bare cost of sending as many bytes; and a plain loop,
since a processor that others keep busy takes two or three times as long for everything. The least of five batches
is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256

from pydantic import BaseModel

REPLY = {
    "id": "x",
    "object": "chat.completion",
    "created": 0,
    "model": "bench",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": json.dumps({"answer": "42", "pages": [1, 2, 3], "note": "x" * 300}),
            },
        }
    ],
    "usage": {"prompt_tokens": 9000, "completion_tokens": 120, "total_tokens": 9120},
}


class Answer(BaseModel):
    """A reply of the usual size."""

    answer: str
    pages: list[int]
    note: str


async def serve() -> None:
    """Answer every request with the same reply; print the port first."""
    body = json.dumps(REPLY).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
                while length > 0:
                    length -= len(await reader.read(min(length, 2**20)))
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**21)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


BATCHES = 5


async def each(call: Callable[[int], Awaitable[object]], calls: int, concurrency: int) -> float:
    """CPU milliseconds a call, in the best of BATCHES; some calls before them are not counted."""
    gate = asyncio.Semaphore(concurrency)

    async def one(number: int) -> None:
        async with gate:
            await call(number)

    await asyncio.gather(*(one(-1 - number) for number in range(2 * concurrency)))
    size = max(1, calls // BATCHES)
    figures = []
    for batch in range(BATCHES):
        before = time.process_time()
        await asyncio.gather(*(one(number) for number in range(batch * size, (batch + 1) * size)))
        figures.append((time.process_time() - before) * 1000 / size)
    return min(figures)


def plain_loop() -> float:
    """CPU milliseconds of a million additions, in the best of BATCHES."""
    figures = []
    for _ in range(BATCHES):
        before, total = time.process_time(), 0
        for number in range(1_000_000):
            total += number
        figures.append((time.process_time() - before) * 1000)
    return min(figures)


async def measure(options: argparse.Namespace, url: str) -> None:
    """Print the figures."""
    import openai

    from docmemo.config import ModelParams
    from docmemo.models.chat import Image, Message
    from docmemo.models.connection import close_connections
    from docmemo.models.openai_compatible import open_model

    draw = random.Random(0)
    images = []
    for _ in range(options.images):
        data = draw.randbytes(options.kilobytes * 1000)
        uri = f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
        images.append(Image(uri, sha256(data).hexdigest(), 1236, 1600))
    text = "The page's text goes here, as words and figures such as 1,234.5 and 2024. " * 400
    model = open_model("reasoner", ModelParams(id="bench"))

    async def ours(number: int) -> object:
        parts = [f"Question {number}?", *(part for image in images for part in (text[:6000], image))]
        return await model.ask([Message("system", ["Read."]), Message("user", parts)], Answer)

    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def theirs(number: int) -> object:
        content: list[dict[str, object]] = [{"type": "text", "text": f"Question {number}?"}]
        for image in images:
            content.append({"type": "text", "text": text[:6000]})
            content.append({"type": "image_url", "image_url": {"url": image.data_uri}})
        messages = [{"role": "system", "content": "Read."}, {"role": "user", "content": content}]
        return await client.chat.completions.create(model="bench", messages=messages)  # type: ignore[arg-type]

    port = int(url.split(":")[2].split("/")[0])
    size = sum(len(image.data_uri) for image in images)
    payload = f"POST / HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size

    async def bare(_: int) -> object:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(payload)
        answer = await reader.readuntil(b"}}")
        writer.close()
        return answer

    size_mb, at_once = size / 1e6, options.concurrency
    print(f"{options.images} images, {size_mb:.1f} MB a request, {at_once} at once, {options.calls} calls")
    for name, call in (("this client", ours), ("openai's own create", theirs), ("bare sockets", bare)):
        print(f"{name:>20}: {await each(call, options.calls, options.concurrency):6.2f} ms CPU a call")
    print(f"{'plain loop':>20}: {plain_loop():6.2f} ms CPU for a million additions")
    await close_connections()
    await client.close()


def main() -> None:
    """Start the server, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--images", type=int, default=5)
    parser.add_argument("--kilobytes", type=int, default=400, help="of one encoded page image")
    parser.add_argument("--concurrency", type=int, default=8)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    command = [sys.executable, "-m", "benchmarks.client_overhead", "--serve"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        with tempfile.TemporaryDirectory() as home:
            os.environ |= {"DOCMEMO_HOME": home, "DOCMEMO_BASE_URL": url}
            os.environ["DOCMEMO_CONCURRENCY"] = str(options.concurrency)
            asyncio.run(measure(options, url))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
