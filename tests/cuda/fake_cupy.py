"""A stand-in for CuPy on a machine without a device: arrays in main memory, and launches that are noted down.

Kernels are "machine code" that is their source (``stand_in_build``), so that a launch knows its arguments. With
``executes`` it also runs, compiled for the CPU as ``executed.py`` says.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.cuda.executed import KERNEL, Executed

_MEMORY: dict[int, int] = {}
"""Where the stand-in's memory begins, and how many bytes it has there."""


class CUDARuntimeError(RuntimeError):
    def __init__(self, message: str, status: int = 35) -> None:
        super().__init__(message)
        self.status = status


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


@dataclass(frozen=True)
class Launched:
    """One launch: sizes, the stream, and every argument as a number of 64 bits."""

    name: str
    blocks: int
    threads: int
    stream: int
    arguments: tuple[int, ...]


class ndarray:
    """What a kernel asks of a CuPy array."""

    def __init__(self, values: np.ndarray, device: int = 0) -> None:
        self.values = values
        _MEMORY[values.ctypes.data] = values.nbytes
        self.shape = values.shape
        self.dtype = values.dtype
        self._c_contiguous = values.flags.c_contiguous
        self.data = SimpleNamespace(ptr=values.ctypes.data, device_id=device)


class DlpackArray:
    """Memory of a device, of a library that is neither CuPy nor torch."""

    def __init__(self, values: np.ndarray, kind: int = 2) -> None:
        self.values = values
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


class Stream:
    """``ptr`` and, for those that capture, what was launched meanwhile."""

    def __init__(self, fake: Fake, ptr: int) -> None:
        self.fake, self.ptr = fake, ptr

    def __enter__(self) -> Stream:
        self.fake.entered.append(self.ptr)
        return self

    def __exit__(self, *_: object) -> None:
        self.fake.entered.pop()

    def synchronize(self) -> None:
        pass

    def begin_capture(self, mode: int) -> None:
        assert mode == 1, "other threads may go on"
        self.fake.capturing[self.ptr] = []

    def end_capture(self) -> Any:
        work = self.fake.capturing.pop(self.ptr)
        self.fake.graphs.append(work)
        return SimpleNamespace(graphExec=len(self.fake.graphs), upload=lambda stream: None)


