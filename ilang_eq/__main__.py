"""``python -m ilang_eq``: optimise a component from a file or the command line, and run it on random input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ilang_eq import Component, ILangError, optimize
from ilang_eq.lang.reading import read_component
from ilang_eq.measure import random_inputs
from ilang_eq.optimized import Optimized


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        component = read_component(_text(options.component))
        best = optimize(component, options.shapes, threads=options.threads, effort=options.effort, rules=options.rules)
        print(best.explain() if options.command == "explain" else _summary(component, best))
        return 0
    except ILangError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ilang_eq", description=__doc__)
    parser.add_argument("command", choices=["optimize", "explain"], help="print the schedule, or why it was chosen")
    parser.add_argument("component", help="a file with component text, or the text itself")
    parser.add_argument("--shapes", nargs="+", type=_shape, metavar="NxM", help="one per input, such as 2048x64")
    parser.add_argument("--threads", type=int, help="threads the kernel may use (default: all cores)")
    parser.add_argument("--effort", default="model", choices=["model", "measure"])
    parser.add_argument("--rules", default="default", help="the name of a rule set")
    return parser


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in text.split("x")) if text != "." else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write 2048x64, or . for a scalar") from None


def _text(argument: str) -> str:
    path = Path(argument)
    return path.read_text() if "(" not in argument and path.is_file() else argument


def _summary(component: Component, best: Optimized) -> str:
    """The schedule, its plan, and how far one run on random input is from float64."""
    arrays = random_inputs(best.extents, component.inputs, seed=0)
    results, right = best(*arrays), component.interpret(*arrays)
    pairs = zip(_several(results), _several(right), strict=True)
    error = max(float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b), initial=0), 1e-30)) for a, b in pairs)
    lines = [str(best), "", str(best.plan()), f"predicted: {best.cost * 1e3:.3f} ms"]
    lines += [f"searched: {best.report.seconds['total']:.2f} s, {best.report.nodes} e-nodes, {best.report.stop_reason}"]
    return "\n".join([*lines, f"largest error, relative to the largest value of the float64 result: {error:.1e}"])


def _several(result: object) -> Sequence[np.ndarray]:
    return result if isinstance(result, tuple) else (np.asarray(result),)


if __name__ == "__main__":
    sys.exit(main())
