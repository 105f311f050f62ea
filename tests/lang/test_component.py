"""Components: arity, equality, text."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given

from ilang_eq.lang.component import Chain, Compose, Fanout, I, Pair, Swap, i
from tests.conformance_cases import cases, component
from tests.strategies import Typed, components

NAMES = {"i": i, "I": I}


@pytest.mark.parametrize("case", cases("combinators.json"), ids=lambda c: c["id"])
def test_arity(case: dict[str, Any]) -> None:
    built = component(case["tree"])
    assert (built.inputs, built.outputs) == (case["n_in"], case["n_out"])


@given(components())
def test_text_rebuilds_the_component(typed: Typed) -> None:
    built = typed.component
    assert eval(str(built), NAMES) == built
    assert hash(eval(str(built), NAMES)) == hash(built)
    assert (built.inputs, built.outputs) == (len(typed.inputs), len(typed.outputs))


f, g, h = i("-i~i"), i("^i~i"), i("i*j~ij")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (f >> g >> h, 'i("-i~i") >> i("^i~i") >> i("i*j~ij")'),
        (f >> (g >> h), 'i("-i~i") >> (i("^i~i") >> i("i*j~ij"))'),
        (f >> g << h, 'i("-i~i") >> i("^i~i") << i("i*j~ij")'),
        (f >> (g << h), 'i("-i~i") >> (i("^i~i") << i("i*j~ij"))'),
        ((I & f) >> h, '(I & i("-i~i")) >> i("i*j~ij")'),
        (I & f >> g, 'I & i("-i~i") >> i("^i~i")'),
        (I & f | g, 'I & i("-i~i") | i("^i~i")'),
        (I & (f | g), 'I & (i("-i~i") | i("^i~i"))'),
        (f | (g | h), 'i("-i~i") | (i("^i~i") | i("i*j~ij"))'),
        (~(f >> h), '~(i("-i~i") >> i("i*j~ij"))'),
        (~~h >> f, '~~i("i*j~ij") >> i("-i~i")'),
        (~(I | I), "~(I | I)"),
    ],
)
def test_parentheses_only_where_needed(built: Any, text: str) -> None:
    assert str(built) == text
    assert repr(built) == text
    assert eval(text, NAMES) == built


def test_operators_build_what_they_say() -> None:
    assert f >> g == Chain(f, g)
    assert f << g == Compose(f, g)
    assert f & g == Fanout(f, g)
    assert f | g == Pair(f, g)
    assert ~f == Swap(f)


def test_equality_is_structural() -> None:
    assert i("+ij~i") == i(" + ij ~ i ")
    assert i("+ij~i") != i("+ik~i")
    assert f >> g != f << g
    assert (f >> g) >> h != f >> (g >> h)
    assert f & g != f | g
    assert ~f != f
    assert f != "i"
    assert len({f >> g, i("-i~i") >> i("^i~i"), g >> f}) == 2


def test_numbers_are_no_inputs() -> None:
    assert i("0>i~i").inputs == 1
    assert i("2*3~.").inputs == 0
    assert (i("2~.") >> h).inputs == 1


def test_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        f.inputs = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_copies_are_equal() -> None:
    whole = (I & f) >> h
    assert copy.deepcopy(whole) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert hash(pickle.loads(pickle.dumps(whole))) == hash(whole)


@pytest.mark.parametrize("other", ["-i~i", 3, None])
def test_operands_must_be_components(other: Any) -> None:
    for combine in (
        lambda a, b: a >> b,
        lambda a, b: a << b,
        lambda a, b: a & b,
        lambda a, b: a | b,
    ):
        with pytest.raises(TypeError, match="unsupported operand"):
            combine(f, other)


def test_ten_thousand_leaves_need_no_recursion() -> None:
    left, same, right = f, f, f
    for _ in range(10_000):
        left, same, right = left >> g, same >> g, g >> right
    assert left == same
    assert hash(left) == hash(same)
    assert left != right
    assert left.leaves == 10_001
    assert str(left).count(">>") == str(right).count(">>") == 10_000
