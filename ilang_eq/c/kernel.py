"""Callable kernels: loop IR, its C source, and the library that is built when it is first called."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ilang_eq.c.arrays import (
    ALIGNMENT,
    Floats,
    as_floats,
    as_readable,
    empty,
    given_outputs,
    returned,
    room_for,
    tensor_views,
    uses_torch,
)
from ilang_eq.c.build import build
from ilang_eq.c.caller import NOT_QUICK, Call, Enter, call_of, quick_entry
from ilang_eq.c.caller import SOURCE as ENTRY_SOURCE
from ilang_eq.c.emit import emit
from ilang_eq.c.library import Library, load, threads_now
from ilang_eq.c.memory import maker
from ilang_eq.errors import ArrayError, BuildError
from ilang_eq.host import checked_threads
from ilang_eq.lower.interface import Shapes, call_extents, output_shapes, written_outputs
from ilang_eq.lower.ir import Program

if TYPE_CHECKING:
    from ilang_eq.c.prepared import Prepared

_MOST_SIGNATURES = 256
"""How many combinations of shapes a kernel remembers."""
_PAGE = 4096
"""Bytes in a page."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """What one combination of input shapes leads to.

    Attributes:
        outputs: their shapes.
        fresh: makes NumPy arrays for them.
        workspace: how many floats of it the kernel needs.
        call: what ``enter`` needs to know, kept at ``address``.
        enter: the quick way in.
    """

    outputs: Shapes
    fresh: Callable[[], Any]
    workspace: int
    call: Call
    address: int
    enter: Enter


class _Workspace(threading.local):
    """What each thread keeps between calls."""

    def __init__(self) -> None:
        self.memory: Floats = np.empty(0, dtype=np.float32)
        self.aligned = 0

    def address(self, floats: int) -> int:
        """The address of at least ``floats`` floats, aligned, and always as far into a page.

        Rows at hand are often as far into their pages as rows of arguments, and processors take the one for the other
        where loads come as far as earlier stores: a softmax takes 4.1 to 4.6 ms on Zen 4, but 6.2 with a workspace that
        begins with the last line of a page. NumPy's large arrays begin 16 bytes into one.
        """
        if self.memory.size < floats + _PAGE // 4:
            with room_for("what lies between the kernels for these shapes"):
                self.memory = np.empty(floats + _PAGE // 4, dtype=np.float32)
            self.aligned = self.memory.ctypes.data + (ALIGNMENT - self.memory.ctypes.data) % _PAGE
        return self.aligned


class CKernel:
    """A program as a function of arrays.

    NumPy arrays in, NumPy arrays out; torch CPU tensors in, torch tensors out, without copies. Any shapes will do, as
    long as they agree with each other. Safe to call from several threads at once; results do not depend on ``threads``.

    Args:
        program: what to compute.
        threads: how many threads a call may use; None for as many as the process may run on.
        where_empty: what to compute instead where an axis has no elements, None for ``program``; asked when needed.

    Raises:
        OptionError: fewer than one thread.
    """

    def __init__(
        self, program: Program, threads: int | None = None, where_empty: Callable[[], Program | None] = lambda: None
    ) -> None:
        self.program = program
        self.where_empty = where_empty
        self.threads = checked_threads(threads)
        self._buffers = {buffer.name: buffer for buffer in program.buffers}
        self._written = written_outputs(program)
        self._signatures: dict[tuple[tuple[int, ...], ...], _Signature] = {}
        self._last: _Signature | None = None
        self._workspace = _Workspace()

    @cached_property
    def source(self) -> str:
        """The C source; needs no compiler."""
        return emit(self.program)

    @cached_property
    def _for_empty(self) -> CKernel:
        program = self.where_empty()
        return self if program is None else CKernel(program, self.threads)

    def serving(self, shapes: Sequence[tuple[int, ...]]) -> CKernel:
        """The kernel for inputs of these shapes: another one where an axis has no elements."""
        return self._for_empty if any(0 in shape for shape in shapes) else self

    @cached_property
    def _library(self) -> Library:
        path = build(self.source)
        try:
            return load(path)
        except BuildError:
            # a damaged cache: once more from the source
            path.unlink(missing_ok=True)
            return load(build(self.source))

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run on float32 ``arrays``; float scalars will do for inputs without dimensions.

        Args:
            arrays: one per input. One that is not contiguous is copied.
            out: memory for the result: an array, or a tuple of them if there are several outputs.

        Returns:
            The output, or a tuple of the outputs.

        Raises:
            ArrayError: arrays of the wrong number, type or shape, or an ``out`` that cannot be written.
            BuildError: at the first call, if the kernel cannot be compiled.
        """
        result = self.quickly(arrays, out)
        return self.carefully(arrays, out) if result is None else result

    def prepare(self, **constants: Any) -> Prepared:
        """This kernel for inputs that stay the same, with all that depends on them alone computed, once.

        Whole kernels of the plan are run ahead: copies, transposes and reductions of the constants that the schedule
        materialises. One that is staged inside a kernel of other inputs is not.

        Args:
            constants: arrays under the names of inputs: ``in0`` for the first. Some are read at every call too, and
                must not change.

        Returns:
            A function of the other inputs, in their order. Its results are those of this kernel, bit by bit.

        Raises:
            OptionError: there is no such input.
            ArrayError: an array that the kernel cannot be called with.
        """
        from ilang_eq.c.prepared import prepared_kernel

        return prepared_kernel(self, constants)

    def sources(self, constants: Collection[int] = ()) -> tuple[str, ...]:
        """What is compiled at the first call: of the kernel, or of what ``prepare`` makes of it for these inputs."""
        from ilang_eq.c.prepared import halves

        if not constants:
            return (self.source, ENTRY_SOURCE)
        _, first, rest = halves(self, frozenset(constants))
        return (*(half.source for half in (first, rest) if half.program.outputs), ENTRY_SOURCE)

    def quickly(self, arrays: tuple[Any, ...], out: Any) -> Any:
        """What a call returns, for plain arrays of the shapes of the call before; for others None, with nothing run."""
        signature = self._last
        if signature is None:
            return None
        if arrays and type(arrays[0]) is not np.ndarray:
            arrays, result, memory = _of_tensors(arrays, out, signature.outputs)
        else:
            result = memory = signature.fresh() if out is None else out
        workspace = self._workspace.address(signature.workspace) if signature.workspace else 0
        code = signature.enter(arrays, memory, signature.address, workspace, threads_now(self.threads))
        assert code <= 0, f"the kernel refused its arguments with code {code}"
        return None if code == NOT_QUICK else result

    def carefully(self, arrays: Sequence[Any], out: Any) -> Any:
        """What any call returns: everything is checked, converted where that is allowed, and run."""
        as_torch = uses_torch(arrays)
        inputs = self._checked(arrays)
        shapes = tuple(array.shape for array in inputs)
        serving = self.serving(shapes)
        if serving is not self:
            return serving.carefully(arrays, out)
        outputs = output_shapes(self.program, shapes)
        if out is None:
            results = [empty(shape, as_torch) for shape in outputs]
        else:
            if uses_torch(out if isinstance(out, tuple | list) else (out,)) != as_torch:
                raise ArrayError("out is not of the inputs' kind", expected="torch tensors for torch, NumPy for NumPy")
            results = given_outputs(out, outputs, inputs)
        self._run([as_readable(array) for array in inputs], [view for _, view in results], self._signature(shapes))
        return returned([array for array, _ in results])

    def _checked(self, arrays: Sequence[Any]) -> list[Floats]:
        ranks = self.program.ranks
        if len(arrays) != len(ranks):
            shapes = [f"({', '.join(map(str, self._buffers[name].dims))})" for name in self.program.inputs]
            raise ArrayError(
                f"{len(arrays)} arrays for a kernel of {len(ranks)} inputs", expected=f"shapes {', '.join(shapes)}"
            )
        return [as_floats(array, f"input {k}", rank) for k, (array, rank) in enumerate(zip(arrays, ranks, strict=True))]

    def _signature(self, shapes: tuple[tuple[int, ...], ...]) -> _Signature:
        """What ``shapes``, which agree, lead to; worked out once. Builds the library."""
        known = self._signatures.get(shapes)
        if known is not None:
            return known
        extents = [shapes[e.input][e.dim] for e in call_extents(self.program)]
        outputs = output_shapes(self.program, shapes)
        call = call_of(self._library.run, extents, shapes, outputs)
        workspace = self._library.workspace(call.extents, self.threads) if self._written else 0
        if workspace < 0:
            raise ArrayError(
                "the intermediate results for these shapes do not fit in memory", expected="smaller arrays"
            )
        if len(self._signatures) >= _MOST_SIGNATURES:
            self._signatures.clear()
        signature = _Signature(outputs, _maker(outputs), workspace, call, ctypes.addressof(call), quick_entry())
        self._signatures[shapes] = signature
        return signature

    def _run(self, inputs: Sequence[Floats], outputs: Sequence[Floats], signature: _Signature) -> None:
        """Run the kernels on arrays that have been checked."""
        if self._written:
            workspace, threads = self._workspace.address(signature.workspace), threads_now(self.threads)
            code = self._library.run(_pointers(inputs), _pointers(outputs), signature.call.extents, workspace, threads)
            assert code == 0, f"the kernel refused its arguments with code {code}"
        if len(self._written) == len(outputs):
            self._last = signature
        for position, name in enumerate(self.program.outputs):
            if position in self._written:
                continue
            if name in self.program.inputs:
                outputs[position][...] = inputs[self.program.inputs.index(name)]
            else:
                outputs[position][...] = outputs[self.program.outputs.index(name)]


def _maker(outputs: Shapes) -> Callable[[], Any]:
    """A function that makes NumPy arrays of these shapes, as a call returns them."""
    makers = [maker(shape) for shape in outputs]
    return makers[0] if len(makers) == 1 else lambda: tuple([make() for make in makers])


def _of_tensors(tensors: tuple[Any, ...], out: Any, outputs: Shapes) -> tuple[Any, Any, Any]:
    """Torch ``tensors`` as NumPy sees them; what the call returns, ``out`` if that is given; and that as NumPy sees it.

    What NumPy does not see is None, with which no kernel is entered.
    """
    arrays = tensor_views(tensors)
    if arrays is None:
        return None, None, None
    if out is None:
        results, views = zip(*[empty(shape, True) for shape in outputs], strict=True)
        return arrays, returned(results), returned(views)
    views = tensor_views((out,) if len(outputs) == 1 else out)
    return arrays, out, None if views is None else returned(views)


def _pointers(arrays: Sequence[Floats]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
