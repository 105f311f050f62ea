"""Torch tensors: on a stand-in for torch's CUDA, of which the real torch has all the names."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ilang_eq import i
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.errors import ArrayError, DeviceError
from tests.cuda.fake_cupy import Fake, Stream, ndarray
from tests.cuda.schedules import SOFTMAX, program


class OutOfMemoryError(RuntimeError):
    pass


class Tensor:
    """Memory of ``device``, which is that of a NumPy array."""

    def __init__(self, values: np.ndarray, device: str = "cuda:0", requires_grad: bool = False) -> None:
        self.values = values
        self.kept = ndarray(values)
        self.shape = values.shape
        self.dtype = sys.intern(values.dtype.name)
        self.device = device
        self.is_cuda = device.startswith("cuda")
        self.requires_grad = requires_grad

    def data_ptr(self) -> int:
        return self.values.ctypes.data

    def get_device(self) -> int:
        return int(self.device[-1])

    def is_contiguous(self) -> bool:
        return self.values.flags.c_contiguous


@dataclass
class Torch:
    """The module, and what was allocated of it."""

    stream: int = 20
    full: bool = False
    allocated: list[int] = field(default_factory=list)

    def module(self, raw: bool) -> Any:
        cuda = SimpleNamespace(
            OutOfMemoryError=OutOfMemoryError,
            current_stream=lambda device: SimpleNamespace(cuda_stream=self.stream),
        )
        return SimpleNamespace(
            Tensor=Tensor, float32="float32", uint8="uint8", is_grad_enabled=lambda: True, empty=self._empty,
            cuda=cuda, _C=SimpleNamespace(**({"_cuda_getCurrentRawStream": lambda device: self.stream} if raw else {})),
        )  # fmt: skip

    def _empty(self, shape: Any, dtype: str, device: str) -> Tensor:
        made = np.empty(shape, dtype)
        if self.full:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate\nmore than there is")
        self.allocated.append(made.nbytes)
        return Tensor(made, device)


@pytest.fixture(params=[True, False], ids=["raw stream", "stream"])
def torch(request: pytest.FixtureRequest, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Torch:
    found = Torch()
    monkeypatch.setitem(sys.modules, "torch", found.module(request.param))
    return found


def ones(*shape: int, device: str = "cuda:0") -> Tensor:
    return Tensor(np.ones(shape, np.float32), device)


def test_it_runs_on_torchs_stream_with_torchs_memory(torch: Torch, fake: Fake) -> None:
    kernel = CudaKernel(program(SOFTMAX))
    x = ones(6, 30)
    for torch.stream in (20, 20, 21):
        result = kernel(x)
        assert isinstance(result, Tensor)
        assert result.data_ptr() in fake.launched[-1].arguments
    assert [launched.stream for launched in fake.launched] == [20, 20, 21]
    size = kernel.signature(((6, 30),)).layout.bytes
    assert torch.allocated == [720, size, 720, 720, size]
    assert not fake.allocated


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.usefixtures("torch")
def test_results(fake: Fake) -> None:
    fake.executes = True
    x = np.random.default_rng(0).standard_normal((6, 30), dtype=np.float32)
    out = ones(6, 30)
    assert CudaKernel(program(SOFTMAX))(Tensor(x), out=out) is out
    np.testing.assert_allclose(out.values, SOFTMAX.interpret(x), rtol=1e-5)


def test_a_graph_of_torchs_has_memory_of_its_own(torch: Torch, fake: Fake) -> None:
    kernel = CudaKernel(program(SOFTMAX))
    x, out = ones(6, 30), ones(6, 30)
    kernel(x, out=out)
    Stream(fake, torch.stream).begin_capture(1)
    kernel(x, out=out)
    assert len(torch.allocated) == 2
    assert not kernel._held, "torch keeps it as long as the graph"


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (ones(3, device="cpu:0"), "input 1 is on device cpu:0\nexpected: a CUDA tensor"),
        (Tensor(np.ones(3)), "input 1 has dtype float64\nexpected: float32"),
        (Tensor(np.ones(6, np.float32)[::2]), "input 1 is not contiguous"),
        (Tensor(np.ones(3, np.float32), requires_grad=True), "input 1 requires a gradient"),
        (ones(3, device="cuda:1"), "arrays on CUDA devices 0 and 1"),
    ],
)
def test_wrong_tensors(tensor: Tensor, said: str) -> None:
    with pytest.raises(ArrayError, match=said):
        CudaKernel(program(i("i+i~i")))(ones(3), tensor)


def test_a_full_device(torch: Torch, fake: Fake) -> None:
    torch.full = True
    said = (
        r"720 bytes of an output of shape \(6, 30\); .* free: CUDA out of memory. Tried to allocate\nexpected: smaller"
    )
    with pytest.raises(DeviceError, match=said):
        CudaKernel(program(SOFTMAX))(ones(6, 30))
    assert not fake.launched


def test_the_real_torch_has_what_the_stand_in_has() -> None:
    real = pytest.importorskip("torch")
    tensor = real.ones(3)
    for name in ("shape", "dtype", "device", "is_cuda", "requires_grad", "data_ptr", "get_device", "is_contiguous"):
        assert hasattr(tensor, name)
    assert issubclass(real.cuda.OutOfMemoryError, RuntimeError)
    assert callable(real.cuda.current_stream)
    assert callable(real.is_grad_enabled)
    assert {tensor.shape: 1}[(3,)] == 1, "a shape is known by its numbers"
