"""Whole models, traced and run by our kernels, against PyTorch eager and torch.compile (inductor), on the CPU.

    python benchmarks/models.py [--threads N] [--rounds N] [--small] [--caches FOLDER] [--json FILE] [name ...]

Every contestant has a process of its own, with the same weights and inputs; they are asked for a call in turn, in a new
order each round, and outputs are compared with eager's, relative to the largest value. Before that, ours is optimised
in a process that finds no results and no kernels ("cold": search and compiler), then again in the one that is timed
("cached"). With a folder of a former run in ``--caches`` nothing is cold, and the figures of that run are repeated.
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
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.arena import environment

CONTESTANTS = ("eager", "compile", "ours")
NAMES = ("gpt2", "bert", "llama", "vit", "mixer", "kernel regression")
WARM_CALLS = 3


def contest(name: str, contestant: str, threads: int, small: bool) -> None:
    """One contestant on one model, in this process: a line about itself, then a time in ms for every line read."""
    import torch

    from benchmarks.model_zoo import FULL, SMALL, build

    torch.set_num_threads(threads)
    model, inputs = build(name, SMALL if small else FULL)
    with torch.no_grad():
        right = model(*inputs)
        run, found = prepared(model, inputs, contestant, threads)
        started = time.perf_counter()
        result = run(*inputs)
        found["first_call_s"] = time.perf_counter() - started
        found["error"] = float((result - right).abs().max() / right.abs().max())
        for _ in range(WARM_CALLS):
            run(*inputs)
        print(json.dumps(found), flush=True)
        for _ in sys.stdin:
            started = time.perf_counter()
            run(*inputs)
            print(1e3 * (time.perf_counter() - started), flush=True)


def prepared(model: Any, inputs: Any, contestant: str, threads: int) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What a contestant makes of a model before its first call, and what there is to say of it."""
    if contestant == "eager":
        return model, {}
    if contestant == "compile":
        import torch

        return torch.compile(model), {}
    from ilang_eq import trace

    started = time.perf_counter()
    traced = trace(model, inputs, threads=threads)
    exported = time.perf_counter()
    traced.optimize()
    found = {"export_s": exported - started, "optimise_s": time.perf_counter() - exported}
    found |= {"coverage": traced.coverage.fraction, "regions": len(traced.regions)}
    return traced, {**found, "problems": len(traced.problems)}


class Process:
    """A contestant's process, started and ready; ``found`` is what it says of itself, or why it failed."""

    def __init__(self, name: str, contestant: str, options: argparse.Namespace, caches: Mapping[str, str]) -> None:
        command = [sys.executable, __file__, name, "--contestant", contestant, "--threads", str(options.threads)]
        self._process = subprocess.Popen(
            [*command, *["--small"] * options.small],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(options.threads), **caches},
        )
        line = self._line()
        self.found: dict[str, Any] = json.loads(line) if line else {"failed": self._stop()}

    def call(self) -> float:
        """Milliseconds of one call."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def end(self) -> None:
        """Let it go."""
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _stop(self) -> str:
        told = self._process.communicate()[1].strip().splitlines()
        return told[-1] if told else "died"


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
    failed = [process.found["failed"] for process in processes.values() if "failed" in process.found]
    samples: dict[str, list[float]] = {contestant: [] for contestant in CONTESTANTS}
    order = random.Random(0)
    for _ in range(0 if failed else options.rounds):
        for contestant in order.sample(CONTESTANTS, len(CONTESTANTS)):
            samples[contestant].append(processes[contestant].call())
    for process in processes.values():
        process.end()
    if failed:
        return {"failed": failed[0]}
    return {c: {**processes[c].found, "ms": statistics.quantiles(samples[c], n=4)} for c in CONTESTANTS}


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
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true", help="two layers of width 32, to see that all works")
    parser.add_argument("--caches", type=Path, help="a folder for results and kernels, kept; else one that is not")
    parser.add_argument("--cold", action="store_true", help="fill the caches, and time no calls")
    parser.add_argument("--json", type=Path, help="where to write every figure; rows of other models there are kept")
    parser.add_argument("--contestant", choices=CONTESTANTS, help="run this one alone, in this process")
    options = parser.parse_args()
    if options.contestant:
        contest(options.names[0], options.contestant, options.threads, options.small)
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(name, options, options.caches or Path(folder)) for name in options.names or NAMES]
    if options.json:
        rows = _merged(options.json, rows)
    print(table(rows))


def _merged(path: Path, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` and those of other models in the file, which has all of them afterwards."""
    known = json.loads(path.read_text()) if path.exists() else []
    found = {each["model"]: each for each in (*known, *rows)}
    merged = [found[name] for name in NAMES if name in found]
    path.write_text(json.dumps(merged, indent=1) + "\n")
    return merged


if __name__ == "__main__":
    main()
