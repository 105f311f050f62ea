"""What ``benchmarks.gpu`` says: a table of its records, and files that are never half written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu_cases import Case
from ilang_eq.text_table import text_table

_HEADER = ("workload", "ours ms", "model ms", "TFLOP/s", "GB/s", "error", "best peer", "ms", "reached", "target")


def table(report: Mapping[str, Any], cases: Sequence[Case]) -> str:
    """A line for each of ``cases`` that has a record, then who failed."""
    records = {record["name"]: record for record in report["cases"]}
    known = [(case, records[case.name]) for case in cases if case.name in records]
    lines = [text_table(_HEADER, [_row(case, record, report["copy_gbs"]) for case, record in known])]
    for case, record in known:
        lines += [f"{case.name}: {record['fault']}"] if record.get("fault") else []
        lines += [f"{case.name}: {name} failed: {why}" for name, why in record.get("failed", {}).items()]
    return "\n".join(lines)


def _row(case: Case, record: Mapping[str, Any], copy_gbs: float) -> tuple[str, ...]:
    times = {name: timing["median"] for name, timing in record.get("times", {}).items()}
    expected = f"{record['predicted'] * 1e3:.3f}" if "predicted" in record else ""
    target = f"{case.target:g} × {case.against}"
    if "ours" not in times:
        return (case.name, "", expected, "", "", _error(record), "", "", "", target)
    ours = times.pop("ours")
    peer = min(times, key=lambda name: times[name], default="")
    rates = f"{record['operations'] / ours * 1e-12:.1f}", f"{record['bytes'] / ours * 1e-9:.0f}"
    reached = reached_of(case, record, copy_gbs)
    return (
        case.name, f"{ours * 1e3:.3f}", expected, *rates, _error(record), peer,
        f"{times[peer] * 1e3:.3f}" if peer else "", "" if reached is None else f"{reached:.2f}", target,
    )  # fmt: skip


def reached_of(case: Case, record: Mapping[str, Any], copy_gbs: float) -> float | None:
    """What ``case.target`` is set for, as it was measured; None without the times that takes."""
    times = {name: timing["median"] for name, timing in record.get("times", {}).items()}
    ours = times.pop("ours", None)
    if ours is None:
        return None
    match case.against:
        case "copy":
            return record["bytes"] / ours * 1e-9 / copy_gbs
        case "torch":
            return times["torch"] / ours if "torch" in times else None
        case "best":
            return min(times.values()) / ours if times else None


def _error(record: Mapping[str, Any]) -> str:
    error = record.get("errors", {}).get("ours")
    return "" if error is None else f"{error:.0e}"


def write(path: Path, text: str) -> None:
    """Replace a file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)
