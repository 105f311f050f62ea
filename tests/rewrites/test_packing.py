from __future__ import annotations

import numpy as np
import pytest

from ilang_eq import I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites import default
from ilang_eq.rewrites.explore import explore
from ilang_eq.rewrites.space import Apply, Read, Space
from tests.rewrites.evaluation import assert_classes_agree

MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")


def copies(space: Space) -> int:
    """Classes that copy an argument."""
    classes = space.classes.values()
    return sum(
        isinstance(node, Apply)
        and len(node.operands) == 1
        and isinstance(space.classes[node.operands[0]].nodes[0], Read)
        for found in classes
        for node in found.nodes
    )


def test_both_factors_of_a_product_may_be_packed() -> None:
    space, _ = explore(wire(MATMUL), default)
    assert copies(space) == 2
    products = [len(found.nodes) for found in space.classes.values() if len(found.axes) == 3]
    assert products == [4], "either, both or none"


def test_packed_products_are_the_same_products() -> None:
    space, _ = explore(wire(MATMUL >> MATMUL), default)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((2, 3), (3, 4), (4, 5))]
    assert assert_classes_agree(space, arrays) > 6


def test_without_the_rule_nothing_is_packed() -> None:
    assert copies(explore(wire(MATMUL), default - "pack")[0]) == 0


def test_what_is_read_once_is_not_packed() -> None:
    assert copies(explore(wire(i("ij*ij~ij") >> i("+ij~i")), default)[0]) == 0


def test_both_sides_of_an_outer_difference_may_be_packed() -> None:
    distances = i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij")
    space, _ = explore(wire(distances), default)
    assert copies(space) == 2
    rng = np.random.default_rng(0)
    assert assert_classes_agree(space, [rng.standard_normal((2, 3)), rng.standard_normal((4, 3))]) == 2
    assert copies(explore(wire(distances), default - "pack-outer")[0]) == 0


@pytest.mark.parametrize("op", ["+", "<", ">"])
def test_both_sides_of_what_is_like_an_outer_difference_may_be_packed(op: str) -> None:
    sums = i(f"ik{op}jk~ijk") >> i("+ijk~ij")
    space, _ = explore(wire(sums), default)
    assert copies(space) == 2
    rng = np.random.default_rng(0)
    assert assert_classes_agree(space, [rng.standard_normal((2, 3)), rng.standard_normal((4, 3))]) == 2
    assert copies(explore(wire(sums), default - "pack-outer")[0]) == 0


def test_vectors_are_not_packed() -> None:
    assert copies(explore(wire(i("i+j~ij") >> i("+ij~i")), default)[0]) == 0


def test_a_difference_from_a_row_is_not_packed() -> None:
    assert copies(explore(wire(i("ij-i~ij")), default)[0]) == 0
