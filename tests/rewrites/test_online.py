from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq.lang.component import Component, I, i
from ilang_eq.rewrites import RuleSet, default
from ilang_eq.rewrites.explore import explore
from ilang_eq.rewrites.space import ENode, Reduce, Repair, Space
from tests.lower.test_online import CAPPED, UNCAPPED
from tests.random_programs import random_case
from tests.rewrites.components import ATTENTION, SOFTMAX, space_of
from tests.rewrites.evaluation import Array, evaluate_space, node_value

MAX = I & i(">ij~i")
SHIFTED = MAX >> i("ij-i~ij")
EXP = SHIFTED >> i("^ij~ij")
SUM = i("+ij~i")
TOTAL = I & i("+ij~i")


def kinds(component: Component, rules: RuleSet = default) -> set[str]:
    """The kinds of repair of a component."""
    return {repair.kind for repair in space_of(component, rules).repairs}


@pytest.mark.parametrize(
    ("component", "kind"),
    [
        pytest.param(EXP >> SUM, "max-shift", id="sum of exp(s - m)"),
        pytest.param((I & i("<ij~i")) >> i("i-ij~ij").__invert__() >> i("^ij~ij") >> SUM, "max-shift", id="exp(m - s)"),
        pytest.param(SHIFTED >> i("2^ij~ij") >> SUM, "max-shift", id="2^(s - m)"),
        pytest.param(SHIFTED >> i("ij*0.5~ij") >> i("^ij~ij") >> SUM, "max-shift", id="exp((s - m)/2)"),
        pytest.param(EXP >> i("ij*ij~ij") >> SUM, "max-shift", id="exp(s - m)·v"),
        pytest.param(EXP >> i("-ij~ij") >> SUM, "max-shift", id="-exp(s - m)"),
        pytest.param(SHIFTED >> i("-ij~ij") >> i("0.5^ij~ij") >> SUM, "max-shift", id="0.5^(m - s)"),
        pytest.param(EXP >> (I & I) >> i("ij*ij~ij") >> SUM, "max-shift", id="exp(s - m) squared"),
        pytest.param(EXP >> i(">ij~i"), "max-shift", id="max of exp(s - m)"),
        pytest.param(TOTAL >> i("ij/i~ij") >> SUM, "divisor", id="s/d"),
        pytest.param(TOTAL >> i("ij*i~ij") >> SUM, "scale", id="s·d"),
        pytest.param(SHIFTED >> i(">ij~i"), "shift", id="max of s - m"),
        pytest.param(MAX >> i("ij+i~ij") >> i("<ij~i"), "shift", id="min of s + m"),
    ],
)
def test_repairs(component: Component, kind: str) -> None:
    assert kinds(component, default - "algebra") == {kind}


@pytest.mark.parametrize(
    "component",
    [
        pytest.param(EXP >> i("ij+1~ij") >> SUM, id="exp(s - m) + b"),
        pytest.param(EXP >> i("ij+ij~ij") >> SUM, id="exp(s - m) + t"),
        pytest.param(SHIFTED >> i("ij^ij~ij").__invert__() >> SUM, id="t^(s - m)"),
        pytest.param(SHIFTED >> i("-2^ij~ij") >> SUM, id="(-2)^(s - m)"),
        pytest.param(SHIFTED >> SUM, id="sum of s - m"),
        pytest.param(SHIFTED >> i("0>ij~ij") >> SUM, id="relu(s - m)"),
        pytest.param(SHIFTED >> i("ij*ij~ij") >> i("^ij~ij") >> SUM, id="exp(t·(s - m))"),
        pytest.param(EXP >> i("$ij~ij") >> i("ij*ij~ij") >> SUM, id="ln exp(s - m)"),
        pytest.param(MAX >> i("ij/i~ij") >> i(">ij~i"), id="max of s/m, of unknown sign"),
        pytest.param((I & i(">ij~j")) >> i("ij-j~ij") >> i("^ij~ij") >> SUM, id="a maximum over other axes"),
        pytest.param(EXP >> i("+ij~j"), id="a sum over other axes"),
        pytest.param(EXP >> i("*ij~i"), id="a product of exp(s - m)"),
        pytest.param(EXP >> i("/ij~ij") >> SUM, id="1/exp(s - m) grows with m"),
        pytest.param(SHIFTED >> i("0.5^ij~ij") >> SUM, id="0.5^(s - m) grows with m"),
        pytest.param(MAX >> i("ij+i~ij") >> i("^ij~ij") >> SUM, id="exp(s + m) grows with m"),
        pytest.param(TOTAL >> i("ij-i~ij") >> i("^ij~ij") >> SUM, id="exp(s - Σs) moves both ways"),
        pytest.param(TOTAL >> i("ij-i~ij") >> i("^ij~ij") >> i(">ij~i"), id="max of exp(s - Σs)"),
    ],
)
def test_refusals(component: Component) -> None:
    assert kinds(component, default - "algebra") == set()


