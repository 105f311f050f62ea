from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from ilang_eq.extract import expression_cost as cost
from ilang_eq.extract import overlap
from ilang_eq.extract.machine import load
from ilang_eq.extract.rows import Knobs, Order, Processor, Rows, SizedRows
from ilang_eq.rewrites.space import Nest

ROW, COLUMN, INNER = range(3)
MACHINE = load("x86_64_avx512")


def sized(nest: Nest, order: Order, extents: Mapping[int, int], tile: float = 16.0) -> SizedRows:
    rows = Rows(tuple(sorted(order)), ((nest, order),))
    return rows.at(Knobs(extents, {axis: np.array([tile]) for axis in order}), Processor(MACHINE, 1))


CUBE = dict.fromkeys((ROW, COLUMN, INNER), 256)


def test_operations_run_at_the_rates_of_the_machine() -> None:
    demand = cost.computing(sized((), (ROW, COLUMN), {ROW: 64, COLUMN: 64}), "mul")
    assert demand[cost.ARITHMETIC].item() == pytest.approx(64 * 64 / MACHINE.vector.mul)
    slots = 64 * 64 / MACHINE.lanes / MACHINE.issue_width / MACHINE.clock_ghz
    assert demand[cost.SLOTS].item() == pytest.approx(slots)
    assert cost.time(demand).item() == pytest.approx(((64 * 64 / MACHINE.vector.mul) ** 6 + slots**6) ** (1 / 6))


def test_short_loops_fill_no_vector() -> None:
    short = cost.computing(sized((), (ROW, COLUMN), {ROW: 64, COLUMN: 3}), "mul")[cost.ARITHMETIC].item()
    assert short == pytest.approx(64 * min(3 / MACHINE.scalar.mul, MACHINE.lanes / MACHINE.vector.mul))


def test_a_unary_power_is_an_exponential() -> None:
    assert (cost.rate_of("pow", True), cost.rate_of("pow", False)) == ("exp", "pow")
    assert cost.rate_of("gt", False) == "compare"


def test_accumulators_stay_in_registers_where_the_loop_around_them_reduces() -> None:
    held = cost.accumulating(sized((ROW, COLUMN), (INNER, ROW, COLUMN), CUBE), (ROW, COLUMN), [COLUMN], 0)
    in_place = cost.accumulating(sized((), (ROW, INNER, COLUMN), CUBE), (ROW, COLUMN), [COLUMN], 0)
    assert held[cost.FIRST_LEVEL].item() == pytest.approx(2 * 256**2 * 4 / MACHINE.levels[0].bandwidth)
    assert in_place[cost.FIRST_LEVEL].item() == pytest.approx(256 * held[cost.FIRST_LEVEL].item())


def test_few_accumulators_wait_for_themselves() -> None:
    one, many = (
        cost.accumulating(sized((ROW, COLUMN), (INNER, ROW, COLUMN), CUBE, tile), (ROW, COLUMN), [COLUMN], 0)
        for tile in (4.0, 16.0)
    )
    assert one[cost.CHAIN].item() > 3 * many[cost.CHAIN].item()


def test_many_accumulators_spill() -> None:
    few, many = (
        cost.accumulating(sized((ROW, COLUMN), (INNER, ROW, COLUMN), CUBE, tile), (ROW, COLUMN), [COLUMN], 0)[
            cost.SLOTS
        ].item()
        for tile in (16.0, 32.0)
    )
    assert many > few


def test_an_operand_crossed_by_the_innermost_loop_is_gathered() -> None:
    rows = sized((), (ROW, COLUMN), {ROW: 256, COLUMN: 256})
    along, across = (cost.reading(rows, (ROW, COLUMN), [last], 0)[cost.SLOTS].item() for last in (COLUMN, ROW))
    assert across == pytest.approx(4 * MACHINE.lanes * along)
    diagonal = cost.reading(rows, (COLUMN, COLUMN), [COLUMN], 0)[cost.SLOTS].item()
    assert diagonal == pytest.approx(4 * 256 * 256 / MACHINE.issue_width / MACHINE.clock_ghz / 1)


def test_what_does_not_move_with_the_unit_is_read_when_it_moves() -> None:
    rows = sized((), (ROW, COLUMN), {ROW: 256, COLUMN: 256})
    assert cost.reading(rows, (ROW,), [ROW], 0)[cost.FIRST_LEVEL].item() == pytest.approx(
        256 * 4 * MACHINE.lanes / MACHINE.levels[0].bandwidth
    ), "a broadcast takes a port as long as a vector does"


def test_rescaling_happens_in_every_iteration_around_it() -> None:
    few, many = (
        cost.rescaling(sized((ROW, COLUMN), (ROW, COLUMN), {ROW: 256, COLUMN: 256}, tile), (ROW,), (ROW,), 2).item()
        for tile in (64.0, 16.0)
    )
    assert many == pytest.approx(4 * few)


def test_demands_overlap_but_for_what_is_apart() -> None:
    demand = np.array([1.0, 5.0, 2.0, 3.0, 10.0, 1.0, 20.0, 2.0]).reshape(8, 1, 1)
    computing = (1.0**6 + 5.0**6 + 2.0**6 + 3.0**6) ** (1 / 6)
    assert cost.time(demand).item() == pytest.approx(20 + overlap.SHOWN * (computing + 1 + 2) + 10)


def test_ceilings_of_computing_are_soft() -> None:
    """Two that are reached at once take longer than one; one far below the other counts for next to nothing."""
    demand = np.zeros((cost.TRANSFERS + 1, 1, 3))
    demand[cost.ARITHMETIC] = 5.0
    demand[cost.SLOTS] = 0.0, 5.0, 1.0
    alone, both, little = cost.time(demand)[0]
    assert alone == pytest.approx(5.0)
    assert both > 1.1 * alone
    assert little < 1.001 * alone
