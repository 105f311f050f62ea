"""Facts about costs that hold on any machine we describe; how well the model ranks is for benchmarks to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract import full_model, overlap, versions
from ilang_eq.extract.full_model import Cost, Costed, program_cost
from ilang_eq.extract.machine import Machine, load, names
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests.extract.costs import MACHINE, cost, issue, matmul, seconds

SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
FUSED_SOFTMAX = (
    (I & i(">ij~i||ij")) >> i("ij-i~ij||i1j") >> i("^ij~ij||i0j") >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i01j")
)
SCORES = i("ik*jk~ijk") >> i("+ijk~ij||ijk0")
ATTENTION = SCORES >> SOFTMAX >> i("ij*jk~ikj||ijk") >> i("+ikj~ik||ijk0")


def flash_attention(rows: int, columns: int) -> Component:
    s = f"|i:{rows},j:{columns}|"
    scores = i("ik*jk~ijk" + s + "iji'j'k") >> i("+ijk~ij" + s + "iji'j'k0")
    weights = scores >> (I & i(">ij~i" + s + "ij0i'j'")) >> i("ij-i~ij" + s + "ij01i'j'") >> i("^ij~ij" + s + "ij0i'j'")
    values = i("ij*jk~ikj" + s + "ij0i'j'k") >> i("+ikj~ik" + s + "iji'j'k0")
    return weights >> (values & i("+ij~i" + s + "ij0i'j'")) >> i(f"ik/i~ik|i:{rows}|i01i'k")


@pytest.fixture(params=names())
def machine(request: pytest.FixtureRequest) -> Machine:
    return load(request.param)


@pytest.mark.parametrize(
    ("component", "inputs"), [(matmul("|i:4,j:16|ijki'j'"), 2), (FUSED_SOFTMAX, 1), (flash_attention(24, 48), 3)]
)
@pytest.mark.parametrize("extent", [48, 500, 2048])
def test_what_is_not_costed_in_full_takes_longer(
    component: Component, inputs: int, extent: int, machine: Machine
) -> None:
    """A bound above the cost changes nothing, one far below it ends the costing."""
    program = lower(wire(component))
    extents = {(n, d): extent for n in range(inputs) for d in range(2)}
    exact = program_cost(program, extents, machine, 2).seconds
    for share in (1.0001, 1.01, 2.0):
        assert program_cost(program, extents, machine, 2, most=share * exact).seconds == exact
    for share in (0.2, 0.9, 0.999):
        assert program_cost(program, extents, machine, 2, most=share * exact).seconds in (exact, share * exact)
    assert program_cost(program, extents, machine, 2, most=0.2 * exact).seconds == 0.2 * exact


@pytest.mark.parametrize("extent", [48, 500, 2048])
def test_what_was_costed_before_makes_no_difference(extent: int, machine: Machine) -> None:
    """The tiles differ in what is around the same loops, in loops inside the same ones, and in what buffers hold."""
    extents = {(n, d): extent for n in range(3) for d in range(2)}
    known = Costed()
    for rows, columns in ((24, 48), (24, 64), (32, 48), (32, 64)):
        program = lower(wire(flash_attention(rows, columns)))
        alone = program_cost(program, extents, machine, 2)
        again = program_cost(program, extents, machine, 2, known)
        assert (again.seconds, again.terms) == (alone.seconds, alone.terms)


@pytest.mark.parametrize("component", [matmul(""), matmul("|i:4,j:16|ijki'j'"), SOFTMAX, FUSED_SOFTMAX], ids=str)
def test_more_work_never_takes_less(component: Component, machine: Machine) -> None:
    inputs = component.inputs
    sizes = [64, 128, 256, 512, 1024, 2048]
    times = [seconds(component, *[(n, n)] * inputs, machine=machine) for n in sizes]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_unit_strides_beat_columns(machine: Machine) -> None:
    shapes = (1024, 1024), (1024, 1024)
    rows = seconds(matmul("||ikj"), *shapes, machine=machine)
    dots = seconds(matmul("||ijk"), *shapes, machine=machine)
    columns = seconds(matmul("||jki"), *shapes, machine=machine)
    assert rows * 3 < dots < columns * 2


def test_register_tiles_beat_rows_and_scraps(machine: Machine) -> None:
    """On Zen 3 rows take 1.90 times as long as the tile, and scraps 12 times; on Zen 5 2.2 and 7.0 times."""
    shapes = (192, 192), (192, 208)
    tile = seconds(matmul("|i:4,j:16|ijki'j'"), *shapes, machine=machine)
    # the model has 1.59 on Zen 5, where 4 × 16 is one vector in four rows
    least = 1.55 if machine.name == "x86_64_zen5" else 1.8
    assert tile < seconds(matmul("||ikj"), *shapes, machine=machine) / least
    assert tile < seconds(matmul("|i:1,j:4|ijki'j'"), *shapes, machine=machine) / 2


def test_rows_are_costed_where_c_puts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
    placed = seconds(rows, (4096, 4096))
    monkeypatch.setattr(versions, "in_place", lambda program: program)
    assert placed < seconds(rows, (4096, 4096))


def test_blocks_of_a_reduction_are_filled_by_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = matmul("|i:6,j:64,k:256|kjik'i'j'")
    filled = seconds(blocks, (1024, 1024), (1024, 1024))
    monkeypatch.setattr(full_model, "in_first_blocks", lambda kernel: kernel)
    assert filled < seconds(blocks, (1024, 1024), (1024, 1024))


@pytest.mark.parametrize("depth", [64, 1024])
def test_each_loop_around_a_register_tile_takes_what_the_machine_says(depth: int) -> None:
    """That of the reduction of each of 32 tiles, however long; those around it go on meanwhile."""
    tile, shapes = matmul("|i:6,j:64|ijki'j'"), ((192, depth), (depth, 64))
    slow = replace(MACHINE, entry_cycles=MACHINE.entry_cycles + 36.0)
    more = issue(tile, *shapes, machine=slow) - issue(tile, *shapes)
    assert more * MACHINE.clock_ghz * 1e9 == pytest.approx(36.0 * 32)


def test_tiles_that_fit_beat_tiles_with_tails() -> None:
    """200 rows of 10 are full tiles, of 9 or 11 they are not."""
    shapes = (200, 256), (256, 256)
    full, short, long = (seconds(matmul(f"|i:{n},j:32|ijki'j'"), *shapes) for n in (10, 9, 11))
    assert full < min(short, long)


def test_a_matrix_that_overflows_a_level_is_worth_blocking() -> None:
    shapes = (1024, 1024), (1024, 1024)
    plain = seconds(matmul("|i:6,j:32|ijki'j'"), *shapes)
    assert seconds(matmul("|i:6,j:32,k:128|kijk'i'j'"), *shapes) < 0.7 * plain


def test_an_inlined_product_beats_a_stored_one_by_orders(machine: Machine) -> None:
    shapes = (512, 512), (512, 512)
    assert seconds(matmul("||ikj"), *shapes, machine=machine) * 5 < seconds(matmul(""), *shapes, machine=machine)


def test_fused_softmax_beats_five_kernels(machine: Machine) -> None:
    shape = (4096, 4096)
    assert seconds(FUSED_SOFTMAX, shape, machine=machine) * 1.2 < seconds(SOFTMAX, shape, machine=machine)


def test_flash_attention_beats_attention(machine: Machine) -> None:
    shapes = ((2048, 64),) * 3
    assert seconds(flash_attention(16, 64), *shapes, machine=machine) < seconds(ATTENTION, *shapes, machine=machine)


@pytest.mark.parametrize("component", [SOFTMAX, FUSED_SOFTMAX], ids=str)
def test_two_threads_help_the_large_and_hinder_the_tiny(component: Component, machine: Machine) -> None:
    large = [seconds(component, (2048, 2048), machine=machine, threads=n) for n in (1, 2)]
    tiny = [seconds(component, (2, 2), machine=machine, threads=n) for n in (1, 2)]
    assert large[0] / 2 <= large[1] <= large[0]
    assert tiny[1] > tiny[0]


def test_threads_beyond_the_iterations_do_nothing() -> None:
    assert seconds(FUSED_SOFTMAX, (2, 4096), threads=2) == seconds(FUSED_SOFTMAX, (2, 4096), threads=8)


def test_an_uneven_share_costs_as_much_as_the_largest() -> None:
    rows = i("ij-i~ij") >> i("^ij~ij||ij0")
    three, four = (cost(rows, (n, 4096), (n,), threads=2).terms[0] for n in (3, 4))
    assert three[1] == pytest.approx(four[1], rel=1e-3)


@pytest.mark.parametrize("threads", [1, 4])
def test_rows_side_by_side_take_less_where_memory_gains_by_it(threads: int) -> None:
    *caches, memory = MACHINE.levels
    machine = replace(MACHINE, levels=(*caches, replace(memory, abreast=1.5)))
    shape = (64, 1 << 20)

    def moving(component: Component) -> float:
        terms = cost(component, shape, machine=machine, threads=threads).terms
        return sum(seconds for name, seconds in terms if name.endswith("memory"))

    one, four = i("+ij~i||ij"), i("+ij~i|i:4,j:16|iji'j'")
    assert moving(four) == pytest.approx(moving(one) / 1.5, rel=0.01)


def test_a_copy_moves_each_byte_once() -> None:
    n = 1 << 24
    terms = dict(cost(i("+i~i"), (n,)).terms)
    (memory,) = (level for level in MACHINE.levels if level.name == "memory")
    (name,) = (name for name in terms if name.endswith(": memory"))
    assert terms[name] == pytest.approx(4 * n * (1 + memory.written) / memory.bandwidth * 1e-9, rel=1e-4)


def test_a_program_that_fits_moves_nothing_from_beyond() -> None:
    terms = dict(cost(i("+i~i"), (1 << 16,)).terms)
    moved = {name.split(": ")[1] for name, time in terms.items() if time and not name.endswith("overhead")}
    assert moved == {"issue", "L2"}


@pytest.mark.parametrize(("share", "level", "fetched"), [(0.9, 1, False), (0.4, 2, False), (0.6, 2, True)])
def test_others_use_a_shared_level_meanwhile(share: float, level: int, fetched: bool) -> None:
    """A copy whose arrays take a ``share`` of a level finds them there unless others share it, and it is over half."""
    n = int(share * MACHINE.levels[level].bytes / 8)
    terms = dict(cost(i("+i~i"), (n,)).terms)
    beyond = MACHINE.levels[level + 1].name
    assert any(name.endswith(beyond) and time > 0.0 for name, time in terms.items()) == fetched


def test_a_second_reader_of_a_resident_row_is_free_of_traffic() -> None:
    """Three passes over a row that stays in the second level fetch it from memory once."""
    fused, copy = (dict(cost(c, (4096, 4096)).terms) for c in (FUSED_SOFTMAX, i("+ij~ij")))
    memory = [time for terms in (fused, copy) for name, time in terms.items() if name.endswith(": memory")]
    assert memory[0] == pytest.approx(memory[1], rel=0.01)


def test_nothing_to_do_costs_next_to_nothing() -> None:
    assert 0.0 < seconds(i("^ij~ij"), (0, 16)) < 1e-6
    assert seconds(matmul("|i:4,j:16|ijki'j'"), (0, 16), (16, 8)) < 1e-6


def test_columns_of_power_of_two_matrices_conflict() -> None:
    """A column of 512 rows fits the second level unless the rows lie a multiple of its way apart."""
    apart, together = (seconds(i("+ij~j||ji"), (512, n)) / n for n in (4096 + 16, 4096))
    assert together > 1.5 * apart


def test_the_seconds_are_the_slowest_parts_and_what_they_do_not_hide() -> None:
    """Every kernel of softmax, each expression by itself, is one phase."""
    result = cost(SOFTMAX, (1024, 1024))
    kernels: dict[str, list[float]] = {}
    overhead = 0.0
    for name, time in result.terms:
        kernel, part = name.split(": ")
        if part in ("overhead", "stall"):
            overhead += time
        else:
            kernels.setdefault(kernel, []).append(time)
    assert len(kernels) == 5
    shown = sum((1 - overlap.SHOWN) * max(parts) + overlap.SHOWN * sum(parts) for parts in kernels.values())
    assert result.seconds == pytest.approx(overhead + shown, rel=0.02)


def test_a_product_of_panels_beats_one_that_reads_rows() -> None:
    """The same tile; the packed factor is 64 columns at a time, row after row, or in place."""
    packed = (I | i("+kj~kj|j:64|jkj'")) >> i("ik*kj~kij|i:6,j:64|jiki'j'") >> i("+kij~ij|i:6,j:64|jiki'j'0")
    in_place = i("ik*kj~kij|i:6,j:64|jiki'j'") >> i("+kij~ij|i:6,j:64|jiki'j'0")
    assert seconds(packed, (1024, 1024), (1024, 1024)) < seconds(in_place, (1024, 1024), (1024, 1024))


def test_short_parts_of_rows_that_are_read_in_turns_come_unforeseen() -> None:
    """24 rows times a matrix, a part of each of its rows at a time; copied, the parts are asked for."""
    shapes = (24, 1000), (1000, 8000)
    zen = load("x86_64_zen")

    def product(columns: int, steps: int, staged: str = "") -> Component:
        tiles = f"|i:6,j:{columns // 16}:16,k:{steps}|jk{{0}}ij'k'i'j''"
        return i("ik*kj~kij" + tiles.format(staged)) >> i("+kij~ij" + tiles.format("") + "0")

    def waiting(component: Component) -> float:
        return sum(time for name, time in cost(component, *shapes, machine=zen).terms if name.endswith("stall"))

    packed = (I | i("+kj~kj|j:96,k:128|jkk'j'")) >> product(96, 128, "1")
    assert max(waiting(packed), waiting(product(1024, 12))) < waiting(product(96, 12)) / 2
    assert seconds(packed, *shapes, machine=zen) < seconds(product(96, 12), *shapes, machine=zen)


def test_what_comes_unforeseen_waits_longer_beside_neighbours() -> None:
    """An MLP that reads 4 MiB in tiles of 12 columns takes 5.4 ms on Zen 4, and up to 12 beside neighbours."""
    shapes = (128, 512), (512, 2048)
    tile = "i:32,k:12"
    in_place = i("+il~li|i:32|ili'") >> ~i(f"lk*li~lki|{tile}|i1klk'i'") >> i(f"+lki~ki|{tile}|iklk'i'0")
    packed = (I | i("+kj~kj|j:48|jkj'")) >> i("ik*kj~kij|i:8,j:48|j1iki'j'") >> i("+kij~ij|i:8,j:48|jiki'j'0")
    zen4 = load("x86_64_zen4")
    *caches, last, memory = zen4.levels
    quiet = replace(zen4, levels=(*caches, replace(last, loaded=1.0), memory))
    alone, beside = ([seconds(c, *shapes, machine=m) for c in (in_place, packed)] for m in (quiet, zen4))
    assert beside[0] > 1.02 * alone[0]
    assert beside[1] == pytest.approx(alone[1], rel=0.01)


EXPONENTIALS = (I & i(">ij~i||ij")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> i("+ij~i||i0j")


def shown(result: Cost) -> float:
    """The share of the shorter parts that shows beside the longest."""
    parts = [time for name, time in result.terms if not name.endswith(("overhead", "stall"))]
    return (result.seconds - max(parts)) / (sum(parts) - max(parts))


def test_phases_do_not_hide_each_other() -> None:
    """A pass over a row that only reads it, and one that only computes, take both their time."""
    assert shown(cost(EXPONENTIALS, (1 << 19, 128))) > overlap.SHOWN * 1.05


def test_passes_that_ask_for_rows_hide_each_other() -> None:
    """The same passes over longer rows: the second asks for the next one, and memory works meanwhile."""
    assert shown(cost(EXPONENTIALS, (1 << 14, 4096))) < overlap.SHOWN


def test_blocks_of_rows_ask_for_too_much_at_a_time() -> None:
    """As much is computed, and moved, row by row; but what comes in bursts shows."""
    zen5, shape = load("x86_64_zen5"), (8192, 1000)
    by_one = (I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> i("+ij~i||ij0")
    by_four = (I & i(">ij~i|i:4|")) >> i("ij-i~ij|i:4|i1i'j") >> i("^ij~ij|i:4|ii'j0") >> i("+ij~i|i:4|ii'j0")
    assert 1.05 * seconds(by_one, shape, machine=zen5) < seconds(by_four, shape, machine=zen5)


def test_results_of_chunks_are_filled_with_zeros_and_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one row, chunks of 258 terms are summed apart, and the second level holds a row of sums for each of them."""
    machine, tile = load("x86_64_sapphire_rapids"), "|j:32,k:6|ikjk'j'"
    row = i(f"ik*kj~ikj{tile}") >> i(f"+ikj~ij{tile}0")
    cut = seconds(row, (1, 2048), (2048, 2048), machine=machine)
    monkeypatch.setattr(full_model, "chunks_of", lambda *_: None)
    whole = seconds(row, (1, 2048), (2048, 2048), machine=machine)
    second = machine.levels[1]
    assert cut - whole == pytest.approx(8 * 2048 * 4 * (second.written + 1.0) / second.bandwidth * 1e-9)


