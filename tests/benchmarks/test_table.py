from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import table


def found(workload: str, ours: float, peer: float, warm: bool = True) -> dict[str, Any]:
    times = {"ours cold": ours, "torch eager cold": peer} | ({"ours warm": ours / 2} if warm else {})
    return {
        "workload": workload,
        "target": 0.9,
        "limit_s": 0.0005,
        "ratios": {"cold": peer / ours} | ({"warm": 2 * peer / ours} if warm else {}),
        "seconds": {name: {"low": time, "median": time, "high": time} for name, time in times.items()},
    }


def written(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text(json.dumps({"rows": rows}))


def test_a_row_for_every_workload_and_the_mean_of_the_products(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    products = (found("w1-64x64x64", 0.002, 0.001), found("w1-200x200x200", 0.002, 0.004, warm=False))
    written(tmp_path / "cpu.t1.json", found("w2-softmax", 0.002, 0.003), *products)
    written(tmp_path / "cpu.t2.json", found("w2-softmax", 0.001, 0.0025))
    table.main([str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert "| softmax of rows, 4096² | 0.9 | 1 | 50 % | torch eager 3 | 1.50 | 3.00 | 2.50 | 5.00 |" in lines
    assert "| matrix product 200×200×200 | 0.9 | 2 | 25 % | torch eager 4 | 2.00 |  |  |  |" in lines
    assert lines[-1] == "| geometric mean | 0.9 | | | | 1.00 | 1.00 |  |  |"


def test_workloads_without_targets_are_listed_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "breadth.t1.json", found("b-gram", 0.002, 0.001), found("b-outer", 0.002, 0.004))
    table.main(["--breadth", str(tmp_path)])
    unseen, seen = capsys.readouterr().out.split("\n\n")[:2]
    assert "| outer product, 4096² | 0.9 |" in unseen
    assert unseen.endswith("| geometric mean | 1 | | | | 2.00 | 4.00 |  |  |")
    assert seen.strip().endswith("| geometric mean | 1 | | | | 0.50 | 1.00 |  |  |")
