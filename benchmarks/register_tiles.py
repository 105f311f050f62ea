"""What register tiles of any size take in the nearest cache: what ``extract/leaves.py`` says comes from such tables.

    python -m benchmarks.register_tiles [--form product] [--depth 48] [--rounds 40]

Sums over ``depth`` steps in tiles of so many rows by so many floats: products, or squares of differences, with the
operand whose elements all floats of a row share along its rows or across them. Figures are cycles of the description's
clock for a step of a tile, measured (the least of all rounds) and, in brackets, by the cost model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from ilang_eq.c.kernel import CKernel
from ilang_eq.extract.full_model import program_cost
from ilang_eq.extract.machine import Machine, detect
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
FLOATS = (16, 24, 32, 48, 64, 96, 128, 256)
MOST = 4096
"""The most floats of a tile."""
HEIGHT = 480
"""Rows of the result, or the most of them that whole tiles fill."""

FORMS = {
    "product": """i("ik*kj~kij{0}") >> i("+kij~ij{0}0")""",
    "product across": """i("ki*kj~kij{0}") >> i("+kij~ij{0}0")""",
    "squares across": """i("ki-kj~kij{0}") >> (I & I) >> i("kij*kij~kij{0}01") >> i("+kij~ij{0}0")""",
}
"""Components to be filled with a schedule; across: the elements of a step lie beside each other."""


def text(form: str, rows: int, floats: int) -> str:
    """The component in tiles of so many ``rows`` and ``floats``."""
    return FORMS[form].format(f"|i:{rows},j:{floats}|jiki'j'")


def measured(form: str, rows: int, floats: int, depth: int, rounds: int, machine: Machine) -> tuple[float, float]:
    """Cycles for a step of a tile, measured and expected."""
    program = lower(wire(read_component(text(form, rows, floats))))
    height = max(1, HEIGHT // rows) * rows
    across = form.endswith("across")
    shapes = ((depth, height) if across else (height, depth)), (depth, floats)
    x, y = (np.ones(shape, np.float32) for shape in shapes)
    out, kernel, least = np.empty((height, floats), np.float32), CKernel(program, 1), float("inf")
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        kernel(x, y, out=out)
        least = min(least, time.perf_counter_ns() - begin)
    extents = {(n, d): size for n, shape in enumerate(shapes) for d, size in enumerate(shape)}
    expected = program_cost(program, extents, machine, 1).seconds * 1e9
    cycles = machine.clock_ghz / (height / rows * depth)
    return least * cycles, expected * cycles


def table(
    form: str, depth: int, rounds: int, machine: Machine, rows: Sequence[int] = ROWS, floats: Sequence[int] = FLOATS
) -> str:
    """One line for each number of rows, one column for each number of floats, as Markdown."""
    lines = ["| rows | " + " | ".join(map(str, floats)) + " |", "|---|" + "---:|" * len(floats)]
    for height in rows:
        found = (measured(form, height, f, depth, rounds, machine) if height * f <= MOST else None for f in floats)
        cells = ("" if cell is None else f"{cell[0]:.1f} ({cell[1]:.1f})" for cell in found)
        lines.append(f"| {height} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--form", choices=sorted(FORMS), default="product")
    parser.add_argument("--depth", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    machine = detect()
    print(f"{machine.name}, {options.form}, {options.depth} steps: cycles a step (and by the model)\n")
    print(table(options.form, options.depth, options.rounds, machine))


if __name__ == "__main__":
    main()
