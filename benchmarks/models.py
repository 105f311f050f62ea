"""Whole models, traced and run by our kernels, against PyTorch eager and torch.compile (inductor), on the CPU.

    python benchmarks/models.py [--threads N] [--rounds N] [--effort measure] [--caches FOLDER] [--json FILE] [name ...]

Every contestant has a process of its own, with the same weights and inputs; they are asked for a call in turn, in a new
order each round, after some that are not timed: by then threads of the one before have stopped waiting in a loop.
Outputs are compared with eager's, relative to the largest value. Before that, ours is optimised in a process that finds
no results and no kernels ("cold": search and compiler), then again in the one that is timed ("cached"). With a folder
of a former run in ``--caches`` nothing is cold, and the figures of that run are repeated.

A contestant that fails, dies or is not ready after ``--patience`` seconds is said to, and does not keep the others from
their turns. ``--json`` is written after each model.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.arena import environment
from benchmarks.worker import wake

CONTESTANTS = ("eager", "compile", "ours")
NAMES = ("gpt2", "bert", "llama", "vit", "mixer", "kernel regression")
WARM_CALLS = 3
COMMAND = (sys.executable, __file__)


def contest(name: str, contestant: str, threads: int, small: bool, effort: str) -> None:
    """One contestant on one model, in this process: a line about itself, then a time in ms for every line read."""
    import torch

    from benchmarks.model_zoo import FULL, SMALL, build

    torch.set_num_threads(threads)
    model, inputs = build(name, SMALL if small else FULL)
    with torch.no_grad():
        right = model(*inputs)
        run, found = prepared(model, inputs, contestant, threads, effort)
        started = time.perf_counter()
        result = run(*inputs)
        found["first_call_s"] = time.perf_counter() - started
        found["error"] = float((result - right).abs().max() / right.abs().max())
        for _ in range(WARM_CALLS):
            run(*inputs)
        print(json.dumps(found), flush=True)
        for _ in sys.stdin:
            wake(lambda: run(*inputs))
            started = time.perf_counter()
            run(*inputs)
            print(1e3 * (time.perf_counter() - started), flush=True)


def prepared(
    model: Any, inputs: Any, contestant: str, threads: int, effort: str
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What a contestant makes of a model before its first call, and what there is to say of it."""
    if contestant == "eager":
        return model, {}
    if contestant == "compile":
        import torch

        return torch.compile(model), {}
    from ilang_eq import trace

    started = time.perf_counter()
    traced = trace(model, inputs, threads=threads, effort=effort)
    exported = time.perf_counter()
    traced.optimize()
    found = {"export_s": exported - started, "optimise_s": time.perf_counter() - exported}
    found |= {"coverage": traced.coverage.fraction, "regions": len(traced.regions)}
    return traced, {**found, "problems": len(traced.problems)}


class Process:
    """A contestant's process, started and ready; ``found`` is what it says of itself, or why it failed."""

    def __init__(self, name: str, contestant: str, options: argparse.Namespace, caches: Mapping[str, str]) -> None:
        command = [*COMMAND, name, "--contestant", contestant, "--threads", str(options.threads)]
        # a file, because a pipe that nobody reads is full some day
        self._told = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [*command, "--effort", options.effort, *["--small"] * options.small],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._told,
            text=True,
            env={**environment(options.threads), **caches},
        )
        self._patience = options.patience
        line = self._line()
        self.found: dict[str, Any] = json.loads(line) if line else {"failed": self._stop()}

    def call(self) -> float | None:
        """Milliseconds of one call; None if it has failed, as ``found`` tells."""
        if "failed" in self.found:
            return None
        try:
            assert self._process.stdin is not None
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            return float(self._line())
        except (ValueError, BrokenPipeError):
            self.found = {"failed": self._stop()}
            return None

    def end(self) -> None:
        """Let it go."""
        if "failed" not in self.found:
            self._process.communicate()

    def _line(self) -> str:
        """What it says next; nothing if it dies, or takes too long and is killed."""
        assert self._process.stdout is not None
        late = threading.Timer(self._patience, self._process.kill)
        late.start()
        line = self._process.stdout.readline()
        late.cancel()
        return line

    def _stop(self) -> str:
        self._process.kill()
        self._process.wait()
        self._told.seek(0)
        told = self._told.read().strip().splitlines()
        return told[-1] if told else f"died, or took more than {self._patience:.0f} s"


