"""The CuPy that is installed has what is called of it: without a device, as far as that goes."""

from __future__ import annotations

import inspect
import operator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ilang_eq.cuda import device
from tests.cuda.fake_cupy import Fake

cupy: Any = pytest.importorskip("cupy", exc_type=ImportError)


def names(stand_in: Any, before: str = "") -> list[str]:
    """Everything that the stand-in stands in for, with dots."""
    found: list[str] = []
    for name, value in vars(stand_in).items():
        found += names(value, f"{before}{name}.") if isinstance(value, SimpleNamespace) else [before + name]
    return found


@pytest.mark.parametrize("name", names(Fake().module()))
def test_it_has_what_the_stand_in_has(name: str) -> None:
    assert operator.attrgetter(name)(cupy) is not None


def test_an_array_is_read_as_the_stand_in_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CuPy array over main memory, which needs no device."""
    monkeypatch.setattr(device, "cupy", lambda: cupy)
    values = np.ones((3, 4), np.float32)
    memory = cupy.cuda.UnownedMemory(values.ctypes.data, values.nbytes, values, 1)
    array = cupy.ndarray(values.shape, np.float32, memptr=cupy.cuda.MemoryPointer(memory, 0))
    view = device.view_of(array, "input 0")
    assert view[:3] == (values.ctypes.data, (3, 4), 1)
    assert view.owner is array
    with pytest.raises(device.ArrayError, match="not contiguous"):
        device.view_of(array.T, "input 0")


def test_launches_take_eleven_numbers() -> None:
    """As ``CudaKernel.queue`` gives them: the kernel, sizes, shared memory, stream, arguments, none more."""
    assert cupy.cuda.driver.launchKernel.__doc__.count(",") == 10
    wanted = ("ptr", "get_function", "load_file"), ("graphExec", "upload"), ("begin_capture", "end_capture", "ptr")
    for kind, attributes in zip((cupy.cuda.Module, cupy.cuda.Graph, cupy.cuda.Stream.null), wanted, strict=True):
        assert set(attributes) <= set(dir(kind))
    assert "ptr" in dir(cupy.cuda.Function)
    assert "mode" in inspect.signature(cupy.cuda.Stream.begin_capture).parameters
