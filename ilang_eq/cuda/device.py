"""Everything that touches CuPy or a device; CuPy is imported at the first call of a kernel, not before."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ilang_eq.errors import ArrayError, DeviceError

_FLOAT = 4
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
_FLOAT32 = np.dtype(np.float32)
_CUDA_DEVICES = (2, 13)
"""What DLPack calls device memory and managed memory of CUDA."""
_FULL = 2
"""cudaErrorMemoryAllocation."""
_LEGACY_STREAMS = (0, 1)
"""The default stream, by its two handles: it cannot be captured, and must not be asked."""


@functools.lru_cache(maxsize=1)
def cupy() -> Any:
    """CuPy, on a machine with a device. Raises DeviceError if one of the two is missing."""
    try:
        module = importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceError(f"CuPy cannot be imported: {error}", expected="pip install ilang-eq[cuda]") from None
    runtime = module.cuda.runtime
    try:
        found = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise _no_driver(runtime, error) from None
    if not found:
        raise DeviceError(
            "this machine has no CUDA device", expected="a device that $CUDA_VISIBLE_DEVICES does not hide"
        )
    return module


def _no_driver(runtime: Any, error: Exception) -> DeviceError:
    """Why no device can be used: no driver, one too old for CuPy, or what ``error`` says."""
    driver, wanted = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    if driver == 0:
        return DeviceError("no NVIDIA driver is installed", expected="a CUDA device, and a driver for it")
    if driver // 1000 < wanted // 1000:
        message = f"the driver is for CUDA {_version(driver)}, and CuPy for {_version(wanted)}"
        other = f"CuPy for the driver's: pip install cupy-cuda{driver // 1000}x"
        return DeviceError(message, expected=f"a driver for CUDA {wanted // 1000}, or {other}")
    return DeviceError(f"no CUDA device can be used: {error}", expected="a device, and a driver for it")


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


class View(NamedTuple):
    """float32 elements in device memory, contiguous; ``owner`` is what the caller knows, a tensor if ``torch``."""

    pointer: int
    shape: tuple[int, ...]
    device: int
    owner: Any
    torch: bool


def _view(*fields: Any) -> View:
    """A view, in half the time that the constructor takes to sort its arguments."""
    return tuple.__new__(View, fields)


def uses_torch(array: object) -> bool:
    """Whether ``array`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def view_of(array: Any, what: str) -> View:
    """``array`` without a copy: a CuPy array, a torch CUDA tensor, or anything on a CUDA device that speaks DLPack.

    Raises:
        ArrayError: memory elsewhere, of another dtype, or not contiguous.
    """
    module = cupy()
    if not isinstance(array, module.ndarray):
        if uses_torch(array):
            return _torch_view(array, what)
        array = _from_dlpack(module, array, what)
    if array.dtype != _FLOAT32:
        raise ArrayError(f"{what} has dtype {array.dtype}", expected="float32: x.astype('float32')")
    # what array.flags.c_contiguous reads, without an object for the flags
    if not array._c_contiguous:
        raise ArrayError(f"{what} is not contiguous", expected="cupy.ascontiguousarray(x), which copies")
    memory = array.data
    return _view(memory.ptr, array.shape, memory.device_id, array, False)


def _torch_view(tensor: Any, what: str) -> View:
    torch = sys.modules["torch"]
    if not tensor.is_cuda:
        raise ArrayError(f"{what} is on device {tensor.device}", expected="a CUDA tensor: x.cuda()")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArrayError(
            f"{what} requires a gradient, and kernels record none",
            expected="a call inside torch.no_grad(), or x.detach()",
        )
    if tensor.dtype is not torch.float32:
        raise ArrayError(f"{what} has dtype {tensor.dtype}", expected="float32: x.float()")
    if not tensor.is_contiguous():
        raise ArrayError(f"{what} is not contiguous", expected="x.contiguous(), which copies")
    return _view(tensor.data_ptr(), tensor.shape, tensor.get_device(), tensor, True)


def _from_dlpack(module: Any, array: Any, what: str) -> Any:
    """A CuPy array over the memory of ``array``."""
    if not hasattr(array, "__dlpack_device__") or array.__dlpack_device__()[0] not in _CUDA_DEVICES:
        kind = type(array).__name__
        raise ArrayError(f"{what} is a {kind}", expected="a CuPy array, or a torch tensor on a CUDA device")
    return module.from_dlpack(array)


def empty(like: View, shape: tuple[int, ...]) -> View:
    """Fresh memory for an output on the current device, of the same kind as ``like``. Raises DeviceError."""
    try:
        if like.torch:
            torch = sys.modules["torch"]
            return _torch_view(torch.empty(shape, dtype=torch.float32, device=like.owner.device), "the output")
        made = cupy().empty(shape, dtype=_FLOAT32)
    except MemoryError as error:
        raise _full(f"an output of shape {shape}", _FLOAT * prod(shape), error) from None
    except RuntimeError as error:
        raise _refused(f"an output of shape {shape}", _FLOAT * prod(shape), error) from None
    return _view(made.data.ptr, shape, like.device, made, False)


class Memory(NamedTuple):
    """Device memory and what owns it: it is given back when ``owner`` is let go."""

    pointer: int
    owner: Any


def memory(like: View, count: int) -> Memory:
    """``count`` bytes for work on the caller's stream of the current device, from where ``like`` came from.

    Raises:
        DeviceError: the device is full, or the stream is being captured in a way that allows no allocation.
    """
    what = "intermediate results"
    try:
        if like.torch:
            torch = sys.modules["torch"]
            tensor = torch.empty(count, dtype=torch.uint8, device=like.owner.device)
            return Memory(tensor.data_ptr(), tensor)
        taken = cupy().cuda.alloc(count)
    except MemoryError as error:
        raise _full(what, count, error) from None
    except RuntimeError as error:
        raise _refused(what, count, error) from None
    return Memory(taken.ptr, taken)


def _refused(what: str, count: int, error: RuntimeError) -> Exception:
    """A full device, of which torch and the plain allocator tell by a RuntimeError; a capture; others as they are."""
    runtime, torch = cupy().cuda.runtime, sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.cuda.OutOfMemoryError):
        return _full(what, count, error)
    if not isinstance(error, runtime.CUDARuntimeError):
        return error
    if getattr(error, "status", None) == _FULL:
        return _full(what, count, error)
    message = f"no memory for {what}: {error}"
    return DeviceError(message, expected="a first call before the capture, with out=, or a relaxed capture mode")


def _full(what: str, count: int, error: Exception) -> DeviceError:
    free, total = cupy().cuda.runtime.memGetInfo()
    held = f"{free / 2**20:.0f} MB of {total / 2**20:.0f} MB are free"
    message = f"no device memory for {count} bytes of {what}; {held}: {str(error).splitlines()[0]}"
    return DeviceError(message, expected="smaller arrays, a schedule that keeps less, or memory that others give back")


def place(arrays: Sequence[np.ndarray]) -> list[Any]:
    """Copies of NumPy arrays on the current device. Raises DeviceError."""
    module = cupy()
    try:
        return [module.asarray(array) for array in arrays]
    except MemoryError as error:
        raise _full("inputs", sum(array.nbytes for array in arrays), error) from None


def fetch(arrays: Sequence[Any]) -> list[np.ndarray]:
    """Copies of CuPy arrays in main memory. Waits for them."""
    return [cupy().asnumpy(array) for array in arrays]


def seconds(call: Callable[[], object]) -> float:
    """How long ``call`` keeps the device busy, by its events. Waits for it."""
    events = cupy().cuda
    before, after = events.Event(), events.Event()
    before.record()
    call()
    after.record()
    after.synchronize()
    return events.get_elapsed_time(before, after) * 1e-3


def stream_of(view: View) -> int:
    """The handle of the stream that the caller works on: torch's current one for tensors, else CuPy's."""
    if not view.torch:
        return cupy().cuda.get_current_stream(view.device).ptr
    torch = sys.modules["torch"]
    # what torch's own compiler calls; the public way makes two objects a call
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return torch.cuda.current_stream(view.device).cuda_stream if raw is None else raw(view.device)


def is_capturing(stream: int) -> bool:
    """Whether what is queued on ``stream`` goes into a CUDA graph."""
    return stream not in _LEGACY_STREAMS and bool(cupy().cuda.runtime.streamIsCapturing(stream))


def architecture(device: int) -> int:
    """The compute capability of ``device`` times ten."""
    return int(cupy().cuda.Device(device).compute_capability)


def load(file: Path, shared: Mapping[str, int]) -> dict[str, Any]:
    """Kernels of machine code by name, loaded on the current device. Raises DeviceError.

    ``shared`` names them, and says how many bytes of shared memory their launches ask for.
    """
    cuda = cupy().cuda
    module = cuda.Module()
    try:
        module.load_file(str(file))
        found = {name: module.get_function(name) for name in shared}
        for name, kernel in found.items():
            if shared[name]:
                cuda.driver.funcSetAttribute(kernel.ptr, _MAX_DYNAMIC_SHARED_SIZE_BYTES, shared[name])
        return found
    except cuda.driver.CUDADriverError as error:
        raise DeviceError(f"the driver does not load a kernel: {error}", expected=_loadable(cuda, file)) from None


def _loadable(cuda: Any, file: Path) -> str:
    made_for = file.suffixes[-2].removeprefix(".sm_") if len(file.suffixes) > 1 else "?"
    has = cuda.Device().compute_capability
    if made_for != has:
        return f"machine code for sm_{has}, not sm_{made_for}"
    version = _version(cuda.runtime.driverGetVersion())
    return f"an NVRTC that is not newer than the driver, which is for CUDA {version}; or a newer driver"
