"""What a call from Python takes: a kernel of 16 elements and two inputs, beside ``numpy.add``, interleaved.

    python benchmarks/call_overhead.py --threads 1

Prints medians and quartiles in microseconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from ilang_eq import i

CALLS = 300
ROUNDS = 31


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    kernel = i("i+i~i").compile(threads=parser.parse_args().threads)
    x, y, out = (np.ones(16, np.float32) for _ in range(3))
    contestants: dict[str, Callable[[], object]] = {
        "kernel(x, y, out=out)": lambda: kernel(x, y, out=out),
        "numpy.add(x, y, out=out)": lambda: np.add(x, y, out=out),
        "kernel(x, y)": lambda: kernel(x, y),
        "numpy.add(x, y)": lambda: np.add(x, y),
        "nothing": lambda: None,
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, call in contestants.items():
            started = time.perf_counter()
            for _ in range(CALLS):
                call()
            times[name].append((time.perf_counter() - started) / CALLS * 1e6)
    for name, seconds in times.items():
        low, median, high = statistics.quantiles(seconds, n=4)
        print(f"{name:26} {median:6.2f} µs   {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    main()
