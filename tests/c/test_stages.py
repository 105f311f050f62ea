"""Nests in stages: exponentials of several vectors side by side, with the same results as one by one."""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.c.nodes import VectorNest
from ilang_eq.c.stages import iterations_apart
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Assign
from tests.c.programs import M, apply, at, loop
from tests.c.ulp import worst_ulp_of_several

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

AVX512 = "avx512dq" in Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else False
BOUND = 1.0 if platform.machine() == "x86_64" and not os.environ.get("CC") else 1.65
"""Of exponentials: elsewhere they take the steps of single floats."""
ROWS = (I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0")
SOFTMAX = ROWS >> (I & i("+ij~i||i0j")) >> i("ij/i~ij||i10j")
HANDED_ON = i("i*2~i|i:64|") >> (I & i("^i~i|i:64|ii'0")) >> i("i*i~i|i:64|ii'01")
FUSED = ROWS >> (I & i("+ij~i||ij0")) >> i("ij/i~ij||i10j")
MANY = i("^ij~ij|i:24,j:192|jii'j'") >> i("+ij~j|i:24,j:192|jii'j'0")
COLUMNS = i("^ij~ij|i:24,j:16|jii'j'") >> i("+ij~j|i:24,j:16|jii'j'0")
NEGATIVE = i("^ij~ij") >> i("-ij~ij||ij0")
ACROSS = i("^kij~kij||kji") >> i("+kij~ij||kji0")
"""What is accumulated lies in other rows than the vectors of the loop."""
TWICE = i("^i~i|i:64|") >> i("^i~i|i:64|ii'0") >> i("i+1~i|i:64|ii'0")


def capped(width: int) -> Component:
    """A power of a quotient of a power, of ``width`` columns at a time."""
    first = i(f"^ij~ij|j:{width}|jij'")
    for text in ("ij+1~ij", "/ij~ij", "^ij~ij", "ij*3~ij"):
        first = first >> i(f"{text}|j:{width}|jij'0")
    return (first & i(f"^ij~ij|j:{width}|jij'")) >> i(f"ij+ij~ij|j:{width}|jij'01")


TILE = i("ik*jk~kij|i:4,j:16|ijki'j'") >> i("+kij~ij|i:4,j:16|ijki'j'0") >> i("^ij~ij|i:4,j:16|ij0i'j'")
SUMMED = i("ij*1~ij|i:6,j:32|jii'j'") >> i("^ij~ij|i:6,j:32|jii'j'0") >> i("+ij~j|i:6,j:32|jii'j'0")
OF_ROWS = i("^i~i") >> i("i*ij~ij||i0j")
COMPONENTS = {
    "rows": (ROWS, ((5, 200),)),
    "softmax": (SOFTMAX, ((5, 200),)),
    "handed on": (HANDED_ON, ((200,),)),
    "twice": (TWICE, ((130,),)),
    "fused": (FUSED, ((5, 200),)),
    "fused, whole strips": (FUSED, ((3, 128),)),
    "fused, blocks": (FUSED, ((2, 9000),)),
    "fused, short": (FUSED, ((4, 63),)),
    "fused, largest": (NEGATIVE >> (I & i(">ij~i||ij0")) >> i("ij/i~ij||i10j"), ((5, 200),)),
    "fused, smallest": (i("^ij~ij") >> (I & i("<ij~i||ij0")) >> i("ij/i~ij||i10j"), ((5, 200),)),
    "fused, product": (i("^ij~ij") >> (I & i("*ij~i||ij0")) >> i("ij/i~ij||i10j"), ((5, 100),)),
    "fused, two": (i("^ij~ij") >> ((I & i("+ij~i||ij0")) >> i("ij/i~ij||i10j") & i(">ij~i||ij0")), ((5, 200),)),
    "across": (ACROSS, ((3, 130, 100),)),
    "many": (MANY, ((50, 600),)),
    "capped": (capped(96), ((5, 200),)),
    "capped, short": (capped(16), ((3, 50),)),
    "capped, long": (capped(1024), ((2, 2050),)),
    "alone": (COLUMNS, ((70, 40),)),
    "tile": (TILE, ((9, 7), (35, 7))),
    "summed": (SUMMED, ((13, 70),)),
    "not of the lane": (OF_ROWS, ((7,), (7, 70))),
}


def source(component: Component) -> str:
    return emit(lower(wire(component)))


@needs_compiler
@pytest.mark.parametrize("name", COMPONENTS)
def test_results(name: str) -> None:
    component, shapes = COMPONENTS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    if name == "rows":
        arrays[0][:, 3] = [-np.inf, 8, np.nan, 2, -200]
    if name == "fused, largest":
        arrays[0][:, 70] = [-np.inf, 8, np.nan, np.inf, 2]
    with np.errstate(invalid="ignore", over="ignore"):
        wanted, found = component.interpret(*arrays), component.compile()(*arrays)
        pairs = zip(wanted, found, strict=True) if isinstance(wanted, tuple) else [(wanted, found)]
        for want, got in pairs:
            if name == "fused, largest":
                # what underflows is rounded with what it is subtracted from: its zeros may have either sign
                want, got = np.where(np.isinf(want), np.inf, want), np.where(np.isinf(got), np.inf, got)
            np.testing.assert_allclose(got, want.astype(np.float32), rtol=3e-6, atol=0)


def test_where_there_are_stages() -> None:
    assert "exp_of16_each(" in source(ROWS)
    assert source(HANDED_ON).count("mul0_each[") == 6, "declared, kept and read, in whole tiles and short ones"
    assert source(TWICE).count("exp_of16_each(pow") == 4, "both, in whole tiles and short ones"
    assert "exp_of16_each(mul" not in source(OF_ROWS)
    assert "exp_of16_each(pow" not in source(i("^i~i|i:16|")), "one vector stands alone"
    assert "ABREAST(192 / LANES16)" in source(MANY), "as many as divide them stand side by side"
    assert "_each" not in source(i("i*2~i|i:64|"))


def test_what_is_left_of_strips_is_whole_vectors_and_part_of_one() -> None:
    text = source(ROWS)
    rest = text[text.index("in0_1 / 32 * 32; j < in0_1; j += 32") :]
    whole, left = rest.index("exp_of16_alone("), rest.index("exp_of16(")
    assert whole < rest.index("store16(&out0[") < left


def test_several_calls_have_passes_to_themselves() -> None:
    """One for each, and one for what divides."""
    groups = "for (int group = 0; group < {0} / LANES16"
    assert source(capped(96)).count(groups.format(96)) == 3
    assert source(capped(96)).count("_row[96 / LANES16];") == 2
    assert source(capped(1024)).count(groups.format(64)) == 6, "in strips of 64, of two versions"
    assert source(HANDED_ON).count(groups.format(64)) == 1, "a single call"


def test_a_pass_that_stores_and_sums_computes_once_and_sums_beside() -> None:
    text = source(FUSED)
    assert text.count("exp_of16_each(pow") == 6, "whole and half strips for few rows and others; for late rows"
    strips = [part.split("#pragma omp simd", 1)[0] for part in text.split("exp_of16_each(pow")[1:]]
    assert all("_tile[j_lane]) += pow2;" in strip for strip in strips)
    assert [bool(re.search(r"V16\(out0\[.*= pow2", strip)) for strip in strips] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]


