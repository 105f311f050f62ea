"""What the loop-free statements at the bottom of a nest take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract import leaves
from ilang_eq.extract.leaves import HALVE_SLOTS, fold_slots
from ilang_eq.extract.machine import ALONE, Machine, load, names
from ilang_eq.extract.tally import STORES, THERE_AND_BACK, Tally
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lower.widths import STEPS
from tests.extract.costs import MACHINE, cost, issue, matmul, seconds


@pytest.fixture(params=names())
def machine(request: pytest.FixtureRequest) -> Machine:
    return load(request.param)


def test_a_tile_that_is_no_whole_vectors_takes_little_more_than_one_that_is() -> None:
    """It computes the lanes that it masks; a loop that does not accumulate has no mask."""
    whole, odd = (seconds(matmul(f"|i:6,j:{n}|ijki'j'"), (192, 192), (192, 13 * n)) / n for n in (16, 14))
    assert whole < odd < 1.5 * whole


@pytest.mark.parametrize("tile", ["i:16,j:64", "i:12,j:64", "i:8,j:96", "i:16,j:48", "i:24,j:32"])
def test_a_tile_beyond_the_registers_takes_as_long_as_one_that_fits(tile: str) -> None:
    """Four steps at a time, where the nearest cache is as quick as multiplying: 1.0 to 1.2 cycles a vector on Zen 4."""
    machine, shapes = load("x86_64_zen4"), ((192, 192), (192, 192))
    fits, beyond = (issue(matmul(f"|{t}|ijki'j'"), *shapes, machine=machine) for t in ("i:6,j:64", tile))
    assert 0.9 * fits < beyond < 1.2 * fits


def test_sums_across_lanes_take_a_register_for_each_vector_of_a_strip() -> None:
    """Products of 384 rows of 512 in tiles of 4 × 4 take twice as long in steps of 64 lanes as of 8 on Zen 3."""
    shapes = (384, 512), (384, 512)
    steps = (f"|i:4,j:4,k:{lanes}|ijki'j'k'" for lanes in (8, 64))
    products = (i("ik*jk~ijk" + tiles) >> i("+ijk~ij" + tiles + "0") for tiles in steps)
    fits, spilled = (seconds(product, *shapes, machine=load("x86_64_zen")) for product in products)
    assert fits < 0.7 * spilled


def test_lanes_that_have_no_register_are_dear_where_they_are_summed_at_once() -> None:
    """65536×64 times a vector takes 0.39 ms in tiles of 16 rows on Zen 5, 0.22 in those of 8 and 24."""
    zen5 = load("x86_64_zen5")
    sums = {n: i(f"ij*j~ij|i:{n},j:64|iji'j'") >> i(f"+ij~i|i:{n},j:64|iji'j'0") for n in (8, 16)}
    fits, at_once = (issue(sums[n], (4096, 64), (64,), machine=zen5) for n in (8, 16))
    assert at_once > 2.0 * fits
    fits, in_steps = (issue(sums[n], (64, 4096), (4096,), machine=zen5) for n in (8, 16))
    assert in_steps < 2.0 * fits


def test_what_is_left_of_a_row_of_exponentials_takes_a_vector() -> None:
    """And not as many functions of single floats."""
    exponentials = i("^ij~ij||ij")
    whole, part, more = (issue(exponentials, (100, n), machine=load("x86_64_zen5")) for n in (1008, 1023, 1024))
    assert whole < part
    assert part < whole + 1.5 * (more - whole)


def test_a_row_that_is_added_to_is_added_to_for_two_iterations_at_once() -> None:
    """As GCC does, where nothing else is in the loop around a row of run-time length."""
    shapes = (1, 2048), (2048, 256)
    jammed, parts = (seconds(matmul(schedule), *shapes) for schedule in ("||ikj", "|j:64|ikjj'"))
    assert jammed < parts


@pytest.mark.parametrize(
    ("cheap", "dear"), [("+ij~ij", "^ij~ij"), ("ij^2~ij", "2^ij~ij"), ("2^ij~ij", "ij^ij~ij"), ("ij*ij~ij", "ij/ij~ij")]
)
def test_dear_functions_cost_more(cheap: str, dear: str, machine: Machine) -> None:
    first, second = ([(64, 64)] * i(text).inputs for text in (cheap, dear))
    assert seconds(i(cheap), *first, machine=machine) < seconds(i(dear), *second, machine=machine)


def test_sums_overlap_with_the_next_ones() -> None:
    """As far as a core looks ahead: all of short ones, and little of long ones. One that looks nowhere waits."""
    near = replace(MACHINE, window=1.0)
    gained = []
    for steps in (16, 64, 1024):
        sums = matmul("|i:1,j:16|jiki'j'"), (64, steps), (steps, 16)
        gained.append(issue(*sums, machine=near) / issue(*sums))
    assert gained == sorted(gained, reverse=True)
    assert gained[0] > 2.0
    assert 1.0 < gained[-1] < 1.3


def test_vectors_of_arguments_lie_in_two_lines() -> None:
    """A tile of full vectors takes longer out of an argument than out of a copy, whose lines are asked for besides."""
    shapes = (96, 512), (512, 64)
    in_place = i("ik*kj~kij|i:6,j:64|ijki'j'") >> i("+kij~ij|i:6,j:64|ijki'j'0")
    assert issue((I | i("+kj~kj|j:64|jkj'")) >> in_place, *shapes) < 0.85 * issue(in_place, *shapes)


def test_short_tiles_take_longer_for_what_they_ask_ahead() -> None:
    """Tiles of 4 and of 6 rows of panels; in steps of 4 there is an instruction for every multiplication but one."""

    def of(rows: int) -> float:
        schedule = f"|i:{rows},j:64|jiki'j'"
        product = i("ik*kj~kij" + schedule) >> i("+kij~ij" + schedule + "0")
        return issue((I | i("+kj~kj|j:64|jkj'")) >> product, (96, 512), (512, 64))

    assert of(6) < 0.95 * of(4)


def test_a_tile_that_no_vector_divides_goes_in_shorter_ones() -> None:
    """Fourteen exponentials are a vector of 8, one of 4, and two; compilers leave seven to one of 4, and three."""
    shape = (64, 14 * 96)
    fourteen, seven, sixteen = (issue(i(f"^ij~ij|j:{tile}|"), shape) for tile in (14, 7, 16))
    assert sixteen < fourteen < seven


def test_short_vectors_take_as_long_as_whole_ones() -> None:
    """Exponentials of tiles of 12 columns go in vectors of 4."""
    shape = (64, 48 * 64)
    four, sixteen = (issue(i(f"^ij~ij|j:{tile}|"), shape) for tile in (12, 48))
    assert four > 3 * sixteen


def test_shorter_vectors_take_more_steps_to_fold() -> None:
    """A strip of 64 partial results: 3 vectors of 16 with the next and 4 halvings, or 7 of 8 and 3 halvings."""
    assert [fold_slots(lanes) for lanes in (16, 8)] == [7 + 4 * HALVE_SLOTS, 15 + 3 * HALVE_SLOTS]


def test_rows_are_folded_beside_what_follows() -> None:
    """Nothing waits for a fold, and a row of run-time length is no vectors that wait for its sum."""
    rows = 4096
    short, long = (issue(i("+ij~i"), (rows, length)) for length in (64, 1024))
    cycles = MACHINE.clock_ghz * 1e9 / rows
    assert short * cycles < 30
    assert (long - short) * cycles < 0.2 * (1024 - 64)


def test_functions_take_longer_of_few_vectors() -> None:
    """Rows of a tile of 16 floats stand alone, of 32 and 64 in fours, also where some are not whole."""
    zen = load("x86_64_zen")
    alone, fours, more = (issue(i(f"^ij~ij|j:{tile}|"), (64, 3840), machine=zen) for tile in (16, 32, 64))
    assert alone > 1.2 * fours
    assert fours == pytest.approx(more, rel=0.02)
    assert issue(i("^ij~ij|j:64|"), (64, 3856), machine=zen) == pytest.approx(more, rel=0.02)


def test_functions_leave_no_slots() -> None:
    """What is gathered beside an exponential takes as long as by itself."""
    shape = (64, 4096)
    rows, columns = ("^ji~ji|i:8,j:8|ijj'i'", "^ij~ji|i:8,j:8|ijj'i'")
    gathered = issue(i("*ij~ji|i:8,j:8|ijj'i'"), shape) - issue(i("*ji~ji|i:8,j:8|ijj'i'"), shape)
    assert issue(i(columns), shape) > issue(i(rows), shape) + 0.8 * gathered


def test_minima_along_vectors_take_longer_than_across_them() -> None:
    """Of 6 × 16 squared distances each row is folded by itself; measured, that takes 1.25 of the time on Zen 3."""
    along = (
        (I | i("+jk~kj|j:16,k:16|jkk'j'"))
        >> i("ik-kj~kij|i:6,j:16|ijki'j'")
        >> (I & I)
        >> i("kij*kij~kij|i:6,j:16|ijki'j'01")
        >> i("+kij~ij|i:6,j:16|ijki'j'0")
        >> i("<ij~i|i:6,j:16|ij0i'j'")
    )
    across = (
        i("+ik~ki|i:64,k:8|ikk'i'")
        >> i("ki-jk~kji|i:4:16,j:6|i0ji'kj'i''")
        >> (I & I)
        >> i("kji*kji~kji|i:4:16,j:6|iji'kj'i''01")
        >> i("+kji~ji|i:4:16,j:6|iji'kj'i''0")
        >> i("<ji~i|i:64,j:6|ij0j'i'")
    )
    points = (2048, 16)
    slow, fast = (cost(c, points, points, machine=load("x86_64_zen")).seconds for c in (along, across))
    assert slow > 1.01 * fast


def test_additions_go_beside_multiplications_where_they_have_ports_of_their_own() -> None:
    """Differences that are squared and summed: an addition for each multiply-add."""
    tile = "|i:6,j:16|ijki'j'"
    squares = i("ik-kj~ikj" + tile) >> (I & I) >> i("ikj*ikj~ikj" + tile + "01") >> i("+ikj~ij" + tile + "0")
    shapes = ((768, 64), (64, 768))
    shared, own = (replace(load("x86_64_zen"), issue_width=16.0, fma_with_add=n) for n in (2.0, 1.0))
    assert issue(squares, *shapes, machine=own) < 0.65 * issue(squares, *shapes, machine=shared)
    product = matmul("|i:6,j:16|ijki'j'")
    assert issue(product, *shapes, machine=own) == pytest.approx(issue(product, *shapes, machine=shared), rel=0.02)


def test_lanes_that_rows_of_a_tile_share_are_folded_once_for_each_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[float] = []

    def folded(times: float, tally: Tally) -> None:
        del tally
        found.append(times)

    monkeypatch.setattr(leaves, "_fold", folded)
    for rows in (4, 16):
        seconds(i(f"+ij~.|i:{rows},j:16|iji'j'"), (256, 256))
    assert found == [256 / 4 * 16, 256 / 16 * 16]


@pytest.mark.parametrize(("columns", "faster"), [(8, True), (32, False)])
def test_half_a_vector_takes_half_as_long_on_ports_of_half_its_width(columns: int, faster: bool) -> None:
    tile = matmul(f"|i:6,j:{columns}|ijki'j'")
    whole, half = (seconds(tile, (48, 64), (64, 32), machine=replace(MACHINE, port_bits=bits)) for bits in (512, 256))
    assert half < 0.9 * whole if faster else half == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize(("tile", "slower"), [("i:12,j:32", True), ("i:24,j:16", False)])
def test_elements_for_several_vectors_are_spread_beside_additions(tile: str, slower: bool) -> None:
    """As operands in memory they take no unit, nor do they where multiply-adds leave one free."""
    zen4 = load("x86_64_zen4")
    product = i(f"ki*kj~kij|{tile}|ijki'j'") >> i(f"+kij~ij|{tile}|ijki'j'0")
    for component, expected in ((squares(tile, flipped=True), slower), (product, False)):
        shapes = ((64, 64), (64, 48)) if component is not product else ((64, 48), (64, 64))
        free = seconds(component, *shapes, machine=replace(zen4, broadcasts=float("inf")))
        taken = seconds(component, *shapes, machine=zen4)
        assert taken > 1.05 * free if expected else taken == pytest.approx(free, rel=1e-3)


@pytest.mark.parametrize("name", names())
def test_ports_are_as_wide_as_vectors_unless_said_otherwise(name: str) -> None:
    described = load(name)
    assert described.port_lanes == (8 if name == "x86_64_zen4" else described.lanes)


def squares(tile: str, *, flipped: bool = False) -> Component:
    """Σ_k (x_ki − y_kj)² in tiles; or Σ_k (y_kj − x_ki)², of y and x."""
    difference, end = ("kj-ki" if flipped else "ki-kj"), f"|{tile}|ijki'j'"
    return i(f"{difference}~kij{end}") >> (I & I) >> i(f"kij*kij~kij{end}01") >> i(f"+kij~ij{end}0")


def test_what_something_is_subtracted_from_is_spread_over_a_register() -> None:
    """16 rows of a vector take 34 cycles on Zen 4, and 18 where the element is what is subtracted."""
    zen4 = load("x86_64_zen4")
    first, second = (issue(squares("i:16,j:16", flipped=f), (64, 64), (64, 64), machine=zen4) for f in (False, True))
    assert 1.3 * second < first < 2.2 * second


def test_half_a_register_is_filled_in_half_the_time() -> None:
    """6 rows of 16 and of 24 floats take 12.0 and 10.4 cycles on Zen 4, if the elements are what is subtracted from."""
    machine = load("x86_64_zen4")
    whole, halves = (issue(squares(f"i:6,j:{n}"), (64, 96), (64, 96), machine=machine) / n for n in (16, 24))
    assert halves < 0.7 * whole


@pytest.mark.parametrize(("alone", "waits"), [(ALONE, True), (1.0, False)])
def test_functions_of_single_vectors_wait_in_tiles_as_long_as_the_machine_says(alone: float, waits: bool) -> None:
    tile = "|i:16,j:16|"
    weighted = (
        i(f"^ji~ji{tile}ijj'i'") >> i(f"ji*j~ji{tile}ijj'i'0") >> i(f"+ji~i{tile}ijj'i'0"),
        i("^ji~ji|i:48,j:8|ijj'i'") >> i("ji*j~ji|i:48,j:8|ijj'i'0") >> i("+ji~i|i:48,j:8|ijj'i'0"),
    )
    zen4 = replace(load("x86_64_zen4"), alone=alone)
    one, several = (issue(component, (96, 96), (96,), machine=zen4) for component in weighted)
    assert (one > 1.2 * several) == waits


@pytest.mark.parametrize(("tile", "slower"), [("i:8,j:48", True), ("i:6,j:16", False)])
def test_accumulators_that_do_not_stay_in_registers_are_as_dear_as_the_machine_says(tile: str, slower: bool) -> None:
    """Of 16, where a tile of 24 vectors of the longest is 48."""
    product, zen = matmul(f"|{tile}|ijki'j'"), load("x86_64_zen")
    dear, plain = (seconds(product, (48, 64), (64, 384), machine=replace(zen, spill_slots=s)) for s in (12.0, 6.0))
    assert dear > 1.1 * plain if slower else dear == plain


@pytest.mark.parametrize(("inner", "slower"), [(8, 1.0), (16, 1.3)])
def test_what_moves_from_row_to_row_is_loaded_by_each(inner: int, slower: float) -> None:
    """16 rows share eight vectors, of which the loop is unrolled; of 16 each row loads its own."""
    zen4, tile = load("x86_64_zen4"), f"|i:16,j:16,k:{inner}|ikjli'k'j'"
    products = i("ilk*lkj~likj" + tile) >> i(f"+likj~ikj{tile}0")
    each = issue(products, (64, 64, 16), (64, 16, 64), machine=zen4)
    shared = issue(matmul("|i:16,j:128|ijki'j'"), (64, 64), (64, 1024), machine=zen4)
    assert each > slower * shared


def test_stores_have_ports_of_their_own() -> None:
    """A tile too large for registers loads and stores a sum in every fourth step: the longer of both counts."""
    wide = replace(MACHINE, issue_width=64.0, vector=replace(MACHINE.vector, fma=1e6, mul=1e6, add=1e6))
    shapes = (64, 4096), (4096, 48)
    stored = THERE_AND_BACK / STEPS * 4 * 64 * 4096 * 48
    found = issue(matmul("|i:32,j:48|ijki'j'"), *shapes, machine=wide)
    stores = STORES * stored / MACHINE.levels[0].bandwidth * 1e-9
    assert stores < found < 1.2 * stores


def test_what_adders_do_waits_less_than_multiply_adds() -> None:
    """One vector takes all of a row: products take four cycles from one to the next there, the others two."""
    machine, shape = load("x86_64_zen5"), (64, 4096)
    largest, total = (seconds(i(f"{op}ij~i|j:16|ijj'"), shape, machine=machine) for op in (">", "+"))
    product = seconds(i("ij*ij~ij|j:16|ijj'") >> i("+ij~i|j:16|ijj'0"), shape, shape, machine=machine)
    assert largest == pytest.approx(total, rel=0.1)
    assert largest < 0.7 * product
    alike = replace(machine, adder_cycles=machine.chain_cycles)
    assert seconds(i("+ij~i|j:16|ijj'"), shape, machine=alike) > 1.15 * total


def test_a_tile_in_the_nearest_cache_takes_a_while_to_begin() -> None:
    """Of 32 × 48, in blocks of 8 and of 64 steps."""
    shapes = (480, 480), (480, 480)
    tiles = (f"|i:32,j:48,k:{steps}|jkik'i'j'" for steps in (8, 64))
    products = (i("ik*kj~kij" + tile) >> i("+kij~ij" + tile + "0") for tile in tiles)
    short, long = (seconds(product, *shapes, machine=load("x86_64_zen5")) for product in products)
    assert 1.3 * long < short < 3.0 * long


def test_a_maximum_that_skips_nan_costs_more_than_one_that_need_not(machine: Machine) -> None:
    """Of two tiles in registers; against a number one instruction is enough, and an absolute value is one."""
    tile = "|i:6,j:64|iji'j'"
    skipping, plain, absolute = (
        issue((I & i(f"{first}~ij{tile}")) >> i(f"{last}~ij{tile}1"), (64, 64), machine=machine)
        for first, last in (("ij+1", "ij>ij"), ("0>ij", "ij+ij"), ("-ij", "ij>ij"))
    )
    assert skipping > plain
    assert skipping > absolute
