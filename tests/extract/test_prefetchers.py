"""Which rows come unforeseen, by where they lie and by what loads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract.footprint import PAGE
from ilang_eq.extract.machine import load
from ilang_eq.extract.prefetchers import (
    FOLLOWED,
    LOSES,
    NEAR,
    SEVERAL,
    SEVERAL_FAR,
    ByInstruction,
    ByPlace,
    Code,
    Rows,
    prefetchers_of,
)

STREAMS = 16
PAGE_STREAMS = 4


def rows(number: float, stride: int, stretch: float, near: float = 1.0, code: Code = "unrolled") -> Rows:
    return Rows(number, near, stride, stretch, code, anew=True, in_turns=False)


def test_machines_say_what_prefetchers_go_by() -> None:
    assert prefetchers_of(load("x86_64_zen4")) == ByPlace(12, 4, 448.0)
    assert prefetchers_of(load("x86_64_zen5")) == ByInstruction(8)


def test_prefetchers_follow_short_strides() -> None:
    """Of far too many rows, 512 bytes of each in turn: half of the start of each is missed, or all of it."""
    prefetchers = ByPlace(STREAMS, 1 << 20, 0.0)
    near, far = (prefetchers.missed(rows(1e6, stride, 512.0)) for stride in (FOLLOWED // 2, 2 * FOLLOWED))
    assert (near, far) == (0.125, 0.25)


def test_rows_beyond_those_that_prefetchers_follow_are_lost_one_by_one() -> None:
    prefetchers = ByPlace(STREAMS, PAGE_STREAMS, 0.0)
    shares = [prefetchers.missed(rows(n, 8192, 64.0)) for n in (STREAMS, STREAMS + LOSES / 2, STREAMS + LOSES)]
    assert shares == [0.0, 0.5, 1.0]
    within = [prefetchers.missed(rows(8.0, stride, 64.0, near=8.0)) for stride in (NEAR // 4, NEAR, 2 * NEAR)]
    assert within == [0.2, 0.2, 0.1], "rows of a page, less the longer they are"


def test_rows_of_a_page_side_by_side_begin_anew_out_of_memory() -> None:
    prefetchers = ByPlace(STREAMS, PAGE_STREAMS, 448.0)
    assert prefetchers.restarted(rows(1.0, 1024, 64.0)) == 0.0, "one by itself goes on into the next"
    shares = [prefetchers.restarted(rows(4.0, stride, 64.0, near=4.0)) for stride in (256, 1024, 2048)]
    assert shares[1] == pytest.approx(448 / 1024 * (1 - 1 / 16))
    assert shares[0] < 0.1 * shares[1]
    assert shares[2] < 0.5 * shares[1]


def test_instructions_of_their_own_keep_rows() -> None:
    """Of 24 rows a page apart, 64 bytes of each in turn, by the code that goes from one to the next."""
    prefetchers = ByInstruction(8)
    unrolled, tile, loop = (prefetchers.missed(rows(24.0, PAGE, 64.0, code=c)) for c in ("unrolled", "tile", "loop"))
    assert unrolled < 0.25
    assert tile == loop == 1.0
    assert prefetchers.missed(rows(8.0, PAGE, 64.0, code="tile")) == 0.0


@pytest.mark.parametrize("code", ["unrolled", "tile", "loop"])
def test_short_strides_and_long_parts_lose_less(code: Code) -> None:
    prefetchers = ByInstruction(8)
    near, far, long = (
        prefetchers.missed(rows(60.0, *which, code=code)) for which in ((256, 64.0), (PAGE, 64.0), (PAGE, 1024.0))
    )
    assert 0.0 < near < 0.3 * far
    assert 0.0 < long < 0.2 * far


def test_a_loop_that_comes_back_to_rows_loses_no_more() -> None:
    assert ByInstruction(8).missed(rows(60.0, PAGE, 64.0)._replace(anew=False)) == 0.0


def test_several_rows_never_come_as_quickly_as_one() -> None:
    prefetchers = ByInstruction(8)
    assert prefetchers.restarted(rows(1.0, 1024, 64.0)) == 0.0
    shares = [prefetchers.restarted(rows(2.0, stride, 64.0)) for stride in (256, 512, 2048, PAGE)]
    assert shares == [SEVERAL / 2, SEVERAL, SEVERAL, SEVERAL_FAR]


def test_a_description_goes_by_place_unless_it_says_otherwise() -> None:
    machine = replace(load("x86_64_zen5"), by_instruction=False, page_streams=3, restarts=5.0)
    assert prefetchers_of(machine) == ByPlace(8, 3, 5.0)
