"""Callable kernels: loop IR, its CUDA C source, and the machine code that is built at the first call on a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from ilang_eq.cuda import device
from ilang_eq.cuda.build import build
from ilang_eq.cuda.device import Memory, View
from ilang_eq.cuda.emit import Module, emit
from ilang_eq.cuda.packed import Packed, packed
from ilang_eq.cuda.steps import Layout, Step, layout, steps, workspaces
from ilang_eq.errors import ArrayError, DeviceError
from ilang_eq.lower.interface import Shapes, output_shapes, written_outputs
from ilang_eq.lower.ir import Program

if TYPE_CHECKING:
    from ilang_eq.cuda.graphs import Captured
    from ilang_eq.cuda.prepared import CudaPrepared

_FLOAT = 4
_MOST_SIGNATURES = 256
"""How many combinations of shapes a kernel remembers."""
_MOST_STREAMS = 16
"""How many streams a kernel keeps memory for."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What one combination of input shapes leads to."""

    outputs: Shapes
    bytes: tuple[int, ...]
    """Of the inputs, then of the outputs."""
    steps: tuple[Step, ...]
    layout: Layout
    apart: set[tuple[int, ...]] = field(default_factory=set, compare=False)
    """Where arrays were that do not overlap: a caller who passes them again need not wait for that to be found out."""


class _Ready(threading.local):
    """Launches with their arguments, by shapes, device and stream: for each thread its own."""

    def __init__(self) -> None:
        self.packed: dict[tuple[Shapes, int, int], Packed] = {}


