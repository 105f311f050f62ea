"""Loop IR under other names: buffers, and the extents that bound loops and dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Buffer,
    CeilDiv,
    Comment,
    Constant,
    Declare,
    Extent,
    For,
    Load,
    Scalar,
    Size,
    Statement,
)


@dataclass(frozen=True, slots=True)
class Renaming:
    """New names of buffers; those not listed keep theirs. New extents; every one in use is listed."""

    buffers: Mapping[str, str]
    extents: Mapping[Extent, Extent]

    def statements(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """``statements`` under their new names."""
        return tuple(self._statement(statement) for statement in statements)

    def buffer(self, buffer: Buffer) -> Buffer:
        """``buffer`` under its new name."""
        dims = tuple(self._size(size) for size in buffer.dims)
        parts = tuple((self._size(size), self.extents[extent]) for size, extent in buffer.parts)
        return replace(buffer, name=self.name(buffer.name), dims=dims, parts=parts)

    def name(self, buffer: str) -> str:
        """The new name of ``buffer``."""
        return self.buffers.get(buffer, buffer)

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case For():
                extent, *without = (self.extents[e] for e in (statement.extent, *statement.without))
                body = self.statements(statement.body)
                return replace(statement, extent=extent, body=body, without=tuple(without))
            case Assign(target, value):
                return Assign(self._load(target), self._scalar(value))
            case Accumulate(target, op, value):
                return Accumulate(self._load(target), op, self._scalar(value))
            case Declare(buffer):
                return Declare(self.name(buffer))
            case Comment():
                return statement
            case other:
                assert_never(other)

    def _scalar(self, value: Scalar) -> Scalar:
        match value:
            case Load():
                return self._load(value)
            case Constant():
                return value
            case Apply(op, arguments):
                return Apply(op, tuple(self._scalar(argument) for argument in arguments))
            case other:
                assert_never(other)

    def _load(self, load: Load) -> Load:
        return Load(self.name(load.buffer), load.indices)

    def _size(self, size: Size) -> Size:
        match size:
            case int():
                return size
            case Extent():
                return self.extents[size]
            case CeilDiv(extent, divisor):
                return CeilDiv(self.extents[extent], divisor)
            case other:
                assert_never(other)
