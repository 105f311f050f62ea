"""Register tiles: as few loads for each multiplication as the registers allow."""

from __future__ import annotations

import pytest

from ilang_eq.extract.micro_kernel import BROADCASTS, micro_kernel


@pytest.mark.parametrize(("lanes", "registers", "tile"), [(8, 16, (6, 16)), (16, 32, (6, 64)), (4, 32, (6, 16))])
def test_the_tile_that_registers_hold_with_the_row_it_waits_for(
    lanes: int, registers: int, tile: tuple[int, int]
) -> None:
    found = micro_kernel(48, 192, lanes, registers)
    assert found == tile
    rows, vectors = found[0], found[1] // lanes
    assert rows * vectors + vectors + BROADCASTS <= registers


def test_what_fits_is_not_cut() -> None:
    assert micro_kernel(6, 16, 8, 16) is None
    assert micro_kernel(3, 32, 8, 16) is not None
