from __future__ import annotations

import pytest

from ilang_eq.lang.component import Component, I, i
from ilang_eq.rewrites import RuleSet, default, rule_set
from ilang_eq.rewrites.check import check_space
from ilang_eq.rewrites.space import Apply, EClass, Number, Read, Reduce, Space, Variant, View
from tests.rewrites.components import space_of

NONE = rule_set("none")


def test_without_rules_the_component_comes_back() -> None:
    space = space_of(i("ik*jk~ijk") >> i("+ijk~ij") >> i("^ij~ij"), NONE)
    assert list(space.classes.values()) == [
        EClass((0, 2), (Read(0, (0, 2)),)),
        EClass((1, 2), (Read(1, (1, 2)),)),
        EClass((0, 1, 2), (Apply("mul", (0, 1)),)),
        EClass((0, 1), (Reduce("add", (2,), 2),)),
        EClass((0, 1), (Apply("pow", (3,)),)),
    ]
    assert space.outputs == ((4, (0, 1)),)


def test_commuted_repeats_are_left_out_and_the_users_order_kept() -> None:
    space = space_of(i("ij+ij~ij") >> (I & I) >> i("ij*ij~ij"))
    assert [found.nodes for found in space.classes.values()][2:] == [(Apply("add", (0, 1)),), (Apply("mul", (2, 2)),)]


def test_nodes_that_close_a_cycle_are_pruned() -> None:
    space = space_of(i("-ij~ij") >> i("-ij~ij") >> i("-ij~ij"))
    assert [found.nodes for found in space.classes.values()] == [(Read(0, (0, 1)),), (Apply("sub", (0,)),)]


def test_the_components_own_expression_comes_first() -> None:
    space = space_of(i("ij/i~ij") >> i("+ij~i"))
    (output, _) = space.outputs[0]
    assert isinstance(output, int)
    first, *others = space.classes[output].nodes
    assert isinstance(first, Reduce)
    assert [node.op for node in others if isinstance(node, Apply)] == ["div"]


@pytest.mark.parametrize(
    ("component", "source"),
    [
        (i("+ij~ji"), Read(0, (1, 0))),
        (i("ij*1~ij"), Read(0, (0, 1))),
        (i("+2~."), Number(2.0)),
        (i("^ij~ij") >> i("+ii~i"), View(1, (1, 2), (0, 0))),
    ],
)
@pytest.mark.parametrize("rules", [default, default - "eliminate-copy"])
def test_an_output_that_is_something_else_renamed_is_copied(
    component: Component, source: Read | Number | View, rules: RuleSet
) -> None:
    space = space_of(component, rules)
    check_space(space)
    (output, _) = space.outputs[0]
    assert isinstance(output, int)
    (copy,) = space.classes[output].nodes
    assert isinstance(copy, Apply)
    if component != i("ij*1~ij") or "eliminate-copy" in rules:
        assert space.classes[copy.operands[0]].nodes == (source,)
    assert Variant(output, 0) in space.nests


def broken(space: Space) -> list[Space]:
    """``space`` with one invariant broken, in several ways."""
    classes = dict(space.classes)
    last = max(classes)
    found = classes[last]
    wrong = [
        EClass(found.axes, (*found.nodes, found.nodes[0])),
        EClass(found.axes[:-1], found.nodes),
        EClass(found.axes, (Apply("pow", (last,)),)),
        EClass(found.axes, ()),
    ]
    return [
        Space({**classes, last: c}, space.outputs, space.extents, space.nests, (), (), space.splittable) for c in wrong
    ]


@pytest.mark.parametrize("n", range(4))
def test_check_space_notices(n: int) -> None:
    space = space_of(i("ij+i~ij") >> i("^ij~ij"))
    check_space(space)
    with pytest.raises(AssertionError):
        check_space(broken(space)[n])