def test_a_nest_that_waits_for_a_fold_is_a_phase_of_its_own() -> None:
    """Exponentials of a tile wait for its maximum, and the next tile's lines for them: unlike a sum of exponentials."""
    online = (i(">ij~i|j:256|") & I) >> (~i("ij-i~ij|j:256|ij1j'") >> i("^ij~ij|j:256|ijj'0") >> i("+ij~i|j:256|ijj'0"))
    alone = i("^ij~ij|j:256|") >> i("+ij~i|j:256|ijj'0")
    assert shown(cost(online, (1 << 14, 4096))) > overlap.SHOWN * 1.05
    assert shown(cost(alone, (1 << 14, 4096))) < overlap.SHOWN * 1.05


def test_lines_that_drive_each_other_out_come_beside_computing() -> None:
    """12 rows of A 4 KiB apart: of tiles of 32 columns the multiply-adds take longer, of 16 the lines."""
    zen4 = load("x86_64_zen4")

    def beside(columns: int) -> tuple[float, float]:
        found = cost(matmul(f"|i:12,j:{columns}|ijki'j'"), (1024, 1024), (1024, 1024), machine=zen4)
        issue, lines = (sum(s for name, s in found.terms if name.endswith(part)) for part in ("issue", "L2"))
        return found.seconds / issue, lines / issue

    (wide, few), (narrow, many) = beside(32), beside(16)
    assert few < 1.0 < many
    assert wide < 1.6 < narrow
    product, shapes = matmul("|i:12,j:32|ijki'j'"), ((1024, 1024), (1024, 1024))
    hidden, in_sum = (seconds(product, *shapes, machine=replace(zen4, hides=hides)) for hides in (1.0, 0.0))
    assert hidden < 0.7 * in_sum
    rows, pages = matmul("|i:8,j:32|ijki'j'"), ((1024, 1024), (1024, 2048))
    beside_it, on_top = (cost(rows, *pages, machine=replace(zen4, hides=hides)).terms for hides in (1.0, 0.0))
    assert any(name.endswith("pages") for name, _ in beside_it)
    assert not any(name.endswith("pages") for name, _ in on_top)


