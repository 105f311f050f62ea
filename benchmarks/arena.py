"""The contestants' processes, and who is asked when."""

from __future__ import annotations

import json
import os
import selectors
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.calm import Calm
from benchmarks.contest import Contestant
from benchmarks.workloads import Shape, Workload

ROOT = Path(__file__).parent.parent

SLOW = 5.0
"""A call that takes this many times as long as the fastest is repeated in a few rounds only."""
FEW_ROUNDS = 3
CALM_CALLS = 4
"""How often a call is made, at most, for one that begins and ends in calm moments."""
_CALL_S = 120.0


@dataclass(frozen=True, slots=True)
class Quartiles:
    """Seconds a call: the median, and the quartiles around it."""

    low: float
    median: float
    high: float


@dataclass(slots=True)
class Outcome:
    """One workload's results, by contestant.

    Args:
        seconds: by contestant and kind, as "numpy cold".
        rounds: the same call by call; those at the same place were asked for in the same round.
        calm: the share of the calls that began and ended in calm moments; None if nobody waited for any.
    """

    seconds: dict[str, Quartiles] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, np.ndarray] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    schedule: str | None = None
    predicted: float | None = None
    calm: float | None = None

    @property
    def shape(self) -> Shape:
        """Of the result."""
        return next((result.shape for result in self.results.values()), ())


class Arena:
    """A process for each contestant, started when it is first needed, and again if it had to be stopped.

    With ``calm``, each call waits for a moment in which nobody else uses the core, and is repeated a few times if it
    ends in another.
    """

    def __init__(self, contestants: Sequence[Contestant], threads: int, python: str, calm: Calm | None = None) -> None:
        self.contestants = contestants
        self.calm = calm
        self._seats = {c.name: _Seat(c, threads, python) for c in contestants}

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for seat in self._seats.values():
            seat.stop()

    def run(self, workload: Workload, rounds: int, seed: int, schedule: str | None) -> Outcome:
        """Prepare ``workload`` everywhere, then ask in turn, ``rounds`` times, in a new order each time."""
        outcome = Outcome()
        calls = [pair for c in self.contestants for pair in self._prepared(c, workload, seed, schedule, outcome)]
        samples: dict[tuple[str, str], list[float]] = {pair: [] for pair in calls}
        rng = np.random.default_rng(seed)
        moments: list[bool] = []
        for done in range(rounds):
            fastest = min((min(s) for s in samples.values() if s), default=0.0)
            for n in rng.permutation(len(calls)):
                name, kind = calls[n]
                taken = samples[calls[n]]
                if name not in outcome.missing and (done < FEW_ROUNDS or min(taken) < SLOW * fastest):
                    answer = self._asked(name, kind, moments)
                    if "missing" in answer:
                        outcome.missing[name] = answer["missing"]
                    else:
                        taken.append(answer["seconds"])
        outcome.rounds = {f"{name} {kind}": times for (name, kind), times in samples.items() if times}
        outcome.seconds = {name: quartiles(times) for name, times in outcome.rounds.items()}
        outcome.calm = statistics.mean(moments) if moments else None
        return outcome

    def _asked(self, name: str, kind: str, moments: list[bool]) -> Mapping[str, Any]:
        """The answer to one call, or to the last of a few; ``moments`` gets whether that was calm, if it matters."""
        seat = self._seats[name]
        if self.calm is None:
            return seat.ask({"call": kind}, _CALL_S)
        answer: Mapping[str, Any] = {}
        calm = False
        for _ in range(CALM_CALLS):
            began = self.calm.wait()
            answer = seat.ask({"call": kind}, _CALL_S)
            calm = began and self.calm.now()
            if calm or "missing" in answer:
                break
        moments.append(calm)
        return answer

    def _prepared(
        self, contestant: Contestant, workload: Workload, seed: int, schedule: str | None, outcome: Outcome
    ) -> list[tuple[str, str]]:
        """What ``contestant`` can be asked for; nothing if it has no way of its own."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.npy"
            request = {"prepare": workload.name, "seed": seed, "schedule": schedule, "result": str(path)}
            answer = self._seats[contestant.name].ask(request, contestant.patience_s)
            if "missing" in answer:
                outcome.missing[contestant.name] = answer["missing"]
                return []
            if not answer["kinds"]:
                return []
            outcome.results[contestant.name] = np.load(path)
        if answer["schedule"] is not None:
            outcome.schedule, outcome.predicted = answer["schedule"], answer["predicted"]
        return [(contestant.name, kind) for kind in answer["kinds"]]


def quartiles(times: Sequence[float]) -> Quartiles:
    """Of at least one time."""
    if len(times) == 1:
        return Quartiles(times[0], times[0], times[0])
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return Quartiles(low, median, high)


def environment(threads: int) -> dict[str, str]:
    """What every library is told: so many threads, which wait for work as they usually do.

    Who does that in a loop stops before the next one is timed (``worker.WAKING_S``): GCC's OpenMP after some 4 ms,
    OpenBLAS after 16, Intel's OpenMP after 200 unless it is told otherwise.
    """
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, **dict.fromkeys(pools, str(threads)), "KMP_BLOCKTIME": "20", "PYTHONPATH": path}


class _Seat:
    """One contestant's process."""

    def __init__(self, contestant: Contestant, threads: int, python: str) -> None:
        self.command = [python, "-m", "benchmarks.worker", contestant.name, str(threads)]
        self.environment = environment(threads)
        self.process: subprocess.Popen[str] | None = None

    def ask(self, request: Mapping[str, Any], patience_s: float) -> Mapping[str, Any]:
        """The answer; one that says ``missing`` if there is none in time, after which the process is stopped."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                if not selector.select(patience_s):
                    self.stop()
                    return {"missing": f"not finished after {patience_s:.0f} s"}
            return json.loads(process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            code = process.wait()
            self.stop()
            return {"missing": f"its process ended with code {code}"}

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=ROOT,
                env=self.environment,
            )
        return self.process
