"""Does the cost model rank schedules as the machine does? At least 50 schedules a workload, sampled, timed, judged.

    python -m benchmarks.ranking sample DIR [workload ...]    search and sample; one JSON file a workload
    python -m benchmarks.ranking build DIR [workload ...]     compile what was sampled, two at a time
    python -m benchmarks.ranking time DIR [workload ...]      time what was built; needs a quiet machine
    python -m benchmarks.ranking judge DIR [workload ...]     judge by the timings; with the model as it is now

With ``--breadth`` all of that for what has no target (``benchmarks/breadth.py``, ``unseen.py``).

``judge`` predicts anew from each schedule's text and times nothing, so that a change of the model is judged in seconds.
Timings are warm, each call right after another of the same schedule, into a reused ``out=``, and go round all schedules
in a new order each round; a schedule counts with its least time. With ``--calm`` each waits for a moment in which those
who share the machine leave it alone (``benchmarks.calm``). The workloads of ``HELD_OUT`` are reported apart: the model
is not tuned on them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.calm import Calm
from benchmarks.contest import seconds
from benchmarks.judgement import Noise, Ranking, best_of, mean_regret, noise, ranking
from benchmarks.newcomers import BREADTH
from benchmarks.sampling import predict, sample
from benchmarks.workloads import HELD_OUT, WORKLOADS, Shape, Workload, chosen
from ilang_eq.c.build import build
from ilang_eq.c.kernel import CKernel
from ilang_eq.errors import BuildError
from ilang_eq.extract.machine import Machine, detect, load
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

SIZE = 56
BUILDERS = 2
HOPELESS = 8.0
"""A schedule this many times slower than the fastest is timed in a few rounds only."""
FEW_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Timed:
    """A schedule, its prediction when it was sampled, and its seconds in every round."""

    text: str
    predicted: float
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """The schedules of one workload at ``shapes`` on ``threads`` threads."""

    workload: str
    shapes: tuple[Shape, ...]
    threads: int
    schedules: tuple[Timed, ...]

    def save(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=1, ensure_ascii=False)
        os.replace(file.name, path)

    @staticmethod
    def read(path: Path) -> Experiment:
        """What ``save`` wrote."""
        data = json.loads(path.read_text(encoding="utf-8"))
        schedules = tuple(Timed(s["text"], s["predicted"], tuple(s["samples"])) for s in data["schedules"])
        shapes = tuple(tuple(shape) for shape in data["shapes"])
        return Experiment(data["workload"], shapes, data["threads"], schedules)

    @property
    def timed(self) -> list[Timed]:
        """Those that were timed."""
        return [s for s in self.schedules if s.samples]


def sampled(workload: Workload, machine: Machine, threads: int, size: int, seed: int) -> Experiment:
    """Schedules of ``workload`` to time."""
    found = sample(workload, machine, threads, size, seed)
    schedules = tuple(Timed(c.text, c.predicted) for c in found)
    return Experiment(workload.name, workload.ranking_shapes, threads, schedules)


def built(experiment: Experiment) -> Experiment:
    """The experiment without the schedules that do not build; the libraries of the others are then in the cache."""
    with ProcessPoolExecutor(BUILDERS) as pool:
        good = list(pool.map(_builds, [s.text for s in experiment.schedules]))
    return replace(experiment, schedules=tuple(s for s, ok in zip(experiment.schedules, good, strict=True) if ok))


def _builds(text: str) -> bool:
    try:
        build(_kernel(text, threads=1).source)
    except BuildError:
        return False
    return True


def timed(
    experiment: Experiment,
    workload: Workload,
    rounds: int,
    budget_s: float,
    seed: int,
    lock: Path | None = None,
    calm: Calm | None = None,
) -> Experiment:
    """The experiment with timings: all of ``rounds``, or as many as fit ``budget_s``, but at least ``FEW_ROUNDS``.

    Args:
        lock: a file whose lock is held meanwhile.
        calm: what calls wait for, if they do.
    """
    arrays = workload.arrays(experiment.shapes, seed)
    kernels = [_kernel(s.text, experiment.threads) for s in experiment.schedules]
    (out, *_) = (kernel(*arrays) for kernel in kernels)
    with _locked(lock):
        samples = _samples(kernels, arrays, out, rounds, budget_s, seed, calm)
    found = (replace(s, samples=tuple(times)) for s, times in zip(experiment.schedules, samples, strict=True))
    return replace(experiment, schedules=tuple(found))


def _samples(
    kernels: Sequence[CKernel],
    arrays: Sequence[np.ndarray],
    out: object,
    rounds: int,
    budget_s: float,
    seed: int,
    calm: Calm | None,
) -> list[list[float]]:
    """Each kernel's seconds, round by round; the order is new in each."""
    rng = np.random.default_rng(seed)
    samples: list[list[float]] = [[] for _ in kernels]
    started = time.perf_counter()
    for done in range(rounds):
        fastest = min((min(s) for s in samples if s), default=0.0)
        for n in rng.permutation(len(kernels)):
            if done < FEW_ROUNDS or min(samples[n]) < HOPELESS * fastest:
                call = partial(kernels[n], *arrays, out=out)
                if calm is not None:
                    calm.wait()
                call()  # brings back what the others' workspaces drove out
                samples[n].append(seconds(call))
        if done + 1 >= FEW_ROUNDS and time.perf_counter() - started > budget_s:
            break
    return samples