@dataclass
class Fake:
    """The module, and what was done with it. ``devices`` is how many there are; below 0, what the driver lacks."""

    devices: int = 1
    memory: int = 10**9
    capability: str = "90"
    driver_version: int = 13000
    stream: int = 7
    current: int = 0
    executes: bool = False
    broken_driver: str = ""
    full: Exception = field(default_factory=lambda: OutOfMemoryError("Out of memory"))
    launched: list[Launched] = field(default_factory=list)
    loaded: list[Path] = field(default_factory=list)
    copied: list[tuple[int, int, int]] = field(default_factory=list)
    entered: list[int] = field(default_factory=list)
    allocated: list[tuple[int, int]] = field(default_factory=list)
    capturing: dict[int, list[Callable[[], None]]] = field(default_factory=dict)
    graphs: list[list[Callable[[], None]]] = field(default_factory=list)
    functions: list[tuple[str, int, Callable[..., None] | None]] = field(default_factory=list)
    shared: dict[int, int] = field(default_factory=dict)
    streams: Iterator[int] = field(default_factory=lambda: itertools.count(100))
    properties: dict[str, Any] = field(
        default_factory=lambda: {"name": b"NVIDIA H200", "totalGlobalMem": 150 * 2**30, "multiProcessorCount": 132}
    )
    switched: list[int] = field(default_factory=list)
    launching: Callable[[], None] = lambda: None

    def module(self) -> Any:
        runtime = SimpleNamespace(
            getDeviceCount=self._count, CUDARuntimeError=CUDARuntimeError, memcpyAsync=self._copy,
            memcpyDeviceToDevice=3, getDevice=lambda: self.current, setDevice=self._switch, memGetInfo=lambda: (
            self.memory, 10**9), driverGetVersion=lambda: self.driver_version, runtimeGetVersion=lambda: 13020,
            getDeviceProperties=self._properties,
            streamIsCapturing=self._is_capturing, streamCaptureModeThreadLocal=1, graphLaunch=self._replay,
        )  # fmt: skip
        cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(
                CUDADriverError=CUDADriverError, launchKernel=self._launch, funcSetAttribute=self._set
            ),
            Device=self._device,
            Module=lambda: SimpleNamespace(load_file=self._load, get_function=self._function),
            alloc=self._alloc,
            get_current_stream=lambda device: Stream(self, self.entered[-1] if self.entered else self.stream),
            Stream=lambda non_blocking: Stream(self, next(self.streams)),
            Event=lambda: SimpleNamespace(record=lambda: None, synchronize=lambda: None),
            get_elapsed_time=lambda before, after: float(len(self.launched) or 1),
        )
        return SimpleNamespace(
            ndarray=ndarray, cuda=cuda, empty=self._empty, from_dlpack=lambda array: ndarray(array.values),
            asarray=ndarray, asnumpy=lambda array: array.values, __version__="14.2.0",
        )  # fmt: skip

    def _count(self) -> int:
        if self.devices < 0:
            raise CUDARuntimeError("cudaErrorInsufficientDriver")
        return self.devices

    def _properties(self, number: int) -> dict[str, Any]:
        major, minor = divmod(int(self.capability), 10)
        return self.properties | {"major": major, "minor": minor}

    def _switch(self, number: int) -> None:
        self.current = number
        self.switched.append(number)

    @contextlib.contextmanager
    def _within(self, number: int) -> Iterator[None]:
        before, self.current = self.current, number
        yield
        self.current = before

    def _device(self, number: int = 0) -> Any:
        within = self._within(number)
        return _Device(within, compute_capability=self.capability, id=number)

    def _is_capturing(self, stream: int) -> bool:
        assert stream not in (0, 1), "asking of the default stream can fail"
        return stream in self.capturing

    def _taken(self, count: int) -> None:
        if count > self.memory:
            raise self.full
        self.memory -= count

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> ndarray:
        made = np.full(shape, np.nan, dtype)
        self._taken(made.nbytes)
        return ndarray(made, self.current)

    def _alloc(self, count: int) -> Any:
        self._taken(count)
        made = np.full(count // 4, np.nan, np.float32)
        _MEMORY[made.ctypes.data] = made.nbytes
        self.allocated.append((self.entered[-1] if self.entered else self.stream, count))
        return SimpleNamespace(ptr=made.ctypes.data, kept=made)

    def _load(self, path: str) -> None:
        if self.broken_driver:
            raise CUDADriverError(self.broken_driver)
        self.loaded.append(Path(path))

    def _function(self, name: str) -> Any:
        source = self.loaded[-1].read_text()
        parameters = next(given for _, found, given in KERNEL.findall(source) if found == name)
        run = functools.partial(Executed(source, _behind).run, name) if self.executes else None
        self.functions.append((name, parameters.count(",") + 1, run))
        return SimpleNamespace(ptr=len(self.functions))

    def _set(self, function: int, attribute: int, value: int) -> None:
        assert attribute == 8, "the shared memory that launches may ask for"
        assert value <= 227 * 1024
        self.shared[function] = value

    def _launch(self, function: int, *sizes: int) -> None:
        gx, gy, gz, bx, by, bz, dynamic, stream, at, extra = sizes
        assert (gy, gz, by, bz, extra) == (1, 1, 1, 1, 0)
        if dynamic > self.shared.get(function, 48 * 1024):
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: too much shared memory")
        name, count, run = self.functions[function - 1]
        addresses = ctypes.cast(at, ctypes.POINTER(ctypes.c_uint64))
        arguments = tuple(ctypes.c_uint64.from_address(addresses[n]).value for n in range(count))
        self._queued(stream, lambda: self._ran(Launched(name, gx, bx, stream, arguments), run))
        self.launching()

    def _queued(self, stream: int, work: Callable[[], None]) -> None:
        if stream in self.capturing:
            self.capturing[stream].append(work)
        else:
            work()

    def _ran(self, launched: Launched, run: Callable[..., None] | None) -> None:
        self.launched.append(launched)
        if run is not None:
            run(launched.blocks, launched.arguments)

    def _replay(self, graph: int, stream: int) -> None:
        def work() -> None:
            for launch in self.graphs[graph - 1]:
                launch()

        self._queued(stream, work)

    def _copy(self, to: int, source: int, count: int, kind: int, stream: int) -> None:
        assert kind == 3, "from device to device"

        def work() -> None:
            self.copied.append((to, source, count))
            ctypes.memmove(to, source, count)

        self._queued(stream, work)


class _Device:
    def __init__(self, within: Any, **values: Any) -> None:
        self.__dict__.update(values)
        self._within = within

    def synchronize(self) -> None:
        pass

    def __enter__(self) -> None:
        self._within.__enter__()

    def __exit__(self, *_: object) -> None:
        self._within.__exit__(None, None, None)


def _behind(address: int) -> int:
    """The bytes from ``address`` to the end of the memory it lies in."""
    ends = [start + size for start, size in _MEMORY.items() if start <= address < start + size]
    return max(ends, default=address) - address


def stand_in_build(folder: Path) -> Callable[[str, int], Path]:
    """What ``build`` does, without a compiler: the file it returns has the source."""

    def build(source: str, arch: int) -> Path:
        file = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.sm_{arch}.cubin"
        file.write_text(source)
        return file

    return build
