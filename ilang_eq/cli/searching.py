"""The arguments that every command which optimises shares, and what they ask for."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from pathlib import Path
from typing import Any

from ilang_eq.backends import TARGETS
from ilang_eq.batch.tasks import shapes_comment
from ilang_eq.errors import ILangError, OptionError
from ilang_eq.lang.component import Component
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shape_text import print_shape, read_shape
from ilang_eq.optimized import Optimized, Schedule
from ilang_eq.optimizer import optimize
from ilang_eq.request import EFFORTS


def add_component(parser: argparse.ArgumentParser) -> None:
    """The component and its shapes."""
    parser.add_argument(
        "component", help="a file with component text, the text itself, an expression alone, or - for standard input"
    )
    parser.add_argument(
        "--shapes",
        nargs="+",
        type=_shape,
        metavar="NxM",
        help="one per input, such as 2048x64, or . for a scalar (default: the file's line `# shapes: …`, else 1024)",
    )
    parser.add_argument(
        "--constants",
        nargs="+",
        default=(),
        metavar="IN",
        help="inputs that stay the same from call to call, such as in1: what depends on them alone counts for nothing",
    )


def add_search(parser: argparse.ArgumentParser) -> None:
    """How to search, and where results are kept."""
    parser.add_argument("--target", default="c", choices=list(TARGETS))
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        help="for --target cuda: sm_80, sm_89, sm_90, or a description (default: $ILANG_EQ_GPU)",
    )
    parser.add_argument(
        "--precision",
        default="float32",
        help="what the factors of summed products may be rounded to, with --target cuda: tf32, tf32x3",
    )
    parser.add_argument("--threads", type=int, help="threads the kernel may use (default: all cores)")
    parser.add_argument("--effort", default="model", choices=EFFORTS, help="measure: time the best few")
    parser.add_argument("--budget", type=float, metavar="S", help="seconds for a search")
    parser.add_argument("--rules", default="default", help="the name of a rule set, or of one rule")
    parser.add_argument("--seed", type=int, default=0)
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument(
        "--database", metavar="FILE", help="where results are kept (default: $ILANG_EQ_DATABASE, or yours)"
    )
    kept.add_argument("--no-database", action="store_true", help="search anew, and keep nothing")


def search_options(options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of ``optimize`` that ``add_search`` read.

    Raises:
        OptionError: ``--gpu`` for another target, or one that names no GPU.
    """
    if options.gpu is not None:
        choose_gpu(options.gpu, options.target)
    found = {name: getattr(options, name) for name in ("target", "threads", "effort", "rules", "seed", "precision")}
    return found | {"budget_s": options.budget, "database": False if options.no_database else options.database}


def choose_gpu(name: str, target: str) -> None:
    """Have this process, and those it starts, optimise for the GPU ``name``."""
    from ilang_eq.extract.gpu_machine import VARIABLE, load_gpu

    if target != "cuda":
        raise OptionError(f"--gpu {name} says nothing about kernels for {target!r}", expected="--target cuda")
    load_gpu(name)
    os.environ[VARIABLE] = name


def component_of(options: argparse.Namespace) -> tuple[Component, list[tuple[int, ...]] | None]:
    """The component that ``add_component`` read, and the shapes to optimise for.

    Raises:
        OptionError: neither component text nor a file.
        ParseError: text that is not that of a component.
    """
    text = _text(options.component)
    return read_component(text), options.shapes or shapes_comment(text)


def searched(options: argparse.Namespace) -> tuple[Component, Optimized]:
    """The component, and the best schedule of it."""
    component, shapes = component_of(options)
    return component, optimize(component, shapes, constants=options.constants, **search_options(options))


def described(best: Optimized) -> dict[str, Any]:
    """``best`` for programs."""
    return {
        "schedule": str(best),
        "predicted_seconds": best.cost,
        "baseline_seconds": best.baseline_cost,
        "target": best.target,
        "threads": best.threads,
        "precision": best.precision,
        "shapes": [print_shape(shape) for shape in best.shapes],
        "constants": [f"in{k}" for k in best.constants],
        "kernels": best.plan().kernels,
        "origin": best.report.origin,
        "stop_reason": best.report.stop_reason,
        "seconds": dict(best.report.seconds),
        "nodes": best.report.nodes,
        "facts": best.report.facts,
    }


def ranked(schedules: tuple[Schedule, ...]) -> list[dict[str, Any]]:
    """Schedules for programs."""
    return [
        {"schedule": str(s), "predicted_seconds": s.cost.seconds, "measured_seconds": s.measured, "terms": s.cost.terms}
        for s in schedules
    ]


def _shape(text: str) -> tuple[int, ...]:
    try:
        return read_shape(text)
    except ILangError as error:
        raise argparse.ArgumentTypeError(str(error).replace("\n", "; ")) from None


def _text(argument: str) -> str:
    if argument == "-":
        return sys.stdin.read()
    if "(" in argument or argument == "I":
        return argument
    path = Path(argument)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if "~" in argument:
            return f'i("{argument}")'
        near = _near(path)
        raise OptionError(
            f"{argument!r} is neither component text nor a file that can be read: {error}",
            expected='a file, or text such as i("ik*kj~ijk") >> i("+ijk~ij")',
            legal=near,
        ) from None


def _near(path: Path) -> tuple[str, ...]:
    """Files beside ``path`` with names like its own."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    except OSError:
        return ()
    return tuple(str(path.parent / name) for name in difflib.get_close_matches(path.name, names))
