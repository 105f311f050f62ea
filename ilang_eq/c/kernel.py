"""Callable kernels: loop IR, its C source, and the library that is built when it is first called."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

import numpy as np

from ilang_eq.c.arrays import Array, Floats, as_floats, as_readable, empty, given_outputs, uses_torch
from ilang_eq.c.build import build
from ilang_eq.c.emit import call_extents, emit, written_outputs
from ilang_eq.errors import ArrayError, BuildError, OptionError
from ilang_eq.lower.ir import CeilDiv, Extent, Program, Size

_ALIGNMENT = 64
_MOST_SIGNATURES = 256
"""How many combinations of shapes a kernel remembers."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """What one combination of input shapes leads to."""

    extents: ctypes.Array[ctypes.c_int64]
    outputs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class _Library:
    """A loaded kernel."""

    run: Any
    workspace: Any


class CKernel:
    """A program as a function of arrays.

    NumPy arrays in, NumPy arrays out; torch CPU tensors in, torch tensors out, without copies. Any shapes will do, as
    long as they agree with each other. Safe to call from several threads at once; results do not depend on ``threads``.

    Args:
        program: what to compute.
        threads: how many threads a call may use; None for as many as the process may run on.

    Raises:
        OptionError: fewer than one thread.
    """

    def __init__(self, program: Program, threads: int | None = None) -> None:
        self.program = program
        self.threads = checked_threads(threads)
        self._buffers = {buffer.name: buffer for buffer in program.buffers}
        self._written = written_outputs(program)
        self._signatures: dict[tuple[tuple[int, ...], ...], _Signature] = {}
        self._local = threading.local()

    @cached_property
    def source(self) -> str:
        """The C source; needs no compiler."""
        return emit(self.program)

    @cached_property
    def _library(self) -> _Library:
        return _load(self.source)

    def __call__(self, *arrays: Any, out: Any = None) -> Array | tuple[Array, ...]:
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
        as_torch = uses_torch(arrays)
        inputs = self._checked(arrays)
        signature = self._signature(tuple(array.shape for array in inputs))
        if out is None:
            results = [empty(shape, as_torch) for shape in signature.outputs]
        else:
            if uses_torch(out if isinstance(out, tuple | list) else (out,)) != as_torch:
                raise ArrayError("out is not of the inputs' kind", expected="torch tensors for torch, NumPy for NumPy")
            results = given_outputs(out, signature.outputs, inputs)
        self._run(inputs, [view for _, view in results], signature)
        return results[0][0] if len(results) == 1 else tuple(array for array, _ in results)

    def _checked(self, arrays: Sequence[Any]) -> list[Floats]:
        ranks = self.program.ranks
        if len(arrays) != len(ranks):
            raise ArrayError(f"{len(arrays)} arrays for a kernel of {len(ranks)} inputs", expected=self._expected())
        return [as_floats(array, f"input {k}", rank) for k, (array, rank) in enumerate(zip(arrays, ranks, strict=True))]

    def _expected(self) -> str:
        shapes = [self._buffers[name].dims for name in self.program.inputs]
        return "inputs of shapes " + ", ".join(f"({', '.join(map(str, dims))})" for dims in shapes)

    def _signature(self, shapes: tuple[tuple[int, ...], ...]) -> _Signature:
        """What ``shapes`` lead to; checked once. Raises ArrayError for extents that disagree."""
        known = self._signatures.get(shapes)
        if known is not None:
            return known
        for first, *others in self.program.ties:
            for k, d in others:
                if shapes[k][d] != shapes[first[0]][first[1]]:
                    raise ArrayError(
                        f"input {k} has {shapes[k][d]} elements along dimension {d}, "
                        f"but input {first[0]} has {shapes[first[0]][first[1]]} along dimension {first[1]}",
                        expected="equal extents",
                    )
        extents = [shapes[e.input][e.dim] for e in call_extents(self.program)]
        outputs = tuple(self._output_shape(name, shapes) for name in self.program.outputs)
        found = _Signature((ctypes.c_int64 * max(len(extents), 1))(*extents), outputs)
        if len(self._signatures) >= _MOST_SIGNATURES:
            self._signatures.clear()
        self._signatures[shapes] = found
        return found

    def _output_shape(self, name: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        if name in self.program.inputs:
            return shapes[self.program.inputs.index(name)]
        return tuple(_number(size, shapes) for size in self._buffers[name].dims)

    def _run(self, inputs: Sequence[Floats], outputs: Sequence[Floats], signature: _Signature) -> None:
        readable = [as_readable(array) for array in inputs]
        if self._written:
            workspace = self._workspace(signature)
            code = self._library.run(
                _pointers(readable), _pointers(outputs), signature.extents, workspace, _threads_now(self.threads)
            )
            assert code == 0, f"the kernel refused its arguments with code {code}"
        for position, name in enumerate(self.program.outputs):
            if position not in self._written:
                outputs[position][...] = self._passed_on(name, readable, outputs)

    def _passed_on(self, name: str, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> Floats:
        """What an output repeats that no kernel writes."""
        if name in self.program.inputs:
            return inputs[self.program.inputs.index(name)]
        return outputs[self.program.outputs.index(name)]

    def _workspace(self, signature: _Signature) -> int | None:
        """The address of this thread's workspace, grown to what ``signature`` needs; None if that is nothing."""
        floats = self._library.workspace(signature.extents, self.threads)
        if floats < 0:
            raise ArrayError("the intermediate results of these shapes do not fit in memory", expected="smaller arrays")
        if floats == 0:
            return None
        memory = getattr(self._local, "memory", None)
        if memory is None or memory.size < floats + _ALIGNMENT // 4:
            memory = self._local.memory = np.empty(floats + _ALIGNMENT // 4, dtype=np.float32)
        address = memory.ctypes.data
        return address + -address % _ALIGNMENT


def checked_threads(threads: int | None) -> int:
    """A number of threads: as given, or as many as this process may run on. Raises OptionError."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise OptionError(f"threads is {threads!r}", expected="a whole number from 1, or None for all there are")
    return threads


def _number(size: Size, shapes: Sequence[tuple[int, ...]]) -> int:
    match size:
        case int():
            return size
        case Extent(k, d):
            return shapes[k][d]
        case CeilDiv(Extent(k, d), divisor):
            return -(-shapes[k][d] // divisor)
        case other:
            assert_never(other)


def _pointers(arrays: Sequence[Floats]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.__array_interface__["data"][0] for array in arrays))


def _load(source: str) -> _Library:
    """Build and load; a cached library that does not load is built again, once."""
    path = build(source)
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        path.unlink(missing_ok=True)
        try:
            library = ctypes.CDLL(str(build(source)))
        except OSError as error:
            raise BuildError(f"a kernel was compiled but does not load: {error}") from None
    run, workspace = library.ilang_run, library.ilang_workspace
    run.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int]
    run.restype = ctypes.c_int
    workspace.argtypes = [ctypes.c_void_p, ctypes.c_int]
    workspace.restype = ctypes.c_int64
    return _Library(run, workspace)


class _Threading:
    """Whether OpenMP's threads exist, and were lost to a fork: a child that waits for them would wait for ever."""

    started = False
    lost = False

    @classmethod
    def after_fork(cls) -> None:
        cls.lost = cls.started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Threading.after_fork)


def _threads_now(threads: int) -> int:
    """``threads``, or 1 in a process forked from one that had used OpenMP."""
    if threads > 1:
        if _Threading.lost:
            return 1
        _Threading.started = True
    return threads
