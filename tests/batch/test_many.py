"""Batches: equal tasks once, heavy ones first, nothing lost that was found."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from ilang_eq import I, i, optimize, trace
from ilang_eq.batch.executors import Done, LocalProcesses, Outcome
from ilang_eq.batch.many import optimize_many
from ilang_eq.batch.progress import Progress
from ilang_eq.database.store import Database
from ilang_eq.errors import OptionError, ScheduleError, ShapeError
from ilang_eq.kept import key_of, record_of
from ilang_eq.optimizer import improving, models_of
from ilang_eq.request import Request

MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")
RENAMED = i("ac*cb~abc") >> i("+xyz~xy")
EXP = i("^ij~ij")
SUM = i("+ij~i")
SHAPES = [(64, 48), (48, 32)]
TASKS = [(EXP, [(8, 9)]), (MATMUL, SHAPES, 2), (RENAMED, SHAPES, 3.5), (EXP, [(8, 10)])]


@dataclass
class Written:
    """An executor that searches nothing, so that tests of the rest are fast: what is written is the result."""

    asked: list[Request] = field(default_factory=list)
    change: Callable[[Outcome], Outcome] = lambda outcome: outcome

    def run(self, requests: Sequence[Request], done: Done) -> None:
        for number, request in enumerate(requests):
            self.asked.append(request)
            key = key_of(request, models_of(request).machine)
            record = record_of(key, next(improving(request)), None)
            record = replace(record, report=replace(record.report, stop_reason="saturated"))
            done(number, self.change(Outcome(record, None, None, 0.5)))


def test_two_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    path, seen = tmp_path / "results.sqlite", list[Progress]()
    batch = optimize_many(TASKS, threads=1, database=path, workers=2, progress=seen.append)
    assert [(r.tasks, r.weight) for r in batch.results] == [((1, 2), 5.5), ((0,), 1.0), ((3,), 1.0)]
    assert [p.done for p in seen] == [1, 2, 3]
    assert {p.total for p in seen} == {3}
    assert batch.best[1] is batch.best[2]
    here = optimize(MATMUL, SHAPES, threads=1)
    best = batch.best[1]
    assert best is not None
    assert [str(s) for s in best.schedules] == [str(s) for s in here.schedules]
    assert batch.cost < batch.baseline_cost
    a, b = (np.random.default_rng(0).standard_normal(shape, dtype=np.float32) for shape in SHAPES)
    np.testing.assert_allclose(best(a, b), a @ b, rtol=1e-4, atol=1e-4)
    again = Written()
    known = optimize_many(TASKS, threads=1, database=path, executor=again)
    assert again.asked == []
    assert [str(b) for b in known.best] == [str(b) for b in batch.best]


def test_the_heaviest_first() -> None:
    executor = Written()
    optimize_many([(EXP, [(8, n)], n) for n in (3, 9, 5)], database=False, executor=executor)
    assert [request.shapes for request in executor.asked] == [((8, 9),), ((8, 5),), ((8, 3),)]


def test_a_users_schedule_is_a_search_of_its_own() -> None:
    executor = Written()
    scheduled = i("^ij~ij|i:4|iji'")
    batch = optimize_many([(EXP, [(8, 9)]), (scheduled, [(8, 9)])], database=False, executor=executor)
    assert len(executor.asked) == 2
    assert [b is not None and b.baseline.component for b in batch.best] == [EXP, scheduled]


def test_a_task_that_fails_leaves_the_others() -> None:
    def failing(outcome: Outcome) -> Outcome:
        assert outcome.record is not None
        return Outcome(None, None, "no luck", 0.1) if "+" in outcome.record.key.component else outcome

    batch = optimize_many([(EXP, [(8, 9)]), (SUM, [(8, 9)])], database=False, executor=Written(change=failing))
    assert [best is None for best in batch.best] == [False, True]
    assert [result.error for result in batch.failed] == ["no luck"]


def test_a_search_that_was_stopped_leaves_what_was_written(tmp_path: Path) -> None:
    def stopped(_: Outcome) -> Outcome:
        return Outcome(None, "died", "the process that searched was killed", 0.1)

    path = tmp_path / "results.sqlite"
    batch = optimize_many([(EXP, [(8, 9)])], database=path, executor=Written(change=stopped))
    (result,) = batch.results
    assert result.best is not None
    assert result.best.report.stop_reason == "died"
    assert result.error == "the process that searched was killed"
    assert list(Database(path).records()) == [], "it is tried again the next time"


def test_a_result_of_another_machine_is_refused() -> None:
    def elsewhere(outcome: Outcome) -> Outcome:
        assert outcome.record is not None
        return replace(outcome, record=replace(outcome.record, key=replace(outcome.record.key, machine="toaster-0")))

    batch = optimize_many([(EXP, [(8, 9)])], database=False, executor=Written(change=elsewhere))
    assert batch.results[0].error is not None
    assert "machine toaster-0 and not" in batch.results[0].error


def test_a_budget_kills_the_search_and_the_batch_goes_on() -> None:
    batch = optimize_many([(MATMUL, SHAPES), (EXP, [(8, 9)])], database=False, workers=1, budget_s=0.05)
    assert [b is not None and b.report.stop_reason for b in batch.best] == ["budget", "budget"]


BAD = {
    "shapes": ([(MATMUL, [(2, 2)])], {}, ShapeError, "task 0: 1 shapes"),
    "a target": ([(EXP, [(2, 2)])], {"target": "fpga"}, OptionError, "fpga"),
    "an executor": ([(EXP, [(2, 2)])], {"executor": "slurm"}, OptionError, "no executor 'slurm'"),
    "no workers": ([(EXP, [(2, 2)])], {"workers": 0}, OptionError, "0"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused_before_any_search(name: str) -> None:
    tasks, options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        optimize_many(tasks, **{"database": False, "executor": Written()} | options)


def test_an_illegal_schedule_is_that_tasks_error() -> None:
    illegal = i("ik*kj~ijk||kji") >> i("+ijk~ij||ij0k")
    with pytest.raises(ScheduleError):
        optimize(illegal, [(4, 4), (4, 4)])
    batch = optimize_many([(illegal, [(4, 4), (4, 4)])], database=False, workers=1)
    assert batch.results[0].error is not None
    assert "another order" in batch.results[0].error


def test_without_processes_what_was_written_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("ilang_eq.batch.executors.Worker", exhausted)
    batch = optimize_many([(EXP, [(8, 9)]), (EXP, [(8, 10)])], database=False, workers=2)
    assert [result.error for result in batch.results] == [
        "no process could be started: Resource temporarily unavailable"
    ] * 2
    assert [b is not None and b.component for b in batch.best] == [EXP, EXP]


def test_ctrl_c_is_passed_on_and_loses_nothing_found(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"

    def impatient(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize_many(TASKS, threads=1, database=path, workers=1, progress=impatient)
    assert len(list(Database(path).records())) == 1
    executor = Written()
    optimize_many(TASKS, threads=1, database=path, executor=executor)
    assert len(executor.asked) == 2


KILLED = """
import os, signal, sys
from ilang_eq import i
from ilang_eq.batch.many import optimize_many
def kill(progress):
    os.kill(os.getpid(), signal.SIGKILL)
