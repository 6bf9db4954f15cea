"""Vectors of queries: embedded once, by a model that this process loads when it first needs it, and then stored.

A rerun, an ablation or another round with the same query then needs no model at all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from docmemo.config import EmbedParams
from docmemo.fingerprint import code_digest, digest
from docmemo.models import colqwen
from docmemo.models.colqwen_batches import Floats32
from docmemo.models.colqwen_files import find_weights, visual_identity
from docmemo.models.devices import parse_devices
from docmemo.settings import Settings
from docmemo.store import Store

KIND = "query_vectors"
MODULES = ("docmemo.models.colqwen",)
"""Modules whose code decides a query's vectors."""
_REMEMBERED = 1024


class StoredQueries:
    """Embeds queries with the model of the lock. Safe for several threads.

    Args:
        params: names the model.
        entry: the embedder's entry in models.lock.json.
        settings: device and store.
    """

    def __init__(self, params: EmbedParams, entry: Mapping[str, Any], settings: Settings) -> None:
        self._params = params
        self._device = parse_devices(settings.device)[0]
        self._store = Store(settings.store_dir)
        self._identity = {"model": visual_identity(entry), "code": code_digest(MODULES)}
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Floats32] = OrderedDict()

    def encode(self, query: str) -> Floats32:
        """Finite vectors, shape (n_tokens, dim).

        The device is not in the key: a query embedded in float32 on the CPU serves pages embedded in bfloat16.

        Raises:
            ModelLoadError: if the model cannot be loaded.
            ModelError: if the query cannot be embedded.
        """
        with self._lock:  # one query at a time, which also loads the model once
            vectors = self._known.get(query)
            if vectors is None:
                vectors = self._stored(query)
                self._known[query] = vectors
                while len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
            return vectors

    def _stored(self, query: str) -> Floats32:
        key = digest({**self._identity, "query": query})
        with self._store.workspace() as folder:
            path = folder / "query.safetensors"
            if self._store.fetch(KIND, key, path) is not None:
                try:
                    return np.asarray(load_file(path)["vectors"], dtype=np.float32)
                except (SafetensorError, KeyError):
                    self._store.discard(KIND, key)
            model = colqwen.shared(find_weights(self._params), self._device)
            with model.lock:
                vectors = model.embed_query(query)
            save_file({"vectors": np.ascontiguousarray(vectors)}, path)
            self._store.add(KIND, key, path)
            return vectors
