"""``trace`` and ``batch``: whole models, and many components."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ilang_eq.batch.many import BUDGET_S, Result, optimize_many
from ilang_eq.batch.tasks import Source
from ilang_eq.cli.command import Answer, Command
from ilang_eq.cli.searching import add_search, search_options
from ilang_eq.errors import OptionError
from ilang_eq.lang.shape_text import print_shape, read_shape
from ilang_eq.text_table import text_table, time_text

_INPUT = re.compile(r"(?P<shape>[\dx.]+)(:(?P<dtype>float32|int64|bool))?")


def _batch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", help=".jsonl files of tasks, or component files with a line `# shapes: …`")
    add_search(parser)
    parser.set_defaults(budget=BUDGET_S)
    parser.add_argument("--workers", type=int, help="searches at a time (default: all cores)")
    parser.add_argument("--memory", type=int, metavar="MB", help="what each search may use")
    parser.add_argument("--executor", default="local", choices=("local", "ray"))


def _batch(options: argparse.Namespace) -> Answer:
    """Optimise the tasks of files, and keep the results."""
    files: list[Source] = list(options.files)
    memory = None if options.memory is None else options.memory * 2**20
    limits = {"workers": options.workers, "memory_bytes": memory}
    batch = optimize_many(files, executor=options.executor, **limits, **search_options(options))
    rows = [_row(result) for result in batch.results]
    table = text_table(("task", "runs", "predicted", "as given", "search", "from"), rows)
    total = f"all tasks, as often as they run: {time_text(batch.cost)}; as given {time_text(batch.baseline_cost)}"
    faults = [f"{result.name}: {result.error}" for result in batch.results if result.error is not None]
    data = {"results": [_data(result) for result in batch.results], "predicted_seconds": batch.cost}
    data |= {"baseline_seconds": batch.baseline_cost}
    return Answer("\n".join([table, total, *faults]), data, status=1 if batch.failed else 0)


def _row(result: Result) -> tuple[str, ...]:
    best = result.best
    times = ("failed", "") if best is None else (time_text(best.cost), time_text(best.baseline_cost))
    origin = "" if best is None else best.report.origin.split(" ")[0]
    return result.name, f"{result.weight:g}", *times, time_text(result.seconds), origin


def _data(result: Result) -> dict[str, Any]:
    best = result.best
    found = (
        {} if best is None else {"schedule": str(best), "predicted_seconds": best.cost, "origin": best.report.origin}
    )
    told = {"name": result.name, "tasks": result.tasks, "weight": result.weight, "error": result.error}
    return told | found | {"seconds": result.seconds}


def _trace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="package.module:NAME or file.py:NAME, a torch module or function, or a function that makes one"
    )
    parser.add_argument(
        "--inputs", nargs="+", required=True, metavar="NxM", help="shapes of example inputs; 1x16:int64 for other types"
    )
    parser.add_argument("--threads", type=int, help="threads a kernel may use (default: all cores)")
    parser.add_argument("--strict", action="store_true", help="refuse a model of which a call stays with PyTorch")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="where the node list goes")
    parser.add_argument("--optimize", action="store_true", help="find the kernels, and keep them")


def _trace(options: argparse.Namespace) -> Answer:
    """The components of a PyTorch model, and what stays with PyTorch."""
    from ilang_eq.tracing import trace

    model = _model(options.model)
    inputs = [_example(text) for text in options.inputs]
    traced = trace(model, inputs, options.strict, threads=options.threads)
    if options.optimize:
        traced.optimize()
    if options.output is not None:
        _write(options.output, traced.to_json())
    coverage, problems = traced.coverage, traced.problems.items()
    data = {
        "coverage": coverage.fraction,
        "regions": [{"name": region.name, "component": str(region.component)} for region in traced.regions],
        "problems": [{"component": str(p.component), "shapes": p.shapes, "count": n} for p, n in problems],
        "left": [{"op": row.op, "line": row.line, "reason": row.reason, "calls": row.calls} for row in coverage.rows],
    }
    lines = [f"{n} × {' '.join(map(print_shape, p.shapes))}: {p.component}" for p, n in problems]
    return Answer("\n".join([str(coverage), "", *lines]), data)


def _model(text: str) -> Callable[..., Any]:
    """What ``text`` names; a function without parameters makes it. Raises OptionError."""
    place, colon, name = text.rpartition(":")
    if not colon:
        raise OptionError(f"{text!r} names no model", expected="package.module:NAME or file.py:NAME")
    module = _file_module(Path(place)) if place.endswith(".py") else _module(place)
    if not hasattr(module, name):
        legal = tuple(sorted(found for found in vars(module) if not found.startswith("_")))
        raise OptionError(f"{place} has no {name!r}", legal=legal)
    found = getattr(module, name)
    return found() if _makes(found) else found


def _makes(found: Callable[..., Any]) -> bool:
    code = getattr(found, "__code__", None)
    return isinstance(found, type) or (code is not None and code.co_argcount == 0)


def _module(name: str) -> ModuleType:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise OptionError(
            f"{name!r} cannot be imported: {error}", expected="a module, or a file that ends in .py"
        ) from None


def _file_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise OptionError(f"no file {str(path)!r}", expected="a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _example(text: str) -> Any:
    """A tensor of random numbers. Raises OptionError."""
    found = _INPUT.fullmatch(text)
    if found is None:
        raise OptionError(f"{text!r} is no input", expected="a shape, such as 1x16, and perhaps :int64 or :bool")
    if importlib.util.find_spec("torch") is None:
        raise OptionError("tracing needs PyTorch", expected="pip install 'ilang-eq[torch]'")
    torch = importlib.import_module("torch")
    shape: Sequence[int] = read_shape(found["shape"])
    match found["dtype"]:
        case "int64":
            return torch.randint(0, 2, shape)
        case "bool":
            return torch.ones(shape, dtype=torch.bool)
        case _:
            return torch.randn(shape)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}") from None


COMMANDS = (
    Command("trace", "cut a PyTorch model into components", _trace_arguments, _trace),
    Command("batch", "optimise many components, each once", _batch_arguments, _batch),
)