optimize_many([(i("^ij~ij"), [(8, n)]) for n in (7, 8, 9)], threads=1, database=sys.argv[1], workers=2, progress=kill)
"""


def test_kill_9_loses_at_most_the_searches_under_way(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=120).returncode == -9
    assert len(list(Database(path).records())) == 1
    executor = Written()
    batch = optimize_many([(EXP, [(8, n)]) for n in (7, 8, 9)], threads=1, database=path, executor=executor)
    assert len(executor.asked) == 2
    assert None not in batch.best


def test_the_regions_of_a_traced_model() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(*[torch.nn.Softmax(-1), torch.nn.LayerNorm(8)] * 3)
    executor = Written()
    batch = optimize_many([trace(model, [torch.randn(4, 8)])], database=False, executor=executor)
    assert len(batch.best) >= len(executor.asked) >= 1
    assert None not in batch.best


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("rich", [True, False])
def test_a_terminal_shows_how_far_it_is(rich: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    optimize_many([(EXP, [(8, n)]) for n in (7, 8, 9)], database=False, executor=Written())
    assert "3/3" in screen.getvalue()


@pytest.fixture
def _ray() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("_ray")
def test_the_same_call_on_a_local_ray(tmp_path: Path) -> None:
    tasks = [(MATMUL, SHAPES), (SUM, [(8, 9)])]
    path = tmp_path / "results.sqlite"
    batch = optimize_many(tasks, threads=1, database=path, workers=2, executor="ray")
    assert [result.error for result in batch.results] == [None, None]
    assert str(batch.best[0]) == str(optimize(MATMUL, SHAPES, threads=1, database=path))
    assert len(list(Database(path).records())) == 2


def test_nothing_to_do() -> None:
    assert optimize_many([], database=False).best == ()
    LocalProcesses(2).run([], lambda *_: None)


def test_identity_needs_no_search() -> None:
    batch = optimize_many([(I, [(3,)])], database=False, executor=Written())
    assert batch.best[0] is not None