def test_a_core_that_looks_further_ahead_waits_less_for_lines_that_take_turns() -> None:
    def lines(window: float) -> float:
        machine = replace(load("x86_64_zen4"), window=window)
        found = cost(matmul("|i:12,j:16|ijki'j'"), (1024, 1024), (1024, 1024), machine=machine)
        return sum(s for name, s in found.terms if name.endswith("L2"))

    assert lines(448.0) < lines(320.0) == lines(224.0)


def test_a_core_that_looks_further_ahead_waits_less_for_accumulators() -> None:
    blocks = matmul("|i:6,j:64,k:64|kijk'i'j'")
    shapes = (1200, 2048), (2048, 4096)
    near, far = (seconds(blocks, *shapes, machine=replace(MACHINE, window=w)) for w in (224.0, 448.0))
    assert far < near


def test_rows_in_turns_wait_at_every_page_where_memory_makes_them() -> None:
    in_turns, in_order = i("ij*2~ij|i:12,j:1024|iji'j'"), i("ij*2~ij||ij")
    zen4 = load("x86_64_zen4")
    *caches, memory = zen4.levels
    without = replace(zen4, levels=(*caches, replace(memory, turns=0.0)))
    large, small = (4096, 4096), (64, 4096)
    waits = seconds(in_turns, large, machine=zen4) - seconds(in_turns, large, machine=without)
    assert waits == pytest.approx(4096 * 4 * memory.turns * memory.latency * 1e-9, rel=0.02)
    assert seconds(in_order, large, machine=zen4) == seconds(in_order, large, machine=without)
    assert seconds(in_turns, small, machine=zen4) == seconds(in_turns, small, machine=without)


