from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites import RuleSet, default, rule_set
from ilang_eq.rewrites.algebra import EXACT
from ilang_eq.rewrites.check import check_space
from ilang_eq.rewrites.engine import Limits
from ilang_eq.rewrites.explore import explore
from tests.rewrites.components import (
    ATTENTION,
    MATMUL,
    RMS,
    RMS_NORM_LINEAR,
    chained,
    formulas,
    report_of,
    space_of,
)
from tests.rewrites.evaluation import assert_classes_agree, evaluate_space, node_value
from tests.rewrites.programs import random_program

ALGEBRA = rule_set("algebra")
EVERY = ALGEBRA + rule_set("risky")
COMMUTE = rule_set("commute")

CLIPPED = i("0>ij~ij") >> i("4<ij~ij")
"""Between 0 and 4."""

TRIGGERS: dict[str, list[Component]] = {
    "commute": [i("ij+i~ij"), i("ij*j~ij"), i("ij>i~ij"), i("ij<ji~ij")],
    "eliminate-copy": [i("^ij~ij") >> i(f"{op}ij~ji") >> i("-ij~ij") for op in "+*><"],
    "double-negation": [i("^ij~ij") >> i("-ij~ij") >> i("-ij~ji")],
    "negate-difference": [i("ij-i~ij") >> i("-ij~ij"), i("ij-1~ij") >> i("-ij~ji")],
    "unit": [i("^ij~ij") >> i(text) >> i("-ij~ij") for text in ("ij*1~ij", "1*ij~ij", "ij/1~ij")],
    "merge-extrema": [i(">ijk~ij") >> i(">ij~i"), i("<ijk~ik") >> i("<ik~.")],
    "split-extremum": [i("i+ij~ij") >> i(">ij~."), i("i+ij~ij") >> i("<ij~.")],
    "split-total-extremum": [i(">ij~."), i("<ijk~.")],
    "split-total": [i("+ij~."), i("*ijk~.")],
    "shift-extremum": [
        i(text) >> i(f"{op}ij~i") for op in "><" for text in ("ij+i~ij", "ij-i~ij", "i-ij~ij", "ij+.~ij")
    ],
    "scale-extremum": [i(text) >> i(f"{op}ij~i") for op in "><" for text in ("3*ij~ij", "ij/4~ij")],
    "negate-reduction": [i("-ij~ij") >> i(f"{op}ij~i") for op in "><+"],
    "minimum-of-increasing": [
        i("^ij~ij") >> i("<ij~i"),
        *((I & I) >> i("ij*ij~ij") >> i(text) >> i("<ij~i") for text in ("ij^0.5~ij", "$ij~ij")),
    ],
    "merge-sums": [i("+ijk~ij") >> i("+ij~i"), i("*ijk~ik") >> i("*ik~k")],
    "split-sum": [i("i*ij~ij") >> i("+ij~."), i("ik*ijk~ijk") >> i("+ijk~k")],
    "hoist-product": [i("i*ij~ij") >> i("+ij~i"), i(".*ij~ij") >> i("+ij~.")],
    "hoist-division": [i("ij/i~ij") >> i("+ij~i"), i("ij/7~ij") >> i("+ij~j")],
    "defer-division": [
        i("ij/i~ij") >> i("ij*jk~ijk") >> i("+ijk~ik"),
        i("ij/i~ij") >> i("ij/j~ij") >> i("+ij~i"),
    ],
    "merge-divisions": [i("ij/i~ij") >> i("ij/i~ij") >> i("+ij~i")],
    "regroup-product": [
        i("i*ij~ij") >> i("ij*i~ij") >> i("+ij~i"),
        i("i*ij~ij") >> i("ij*ij~ij") >> i("+ij~i"),
        i("ij*j~ij") >> i("ij*jk~ijk") >> i("+ijk~ik"),
    ],
    "regroup-quotient": [
        i("i*ij~ij") >> i("ij/i~ij") >> i("+ij~i"),
        i("i*ij~ij") >> i("ij/j~ij") >> i("+ij~i"),
        i("ij/i~ij") >> i("ij*i~ij") >> i("+ij~i"),
    ],
    "sink-product": [i("+ij~i") >> i("3*i~i"), i("+ij~i") >> i("i*.~i")],
    "sink-division": [i("+ij~i") >> i("i/i~i"), i("+ij~i") >> i("i/3~i")],
    "associate-contraction": [MATMUL >> MATMUL, MATMUL >> i("ij*j~ij") >> i("+ij~i")],
    "multiply-by-reciprocal": [i("/i~i") >> i("i*ij~ij"), i("1/i~i") >> i("i*ij~ij")],
    "merge-numbers": [i(f"i{inner}20~i") >> i(f"i{outer}2~i") >> i("^i~i") for inner in "*/" for outer in "*/"],
    "scale-difference": [i("2/i~i") >> i("1-i~i") >> i("i*20~i") >> i("^i~i")],
    "square": [i("ij^2~ij")],
    "unshift-power": [CLIPPED >> (I & i(f"{op}ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> i("+ij~i") for op in "><"],
    "cancel-power": [
        (I | i("0>i~i") >> i("4<i~i") >> i("^i~i"))
        >> (i("ij/i~ij") & (i("-ij~ij") | I) >> i("ij/i~ij"))
        >> i("ij/ij~ij")
    ],
    "unshift-log": [(I | i("0>i~i") >> i("4<i~i") >> (i("^i~i") & I)) >> (i("i/i~i") >> i("$i~i") | I) >> i("i+i~i")],
    "distribute-sum": [i("ij+ij~ij") >> i("+ij~i"), i("ij-ji~ij") >> i("+ij~j")],
    "expand-square": [
        i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij"),
        i("ij-j~ij") >> (I & I) >> i("ij*ij~ij") >> i("+ij~i"),
    ],
    "exp-of-sum": [i("ij+i~ij") >> i("^ij~ij"), i("ij-i~ij") >> i("^ij~ij")],
    "exp-of-log": [i("-i~i") >> i("$i~i") >> i("^i~i"), i("-i~i") >> i("^i~i") >> i("$i~i")],
    "cancel": [(i("i*ij~ij") & I) >> i("ij/i~ij")],
}
"""Components that each rule rewrites."""


def test_every_rule_has_triggers() -> None:
    assert set(TRIGGERS) == {rule.name for rule in EVERY}


def arrays_for(component: Component, extents: list[int], seed: int) -> list[np.ndarray]:
    """Positive arrays near one; dimensions that must agree take one of ``extents``."""
    shapes = infer(wire(component))
    data = np.random.default_rng(seed)
    sizes: dict[tuple[int, int], int] = {}
    arrays: list[np.ndarray] = []
    for index, rank in enumerate(shapes.ranks):
        names = [shapes.input_extent(index, dim) for dim in range(rank or 0)]
        arrays.append(data.uniform(0.5, 1.5, [sizes.setdefault(n, extents[len(sizes) % 4]) for n in names]))
    return arrays


@pytest.mark.parametrize(
    ("name", "component"),
    [pytest.param(name, c, id=f"{name}-{n}") for name, found in TRIGGERS.items() for n, c in enumerate(found)],
)
@settings(max_examples=5)
@given(extents=st.lists(st.integers(0, 4), min_size=4, max_size=4), seed=st.integers(0, 2**16))
def test_a_rule_fires_and_is_sound(name: str, component: Component, extents: list[int], seed: int) -> None:
    space, report = explore(wire(component), COMMUTE + rule_set(name))
    assert report.rules[name][0] > 0
    check_space(space)
    assert_classes_agree(space, arrays_for(component, extents, seed))


ODD = (math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 3.0, 0.1, -7.3)
"""Numbers that a rule which is not exact may change."""


@pytest.mark.parametrize("name", [rule.name for rule in EXACT])
@settings(max_examples=10)
@given(extents=st.lists(st.integers(0, 4), min_size=4, max_size=4), seed=st.integers(0, 2**16), odd=st.booleans())
def test_exact_rules_keep_the_bits(name: str, extents: list[int], seed: int, odd: bool) -> None:
    """NaN equals NaN, and zeros of either sign are equal."""
    data = np.random.default_rng(seed)
    for component in TRIGGERS[name]:
        space, _ = explore(wire(component), COMMUTE + rule_set(name))
        arrays = arrays_for(component, extents, seed)
        arrays = [data.choice(ODD, array.shape) if odd else data.standard_normal(array.shape) for array in arrays]
        values = evaluate_space(space, arrays)
        for c, found in space.classes.items():
            for node in found.nodes[1:]:
                with np.errstate(all="ignore"):
                    value = np.broadcast_to(node_value(space, node, arrays, values), values[c].shape)
                np.testing.assert_array_equal(value, values[c], err_msg=f"{node} and {found.nodes[0]}")


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_the_rules_together_saturate_and_are_sound(seed: int) -> None:
    program = random_program(seed)
    space, report = explore(program.graph, ALGEBRA)
    assert report.stop_reason == "saturated"
    check_space(space)
    assert_classes_agree(space, program.arrays)


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_risky_rules_are_sound_even_where_only_a_limit_stops_them(seed: int) -> None:
    program = random_program(seed)
    space, _ = explore(program.graph, EVERY, Limits(nodes=300))
    check_space(space)
    assert_classes_agree(space, program.arrays)


def outputs(component: Component, rules: RuleSet = default) -> set[str]:
    """Every formula of a component's output."""
    space = space_of(component, rules)
    wire, _ = space.outputs[0]
    assert isinstance(wire, int)
    return formulas(space, wire, 14)


def test_a_root_leaves_a_minimum_only_where_nothing_is_negative() -> None:
    """The root of what is negative is NaN, which a minimum skips."""
    root = i("ij^0.5~ij") >> i("<ij~i")
    assert outputs(root) == {"min_1(pow(a, Number(value=0.5)))"}
    assert "pow(min_1(pow(a)), Number(value=0.5))" in outputs(i("^ij~ij") >> root)


S = "add_3(mul(a, b))"
P = f"pow(sub({S}, max_2({S})))"
DEFERRED = f"div(add_2(mul({P}, c)), add_2({P}))"
NAIVE = f"add_2(mul(div({P}, add_2({P})), c))"


def test_attention_contains_the_deferred_division() -> None:
    assert {NAIVE, DEFERRED} <= outputs(ATTENTION)


@pytest.mark.parametrize("dropped", ["defer-division", "hoist-division", "algebra"])
def test_dropping_a_rule_loses_the_deferred_division(dropped: str) -> None:
    found = outputs(ATTENTION, default - dropped)
    assert NAIVE in found
    assert DEFERRED not in found


def test_rms_norm_folds_into_the_product_that_follows() -> None:
    rms = "pow(div(add_2(mul(a, a)), Number(value=64.0)), Number(value=0.5))"
    assert f"div(add_2(mul(mul(a, b), c)), {rms})" in outputs(RMS_NORM_LINEAR)
    scaled = (I & (RMS >> i("/i~i"))) >> i("ij*i~ij") >> MATMUL
    assert f"div(add_2(mul(a, b)), {rms})" in outputs(scaled)
    powered = (I & (RMS >> i("i^-1~i"))) >> i("ij*i~ij") >> MATMUL
    assert f"mul(pow({rms}, Number(value=-1.0)), add_2(mul(a, b)))" in outputs(powered)


def test_a_scale_moves_into_either_operand() -> None:
    found = outputs(i("ik*jk~ijk") >> i("+ijk~ij") >> i("ij*0.125~ij"))
    eighth = "Number(value=0.125)"
    assert {f"add_2(mul(mul(a, {eighth}), b))", f"add_2(mul(mul(b, {eighth}), a))"} <= found


@pytest.mark.parametrize(
    ("component", "bracketings"),
    [(MATMUL >> MATMUL >> MATMUL, 5), (chained([MATMUL] * 3) >> i("ik*k~ik") >> i("+ik~i"), 14)],
)
def test_matrix_chains_contain_every_bracketing(component: Component, bracketings: int) -> None:
    assert len(outputs(component, default - "pack")) == bracketings
    assert len(outputs(component, default - "pack" - "associate-contraction")) == 1


def test_matrix_chain_of_four_in_every_order() -> None:
    cheaper = "add_4(mul(a, add_3(mul(b, add_2(mul(c, d))))))"
    assert cheaper in outputs(MATMUL >> MATMUL >> MATMUL)


def test_common_subexpressions_meet() -> None:
    twice = (i("^ij~ij") & i("^pq~pq")) >> i("ij+ij~ij")
    assert len(space_of(twice, rule_set("none")).classes) == 3


def test_renaming_axes_changes_nothing() -> None:
    renamed = (
        i("zk*yk~zyk") >> i("+abc~ab") >> (I & i(">uv~u")) >> i("xy-x~xy") >> i("^ba~ba") >> (I & i("+ij~i"))
        >> i("qr/q~qr") >> i("ac*cb~abc") >> i("+kij~ki")
    )  # fmt: skip
    assert space_of(renamed) == space_of(ATTENTION)
    ours, theirs = report_of(renamed), report_of(ATTENTION)
    assert (ours.nodes, ours.facts) == (theirs.nodes, theirs.facts)


CHAINS: dict[str, tuple[Callable[[int], str], str]] = {
    "exponentials": (lambda n: "^ij~ij", ""),
    "exponentials of numbers": (lambda n: ("ij*2~ij", "ij/3~ij")[n % 2], "^ij~ij"),
    "products": (lambda n: "ij*ij~ij", ""),
    "sums": (lambda n: "ij+ij~ij", ""),
    "products and sums": (lambda n: ("ij*ij~ij", "ij+ij~ij")[n % 2], ""),
    "summed products": (lambda n: "ij*ij~ij", "+ij~i"),
    "summed products and sums": (lambda n: ("ij*ij~ij", "ij+ij~ij")[n % 2], "+ij~i"),
    "summed free factors": (lambda n: "ij*i~ij", "+ij~i"),
    "summed alternating factors": (lambda n: ("ij*i~ij", "ij*ij~ij")[n % 2], "+ij~i"),
    "summed factors of every kind": (lambda n: ("ij*i~ij", "ij*ij~ij", "ij*j~ij", "ij*2~ij")[n % 4], "+ij~i"),
    "summed quotients": (lambda n: ("ij/i~ij", "ij*ij~ij")[n % 2], "+ij~i"),
    "summed factors and divisors": (lambda n: ("ij/i~ij", "ij*ij~ij", "ij*i~ij", "ij/ij~ij")[n % 4], "+ij~i"),
    "summed numbers": (lambda n: ("ij*2~ij", "ij/3~ij")[n % 2], "+ij~i"),
    "summed biases": (lambda n: ("ij+j~ij", "0>ij~ij")[n % 2], "+ij~i"),
    "summed squares": (lambda n: "ij^2~ij", "+ij~i"),
    "shifted maxima": (lambda n: ("ij+i~ij", "ij-i~ij")[n % 2], ">ij~i"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_saturate_with_linear_growth(name: str) -> None:
    step, last = CHAINS[name]

    def nodes(length: int) -> int:
        report = report_of(chained([i(step(n)) for n in range(length)] + ([i(last)] if last else [])), ALGEBRA)
        assert report.stop_reason == "saturated"
        return report.nodes

    small, middle, large = nodes(16), nodes(32), nodes(64)
    assert large - middle <= 2 * (middle - small) + 8
