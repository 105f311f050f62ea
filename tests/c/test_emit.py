"""Hand-written loop IR, compiled and compared with NumPy in float64."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ilang_eq import I, i
from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.lower.ir import Apply, Program
from tests.c import programs
from tests.c.programs import apply, at
from tests.golden import Golden

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def normal(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


SHAPES = [(1, 1, 1), (6, 5, 32), (12, 64, 96), (13, 17, 33), (5, 3, 31), (7, 0, 40), (0, 4, 4), (25, 130, 70)]
MATMULS = {
    "6x32": programs.matmul(6, 32),
    "4x24": programs.matmul(4, 24),
    "3x5": programs.matmul(3, 5),
    "8x16 in blocks of 8": programs.matmul(8, 16, block=8),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MATMULS)
def test_matmul(name: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = normal((m, k), (k, n))
    got = CKernel(MATMULS[name], threads=2)(a, b)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("program", [programs.dot_products(4, 4, 16), programs.transposed(4, 32)], ids=["lanes", "far"])
def test_dot_products(program: Program, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = normal((m, k), (n, k))
    got = CKernel(program, threads=1)(a, b)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (3, 64), (5, 200), (4, 7), (0, 5), (5, 0), (2, 63), (2, 65)], ids=str)
def test_softmax(shape: tuple[int, int]) -> None:
    (x,) = normal(shape)
    got = CKernel(programs.softmax(), threads=3)(x)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True, initial=-np.inf))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 9, 3, 70), (3, 4, 5, 2), (5, 0, 2, 3), (2, 3, 4, 0)], ids=str)
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_tasks_of_three_loops(shape: tuple[int, ...], threads: int) -> None:
    (x,) = normal(shape)
    got = CKernel(programs.batched_sums(), threads=threads)(x)
    np.testing.assert_allclose(got, x.astype(np.float64).sum(3), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 3, 63, 64, 65, 1000])
@pytest.mark.parametrize(
    ("op", "start", "reduce"),
    [
        ("add", 0.0, np.sum),
        ("mul", 1.0, np.prod),
        ("max", -np.inf, lambda x: np.fmax.reduce(x, initial=-np.inf)),
        ("min", np.inf, lambda x: np.fmin.reduce(x, initial=np.inf)),
        ("and", 1.0, lambda x: float(np.all(x != 0))),
        ("xor", 0.0, lambda x: float(np.count_nonzero(x) % 2)),
    ],
)
def test_reduction(op: str, start: float, reduce: Callable[[np.ndarray], float], count: int) -> None:
    x = (1 + normal((count,))[0] / 8).astype(np.float32)
    got = CKernel(programs.reduction(op, start))(x)
    np.testing.assert_allclose(got, reduce(x.astype(np.float64)), rtol=2e-5)


@pytest.mark.parametrize("position", [0, 5, 64, 99])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_extrema_skip_nan_and_keep_infinities(special: float, position: int) -> None:
    x = np.linspace(-3, 3, 100, dtype=np.float32)
    x[position] = special
    assert CKernel(programs.reduction("max", -np.inf))(x) == np.fmax.reduce(x)
    assert CKernel(programs.reduction("min", np.inf))(x) == np.fmin.reduce(x)


def test_maximum_of_nothing_but_minus_infinity() -> None:
    assert CKernel(programs.reduction("max", -np.inf))(np.full(70, -np.inf, np.float32)) == -np.inf


@pytest.mark.parametrize("shape", [(2, 1), (9, 40), (1, 300)], ids=str)
def test_workspace_and_outputs_that_no_kernel_writes(shape: tuple[int, int]) -> None:
    x, y = normal(shape, (3, 2))
    sums, passed, again = CKernel(programs.two_kernels(), threads=2)(x, y)
    np.testing.assert_allclose(sums, (x.astype(np.float64) ** 2).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(passed, y)
    np.testing.assert_array_equal(again, sums)
    assert not np.shares_memory(passed, y)
    assert not np.shares_memory(again, sums)


def test_workspace_buffers_share_memory() -> None:
    chain = i("-ij~ij") >> i("+ij~ji") >> i("+ji~j") >> i("/j~j") >> i("-j~j") >> i("*j~j") >> i("0>j~j")
    kernel = chain.compile(threads=2)
    for shape in ((30, 40), (1, 100), (0, 7)):
        (x,) = normal(shape)
        np.testing.assert_allclose(kernel(x), chain.interpret(x), rtol=1e-4)
    assert kernel._signature(((30, 40),)).workspace <= 2 * 30 * 40 + 64, "of 6 buffers, 2 at a time"


@pytest.mark.parametrize("name", [*MATMULS, "softmax"])
def test_threads_do_not_change_a_bit(name: str) -> None:
    program = programs.softmax() if name == "softmax" else MATMULS[name]
    arrays = normal((37, 50)) if name == "softmax" else normal((37, 50), (50, 70))
    one, three = (CKernel(program, threads=threads)(*arrays) for threads in (1, 3))
    np.testing.assert_array_equal(one, three)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-40, 1e30, np.inf, -np.inf, np.nan]
POINTWISE = {
    **{op: apply(op, at("in0", "i"), at("in1", "i")) for op in ("add", "sub", "mul", "div", "max", "min", "pow")},
    **{op: apply(op, at("in0", "i"), at("in1", "i")) for op in ("gt", "ge", "lt", "le", "eq", "ne")},
    **{op: apply(op, at("in0", "i"), at("in1", "i")) for op in ("and", "or", "xor")},
    "finite_or": apply("finite_or", at("in0", "i"), at("in1", "i")),
    "shift_factor": apply("shift_factor", 0.5, at("in0", "i"), at("in1", "i")),
    "log": apply("log", at("in0", "i"), at("in1", "i")),
    "abs": apply("abs", apply("sub", at("in0", "i"), at("in1", "i"))),
}


def expected(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    finite = np.isfinite(x) & np.isfinite(y)
    table = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.fmax, "min": np.fmin,
        "pow": np.power, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
        "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
        "finite_or": lambda x, y: np.where(np.isfinite(x), x, y),
        "shift_factor": lambda x, y: np.where(finite, np.exp(0.5 * (x - y)), 1.0),
        "log": lambda x, y: np.log(y) / np.log(x),
        "abs": lambda x, y: np.abs(x - y),
    }  # fmt: skip
    return table[name](x, y).astype(np.float64)


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_on_special_values(name: str) -> None:
    pairs = np.array([(x, y) for x in SPECIAL for y in SPECIAL], dtype=np.float32)
    x, y = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    got = CKernel(programs.elementwise(POINTWISE[name], inputs=2))(x, y)
    with np.errstate(all="ignore"):
        want = expected(name, x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=0)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -0.5, -1.0, 1.0, 0.0, -2.0, -3.0, 1.7, 4.0])
def test_literal_exponents(exponent: float) -> None:
    x = np.array([*SPECIAL, 0.3, 7.0], dtype=np.float32)
    got = CKernel(programs.elementwise(apply("pow", at("in0", "i"), exponent)))(x)
    # element by element: np.power takes a square root for a scalar 0.5, which differs from pow at -inf and -0
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), np.full(x.shape, exponent)).astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, 3.4028235e38, 1e39, -1e39, 16777217.0, 1 / 3])
def test_literals_are_read_back_exactly(value: float) -> None:
    got = CKernel(programs.elementwise(Apply("add", (apply("mul", at("in0", "i"), -0.0), apply("add", value, -0.0)))))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got(np.ones(1, np.float32)), np.float32(value))


def test_precedence() -> None:
    a, b, c = (at(f"in{k}", "i") for k in range(3))
    value = apply("sub", apply("sub", a, apply("sub", b, c)), apply("div", a, apply("mul", b, apply("add", b, c))))
    x, y, z = normal((40,), (40,), (40,))
    got = CKernel(programs.elementwise(value, inputs=3))(x, y, z)
    np.testing.assert_allclose(got, (x - (y - z)) - x / (y * (y + z)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", range(1, 68, 3))
def test_a_short_tile_of_any_width(columns: int, threads: int) -> None:
    """There is code for every number of vectors; what it leaves alone stays as it was."""
    a, b = normal((9, 21), (21, columns))
    guarded = np.full(a.shape[0] * columns + 64, 7.0, np.float32)
    out = guarded[: a.shape[0] * columns].reshape(a.shape[0], columns)
    CKernel(programs.matmul(4, 64), threads=threads)(a, b, out=out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
    assert (guarded[out.size :] == 7.0).all()


@pytest.mark.parametrize("flag", ["", "-mno-avx512f", "-mno-avx"])
@pytest.mark.parametrize("width", [5, 6, 14, 30, 50])
def test_tiles_that_are_no_whole_vectors(width: int, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their last vector is masked, in panels and in tiles that stay on the stack as well."""
    if flag and platform.machine() != "x86_64":
        pytest.skip("the flags are for x86-64")
    monkeypatch.setenv("CC", f"cc {flag}")
    split, loops = f"|i:4,j:{width}|", "jki'j'"
    chain = (
        (I | i(f"+kj~kj|j:{width}|jkj'"))
        >> i(f"ik*kj~kij{split}ij1{loops[1:]}")
        >> i(f"+kij~ij{split}ij{loops[1:]}0")
        >> i(f"ij*2~ij{split}ij0i'j'")
    )
    for rows, inner, columns in ((9, 7, width), (4, 3, 2 * width), (5, 11, 3 * width + 1), (3, 2, 1)):
        a, b = normal((rows, inner), (inner, columns))
        guarded = np.full(rows * columns + 64, 7.0, np.float32)
        out = guarded[: rows * columns].reshape(rows, columns)
        chain.compile("c", threads=1)(a, b, out=out)
        np.testing.assert_allclose(out, 2.0 * (a.astype(np.float64) @ b), rtol=1e-4, atol=1e-4)
        assert (guarded[out.size :] == 7.0).all()


