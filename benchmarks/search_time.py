"""Seconds by phase to optimise attention cold, and eight stacked attention blocks; and to find them in the database.

    python benchmarks/search_time.py

Each is optimised in a fresh process with a database of its own, so that imports and the e-graph's start are counted;
then looked up in the same process, once (``cached``) and again (``again``).
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys

ATTENTION = """
scores = i("ik*jk~ijk") >> i("+ijk~ij")
softmax = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
attention = scores >> softmax >> i("ij*jk~ikj") >> i("+ikj~ik")
"""
BLOCKS = 8

RUN = """
import json, sys, tempfile, time
started = time.perf_counter()
from ilang_eq import optimize
from ilang_eq.lang.reading import read_component
text, shapes = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as directory:
    def run():
        return optimize(read_component(text), shapes, database=directory + "/results.sqlite")
    best = run()
    report = dict(best.report.seconds, cold=time.perf_counter() - started)
    for phase in ("cached", "again"):
        started = time.perf_counter()
        assert str(run()) == str(best)
        report[phase] = time.perf_counter() - started
print(json.dumps([report, best.report.nodes, best.report.facts, best.report.stop_reason, best.plan().kernels]))
"""


def stacked(blocks: int) -> tuple[str, list[tuple[int, int]]]:
    """``blocks`` attentions, each one's output the queries of the next."""
    text = ATTENTION + " >> ".join(["attention"] * blocks)
    return text, [(1024, 64)] * (1 + 2 * blocks)


def measure(name: str, text: str, shapes: list[tuple[int, int]]) -> None:
    """Optimise in a fresh process and print one row a phase."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps([text, shapes]), capture_output=True, text=True, check=True
    )
    seconds, nodes, facts, reason, kernels = json.loads(done.stdout)
    print(f"{name}: {nodes} e-nodes, {facts} facts, {reason}, {kernels} kernels")
    for phase, spent in seconds.items():
        print(f"  {phase:12s} {spent:8.3f} s")


if __name__ == "__main__":
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    measure("attention", ATTENTION + "attention", [(2048, 64)] * 3)
    measure(f"{BLOCKS} stacked blocks", *stacked(BLOCKS))
