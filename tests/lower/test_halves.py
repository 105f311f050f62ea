"""Loops that stop at the diagonal of a symmetric result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from ilang_eq.lower.division import divided
from ilang_eq.lower.fills import in_first_blocks
from ilang_eq.lower.halves import FEW, LARGE, Half, few, halved
from ilang_eq.lower.ir import Accumulate, Assign, Buffer, Declare, Diagonal, Extent, For, Kernel, Program, Statement
from ilang_eq.lower.walk import declared_in, walk
from tests.c.programs import apply, at, loop

N, K = Extent(0, 0), Extent(0, 1)


def square(splits: str, order: str) -> Component:
    """x·xᵀ in one nest."""
    return (I & I) >> i(f"ik*jk~ijk|{splits}|{order}") >> i(f"+ijk~ij|{splits}|{order}0")


def halves(program: Program, kernel: Kernel) -> tuple[dict[str, Diagonal], Half | None]:
    """Where the loops of ``kernel`` stop, by variable, and what is copied."""
    stopping, half = halved(in_first_blocks(kernel), {buffer.name: buffer for buffer in program.buffers})
    check(replace(program, kernels=tuple(stopping if k == kernel else k for k in program.kernels)))
    return {s.variable: s.diagonal for s in walk(stopping.body) if isinstance(s, For) and s.diagonal}, half


def only(component: Component) -> tuple[dict[str, Diagonal], Half | None]:
    program = lower(wire(component))
    (kernel,) = program.kernels
    return halves(program, kernel)


def test_the_example() -> None:
    stops, half = only(square("i:6,j:16", "iji'kj'".replace("i'k", "ki'")))
    assert stops == {"j": Diagonal(("j",), ("i",), 6, (K,))}
    assert half is not None
    assert (half.buffer.name, half.above, half.summed) == ("out0", False, (K,))


@pytest.mark.parametrize(
    ("splits", "order", "expected", "above"),
    [
        # the inner axis stops
        ("i:6,j:16", "jiki'j'", {"i": Diagonal(("i",), ("j",), 16, (K,))}, True),
        # at every level that is inside one of the other axis
        (
            "i:8:6,j:2:16",
            "iji'j'ki''j''",
            {"j": Diagonal(("j",), ("i",), 48, (K,)), "j1": Diagonal(("j", "j1"), ("i", "i1"), 6, (K,))},
            False,
        ),
        (
            "i:8:6,j:2:16",
            "jij'i'ki''j''",
            {"i": Diagonal(("i",), ("j",), 32, (K,)), "i1": Diagonal(("i", "i1"), ("j", "j1"), 16, (K,))},
            True,
        ),
        # in blocks of the sum
        ("i:6,j:16,k:32", "kijk'i'j'", {"j": Diagonal(("j",), ("i",), 6, (K,))}, False),
        # sums that are not in registers go on
        ("i:6", "ijki'", {}, False),
        ("", "ijk", {}, False),
        ("i:6,j:16", "kiji'j'", {}, False),
    ],
)
def test_orders(splits: str, order: str, expected: dict[str, Diagonal], above: bool) -> None:
    stops, half = only(square(splits, order))
    assert stops == expected
    assert (half is not None) == bool(expected)
    assert half is None or half.above == above


def by_hand(*inside: Statement, after: tuple[Statement, ...] = ()) -> Half | None:
    """Tiles of x·xᵀ with more ``inside`` the loop over columns, and ``after`` it."""
    sums = loop(
        "k", K, loop("i1", N, loop("j1", N, PRODUCT, limit=16, outer=("j",)), limit=6, outer=("i",)), reduces=True
    )
    columns = loop("j", N, sums, *inside, step=16)
    kernel = Kernel("by_hand", (loop("i", N, Declare("row"), columns, *after, step=6, parallel=True),))
    out, row = Buffer("out0", (N, N), "output", symmetric=True), Buffer("row", (N,), "local")
    return halved(kernel, {"out0": out, "row": row, "in0": Buffer("in0", (N, K), "input")})[1]


PRODUCT = Accumulate(at("out0", "i+i1", "j+j1"), "add", apply("mul", at("in0", "i+i1", "k"), at("in0", "j+j1", "k")))


def test_what_is_for_other_tiles_goes_on() -> None:
    assert by_hand() is not None
    first = loop("j1", N, Assign(at("row", "j+j1"), at("out0", "i", "j+j1")), limit=16, outer=("j",))
    assert by_hand(first) is None


def test_a_part_of_a_result_is_added_to_it_alone() -> None:
    """Sums that lie elsewhere may stop if all that becomes of them is elements of the result in the same place."""
    into = loop("j1", N, Accumulate(at("row", "j+j1"), "add", at("in0", "i", "j+j1")), limit=16, outer=("j",))

    def added(*value: str) -> Half | None:
        return by_hand(into, after=(loop("c", N, Accumulate(at("out0", "i", "c"), "add", at("row", *value))),))

    assert added("c") is not None
    assert added("i") is None


def test_what_becomes_of_a_tile_may_be_in_its_loops() -> None:
    tiles = "|i:6,j:16|ijki'j'"
    products = (I & I) >> i("ik*jk~ijk" + tiles) >> i("+ijk~ij" + tiles + "0")
    stops, half = only(products >> i("ij*0.5~ij|i:6,j:16|ij0i'j'") >> i("^ij~ij|i:6,j:16|ij0i'j'"))
    assert stops == {"j": Diagonal(("j",), ("i",), 6, (K,))}
    assert half is not None


def test_sums_of_chunks_stop_too() -> None:
    component = (I & I) >> i("ki*kj~kij|i:8:6,j:16,k:256|ikji'k'i''j'") >> i("+kij~ij|i:8:6,j:16,k:256|ikji'k'i''j'0")
    division = divided(lower(wire(component)))
    (chunks,) = (version.kernel for version in division.apart[0] if version.long)
    stops, half = halves(division.program, chunks)
    assert stops == {"j": Diagonal(("j",), ("i",), 48, (N,))}
    assert half is not None


def test_sums_of_chunks_of_all_rows_stop_too() -> None:
    """What is left out of a chunk is added up as it was filled, and copied over in the end."""
    component = (I & I) >> i("ki*kj~kij|i:6,j:16,k:32|kijk'i'j'") >> i("+kij~ij|i:6,j:16,k:32|kijk'i'j'0")
    division = divided(lower(wire(component)))
    (kernel,) = division.program.kernels
    assert any(name.startswith("out0_chunk") for name in declared_in(kernel.body))
    stops, half = halves(division.program, kernel)
    assert stops == {"j": Diagonal(("j",), ("i",), 6, (N,))}
    assert half is not None
    assert half.buffer.name == "out0"


@pytest.mark.parametrize(
    ("rows", "terms", "expected"),
    [
        (100, (FEW - 1,), True),
        (100, (FEW,), False),
        (100, (2, FEW // 2), False),
        (100, (), True),
        (LARGE - 1, (FEW,), False),
        (LARGE, (FEW,), True),
        (LARGE, (2 * FEW,), False),
    ],
)
def test_few_terms(rows: int, terms: tuple[int, ...], expected: bool) -> None:
    summed = tuple(Extent(1, d) for d in range(len(terms)))
    assert few(summed, N, {(0, 0): rows, **{(1, d): terms[d] for d in range(len(terms))}}) is expected
