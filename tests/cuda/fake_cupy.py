"""A stand-in for CuPy on a machine without a device: arrays in main memory, and launches that are only noted down."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class ndarray:
    """What a kernel asks of a CuPy array."""

    def __init__(self, values: np.ndarray, device: int = 0) -> None:
        self.values = values
        self.device = SimpleNamespace(id=device)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def flags(self) -> Any:
        return SimpleNamespace(c_contiguous=self.values.flags.c_contiguous)

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.values.ctypes.data)


@dataclass
class Fake:
    """The module, and what was launched: (kernel, grid, block, arguments). ``devices`` is how many there are."""

    devices: int = 1
    memory: int = 10**9
    capability: str = "90"
    launched: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[Any, ...]]] = field(default_factory=list)
    loaded: list[Path] = field(default_factory=list)
    copied: list[tuple[int, int, int]] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)
    broken_driver: bool = False
    held: list[Any] = field(default_factory=list)

    def module(self) -> Any:
        cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                getDeviceCount=self._count, CUDARuntimeError=CUDARuntimeError, memcpyAsync=self._copy
            ),
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=self._device,
            alloc=self._alloc,
            get_current_stream=lambda: self._stream(7),
            Event=lambda: SimpleNamespace(record=lambda: None, synchronize=lambda: None),
            get_elapsed_time=lambda before, after: float(len(self.launched)),
            ExternalStream=self._stream,
        )
        return SimpleNamespace(
            ndarray=ndarray,
            cuda=cuda,
            empty=self._empty,
            RawModule=self._load,
            from_dlpack=self._from_dlpack,
            asarray=ndarray,
        )

    def _count(self) -> int:
        if self.devices < 0:
            raise CUDARuntimeError("driver too old")
        return self.devices

    def _device(self, number: int) -> Any:
        return _Context(compute_capability=self.capability, id=number)

    def _stream(self, number: int) -> Any:
        return _Context(ptr=number, entered=lambda: self.streams.append(number))

    def _taken(self, count: int) -> None:
        self.memory -= count
        if self.memory < 0:
            raise OutOfMemoryError("out of memory")

    def _empty(self, shape: tuple[int, ...], dtype: str) -> ndarray:
        made = np.empty(shape, dtype)
        self._taken(made.nbytes)
        return ndarray(made)

    def _alloc(self, count: int) -> Any:
        self._taken(count)
        made = np.empty(count, np.uint8)
        self.held.append(made)
        return SimpleNamespace(ptr=made.ctypes.data)

    def _load(self, path: str) -> Any:
        if self.broken_driver:
            raise CUDADriverError("CUDA_ERROR_NO_BINARY_FOR_GPU")
        self.loaded.append(Path(path))
        return SimpleNamespace(get_function=self._function)

    def _function(self, name: str) -> Callable[..., None]:
        def launch(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
            self.launched.append((name, grid, block, arguments))

        return launch

    def _copy(self, to: int, source: int, count: int, kind: int, stream: int) -> None:
        assert kind == 3, "from device to device"
        self.copied.append((to, source, count))

    def _from_dlpack(self, array: Any) -> ndarray:
        return ndarray(array.values)


class _Context(contextlib.AbstractContextManager[None]):
    def __init__(self, entered: Callable[[], None] = lambda: None, **values: Any) -> None:
        self.__dict__.update(values)
        self._entered = entered

    def __enter__(self) -> None:
        self._entered()

    def __exit__(self, *_: object) -> None:
        return None
