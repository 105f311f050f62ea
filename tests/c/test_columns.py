"""Register tiles whose lanes run across the rows of their target."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq import Component, i
from ilang_eq.extract import tally
from tests.c.guarded import run_guarded
from tests.extract.costs import seconds

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def transposed(lanes: int, columns: int) -> Component:
    """A product in tiles of ``columns`` rows of lanes, which run across the rows of the output."""
    return (
        i(f"+ik~ki|i:{lanes}|iki'")
        >> ~i(f"jk*ki~kji|i:{lanes},j:{columns}|i1jkj'i'")
        >> i(f"+kji~ij|i:{lanes},j:{columns}|ijkj'i'0")
    )


@pytest.mark.parametrize(
    ("rows", "width", "columns"), [(64, 40, 12), (64, 40, 13), (45, 7, 12), (45, 7, 13), (1, 1, 1)]
)
@pytest.mark.parametrize(("lanes", "tile"), [(32, 6), (16, 7), (8, 5), (4, 3), (32, 2), (16, 4)])
def test_tiles_are_stored_in_columns(lanes: int, tile: int, rows: int, width: int, columns: int) -> None:
    kernel = transposed(lanes, tile).compile(threads=1)
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((n, width), dtype=np.float32) for n in (rows, columns))
    out = run_guarded(kernel, (rows, columns), x, w)
    np.testing.assert_allclose(out, x @ w.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("tile", "together"), [(1, [1]), (2, [2]), (3, [2, 1]), (4, [4]), (6, [4, 2]), (7, [4, 2, 1]), (8, [4])]
)
def test_four_columns_go_at_a_time(tile: int, together: list[int]) -> None:
    source = transposed(16, tile).compile(threads=1).source
    sizes = {"four": 4, "two": 2, None: 1}
    calls = re.findall(r"^ +scatter(?:_(four|two))?16\(", source, re.MULTILINE)
    assert list(dict.fromkeys(sizes[name or None] for name in calls)) == together
    # what may be short goes lane by lane
    assert "scatter_left16(" in source


def test_columns_together_cost_less(monkeypatch: pytest.MonkeyPatch) -> None:
    together = seconds(transposed(16, 6), (1024, 1024), (1024, 1024))
    monkeypatch.setattr(tally, "COLUMN_SLOTS", tally.GATHER_SLOTS)
    assert seconds(transposed(16, 6), (1024, 1024), (1024, 1024)) > together
    alone = seconds(transposed(16, 1), (1024, 1024), (1024, 1024))
    monkeypatch.setattr(tally, "COLUMN_SLOTS", 0.0)
    assert seconds(transposed(16, 1), (1024, 1024), (1024, 1024)) == alone