@pytest.mark.parametrize("width", [6, 14, 30])
@pytest.mark.parametrize("columns", [5, 14, 61, 210])
def test_sums_of_parts_that_are_no_whole_vectors(width: int, columns: int) -> None:
    """Lanes beyond the end of a part belong to the next: nothing counts twice, in numbers, in rows or beside others."""
    (x,) = normal((9, columns))
    want = x.astype(np.float64)
    e = np.exp(want - want.max(1, keepdims=True))
    softmax = (
        (I & i(f">ij~i|j:{width}|ijj'"))
        >> i("ij-i~ij||i1j")
        >> i("^ij~ij||ij0")
        >> (I & i(f"+ij~i|j:{width}|i0jj'"))
        >> i("ij/i~ij||i10j")
    )
    np.testing.assert_allclose(softmax.compile("c", threads=1)(x), e / e.sum(1, keepdims=True), rtol=1e-5)
    for text in (f"+ij~i|j:{width}|ijj'", f"+ij~i|i:4,j:{width}|iji'j'", f"+ij~i|i:4,j:{width}|ii'jj'"):
        np.testing.assert_allclose(i(text).compile("c", threads=1)(x), want.sum(1), rtol=1e-4, atol=1e-4)
    for text in (f"+ij~j|i:4,j:{width}|jij'i'", f"+ij~j|i:4,j:{width}|iji'j'"):
        np.testing.assert_allclose(i(text).compile("c", threads=1)(x), want.sum(0), rtol=1e-4, atol=1e-4)
    total = i(f"+ij~i|j:{width}|ijj'") >> i(f"+i~.|i:{width}|ii'")
    np.testing.assert_allclose(total.compile("c", threads=1)(x), want.sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 5, 6, 8, 13])
