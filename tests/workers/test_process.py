"""Searches in processes of their own: the same results, and a stop at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from ilang_eq import Component, I, i, optimize
from ilang_eq.errors import ILangError, RuleError
from ilang_eq.kept import found_in
from ilang_eq.optimizer import _stages
from ilang_eq.request import checked_request
from ilang_eq.rewrites.rules import Rule, RuleSet
from ilang_eq.workers import process
from ilang_eq.workers.process import Died, Expired, Worker

MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")
SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
SOFTMAX_TWICE = SOFTMAX >> SOFTMAX
SHAPES = [(64, 48), (48, 32)]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process


def test_a_worker_finds_what_this_process_finds(worker: Worker) -> None:
    here = optimize(MATMUL, SHAPES, threads=1)
    first, *_, last = worker.improvements(checked_request(MATMUL, SHAPES, threads=1))
    assert [s.text for s in first.schedules] == [str(here.baseline)]
    found = found_in(last)
    assert [str(s) for s in found.schedules] == [str(s) for s in here.schedules]
    assert [s.cost for s in found.schedules] == [s.cost for s in here.schedules]
    assert found.report.rules.keys() == here.report.rules.keys()


def test_an_error_arrives_as_what_it_is_and_the_worker_lives_on(worker: Worker) -> None:
    broken = RuleSet("broken", (Rule("broken", "a → b", "algebra", "(rewrite (Nothing a) a)"),))
    with pytest.raises(RuleError, match="rule 'broken'"):
        list(worker.improvements(checked_request(MATMUL, SHAPES, threads=1, rules=broken)))
    assert len(list(worker.improvements(checked_request(MATMUL, SHAPES, threads=1)))) == 2


def test_a_deadline_kills() -> None:
    with Worker() as worker:
        started = time.monotonic()
        with pytest.raises(Expired):
            list(worker.improvements(checked_request(MATMUL, SHAPES), started + 0.01))
        assert worker._process.poll() == -signal.SIGKILL


def test_a_worker_that_dies_is_noticed() -> None:
    with Worker() as worker:
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(Died, match="killed by SIGKILL"):
            list(worker.improvements(checked_request(MATMUL, SHAPES)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound address space")
def test_memory_is_bounded() -> None:
    with Worker(memory_bytes=1 << 27) as worker, pytest.raises((Died, ILangError)):
        list(worker.improvements(checked_request(MATMUL, SHAPES)))


OWNER = """
from ilang_eq.workers.process import Worker
worker = Worker()
worker._receive(None)
print(worker._process.pid, flush=True)
input()
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for the process in /proc")
def test_a_worker_does_not_outlive_its_owner() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert running(pid)
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 30
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not running(pid)


def running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def agrees(component: Component, found: Component) -> bool:
    arrays = [np.random.default_rng(0).standard_normal((5, 5)) for _ in range(component.inputs)]
    return np.allclose(component.interpret(*arrays), found.interpret(*arrays))


def test_a_budget_too_short_for_anything_leaves_what_was_written() -> None:
    best = optimize(SOFTMAX, [(64, 64)], threads=1, budget_s=0.01)
    assert best.report.stop_reason == "budget"
    assert best.component == best.baseline.component
    assert agrees(SOFTMAX, best.component)


def test_a_budget_that_suffices_changes_nothing() -> None:
    best = optimize(MATMUL, SHAPES, threads=1, budget_s=60)
    assert best.report.stop_reason == "saturated"
    assert [str(s) for s in best.schedules] == [str(s) for s in optimize(MATMUL, SHAPES, threads=1).schedules]


def test_a_search_that_dies_leaves_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.Worker, "improvements", died)
    with pytest.warns(UserWarning, match="it fell; this is the best"):
        best = optimize(MATMUL, SHAPES, threads=1, budget_s=60)
    assert best.report.stop_reason == "died"
    assert best.component == best.baseline.component


def died(*_: object) -> Iterator[object]:
    raise Died("it fell")


@pytest.mark.parametrize("where", ["rewrites.explore.explore", "extract.segments.propose_in_segments"])
def test_an_interrupt_leaves_the_best_so_far(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"ilang_eq.{where}", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        best = optimize(MATMUL, SHAPES, threads=1)
    assert best.report.stop_reason == "interrupted"
    assert agrees(MATMUL, best.component)


@pytest.mark.parametrize(("budget_s", "searches"), [(None, 1), (20.0, 2), (200.0, 1)])
def test_where_time_may_not_suffice_small_pieces_come_first(budget_s: float | None, searches: int) -> None:
    request = checked_request(SOFTMAX_TWICE, [(64, 64)], threads=1, budget_s=budget_s)
    largest = [max(pieces) for _, pieces in _stages(request)]
    assert len(largest) == searches
    assert largest == sorted(largest)