def row(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All contestants on one model."""
    place = folder / f"{name.replace(' ', '_')}.t{options.threads}"
    caches = {"ILANG_EQ_DATABASE": f"{place}/results.db", "ILANG_EQ_CACHE": f"{place}/kernels"}
    caches |= {"TORCHINDUCTOR_CACHE_DIR": f"{place}/inductor"}
    cold = place / "cold.json"
    if not cold.exists():
        Path(caches["ILANG_EQ_CACHE"]).mkdir(parents=True, exist_ok=True)
        process = Process(name, "ours", options, caches)
        process.end()
        if "failed" in process.found:
            return {"model": name, "failed": process.found["failed"]}
        cold.write_text(json.dumps(process.found))
    found = {"model": name, "cold": json.loads(cold.read_text())}
    return found if options.cold else found | raced(name, options, caches)


def raced(name: str, options: argparse.Namespace, caches: Mapping[str, str]) -> dict[str, Any]:
    """The contestants' figures, timed in turn."""
    processes = {contestant: Process(name, contestant, options, caches) for contestant in CONTESTANTS}
    samples: dict[str, list[float]] = {contestant: [] for contestant in CONTESTANTS}
    order = random.Random(0)
    for _ in range(options.rounds):
        for contestant in order.sample(CONTESTANTS, len(CONTESTANTS)):
            ms = processes[contestant].call()
            samples[contestant] += [] if ms is None else [ms]
    for process in processes.values():
        process.end()
    return {
        c: p.found if "failed" in p.found else {**p.found, "ms": statistics.quantiles(samples[c], n=4)}
        for c, p in processes.items()
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """What was measured, a line a model, and the geometric mean."""
    titles = (
        "model",
        "eager ms",
        "torch.compile ms",
        "ours ms",
        "torch.compile ÷ ours",
        "error",
        "operations in kernels",
    )
    titles += ("export s", "optimise s: cold, cached", "torch.compile, first call s")
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    ratios: list[float] = []
    for found in rows:
        if "failed" in found or "ours" not in found:
            lines.append(f"| {found['model']} | {found.get('failed', 'not timed')} |")
            continue
        eager, inductor, ours = (found[c] for c in CONTESTANTS)
        failed = [f"{c}: {found[c]['failed']}" for c in CONTESTANTS if "failed" in found[c]]
        if failed:
            lines.append(f"| {found['model']} | {'; '.join(failed)} |")
            continue
        ratios.append(inductor["ms"][1] / ours["ms"][1])
        cells = [found["model"], *(_quartiles(c["ms"]) for c in (eager, inductor, ours)), f"{ratios[-1]:.2f}"]
        cells += [f"{ours['error']:.0e}", f"{ours['coverage']:.2%}", f"{ours['export_s']:.1f}"]
        cells += [f"{found['cold']['optimise_s']:.1f}, {ours['optimise_s']:.1f}", f"{inductor['first_call_s']:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        lines.append(f"\ntorch.compile's time ÷ ours, geometric mean: {mean:.2f}")
    return "\n".join(lines)


def _quartiles(ms: Sequence[float]) -> str:
    return f"{ms[1]:.1f} ({ms[0]:.1f} to {ms[2]:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=(*NAMES, []), metavar="name", help=", ".join(NAMES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--patience", type=float, default=300, help="seconds that a contestant may take to be ready")
    parser.add_argument("--small", action="store_true", help="two layers of width 32, to see that all works")
    parser.add_argument("--caches", type=Path, help="a folder for results and kernels, kept; else one that is not")
    parser.add_argument("--effort", default="model", help="of our search: model, or measure to time the best few")
    parser.add_argument("--cold", action="store_true", help="fill the caches, and time no calls")
    parser.add_argument("--json", type=Path, help="where to write every figure; rows of other models there are kept")
    parser.add_argument("--contestant", choices=CONTESTANTS, help="run this one alone, in this process")
    options = parser.parse_args()
    if options.contestant:
        contest(options.names[0], options.contestant, options.threads, options.small, options.effort)
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or NAMES:
            started = time.perf_counter()
            rows.append(row(name, options, options.caches or Path(folder)))
            print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
            if options.json:
                _merged(options.json, rows)
    print(table(_merged(options.json, rows) if options.json else rows))


def _merged(path: Path, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` and those of other models in the file, which has all of them afterwards."""
    known = json.loads(path.read_text()) if path.exists() else []
    found = {each["model"]: each for each in (*known, *rows)}
    merged = [found[name] for name in NAMES if name in found]
    path.write_text(json.dumps(merged, indent=1) + "\n")
    return merged


if __name__ == "__main__":
    main()
