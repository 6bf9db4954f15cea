"""ColQwen2.5 on one device: loaded by the normal path, checked, and asked for vectors of pages and queries.

torch, transformers and colpali-engine (extra `colqwen`) are imported when a model is loaded, not before.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from safetensors import SafetensorError

from docmemo.errors import ModelError, ModelLoadError, ModelUnavailableError
from docmemo.models.colqwen_batches import DeviceMemoryError, Floats32
from docmemo.models.colqwen_check import check_embeddings, check_order
from docmemo.models.colqwen_files import INSTALL, Weights

UNTRAINED = "docmemo_untrained"
"""A key of config.json by which a folder of random weights (for tests) says that its scores mean nothing."""

_kept: list[Any] = []
"""Operator libraries that live as long as the process."""


def import_torch() -> Any:
    """torch, with a torchvision that can be imported beside it.

    With the CPU build of torch, pip brings a torchvision built for CUDA, whose import ends with `operator
    torchvision::nms does not exist`. Its Python part, which the image processor needs, works once the two operators
    are declared; nothing here calls them.

    Raises:
        ModelLoadError: if the extra is not installed.
    """
    disabled = logging.root.manager.disable
    logging.disable(logging.INFO)  # colpali-engine tells everyone of an optional package
    try:
        torch = importlib.import_module("torch")
        _import_torchvision(torch)
        importlib.import_module("colpali_engine.models")
    except ImportError as error:
        raise ModelLoadError(f"ColQwen2.5 needs packages that are not installed: {error}.", remedy=INSTALL) from error
    finally:
        logging.disable(disabled)
    return torch


def _import_torchvision(torch: Any) -> None:
    """torchvision has to come first: transformers turns its error into one about a missing module."""
    try:
        importlib.import_module("torchvision")
        return
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]  # half imported
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)
    importlib.import_module("torchvision")


class ColQwen:
    """A loaded model. Not safe for several threads at once; `shared` gives one with a lock.

    Args:
        weights: its files.
        device: "auto" (the first GPU, else the CPU), "cpu" or "cuda:N".

    Attributes:
        device: where it runs.
        precision: "bfloat16" on a GPU, "float32" on the CPU.
        check: what was found when it was tried on known pages.

    Raises:
        ModelLoadError: if weights are missing or left over, the precision is wrong, or it fails its checks.
    """

    def __init__(self, weights: Weights, device: str = "auto") -> None:
        self._torch = torch = import_torch()
        self.lock = threading.Lock()
        self.device = _device(torch, device)
        self.precision = "float32" if self.device == "cpu" else "bfloat16"
        if "DOCMEMO_WORKER" in os.environ:  # the pool's workers are told to use one; a GPU waits for its pictures
            torch.set_num_threads(_cpus())
        self._model, self._processor = _load(torch, weights, self.device, getattr(torch, self.precision))
        self.check = self._try_out(untrained=_is_untrained(weights))

    def embed_images(self, images: Sequence[Image.Image]) -> list[Floats32]:
        """Vectors of pages, each of shape (n_tokens, dim), without padding; the pictures are one batch.

        Raises:
            DeviceMemoryError: if the batch does not fit the device's memory.
            ModelLoadError: if the device failed.
        """
        return self._embed(self._processor.process_images(list(images)))

    def embed_query(self, query: str) -> Floats32:
        """Vectors of a query, shape (n_tokens, dim).

        Control tokens that it spells out, such as <|image_pad|>, are left out: the processor would want a picture.

        Raises:
            ModelUnavailableError: if they do not fit the device's memory now.
            ModelError: if they are not finite.
        """
        for token in self._processor.tokenizer.get_added_vocab():
            query = query.replace(token, " ")
        try:
            (vectors,) = self._embed(self._processor.process_queries([query]))
        except DeviceMemoryError as error:
            raise ModelUnavailableError(
                f"There is no memory left on {self.device} for a query.", remedy="Set DOCMEMO_DEVICE=cpu."
            ) from error
        if not vectors.size or not np.isfinite(vectors).all():
            raise ModelError("The query's embedding holds numbers that are not finite.")
        return vectors

    def free_memory(self) -> None:
        """Give cached memory back to the GPU."""
        if self.device != "cpu":
            self._torch.cuda.empty_cache()

    def _embed(self, batch: Any) -> list[Floats32]:
        """Run the model; rows without the padding, which may hold anything (NaN among it)."""
        torch = self._torch
        try:
            with torch.inference_mode():
                inputs = batch.to(self.device)
                output = self._model(**inputs)
                kept = inputs["attention_mask"].bool()
                return [row[mask].float().cpu().numpy() for row, mask in zip(output, kept, strict=True)]
        except torch.OutOfMemoryError as error:
            raise DeviceMemoryError(str(error)) from error
        except MemoryError as error:
            raise DeviceMemoryError(str(error)) from error
        except RuntimeError as error:
            if "can't allocate memory" in str(error) or "not enough memory" in str(error):
                raise DeviceMemoryError(str(error)) from error
            if self.device != "cpu" and "CUDA" in str(error):  # nothing on this GPU works after such an error
                raise ModelLoadError(
                    f"{self.device} failed: {str(error).splitlines()[0]}",
                    remedy="Run again; finished pages are kept.",
                ) from error
            raise

    def _try_out(self, *, untrained: bool) -> str:
        """The checks of colqwen_check; what was found, in words."""
        found = check_embeddings(self)
        if untrained:
            return f"{found}; order of known pages not checked (config.json says {UNTRAINED})"
        return f"{found}; {check_order(self)}"


def _device(torch: Any, wanted: str) -> str:
    if wanted == "cpu":
        return "cpu"
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "auto":
        return "cuda:0" if count else "cpu"
    if int(wanted.partition(":")[2]) >= count:
        raise ModelLoadError(
            f"DOCMEMO_DEVICE names {wanted}, but torch {torch.__version__} sees {count} GPUs.",
            remedy="Set DOCMEMO_DEVICE=cpu, or install a build of torch for your driver.",
        )
    return wanted


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _is_untrained(weights: Weights) -> bool:
    folder = (weights.base or weights).folder
    try:
        values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return values.get(UNTRAINED) is True


def _load(torch: Any, weights: Weights, device: str, dtype: Any) -> tuple[Any, Any]:
    """Model and processor.

    A base model and its adapter are loaded one after the other: loaded together, transformers reports the
    adapter's keys alone, and a base with missing keys would pass.
    """
    models = importlib.import_module("colpali_engine.models")
    importlib.import_module("transformers.utils.logging").disable_progress_bar()
    whole = weights.base or weights
    try:
        model, report = models.ColQwen2_5.from_pretrained(
            whole.folder,
            dtype=dtype,
            device_map=device,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # so that they are in the report, not in a log
            output_loading_info=True,
        )
        _require_complete(report, whole)
        if weights.base is not None:
            _require_complete(_add_adapter(model, weights), weights)
        processor = models.ColQwen2_5_Processor.from_pretrained(
            (weights if _has_processor(weights) else whole).folder, local_files_only=True
        )
    except torch.OutOfMemoryError as error:
        raise ModelLoadError(
            f"{weights.name} does not fit the memory of {device}.",
            remedy="Free memory there, or set DOCMEMO_DEVICE to another device.",
        ) from error
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise ModelLoadError(
            f"{weights.name} cannot be loaded from {weights.folder}: {str(error).strip()[:500]}",
            remedy="Download the model again, or correct embed.model.",
        ) from error
    model.eval()
    _require_dtype(model, dtype, weights)
    return model, processor


def _has_processor(weights: Weights) -> bool:
    names = ("processor_config.json", "preprocessor_config.json")
    return any((weights.folder / name).is_file() for name in names)


def _add_adapter(model: Any, weights: Weights) -> Mapping[str, Any]:
    """Put the adapter on its base, with the renaming of keys that `from_pretrained` uses; the loading report.

    Published adapters have the names of an older layout of the model.
    """
    conversion = importlib.import_module("transformers.conversion_mapping")
    utils = importlib.import_module("transformers.modeling_utils")
    parent = type(model).__mro__[1]
    renaming = {
        **getattr(parent, "_checkpoint_conversion_mapping", {}),
        **type(model)._checkpoint_conversion_mapping,
    }
    config = utils.LoadStateDictConfig(
        weight_mapping=conversion.get_model_conversion_mapping(model, renaming),
        dtype=model.dtype,
        ignore_mismatched_sizes=True,
    )
    report: Mapping[str, Any] = model.load_adapter(str(weights.folder), load_config=config).to_dict()
    return report


def _require_complete(report: Mapping[str, Any], weights: Weights) -> None:
    """Refuse weights that do not match the model: transformers 5 fills the gaps at random and only prints a table."""
    problems = []
    for kind, what in (
        ("missing_keys", "missing"),
        ("unexpected_keys", "not part of the model"),
        ("mismatched_keys", "of another shape"),
        ("error_msgs", "in error"),
    ):
        keys = sorted(str(key[0] if isinstance(key, tuple) else key) for key in report.get(kind) or ())
        if keys:
            problems.append(f"{len(keys)} {what} ({', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''})")
    if problems:
        raise ModelLoadError(
            f"The weights of {weights.name} do not match ColQwen2.5: {'; '.join(problems)}.",
            remedy="Use vidore/colqwen2.5-v0.2 or a folder saved by ColQwen2_5.save_pretrained.",
        )


def _require_dtype(model: Any, dtype: Any, weights: Weights) -> None:
    found = {parameter.dtype for parameter in model.parameters() if parameter.dtype.is_floating_point}
    if found != {dtype}:
        names = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in found))
        raise ModelLoadError(f"{weights.name} was loaded as {names}, not as {str(dtype).removeprefix('torch.')}.")


_shared: dict[tuple[Weights, str], ColQwen] = {}
_shared_lock = threading.Lock()


def shared(weights: Weights, device: str = "auto") -> ColQwen:
    """The one model of this process for these weights, loaded at first use; use it under its `lock`.

    Raises:
        ModelLoadError: as ColQwen.
    """
    with _shared_lock:
        if (weights, device) not in _shared:
            _shared.clear()  # another model would not fit beside it
            _shared[weights, device] = ColQwen(weights, device)
        return _shared[weights, device]
