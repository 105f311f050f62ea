"""Kernels found by the cost model alone against their peers, on the CPU.

    python -m benchmarks.cpu [--threads N] [--rounds N] [--calm SECONDS] [--only CONTESTANT ...] [workload ...]
    python -m benchmarks.cpu --breadth ...                  # breadth, unseen, newcomers, strangers, resized

Every contestant has a process of its own, with ``--threads`` threads on as many processors; they are asked in turn for
one timed call, in a new order each round, while the others sleep; it follows untimed ones, which wake its cores and
fill its caches. ``cold`` calls allocate what they return, ``warm`` ones write into memory used before. The ratio is the
best peer's time ÷ ours in the same round, kind by kind, and of that the median; a peer that cannot write into given
memory takes part in both. The limit is the machine's (``benchmarks.limits``), the error is against float64. On a
machine that others share, ``--calm`` has each call wait that long at most for a moment in which they leave it alone,
and repeats it if it ends in another (``benchmarks.calm``).

Writes ``cpu.tN.json``, or ``breadth.tN.json`` (rows of earlier runs stay), an SVG beside it, and each schedule found as
𝚒 text under ``schedules/``. With ``--schedules DIR`` nothing is searched and these are run, so that a slower search and
a slower compiler can be told apart. What is not installed is listed as missing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arena import Arena, Outcome, Quartiles, quartiles
from benchmarks.calm import Calm, product_seconds
from benchmarks.contest import CONTESTANTS, OURS
from benchmarks.limits import limit
from benchmarks.newcomers import BREADTH
from benchmarks.peers import numpy_ops
from benchmarks.plot import plot
from benchmarks.workloads import WORKLOADS, Workload, chosen
from ilang_eq.extract.machine import Machine, detect

Row = dict[str, Any]

HERE = Path(__file__).parent


def row(workload: Workload, outcome: Outcome, machine: Machine, threads: int, errors: dict[str, float]) -> Row:
    """One workload's results, as they go to the JSON file."""
    least, held_by = limit(workload, [outcome.shape], machine, threads)
    ratios = {kind: ratio for kind in ("cold", "warm") if (ratio := _ratio(outcome, kind)) is not None}
    return {
        "workload": workload.name,
        "shapes": workload.shapes,
        "threads": threads,
        "target": workload.targets[min(threads, 2) - 1],
        "ratios": {kind: ratio.median for kind, ratio in ratios.items()},
        "ratio_quartiles": {kind: (ratio.low, ratio.high) for kind, ratio in ratios.items()},
        "limit_s": least,
        "limit": held_by,
        "errors": errors,
        "predicted_s": outcome.predicted,
        "schedule": outcome.schedule,
        "calm": outcome.calm,
        "missing": outcome.missing,
        "seconds": {name: asdict(quartiles) for name, quartiles in outcome.seconds.items()},
    }


def _ratio(outcome: Outcome, kind: str) -> Quartiles | None:
    """The best peer's time over ours, round by round; a peer's cold calls also compete with our warm ones.

    The machine may be slow for minutes: what was asked for in the same round has seen the same.
    """
    ours = outcome.rounds.get(f"{OURS.name} {kind}")
    kinds = ("cold",) if kind == "cold" else ("cold", "warm")
    peers = [times for name, times in outcome.rounds.items() if not name.startswith(OURS.name) and name.endswith(kinds)]
    if ours is None or not peers:
        return None
    return min(
        (quartiles([p / o for p, o in zip(times, ours, strict=False)]) for times in peers), key=lambda q: q.median
    )