def test_adding_what_functions_compute_to_rows_in_memory_does_not_hide_memory() -> None:
    """Sums of exponentials of columns, row by row, take 7.1 ms on Zen 4, and in tiles of 16 × 256 3.6."""
    zen4, shapes = load("x86_64_zen4"), ((4096, 4096), (4096,))

    def sums(schedule: str, op: str) -> Cost:
        last = f"{schedule}0" if schedule.endswith("'") else "||ji0"
        component = i(f"ji-i~ji{schedule}") >> i(f"{op}ji~ji{last}") >> i(f"+ji~i{last}")
        return cost(component, *shapes, machine=zen4)

    assert sums("", "^").seconds > 1.25 * sums("|i:256,j:16|jij'i'", "^").seconds
    terms = {op: dict(sums("", op).terms) for op in "^-"}
    shorter = min(terms["^"]["add2: issue"], terms["^"]["add2: memory"])
    stall, otherwise = (terms[op]["add2: stall"] for op in "^-")
    assert stall - otherwise == pytest.approx((1 - zen4.shown) * shorter, rel=0.01)
    assert otherwise < 0.01 * stall, "the results of chunks alone"


def test_passes_that_ask_for_rows_do_not_wait_at_their_pages() -> None:
    zen4 = load("x86_64_zen4")
    *caches, memory = zen4.levels
    without = replace(zen4, levels=(*caches, replace(memory, turns=0.0)))
    tiles = "|i:4,j:256|iji'j'"
    asked = i(f">ij~i{tiles}") & I
    asked = asked >> (~i("ij-i~ij|i:4|i1i'j") >> i("^ij~ij|i:4|ii'j0") >> i("+ij~i|i:4|i0i'j"))
    asking, alone = (
        [seconds(c, (4096, 4096), machine=m) for m in (zen4, without)] for c in (asked, i(f">ij~i{tiles}"))
    )
    assert asking[0] == asking[1]
    assert alone[0] > alone[1]


