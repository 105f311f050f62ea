from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import plot
from benchmarks.plot import plot as draw

ROWS = [
    {"workload": "a", "target": 1.0, "ratios": {"cold": 2.0, "warm": 3.0}},
    {"workload": "b", "target": 3.0, "ratios": {}},
]


def test_every_workload_is_in_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(ROWS, tmp_path / "ratios.svg")
    picture = (tmp_path / "ratios.svg").read_text()
    assert "<!-- a -->" in picture
    assert "<!-- b -->" in picture


def test_without_matplotlib_there_is_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plot.importlib.util, "find_spec", lambda name: None)
    draw(ROWS, tmp_path / "ratios.svg")
    assert not (tmp_path / "ratios.svg").exists()
    assert "matplotlib is not installed" in capsys.readouterr().out
