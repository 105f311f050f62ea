"""Arrays in and out of a kernel: what is accepted, and what is said of the rest, before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ilang_eq.c.memory import ALIGNMENT, Floats, aligned, large, maker
from ilang_eq.errors import ArrayError

Array: TypeAlias = Any
"""A NumPy array, or a torch tensor, of float32. (torch is optional, also to the type checker.)"""


def uses_torch(arrays: Sequence[object]) -> bool:
    """Whether torch tensors come in, and so go out. Raises ArrayError for a mixture with NumPy arrays."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    tensors = [isinstance(array, torch.Tensor) for array in arrays]
    if any(tensors) and any(isinstance(array, np.ndarray) for array in arrays):
        first, other = tensors.index(True), tensors.index(False)
        raise ArrayError(
            f"input {first} is a torch tensor and input {other} a NumPy array",
            expected="all of one kind: torch.from_numpy(x) and x.numpy() share memory",
        )
    return any(tensors)


def as_floats(array: Any, what: str, rank: int | None) -> Floats:
    """``array`` as NumPy float32, sharing its memory unless it is a Python number.

    Args:
        array: a NumPy array, a torch tensor, or, for rank 0, a float.
        what: what to call it in an error.
        rank: the dimensions it must have; None for any number.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        array = _from_torch(torch, array, what)
    elif rank == 0 and type(array) in (float, np.float32):
        array = np.asarray(array, dtype=np.float32)
    elif not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        kind = type(array).__name__
        raise ArrayError(f"{what} is a {kind}", expected="a NumPy array or a torch tensor of dtype float32")
    if array.dtype != np.float32:
        raise ArrayError(
            f"{what} has dtype {array.dtype.str if not array.dtype.isnative else array.dtype}",
            expected="float32: convert with x.astype(numpy.float32)",
        )
    if rank is not None and array.ndim != rank:
        raise ArrayError(f"{what} has shape {array.shape}", expected=f"{rank} dimension{'s' * (rank != 1)}")
    return np.asarray(array)


def _from_torch(torch: ModuleType, tensor: Any, what: str) -> NDArray[Any]:
    if tensor.device.type != "cpu":
        raise ArrayError(f"{what} is on device {tensor.device}", expected="a CPU tensor: x.cpu()")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ArrayError(
            f"{what} requires a gradient, and kernels record none",
            expected="a call inside torch.no_grad(), or x.detach()",
        )
    if tensor.layout != torch.strided:
        raise ArrayError(f"{what} has layout {tensor.layout}", expected="a dense tensor: x.to_dense()")
    if tensor.dtype != torch.float32:
        raise ArrayError(f"{what} has dtype {tensor.dtype}", expected="float32: convert with x.float()")
    return tensor.detach().numpy()


def tensor_views(tensors: object) -> tuple[NDArray[Any], ...] | None:
    """A tuple of dense torch CPU tensors as NumPy sees them; None if it is anything else, or a gradient is due."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensors, tuple) or not tensors:
        return None
    recording = torch.is_grad_enabled()
    views: list[NDArray[Any]] = []
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or (tensor.requires_grad and recording):
            return None
        try:
            views.append((tensor.detach() if tensor.requires_grad else tensor).numpy())
        except (RuntimeError, TypeError):
            return None
    return tuple(views)


@contextmanager
def room_for(what: str) -> Iterator[None]:
    """Raises ArrayError where NumPy has no memory for ``what``, or cannot even count its elements."""
    try:
        yield
    except (MemoryError, ValueError):
        raise ArrayError(f"{what} does not fit in memory", expected="smaller arrays") from None


def as_readable(array: Floats) -> Floats:
    """``array`` itself if a kernel can read it in place, else a contiguous copy."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    with room_for(f"a contiguous copy of an input of shape {array.shape}"):
        return np.array(array, dtype=np.float32, order="C")


def contiguous(array: Any, what: str, rank: int | None) -> Array:
    """``array`` if a kernel reads it in place at full speed, else a copy of its kind. Raises as ``as_floats``."""
    view = as_floats(array, what, rank)
    if uses_torch((array,)):
        return array.contiguous()
    if view.flags.c_contiguous and view.ctypes.data % ALIGNMENT == 0:
        return view
    copy = aligned(view.shape)
    copy[...] = view
    return copy


def empty(shape: tuple[int, ...], as_torch: bool) -> tuple[Array, Floats]:
    """A fresh output as the caller sees it, and as NumPy sees the same memory."""
    if as_torch and not large(shape):
        torch = sys.modules["torch"]
        tensor = torch.empty(shape, dtype=torch.float32)
        return tensor, tensor.numpy()
    with room_for(f"a result of shape {shape}"):
        fresh = maker(shape)()
    return sys.modules["torch"].from_numpy(fresh) if as_torch else fresh, fresh


def returned(results: Sequence[Array]) -> Any:
    """How a kernel returns its results, and takes memory for them: one alone, or else a tuple."""
    return results[0] if len(results) == 1 else tuple(results)


def given_outputs(out: Any, shapes: Sequence[tuple[int, ...]], inputs: Sequence[Floats]) -> list[tuple[Array, Floats]]:
    """``out`` as the caller sees it and as NumPy does, checked against ``shapes`` and for overlaps.

    Raises:
        ArrayError: the wrong number, type, shape or dtype; not contiguous, aligned or writable; overlapping memory.
    """
    many = isinstance(out, tuple | list)
    if many != (len(shapes) > 1) or (many and len(out) != len(shapes)):
        found = f"a {type(out).__name__} of {len(out)}" if many else "one array"
        wanted = "one array" if len(shapes) == 1 else f"a tuple of {len(shapes)} arrays"
        raise ArrayError(f"out is {found}", expected=wanted)
    given = list(out) if many else [out]
    names = [f"out[{n}]" if many else "out" for n in range(len(given))]
    views = [as_floats(array, name, len(s)) for array, name, s in zip(given, names, shapes, strict=True)]
    for view, name, shape in zip(views, names, shapes, strict=True):
        _check_output(view, name, shape)
    for n, view in enumerate(views):
        for k, array in enumerate(inputs):
            if overlap(view, array):
                raise ArrayError(f"{names[n]} overlaps input {k} in memory", expected="memory of its own")
        for m in range(n):
            if overlap(view, views[m]):
                raise ArrayError(f"{names[n]} overlaps {names[m]} in memory", expected="memory of its own")
    return list(zip(given, views, strict=True))


def _check_output(view: Floats, name: str, shape: tuple[int, ...]) -> None:
    if view.shape != shape:
        raise ArrayError(f"{name} has shape {view.shape}", expected=f"shape {shape}")
    if not view.flags.c_contiguous:
        raise ArrayError(f"{name} is not contiguous", expected="a C-contiguous array")
    if not view.flags.aligned:
        raise ArrayError(f"{name} begins inside a float", expected="memory that begins at a multiple of 4 bytes")
    if not view.flags.writeable:
        raise ArrayError(f"{name} is read-only", expected="a writable array")


def overlap(x: Floats, y: Floats) -> bool:
    """Whether two arrays share an element."""
    return bool(np.may_share_memory(x, y) and np.shares_memory(x, y))
