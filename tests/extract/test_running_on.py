"""What prefetchers bring of the rows that come next, while passes over those at hand compute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract.machine import load
from ilang_eq.lang.component import I, i
from tests.extract.costs import MACHINE, cost


@pytest.mark.parametrize(("rows", "runs_on"), [(16, True), (24, False), (96, False)])
def test_prefetchers_run_on_while_other_passes_compute(rows: int, runs_on: bool) -> None:
    """For 6 KB, 15 rows of 100 floats, and a bit more."""
    tile = f"i:{rows}"
    maxima = (I & i(f">ij~i|{tile}|")) >> i(f"ij-i~ij|{tile}|i1i'j") >> i(f"^ij~ij|{tile}|ii'j0")
    softmax = maxima >> (I & i(f"+ij~i|{tile}|i0i'j")) >> i(f"ij/i~ij|{tile}|i10i'j")
    here, elsewhere = (cost(softmax, (1 << 19, 100), machine=replace(MACHINE, runs_on=bytes_)) for bytes_ in (6e3, 0.0))
    assert (here.seconds < 0.95 * elsewhere.seconds) == runs_on


@pytest.mark.parametrize(("rows", "runs_on"), [(16, True), (96, False)])
def test_they_run_on_in_caches_that_cores_share(rows: int, runs_on: bool) -> None:
    """The variance of 4 MB in short rows, which the last cache holds."""
    tile, strip = f"i:{rows}", f"i:{rows},j:16"
    mean = i(f"+ij~i|{strip}|iji'j'") >> i(f"i/100~i|{tile}|i0i'")
    centred = (I & mean) >> i(f"ij-i~ij|{strip}|i1ji'j'") >> (I & I)
    squares = i(f"ij*ij~ij|{strip}|iji'j'01") >> i(f"+ij~i|{strip}|iji'j'0")
    variance = centred >> squares >> i(f"i/100~i|{tile}|i0i'")
    here, elsewhere = (
        cost(variance, (10_000, 100), machine=replace(load("x86_64_sapphire_rapids"), runs_on=bytes_))
        for bytes_ in (8192.0, 0.0)
    )
    assert (here.seconds < 0.95 * elsewhere.seconds) == runs_on


def test_what_is_written_is_not_on_its_way_before() -> None:
    """Tiles of a product whose second factor stays: rows of the first are all that is read in order."""
    machine = load("x86_64_sapphire_rapids")
    product = i("ik*kj~kij|i:12,j:32|ijki'j'") >> i("+kij~ij|i:12,j:32|ijki'j'0")
    here, elsewhere = (
        cost(product, (8192, 64), (64, 64), machine=replace(machine, runs_on=bytes_)) for bytes_ in (8192.0, 0.0)
    )
    assert here.seconds == pytest.approx(elsewhere.seconds, rel=0.01)


def test_prefetchers_do_not_run_on_from_parts_of_rows() -> None:
    sums = i("ik*kj~kij|i:8,j:48|ijki'j'") >> i("+kij~ij|i:8,j:48|ijki'j'0") >> i("ij+ij~ij|i:8,j:48|ij0i'j'")
    here, elsewhere = (
        cost(sums, (1 << 14, 64), (64, 4800), (1 << 14, 4800), machine=replace(MACHINE, runs_on=bytes_))
        for bytes_ in (6e3, 0.0)
    )
    assert here.seconds == elsewhere.seconds
