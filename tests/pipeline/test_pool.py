"""The worker pool keeps innocent pages, whatever a page does to its worker."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from docmemo.errors import PageTimeoutError, UnreadableDocumentError, WorkerDiedError
from docmemo.pipeline.pool import PageFailure, WorkPool
from tests.pipeline import workers


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkPool]:
    with WorkPool(2, page_timeout=2.0) as shared:
        yield shared


def test_every_page_comes_back_in_the_order_asked(pool: WorkPool) -> None:
    pages = [5, 3, 1, *range(10, 40)]
    assert pool.map_pages(workers.square, (), pages, chunk=4) == {p: p * p for p in pages}
    assert list(pool.map_pages(workers.square, (), pages)) == pages
    assert pool.map_pages(workers.square, (), []) == {}


@pytest.mark.parametrize("how", ["hang", "kill", "exit", "exit 0"])
def test_a_page_that_takes_its_worker_down_fails_alone_and_may_be_retried(pool: WorkPool, how: str) -> None:
    start = time.monotonic()
    results = pool.map_pages(workers.misbehave, ({4: how},), range(1, 11), chunk=5)
    took = time.monotonic() - start
    failure = results.pop(4)
    assert isinstance(failure, PageFailure)
    assert failure.retryable
    assert results == {p: p * p for p in range(1, 11) if p != 4}
    assert took < 15


def test_several_bad_pages_in_one_task_each_fail_for_their_own_reason(pool: WorkPool) -> None:
    bad = {2: "hang", 3: "raise", 5: "kill", 6: "disk", 7: "own timeout"}
    results = pool.map_pages(workers.misbehave, (bad,), range(1, 9), chunk=8)
    failures = {p: r for p, r in results.items() if isinstance(r, PageFailure)}
    assert set(failures) == set(bad)
    assert {p: f.retryable for p, f in failures.items()} == {2: True, 3: False, 5: True, 6: True, 7: True}
    assert failures[3].reason == "ValueError: this page is odd"
    assert "longer than 2 s" in failures[2].reason
    assert "SIGKILL" in failures[5].reason


def test_slow_pages_that_keep_their_limit_each_are_not_failures(pool: WorkPool) -> None:
    assert pool.map_pages(workers.slow, (0.8,), range(1, 7), chunk=6) == {p: p for p in range(1, 7)}


def test_a_page_whose_worker_was_killed_from_outside_is_tried_again(pool: WorkPool, tmp_path: Path) -> None:
    results = pool.map_pages(workers.die_once, (str(tmp_path / "flag"),), [1, 2, 3], chunk=3)
    assert results == {1: 1, 2: 2, 3: 3}


def test_a_document_error_is_raised_with_its_remedy(pool: WorkPool) -> None:
    with pytest.raises(UnreadableDocumentError) as caught:
        pool.map_pages(workers.unreadable, (), [1, 2])
    assert caught.value.remedy == "Repair it."


def test_several_threads_may_use_it_at_once(pool: WorkPool) -> None:
    results: dict[int, object] = {}

    def work(i: int) -> None:
        results[i] = pool.map_pages(workers.misbehave, ({i: "raise"},), range(1, 13), chunk=3)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert set(results) == {1, 2, 3, 4}
    for i, result in results.items():
        assert isinstance(result, dict)
        assert [p for p, r in result.items() if isinstance(r, PageFailure)] == [i]


def test_workers_outlive_the_thread_that_first_asked_for_them() -> None:
    with WorkPool(1, page_timeout=30) as pool:
        pids: list[object] = []
        thread = threading.Thread(target=lambda: pids.append(pool.call(workers.surroundings)["pid"]))
        thread.start()
        thread.join()
        time.sleep(0.5)
        assert pool.call(workers.surroundings)["pid"] == pids[0]


def test_call_returns_raises_and_reports_limits_and_deaths(pool: WorkPool) -> None:
    assert pool.call(workers.sleep_for, 0.0) == "awake"
    with pytest.raises(PageTimeoutError):
        pool.call(workers.sleep_for, 60.0, timeout=0.5)
    with pytest.raises(WorkerDiedError):
        pool.call(workers.leave, 7)
    with pytest.raises(UnreadableDocumentError):
        pool.call(workers.unreadable, [1])


def test_a_worker_has_one_thread_ignores_sigint_and_inherits_no_modules(pool: WorkPool) -> None:
    inside = pool.call(workers.surroundings)
    assert inside["pid"] != os.getpid()
    assert inside["threads"] == "1"
    assert inside["sigint_ignored"] is True
    assert inside["main"] is False
    assert inside["modules"] == []


def test_nothing_starts_before_the_first_task_and_a_closed_pool_says_so() -> None:
    before = threading.active_count()
    with WorkPool(2, page_timeout=1) as pool:
        assert threading.active_count() == before
    with pytest.raises(WorkerDiedError):
        pool.call(workers.sleep_for, 0.0)


def test_inline_mode_runs_here_and_still_catches_a_page() -> None:
    with WorkPool(0, page_timeout=1) as pool:
        results = pool.map_pages(workers.misbehave, ({2: "raise"},), [1, 2, 3])
        assert results[1] == 1
        assert isinstance(results[2], PageFailure)
        assert pool.call(workers.surroundings)["pid"] == os.getpid()


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, signal, sys
            sys.path.insert(0, {str(Path(__file__).parents[2])!r})
            from docmemo.pipeline.pool import WorkPool
            from tests.pipeline import workers
            pool = WorkPool(1, 60)
            print(pool.call(workers.surroundings)["pid"], flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    pid = int(done.stdout)
    for _ in range(50):
        status = Path(f"/proc/{pid}/status")
        if not status.exists() or "zombie" in status.read_text():
            return
        time.sleep(0.1)
    pytest.fail(f"worker {pid} outlived its parent")


def test_what_is_attached_is_closed_with_the_pool_and_only_once() -> None:
    class Other:
        closed = 0

        def close(self) -> None:
            self.closed += 1

    other = Other()
    with WorkPool(0, 1) as pool:
        pool.attach(other)
        pool.attach(other)
        assert other.closed == 0
    pool.close()
    assert other.closed == 1


def test_a_call_ends_when_the_pool_is_closed_under_it() -> None:
    pool = WorkPool(1, 60)
    threading.Timer(1.5, pool.close).start()
    with pytest.raises(WorkerDiedError):
        pool.call(workers.sleep_for, 60.0)
