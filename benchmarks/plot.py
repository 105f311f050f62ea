"""A picture of the ratios: one bar a workload, cold and warm, with its target; needs matplotlib."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_COLOURS = {"cold": "#9ab8d8", "warm": "#2f5d8c"}
_BAR = 0.38


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw best peer ÷ ours of every row on a log scale; says so and draws nothing without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no plot: matplotlib is not installed")
        return
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(8, 1.5 + 0.3 * len(rows)), layout="constrained")
    for shift, (kind, colour) in zip((-_BAR / 2, _BAR / 2), _COLOURS.items(), strict=True):
        known = [(n + shift, row["ratios"][kind]) for n, row in enumerate(rows) if kind in row["ratios"]]
        axes.barh([place for place, _ in known], [ratio for _, ratio in known], _BAR, color=colour, label=kind)
    places = range(len(rows))
    axes.plot([row["target"] for row in rows], places, "|", color="#c03030", markersize=14, label="target")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("best peer's time ÷ ours")
    axes.set_yticks(places, [row["workload"] for row in rows])
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)
