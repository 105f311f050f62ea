"""Callable kernels: loop IR, its CUDA C source, and the machine code that is built at the first call on a device."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang_eq.cuda import device
from ilang_eq.cuda.build import build
from ilang_eq.cuda.device import View
from ilang_eq.cuda.emit import Module, emit
from ilang_eq.cuda.steps import Step, steps, workspaces
from ilang_eq.errors import ArrayError
from ilang_eq.lower.interface import Shapes, output_shapes, written_outputs
from ilang_eq.lower.ir import Program

if TYPE_CHECKING:
    from ilang_eq.cuda.prepared import CudaPrepared

_MOST_SIGNATURES = 256
"""How many combinations of shapes a kernel remembers."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """What one combination of input shapes leads to."""

    outputs: Shapes
    steps: tuple[Step, ...]
    workspaces: dict[str, int]


class CudaKernel:
    """A program as a function of arrays on a CUDA device.

    CuPy arrays in, CuPy arrays out; torch CUDA tensors in, torch tensors out; others through DLPack. Any shapes will
    do, as long as they agree. A call queues its launches on the caller's current stream and returns: it neither
    waits nor copies; after the first, one with ``out`` may be captured in a CUDA graph. Safe to call from several
    threads.

    Args:
        program: what to compute.
        threads: taken for the sake of other targets; a device uses what it has.
    """

    def __init__(self, program: Program, threads: int | None = None) -> None:
        self.program = program
        self.threads = threads
        self._signatures: dict[Shapes, _Signature] = {}
        self._loaded: dict[int, dict[str, Any]] = {}
        self._lock = threading.Lock()

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
            DeviceError: no CuPy, no device, or too little memory on it.
            BuildError: at the first call, if the kernel cannot be compiled.
        """
        ranks = self.program.ranks
        if len(arrays) != len(ranks):
            raise ArrayError(f"{len(arrays)} arrays for a kernel of {len(ranks)} inputs")
        inputs = [device.view_of(a, f"input {k}", rank) for k, (a, rank) in enumerate(zip(arrays, ranks, strict=True))]
        where = _one_device(inputs)
        signature = self._signature(tuple(view.shape for view in inputs))
        stream = device.stream_of(inputs[0])
        with device.cupy().cuda.Device(where), stream:
            outputs = self._outputs(inputs, signature.outputs, out)
            self._launch(inputs, outputs, signature, where, stream)
            self._copy(inputs, outputs, stream)
        results = [view.owner for view in outputs]
        return results[0] if len(results) == 1 else tuple(results)

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

    def _signature(self, shapes: Shapes) -> _Signature:
        known = self._signatures.get(shapes)
        if known is not None:
            return known
        made = _Signature(
            output_shapes(self.program, shapes), steps(self.module, shapes), workspaces(self.module, shapes)
        )
        if len(self._signatures) >= _MOST_SIGNATURES:
            self._signatures.clear()
        self._signatures[shapes] = made
        return made

    def _outputs(self, inputs: Sequence[View], shapes: Shapes, out: Any) -> list[View]:
        if out is None:
            return [device.empty(inputs[0], shape) for shape in shapes]
        given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(shapes):
            raise ArrayError(f"out is {len(given)} arrays", expected=f"{len(shapes)} of them")
        views = [device.view_of(array, f"out[{n}]", None) for n, array in enumerate(given)]
        for n, (view, shape) in enumerate(zip(views, shapes, strict=True)):
            if view.shape != shape:
                raise ArrayError(f"out[{n}] has shape {view.shape}", expected=f"shape {shape}")
        _one_device([*inputs, *views])
        _check_apart(inputs, views)
        return views

    def _functions(self, where: int) -> dict[str, Any]:
        """The kernels on a device, built and loaded once."""
        with self._lock:
            if where not in self._loaded:
                file = build(self.source, device.architecture(where))
                self._loaded[where] = device.load(file, [entry.name for entry in self.module.entries])
            return self._loaded[where]

    def _launch(
        self, inputs: Sequence[View], outputs: Sequence[View], signature: _Signature, where: int, stream: Any
    ) -> None:
        functions = self._functions(where)
        pointers = {name: view.pointer for name, view in zip(self.program.inputs, inputs, strict=True)}
        pointers |= {self.program.outputs[p]: outputs[p].pointer for p in written_outputs(self.program)}
        held = {name: device.floats(count) for name, count in signature.workspaces.items()}
        pointers |= {name: memory.ptr for name, memory in held.items()}
        for step in signature.steps:
            pieces = [device.floats(count) for count in step.scratch]
            addresses = [pointers[name] for name in step.entry.pointers] + [piece.ptr for piece in pieces]
            arguments = [*map(np.uint64, addresses), *map(np.int64, step.extents)]
            functions[step.entry.name]((step.blocks, 1, 1), (step.entry.block.threads, 1, 1), tuple(arguments))

    def _copy(self, inputs: Sequence[View], outputs: Sequence[View], stream: Any) -> None:
        """Outputs that are an input passed through, or an earlier output again."""
        for position, name in enumerate(self.program.outputs):
            if position in written_outputs(self.program):
                continue
            first = self.program.outputs.index(name)
            source = inputs[self.program.inputs.index(name)] if name in self.program.inputs else outputs[first]
            copy = device.cupy().cuda.runtime.memcpyAsync
            copy(outputs[position].pointer, source.pointer, source.end - source.pointer, _BETWEEN_DEVICE, stream.ptr)


_BETWEEN_DEVICE = 3
"""cudaMemcpyDeviceToDevice."""


def _one_device(views: Sequence[View]) -> int:
    """The device that all arrays are on. Raises ArrayError."""
    if not views:
        raise ArrayError("no arrays", expected="at least one input")
    devices = sorted({view.device for view in views})
    if len(devices) > 1:
        raise ArrayError(f"arrays on CUDA devices {' and '.join(map(str, devices))}", expected="all on one device")
    return devices[0]


def _check_apart(inputs: Sequence[View], outputs: Sequence[View]) -> None:
    """Raise ArrayError where an output shares memory with an input or another output."""
    spans = [(f"input {k}", view) for k, view in enumerate(inputs)]
    for n, view in enumerate(outputs):
        for what, other in spans:
            if view.pointer < other.end and other.pointer < view.end:
                raise ArrayError(f"out[{n}] overlaps {what} in memory", expected="memory of its own")
        spans.append((f"out[{n}]", view))