@needs_compiler
def test_two_loops_of_a_block_may_ask_for_the_same_rows() -> None:
    first = i("^ij~ij|i:4,j:64|iji'j'")
    component = first >> (I & i(">ij~i|i:4,j:64|ij0i'j'")) >> i("ij/i~ij|i:4,j:64|i10ji'j'")
    x = np.random.default_rng(0).standard_normal((9, 200), dtype=np.float32)
    np.testing.assert_allclose(component.compile()(x), component.interpret(x), rtol=3e-6)


@needs_compiler
def test_threads_that_share_a_row_compute_what_one_does() -> None:
    tile = "|k:64,j:64|ikjk'j'"
    component = i("ik*kj~ikj" + tile) >> i("+ikj~ij" + tile + "0") >> i("^ij~ij||i0j")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, dtype=np.float32) * 0.05 for shape in ((4, 512), (512, 4096))]
    one, two = (np.asarray(component.compile(threads=threads)(*arrays)) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_single_vector_takes_the_steps_of_several() -> None:
    """But in a tail: there its constants would take registers throughout."""
    text = source(COLUMNS)
    assert "exp_of16_alone(V16(in0[" in text
    assert "exp_of16(load16(&in0[" in text


def test_iterations_that_read_what_others_write_stay_together() -> None:
    lane = loop("i", M, limit=64)
    own = VectorNest((lane,), 16, (Assign(at("x", "i"), apply("exp", at("x", "i"))),))
    next_one = VectorNest((lane,), 16, (Assign(at("x", "i"), apply("exp", at("x", "i+k"))),))
    same = VectorNest((lane,), 16, (Assign(at("x", "k"), apply("exp", at("x", "k"))),))
    assert iterations_apart(own, (lane,))
    assert not iterations_apart(next_one, (lane,))
    assert not iterations_apart(same, (lane,))


@needs_compiler
def test_error_bound() -> None:
    assert worst_ulp_of_several("exp_of", "exp(x[i])", stride=4099) <= BOUND


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are for x86-64")
@pytest.mark.parametrize(
    ("flag", "bound"), [("-mno-avx512f", 1.0), ("-mno-fma -mno-avx512f", 1.65), ("-mno-avx", 1.65)]
)
def test_error_bound_with_shorter_vectors(flag: str, bound: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"cc {flag}")
    assert worst_ulp_of_several("exp_of", "exp(x[i])", stride=4 * 4099) <= bound


@needs_compiler
@pytest.mark.parametrize("other", [-87.1, -95.0, -103.9, -200.0, 88.0, 89.5, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("flag", ["", "-mno-avx512f"])
def test_what_an_element_becomes_does_not_depend_on_those_beside_it(
    other: float, flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flag and platform.machine() != "x86_64":
        pytest.skip("the flag is for x86-64")
    monkeypatch.setenv("CC", f"cc {flag}")
    x = np.random.default_rng(0).uniform(-87, 87, (24, 192)).astype(np.float32)
    far = x.copy()
    far[:, ::7] = other
    kernel = i("^ij~ij|i:24,j:192|iji'j'").compile()
    near, beside = np.asarray(kernel(x)), np.asarray(kernel(far))
    with np.errstate(over="ignore"):
        want = np.exp(far.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(beside, want, rtol=1e-6, atol=1.5e-45)
    beside[:, ::7] = near[:, ::7]
    np.testing.assert_array_equal(near, beside)


@pytest.mark.long
@needs_compiler
def test_error_bound_everywhere() -> None:
    worst = worst_ulp_of_several("exp_of", "exp(x[i])", stride=1)
    print(f"exp of several vectors: {worst:.3f} ulp")
    assert worst <= BOUND


@needs_compiler
def test_a_parallel_loop_alone_goes_in_bursts() -> None:
    """Its range is a task's, and which elements are left over depends on the threads: all are computed alike."""
    component, x = i("^i~i"), np.linspace(-110, 95, 100_001, dtype=np.float32)
    assert "exp_of16_each(out" not in source(component)
    assert source(component).count("exp_of16_alike(out") == 2, "streamed or not"
    with np.errstate(over="ignore"):
        want = np.asarray(component.interpret(x)).astype(np.float32)
    alone = np.asarray(component.compile(threads=1)(x))
    np.testing.assert_allclose(alone, want, rtol=1e-6, atol=1e-44)
    np.testing.assert_array_equal(np.asarray(component.compile(threads=2)(x)), alone)
    parts = [np.asarray(component.compile()(part)) for part in np.split(x, [7, 5000, 5001])]
    np.testing.assert_array_equal(np.concatenate(parts), alone)


@needs_compiler
@pytest.mark.parametrize("op", ["&&", "||", "^^"])
@pytest.mark.parametrize("tail", ["|i:64|iji'0", "||ij0", "||ji0"])
def test_truth_values_of_exponentials_are_accumulated_one_by_one(op: str, tail: str) -> None:
    first = "^ji~ji|i:64|iji'" if "64" in tail else f"^ji~ji||{tail[2:4]}"
    component = i(first) >> i(f"{op}ji~i{tail}")
    x = np.random.default_rng(0).standard_normal((5, 200), dtype=np.float32)
    x[2, 3] = x[4, 7] = -1e4
    found = CKernel(lower(wire(component)))(x)
    np.testing.assert_array_equal(found, component.interpret(x.astype(np.float64)))