@contextmanager
def _locked(path: Path | None) -> Iterator[None]:
    """Wait until nobody else who asks for the lock of ``path`` measures anything."""
    if path is None:
        yield
        return
    fcntl = importlib.import_module("fcntl")
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _kernel(text: str, threads: int) -> CKernel:
    return CKernel(lower(wire(read_component(text))), threads)


def judged(experiment: Experiment, machine: Machine) -> tuple[Ranking, Noise, list[float]]:
    """The model as it is now against the timings; also its predictions, one for each schedule that was timed."""
    schedules = experiment.timed
    costs = [predict(s.text, experiment.shapes, machine, experiment.threads) for s in schedules]
    predicted = [float("inf") if cost is None else cost.seconds for cost in costs]
    return (
        ranking(predicted, best_of(s.samples for s in schedules)),
        noise([s.samples for s in schedules]),
        predicted,
    )


def _detail(experiment: Experiment, predicted: Sequence[float]) -> None:
    """Every schedule, the fastest first: measured, predicted, text."""
    rows = zip(best_of(s.samples for s in experiment.timed).tolist(), predicted, experiment.timed, strict=True)
    for measured, expected, schedule in sorted(rows, key=lambda row: row[0]):
        print(f"    {measured * 1e3:10.4f} ms  predicted {expected * 1e3:10.4f}  {schedule.text}")


def _report(experiments: Sequence[Experiment], machine: Machine, detail: bool) -> None:
    """The table, and its means over the workloads used for tuning and over those held out."""
    print(
        f"{'workload':24s} {'n':>3s} {'top-1':>7s} {'top-8':>7s} {'tau':>6s} {'pairs':>7s} {'off by':>7s}   noise floor"
    )
    groups: dict[str, list[Ranking]] = {"tuned on": [], "held out": []}
    for experiment in experiments:
        if not experiment.timed:
            print(f"{experiment.workload:24s} not timed yet")
            continue
        found, floor, predicted = judged(experiment, machine)
        groups["held out" if experiment.workload in HELD_OUT else "tuned on"].append(found)
        print(
            f"{experiment.workload:24s} {len(predicted):3d} {_percent(found)} {found.error:6.2f}x   "
            f"{floor.spread:.1%} apart, top-1 {floor.top1:.1%}, tau {floor.tau:.2f}, pairs {floor.pairs:.1%}"
        )
        if detail:
            _detail(experiment, predicted)
    for name, group in groups.items():
        if group:
            top1, top8 = mean_regret(r.top1 for r in group), mean_regret(r.top8 for r in group)
            tau, pairs = (float(np.mean([getattr(r, field) for r in group])) for field in ("tau", "pairs"))
            print(f"{name:24s} {len(group):3d} {_percent(Ranking(top1, top8, tau, pairs, 1.0))}")


def _percent(found: Ranking) -> str:
    return f"{found.top1:7.1%} {found.top8:7.1%} {found.tau:6.2f} {found.pairs:7.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["sample", "build", "time", "judge"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", help="prefixes of workload names")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--budget", type=float, default=60.0, metavar="S", help="seconds to time one workload for")
    parser.add_argument("--lock", type=Path, metavar="FILE", help="hold this file's lock while timing")
    parser.add_argument("--calm", type=float, metavar="S", help="wait so long at most for calm moments, call by call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--machine", default=None, help="a machine description; this machine's if none is given")
    parser.add_argument("--breadth", action="store_true", help="what has no target")
    parser.add_argument("--detail", action="store_true", help="list every schedule")
    options = parser.parse_intermixed_args()
    machine = detect() if options.machine is None else load(options.machine)
    calm = None if options.calm is None else Calm(options.calm)
    workloads = chosen(options.names, BREADTH if options.breadth else WORKLOADS)
    files = {w.name: options.directory / f"{w.name}.t{options.threads}.json" for w in workloads}
    if options.command == "judge":
        _report([Experiment.read(path) for path in files.values() if path.exists()], machine, options.detail)
        return
    for workload in workloads:
        path = files[workload.name]
        if options.command == "sample":
            sampled(workload, machine, options.threads, options.size, options.seed).save(path)
        elif not path.exists():
            continue
        elif options.command == "build":
            built(Experiment.read(path)).save(path)
        else:
            experiment = Experiment.read(path)
            timed(experiment, workload, options.rounds, options.budget, options.seed, options.lock, calm).save(path)
        print(f"{workload.name}: {options.command} done", flush=True)


if __name__ == "__main__":
    main()
