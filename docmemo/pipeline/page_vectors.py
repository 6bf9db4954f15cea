"""Vectors of a document's page images: from the store, or by processes that hold the model, one a device.

They are kept in the store by themselves, beside the embed step's artifacts: what is keyed by page images and the
model alone stays when the text, its tokenizer or a lexical parameter changes.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from docmemo.artifacts import read_member, write_atomic
from docmemo.config import EmbedParams
from docmemo.errors import ModelLoadError, WorkerDiedError
from docmemo.fingerprint import canonical_json, code_digest, digest, digest_bytes
from docmemo.models import colqwen
from docmemo.models.colqwen_batches import BadPage, encode_pages
from docmemo.models.colqwen_files import Weights, find_weights, visual_identity
from docmemo.models.devices import parse_devices
from docmemo.pipeline.pool import WorkPool
from docmemo.retrieval.late_interaction import PageVectors
from docmemo.settings import Settings
from docmemo.store import Store
from docmemo.types import PageSet

KIND = "page_vectors"
MODULES = ("docmemo.models.colqwen", "docmemo.models.colqwen_batches")
"""Modules whose code decides a page's vectors."""
LOAD_SECONDS = 900.0
"""A model of seven gigabytes may come from a slow disk."""

log = logging.getLogger(__name__)


def image_digests(archive: Path, page_set: PageSet) -> list[str]:
    """sha256 of each page's image, in order; '' for a page without one."""
    return [digest_bytes(read_member(archive, page.image)) if page.image else "" for page in page_set.pages]


@dataclass(frozen=True)
class EmbeddedPages:
    """One document's vectors."""

    vectors: PageVectors
    failures: Mapping[int, str]
    """Page to the reason why it has none."""
    batch_size: int
    """Pages a batch that were really used."""
    storable: bool
    """False when a page failed for a reason that may pass."""


# --- what runs where the model is ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Report:
    failures: dict[int, BadPage]
    batch_size: int


def _warm_up(weights: Weights, device: str) -> None:
    """Load the model, so that an error with it is told apart from one with a document."""
    colqwen.shared(weights, device)


def _embed(
    weights: Weights, device: str, archive: Path, images: Sequence[tuple[int, str]], batch_size: int, target: Path
) -> _Report:
    """Write the vectors of an archive's pages to `target`; `images` is page and member ('' for none), in order."""
    model = colqwen.shared(weights, device)
    members = {page: member for page, member in images if member}
    with model.lock:
        encoded = encode_pages(model, list(members), lambda page: read_member(archive, members[page]), batch_size)
    made_with = {
        "model": weights.name,
        "revision": weights.revision,
        "batch_size": encoded.batch_size,
        "precision": model.precision,
        "check": model.check,
    }
    vectors = PageVectors.of_pages([encoded.vectors.get(page) for page, _ in images])
    write_atomic(target, save(vectors.arrays(), metadata={"docmemo": canonical_json({"vectors": made_with})}))
    return _Report(encoded.failures, encoded.batch_size)


# --- what runs in the step ----------------------------------------------------------------------------------------


@dataclass
class _Device:
    name: str
    pool: WorkPool
    batch_size: int
    """The most it took so far."""
    ready: bool = False


@dataclass
class PageEncoders:
    """Embeds documents, each on the first device that is free. Safe for several threads; a context manager.

    Args:
        params: the model and the batch size.
        entry: the embedder's entry in models.lock.json.
        settings: devices, store, patience.
        in_process: hold the model in this process, for a command that asks it a query too.
    """

    params: EmbedParams
    entry: Mapping[str, Any]
    settings: Settings
    in_process: bool = False
    _devices: queue.LifoQueue[_Device] = field(init=False, repr=False)
    _all: list[_Device] = field(init=False, repr=False)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _weights: Weights | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        names = parse_devices(self.settings.device)
        inside = self.in_process or self.settings.workers == 0
        self._all = [
            _Device(name, WorkPool(0 if inside else 1, self.settings.page_timeout), self.params.batch_size)
            for name in (names[:1] if inside else names)
        ]
        self._devices = queue.LifoQueue()
        for device in reversed(self._all):
            self._devices.put(device)
        self._store = Store(self.settings.store_dir)
        self._identity = {"model": visual_identity(self.entry), "code": code_digest(MODULES)}

    def __enter__(self) -> PageEncoders:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the processes at once."""
        for device in self._all:
            device.pool.close()

    def embed(self, archive: Path, page_set: PageSet) -> EmbeddedPages:
        """Vectors of a document's pages.

        Raises:
            ModelLoadError: if the model cannot be loaded, or its device failed.
            PageTimeoutError, WorkerDiedError: if its process was too slow or ended; the document may be fine.
        """
        digests = image_digests(archive, page_set)
        missing = {page.page: page.failure or "it has no image" for page in page_set.pages if not page.image}
        with self._store.workspace() as folder:
            target = folder / "vectors.safetensors"
            size = self.params.batch_size
            while size >= 1:
                entry = self._store.fetch(KIND, self._key(digests, size), target)
                if entry is not None:
                    failures = {int(page): reason for page, reason in entry.failures.items()}
                    return EmbeddedPages(PageVectors.load(target), missing | failures, size, storable=True)
                size //= 2
            report = self._compute(archive, page_set, target)
            failures = {page: bad.reason for page, bad in report.failures.items()}
            storable = not any(bad.retryable for bad in report.failures.values())
            if storable:
                named = {str(page): reason for page, reason in sorted(failures.items())}
                self._store.add(KIND, self._key(digests, report.batch_size), target, failures=named)
            return EmbeddedPages(PageVectors.load(target), missing | failures, report.batch_size, storable)

    def _key(self, digests: Sequence[str], used: int) -> str:
        """Page images, model, code, and batch size: the one used, and the one asked for if memory forbade that.

        Left out: the device. Vectors made in bfloat16 on a GPU serve a machine without one, which could not make
        them in any reasonable time; the file says how they were made.
        """
        asked = self.params.batch_size
        reduced = {} if used == asked else {"asked": asked}
        return digest({**self._identity, "images": list(digests), "batch_size": used, **reduced})

    def _compute(self, archive: Path, page_set: PageSet, target: Path) -> _Report:
        images = [(page.page, page.image) for page in page_set.pages]
        limit = LOAD_SECONDS + self.settings.page_timeout * max(1, len(images))
        device = self._devices.get()
        try:
            self._make_ready(device)
            report: _Report = device.pool.call(
                _embed, self._found(), device.name, archive, images, device.batch_size, target, timeout=limit
            )
        finally:
            self._devices.put(device)
        if report.batch_size < device.batch_size:
            device.batch_size = report.batch_size
            log.warning(
                "embed: the memory of %s is too small for embed.batch_size %d; pages are now embedded %d at a time.",
                device.name,
                self.params.batch_size,
                report.batch_size,
            )
        return report

    def _found(self) -> Weights:
        with self._lock:
            if self._weights is None:
                self._weights = find_weights(self.params)
            return self._weights

    def _make_ready(self, device: _Device) -> None:
        if device.ready:
            return
        log.info("embed: loading %s on %s", self.entry.get("id", ""), device.name)
        try:
            device.pool.call(_warm_up, self._found(), device.name, timeout=LOAD_SECONDS)
        except WorkerDiedError as error:
            raise ModelLoadError(
                f"The process that loads {self.entry.get('id', '')} died: {error.message}",
                remedy="Look at free memory, or set DOCMEMO_DEVICE to another device.",
            ) from error
        device.ready = True
