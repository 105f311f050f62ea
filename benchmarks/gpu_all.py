"""Everything that a machine with a GPU is for, in one run: diagnosis, tests on the device, sanitizers, figures.

    python -m benchmarks.gpu_all                    # under 8 minutes, with a device
    python -m benchmarks.gpu_all --rehearse         # without one: the same commands, as far as they go

Each step is a process with a limit of its own, so that none takes the others' time or brings them down. Results are
written as they come, under ``--folder``: ``gpu_all.json`` says how each step went, ``NAME.log`` what it printed,
``gpu.toml`` describes the device for the cost model, and ``gpu.json`` has the figures. Needs NVRTC, CuPy and pytest;
torch for the figures; ``compute-sanitizer`` where it is installed. Schedules are searched for first, unless
``--schedules`` has them: that needs no device.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.gpu_report import write

ROOT = Path(__file__).parent.parent
MINUTES = 7.5
_TESTS = "tests/cuda/test_device.py"


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and how many seconds it may take; ``rehearsal`` is what runs instead where there is no device."""

    name: str
    command: tuple[str, ...]
    seconds: float
    rehearsal: tuple[str, ...] | None = None
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step went: "good", "failed", "cut off" or "left out"; and the end of what it printed."""

    name: str
    state: str
    seconds: float
    said: tuple[str, ...]


def steps(schedules: Path, folder: Path, python: str = sys.executable) -> tuple[Step, ...]:
    """What there is to do, in order; the figures get what is left of the time."""
    module, pytest = (python, "-m"), (python, "-m", "pytest", "-q", "-rs")
    gpu = (*module, "benchmarks.gpu", "--schedules", str(schedules))
    device = (*pytest, "-m", "gpu", _TESTS)
    found = [
        Step("doctor", (*module, "ilang_eq", "doctor"), 60),
        Step("schedules", (*gpu, "--dry-run"), 120),
        Step("tests", device, 100, (*pytest, "-m", "not gpu", _TESTS)),
    ]
    sanitizer = shutil.which("compute-sanitizer")
    few = ("-k", "components or memory or special or tiles")
    for tool in ("memcheck", "racecheck") if sanitizer else ():
        checked = (sanitizer or "", "--tool", tool, "--error-exitcode", "9", "--target-processes", "all")
        found.append(Step(tool, (*checked, *device, *few), 60, (), (("ILANG_EQ_GPU_SEEDS", "10"),)))
    measured = ("calibrate", "--target", "cuda", "--output", str(folder / "gpu.toml"))
    found.append(Step("calibrate", (*module, "ilang_eq", *measured), 40, ()))
    found.append(Step("overhead", (*module, "benchmarks.gpu_overhead"), 40, ()))
    output = ("--output", str(folder / "gpu.json"))
    found.append(Step("figures", (*gpu, *output), 400, (*gpu, *output, "--rehearse", "--only", "softmax")))
    return tuple(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 1 if a step failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "benchmarks" / "results" / "gpu")
    parser.add_argument("--schedules", type=Path, default=ROOT / "benchmarks" / "results" / "gpu_schedules")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--only", nargs="+", metavar="STEP", help="these steps alone")
    parser.add_argument("--rehearse", action="store_true", help="without a device")
    options = parser.parse_args(arguments)
    chosen = [s for s in steps(options.schedules, options.folder) if not options.only or s.name in options.only]
    return run(chosen, options.folder, 60 * options.minutes, options.rehearse)


def run(chosen: Sequence[Step], folder: Path, seconds: float, rehearse: bool) -> int:
    """Every step until ``seconds`` are spent, with a report after each."""
    deadline = time.monotonic() + seconds
    outcomes: list[Outcome] = []
    for step in chosen:
        outcome = _outcome(step, folder, deadline - time.monotonic(), rehearse)
        outcomes.append(outcome)
        write(folder / "gpu_all.json", json.dumps([asdict(one) for one in outcomes], indent=1))
        print(f"{outcome.name}: {outcome.state}, {outcome.seconds:.1f} s", flush=True)
        print("\n".join(f"  {line}" for line in outcome.said), flush=True)
    return int(any(one.state in ("failed", "cut off") for one in outcomes))


def _outcome(step: Step, folder: Path, left: float, rehearse: bool) -> Outcome:
    command = step.command if not rehearse or step.rehearsal is None else step.rehearsal
    if not command or left < 1:
        return Outcome(step.name, "left out", 0.0, () if command else ("it needs a device",))
    if step.name == "figures":
        command = (*command, "--minutes", f"{min(step.seconds, left) / 60 - 0.1:.2f}")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{step.name}.log"
    environment = os.environ | dict(step.environment) | {"PYTHONUNBUFFERED": "1"}
    started = time.monotonic()
    with open(log, "w", encoding="utf-8") as file:
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT,
                timeout=min(step.seconds, left), check=False,
            )  # fmt: skip
            state = "good" if done.returncode == 0 else "failed"
        except subprocess.TimeoutExpired:
            state = "cut off"
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return Outcome(step.name, state, time.monotonic() - started, tuple(said[-40:]))


if __name__ == "__main__":
    sys.exit(main())
