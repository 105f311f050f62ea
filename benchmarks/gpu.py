"""Kernels for a GPU against PyTorch's and Triton's, at GPU sizes.

    python -m benchmarks.gpu                      # on a machine with a device, torch and CuPy
    python -m benchmarks.gpu --dry-run            # anywhere: finds schedules, compiles, says what the model expects
    python -m benchmarks.gpu --rehearse           # anywhere: all the rest, on the processor and at tiny sizes

Schedules come from ``--schedules``, a folder of 𝚒 text; those that are missing are searched for, all at once, and kept
there. Every workload is then run in a process of its own: results are checked against float64 on a sample of rows,
and calls take turns, timed by the device's events (``gpu_rig.py``). What is known is written to ``--output`` at once,
so that a run that is cut off keeps what it has. ``benchmarks/gpu_all.py`` runs this and the tests of a device.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.gpu_cases import CASES, Case, chosen
from benchmarks.gpu_peers import peers
from benchmarks.gpu_report import table, write
from benchmarks.gpu_rig import Rig, rig
from ilang_eq import ILangError, optimize
from ilang_eq.cuda.build import compiled
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.extract.gpu_machine import chosen_gpu
from ilang_eq.extract.gpu_model import gpu_cost
from ilang_eq.lang.component import Component
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.work import work_of

RESULTS = Path(__file__).parent / "results"
SEARCH_S = 100.0
CASE_S = 90.0
REHEARSAL_S = 900.0
"""What anything may take where no device waits for it."""
TIMING_S = 3.0
PEER_S = 25.0
"""What a contender may take to compile and run for the first time."""
TOLERANCE = 2e-3
"""Of the largest value of the float64 result, in float32 with sums of up to 128 K terms."""

Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 1 if a result was wrong or a workload failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose names contain this")
    parser.add_argument("--schedules", type=Path, default=RESULTS / "gpu_schedules", help="a folder of 𝚒 text")
    parser.add_argument("--output", type=Path, default=RESULTS / "gpu.json", help="what was measured")
    parser.add_argument("--minutes", type=float, default=6.0, help="for everything")
    parser.add_argument("--search", type=float, default=SEARCH_S, metavar="S", help="seconds for a schedule")
    parser.add_argument("--dry-run", action="store_true", help="schedules and compilation only; needs no device")
    parser.add_argument("--rehearse", action="store_true", help="on the processor, at tiny sizes")
    parser.add_argument("--arch", type=int, default=90, help="the architecture to compile for in a dry run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    device = "cpu" if options.rehearse else "cuda"
    if options.one:
        (case,) = (case for case in CASES if case.name == options.one)
        return _one(case, options.schedules, rig(device, case.precision == "tf32"), options.output)
    cases = chosen(options.only)
    find_schedules(cases, options.schedules, options.search)
    if options.dry_run:
        compiles = [_dry(case, options.schedules, options.arch) for case in cases]
        return int(not all(compiles))
    return _all(cases, options.schedules, options.output, device, time.monotonic() + 60 * options.minutes)


def find_schedules(cases: Sequence[Case], folder: Path, seconds: float) -> None:
    """Search for the schedules that ``folder`` has not got, and put each there as it is found."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [case for case in cases if not (folder / f"{case.slug}.i").exists()]

    def search(case: Case) -> tuple[str, str]:
        component = read_component(case.text)
        try:
            granted = case.precision
            best = optimize(component, case.shapes, target="cuda", budget_s=seconds, database=False, precision=granted)
        except ILangError as error:
            return case.text, error.message
        return str(best), f"{best.report.seconds['total']:.0f} s, stopped: {best.report.stop_reason}"

    # each search is a process of its own, which a thread waits for
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        searches = {pool.submit(search, case): case for case in missing}
        for done in as_completed(searches):
            case, (text, how) = searches[done], done.result()
            write(folder / f"{case.slug}.i", f"{text.rstrip()}\n")
            print(f"{case.name}: {how}", flush=True)


def scheduled(case: Case, folder: Path) -> Component:
    """The component of ``case`` with its schedule."""
    return read_component((folder / f"{case.slug}.i").read_text(encoding="utf-8"))


def predicted(component: Component, case: Case) -> float:
    """Seconds that the model expects."""
    graph = wire(component)
    program = replace(lower(graph), precision=case.precision)
    return gpu_cost(program, infer(graph).bind(case.shapes), chosen_gpu()).seconds


def _dry(case: Case, folder: Path, arch: int) -> bool:
    """Print what there is to say of ``case`` without a device; whether its schedule compiles."""
    try:
        lines = dry(scheduled(case, folder), case, arch)
    except ILangError as error:
        print(f"{case.name}: {error}", flush=True)
        return False
    print("\n".join([case.name, *lines]), flush=True)
    return True


