"""Kernels do the same whichever compiler built them."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from ilang_eq import I, i
from tests.compilers import COMPILERS

SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
PRODUCT = i("ik*kj~ijk|i:4,j:32|ijki'j'") >> i("+ijk~ij|i:4,j:32|ijki'j'0")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_kernels_of_every_compiler(compiler: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", shlex.join(compiler))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((70, 45), (45, 50)))
    for component, arrays in ((SOFTMAX, (a,)), (PRODUCT, (a, b))):
        kernel = component.compile(threads=2)
        np.testing.assert_allclose(kernel(*arrays), component.interpret(*arrays), rtol=1e-4, atol=1e-5)
