"""What rows side by side take out of memory: what ``extract/prefetchers.py`` says of a processor comes from this table.

    python -m benchmarks.side_by_side [--mebibytes 64] [--rounds 9]

A matrix is summed with several rows in turn, a part of each: by code that has instructions for each row, by a loop that
goes round them, and all rows from top to bottom, a few columns at a time. Figures are nanoseconds a line of 64 bytes,
measured (the least of all rounds, schedules in a new order each round) and, in brackets, by the cost model. Give fewer
MiB than the last cache has to see what comes out of that.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ilang_eq.c.kernel import CKernel
from ilang_eq.extract.full_model import program_cost
from ilang_eq.extract.machine import Machine, detect
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

LENGTHS = (64, 128, 256, 512, 1024, 4096, 5040)
"""Floats in a row: on a page's border every so many rows, but for the last."""
LINE_FLOATS = 16


@dataclass(frozen=True, slots=True)
class Way:
    """How a matrix is gone through: ``schedule`` of a sum that leaves ``axis``, in parts of ``part`` floats."""

    name: str
    schedule: str
    axis: str = "i"
    part: int = LINE_FLOATS

    def text(self) -> str:
        """The sum, as a component."""
        return f'i("+ij~{self.axis}{self.schedule}")'


def ways() -> Iterator[Way]:
    """One row by itself, register tiles, loops around rows, and columns."""
    yield Way("one row", "")
    for rows in (2, 4, 8, 16, 24, 48):
        yield Way(f"{rows} × 16, unrolled", f"|i:{rows},j:16|iji'j'")
    for part in (80, 128):
        yield Way(f"24 × {part}, a loop", f"|i:24,j:{part}|iji'j'", part=part)
    for part in (16, 32, 64, 256):
        yield Way(f"all × {part}", f"|j:{part}|jij'", "j", part)


def measured(length: int, floats: int, rounds: int, machine: Machine) -> dict[str, tuple[float, float]]:
    """Nanoseconds a line, measured and expected, by the name of each way that rows of ``length`` allow."""
    matrix = np.ones((floats // length, length), np.float32)
    found = [way for way in ways() if way.part < length or not way.schedule]
    programs = [lower(wire(read_component(way.text()))) for way in found]
    kernels = [CKernel(program, 1) for program in programs]
    least = [float("inf")] * len(found)
    order = np.random.default_rng(0)
    for _ in range(rounds):
        for n in order.permutation(len(found)):
            begin = time.perf_counter_ns()
            kernels[n](matrix)
            least[n] = min(least[n], time.perf_counter_ns() - begin)
    lines = matrix.size / LINE_FLOATS
    extents = {(0, d): n for d, n in enumerate(matrix.shape)}
    expected = [program_cost(program, extents, machine, 1).seconds * 1e9 for program in programs]
    return {way.name: (ns / lines, by / lines) for way, ns, by in zip(found, least, expected, strict=True)}


def table(mebibytes: int, rounds: int, machine: Machine) -> str:
    """One line for each way, one column for each length of rows, as Markdown."""
    floats = mebibytes * (1 << 18)
    columns = [measured(length, floats, rounds, machine) for length in LENGTHS]
    rows = ["| rows × floats | " + " | ".join(map(str, LENGTHS)) + " |", "|---|" + "---:|" * len(LENGTHS)]
    for way in ways():
        cells = (f"{c[way.name][0]:.2f} ({c[way.name][1]:.2f})" if way.name in c else "" for c in columns)
        rows.append(f"| {way.name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    machine = detect()
    print(f"{machine.name}, {options.mebibytes} MiB, nanoseconds a line (and by the model)\n")
    print(table(options.mebibytes, options.rounds, machine))


if __name__ == "__main__":
    main()
