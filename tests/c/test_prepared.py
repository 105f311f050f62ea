"""Constant inputs: what depends on them alone is computed once, and nothing else changes."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from ilang_eq import i
from ilang_eq.errors import ArrayError, OptionError

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

LINEAR = (i("+kj~jk") >> i("jk*ik~ijk") >> i("+ijk~ij")).compile(threads=2)
"""w of (k, j), x of (i, k): a product with a transposed copy of the weights, materialised."""


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def test_the_same_results() -> None:
    w, x = normal(40, 30), normal(7, 40)
    prepared = LINEAR.prepare(in0=w)
    np.testing.assert_array_equal(prepared(x), LINEAR(w, x))
    out = normal(7, 30)
    assert prepared(2 * x, out=out) is out
    np.testing.assert_array_equal(out, LINEAR(w, 2 * x))
    np.testing.assert_array_equal(prepared(normal(3, 40)), LINEAR(w, normal(3, 40)))


def test_the_copy_is_not_made_again() -> None:
    w, x = normal(40, 30), normal(7, 40)
    prepared = LINEAR.prepare(in0=w)
    want = prepared(x)
    assert len(prepared.kernel.program.kernels) < len(LINEAR.program.kernels)
    w[...] = 0
    np.testing.assert_array_equal(prepared(x), want)


def test_strided_constants_are_copied_once() -> None:
    w, x = normal(30, 40).T, normal(7, 80)[:, ::2]
    assert all(array.flags.c_contiguous for array in LINEAR.prepare(in1=x).fixed)
    np.testing.assert_array_equal(LINEAR.prepare(in1=x)(w), LINEAR(w, x))
    np.testing.assert_array_equal(LINEAR.prepare(in0=w, in1=x)(), LINEAR(w, x))


def test_what_is_kept_is_aligned() -> None:
    unaligned = np.empty(40 * 30 + 1, np.float32)[1:].reshape(40, 30)
    unaligned[...] = normal(40, 30)
    for constants in ({"in0": unaligned}, {"in1": normal(7, 41)[:, :40]}):
        assert all(array.ctypes.data % 64 == 0 for array in LINEAR.prepare(**constants).fixed)
    np.testing.assert_array_equal(LINEAR.prepare(in0=unaligned)(normal(7, 40)), LINEAR(unaligned, normal(7, 40)))


def test_scalars() -> None:
    scaled = i("i*.~i").compile()
    np.testing.assert_array_equal(scaled.prepare(in1=2.5)(np.ones(3, np.float32)), [2.5] * 3)


def test_torch() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is optional")
    w, x = torch.from_numpy(normal(40, 30)), torch.from_numpy(normal(7, 40))
    torch.testing.assert_close(LINEAR.prepare(in0=w)(x), LINEAR(w, x), rtol=0, atol=0)
    torch.testing.assert_close(LINEAR.prepare(in1=x.T.contiguous().T)(w), LINEAR(w, x), rtol=0, atol=0)


def test_refusals() -> None:
    w, x = normal(40, 30), normal(7, 40)
    with pytest.raises(OptionError, match=r"no input 'w'\nlegal: in0, in1"):
        LINEAR.prepare(w=w)
    with pytest.raises(ArrayError, match="in0 has dtype float64"):
        LINEAR.prepare(in0=w.astype(float))
    with pytest.raises(ArrayError, match=r"in0 has shape \(40,\)"):
        LINEAR.prepare(in0=w[:, 0])
    with pytest.raises(ArrayError, match="2 arrays for a kernel of 1 inputs that are not constant"):
        LINEAR.prepare(in0=w)(w, x)
    with pytest.raises(ArrayError, match="41"):
        LINEAR.prepare(in0=w)(normal(7, 41))