class CudaKernel:
    """A program as a function of arrays on a CUDA device.

    CuPy arrays in, CuPy arrays out; torch CUDA tensors in, torch tensors out; others through DLPack. Any shapes will
    do, as long as they agree. A call queues its launches on the caller's current stream and returns: it neither
    waits nor copies. Memory for intermediate results is kept from call to call, for each stream its own. Safe to call
    from several threads.

    A call may be captured in a CUDA graph (``torch.cuda.graph``, ``cupy.cuda.Stream.begin_capture``) after a first
    one on that device outside; the kernel has to live as long as the graph. ``capture`` makes a graph by itself.

    Args:
        program: what to compute.
        threads: taken for the sake of other targets; a device uses what it has.
        where_empty: what to compute instead where an axis has no elements, None for ``program``; asked when needed.
    """

    def __init__(
        self, program: Program, threads: int | None = None, where_empty: Callable[[], Program | None] = lambda: None
    ) -> None:
        self.program = program
        self._where_empty = where_empty
        self.threads = threads
        self._written = written_outputs(program)
        self._names = (*program.inputs, *(program.outputs[p] for p in self._written))
        self._called = tuple(f"input {k}" for k in range(len(program.inputs)))
        self._returned = tuple(f"out[{n}]" for n in range(len(program.outputs)))
        self._signatures: dict[Shapes, Signature] = {}
        self._loaded: dict[int, dict[str, Any]] = {}
        self._memory: dict[tuple[int, int], tuple[int, Memory]] = {}
        self._held: list[Memory] = []
        self._ready = _Ready()
        self._lock = threading.Lock()
        self._queueing = threading.Lock()

    @cached_property
    def _for_empty(self) -> CudaKernel:
        program = self._where_empty()
        return self if program is None else CudaKernel(program, self.threads)

    def serving(self, shapes: Sequence[tuple[int, ...]]) -> CudaKernel:
        """The kernel for inputs of these shapes: another one where an axis has no elements."""
        return self._for_empty if any(0 in shape for shape in shapes) else self

    @cached_property
    def module(self) -> Module:
        """The source and how to launch it; needs neither a compiler nor a device."""
        return emit(self.program)

    @property
    def source(self) -> str:
        """The CUDA C source."""
        return self.module.source

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run on float32 ``arrays``, all on one device and contiguous.

        Args:
            arrays: one per input.
            out: memory for the result: an array, or a tuple of them if there are several outputs.

        Returns:
            The output, or a tuple of the outputs.

        Raises:
            ArrayError: arrays of the wrong number, kind or shape, or an ``out`` that cannot be written.
            DeviceError: no CuPy, no device, too little memory on it, or a capture that this call does not allow.
            BuildError: at the first call, if the kernel cannot be compiled.
        """
        inputs = self.views(arrays)
        where = inputs[0].device
        shapes = tuple([view.shape for view in inputs])
        signature = self._signatures.get(shapes)
        if signature is None:
            serving = self.serving(shapes)
            if serving is not self:
                return serving(*arrays, out=out)
            signature = self.signature(shapes)
        stream = device.stream_of(inputs[0])
        runtime = device.cupy().cuda.runtime
        before = runtime.getDevice()
        if before != where:
            runtime.setDevice(where)
        try:
            outputs = self.outputs(inputs, signature, out)
            self.queue(self._packed(shapes, signature, inputs[0], stream), inputs, outputs, stream)
        finally:
            if before != where:
                runtime.setDevice(before)
        return results(outputs)

    def capture(self, *arrays: Any, out: Any = None) -> Captured:
        """A call on these very arrays as a CUDA graph, to be replayed: see ``ilang_eq/cuda/graphs.py``.

        Args:
            arrays: as for a call. What lies in them at a replay is what that reads.
            out: as for a call; what every replay writes.

        Returns:
            A function without parameters, which returns the outputs.

        Raises:
            ArrayError, DeviceError, BuildError: as for a call.
        """
        from ilang_eq.cuda.graphs import captured

        return captured(self, arrays, out)

    def prepare(self, **constants: Any) -> CudaPrepared:
        """This kernel for inputs that stay the same, with the launches that depend on them alone run once.

        Args:
            constants: arrays under the names of inputs: ``in0`` for the first. They are read at every call too, and
                must not change.

        Returns:
            A function of the other inputs, in their order.

        Raises:
            OptionError: there is no such input.
            ArrayError, DeviceError, BuildError: as for a call.
        """
        from ilang_eq.cuda.prepared import prepared_kernel

        return prepared_kernel(self, constants)

    def views(self, arrays: Sequence[Any]) -> list[View]:
        """The inputs, all on one device. Raises ArrayError."""
        if len(arrays) != len(self._called):
            raise ArrayError(f"{len(arrays)} arrays for a kernel of {len(self._called)} inputs")
        if not arrays:
            raise ArrayError("no arrays", expected="at least one input")
        found = list(map(device.view_of, arrays, self._called))
        _check_one_device(found)
        return found

    def signature(self, shapes: Shapes) -> Signature:
        """What a call with inputs of these shapes does. Raises ArrayError for shapes that do not fit."""
        for what, shape, rank in zip(self._called, shapes, self.program.ranks, strict=True):
            if rank is not None and len(shape) != rank:
                raise ArrayError(f"{what} has shape {tuple(shape)}", expected=f"{rank} dimension{'s' * (rank != 1)}")
        launches = steps(self.module, shapes)
        outputs = output_shapes(self.program, shapes)
        sizes = tuple(_FLOAT * prod(shape) for shape in (*shapes, *outputs))
        made = Signature(outputs, sizes, launches, layout(workspaces(self.module, shapes), launches))
        if len(self._signatures) >= _MOST_SIGNATURES:
            self._signatures.clear()
        self._signatures[shapes] = made
        return made

    def outputs(self, inputs: Sequence[View], signature: Signature, out: Any) -> list[View]:
        """Where results go: fresh memory on the current device, or ``out``. Raises ArrayError, DeviceError."""
        if out is None:
            return [device.empty(inputs[0], shape) for shape in signature.outputs]
        shapes = signature.outputs
        given = out if isinstance(out, tuple | list) else (out,)
        if len(given) != len(shapes):
            raise ArrayError(f"out is {len(given)} arrays", expected=f"{len(shapes)} of them")
        views = list(map(device.view_of, given, self._returned))
        where = inputs[0].device
        for n, view in enumerate(views):
            if view.shape != shapes[n]:
                raise ArrayError(f"out[{n}] has shape {tuple(view.shape)}", expected=f"shape {tuple(shapes[n])}")
            if view.device != where:
                _check_one_device([*inputs, view])
        places = tuple([view.pointer for view in (*inputs, *views)])
        if places not in signature.apart:
            _check_apart(inputs, views, signature.bytes)
            if len(signature.apart) >= _MOST_SIGNATURES:
                signature.apart.clear()
            signature.apart.add(places)
        return views

    def packed(self, signature: Signature, where: int, memory: Memory | None) -> Packed:
        """The launches of ``signature`` on the current device, which is number ``where``."""
        return packed(self._names, signature.steps, signature.layout, self._functions(where), memory)

    def build(self, where: int, stream: int) -> None:
        """Have the kernels on the current device, which is number ``where``.

        Raises:
            DeviceError: ``stream`` is being captured, and the kernels are not there yet.
            BuildError: they cannot be compiled.
        """
        if where not in self._loaded and device.is_capturing(stream):
            raise DeviceError(
                "the first call of a kernel on a device loads it, which cannot be captured in a CUDA graph",
                expected="a call of it before the capture begins",
            )
        self._functions(where)

    def queue(self, ready: Packed, inputs: Sequence[View], outputs: Sequence[View], stream: int) -> None:
        """Launch on the current device. Raises DeviceError."""
        slots = ready.slots
        n = 0
        for view in inputs:
            slots[n] = view.pointer
            n += 1
        for position in self._written:
            slots[n] = outputs[position].pointer
            n += 1
        if ready.memory is None:
            _launch(ready, stream)
        else:
            # what another thread queues on this stream uses the same memory: it has to come before all or after all
            with self._queueing:
                _launch(ready, stream)
        if len(self._written) < len(outputs):
            self._copy(inputs, outputs, stream)

    def _packed(self, shapes: Shapes, signature: Signature, like: View, stream: int) -> Packed:
        """The launches of ``signature``, with the memory that belongs to ``stream``, or to its capture."""
        key = (shapes, like.device, stream)
        size = signature.layout.bytes
        if size and device.is_capturing(stream):
            return self._packed_for_capture(signature, like, stream)
        known = self._ready.packed.get(key)
        if known is not None:
            return known
        self.build(like.device, stream)
        # a thread that has made no call yet has no context; this gives it one
        device.cupy().cuda.runtime.setDevice(like.device)
        made = self.packed(signature, like.device, self._memory_of(like, size, stream) if size else None)
        if len(self._ready.packed) >= _MOST_SIGNATURES:
            self._ready.packed.clear()
        self._ready.packed[key] = made
        return made

    def _packed_for_capture(self, signature: Signature, like: View, stream: int) -> Packed:
        """With memory of its own: the graph may run while other calls do. Torch keeps that of its graphs by itself."""
        self.build(like.device, stream)
        memory = device.memory(like, signature.layout.bytes)
        if not like.torch:
            self._held.append(memory)
        return self.packed(signature, like.device, memory)

    def _memory_of(self, like: View, size: int, stream: int) -> Memory:
        """At least ``size`` bytes for work on ``stream``, the same at every call; more than before replaces it."""
        key = (like.device, stream)
        with self._lock:
            had, memory = self._memory.pop(key, (0, None))
            if memory is None or had < size:
                had, memory = size, None
                self._make_room()
                memory = device.memory(like, size)
            self._memory[key] = (had, memory)
            return memory

    def _make_room(self) -> None:
        """Let go of the memory of streams that were first used long ago, and of what this thread would use it for."""
        self._ready.packed.clear()
        while len(self._memory) >= _MOST_STREAMS:
            del self._memory[next(iter(self._memory))]

    def _functions(self, where: int) -> dict[str, Any]:
        """The kernels on a device, built and loaded once."""
        found = self._loaded.get(where)
        if found is not None:
            return found
        with self._lock:
            if where not in self._loaded:
                file = build(self.source, device.architecture(where))
                self._loaded[where] = device.load(file, {entry.name: entry.shared for entry in self.module.entries})
            return self._loaded[where]

    def _copy(self, inputs: Sequence[View], outputs: Sequence[View], stream: int) -> None:
        """Outputs that are an input passed through, or an earlier output again."""
        runtime = device.cupy().cuda.runtime
        for position, name in enumerate(self.program.outputs):
            if position in self._written:
                continue
            first = self.program.outputs.index(name)
            source = inputs[self.program.inputs.index(name)] if name in self.program.inputs else outputs[first]
            size = _FLOAT * prod(source.shape)
            runtime.memcpyAsync(outputs[position].pointer, source.pointer, size, runtime.memcpyDeviceToDevice, stream)


def _launch(ready: Packed, stream: int) -> None:
    """Every launch, in order. Raises DeviceError."""
    driver = device.cupy().cuda.driver
    launch = driver.launchKernel
    try:
        for function, blocks, threads, shared, arguments in ready.launches:
            launch(function, blocks, 1, 1, threads, 1, 1, shared, stream, arguments, 0)
    except driver.CUDADriverError as error:
        raise DeviceError(f"the driver refuses a launch, or an earlier one has failed: {error}") from None


def results(outputs: Sequence[View]) -> Any:
    """What a call returns: the caller's array, or a tuple of them."""
    return outputs[0].owner if len(outputs) == 1 else tuple(view.owner for view in outputs)


def _check_one_device(views: Sequence[View]) -> None:
    """Raise ArrayError unless all arrays are on one device."""
    where = views[0].device
    for view in views:
        if view.device != where:
            devices = sorted({view.device for view in views})
            raise ArrayError(f"arrays on CUDA devices {' and '.join(map(str, devices))}", expected="all on one device")


def _check_apart(inputs: Sequence[View], outputs: Sequence[View], sizes: Sequence[int]) -> None:
    """Raise ArrayError where an output shares memory with an input or another output; all have so many bytes."""
    starts = [view.pointer for view in inputs]
    for n, view in enumerate(outputs):
        start, size = view.pointer, sizes[len(starts)]
        for k, other in enumerate(starts):
            if other - size < start < other + sizes[k]:
                what = f"input {k}" if k < len(inputs) else f"out[{k - len(inputs)}]"
                raise ArrayError(f"out[{n}] overlaps {what} in memory", expected="memory of its own")
        starts.append(start)
