"""``optimize``, ``explain``, ``run``, ``bench``, ``export``: one component."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ilang_eq.backends import TARGETS
from ilang_eq.bench import REPEATS, compare
from ilang_eq.cli.command import Answer, Command
from ilang_eq.cli.searching import add_component, add_search, component_of, described, ranked, searched
from ilang_eq.errors import ArrayError, DeviceError, OptionError
from ilang_eq.lang.component import Component
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shape_text import print_shape
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from ilang_eq.measure import random_inputs
from ilang_eq.optimized import Optimized
from ilang_eq.request import NOMINAL_EXTENT
from ilang_eq.text_table import time_text


def _search_arguments(parser: argparse.ArgumentParser) -> None:
    add_component(parser)
    add_search(parser)


def _optimize_arguments(parser: argparse.ArgumentParser) -> None:
    _search_arguments(parser)
    parser.add_argument("--source", type=Path, metavar="FILE", help="where the generated C or CUDA C goes")


def _optimize(options: argparse.Namespace) -> Answer:
    """The schedule, its plan, and how far one run on random input is from float64, where it can run."""
    component, best = searched(options)
    report = best.report
    lines = [str(best), "", str(best.plan()), *_launches(best), f"predicted: {best.cost * 1e3:.3f} ms"]
    lines += [f"searched: {report.seconds['total']:.2f} s, {report.nodes} e-nodes, {report.stop_reason}"]
    lines += [f"from: {report.origin}"] if report.origin != "search" else []
    if options.source is not None:
        _written(options.source, best.source)
        lines.append(f"written: {options.source}")
    error, why_not = _tried(component, best)
    lines.append(f"not run: {why_not}" if error is None else _error_line(error))
    return Answer("\n".join(lines), described(best) | {"error": error, "launches": _launches(best)})


def _tried(component: Component, best: Optimized) -> tuple[float | None, str]:
    """The error of a run on random input; None, and why, on a machine without the device that it needs."""
    arrays = random_inputs(best.extents, component.inputs, seed=0)
    target = TARGETS[best.target]()
    try:
        results = _fetched(best.target, best(*target.place(arrays)))
    except DeviceError as error:
        return None, error.message
    return _error(results, component.interpret(*arrays)), ""


def _launches(best: Optimized) -> list[str]:
    """How a kernel for a GPU is launched; nothing for other targets."""
    from ilang_eq.cuda.kernel import CudaKernel
    from ilang_eq.cuda.steps import steps

    if not isinstance(best.kernel, CudaKernel):
        return []
    return [
        f"{step.entry.name}: {step.blocks} blocks of {step.entry.block.threads} threads"
        for step in steps(best.kernel.module, best.shapes)
    ]


def _error_line(error: float) -> str:
    return f"largest error, relative to the largest value of the float64 result: {error:.1e}"


def _explain(options: argparse.Namespace) -> Answer:
    _, best = searched(options)
    rules = {name: {"matches": n, "seconds": s} for name, (n, s) in best.report.rules.items()}
    data = described(best) | {"rules": rules, "candidates": ranked(best.schedules), "refused": best.report.refused}
    return Answer(best.explain(), data)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    _search_arguments(parser)
    parser.add_argument("--inputs", nargs="+", metavar="FILE.npy", help="float32 arrays (default: random ones)")
    parser.add_argument("--output", nargs="+", metavar="FILE.npy", help="where the results go")
    parser.add_argument("--as-is", action="store_true", help="compile the schedule as it is written, without a search")


def _run(options: argparse.Namespace) -> Answer:
    """Run on arrays from files, or on random ones, and say what came out."""
    component, shapes = component_of(options)
    arrays = [_loaded(name) for name in options.inputs or ()] or _random(component, shapes)
    if options.shapes is None and options.inputs:
        options.shapes = [array.shape for array in arrays]
    kernel: Callable[..., Any]
    if options.as_is:
        kernel = component.compile(options.target, options.threads, options.precision)
    else:
        kernel = searched(options)[1]
    results = _fetched(options.target, kernel(*TARGETS[options.target]().place(arrays)))
    error = _error(results, component.interpret(*arrays))
    for name, result in zip(_outputs(options.output, len(results)), results, strict=False):
        _saved(name, result)
    lines = [f"output {n}: {print_shape(r.shape)}, {_range(r)}" for n, r in enumerate(results)]
    lines.append(_error_line(error))
    data = {"outputs": [{"shape": r.shape, "range": _range(r)} for r in results], "error": error}
    return Answer("\n".join(lines), data | {"schedule": str(component if options.as_is else kernel)})


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    _search_arguments(parser)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--candidates", type=int, default=1, metavar="K", help="time the best K, in turn")


def _bench(options: argparse.Namespace) -> Answer:
    """Times of the best schedule; or of the best few, in turn."""
    component, best = searched(options)
    if options.candidates > 1:
        arrays = TARGETS[best.target]().place(random_inputs(best.extents, component.inputs, seed=0))
        schedules = best.candidates(options.candidates)
        kernels = {str(n): s.compile(best.target, best.threads, best.precision) for n, s in enumerate(schedules, 1)}
        found = compare(kernels, *arrays, repeats=options.repeats)
        listed = [f"{n}: predicted {time_text(s.cost.seconds)}: {s}" for n, s in enumerate(schedules, 1)]
        timed = [{"median": t.median, "samples": t.samples} for t in found.timings]
        rows = [row | time for row, time in zip(ranked(tuple(schedules)), timed, strict=True)]
        return Answer("\n".join([str(found), "", *listed]), {"candidates": rows})
    result = best.bench(repeats=options.repeats)
    figures = {name: getattr(result.timing, name) for name in ("median", "mean", "deviation", "iqr", "samples")}
    figures |= {"gflops": result.gflops, "gb_s": result.gb_s, "fraction": result.fraction}
    return Answer(f"{best}\n\n{result}", described(best) | figures)


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    _search_arguments(parser)
    parser.add_argument("directory", type=Path, help="where the files go")
    parser.add_argument("--name", default="kernel", help="what the files and functions are called")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")


def _export(options: argparse.Namespace) -> Answer:
    """The best schedule as C source with a header, a description and an example."""
    if options.target != "c":
        raise OptionError(
            f"a schedule for {options.target} cannot be exported",
            expected="--target c; for the source alone, ilang-eq optimize --target cuda --source kernel.cu",
        )
    _, best = searched(options)
    directory = best.export(options.directory, name=options.name, overwrite=options.overwrite)
    files = sorted(str(path) for path in directory.iterdir() if path.is_file())
    return Answer("\n".join([str(best), *files]), described(best) | {"files": files})


def _random(component: Component, shapes: Sequence[Sequence[int]] | None) -> list[np.ndarray]:
    """Random inputs of ``shapes``, or of nominal ones."""
    graph: Graph = wire(component)
    inferred = infer(graph)
    given = shapes or [(NOMINAL_EXTENT,) * (rank or 0) for rank in inferred.ranks]
    return random_inputs(inferred.bind([tuple(shape) for shape in given]), component.inputs, seed=0)


def _loaded(name: str) -> np.ndarray:
    try:
        return np.load(name, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ArrayError(f"{name} cannot be read: {error}", expected="a .npy file, as numpy.save writes it") from None


def _saved(name: str, array: np.ndarray) -> None:
    try:
        with open(name, "wb") as file:
            np.save(file, array, allow_pickle=False)
    except OSError as error:
        raise ArrayError(f"{name} cannot be written: {error}") from None


def _written(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}") from None


def _outputs(names: Sequence[str] | None, results: int) -> Sequence[str]:
    if names is not None and len(names) != results:
        raise OptionError(f"{len(names)} files for {results} results", expected="one each")
    return names or ()


def _range(array: np.ndarray) -> str:
    return f"from {array.min():.4g} to {array.max():.4g}" if array.size else "empty"


def _error(results: Any, right: Any) -> float:
    """The largest difference, relative to the largest value of its output."""
    pairs = zip(_several(results), _several(right), strict=True)
    return max((_difference(a, b) for a, b in pairs), default=0.0)


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b), initial=0), 1e-30))


def _fetched(target: str, results: Any) -> tuple[np.ndarray, ...]:
    """Results in main memory."""
    return tuple(TARGETS[target]().fetch(results if isinstance(results, tuple) else (results,)))


def _several(result: Any) -> tuple[np.ndarray, ...]:
    return result if isinstance(result, tuple) else (np.asarray(result),)


COMMANDS = (
    Command("optimize", "print the best schedule of a component", _optimize_arguments, _optimize),
    Command("explain", "print why a schedule was chosen", _search_arguments, _explain),
    Command("run", "run a component on arrays", _run_arguments, _run),
    Command("bench", "time a component", _bench_arguments, _bench),
    Command("export", "write a component as C source", _export_arguments, _export),
)
