"""Rows read in turn, and arrays beside each other, come quicker than one row by itself, if they are few."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from ilang_eq.extract.footprint import PAGE, Traffic
from ilang_eq.extract.machine import Machine, load
from ilang_eq.extract.regions import regions
from ilang_eq.extract.streams import Streams, gained, rows_in_turn, together
from ilang_eq.extract.trips import evaluate
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests.extract.costs import cost

PLAIN = replace(load("x86_64_avx512"), past_caches=False)
GAIN = 1.5
MACHINE = replace(PLAIN, levels=(*PLAIN.levels[:-1], replace(PLAIN.levels[-1], abreast=GAIN)))
LARGE = (48, 1 << 20)
UPDATE = (I | (I | i("ij^0.5~ij")) >> i("ij/ij~ij||ij1")) >> i("ij-ij~ij||ij1")
"""p − m/√v, row by row."""


def moved(component: Component, *shapes: tuple[int, ...]) -> Streams:
    """The streams of a component's nest, out of memory."""
    graph = wire(component)
    program = lower(graph)
    extents = infer(graph).bind(shapes)
    nodes = evaluate(program.kernels[0].body, extents)
    (region,) = regions(nodes, program.buffers, extents, MACHINE)
    memory = MACHINE.levels[-1]
    return together([span.traffic(memory) for span in region.whole.values()])


def memory(component: Component, *shapes: tuple[int, ...], machine: Machine) -> float:
    """The seconds that memory takes by the full model."""
    terms = cost(component, *shapes, machine=machine, threads=1).terms
    return sum(seconds for name, seconds in terms if name.endswith("memory"))


def test_rows_less_than_a_page_apart_are_streams_of_their_own() -> None:
    """Four rows of 3136 bytes in each of four places far apart are twelve, which are too many; of 256 bytes four."""
    sums = i("+jik~i|i:4,j:4,k:16|ijki'j'k'")
    assert gained(moved(sums, (4, 512, 784))) == 0.0
    assert gained(moved(sums, (4, 512, 64))) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    ("schedule", "share"),
    [
        ("||ij", 0.0),
        ("|i:4,j:16|iji'j'", 1.0),
        ("|i:6,j:16|iji'j'", 1.0),
        ("|i:2,j:16|iji'j'", 2 / 3),
        ("|i:4,j:16|ii'jj'", 0.0),
        ("|i:8,j:16|iji'j'", 0.0),
        ("|i:4,j:512|iji'j'", 0.5),
    ],
)
def test_a_few_rows_side_by_side_come_quicker_than_one(schedule: str, share: float) -> None:
    """If a little of each is read in turn."""
    assert gained(moved(i(f"+ij~i{schedule}"), LARGE)) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("stride", [1024, PAGE])
def test_rows_that_share_a_page_or_end_with_it_gain_nothing_side_by_side(stride: int) -> None:
    assert gained(rows_in_turn(4.0, stride, 64.0)) == 0.0
    assert 0.4 < gained(rows_in_turn(4.0, 2 * PAGE, 64.0)) < 0.5


def test_rows_that_are_read_a_page_at_a_time_are_not_in_turn() -> None:
    assert rows_in_turn(12.0, 4 * PAGE, float(PAGE)) == Streams(1.0, 1.0)


def test_arrays_count_as_rows() -> None:
    """Three that are read, where two rows of one array, or two arrays, gain less."""
    two, three = i("ij+ij~ij"), UPDATE
    assert gained(moved(i("2*ij~ij"), LARGE)) == 0.0
    assert gained(moved(two, LARGE, LARGE)) == pytest.approx(2 / 3, abs=0.01)
    assert gained(moved(three, LARGE, LARGE, LARGE)) == pytest.approx(8 / 9, abs=0.01)


def test_too_many_of_all_arrays_gain_nothing() -> None:
    """Four rows of one array do, four of each of two are eight streams."""
    rows = "|i:4,j:16|iji'j'"
    assert gained(moved(i(f"2*ij~ij{rows}"), LARGE)) == pytest.approx(1.0, abs=0.02)
    assert gained(moved(i(f"ij+ij~ij{rows}"), LARGE, LARGE)) == 0.0


def test_a_small_array_is_hardly_a_stream() -> None:
    assert gained(moved(i("ij+j~ij"), (1 << 16, 512), (512,))) < 0.01
    assert together([Traffic(100.0, abreast=100.0, streams=100.0), Traffic(50.0, abreast=50.0, streams=50.0)]) == (
        1.5,
        1.5,
    )


def test_nothing_moved_is_no_stream() -> None:
    assert gained(together([])) == 0.0
    assert gained(together([Traffic(64.0)])) == 0.0, "written"
    assert gained(Streams(inf, 1.0)) == 1.0


def test_memory_takes_less_for_what_is_read_beside() -> None:
    """By the full model, where memory gains by it; what is written gains nothing."""
    three = (LARGE,) * 3
    slow, quick = (memory(UPDATE, *three, machine=machine) for machine in (PLAIN, MACHINE))
    written = PLAIN.levels[-1].written
    read = 3.0 * (1.0 - 8 / 9 * (1.0 - 1.0 / GAIN))
    assert quick / slow == pytest.approx((read + written) / (3.0 + written), rel=0.01)
