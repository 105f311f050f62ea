"""CUDA graphs: the launches of a call, recorded once and replayed with one call of the driver.

    captured = kernel.capture(q, k, v, out=o)
    captured()                                   # on the caller's current stream; returns o

A graph reads and writes the arrays that it was captured with, and has memory of its own for intermediate results: it
may be replayed on any stream, also while the kernel is called on others. Replays of one graph follow each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ilang_eq.cuda import device
from ilang_eq.cuda.device import View
from ilang_eq.cuda.packed import Packed
from ilang_eq.errors import DeviceError

if TYPE_CHECKING:
    from ilang_eq.cuda.kernel import CudaKernel


@dataclass(frozen=True, slots=True)
class Captured:
    """A call as a CUDA graph: replay it by calling this.

    Attributes:
        inputs: the arrays that replays read; write into them to compute something else.
        outputs: the array, or the tuple of arrays, that replays write and return.
    """

    inputs: tuple[Any, ...]
    outputs: Any
    _graph: Any = field(repr=False)
    _first: View = field(repr=False)
    _kept: tuple[CudaKernel, Packed] = field(repr=False)
    """Machine code and memory, which must live as long as the graph."""

    def __call__(self) -> Any:
        """Queue the graph on the caller's current stream: torch's if the arrays are tensors, else CuPy's.

        Returns:
            ``outputs``; like those of a call, they are complete when the stream has come so far.

        Raises:
            DeviceError: the driver refuses.
        """
        runtime = device.cupy().cuda.runtime
        where, stream = self._first.device, device.stream_of(self._first)
        before = runtime.getDevice()
        if before != where:
            runtime.setDevice(where)
        try:
            runtime.graphLaunch(self._graph.graphExec, stream)
        except runtime.CUDARuntimeError as error:
            raise DeviceError(f"the driver refuses a graph, or an earlier launch has failed: {error}") from None
        finally:
            if before != where:
                runtime.setDevice(before)
        return self.outputs


def captured(kernel: CudaKernel, arrays: Sequence[Any], out: Any) -> Captured:
    """A call of ``kernel`` on ``arrays``, recorded. Nothing runs. Raises ArrayError, DeviceError, BuildError."""
    # imported here: kernel.py offers this as a method
    from ilang_eq.cuda.kernel import results

    inputs = kernel.views(arrays)
    where = inputs[0].device
    shapes = tuple(tuple(view.shape) for view in inputs)
    kernel = kernel.serving(shapes)
    signature = kernel.signature(shapes)
    with device.cupy().cuda.Device(where):
        current = device.stream_of(inputs[0])
        if device.is_capturing(current):
            raise DeviceError(
                "the current stream is being captured already", expected="a call of the kernel, which joins that graph"
            )
        outputs = kernel.outputs(inputs, signature, out)
        kernel.build(where, current)
        size = signature.layout.bytes
        ready = kernel.packed(signature, where, device.memory(inputs[0], size) if size else None)
        graph = _recorded(kernel, ready, inputs, outputs)
    owners = tuple(view.owner for view in inputs)
    return Captured(owners, results(outputs), graph, inputs[0], (kernel, ready))


def _recorded(kernel: CudaKernel, ready: Packed, inputs: Sequence[View], outputs: Sequence[View]) -> Any:
    """The graph of one call, by capturing a stream of its own."""
    cuda = device.cupy().cuda
    stream = cuda.Stream(non_blocking=True)
    try:
        # other threads may allocate meanwhile; this one does nothing but launch
        stream.begin_capture(cuda.runtime.streamCaptureModeThreadLocal)
        try:
            kernel.queue(ready, inputs, outputs, stream.ptr)
        finally:
            graph = stream.end_capture()
        graph.upload(stream)
    except cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"the driver captures no graph: {error}") from None
    return graph
