from __future__ import annotations

from dataclasses import replace
from math import gcd

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ilang_eq.extract.footprint import (
    DRIVES_OUT,
    LINE,
    OVERFLOWS,
    PAGE,
    START_OF_ARRAYS,
    Cache,
    Pace,
    Span,
    Traffic,
    TranslationBuffer,
    landing,
    lines_of,
    offsets_of,
    room_of,
)
from ilang_eq.extract.issue import issue_times
from ilang_eq.extract.machine import Machine, load
from ilang_eq.extract.prefetchers import LOSES_NEAR
from ilang_eq.extract.regions import Region, regions
from ilang_eq.extract.trips import Loop, evaluate
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

STREAMS = 16
PAGE_STREAMS = 4
MACHINE = replace(load("x86_64_avx512"), streams=STREAMS, page_streams=PAGE_STREAMS)
LEVEL, SOURCE, *_ = MACHINE.levels
CACHE = Cache(LEVEL, SOURCE)
PASSES = (I & i(">ij~i||ij")) >> (i("ij-i~ij||i1j") & I) >> i("+ij~i||i0j")
"""Three passes over each row: its maximum, the differences from it, their sum."""

PASSES_OVER_THREE_ROWS = (I & i(">ij~i||ij")) >> i("ij-i~ij||i1j") >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
"""The same, and then their quotients."""


def nest(component: Component, *shape: int, machine: Machine = MACHINE) -> Region:
    """The last outermost loop of a one-kernel component with one input."""
    program = lower(wire(component))
    extents = {(0, d): n for d, n in enumerate(shape)}
    (kernel,) = program.kernels
    return list(regions(evaluate(kernel.body, extents), program.buffers, extents, machine))[-1]


def fetched(region: Region, into: Cache | TranslationBuffer) -> Traffic:
    """What one run of ``region`` brings into a cache."""
    return Traffic.total(traffic for found in region.phases(into) for traffic in found.values())


