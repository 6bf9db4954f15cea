"""The store hands out whole, verified artifacts or nothing."""

from __future__ import annotations

import hashlib
import multiprocessing
from pathlib import Path

from docmemo.store import Store


def put(store: Store, tmp_path: Path, data: bytes, key: str = "k" * 64) -> None:
    source = tmp_path / "source"
    source.write_bytes(data)
    store.add("render", key, source, seconds=1.5, failures={"3": "broken"})


def test_an_entry_comes_back_with_what_is_known_of_it(tmp_path):
    store = Store(tmp_path / "store")
    put(store, tmp_path, b"hello")
    entry = store.fetch("render", "k" * 64, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"hello"
    assert entry is not None
    assert entry.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert (entry.seconds, entry.failures) == (1.5, {"3": "broken"})


def test_an_unknown_key_and_another_kind_are_absent(tmp_path):
    store = Store(tmp_path / "store")
    put(store, tmp_path, b"hello")
    assert store.fetch("render", "x" * 64, tmp_path / "out") is None
    assert store.fetch("layout", "k" * 64, tmp_path / "out") is None
    assert not (tmp_path / "out").exists()


def test_a_damaged_entry_counts_as_absent_and_is_forgotten(tmp_path):
    store = Store(tmp_path / "store")
    put(store, tmp_path, b"hello")
    next((tmp_path / "store").rglob("*.data")).write_bytes(b"jello")
    assert store.fetch("render", "k" * 64, tmp_path / "out") is None
    assert not (tmp_path / "out").exists()
    assert not store.has("render", "k" * 64)


def test_a_sidecar_without_data_or_with_nonsense_counts_as_absent(tmp_path):
    store = Store(tmp_path / "store")
    put(store, tmp_path, b"hello")
    data = next((tmp_path / "store").rglob("*.data"))
    data.unlink()
    assert store.fetch("render", "k" * 64, tmp_path / "out") is None
    put(store, tmp_path, b"hello")
    next((tmp_path / "store").rglob("*.json")).write_text("{")
    assert store.fetch("render", "k" * 64, tmp_path / "out") is None


def test_editing_what_was_fetched_does_not_touch_the_store(tmp_path):
    store = Store(tmp_path / "store")
    put(store, tmp_path, b"hello")
    store.fetch("render", "k" * 64, tmp_path / "out")
    with (tmp_path / "out").open("r+b") as handle:
        handle.write(b"J")
    store.fetch("render", "k" * 64, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == b"hello"


def _add_many(root: Path, folder: Path, mark: int) -> None:
    source = folder / f"source{mark}"
    source.write_bytes(b"same content")
    for i in range(20):
        Store(root).add("render", f"{i:064d}", source)


def test_two_processes_may_add_the_same_keys_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add_many, args=(tmp_path / "store", tmp_path, n)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    store = Store(tmp_path / "store")
    for i in range(20):
        assert store.fetch("render", f"{i:064d}", tmp_path / "out") is not None
    assert not list((tmp_path / "store").rglob("*.tmp"))
