"""The checker of the invariants that ``ir.py`` lists. A failure is the compiler's defect, not that of its input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Buffer,
    Comment,
    Constant,
    Declare,
    For,
    Load,
    Program,
    Scalar,
    Statement,
)


class InvalidProgram(AssertionError):
    """The loop IR breaks one of its invariants."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known at a point of a kernel."""

    buffers: dict[str, Buffer]
    variables: frozenset[str]
    declared: frozenset[str]


def check(program: Program) -> None:
    """Raise InvalidProgram where ``program`` breaks an invariant."""
    buffers = {buffer.name: buffer for buffer in program.buffers}
    _require(len(buffers) == len(program.buffers), "two buffers have one name")
    _require(set(program.inputs) | set(program.outputs) <= set(buffers), "an input or output has no buffer")
    written = set(program.inputs)
    for kernel in program.kernels:
        _block(kernel.body, _Scope(buffers, frozenset(), frozenset()))
        whole = {t.buffer for t in _targets(kernel.body) if buffers[t.buffer].role != "local"}
        for load in _loads(kernel.body):
            if buffers[load.buffer].role != "local":
                _require(load.buffer in written | whole, f"{load.buffer} is read before it is written")
        written |= whole
    missing = set(program.outputs) - written
    _require(not missing, f"outputs {sorted(missing)} are never written")


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise InvalidProgram(why)


def _block(statements: Sequence[Statement], scope: _Scope) -> None:
    declared = scope.declared
    for statement in statements:
        here = _Scope(scope.buffers, scope.variables, declared)
        match statement:
            case For():
                _loop(statement, here)
            case Assign(target, value) | Accumulate(target, _, value):
                _require(scope.buffers[target.buffer].role != "input", f"{target.buffer} is an input, and written")
                for load in (target, *_scalar_loads(value)):
                    _place(load, here)
            case Declare(name):
                _require(scope.buffers[name].role == "local", f"{name} is declared, but not local")
                declared |= {name}
            case Comment():
                pass
            case _:
                assert_never(statement)


def _loop(loop: For, scope: _Scope) -> None:
    _require(loop.variable not in scope.variables, f"{loop.variable} is defined by two enclosing loops")
    _require(set(loop.outer) <= scope.variables, f"the bound of {loop.variable} uses loops that are not around it")
    _require(set(loop.first) <= scope.variables, f"{loop.variable} runs in the first iteration of no loop around it")
    if loop.diagonal is not None:
        around = {*loop.diagonal.position, *loop.diagonal.others} - {loop.variable}
        _require(around <= scope.variables, f"{loop.variable} stops at a diagonal of loops that are not around it")
    _require(loop.step >= 1 and (loop.limit is None or loop.limit % loop.step == 0), f"{loop.variable} steps past")
    if loop.parallel:
        inner = {name for s in _walk(loop.body) if isinstance(s, Declare) for name in [s.buffer]}
        for target in _targets(loop.body):
            varies = any(loop.variable in index.variables for index in target.indices)
            _require(target.buffer in inner or varies, f"{loop.variable} is parallel, but {target.buffer} is shared")
    _block(loop.body, _Scope(scope.buffers, scope.variables | {loop.variable}, scope.declared))


def _place(load: Load, scope: _Scope) -> None:
    buffer = scope.buffers[load.buffer]
    _require(len(load.indices) == len(buffer.dims), f"{load.buffer} has {len(buffer.dims)} dimensions")
    for index in load.indices:
        _require(set(index.variables) <= scope.variables, f"{load.buffer} is indexed by a loop that is not around it")
    if buffer.role == "local":
        _require(load.buffer in scope.declared, f"{load.buffer} is used outside the block that declares it")


def _walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    for statement in statements:
        yield statement
        if isinstance(statement, For):
            yield from _walk(statement.body)


def _targets(statements: Sequence[Statement]) -> Iterator[Load]:
    for statement in _walk(statements):
        if isinstance(statement, Assign | Accumulate):
            yield statement.target


def _loads(statements: Sequence[Statement]) -> Iterator[Load]:
    for statement in _walk(statements):
        if isinstance(statement, Assign | Accumulate):
            yield from _scalar_loads(statement.value)


def _scalar_loads(value: Scalar) -> Iterator[Load]:
    match value:
        case Load():
            yield value
        case Constant():
            pass
        case Apply(_, arguments):
            for argument in arguments:
                yield from _scalar_loads(argument)
        case _:
            assert_never(value)
