"""What a call of a program takes and gives, whatever the target: extents, and the outputs' shapes."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import TypeAlias, assert_never

from ilang_eq.errors import ArrayError
from ilang_eq.lower.addresses import extents_in
from ilang_eq.lower.ir import CeilDiv, Extent, Program, Size

Shapes: TypeAlias = tuple[tuple[int, ...], ...]
"""One shape an input, or an output."""


def call_extents(program: Program) -> tuple[Extent, ...]:
    """The extents that the entry points take, sorted."""
    statements = [statement for kernel in program.kernels for statement in kernel.body]
    return extents_in(program.buffers, statements)


def written_outputs(program: Program) -> tuple[int, ...]:
    """The positions of the outputs that the kernels write; the others repeat one of these, or an input."""
    first = {name: position for position, name in reversed(tuple(enumerate(program.outputs)))}
    return tuple(p for p, name in enumerate(program.outputs) if first[name] == p and name not in program.inputs)


def summed_extents(program: Program, constants: Collection[int] = ()) -> tuple[Extent, ...]:
    """The extents that some output lacks, and inputs number ``constants`` too: if one is 0, something sums nothing."""
    given = {size for k in constants for size in _dims(program, program.inputs[k])}
    outputs = [_dims(program, name) for name in program.outputs if name not in program.inputs]
    return tuple(e for e in call_extents(program) if e not in given and any(e not in dims for dims in outputs))


def _dims(program: Program, name: str) -> tuple[Size, ...]:
    return next((buffer.dims for buffer in program.buffers if buffer.name == name), ())


def output_shapes(program: Program, shapes: Shapes) -> Shapes:
    """The outputs' shapes. Raises ArrayError for input extents that disagree."""
    for (k, d), *others in program.ties:
        for other, dim in others:
            if shapes[other][dim] != shapes[k][d]:
                raise ArrayError(
                    f"input {other} has {shapes[other][dim]} elements along dimension {dim}, "
                    f"but input {k} has {shapes[k][d]} along dimension {d}",
                    expected="equal extents",
                )
    return tuple(_output_shape(program, name, shapes) for name in program.outputs)


def _output_shape(program: Program, name: str, shapes: Shapes) -> tuple[int, ...]:
    if name in program.inputs:
        return shapes[program.inputs.index(name)]
    return tuple(size_at(size, shapes) for size in program.buffer(name).dims)


def size_at(size: Size, shapes: Shapes) -> int:
    """``size`` as a number, for these shapes of the inputs."""
    match size:
        case int():
            return size
        case Extent():
            return prod(shapes[k][d] for k, d in size.dims)
        case CeilDiv(extent, divisor):
            return -(-size_at(extent, shapes) // divisor)
        case other:
            assert_never(other)
