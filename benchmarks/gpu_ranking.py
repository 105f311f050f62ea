"""Does the cost model of GPUs rank schedules as a GPU does? What the search finds, timed at many tile sizes, judged.

    python -m benchmarks.gpu_ranking sample DIR [case ...]    search and sample; needs no device
    python -m benchmarks.gpu_ranking time DIR [case ...]      build and time what was sampled, on a device
    python -m benchmarks.gpu_ranking judge DIR [case ...]     by the timings; with the model as it is now

Files are those of ``benchmarks/ranking.py``, whose judgement is used. A schedule is timed by the device's events in a
process of its own workload; one that breaks the device is left without a time, and the process starts again behind it.
Every result is compared with PyTorch's in float64, on a sample of rows; wrong ones are printed and not timed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu import TOLERANCE, checked
from benchmarks.gpu_cases import CASES, Case
from benchmarks.gpu_peers import peers
from benchmarks.gpu_rig import rig
from benchmarks.judgement import best_of, noise, ranking
from benchmarks.ranking import Experiment, Timed
from benchmarks.sampling import Contender, stratified, varied
from ilang_eq import ILangError, optimize
from ilang_eq.cuda.build import build
from ilang_eq.cuda.device import architecture
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.errors import BuildError
from ilang_eq.extract.gpu_machine import chosen_gpu
from ilang_eq.extract.gpu_model import gpu_cost
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

TILES = (4, 8, 16, 32, 64, 128, 256)
SHAPES = {"cross-entropy 8192x4096x128K": ((8192, 4096), (16384, 4096))}
"""Of cases that take too long to be timed often."""
ROUNDS = 4
SIZE = 96


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("sample", "time", "judge", "one"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", help="slugs; all if none is named")
    parser.add_argument("--size", type=int, default=SIZE, help="how many schedules to sample")
    parser.add_argument("--seconds", type=float, default=45.0, help="for a case, to build and time")
    parser.add_argument("--detail", action="store_true", help="print every schedule")
    options = parser.parse_args(arguments)
    for case in CASES:
        path = options.folder / f"{case.slug}.json"
        if (options.cases and case.slug not in options.cases) or (options.step != "sample" and not path.exists()):
            continue
        match options.step:
            case "sample":
                sampled(case, options.size).save(path)
            case "time":
                _timed(path, case, options.seconds)
            case "one":
                _time_here(path, case, options.seconds)
            case _:
                _report(case, Experiment.read(path), options.detail)
    return 0


def shapes_of(case: Case) -> tuple[tuple[int, ...], ...]:
    """What schedules of ``case`` are timed at."""
    return SHAPES.get(case.name, case.shapes)


def predict(text: str, case: Case) -> float | None:
    """Seconds that the model expects; None if the schedule cannot be lowered."""
    try:
        graph = wire(read_component(text))
        program = replace(lower(graph, alternatives=False), precision=case.precision)
        seconds = gpu_cost(program, infer(graph).bind(shapes_of(case)), chosen_gpu()).seconds
    except ILangError:
        return None
    return seconds if seconds < float("inf") else None


def sampled(case: Case, size: int, seed: int = 0) -> Experiment:
    """Schedules of ``case`` to time: what the search judged, and the same in other tiles."""
    rng = np.random.default_rng(seed)
    shapes = shapes_of(case)
    component = read_component(case.text)
    best = optimize(component, shapes, target="cuda", database=False, precision=case.precision)
    pool: dict[str, Contender] = {}
    for schedule in best.schedules:
        if schedule is not best.baseline:
            for text in dict.fromkeys((str(schedule.component), *varied(schedule.component, shapes, rng, TILES))):
                if text not in pool and (seconds := predict(text, case)) is not None:
                    pool[text] = Contender(text, seconds)
    print(f"{case.name}: {len(best.schedules)} structures, {len(pool)} schedules", flush=True)
    found = stratified(pool.values(), size, rng)
    return Experiment(case.name, shapes, 1, tuple(Timed(c.text, c.predicted) for c in found))


def _kernel(text: str, case: Case) -> CudaKernel:
    return CudaKernel(replace(lower(wire(read_component(text))), precision=case.precision))


def _timed(path: Path, case: Case, seconds: float) -> None:
    """Time the schedules of ``path`` in processes that may die."""
    results = path.with_suffix(".lines")
    results.unlink(missing_ok=True)
    left = 3
    while left:
        command = [sys.executable, "-m", "benchmarks.gpu_ranking", "one", str(path.parent), case.slug]
        command += ["--seconds", str(seconds)]
        try:
            done = subprocess.run(command, timeout=2 * seconds, capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            print(f"{case.name}: cut off after {2 * seconds:.0f} s", flush=True)
            break
        print(done.stdout, end="", flush=True)
        if done.returncode == 0:
            break
        print(f"{case.name}: {' | '.join(done.stderr.splitlines()[-3:])}", flush=True)
        left -= 1
    found = _lines(results)
    experiment = Experiment.read(path)
    timed = tuple(replace(s, samples=tuple(found.get(s.text, ()))) for s in experiment.schedules)
    replace(experiment, schedules=timed).save(path)
    results.unlink(missing_ok=True)
    print(f"{case.name}: {sum(bool(s.samples) for s in timed)} of {len(timed)} timed", flush=True)


def _lines(path: Path) -> dict[str, list[float]]:
    """What was begun, by text; without times if it did not come to its end."""
    found: dict[str, list[float]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            text, times = json.loads(line)
            found[text] = times
    return found


def _time_here(path: Path, case: Case, seconds: float) -> None:
    """Time what has not been begun, as it is built; a line before each, and one after."""
    deadline = time.monotonic() + seconds
    experiment = Experiment.read(path)
    lines = path.with_suffix(".lines")
    begun = _lines(lines)
    place = rig("cuda", case.precision == "tf32")
    arch = architecture(0)
    pool = ThreadPoolExecutor(os.cpu_count())
    building = [pool.submit(_built, s.text, case, arch) for s in experiment.schedules if s.text not in begun]
    inputs = place.inputs(case, experiment.shapes)
    reference = dict(peers(place.torch, case, lambda call: call))["torch"]
    with contextlib.suppress(TimeoutError), lines.open("a", encoding="utf-8") as file:
        for future in as_completed(building, max(deadline - time.monotonic(), 0.0)):
            text, kernel = future.result()
            if kernel is not None:
                _write(file, text, [])
                errors, failed = checked(place, case, {"torch": reference, "ours": kernel}, inputs[0])
                place.torch.cuda.synchronize()
                if errors.get("ours", 1.0) > TOLERANCE:
                    print(f"{case.name}: WRONG {errors.get('ours')} {failed} {text}", flush=True)
                else:
                    _write(file, text, place.times({"ours": kernel}, inputs, 0.5, ROUNDS)["ours"])
    sys.stdout.flush()
    # what is still being compiled cannot be stopped
    os._exit(0)


def _write(file: Any, text: str, times: Sequence[float]) -> None:
    file.write(json.dumps([text, list(times)], ensure_ascii=False) + "\n")
    file.flush()


def _built(text: str, case: Case, arch: int) -> tuple[str, CudaKernel | None]:
    """A schedule, and its kernel with machine code in the cache; None if it cannot be built."""
    try:
        kernel = _kernel(text, case)
        build(kernel.source, arch)
    except (BuildError, ILangError) as error:
        print(f"{case.name}: {error.message.splitlines()[0]} {text}", flush=True)
        return text, None
    return text, kernel


def _report(case: Case, experiment: Experiment, detail: bool) -> None:
    schedules = [(s, predict(s.text, case)) for s in experiment.timed]
    known = [(s, p) for s, p in schedules if p is not None]
    if len(known) < 2:
        return
    measured = best_of(s.samples for s, _ in known)
    found, floor = ranking([p for _, p in known], measured), noise([s.samples for s, _ in known])
    print(
        f"{case.name:32s} {len(known):3d} top-1 {found.top1:6.1%} top-8 {found.top8:6.1%} tau {found.tau:5.2f} "
        f"pairs {found.pairs:6.1%} off by {found.error:4.2f}; noise: spread {floor.spread:.1%} tau {floor.tau:.2f}"
    )
    for found_s, (schedule, expected) in sorted(zip(measured.tolist(), known, strict=True), key=lambda row: row[0]):
        if detail:
            print(f"    {found_s * 1e3:9.3f} ms  predicted {expected * 1e3:9.3f}  {schedule.text}")


if __name__ == "__main__":
    sys.exit(main())
