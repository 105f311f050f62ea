"""What of moving data shows beside computing: lines in two parts, waiting for what nobody sees coming, and the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.extract.machine import Machine, load
from ilang_eq.lang.component import Component, i
from tests.extract.costs import MACHINE, cost, issue, matmul, seconds

GOLDEN_COVE = load("x86_64_sapphire_rapids")


def test_vectors_in_two_lines_cost_only_what_the_nearest_cache_has_not() -> None:
    def of(depth: int, machine: Machine = MACHINE) -> float:
        return issue(matmul("|i:4,j:64|ijki'j'"), (256, depth), (depth, 64), machine=machine) / depth

    near, far = of(60), of(2048)
    assert far > 1.2 * near
    without = replace(MACHINE, split_cycles=0.0)
    assert of(60, without) == pytest.approx(near, rel=0.03)
    assert of(2048, without) < 1.05 * near


def test_a_part_of_a_row_in_two_lines_moves_both_and_is_issued_once() -> None:
    """Only rows gone through in order are limited by loads, of which each vector in two lines takes two."""
    without = replace(MACHINE, split_cycles=0.0)

    def gain(component: Component, *shapes: tuple[int, ...]) -> float:
        return 1.0 - issue(component, *shapes, machine=without) / issue(component, *shapes)

    assert gain(matmul("|i:4,j:64|jiki'j'"), (256, 2048), (2048, 1024)) == 0.0
    assert gain(i("+ij~i"), (256, 4096)) > 0.1


def test_a_core_may_hide_waiting_for_caches_alone() -> None:
    """14 rows of A share 12 places of the nearest cache; rows of B come from the last one, or from memory."""

    def stall(columns: int, cached: float, memory: float = 0.0) -> float:
        machine = replace(GOLDEN_COVE, hides_cached=cached, hides=memory)
        terms = cost(matmul("|i:14,j:32|jiki'j'"), (1024, 1024), (1024, columns), machine=machine).terms
        return sum(s for name, s in terms if name.endswith("stall"))

    for columns in (32, 4096):
        assert stall(columns, 1.0) < 0.2 * stall(columns, 0.0)
    assert stall(1 << 17, 1.0) > 100.0 * stall(1 << 17, 1.0, 1.0)


def test_a_core_may_read_lines_in_two_parts_once_more_for_their_page() -> None:
    """Columns of 256 rows of B, unpacked, each in a page of its own."""
    shapes = (64, 2048), (2048, 2048)

    def stall(again: float) -> float:
        machine = replace(GOLDEN_COVE, split_again=again)
        terms = cost(matmul("|i:8,j:48,k:256|jkik'i'j'"), *shapes, machine=machine).terms
        return sum(s for name, s in terms if name.endswith("stall"))

    assert stall(1.0) > 2.0 * stall(0.0) > 0.0
    assert stall(0.5) == pytest.approx((stall(0.0) + stall(1.0)) / 2)


@pytest.mark.parametrize(
    ("component", "shapes", "hidden"),
    [
        (matmul("|i:8,j:48|jiki'j'"), ((192, 256), (256, 192)), True),
        (i("^ij~ij"), ((256, 1000),), True),
        (i("+ij~i"), ((256, 4096),), False),
    ],
)
def test_lines_in_two_parts_cost_less_where_little_is_loaded(
    component: Component, shapes: tuple[tuple[int, ...], ...], hidden: bool
) -> None:
    """Multiply-adds in registers and exponentials leave ports that load unused, sums of rows do not."""
    never = replace(GOLDEN_COVE, split_cycles=0.0, split_part_cycles=0.0)
    whole, split, alone = (
        issue(component, *shapes, machine=machine)
        for machine in (never, GOLDEN_COVE, replace(GOLDEN_COVE, split_hides=0.0))
    )
    assert whole <= split <= alone
    assert (split - whole < 0.7 * (alone - whole)) == hidden


def test_less_of_what_comes_out_of_caches_may_show_beside_computing() -> None:
    """A second factor of 256 KiB, row by row; and rows that are read from memory and added up: memory is longest."""
    less = replace(GOLDEN_COVE, shown_cached=0.0)
    product, shapes = matmul("|i:8,j:48|jiki'j'"), ((192, 256), (256, 192))
    assert seconds(product, *shapes, machine=less) < 0.97 * seconds(product, *shapes, machine=GOLDEN_COVE)
    rows = (1 << 17, 4096)
    assert seconds(i("+ij~i"), rows, machine=less) == pytest.approx(seconds(i("+ij~i"), rows, machine=GOLDEN_COVE))


def test_sums_that_come_and_go_in_two_lines_take_longer() -> None:
    """Blocks of a reduction add to a result whose rows begin anywhere in a line, or with one."""
    free = replace(GOLDEN_COVE, split_store_cycles=0.0)

    def longer(columns: int, block: str) -> float:
        product, shapes = matmul(f"|i:8,j:48{block}"), ((192, 256), (256, columns))
        return seconds(product, *shapes, machine=GOLDEN_COVE) / seconds(product, *shapes, machine=free)

    assert longer(479, ",k:32|kjik'i'j'") > 1.05 > longer(479, "|jiki'j'") > 1.0 == longer(480, ",k:32|kjik'i'j'")
