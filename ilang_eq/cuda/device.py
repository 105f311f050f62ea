"""Everything that touches CuPy or a device; CuPy is imported at the first call of a kernel, not before."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ilang_eq.errors import ArrayError, DeviceError

_FLOAT = 4


@functools.lru_cache(maxsize=1)
def cupy() -> Any:
    """CuPy, on a machine with a device. Raises DeviceError if one of the two is missing."""
    try:
        module = importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceError(f"CuPy cannot be imported: {error}", expected="pip install ilang-eq[cuda]") from None
    try:
        found = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"no CUDA device can be used: {error}", expected="a device, and a driver for it") from None
    if not found:
        raise DeviceError("this machine has no CUDA device")
    return module


@dataclass(frozen=True, slots=True)
class View:
    """float32 elements in device memory, contiguous; ``owner`` is what the caller knows."""

    pointer: int
    shape: tuple[int, ...]
    device: int
    owner: Any

    @property
    def end(self) -> int:
        """The address behind the last element."""
        return self.pointer + _FLOAT * prod(self.shape)


def uses_torch(array: object) -> bool:
    """Whether ``array`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def view_of(array: Any, what: str, rank: int | None) -> View:
    """``array`` without a copy: a CuPy array, a torch CUDA tensor, or anything on a CUDA device that speaks DLPack.

    Raises:
        ArrayError: memory elsewhere, of another dtype or rank, or not contiguous.
    """
    module = cupy()
    if uses_torch(array):
        found = _torch_view(array, what)
    else:
        if not isinstance(array, module.ndarray):
            array = _from_dlpack(module, array, what)
        if array.dtype != "float32":
            raise ArrayError(f"{what} has dtype {array.dtype}", expected="float32: x.astype('float32')")
        if not array.flags.c_contiguous:
            raise ArrayError(f"{what} is not contiguous", expected="cupy.ascontiguousarray(x), which copies")
        found = View(array.data.ptr, tuple(array.shape), array.device.id, array)
    if rank is not None and len(found.shape) != rank:
        raise ArrayError(f"{what} has shape {found.shape}", expected=f"{rank} dimension{'s' * (rank != 1)}")
    return found


def _torch_view(tensor: Any, what: str) -> View:
    torch = sys.modules["torch"]
    if tensor.device.type != "cuda":
        raise ArrayError(f"{what} is on device {tensor.device}", expected="a CUDA tensor: x.cuda()")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArrayError(
            f"{what} requires a gradient, and kernels record none",
            expected="a call inside torch.no_grad(), or x.detach()",
        )
    if tensor.dtype != torch.float32:
        raise ArrayError(f"{what} has dtype {tensor.dtype}", expected="float32: x.float()")
    if not tensor.is_contiguous():
        raise ArrayError(f"{what} is not contiguous", expected="x.contiguous(), which copies")
    return View(tensor.data_ptr(), tuple(tensor.shape), tensor.device.index, tensor)


def _from_dlpack(module: Any, array: Any, what: str) -> Any:
    """A CuPy array over the memory of ``array``."""
    cuda_devices = 2
    if not hasattr(array, "__dlpack_device__") or array.__dlpack_device__()[0] != cuda_devices:
        kind = type(array).__name__
        raise ArrayError(f"{what} is a {kind}", expected="a CuPy array, or a torch tensor on a CUDA device")
    return module.from_dlpack(array)


def empty(like: View, shape: tuple[int, ...]) -> View:
    """Fresh memory for an output, of the same kind and on the same device as ``like``. Raises DeviceError."""
    if uses_torch(like.owner):
        torch = sys.modules["torch"]
        try:
            return _torch_view(torch.empty(shape, dtype=torch.float32, device=like.owner.device), "the output")
        except torch.cuda.OutOfMemoryError as error:
            raise DeviceError(f"no device memory for an output of shape {shape}: {error}") from None
    module = cupy()
    try:
        made = module.empty(shape, dtype="float32")
    except module.cuda.memory.OutOfMemoryError as error:
        raise DeviceError(f"no device memory for an output of shape {shape}: {error}") from None
    return View(made.data.ptr, shape, like.device, made)


def floats(count: int) -> Any:
    """Device memory for ``count`` floats, from CuPy's pool; it goes back there when let go. Raises DeviceError."""
    module = cupy()
    try:
        return module.cuda.alloc(_FLOAT * count)
    except module.cuda.memory.OutOfMemoryError as error:
        message = f"no device memory for {_FLOAT * count} bytes of intermediate results: {error}"
        raise DeviceError(message, expected="smaller arrays, or a schedule that keeps less") from None


def place(arrays: Sequence[np.ndarray]) -> list[Any]:
    """Copies of NumPy arrays on the current device. Raises DeviceError."""
    module = cupy()
    try:
        return [module.asarray(array) for array in arrays]
    except module.cuda.memory.OutOfMemoryError as error:
        raise DeviceError(f"no device memory for the inputs: {error}") from None


def seconds(call: Callable[[], object]) -> float:
    """How long ``call`` keeps the device busy, by its events. Waits for it."""
    events = cupy().cuda
    before, after = events.Event(), events.Event()
    before.record()
    call()
    after.record()
    after.synchronize()
    return events.get_elapsed_time(before, after) * 1e-3


def stream_of(view: View) -> Any:
    """The stream that the caller works on: torch's current one for tensors, else CuPy's."""
    module = cupy()
    if uses_torch(view.owner):
        return module.cuda.ExternalStream(sys.modules["torch"].cuda.current_stream(view.device).cuda_stream)
    return module.cuda.get_current_stream()


def architecture(device: int) -> int:
    """The compute capability of ``device`` times ten."""
    return int(cupy().cuda.Device(device).compute_capability)


def load(file: Path, names: Sequence[str]) -> dict[str, Any]:
    """The kernels called ``names`` of machine code, for the current device. Raises DeviceError."""
    module = cupy()
    try:
        code = module.RawModule(path=str(file))
        return {name: code.get_function(name) for name in names}
    except module.cuda.driver.CUDADriverError as error:
        message = f"the driver does not load a kernel: {error}"
        raise DeviceError(message, expected="a driver as new as NVRTC, or an older nvidia-cuda-nvrtc") from None
