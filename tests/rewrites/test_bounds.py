"""Intervals that values are known to lie in, and maxima that are not subtracted where powers cannot overflow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq import optimize
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites import RuleSet, algebra, bounds, default, vocabulary
from ilang_eq.rewrites.decode import operands
from ilang_eq.rewrites.encode import encode, term_name
from ilang_eq.rewrites.engine import Engine
from ilang_eq.rewrites.naming import name_axes
from ilang_eq.rewrites.space import Reduce
from tests.rewrites.components import ATTENTION, SCORES, SOFTMAX, chained, report_of, space_of

STEPS = {
    "-ij~ij": lambda x: -x,
    "^ij~ij": np.exp,
    "/ij~ij": lambda x: 1 / x,
    "ij+1~ij": lambda x: x + 1,
    "ij-3~ij": lambda x: x - 3,
    "2-ij~ij": lambda x: 2 - x,
    "0.5*ij~ij": lambda x: 0.5 * x,
    "-4*ij~ij": lambda x: -4 * x,
    "ij/3~ij": lambda x: x / 3,
    "2/ij~ij": lambda x: 2 / x,
    "5<ij~ij": lambda x: np.fmin(x, 5),
    "-6>ij~ij": lambda x: np.fmax(x, -6),
}


def interval(component: Component) -> tuple[float, float]:
    """What is known of the output."""
    engine = Engine()
    engine.execute(vocabulary.DECLARATIONS)
    engine.ruleset("algebra")
    engine.execute(algebra.CONTEXT)
    engine.execute(bounds.CONTEXT)
    terms = name_axes(wire(component))
    engine.execute(encode(terms))
    engine.execute(f"(relation asked (Term)) (asked {term_name(len(terms.nodes) - 1)})")
    engine.saturate(vocabulary.ANALYSIS)
    tables = engine.tables(("least", "most", "asked"))
    ((output,),) = tables["asked"]
    least, most = (dict(tables[end]) for end in ("least", "most"))
    return least.get(output, -math.inf), most.get(output, math.inf)


def test_intervals() -> None:
    tanh = [i(t) for t in ("ij*2~ij", "^ij~ij", "ij+1~ij", "2/ij~ij", "1-ij~ij")]
    assert interval(chained(tanh)) == pytest.approx((-1, 1), rel=1e-4)
    assert interval(chained([*tanh, i("20*ij~ij"), i(">ij~i")])) == pytest.approx((-20, 20), rel=1e-4)
    assert interval(i("^ij~ij") >> i("ij+1~ij") >> i("/ij~ij")) == pytest.approx((0, 1), rel=1e-4)
    assert interval(i("5<ij~ij") >> i("^ij~ij")) == pytest.approx((0, math.exp(5)), rel=1e-4)
    assert interval(i("+ij~ij")) == (-math.inf, math.inf)


def test_what_float32_may_have_lost_is_not_known() -> None:
    """In float32 the sum is 10⁹ or 64 more."""
    unit = i("0>ij~ij") >> i("1<ij~ij")
    least, most = interval(unit >> i("ij+1000000000~ij") >> i("ij-1000000000~ij"))
    assert least < -64
    assert most > 64


@given(
    st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=7),
    st.sampled_from([-math.inf, -1e30, -7.5, -1.0, 0.0, 0.3, 5.0, 1e30, math.inf, math.nan]),
)
def test_values_lie_in_their_intervals(steps: list[str], x: float) -> None:
    least, most = interval(chained([i(step) for step in steps]))
    value = np.float64(x)
    with np.errstate(all="ignore"):
        for step in steps:
            value = STEPS[step](value)
    assert math.isnan(value) or least <= value <= most


def softcap(cap: float) -> Component:
    tanh = [i(t) for t in (f"ij/{cap}~ij", "ij*2~ij", "^ij~ij", "ij+1~ij", "2/ij~ij", "1-ij~ij", f"ij*{cap}~ij")]
    return SCORES >> chained(tanh) >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")


def without_maximum(component: Component) -> bool:
    """Whether some way to compute the output takes no maximum or minimum over an axis."""
    space = space_of(component)
    free: set[int] = set()
    for _ in space.classes:
        free |= {
            c
            for c, found in space.classes.items()
            for node in found.nodes
            if not (isinstance(node, Reduce) and node.op in ("max", "min")) and free.issuperset(operands(node))
        }
    wire, _ = space.outputs[0]
    return wire in free


def test_a_softmax_of_what_is_capped_needs_no_maximum() -> None:
    assert without_maximum(softcap(20))
    assert without_maximum(i("-30>ij~ij") >> i("30<ij~ij") >> SOFTMAX)
    assert not without_maximum(softcap(60))
    assert not without_maximum(i("30<ij~ij") >> SOFTMAX)
    assert report_of(ATTENTION).rules["unshift-power"][0] == 0
    assert report_of(softcap(20)).stop_reason == "saturated"


@pytest.mark.parametrize(("rules", "maxima"), [(default, 0), (default - "unshift-power", 1)], ids=["without", "with"])
def test_the_search_takes_no_maximum_of_what_is_capped(rules: RuleSet, maxima: int) -> None:
    best = optimize(softcap(20), [(256, 64)] * 3, threads=1, rules=rules, database=False)
    assert str(best).count('i(">') == maxima


def test_a_log_sum_exp_of_what_is_capped_needs_no_maximum() -> None:
    capped = i("-30>ij~ij") >> i("30<ij~ij")
    powers = (I & i(">ij~i")) >> (i("ij-i~ij") >> i("^ij~ij"))
    total = ((powers >> i("+ij~i") >> i("$i~i")) & i(">ij~i")) >> i("i+i~i")
    assert without_maximum(capped >> total)
    assert not without_maximum(total)


@pytest.mark.parametrize("rules", [default, default - "unshift-power"], ids=["without", "with"])
def test_results_of_capped_attention(rules: RuleSet) -> None:
    """With and without a maximum, and of infinities and NaN."""
    best = optimize(softcap(20), [(64, 24), (64, 24), (64, 8)], threads=1, rules=rules, database=False)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) * 3 for shape in ((50, 24), (70, 24), (70, 8)))
    q[3, 2], q[5, 1], k[7, 0], q[8] = math.inf, math.nan, -math.inf, 0
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_allclose(best(q, k, v), softcap(20).interpret(q, k, v), rtol=2e-5, atol=1e-5)
