"""Calling kernels: what arrays they take, what they refuse before anything runs, and what they leave alone."""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ilang_eq import i
from ilang_eq.c.build import build
from ilang_eq.c.caller import quick_entry
from ilang_eq.c.kernel import CKernel
from ilang_eq.errors import ArrayError, OptionError
from tests.c import programs
from tests.c.programs import apply, at

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

MATMUL = CKernel(programs.matmul(4, 8), threads=2)
PAIR = CKernel(programs.two_kernels(), threads=1)
SCALED = CKernel(
    programs.program(
        (1, 0),
        [programs.tensor("in0", programs.M), programs.tensor("in1"), programs.tensor("out0", programs.M)],
        programs.Kernel(
            "mul0",
            (
                programs.loop(
                    "i", programs.M, programs.Assign(at("out0", "i"), apply("mul", at("in0", "i"), at("in1")))
                ),
            ),
        ),
    )
)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, dtype=np.float32)


def test_source_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "ilang_run" in CKernel(programs.matmul(2, 4)).source


def test_any_layout_goes_in() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((9, 14), dtype=np.float32), rng.standard_normal((7, 10), dtype=np.float32)
    want = MATMUL(np.ascontiguousarray(a[::2, ::-2]), np.ascontiguousarray(b))
    np.testing.assert_array_equal(MATMUL(a[::2, ::-2], b), want)
    np.testing.assert_array_equal(MATMUL(np.asfortranarray(a[::2, ::-2]), np.asfortranarray(b)), want)
    unaligned = np.frombuffer(b"x" + b.tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(b.shape)
    np.testing.assert_array_equal(MATMUL(a[::2, ::-2], unaligned), want)
    frozen = b.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(MATMUL(a[::2, ::-2], frozen), want)
    broadcast = np.broadcast_to(ones(1, 10), (7, 10))
    np.testing.assert_array_equal(MATMUL(a[::2, ::-2], broadcast), MATMUL(a[::2, ::-2], ones(7, 10)))


@pytest.mark.parametrize("scalar", [2.5, np.float32(2.5), np.array(2.5, dtype=np.float32)], ids=str)
def test_scalars(scalar: Any) -> None:
    np.testing.assert_array_equal(SCALED(ones(3), scalar), [2.5, 2.5, 2.5])


def test_zero_extents() -> None:
    assert MATMUL(ones(0, 3), ones(3, 5)).shape == (0, 5)
    np.testing.assert_array_equal(MATMUL(ones(2, 0), ones(0, 3)), np.zeros((2, 3)))


def test_out_is_written_in_place_and_returned() -> None:
    out = np.full((4, 6), np.nan, dtype=np.float32)
    for _ in range(2):
        assert MATMUL(ones(4, 5), ones(5, 6), out=out) is out
        np.testing.assert_array_equal(out, np.full((4, 6), 5.0))
        out[...] = np.nan


def test_several_outputs_into_a_tuple() -> None:
    outs = (ones(3), ones(2, 2), ones(3))
    got = PAIR(2 * ones(3, 5), 7 * ones(2, 2), out=outs)
    assert all(g is o for g, o in zip(got, outs, strict=True))
    np.testing.assert_array_equal(outs[0], [20, 20, 20])
    np.testing.assert_array_equal(outs[1], 7 * ones(2, 2))
    np.testing.assert_array_equal(outs[2], outs[0])


class Untouchable:
    def __array__(self) -> np.ndarray:
        raise AssertionError("converted behind the caller's back")


BASE = np.zeros(100, dtype=np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "too few": (lambda: MATMUL(ones(2, 2)), "1 arrays for a kernel of 2 inputs"),
    "too many": (lambda: MATMUL(ones(2, 2), ones(2, 2), ones(2, 2)), "3 arrays for a kernel of 2 inputs"),
    "rank": (lambda: MATMUL(ones(2), ones(2, 2)), r"input 0 has shape \(2,\)\nexpected: 2 dimensions"),
    "extents": (
        lambda: MATMUL(ones(2, 3), ones(4, 5)),
        "input 1 has 4 elements along dimension 0, but input 0 has 3 along dimension 1",
    ),
    "float64": (lambda: MATMUL(ones(2, 2), np.ones((2, 2))), r"input 1 has dtype float64\n.*astype"),
    "int": (lambda: MATMUL(ones(2, 2), np.ones((2, 2), int)), "input 1 has dtype int64"),
    "bool": (lambda: MATMUL(ones(2, 2), np.ones((2, 2), bool)), "input 1 has dtype bool"),
    "complex": (lambda: MATMUL(ones(2, 2), np.ones((2, 2), complex)), "input 1 has dtype complex128"),
    "byte order": (lambda: MATMUL(ones(2, 2), ones(2, 2).astype(">f4")), "input 1 has dtype >f4"),
    "list": (lambda: MATMUL(ones(2, 2), [[1.0, 2.0], [3.0, 4.0]]), "input 1 is a list"),
    "None": (lambda: MATMUL(ones(2, 2), None), "input 1 is a NoneType"),
    "masked": (lambda: MATMUL(ones(2, 2), np.ma.masked_equal(ones(2, 2), 1)), "input 1 is a MaskedArray"),
    "array-like": (lambda: MATMUL(ones(2, 2), Untouchable()), "input 1 is a Untouchable"),
    "number for an array": (lambda: MATMUL(ones(2, 2), 1.0), "input 1 is a float"),
    "whole number": (lambda: SCALED(ones(2), 3), "input 1 is a int"),
    "double scalar": (lambda: SCALED(ones(2), np.float64(3)), "input 1 is a float64"),
    "out shape": (lambda: MATMUL(ones(2, 2), ones(2, 2), out=ones(2, 3)), r"out has shape \(2, 3\)\nexpected: .*2, 2"),
    "out rank": (lambda: MATMUL(ones(2, 2), ones(2, 2), out=ones(4)), r"out has shape \(4,\)"),
    "out dtype": (lambda: MATMUL(ones(2, 2), ones(2, 2), out=np.ones((2, 2))), "out has dtype float64"),
    "out layout": (lambda: MATMUL(ones(2, 2), ones(2, 2), out=ones(2, 2).T[::-1]), "out is not contiguous"),
    "out within a float": (
        lambda: MATMUL(ones(2, 2), ones(2, 2), out=np.ndarray((2, 2), np.float32, buffer=bytearray(20), offset=1)),
        "out begins inside a float",
    ),
    "out read-only": (
        lambda: MATMUL(ones(2, 2), ones(2, 2), out=np.broadcast_to(np.float32(1), (2, 2)).copy().view(Frozen)),
        "out is read-only",
    ),
    "out a tuple": (
        lambda: MATMUL(ones(2, 2), ones(2, 2), out=(ones(2, 2),)),
        "out is a tuple of 1\nexpected: one array",
    ),
    "out too short": (lambda: PAIR(ones(2, 2), ones(1), out=(ones(2),)), "expected: a tuple of 3 arrays"),
    "out alone": (lambda: PAIR(ones(2, 2), ones(1), out=ones(2)), "out is one array"),
    "out overlaps an input": (
        lambda: MATMUL(BASE[:4].reshape(2, 2), ones(2, 2), out=BASE[3:7].reshape(2, 2)),
        "out overlaps input 0",
    ),
    "out overlaps a strided input": (
        lambda: MATMUL(BASE[:8:2].reshape(2, 2), ones(2, 2), out=BASE[4:8].reshape(2, 2)),
        "out overlaps input 0",
    ),
    "outs overlap": (
        lambda: PAIR(ones(2, 2), ones(3), out=(BASE[:2], BASE[50:53], BASE[1:3])),
        r"out\[2\] overlaps out\[0\]",
    ),
}


class Frozen(np.ndarray):
    def __array_finalize__(self, source: object) -> None:
        self.flags.writeable = False


@pytest.mark.parametrize("again", [False, True], ids=["first", "after a good call"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_runs(name: str, again: bool) -> None:
    call, message = REFUSED[name]
    if again:
        MATMUL(ones(2, 2), ones(2, 2))
        PAIR(ones(2, 2), ones(1))
        PAIR(ones(2, 2), ones(3))
    with pytest.raises(ArrayError, match=message):
        call()


def test_interleaved_memory_is_no_overlap() -> None:
    base = np.zeros((4, 20), dtype=np.float32)
    left, right = base[:, :10], base[0, 10:14].reshape(2, 2)
    np.testing.assert_array_equal(MATMUL(left[:2, :2], ones(2, 2), out=right), np.zeros((2, 2)))


def test_plain_arrays_of_known_shapes_take_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = CKernel(programs.softmax(), threads=2)
    x, many = ones(3, 70), ones(9, 70)
    want = [kernel(many), kernel(x)]
    out = ones(3, 70)
    references = sys.getrefcount(x), sys.getrefcount(out)
    careful = kernel.carefully
    monkeypatch.setattr(kernel, "carefully", lambda *_: pytest.fail("took the long way"))
    for _ in range(3):
        np.testing.assert_array_equal(kernel(x), want[1])
        out[...] = np.nan
        assert kernel(x, out=out) is out
        np.testing.assert_array_equal(out, want[1])
    assert (sys.getrefcount(x), sys.getrefcount(out)) == references
    monkeypatch.setattr(kernel, "carefully", careful)
    np.testing.assert_array_equal(kernel(many), want[0])


def test_several_outputs_take_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = (i("ij*i~ij") & i("+ij~i")).compile(threads=1)
    arrays = ones(3, 4), ones(3)
    want = kernel(*arrays)
    monkeypatch.setattr(kernel, "carefully", lambda *_: pytest.fail("took the long way"))
    outs = (ones(3, 4), ones(3))
    for got in (kernel(*arrays), kernel(*arrays, out=outs)):
        assert isinstance(got, tuple)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_kernels_run_where_there_is_no_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilang_eq.c.caller.SOURCE", "#error none")
    quick_entry.cache_clear()
    try:
        kernel = CKernel(programs.matmul(2, 8), threads=1)
        for _ in range(2):
            np.testing.assert_array_equal(kernel(ones(2, 3), ones(3, 4)), np.full((2, 4), 3.0))
    finally:
        quick_entry.cache_clear()


def test_a_wrong_call_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = CKernel(programs.matmul(2, 8))
    monkeypatch.setattr("ilang_eq.c.kernel.build", lambda *_: pytest.fail("compiled"))
    for arrays in ((ones(2, 2), ones(3, 2)), (ones(2, 2),), (ones(2, 2), np.ones((2, 2)))):
        with pytest.raises(ArrayError):
            kernel(*arrays)
    with pytest.raises(ArrayError):
        kernel(ones(2, 2), ones(2, 2), out=ones(3, 3))


def test_intermediate_results_that_cannot_fit() -> None:
    with pytest.raises(ArrayError, match="do not fit"):
        CKernel(programs.two_kernels())._signature(((2**31, 2**33), ()))


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_out_of_range(threads: Any) -> None:
    with pytest.raises(OptionError, match="threads is"):
        CKernel(programs.matmul(2, 2), threads=threads)


def test_many_threads_may_call_one_kernel() -> None:
    kernel = CKernel(programs.softmax(), threads=2)
    inputs = [np.random.default_rng(n).standard_normal((20, 30 + n), dtype=np.float32) for n in range(4)]
    want = [kernel(x) for x in inputs]
    right: list[bool] = []

    def work(n: int) -> None:
        right.extend(np.array_equal(kernel(inputs[n]), want[n]) for _ in range(30))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert right == [True] * 120, "a thread that raises leaves fewer"


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_child_does_not_wait_for_the_parents_threads() -> None:
    a = ones(64, 64)
    MATMUL(a, a)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        got = pool.apply_async(_in_child).get(timeout=60)
    np.testing.assert_array_equal(got, MATMUL(a, a))


def _in_child() -> np.ndarray:
    return MATMUL(ones(64, 64), ones(64, 64))


def test_a_library_that_does_not_load_is_built_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_CACHE", str(tmp_path))
    kernel = CKernel(programs.reduction("add", 0.0))
    build(kernel.source).write_bytes(b"not a library")
    assert kernel(ones(3)) == 3