@pytest.mark.parametrize("text", ["+ij~i|i:6,j:4|ijj'i'", "+ij~i|i:12,j:4|ijj'i'", ">ij~i|i:6,j:4|ijj'i'"])
def test_lanes_gathered_across_rows(text: str, rows: int) -> None:
    """Six rows are part of a vector: lanes beyond them read rows that exist, and count for nothing."""
    (x,) = normal((rows, 21))
    want = x.astype(np.float64).sum(1) if text.startswith("+") else x.max(1)
    component = i(text)
    assert "gather_left" in component.compile("c", threads=1).source
    np.testing.assert_allclose(component.compile("c", threads=1)(x), want, rtol=1e-4, atol=1e-4)


def test_narrower_code_for_fewer_lanes() -> None:
    source = emit(programs.matmul(4, 48))
    assert [source.count(f"out0_tile[4][{width}] __attribute__") for width in (16, 32, 48)] == [1, 1, 3], (
        "and once for large results"
    )


GOLDEN: dict[str, Program] = {
    "matmul": programs.matmul(6, 32),
    "dot_products": programs.dot_products(4, 4, 16),
    "softmax": programs.softmax(),
    "sum": programs.reduction("add", 0.0),
    "exp": programs.elementwise(apply("exp", at("in0", "i"))),
    "two_kernels": programs.two_kernels(),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_source(name: str, golden: Golden) -> None:
    golden.check(f"{name}.c", emit(GOLDEN[name]))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are for x86-64")
@pytest.mark.parametrize("flag", ["-mno-avx512f", "-mno-avx", "-fno-openmp"])
def test_narrower_vectors_and_no_openmp(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same source for machines with 8 or 4 lanes, and without threads."""
    monkeypatch.setenv("CC", f"cc {flag}")
    a, b = normal((13, 70), (70, 41))
    want = a.astype(np.float64) @ b
    for program, right in ((MATMULS["4x24"], b), (programs.dot_products(4, 4, 16), np.ascontiguousarray(b.T))):
        np.testing.assert_allclose(CKernel(program, threads=2)(a, right), want, rtol=1e-4, atol=1e-4)
    e = np.exp(a.astype(np.float64))
    np.testing.assert_allclose(CKernel(programs.softmax(), threads=2)(a), e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("gcc") is None, reason="a matter of GCC on x86-64")
@pytest.mark.parametrize(("rows", "width"), [(4, 16), (4, 24)])
def test_rows_of_a_tile_share_what_they_load_on_zen(rows: int, width: int, tmp_path: Path) -> None:
    """No multiply-add reads memory by itself: that would be one load of a vector for every row."""
    (tmp_path / "kernel.c").write_text(emit(programs.matmul(rows, width)))
    flags = ("-O3", "-march=znver3", "-ffp-contract=fast", "-fopenmp-simd", "-S")
    subprocess.run(["gcc", *flags, "kernel.c", "-o", "kernel.s"], cwd=tmp_path, check=True)
    sums = re.findall(r"vfmadd\d+ps.*ymm.*", (tmp_path / "kernel.s").read_text())
    assert len(sums) >= rows * width // 8
    assert [line for line in sums if re.match(r"vfmadd231ps\s.*\(", line)] == []


@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("gcc") is None, reason="a matter of GCC on x86-64")
def test_infinities_take_no_accumulators_place_on_zen(tmp_path: Path) -> None:
    """Twelve accumulators, two vectors, and two for differences are all the registers that there are."""
    distances = (
        (I | i("+jk~kj|j:128,k:8|jkk'j'"))
        >> i("ik-kj~kij|i:16:6,j:8:16|iji'j'ki''j''")
        >> (I & I)
        >> i("kij*kij~kij|i:16:6,j:8:16|iji'j'ki''j''01")
        >> i("+kij~ij|i:16:6,j:8:16|iji'j'ki''j''0")
        >> i("<ij~i|i:96,j:128|ij0i'j'")
        >> i("i^0.5~i|i:96|i0i'")
    )
    (tmp_path / "kernel.c").write_text(distances.compile("c", threads=1).source)
    flags = (
        "-O3",
        "-march=znver3",
        "-fno-trapping-math",
        "-fno-math-errno",
        "-ffp-contract=fast",
        "-fopenmp-simd",
        "-S",
    )
    subprocess.run(["gcc", *flags, "kernel.c", "-o", "kernel.s"], cwd=tmp_path, check=True)
    sums = re.findall(r"vfmadd\d+ps.*ymm.*", (tmp_path / "kernel.s").read_text())
    assert len(sums) >= 12
    assert [line for line in sums if "(%rsp)" in line] == []
