"""One contestant in a process of its own, so that libraries and their thread pools do not meet.

    python -m benchmarks.worker CONTESTANT THREADS

Reads requests from standard input and answers each on standard output, a line of JSON both ways:

    {"prepare": workload, "seed": n, "schedule": text or null, "result": path}   → {"kinds", "schedule", "predicted"}
    {"call": "cold" or "warm"}                                                   → {"seconds"}

No kinds: this contestant has no way of its own. An answer with ``missing`` says what went wrong. Between requests the
process waits, without spinning.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from benchmarks.contest import CONTESTANTS, Contestant, Prepared, seconds
from benchmarks.newcomers import BREADTH
from benchmarks.workloads import WORKLOADS

WAKING_S = 0.06
"""Seconds of calls before a timed one. After a pause a core is slow at first, and the caches are others': attention of
48 heads takes 10.7 ms instead of 7.8 on Zen 3, and 11.3 instead of 8.7 in PyTorch. With several threads the one that is
woken may share the processor of the one that wakes it: distances of 2048² points then take 7.2 ms instead of 3.8, in
the first four to eight calls on two cores under Linux 6.18, and PyTorch's calls as much longer."""

_KINDS = ("cold", "warm")


class Worker:
    """What the process holds between requests: at most one workload."""

    def __init__(self, contestant: Contestant, threads: int) -> None:
        self.contestant = contestant
        self.threads = threads
        self.prepared: Prepared | None = None

    def answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to one request; an error of the library is an answer too."""
        try:
            match request:
                case {"prepare": str(name), "seed": int(seed), "schedule": schedule, "result": str(path)}:
                    return self._prepare(name, seed, schedule, path)
                case {"call": str(kind)}:
                    return self._call(kind)
                case _:
                    return {"missing": f"a request that nobody knows: {request}"}
        except Exception as error:
            self.prepared = None
            lines = str(error).strip().splitlines()
            return {"missing": f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]}

    def _prepare(self, name: str, seed: int, schedule: str | None, path: str) -> Mapping[str, Any]:
        """Draw inputs, compile, run each kind once, and leave the result in the file ``path``."""
        self.prepared = None
        workload = next(w for w in (*WORKLOADS, *BREADTH) if w.name == name)
        prepare = self.contestant.prepare()
        found = prepare(self.contestant.mode, workload, workload.arrays(seed=seed), self.threads, schedule)
        if found is None:
            return {"kinds": [], "schedule": None, "predicted": None}
        calls = {kind: call for kind in _KINDS if (call := found.call(kind)) is not None}
        results = [call() for call in calls.values()]
        np.save(path, found.as_numpy(results[-1]))
        self.prepared = found
        return {"kinds": list(calls), "schedule": found.schedule, "predicted": found.predicted}

    def _call(self, kind: str) -> Mapping[str, Any]:
        call = self.prepared.call(kind) if self.prepared is not None else None
        if call is None:
            return {"missing": "nothing prepared"}
        wake(call)
        return {"seconds": seconds(call)}


def wake(call: Callable[[], object]) -> None:
    """Call until the core and its caches are awake, and threads on processors of their own, which takes longest."""
    end = time.perf_counter() + WAKING_S
    while time.perf_counter() < end:
        call()


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    answers = _own_output()
    worker = Worker(next(c for c in CONTESTANTS if c.name == name), threads)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)


def _own_output() -> IO[str]:
    """Standard output for the answers alone; whatever libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
