from __future__ import annotations

from ilang_eq.extract.absurd import without_absurd
from ilang_eq.extract.machine import load
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import Variant
from tests.extract import spaces


def ways(sizes: int) -> set[Variant]:
    """The ways left to compute the product of two matrices and a vector, all of ``sizes``."""
    structure = Structure(spaces.product_of_two_matrices_and_a_vector())
    left = without_absurd(structure, dict.fromkeys(range(3), sizes), load("generic_x86_64"))
    return {fusion.root for fusion in left.fusions(9)}


def test_a_cubic_way_to_a_quadratic_result_is_left_out() -> None:
    assert ways(500) == {Variant(9, 1)}


def test_small_extents_leave_nothing_out() -> None:
    assert ways(2) == {Variant(9, 0), Variant(9, 1)}


def test_what_only_absurd_ways_read_is_left_out_too() -> None:
    structure = Structure(spaces.product_of_two_matrices_and_a_vector())
    left = without_absurd(structure, dict.fromkeys(range(3), 500), load("generic_x86_64"))
    assert 4 in structure.classes
    assert left.classes == (7, 9)