def show(found: Row) -> None:
    """Print one row."""
    spread = found["ratio_quartiles"]
    ratios = ", ".join(f"{k} {r:.2f} [{spread[k][0]:.2f}, {spread[k][1]:.2f}]" for k, r in found["ratios"].items())
    print(f"\n{found['workload']}, {found['threads']} threads: ratio {ratios or 'unknown'}; target {found['target']}")
    if found["calm"] is not None:
        print(f"  {found['calm']:.0%} of the calls were calm")
    print(f"  {'limit: ' + found['limit']:26s} {found['limit_s'] * 1e3:10.3f} ms")
    for name, q in sorted(found["seconds"].items(), key=lambda item: item[1]["median"]):
        error = found["errors"].get(name.rsplit(" ", 1)[0], float("nan"))
        print(
            f"  {name:26s} {q['median'] * 1e3:10.3f} ms  [{q['low'] * 1e3:.3f}, {q['high'] * 1e3:.3f}]  "
            f"{found['limit_s'] / q['median']:5.0%} of the limit, error {error:.0e}"
        )
    for name, reason in found["missing"].items():
        print(f"  {name:26s} missing: {reason}")
    print(f"  {found['schedule']}", flush=True)


def reference(workload: Workload, seed: int) -> np.ndarray:
    """The result in float64."""
    arrays = workload.arrays(seed=seed)
    return workload.formula(numpy_ops, *(array.astype(np.float64) for array in arrays))


def _errors(results: dict[str, np.ndarray], right: np.ndarray) -> dict[str, float]:
    """The largest difference from ``right``, relative to its largest value."""
    scale = float(np.abs(right).max())
    return {name: float(np.abs(result - right).max()) / scale for name, result in results.items()}


def _written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


def _saved(path: Path, rows: Sequence[Row], about: dict[str, Any]) -> list[Row]:
    """Put ``rows`` in the file in place of older ones of the same workloads; returns all that it has then."""
    older = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    new = {r["workload"]: r for r in rows}
    merged = [new.pop(r["workload"], r) for r in older] + list(new.values())
    _written(path, json.dumps({**about, "rows": merged}, indent=1, ensure_ascii=False) + "\n")
    return merged


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Of those that are installed for this interpreter, and of Python."""
    found = {"python": platform.python_version()}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def _schedule(directory: Path | None, workload: Workload, threads: int) -> str | None:
    """The schedule found earlier; None where there is no ``directory``."""
    if directory is None:
        return None
    path = directory / f"{workload.name}.t{threads}.i"
    if not path.exists():
        raise SystemExit(f"no schedule {path}; run without --schedules to search for one")
    return path.read_text(encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="prefixes of workload names")
    parser.add_argument(
        "--breadth", action="store_true", help="what breadth.py, unseen.py, newcomers.py and resized.py have"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--calm", type=float, metavar="SECONDS", help="wait so long at most for calm moments")
    parser.add_argument("--only", nargs="+", metavar="CONTESTANT", choices=[c.name for c in CONTESTANTS])
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the peers")
    parser.add_argument("--schedules", type=Path, metavar="DIR", help="run these schedules instead of searching")
    parser.add_argument("--machine", help="a machine description; this machine's if none is given")
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR", help="where results are written")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.machine is not None:
        # contestants' processes read it too, so that ours are chosen for that machine
        os.environ["ILANG_EQ_MACHINE"] = options.machine
    machine = detect()
    entered = [c for c in CONTESTANTS if options.only is None or c.name in options.only]
    about = {"machine": machine.name, "system": platform.platform(), "versions": versions([c.library for c in entered])}
    path = options.out / f"{'breadth' if options.breadth else 'cpu'}.t{options.threads}.json"
    rows: list[Row] = []
    calm = None if options.calm is None else Calm(options.calm, partial(product_seconds, options.threads))
    with Arena(entered, options.threads, options.python, calm) as arena:
        for workload in chosen(options.names, BREADTH if options.breadth else WORKLOADS):
            known = _schedule(options.schedules, workload, options.threads)
            outcome = arena.run(workload, options.rounds, options.seed, known)
            errors = _errors(outcome.results, reference(workload, options.seed))
            found = row(workload, outcome, machine, options.threads, errors)
            show(found)
            rows = _saved(path, [found], about)
            if known is None and outcome.schedule is not None:
                _written(options.out / "schedules" / f"{workload.name}.t{options.threads}.i", outcome.schedule + "\n")
    plot(rows, path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
