"""Where large components are cut."""

from __future__ import annotations

from ilang_eq import I, i
from ilang_eq.extract.cuts import between_products, split
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites import default
from ilang_eq.rewrites.explore import explore

SCORES = i("ik*jk~ijk") >> i("+ijk~ij")
SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
ATTENTION = SCORES >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")


def test_blocks_are_cut_between_and_equal_blocks_are_equal() -> None:
    space, _ = explore(wire(ATTENTION >> ATTENTION >> ATTENTION), default)
    pieces = split(space, [64 if dim else 1024 for _, dim in space.extents], 8)
    assert len(pieces) == 3
    assert pieces[1].space == pieces[2].space
    assert [piece.result is None for piece in pieces] == [False, False, True]


def test_what_fits_is_not_cut() -> None:
    space, _ = explore(wire(ATTENTION), default)
    (whole,) = split(space, [64] * len(space.extents), 14)
    assert whole.space.classes == space.classes


def test_what_a_product_reads_again_and_again_is_cut_and_what_a_sum_of_squares_reads_once_is_not() -> None:
    scaled = (I & (I & I) >> i("ij*ij~ij") >> i("+ij~i")) >> i("ij/i~ij")
    linear = i("ik*kj~ikj") >> i("+ikj~ij")
    norm, product = (
        (space, [64] * len(space.extents))
        for space, _ in (
            explore(wire(scaled), default),
            explore(wire((scaled | I) >> linear), default),
        )
    )
    assert between_products(*norm) == []
    assert [piece.result is None for piece in between_products(*product)] == [False, True]
