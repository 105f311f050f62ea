from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.calm import Calm
from benchmarks.ranking import Experiment, Timed, built, judged, sampled, timed
from benchmarks.sampling import ABSURD, FAVOURITES, Contender, predict, stratified
from benchmarks.workloads import chosen
from ilang_eq.extract.machine import load

MACHINE = load("generic_x86_64")
(SOFTMAX,) = chosen(["w2"])


def test_a_sample_is_drawn_over_all_costs() -> None:
    pool = [Contender(f"{n:04}", 1.01**n) for n in range(600)]
    found = stratified(pool, 40, np.random.default_rng(0))
    assert len(found) == 40
    assert found[:FAVOURITES] == pool[:FAVOURITES]
    assert found == sorted(found, key=lambda c: c.predicted)
    costs = np.log([c.predicted for c in found[FAVOURITES:]]) / np.log(ABSURD)
    assert np.histogram(costs, 8, (0, 1))[0].tolist() == [4] * 8


def test_a_small_pool_is_taken_whole() -> None:
    pool = [Contender("a", 1.0), Contender("b", 2.0), Contender("absurd", 1e6)]
    assert stratified(pool, 40, np.random.default_rng(0)) == pool[:2]


def test_what_cannot_be_lowered_has_no_cost() -> None:
    assert predict('i("ij~i|i:4|jii\'0")', [(8, 8)], MACHINE, 1) is None
    assert predict('i("ij~i|i:4|iji\'")', [(8, 8)], MACHINE, 1) is not None


def test_an_experiment_from_timing_to_judgement(tmp_path: Path) -> None:
    texts = ('i("+ij~i|i:4|iji\'")', 'i("+ij~i")')
    sums = replace(SOFTMAX, ranked=((96, 128),))
    costs = [predict(text, sums.ranking_shapes, MACHINE, 1) for text in texts]
    predicted = [cost.seconds for cost in costs if cost is not None]
    schedules = tuple(Timed(text, p) for text, p in zip(texts, predicted, strict=True))
    experiment = Experiment(sums.name, sums.ranking_shapes, 1, schedules)
    waits: list[float] = []

    def probe() -> float:
        waits.append(1.0)
        return 1.0

    done = timed(experiment, sums, rounds=3, budget_s=20, seed=0, calm=Calm(1.0, probe))
    assert len(waits) == sum(len(s.samples) for s in done.schedules), "one before each call"
    assert all(len(s.samples) >= 2 and min(s.samples) > 0 for s in done.schedules)
    done.save(tmp_path / "sums.json")
    assert Experiment.read(tmp_path / "sums.json") == done
    assert judged(done, MACHINE)[2] == predicted


def test_what_does_not_build_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment("w2-softmax", ((8, 8),), 1, (Timed('i("+ij~i")', 1.0),))
    assert built(experiment) == experiment
    monkeypatch.setenv("CC", "/bin/false")
    assert built(experiment).schedules == ()


def test_timing_waits_for_the_lock(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    experiment = Experiment("w2-softmax", ((8, 8),), 1, (Timed('i("+ij~i")', 1.0),))
    with (tmp_path / "lock").open("a") as file, ThreadPoolExecutor(1) as pool:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = pool.submit(timed, experiment, SOFTMAX, rounds=2, budget_s=1, seed=0, lock=tmp_path / "lock")
        done, _ = wait([waiting], timeout=0.5)
        assert not done
        fcntl.flock(file, fcntl.LOCK_UN)
        assert len(waiting.result(60).timed) == 1


@pytest.mark.long
def test_what_is_sampled_differs() -> None:
    experiment = sampled(replace(SOFTMAX, ranked=((96, 128),)), MACHINE, threads=1, size=12, seed=0)
    assert len({s.text for s in experiment.schedules}) == len(experiment.schedules) == 12


def test_schedules_that_were_not_timed_are_not_judged() -> None:
    both = (Timed("a", 1.0, (2.0,)), Timed("b", 1.0))
    assert Experiment("w2-softmax", ((8, 8),), 1, both).timed == [both[0]]
