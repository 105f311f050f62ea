"""Torch tensors in, torch tensors out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ilang_eq.c.kernel import CKernel
from ilang_eq.errors import ArrayError
from tests.c import programs

torch = pytest.importorskip("torch", reason="torch is optional")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

MATMUL = CKernel(programs.matmul(4, 8), threads=2)


def tensors() -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(5, 6, generator=generator), torch.randn(6, 7, generator=generator)


def test_torch_in_torch_out() -> None:
    a, b = tensors()
    got = MATMUL(a, b)
    assert isinstance(got, torch.Tensor)
    torch.testing.assert_close(got, a @ b)
    out = torch.empty(5, 7)
    assert MATMUL(a, b, out=out) is out
    torch.testing.assert_close(out, a @ b)
    torch.testing.assert_close(MATMUL(a, b.T.contiguous().T), a @ b)


def test_gradients() -> None:
    a, b = tensors()
    a.requires_grad_()
    with pytest.raises(ArrayError, match="input 0 requires a gradient"):
        MATMUL(a, b)
    with torch.no_grad():
        torch.testing.assert_close(MATMUL(a, b), a @ b)
    torch.testing.assert_close(MATMUL(a.detach(), b), (a @ b).detach())


def test_tensors_of_known_shapes_take_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = CKernel(programs.matmul(4, 8), threads=1)
    a, b = tensors()
    out = torch.empty(5, 7)
    kernel(a, b)
    monkeypatch.setattr(kernel, "carefully", lambda *_: pytest.fail("took the long way"))
    torch.testing.assert_close(kernel(a, b), a @ b)
    assert kernel(2 * a, b, out=out) is out
    torch.testing.assert_close(out, 2 * a @ b)
    with torch.no_grad():
        torch.testing.assert_close(kernel(torch.nn.Parameter(a), b), a @ b)


@pytest.mark.parametrize("again", [False, True], ids=["first", "after a good call"])
def test_torch_refusals(again: bool) -> None:
    a, b = tensors()
    if again:
        MATMUL(a, b)
    refused = [
        (lambda: MATMUL(a, b.numpy()), "input 0 is a torch tensor and input 1 a NumPy array"),
        (lambda: MATMUL(a, b.double()), "input 1 has dtype torch.float64"),
        (lambda: MATMUL(a, b.to_sparse()), "input 1 has layout"),
        (lambda: MATMUL(a, b.to("meta")), "input 1 is on device meta"),
        (lambda: MATMUL(a, b, out=np.empty((5, 7), np.float32)), "not of the inputs' kind"),
        (lambda: MATMUL(a, b, out=torch.empty(7, 5).T), "out is not contiguous"),
        (lambda: MATMUL(a, b, out=torch.empty(5, 7, requires_grad=True)), "out requires a gradient"),
        (lambda: MATMUL(a.clone().requires_grad_(), b), "input 0 requires a gradient"),
        (lambda: MATMUL(a[:2, :2], b[:2, :2], out=a[3:5, :2].contiguous()[:2]), None),
    ]
    for call, message in refused:
        if message is None:
            call()
        else:
            with pytest.raises(ArrayError, match=message):
                call()


def test_results_share_no_memory_with_what_the_kernel_keeps() -> None:
    a, b = tensors()
    first = MATMUL(a, b)
    kept = first.clone()
    MATMUL(2 * a, b)
    torch.testing.assert_close(first, kept)


def test_torch_is_not_imported_for_numpy_arrays() -> None:
    code = """
import sys
import numpy as np
from ilang_eq.c.kernel import CKernel
from tests.c import programs
CKernel(programs.matmul(4, 8))(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
