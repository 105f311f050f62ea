from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.arena import CALM_CALLS, Arena, Outcome, Quartiles, environment, quartiles
from benchmarks.calm import Calm, product_seconds
from benchmarks.contest import MOST_CALLS, OURS, PEERS, SHORTEST, seconds
from benchmarks.cpu import main, row, show
from benchmarks.limits import holding, limit
from benchmarks.worker import WAKING_S
from benchmarks.workloads import chosen
from ilang_eq.extract.machine import load

MACHINE = load("generic_x86_64")
NUMPY = PEERS[0]
SCHEDULE = "i(\"ik*kj~ijk|i:4,j:16|ijki'j'\") >> i(\"+ijk~ij|i:4,j:16|ijki'j'0\")"
(PRODUCT,) = chosen(["w1-64x64x64"])


def test_contestants_in_processes_of_their_own(tmp_path: Path) -> None:
    arguments = ["w1-64x64x64", "--only", "ours", "numpy", "numpy best", "--rounds", "2", "--out", str(tmp_path)]
    (tmp_path / "w1-64x64x64.t1.i").write_text(SCHEDULE)
    main([*arguments, "--schedules", str(tmp_path)])
    written = json.loads((tmp_path / "cpu.t1.json").read_text())
    assert written["versions"]["numpy"] == np.__version__
    (found,) = written["rows"]
    assert set(found["seconds"]) == {"ours cold", "ours warm", "numpy cold", "numpy warm"}
    assert found["missing"] == {}
    assert found["schedule"] == SCHEDULE
    assert set(found["errors"]) == {"ours", "numpy"}
    assert 0 < max(found["errors"].values()) < 1e-5
    assert not (tmp_path / "schedules").exists()
    with pytest.raises(SystemExit, match="no schedule"):
        main(["w1-200x200x200", "--only", "numpy", "--out", str(tmp_path), "--schedules", str(tmp_path)])


def test_a_contestant_that_takes_too_long_or_fails_is_missing() -> None:
    late = replace(NUMPY, patience_s=0.0)
    with Arena([late], 1, sys.executable) as arena:
        outcome = arena.run(PRODUCT, 1, 0, None)
    assert outcome.missing == {"numpy": "not finished after 0 s"}
    with Arena([OURS], 1, sys.executable) as arena:
        outcome = arena.run(PRODUCT, 1, 0, "i(")
    assert "ParseError" in outcome.missing["ours"]
    with Arena([NUMPY], 1, "/bin/false") as arena:
        outcome = arena.run(PRODUCT, 1, 0, None)
    assert outcome.missing == {"numpy": "its process ended with code 1"}


def test_the_ratio_is_the_best_peer_over_ours() -> None:
    times = {"ours cold": 4.0, "ours warm": 1.0, "numpy cold": 2.0, "numpy warm": 3.0, "torch eager cold": 8.0}
    seconds = {name: Quartiles(t, t, t) for name, t in times.items()}
    outcome = Outcome(seconds, {name: [t] for name, t in times.items()}, {"ours": np.zeros((64, 64))})
    found = row(PRODUCT, outcome, MACHINE, 1, {})
    assert found["ratios"] == {"cold": 0.5, "warm": 2.0}
    assert found["ratio_quartiles"] == {"cold": (0.5, 0.5), "warm": (2.0, 2.0)}


def test_slow_minutes_do_not_move_the_ratio() -> None:
    """In each round ours takes half as long, whatever the round; who was asked for in few has these compared."""
    slow = (1.0, 1.0, 5.0, 5.0, 5.0)
    rounds = {"ours warm": list(slow), "numpy warm": [2 * s for s in slow], "torch cold": [9.0, 9.0, 10.0]}
    seconds = {name: Quartiles(0.0, 1.0, 2.0) for name in rounds}
    found = row(PRODUCT, Outcome(seconds, rounds, {"ours": np.zeros((64, 64))}), MACHINE, 1, {})
    assert found["ratios"] == {"warm": 2.0}
    assert found["target"] == 0.9


def test_the_limit_is_arithmetic_or_memory() -> None:
    seconds_, held_by = limit(PRODUCT, [(64, 64)], MACHINE, 1)
    assert held_by == "arithmetic"
    assert seconds_ == pytest.approx(64**3 / MACHINE.vector.fma * 1e-9)
    (pointwise,) = chosen(["w6"])
    two, held_by = limit(replace(pointwise, work={"fma": 1}), [pointwise.shapes[0]], MACHINE, 2)
    assert held_by == "memory"
    assert two == pytest.approx(5 * 4 * 16e6 / MACHINE.levels[-1].bandwidth_all * 1e-9)


def test_private_caches_add_up_over_threads() -> None:
    l2 = MACHINE.levels[1]
    assert holding(l2.bytes * 1.5, MACHINE, 1).name == "L3"
    assert holding(l2.bytes * 1.5, MACHINE, 2).name == "L2"


def test_quartiles() -> None:
    assert quartiles([5.0]) == Quartiles(5.0, 5.0, 5.0)
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == Quartiles(2.0, 3.0, 4.0)


def test_short_calls_are_repeated() -> None:
    called: list[int] = []
    assert 0 < seconds(lambda: called.append(1)) < SHORTEST
    assert len(called) >= MOST_CALLS


def test_every_library_is_told_the_threads_and_nobody_to_wait_in_a_loop_for_long() -> None:
    told = environment(2)
    assert {told[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")} == {"2"}
    assert int(told["KMP_BLOCKTIME"]) < 1000 * WAKING_S


def test_calls_wait_for_calm_moments() -> None:
    """What is as fast as ever is calm; nobody waits for ever."""
    times = iter([1.0, 3.0, 2.0, 1.1, 3.0, 1.2, 0.5, 0.6, 0.55, 1.0])
    calm = Calm(patience_s=1000.0, probe=lambda: next(times))
    assert calm.wait(), "the first has nothing to be compared with"
    assert calm.wait(), "waits for 1.1"
    assert calm.wait(), "waits for 0.5"
    assert calm.wait(), "waits for 0.55"
    assert next(times) == 1.0
    slow = iter([1.0, 3.0])
    hurried = Calm(patience_s=0.0, probe=lambda: next(slow))
    assert [hurried.wait(), hurried.wait()] == [True, False]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_probe_takes_time(threads: int) -> None:
    assert 0 < product_seconds(threads) < 1


def test_calls_that_do_not_end_calm_are_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    calm, loud = [1.0, 1.0], [1.0, 2.0]
    probes = iter([*calm, *loud, *calm])
    with Arena([NUMPY], 1, sys.executable, Calm(0.0, lambda: next(probes))) as arena:
        outcome = arena.run(PRODUCT, 1, 0, None)
        assert outcome.calm == 1.0, "its cold and its warm call"
        assert len(outcome.rounds["numpy cold"]) == len(outcome.rounds["numpy warm"]) == 1
        probes = iter([*calm, *loud * CALM_CALLS])
        outcome = arena.run(PRODUCT, 1, 0, None)
    assert next(probes, None) is None
    assert outcome.calm == 0.5
    show(row(PRODUCT, outcome, MACHINE, 1, {}))
    assert "50% of the calls were calm" in capsys.readouterr().out