def test_nothing_is_computed_where_an_extent_is_zero(machine: Machine) -> None:
    assert seconds(matmul("|i:24,j:64|ijki'j'"), (0, 64), (64, 64), machine=machine) >= 0.0


TILES = "|i:6,j:16|ijki'j'"
PRODUCT = i("ik*jk~ijk" + TILES) >> i("+ijk~ij" + TILES + "0")
SQUARE = (I & I) >> PRODUCT


def test_a_symmetric_result_takes_half(machine: Machine) -> None:
    def ratio(terms: int) -> float:
        factor = (960, terms)
        return cost(SQUARE, factor, machine=machine).seconds / cost(PRODUCT, factor, factor, machine=machine).seconds

    assert ratio(2000) < 0.6
    assert ratio(10) == pytest.approx(1.0, rel=0.1)


def test_copying_the_other_half_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it takes instructions, and moves what no cache holds."""
    zen = load("x86_64_zen")

    def both(n: int) -> float:
        return cost(SQUARE, (n, 128), machine=zen).seconds

    before = {n: both(n) for n in (512, 8192)}
    monkeypatch.setattr(full_model, "MIRRORED_BYTES", 0.0)
    moved = {n: before[n] - both(n) for n in before}
    assert moved[8192] > 100 * moved[512] >= 0.0
    monkeypatch.setattr(full_model, "MIRRORED_CYCLES", 0.0)
    assert before[512] - both(512) == pytest.approx(0.5 * 512**2 / zen.clock_ghz * 1e-9, rel=0.2)


TWICE_THEN_SUMS = i("ij*2~ij") >> i("+ij~i")


def memory_time(component: Component, kernel: int, machine: Machine) -> float:
    """What a kernel takes out of memory, of a matrix of 8192²."""
    program = lower(wire(component))
    found = dict(program_cost(program, {(0, 0): 8192, (0, 1): 8192}, machine, 1).terms)
    return found[f"{program.kernels[kernel].name}: memory"]


def test_what_is_read_of_results_counts_once_and_what_is_written_as_the_machine_says() -> None:
    """Of 256 MiB: reading a result takes as long as reading an argument, and writing it ``fetched`` times."""
    machine = replace(load("x86_64_zen4"), fetched=2.0)
    read, written, again = (
        memory_time(component, kernel, machine)
        for component, kernel in ((i("+ij~i"), 0), (TWICE_THEN_SUMS, 0), (TWICE_THEN_SUMS, 1))
    )
    assert again == pytest.approx(read, rel=0.01)
    assert written == pytest.approx(3.0 * read, rel=0.02)
