"""Whole models, traced and run by our kernels, against PyTorch eager and torch.compile (inductor), on the CPU.

    python benchmarks/models.py [--threads N] [--rounds N] [--cpu-time] [--small] [--json FILE] [name ...]

Every contestant runs in a process of its own, with the same weights; ours twice: with an empty database and an empty
cache of kernels ("cold"), then again with what that left ("cached"). Times of a call are medians with quartiles;
"ready" is the time from the model to the end of its first call. Errors are relative to the largest value of eager's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

CONTESTANTS = ("eager", "compile", "ours")
NAMES = ("gpt2", "bert", "llama", "vit", "mixer", "kernel regression")
WARM_CALLS = 3


def contest(name: str, contestant: str, options: argparse.Namespace) -> dict[str, Any]:
    """One contestant on one model, in this process."""
    import torch

    from benchmarks.model_zoo import FULL, SMALL, build

    threads = options.threads
    clock = time.process_time if options.cpu_time else time.perf_counter
    torch.set_num_threads(threads)
    model, inputs = build(name, SMALL if options.small else FULL)
    found: dict[str, Any] = {}
    with torch.no_grad():
        right = model(*inputs)
        started = time.perf_counter()
        run: Callable[..., Any] = model
        if contestant == "compile":
            run = torch.compile(model)
        elif contestant == "ours":
            from ilang_eq import trace

            run = traced = trace(model, inputs, threads=threads)
            found["trace_s"] = time.perf_counter() - started
            traced.optimize()
            found["optimise_s"] = time.perf_counter() - started - found["trace_s"]
            found |= {"coverage": traced.coverage.fraction, "regions": len(traced.regions)}
            found["problems"] = len(traced.problems)
        result = run(*inputs)
        found["ready_s"] = time.perf_counter() - started
        found["error"] = float((result - right).abs().max() / right.abs().max())
        for _ in range(WARM_CALLS):
            run(*inputs)
        spent = []
        for _ in range(options.rounds):
            started = clock()
            run(*inputs)
            spent.append(1e3 * (clock() - started))
    found["ms"] = statistics.quantiles(spent, n=4)
    return found


def apart(name: str, contestant: str, options: argparse.Namespace, environment: dict[str, str]) -> dict[str, Any]:
    """``contest`` in a process of its own."""
    command = [sys.executable, __file__, name, "--contestant", contestant]
    command += ["--threads", str(options.threads), "--rounds", str(options.rounds), *["--small"] * options.small]
    command += ["--cpu-time"] * options.cpu_time
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["died"]
        return {"failed": last[0]}
    return json.loads(done.stdout.splitlines()[-1])


def row(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """All contestants on one model."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = {
            "ILANG_EQ_DATABASE": f"{folder}/results.db",
            "ILANG_EQ_CACHE": f"{folder}/kernels",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        }
        Path(fresh["ILANG_EQ_CACHE"]).mkdir()
        found = {contestant: apart(name, contestant, options, fresh) for contestant in CONTESTANTS}
        found["cached"] = apart(name, "ours", options, fresh)
    return {"model": name, **found}


def table(rows: Sequence[dict[str, Any]]) -> str:
    titles = "model", "eager ms", "compile ms", "ours ms", "ours ÷ compile", "error", "coverage"
    titles += "ready cold, cached s", "compile ready s"
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    ratios = []
    for found in rows:
        eager, inductor, cold, ours = (found[c] for c in (*CONTESTANTS, "cached"))
        failed = [str(found[c]["failed"]) for c in found if c != "model" and "failed" in found[c]]
        if failed:
            lines.append(f"| {found['model']} | failed: {failed[0]} |")
            continue
        ratios.append(inductor["ms"][1] / ours["ms"][1])
        cells = [found["model"], *(_quartiles(c["ms"]) for c in (eager, inductor, ours)), f"{1 / ratios[-1]:.2f}"]
        cells += [f"{ours['error']:.0e}", f"{ours['coverage']:.2%}", f"{cold['ready_s']:.1f}, {ours['ready_s']:.1f}"]
        lines.append("| " + " | ".join([*cells, f"{inductor['ready_s']:.1f}"]) + " |")
    if ratios:
        lines.append(
            f"\ntorch.compile's time ÷ ours, geometric mean: {math.exp(statistics.fmean(map(math.log, ratios))):.2f}"
        )
    return "\n".join(lines)


def _quartiles(ms: Sequence[float]) -> str:
    return f"{ms[1]:.1f} ({ms[0]:.1f} to {ms[2]:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpu-time", action="store_true", help="processor time of calls: where others use the machine")
    parser.add_argument("--small", action="store_true", help="two layers of width 32, to see that all works")
    parser.add_argument("--json", type=Path, help="where to write every figure")
    parser.add_argument("--contestant", choices=CONTESTANTS, help="run this one alone, in this process")
    options = parser.parse_args()
    if options.contestant:
        print(json.dumps(contest(options.names[0], options.contestant, options)))
        return
    rows = [row(name, options) for name in options.names or NAMES]
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
