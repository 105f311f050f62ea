"""Online reductions: what is repaired, how, what is refused, and what infinities do."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq.errors import ScheduleError
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.interpreter import interpret
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from tests.lower.execute import execute

TILES = "|i:8,j:16|"


def flash_attention_2() -> Component:
    scores = i(f"ik*jk~ijk{TILES}iji'j'k") >> i(f"+ijk~ij{TILES}iji'j'k0")
    shifted = (I & i(f">ij~i{TILES}ij0i'j'")) >> i(f"ij-i~ij{TILES}ij01i'j'")
    weights = scores >> shifted >> i(f"^ij~ij{TILES}ij0i'j'")
    total = i(f"+ij~i{TILES}ij0i'j'")
    product = i(f"ij*jk~ikj{TILES}ij0i'kj'") >> i(f"+ikj~ik{TILES}iji'kj'0")
    return weights >> (product & total) >> i("ik/i~ik|i:8|i01i'k")


def normal(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def agrees(component: Component, arrays: list[np.ndarray]) -> None:
    graph = wire(component)
    program = lower(graph)
    check(program)
    right = interpret(graph, arrays)
    right = right if isinstance(right, tuple) else (right,)
    for mine, theirs in zip(execute(program, arrays), right, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


def test_flash_attention_2_is_one_kernel_without_a_score_matrix() -> None:
    component = flash_attention_2()
    plan = component.plan([(11, 3), (37, 3), (37, 5)])
    assert plan.kernels == 1
    assert not any({11, 37} <= set(dims) for dims in plan.buffers)
    assert {(c.accumulator, c.statistic, c.kind) for c in plan.corrections} == {
        (6, 2, "max-shift"),
        (7, 2, "max-shift"),
    }
    agrees(component, normal((11, 3), (37, 3), (37, 5)))


def test_siblings_share_the_loop_over_keys() -> None:
    program = lower(wire(flash_attention_2()))
    assert [b.leaf for b in program.buffers if b.leaf == 4] == [4], "the exponentials are computed once"


@pytest.mark.parametrize("row", [[-np.inf, 1.0], [1.0, -np.inf], [-np.inf, -np.inf], [np.inf, 1.0], [-1e30, -np.inf]])
def test_infinities_leave_the_unscheduled_result(row: list[float]) -> None:
    x = np.array([row * 3], np.float32)
    online = (I & i(">ij~i|j:2|jij'")) >> i("ij-i~ij|j:2|j1ij'") >> i("^ij~ij|j:2|j0ij'") >> i("+ij~i|j:2|j0ij'")
    agrees(online, [x])


def test_partial_sum_through_zero() -> None:
    x = np.array([[1.0, -1.0, 3.0, 2.0]], np.float32)
    component = (I & i("+ij~i||ji")) >> i("ij/i~ij||j1i") >> i("ij*j~ij||j0i") >> i("+ij~i||j0i")
    agrees(component, [x, np.ones(4, np.float32)])


@pytest.mark.parametrize(
    "power", [["2^ij~ij||j1i"], ["ij*0.5~ij||j0i", "^ij~ij||j0i"], ["^ij~ij||j0i", "ij*0.5~ij||j0i"]]
)
def test_scaled_and_other_bases_are_repaired(power: list[str]) -> None:
    component = (I & i(">ij~i||ji")) >> i("ij-i~ij||j1i")
    for step in power:
        component = component >> i(step)
    component = component >> i("+ij~i||j0i")
    assert [c.kind for c in component.plan().corrections] == ["max-shift"]
    agrees(component, normal((4, 9)))


def test_a_maximum_of_shifted_values_is_deferred() -> None:
    component = (I & i(">ij~i||ij")) >> i("ij-i~ij||ij1") >> i("<ij~i||ij0")
    assert [c.kind for c in component.plan().corrections] == ["shift"]
    agrees(component, normal((4, 9)))


@pytest.mark.parametrize("after", ["ij+ij~ij||j0i", "ij>ij~ij||j0i"])
def test_what_does_not_separate_is_refused(after: str) -> None:
    weights = (I & i(">ij~i||ji")) >> i("ij-i~ij||j1i") >> i("^ij~ij||j0i")
    with pytest.raises(ScheduleError, match="does not separate"):
        lower(wire(weights >> i(after) >> i("+ij~i||j0i")))


@pytest.mark.parametrize(
    ("statistic", "shift"), [("+", "ij-i"), ("+", "ij+i"), (">", "ij+i"), ("<", "ij-i"), ("*", "ij-i")]
)
@pytest.mark.parametrize("total", "+>")
def test_what_would_grow_out_of_an_underflow_is_refused(statistic: str, shift: str, total: str) -> None:
    powers = (I & i(f"{statistic}ij~i||ji")) >> i(f"{shift}~ij||ji1") >> i("^ij~ij||ji0")
    with pytest.raises(ScheduleError, match="may have to grow"):
        lower(wire(powers >> i(f"{total}ij~i||ji0")))


MAX = i(">ij~i||ji")
POWER = i("^ij~ij||ji0")
SUM = i("+ij~i||ji0")
SHIFTED = i("ij-i~ij||ji1")
RISING = np.linspace(-2000, 2000, 9, dtype=np.float32) * np.array([[1], [-1], [0.5], [2]], np.float32)
"""Rows whose powers overflow in either direction until the extremum is known."""

CAPPED = {
    "v - max v": (I & MAX) >> SHIFTED >> POWER >> SUM,
    "max of powers": (I & MAX) >> SHIFTED >> POWER >> i(">ij~i||ji0"),
    "min v - v": (I & i("<ij~i||ji")) >> ~i("i-ij~ij||ji0") >> POWER >> SUM,
    "0.5^(max v - v)": (I & MAX) >> ~i("i-ij~ij||ji0") >> i("0.5^ij~ij||ji1") >> SUM,
    "0.5^(v - min v)": (I & i("<ij~i||ji")) >> SHIFTED >> i("0.5^ij~ij||ji1") >> SUM,
    "(v - max v)/8": (I & MAX) >> SHIFTED >> i("ij/8~ij||ji0") >> POWER >> SUM,
    "0.3v - 0.3·max v": (i("ij*0.3~ij||ji") & (MAX >> i("0.3*i~i||i1"))) >> i("ij-i~ij||ji01") >> POWER >> SUM,
    "0.3v - max 0.3v, each its own": (
        (i("ij*0.3~ij||ji") & (i("0.3*ij~ij||ji") >> i(">ij~i||ji0"))) >> i("ij-i~ij||ji01") >> POWER >> SUM
    ),
    "-(max v) + v": (I & (MAX >> i("-i~i||i0"))) >> i("ij+i~ij||ji1") >> POWER >> SUM,
    "v + b - max v, b a row's": (
        (I & i(">ij~i||ji") & i("<ij~i||ij")) >> (i("ij-i~ij||ji1") | I) >> i("ij+i~ij||ji0") >> POWER >> SUM
    ),
    "v² - max v², each its own": (
        ((I & I) >> i("ij*ij~ij||ji") & (((I & I) >> i("ij*ij~ij||ji")) >> i(">ij~i||ji0")))
        >> i("ij-i~ij||ji01")
        >> POWER
        >> SUM
    ),
}
SQUARED = (I & I) >> i("ij*ij~ij||ji")
UNCAPPED = {
    "2v - max v": (i("ij*2~ij||ji") & MAX) >> i("ij-i~ij||ji01") >> POWER >> SUM,
    "v/2 - max v": (i("ij/2~ij||ji") & MAX) >> i("ij-i~ij||ji01") >> POWER >> SUM,
    "v - max 2v": (I & (i("ij*2~ij||ji") >> i(">ij~i||ji0"))) >> SHIFTED >> POWER >> SUM,
    "v² - max v": (SQUARED & MAX) >> i("ij-i~ij||ji01") >> POWER >> SUM,
    "max of powers of v² - max v": (SQUARED & MAX) >> i("ij-i~ij||ji01") >> POWER >> i(">ij~i||ji0"),
    "v + w - max v": (((I & MAX) >> SHIFTED) | I) >> i("ij+ij~ij||ji0") >> POWER >> SUM,
    "v + vᵀ - max v": (i("ij+ji~ij||ji") & MAX) >> i("ij-i~ij||ji01") >> POWER >> SUM,
    "v + min v": (I & i("<ij~i||ji")) >> i("ij+i~ij||ji1") >> POWER >> SUM,
    "min v - v²": (SQUARED & i("<ij~i||ji")) >> ~i("i-ij~ij||ji01") >> POWER >> SUM,
    "e^(v² - max v)·e^max v, which cancels": (
        (SQUARED & (MAX >> (I & i("^i~i||i0")))) >> ((i("ij-i~ij||ji01") >> POWER) | I) >> i("ij*i~ij||ji01") >> SUM
    ),
    "e^v / e^max v": (i("^ij~ij||ji") & (MAX >> i("^i~i||i0"))) >> i("ij/i~ij||ji01") >> SUM,
}


@pytest.mark.parametrize("name", CAPPED)
def test_powers_of_what_the_extremum_bounds_are_repaired(name: str) -> None:
    assert len(CAPPED[name].plan().corrections) == 1
    agrees(CAPPED[name], [RISING])


@pytest.mark.parametrize("maximum", [i(">ijk~ij||jik") >> i(">ij~i||ji0"), i(">ijk~i||jik")])
def test_a_maximum_over_several_axes_bounds_what_it_has_seen(maximum: Component) -> None:
    powers = (I & maximum) >> i("ijk-i~ijk||ji1k") >> i("^ijk~ijk||jik0")
    component = powers >> i("+ijk~ij||jik0") >> i("+ij~i||ji0")
    assert [c.kind for c in component.plan().corrections] == ["max-shift"]
    agrees(component, [RISING.reshape(4, 3, 3)])


@pytest.mark.parametrize("name", UNCAPPED)
def test_powers_that_may_overflow_on_the_way_are_refused(name: str) -> None:
    with pytest.raises(ScheduleError, match="may overflow on the way"):
        lower(wire(UNCAPPED[name]))


def test_the_exponent_of_a_repaired_statistic_is_refused() -> None:
    """e^(u - max u) with u = v - max v: the inner maximum moves where the outer one does not see it."""
    shifted = (I & MAX) >> SHIFTED
    outer = (shifted & (shifted >> i(">ij~i||ji0"))) >> i("ij-i~ij||ji01") >> POWER >> SUM
    with pytest.raises(ScheduleError, match="itself repaired"):
        lower(wire(outer))


@pytest.mark.parametrize("row", [[np.nan, 1.0], [-np.inf, 1.0], [np.inf, 1.0], [-np.inf, -np.inf], [np.inf, -np.inf]])
@pytest.mark.parametrize(("statistic", "shift"), [("+", "ij-i"), ("+", "i-ij"), (">", "ij-i"), ("<", "ij+i")])
@pytest.mark.parametrize("extremum", "><")
def test_extrema_of_shifted_values_skip_what_is_no_number(
    row: list[float], statistic: str, shift: str, extremum: str
) -> None:
    staged = "1" if shift != "i-ij" else "0"
    values = I & i(f"{statistic}ij~i||ji")
    shifted = ~i(f"{shift}~ij||ji{staged}") if shift == "i-ij" else i(f"{shift}~ij||ji{staged}")
    agrees(values >> shifted >> i(f"{extremum}ij~i||ji0"), [np.array([row], np.float32)])


@pytest.mark.parametrize("statistic", [">", "<", "+"])
def test_a_statistic_that_cancels_may_be_zero_on_the_way(statistic: str) -> None:
    running = (i(f"{statistic}ij~i||ji") & I) >> (~i("ij/i~ij||ji1") & I)
    x = np.array([[0.0, -1.0, 2.0], [3.0, 0.0, -2.0]], np.float32)
    agrees(running >> i("ij*i~ij||ji01") >> i("+ij~i||ji0"), [x])


def test_a_partial_statistic_may_not_escape() -> None:
    with pytest.raises(ScheduleError, match="before its reduction is complete") as caught:
        lower(wire((I & i(">ij~i||ji")) >> i("ij-i~ij||j1i")))
    assert "`ij-i~ij||1ji`" in caught.value.legal
    assert "`ij-i~ij||j1i`" not in caught.value.legal


def test_no_update_in_a_loop_the_statistic_lacks() -> None:
    weights = (I & i("+ij~i||ji")) >> i("ij/i~ij||ji1")
    with pytest.raises(ScheduleError, match="updated again in every step of loop k"):
        lower(wire(weights >> i("ij*jk~ikj||jki0") >> i("+ikj~ik||jki0")))


def test_log_sum_exp_shares_its_maximum() -> None:
    inner = (I & i(">ij~i||ij")) >> i("ij-i~ij||ij1") >> i("^ij~ij||ij0") >> i("+ij~i||ij0") >> i("$i~i||i0")
    maximum = i(">ij~i||ij")
    component = (inner & maximum) >> i("i+i~i||i01")
    agrees(component, normal((4, 9)))