@pytest.mark.parametrize("name", CAPPED)
def test_powers_of_what_the_extremum_bounds_are_repaired(name: str) -> None:
    """As in the pass that lowers."""
    assert "max-shift" in kinds(CAPPED[name])


@pytest.mark.parametrize("name", UNCAPPED)
def test_powers_that_may_overflow_on_the_way_are_refused(name: str) -> None:
    """As in the pass that lowers."""
    assert "max-shift" not in kinds(UNCAPPED[name]) | kinds(UNCAPPED[name], default - "algebra")


def test_sums_of_forms_need_a_common_factor() -> None:
    def two(first: str, second: str) -> Component:
        doubled = SHIFTED >> (i(first) & i(second)) >> i("ij+ij~ij")
        return doubled >> SUM

    assert kinds(two("^ij~ij", "^ij~ij"), default - "algebra") == {"max-shift"}
    assert kinds(two("^ij~ij", "2^ij~ij"), default - "algebra") == set()


def test_attention_repairs_its_accumulators() -> None:
    space = space_of(ATTENTION)
    (m,) = (c for c, found in space.classes.items() if any(n.op == "max" for n in found.nodes if isinstance(n, Reduce)))
    output, _ = space.outputs[0]
    assert {(r.accumulator.of == output, r.statistic == m, r.kind) for r in space.repairs} == {
        (False, True, "max-shift"),
        (True, True, "max-shift"),
        (True, False, "divisor"),
    }


def test_a_form_passes_an_inner_reduction_that_distributes() -> None:
    inner = i("ij*ijk~ijk") >> i("+ijk~ij")
    assert kinds(EXP >> inner >> SUM, default - "algebra") == {"max-shift"}
    blocked = i("ij*ijk~ijk") >> i("*ijk~ij")
    assert kinds(EXP >> blocked >> SUM, default - "algebra") == set()


def test_log_sum_exp_is_online() -> None:
    assert "max-shift" in kinds((EXP >> SUM) >> i("$i~i"))


@pytest.mark.parametrize("rule", ["form-along", "form-capped", "form-exponential", "repair-sum", "online"])
def test_dropping_an_online_rule_loses_the_repair(rule: str) -> None:
    assert kinds(SOFTMAX) == {"max-shift"}
    assert kinds(SOFTMAX, default - rule) == set()


def moved(space: Space, repair: Repair, arrays: list[Array], seed: int) -> tuple[Array, Array]:
    """The accumulator's operand, before and after the statistic moves while other unfinished reductions stay."""
    rng = random.Random(seed)
    picks = {c: rng.choice(found.nodes) for c, found in space.classes.items()}
    values = evaluate_space(space, arrays, lambda c, _: picks[c])
    over = {axis for node in space.classes[repair.statistic].nodes if isinstance(node, Reduce) for axis in node.axes}
    node = space.classes[repair.accumulator.of].nodes[repair.accumulator.node]
    assert isinstance(node, Reduce)
    after = dict(values)
    statistic = values[repair.statistic]
    after[repair.statistic] = statistic + np.random.default_rng(seed).uniform(0.1, 0.5, statistic.shape)
    for c in sorted(space.classes):
        if c > repair.statistic and not _finishes(picks[c], over):
            after[c] = node_value(space, picks[c], arrays, after)
    return values[node.operand], after[node.operand]


def _finishes(node: ENode, over: set[int]) -> bool:
    return isinstance(node, Reduce) and bool(set(node.axes) & over)


def assert_separable(space: Space, repair: Repair, before: Array, after: Array) -> None:
    """The move changed the operand by a factor, or a term, that has the statistic's axes only."""
    node = space.classes[repair.accumulator.of].nodes[repair.accumulator.node]
    assert isinstance(node, Reduce)
    axes = space.classes[node.operand].axes
    other = tuple(n for n, axis in enumerate(axes) if axis not in space.classes[repair.statistic].axes)
    change = after - before if repair.kind == "shift" else after / before
    if change.size and np.all(np.isfinite(change)) and np.all(before != 0):
        spread = change.max(axis=other) - change.min(axis=other)
        assert np.all(spread <= 1e-6 * (1 + np.abs(change).max())), repair


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_repairs_of_random_programs_separate(seed: int) -> None:
    case = random_case(seed)
    arrays: list[Array] = [np.abs(a).astype(np.float64) + 0.5 for a in case.arrays]
    space, _ = explore(case.plain, default)
    with np.errstate(all="ignore"):
        for repair in space.repairs:
            assert_separable(space, repair, *moved(space, repair, arrays, seed))