def dry(component: Component, case: Case, arch: int) -> list[str]:
    """What the model expects, and what the compiler says of every kernel."""
    kernel = CudaKernel(replace(lower(wire(component)), precision=case.precision))
    _, usage = compiled(kernel.source, arch)
    threads = {entry.name: entry.block.threads for entry in kernel.module.entries}
    lines = [f"  {component}", f"  the model expects {predicted(component, case) * 1e3:.3f} ms"]
    for name, used in usage.items():
        lines.append(f"  {name}: {threads[name]} threads, {used.registers} registers, {used.spilled} bytes spilled")
    return lines


def _all(cases: Sequence[Case], schedules: Path, output: Path, device: str, deadline: float) -> int:
    """Every case in a process of its own: what one breaks, the next does not see."""
    place = rig(device)
    report: Record = {"device": _named(place), "copy_gbs": place.copy_bandwidth(), "cases": []}
    print(f"{report['device']}: a copy moves {report['copy_gbs']:.0f} GB/s", flush=True)
    place.free()
    for n, case in enumerate(cases):
        part = output.with_suffix(f".{case.slug}.json")
        left = min(CASE_S, max(1.0, deadline - time.monotonic()) / (len(cases) - n) * 2)
        left = REHEARSAL_S if device == "cpu" else left
        command = [sys.executable, "-m", "benchmarks.gpu", "--one", case.name, "--output", str(part)]
        command += ["--schedules", str(schedules), *(["--rehearse"] if device == "cpu" else [])]
        fault = _run(command, left)
        record: Record = json.loads(part.read_text(encoding="utf-8")) if part.exists() else {"name": case.name}
        part.unlink(missing_ok=True)
        report["cases"].append(record | ({"fault": fault} if fault else {}))
        write(output, json.dumps(report, indent=1))
        print(table(report, [case]), flush=True)
    print("\n" + table(report, cases), flush=True)
    return int(any(record.get("fault") or not record.get("right", False) for record in report["cases"]))


def _run(command: Sequence[str], seconds: float) -> str:
    """What went wrong with a command; empty if nothing did."""
    folder = Path(__file__).parent.parent
    # compiled code of torch is kept beside ours, from one run to the next
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, timeout=seconds, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return f"cut off after {seconds:.0f} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else f"status {done.returncode}: {' | '.join(lines[-2:])}"


def _one(case: Case, schedules: Path, place: Rig, output: Path) -> int:
    """One case: its record is written as it grows."""
    component = scheduled(case, schedules)
    shapes = case.shapes if place.device == "cuda" else case.small
    graph = wire(component)
    work = work_of(wire(read_component(case.text)), infer(graph).bind(case.shapes))
    record: Record = {"name": case.name, "schedule": str(component), "predicted": predicted(component, case)}
    record |= {"bytes": work.bytes, "operations": work.operations, "errors": {}, "times": {}, "failed": {}}

    def known(**more: Any) -> None:
        record.update(more)
        write(output, json.dumps(record, indent=1))

    known()
    ours = component.compile("cuda", precision=case.precision) if place.device == "cuda" else component.compile()
    inputs = place.inputs(case, shapes)
    calls: dict[str, Callable[..., Any]] = {"ours": ours}
    calls |= dict(peers(place.torch, case, place.compile))
    errors, failed = checked(place, case, calls, inputs[0])
    known(errors=errors, failed=failed, right=errors.get("ours", float("inf")) < TOLERANCE)
    running = {name: call for name, call in calls.items() if name in errors}
    known(times=_summaries(place.times(running, inputs, TIMING_S)))
    return 0


def checked(
    place: Rig, case: Case, calls: Mapping[str, Callable[..., Any]], arrays: Sequence[Any]
) -> tuple[dict[str, float], dict[str, str]]:
    """How far each result is from float64 on a sample of rows, relative to the largest value; and who failed."""
    torch = place.torch
    count = min(case.sample, arrays[0].shape[0])
    rows = torch.linspace(0, arrays[0].shape[0] - 1, count, dtype=torch.float64, device=arrays[0].device).long()
    exact = [(a[rows] if sampled else a).double() for a, sampled in zip(arrays, case.rows, strict=True)]
    right = next(call for name, call in calls.items() if name == "torch")(*exact)
    del exact
    errors: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name, call in calls.items():
        try:
            with _limited(PEER_S if place.device == "cuda" else REHEARSAL_S):
                got = call(*arrays)[rows].double()
            error = float((got - right).abs().max() / right.abs().max())
            if error == error:
                errors[name] = error
            else:
                failed[name] = "not a number"
        except Exception as error:  # whatever a peer raises must not stop the others
            failed[name] = (str(error).splitlines() or [type(error).__name__])[0][:200]
        place.free()
    return errors, failed


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes longer: compilers may."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not ready after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _summaries(times: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    return {
        name: {"median": statistics.median(spent), "least": min(spent), "most": max(spent), "rounds": len(spent)}
        for name, spent in times.items()
    }


def _named(place: Rig) -> str:
    return place.torch.cuda.get_device_name() if place.device == "cuda" else "the processor, in rehearsal"


if __name__ == "__main__":
    sys.exit(main())
