"""Seconds and memory by phase to optimise workloads cold, and to find the results in the database.

    python -m benchmarks.search_time [WORKLOAD...]          # as in benchmarks/workloads.py, or stacked; a few if none

Each workload is optimised in a fresh process with a database of its own, so that imports and the e-graph's start are
counted (``cold``); compiled Python files are in a directory of their own and there at the second of ``REPEATS`` runs,
of which the fastest counts. Another fresh process finds the result, once (``cached``) and again (``again``), imports
not counted. Memory is the most that the process has resident during each phase, sampled in a run that is not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from benchmarks.workloads import COMPONENTS, WORKLOADS, Shape

BLOCKS = 8
STACKED = "stacked"
"""``BLOCKS`` attentions, each one's output the queries of the next."""

NAMES = (*(workload.name for workload in WORKLOADS), STACKED)
DEFAULT = ("w1-1024x1024x1024", "w3-attention", "w4-mlp", "w5-layernorm", "w9-swiglu", STACKED)
REPEATS = 5

SEARCH = """
import json, sys, time
started = time.perf_counter()
from ilang_eq import optimize
from ilang_eq.lang.reading import read_component
text, shapes, database, threads = json.load(sys.stdin)
component = read_component(text)
imported = time.perf_counter()
best = optimize(component, shapes, threads=threads, database=database)
report = best.report
seconds = {"import": imported - started, **report.seconds, "cold": time.perf_counter() - started}
print(json.dumps([seconds, report.nodes, report.facts, report.stop_reason, best.plan().kernels, str(best)]))
"""

LOOK_UP = """
import json, sys, time
from ilang_eq import optimize
from ilang_eq.lang.reading import read_component
text, shapes, database, threads = json.load(sys.stdin)
component, seconds = read_component(text), {}
for phase in ("cached", "again"):
    started = time.perf_counter()
    best = optimize(component, shapes, threads=threads, database=database)
    seconds[phase] = time.perf_counter() - started
    assert best.report.origin.startswith("database"), best.report.origin
print(json.dumps([seconds, str(best)]))
"""

SAMPLED = f"""
import resource, threading, time
samples, ended = [], threading.Event()
def sample():
    while not ended.wait(0.002):
        with open("/proc/self/statm") as file:
            samples.append((time.perf_counter(), int(file.read().split()[1]) * resource.getpagesize()))
sampler = threading.Thread(target=sample)
sampler.start()
{SEARCH}
ended.set()
sampler.join()
print(json.dumps([started, samples]))
"""


@dataclass(frozen=True, slots=True)
class Task:
    """What to optimise."""

    name: str
    text: str
    shapes: Sequence[Shape]


def task(name: str) -> Task:
    """The workload called ``name``, one of ``NAMES``."""
    if name == STACKED:
        text = (COMPONENTS / "attention.i").read_text(encoding="utf-8")
        *lines, last = text.strip().splitlines()
        stacked = "\n".join([*lines, f"block = {last}", " >> ".join(["block"] * BLOCKS)])
        return Task(name, stacked, [(1024, 64)] * (1 + 2 * BLOCKS))
    workload = {workload.name: workload for workload in WORKLOADS}[name]
    return Task(name, workload.text, workload.shapes)


def run(script: str, given: Sequence[Any], compiled: str) -> list[Any]:
    """What ``script`` prints, a JSON value a line, in a fresh process that keeps compiled Python files in a folder."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(given),
        env={**environment, "PYTHONPYCACHEPREFIX": compiled},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def peaks(seconds: Mapping[str, float], started: float, samples: Sequence[tuple[float, int]]) -> dict[str, float]:
    """Megabytes resident at most by the end of each phase of a run, from what was seen during and before it.

    ``optimize`` runs its phases one after the other, and little between them.
    """
    phases = [phase for phase in seconds if phase not in ("total", "cold")]
    ends = accumulate(seconds[phase] for phase in phases)
    found: dict[str, float] = {}
    for phase, end in zip(phases, ends, strict=True):
        found[phase] = max((used for at, used in samples if at <= started + end), default=0) / 1e6
    return found | {"cold": max(used for _, used in samples) / 1e6}


def measure(found: Task, threads: int, compiled: str) -> None:
    """Optimise and look up in fresh processes, and print one row a phase."""
    runs = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as directory:
            given = [found.text, found.shapes, f"{directory}/results.sqlite", threads]
            ((seconds, *_, text),) = run(SEARCH, given, compiled)
            ((looked_up, again),) = run(LOOK_UP, given, compiled)
            assert text == again, "the database returns something else"
            runs.append({**seconds, **looked_up})
    (report, (started, samples)) = run(SAMPLED, [found.text, found.shapes, False, threads], compiled)
    seconds, nodes, facts, reason, kernels, _ = report
    resident = peaks(seconds, started, samples)
    print(f"{found.name}: {nodes} e-nodes, {facts} facts, {reason}, {kernels} kernels")
    best = min(runs, key=lambda spent: spent["cold"])
    best |= {phase: min(spent[phase] for spent in runs) for phase in ("cached", "again")}
    for phase, spent in best.items():
        memory = f"{resident[phase]:8.0f} MB" if phase in resident else ""
        print(f"  {phase:12s} {spent:8.3f} s {memory}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=(*NAMES, []), metavar="WORKLOAD", help=", ".join(NAMES))
    names = parser.parse_args().names or DEFAULT
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, 2 threads")
    with tempfile.TemporaryDirectory() as cached:
        for name in names:
            measure(task(name), 2, cached)


if __name__ == "__main__":
    main()