@pytest.mark.parametrize("order", ["iji'j'", "jii'j'", "ii'jj'", "jj'ii'"])
@given(blocks=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_a_whole_nest_touches_everything_once(order: str, blocks: tuple[int, int]) -> None:
    rows, columns = blocks[0] * 4, blocks[1] * 16
    region = nest(i(f"^ij~ij|i:4,j:16|{order}"), rows, columns)
    moved = sum(span.traffic(SOURCE).all for span in region.whole.values())
    assert moved == pytest.approx(4 * rows * columns * (1 + SOURCE.written))


def test_an_iteration_of_a_tile_loop_touches_a_tile() -> None:
    region = nest(i("^ij~ij|i:4,j:16|iji'j'"), 64, 128)
    (column,) = region.loops
    assert {(span.runs, span.run, span.stride) for span in column.iteration.values()} == {(4.0, 64.0, 512)}
    assert {(span.runs, span.run) for span in region.iteration.values()} == {(1.0, 4 * 512.0)}


def test_a_column_takes_a_line_for_every_element() -> None:
    region = nest(i("^ij~ij||ji"), 64, 128)
    (span, _) = region.iteration.values()
    assert (span.runs, span.run, span.bytes) == (64.0, 4.0, 64.0 * LINE)


@given(st.integers(2, 64), st.integers(1, 8), st.integers(1, 512))
def test_runs_occupy_more_than_they_hold_where_their_lines_compete(runs: int, lines: int, stride: int) -> None:
    """Runs of whole lines, that begin at places in a page which are the same or apart."""
    assume(gcd(stride * LINE, PAGE) >= lines * LINE)
    bytes_, offsets = float(runs * lines * LINE), offsets_of((runs,), (stride * LINE,))
    span = Span(float(runs), float(lines * LINE), stride * LINE, False, bytes_, Pace(LINE), offsets=offsets)
    starts = range(0, runs * stride, stride)
    places = {(start + n) % (LEVEL.way_bytes // LINE) for start in starts for n in range(lines)}
    alone = len(places) == runs * lines
    assert span.occupies(LEVEL) == bytes_ * (1 if alone else LEVEL.way_bytes / LINE / len(places))


def test_a_row_that_fits_is_fetched_once_for_all_passes() -> None:
    """Two passes read the row; its differences, which keep their place, are written by one and read by another."""
    rows, row, long_row = 8, int(LEVEL.bytes) // 8, int(LEVEL.bytes) * 4
    output = 4 * rows * SOURCE.written
    once = fetched(nest(PASSES, rows, row // 4), CACHE).all
    assert once == pytest.approx(rows * row + SOURCE.written * row + output)
    anew = fetched(nest(PASSES, rows, long_row // 4), CACHE).all
    assert anew == pytest.approx(rows * long_row * (2 + SOURCE.written + 1), rel=1e-3)


def test_rows_on_pages_of_their_own_are_looked_up_again_where_there_are_too_many() -> None:
    rows, columns = 512, 4096
    region = nest(i("^ij~ij|j:16|jij'"), rows, columns)
    once, anew = (fetched(region, TranslationBuffer(entries)) for entries in (4 * rows, rows // 4))
    assert once.all == 0, "all of it is one run"
    assert anew.bytes == pytest.approx(2 * rows * columns / 16)
    assert anew.apart == pytest.approx(2 * rows * columns / 16), "two lines of the argument, none of the output"


@given(st.integers(1, 80), st.sampled_from([0, START_OF_ARRAYS]))
def test_parts_of_a_row_lie_in_as_many_lines_as_counting_says(floats: int, start: int) -> None:
    """One part of ``floats`` begins after another; sixteen of them are all the ways in which they lie in lines."""
    begins = [start + 4 * floats * n for n in range(16)]
    lines = [(begin + 4 * floats - 1) // LINE - begin // LINE + 1 for begin in begins]
    assert lines_of(4.0 * floats, argument=start > 0) == pytest.approx(sum(lines) / len(lines))


def test_rows_of_tiles_compete_for_the_places_at_which_they_begin() -> None:
    """Four rows 256 bytes apart in each of 32 that are 16 KiB apart: of 16 places in a page they begin at four."""
    assert offsets_of((32.0, 4.0), (16384, 256)) == 4
    assert offsets_of((4.0, 64.0), (16384, 256)) == 16
    assert offsets_of((32.0,), (16384,)) == 1
    rows = Span(128.0, 128.0, 256, False, 16384.0, Pace(128.0), offsets=4.0)
    assert rows.occupies(LEVEL) == 16384 * LEVEL.way_bytes / 512
    few = rows._replace(runs=4.0, bytes=512.0)
    assert few.occupies(LEVEL) == few.bytes, "each in its own place"


@pytest.mark.parametrize(("rows", "foreseen"), [(STREAMS, True), (4 * STREAMS, False)])
def test_a_strip_is_foreseen_while_its_rows_can_be_followed_side_by_side(rows: int, foreseen: bool) -> None:
    """Columns of a wide matrix, a few at a time: each row is a stream, and its strips lie next to each other."""
    region = nest(i("^ij~ij|j:16|jij'"), rows, 4096)
    assert [span.pace.jump == 0 for span in region.whole.values()] == [foreseen, foreseen]


@pytest.mark.parametrize(
    ("rows", "columns", "width", "lost"),
    [
        (PAGE_STREAMS, 64, 8, 0.0),
        (PAGE_STREAMS + LOSES_NEAR // 4, 64, 8, 0.25),
        (PAGE_STREAMS + LOSES_NEAR // 4, 64, 16, 0.25),
        (PAGE_STREAMS + LOSES_NEAR // 4, 128, 64, 0.125),
        (PAGE_STREAMS + LOSES_NEAR // 4, 1024, 8, 0.0),
    ],
)
def test_short_pieces_of_rows_of_a_page_are_lost_one_by_one(rows: int, columns: int, width: int, lost: float) -> None:
    """Less of them where pieces are longer than two lines, and none where each row has pages of its own."""
    region = nest(i(f"+ij~i|i:{rows},j:{width}|iji'j'"), 8 * rows, columns)
    assert region.whole["in0"].pace.missed == lost


@pytest.mark.parametrize(("rows", "lost"), [(PAGE_STREAMS, 0.0), (PAGE_STREAMS + LOSES_NEAR // 4, 0.25)])
def test_short_pieces_of_rows_of_other_pages_are_counted_apart(rows: int, lost: float) -> None:
    region = nest(i(f"+lij~li|l:2,i:{rows},j:8|lijl'i'j'"), 4, 8 * rows, 64)
    assert region.whole["in0"].pace.missed == lost


@pytest.mark.parametrize(("op", "rows", "foreseen"), [("^", 24, True), ("^", 48, True), ("-", 24, False)])
def test_rows_of_arguments_are_asked_for_where_functions_give_time(op: str, rows: int, foreseen: bool) -> None:
    """More of them than prefetchers follow, in tiles: after these come the rows of the next."""
    region = nest(i(f"{op}ij~ij|i:{rows},j:32|iji'j'"), rows, 2048)
    assert (region.whole["in0"].pace.jump == 0) == foreseen


def test_the_order_of_the_loops_decides_what_comes_one_after_another() -> None:
    along, across = (nest(i(f"^ij~ij|j:16|{order}"), 512, 4096) for order in ("ijj'", "jij'"))
    assert {span.pace for span in along.whole.values()} == {Pace(4.0 * 512 * 4096)}
    assert {span.pace for span in across.whole.values()} == {Pace(64.0, 4 * 4096, 1.0, in_turns=True)}


def test_a_loop_that_comes_back_to_rows_makes_no_instruction_lose_them() -> None:
    """Each of twenty rows has instructions of its own in a register tile; those of a loop are lost."""
    machine = replace(MACHINE, streams=8, by_instruction=True)
    tile, passes = (
        nest(i(f"+ij~i|i:20,j:{width}|iji'j'"), 200, 5120, machine=machine).whole["in0"].pace for width in (16, 80)
    )
    assert 0.0 < tile.missed < 0.2 < passes.missed * 80 / 16 == pytest.approx(1.0)
    row = nest(i("+ij~i"), 200, 5120, machine=machine).whole["in0"]
    assert row.pace.missed == 0.0
    assert row.follows


def test_instructions_lose_less_of_rows_that_begin_at_many_places() -> None:
    machine = replace(MACHINE, streams=8, by_instruction=True)
    page, others = (
        nest(i("+ij~j|j:16|jij'"), 200, columns, machine=machine).whole["in0"].pace.missed for columns in (4096, 5040)
    )
    assert 0.0 < others < 0.2 * page


def test_what_vectors_share_with_the_next_ones_is_lost_at_once_where_it_competes() -> None:
    level = replace(LEVEL, split_lasts=1.3)
    rows = Span(16.0, 64.0, 4096, False, 2048.0, Pace(64.0), split=True)
    plain, short, long = (
        Cache(level, SOURCE).contended(span) for span in (rows._replace(split=False), rows, rows._replace(run=128.0))
    )
    assert short.lost(1.3) == 1.0
    assert plain == long == Cache(LEVEL, SOURCE).contended(rows)
    assert plain.lost(1.3) < 0.3


def test_a_level_may_keep_part_of_more_than_it_holds() -> None:
    lasting = room_of(replace(LEVEL, lasts=2.0))
    assert [lasting.lost(taken) for taken in (0.5, 1.25, 2.0)] == [0.0, 0.5, 1.0]
    assert room_of(LEVEL).lost(1.4) == 1.0
    assert (LEVEL.lasts, LEVEL.split_lasts) == (OVERFLOWS, DRIVES_OUT), "what a description does not say"


@given(st.integers(1, 64), st.sampled_from([64, 4096, 1 << 15]))
def test_the_first_phase_to_read_a_row_fetches_it(rows: int, columns: int) -> None:
    region = nest(PASSES, rows, columns)
    first, *_, last = (Traffic.total(found.values()) for found in region.phases(CACHE))
    assert len(region.phases(CACHE)) == region.count
    assert first.all >= 4 * rows * columns * 0.99
    assert last.all <= 4 * rows * CACHE.source.written, "the loop over rows writes a number a row"


def test_what_the_next_pass_reads_again_may_still_be_there() -> None:
    """Three rows do not fit together, but when the second pass comes, the third row has not been touched yet."""
    found = nest(PASSES_OVER_THREE_ROWS, 64, 4096).phases(CACHE)
    first, again = (found[n]["in0"].all for n in (0, 1))
    assert first == 64 * 4096 * 4
    assert 0 < again < 0.7 * first


@given(st.floats(0, 1), st.sampled_from([16, 1 << 12, 1 << 15]))
def test_what_is_there_already_is_not_fetched(share: float, columns: int) -> None:
    """Whether rows stay between passes or not, they come for the first time once."""
    region = nest(PASSES, 64, columns)
    found = (region.phases(CACHE, there) for there in (0.0, share))
    nothing, some = (Traffic.total(t for phase in phases for t in phase.values()) for phases in found)
    whole = sum(CACHE.fetch(span).all for span in region.whole.values())
    assert some.all == pytest.approx(nothing.all - share * whole)
    assert min(some) >= -1e-6


def test_phases_of_traffic_are_those_of_issue() -> None:
    program = lower(wire(PASSES))
    (kernel,) = program.kernels
    (loop,) = (node for node in evaluate(kernel.body, {(0, 0): 8, (0, 1): 4096}) if isinstance(node, Loop))
    assert len(issue_times(loop, load("x86_64_avx512"))) == nest(PASSES, 8, 4096).count


def test_no_core_waits_for_what_it_writes() -> None:
    """Lines far apart come unforeseen; a store has a buffer to wait in, and moves them all the same."""
    costly = replace(SOURCE, written=1.5)
    read, written = (Span(64, 64, 8192, stored, 4096, Pace(64, 8192, 1.0)).traffic(costly) for stored in (False, True))
    assert read == Traffic(apart=4096)
    assert written == Traffic(bytes=1.5 * 4096)


@pytest.mark.parametrize(("columns", "compete"), [(1024, True), (1000, False)])
def test_rows_of_two_buffers_a_way_apart_compete_for_the_same_places(columns: int, compete: bool) -> None:
    """A line holds four parts of a row. Six rows of one buffer find their eight places, those of two do not."""
    lines = 6 * columns * 4
    alone, both = (fetched(nest(i(f"{text}|j:4|jij'"), 6, columns), CACHE).all for text in ("+ij~j", "^ij~ij"))
    assert alone - SOURCE.written * columns * 4 == pytest.approx(lines, rel=0.01)
    assert (both > 1.5 * (1 + SOURCE.written) * lines) == compete


@pytest.mark.parametrize(("columns", "contends"), [(1024, True), (1000, False)])
def test_rows_a_way_apart_drive_each_other_out(columns: int, contends: bool) -> None:
    """32 rows, 4 KiB apart, have 8 places in the nearest cache: a line is gone when its next float is needed."""
    transposed = nest(i("^ik~ki|i:32,k:256|ikk'i'"), 256, columns)
    lines = 256 * columns * LINE
    moved = sum(traffic.contending for phase in transposed.phases(CACHE) for traffic in phase.values())
    assert moved == (pytest.approx(lines) if contends else 0.0)


@pytest.mark.parametrize(("rows", "lost"), [(6, 0.0), (7, 0.04), (8, 0.08), (12, 0.37)])
def test_a_few_rows_a_way_apart_stay(rows: int, lost: float) -> None:
    """Of 8 places, 6 lines that compete for them find theirs; of 12, most still do."""
    region = nest(i(f"ik*k~ik|i:{rows}|iki'") >> i(f"+ik~i|i:{rows}|iki'0"), rows, 1024)
    once, moved = 4 * rows * 1024, fetched(region, CACHE)
    anew = (moved.all - once) / (rows * LINE * 1024)
    assert anew == pytest.approx(lost, abs=0.03)


@pytest.mark.parametrize("stride", [PAGE, 4 * PAGE, 16 * PAGE])
def test_lines_drive_each_other_out_of_the_nearest_cache_alone(stride: int) -> None:
    """Beyond it pages decide about places: rows further apart than a page compete no more than rows a page apart."""
    near, second, third = MACHINE.levels[:3]
    rows = Span(64, LINE / 2, stride, False, 64 * LINE, Pace(LINE / 2))
    assert rows.occupies(second) == rows._replace(stride=PAGE).occupies(second)
    assert Cache(near, second).fetch(rows).contending == rows.bytes
    assert Cache(second, third).fetch(rows).contending == 0


@pytest.mark.parametrize(("taken", "part"), [(1.5, 0.2), (4.0, 0.42), (8.0, 0.67), (16.0, 0.67)])
def test_lines_wait_the_longer_the_more_drive_each_other_out(taken: float, part: float) -> None:
    """As measured in the nearest cache of Zen 4; of 16 lines for each place, all come back anew, as of 8."""
    assert landing(taken) == pytest.approx(part, abs=0.01)


def test_what_is_accumulated_in_memory_is_not_waited_for() -> None:
    """Six rows stay in registers through a reduction; a tile of 6 rows of 2048 is gone through in each of its steps."""

    def waited(tile: str) -> float:
        region = nest(i(f"ik*k~ik{tile}") >> i(f"+ik~i{tile}0"), 96, 4096)
        return fetched(region, CACHE).waited

    assert waited("|i:6|iki'") > 0
    program = lower(wire(i("ik*kj~kij|i:6,j:2048|ijki'j'") >> i("+kij~ij|i:6,j:2048|ijki'j'0")))
    extents = {(0, 0): 96, (0, 1): 512, (1, 0): 512, (1, 1): 4096}
    (kernel,) = program.kernels
    (*_, region) = regions(evaluate(kernel.body, extents), program.buffers, extents, MACHINE)
    assert fetched(region, CACHE).waited == 0


@pytest.mark.parametrize(
    ("schedule", "share"),
    [
        ("||ij", 0.0),
        ("|j:1024|ijj'", 0.0),
        ("|i:12|ii'j", 0.0),
        ("|i:12,j:32|iji'j'", 0.0),
        ("|i:12,j:256|iji'j'", 0.25),
        ("|i:12,j:1024|iji'j'", 1.0),
        ("|i:24,j:2048|iji'j'", 1.0),
        ("|i:12,j:8192|iji'j'", 0.25),
        ("|i:2,j:1024|iji'j'", 0.3),
    ],
)
def test_pages_of_rows_that_are_read_in_turns_are_begun_anew(schedule: str, share: float) -> None:
    """The more, the more rows there are, and the nearer the parts come to pages; long ones hold several."""
    component, shape = i(f"^ij~ij{schedule}"), (48, 1 << 16)
    assert nest(component, *shape).whole["in0"].turning == pytest.approx(share, abs=0.02)


def test_rows_that_share_a_page_are_read_without_turning() -> None:
    assert nest(i("^ij~ij|i:12,j:256|iji'j'"), 48, 512).whole["in0"].turning == 0.0


def test_pages_that_are_begun_anew_add_up() -> None:
    some = Traffic(bytes=100.0, turning=40.0)
    assert some.times(2.0).turning == 80.0
    assert some.plus(some).turning == Traffic.total([some, some]).turning == 80.0
