"""``calibrate`` and ``doctor``: what this machine is, and whether everything works on it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from ilang_eq.cli.checks import CHECKS
from ilang_eq.cli.command import Answer, Command
from ilang_eq.cli.finding import Finding
from ilang_eq.errors import OptionError
from ilang_eq.extract.machine import Machine


def _calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target", default="c", choices=("c", "cuda"), help="what to measure: the processor, or the GPU"
    )
    parser.add_argument("--output", type=Path, metavar="FILE.toml", help="where the description goes (default: yours)")


def _calibrate(options: argparse.Namespace) -> Answer:
    """Measure this machine, so that the cost model's figures are its own."""
    try:
        return _calibrated_gpu(options.output) if options.target == "cuda" else _calibrated(options.output)
    except OSError as error:
        raise OptionError(
            f"{options.output or 'the description'} cannot be written: {error.strerror}", expected="--output FILE.toml"
        ) from None


def _calibrated(output: Path | None) -> Answer:
    from ilang_eq.calibrate import calibrate
    from ilang_eq.extract.machine import user_file

    path = output or user_file()
    machine = calibrate(path)
    return Answer(
        "\n".join([*_described(machine), f"written to {path}"]), {"machine": asdict(machine), "file": str(path)}
    )


def _calibrated_gpu(output: Path | None) -> Answer:
    from ilang_eq.calibrate import calibrate_gpu
    from ilang_eq.extract.gpu_machine import user_gpu_file

    path = output or user_gpu_file()
    gpu = calibrate_gpu(path)
    teraflops = 2e-3 * gpu.fma * gpu.sms * gpu.clock_ghz
    lines = [
        f"{gpu.name}: {gpu.sms} multiprocessors at {gpu.clock_ghz} GHz, {teraflops:.1f} TFLOP/s, {gpu.special} special"
        " functions a cycle each",
        f"  shared memory: {gpu.shared_bytes / 1024:.0f} KB, {gpu.shared_bytes_per_clock} bytes a cycle each",
        f"  L2: {gpu.l2_bytes / 2**20:.0f} MB, {gpu.l2_gbs:.0f} GB/s, {gpu.l2_latency} cycles",
        f"  memory: {gpu.dram_gbs:.0f} GB/s copied, {gpu.dram_latency} cycles",
        f"  {gpu.launch_us} µs between launches",
        f"written to {path}",
    ]
    return Answer("\n".join(lines), {"gpu": asdict(gpu), "file": str(path)})


def _described(machine: Machine) -> list[str]:
    """A line for the processor, and one for each level of its memory."""
    peak = 2 * machine.vector.fma
    lines = [f"{machine.name}: {machine.cores} cores, {machine.vector_bits}-bit vectors, {peak:.0f} GFLOP/s a core"]
    for level in machine.levels:
        size = "" if level.bytes == float("inf") else f", {level.bytes / 1024:.0f} KB"
        rates = f"{level.bandwidth:.1f} GB/s to one thread, {level.bandwidth_all:.1f} to all, {level.latency:.1f} ns"
        lines.append(f"  {level.name}{size}: {rates}")
    return lines


def _no_arguments(_: argparse.ArgumentParser) -> None:
    pass


def _doctor(_: argparse.Namespace) -> Answer:
    """What there is, and how to mend what is wrong."""
    findings = [finding for check in CHECKS for finding in check()]
    broken = [finding for finding in findings if finding.state == "broken"]
    verdict = "everything needed works" if not broken else f"{len(broken)} things need mending"
    text = "\n".join([*map(_line, findings), "", verdict])
    return Answer(text, {"findings": [asdict(finding) for finding in findings]}, status=1 if broken else 0)


_MARKS = {"good": "ok  ", "absent": "-   ", "broken": "FAIL"}


def _line(finding: Finding) -> str:
    fix = f"\n       fix: {finding.fix}" if finding.fix else ""
    return f"{_MARKS[finding.state]}  {finding.subject}: {finding.detail}{fix}"


COMMANDS = (
    Command("calibrate", "measure this machine for the cost model", _calibrate_arguments, _calibrate),
    Command("doctor", "say what works here, and how to mend what does not", _no_arguments, _doctor),
)
