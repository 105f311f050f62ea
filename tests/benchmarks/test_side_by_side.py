"""The table of rows side by side."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from benchmarks.side_by_side import LENGTHS, measured, table, ways
from ilang_eq.extract.machine import load
from ilang_eq.lang.reading import read_component

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
MACHINE = load("x86_64_zen5")


def test_all_ways_sum_the_same_matrix() -> None:
    x = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    for way in ways():
        found = read_component(way.text()).interpret(x)
        assert np.array_equal(found, x.sum(axis=1 if way.axis == "i" else 0))


def test_a_table_has_what_each_length_allows() -> None:
    found = measured(128, 1 << 12, 1, MACHINE)
    assert "one row" in found
    assert "all × 64" in found
    assert "24 × 128, a loop" not in found, "parts as long as rows are rows"
    assert all(ns > 0.0 and expected > 0.0 for ns, expected in found.values())


def test_every_way_is_a_line_of_the_table() -> None:
    lines = table(1, 1, MACHINE).splitlines()
    assert len(lines) == 2 + len(list(ways()))
    assert {line.count("|") for line in lines} == {len(LENGTHS) + 2}
