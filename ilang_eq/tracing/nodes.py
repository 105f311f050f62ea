"""A traced program: ATen calls in order, in single static assignment, with the types of what they make.

Invariants of ``NodeList`` (``checked`` enforces them):
  * names are unique, and a reference names an argument or an earlier node
  * every symbol in a shape has a size in ``sizes``, that of the example it was traced with
  * no node writes to a tensor
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from ilang_eq.errors import TraceError
from ilang_eq.tracing.extents import Extent, extent_of


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of an argument or a node."""

    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A constant of torch's: ``kind`` is one of ``SPECIAL``, ``name`` as torch spells it, such as float32."""

    kind: str
    name: str


SPECIAL = ("dtype", "layout", "device", "memory_format")

Value: TypeAlias = "Ref | Special | bool | int | float | str | tuple[Value, ...] | None"
"""What stands as an argument of a node."""

ArgumentKind: TypeAlias = Literal["input", "parameter", "constant"]


@dataclass(frozen=True, slots=True)
class Type:
    """What a value is. ``dtype`` is torch's name for a tensor; "int", "tuple" or "none" for what is no tensor."""

    dtype: str
    shape: tuple[int | str, ...] = ()

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The sizes of the dimensions."""
        return tuple(map(extent_of, self.shape))

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor."""
        return self.dtype not in ("int", "tuple", "none")

    @property
    def is_symbolic(self) -> bool:
        """Whether an extent is known only at run time."""
        return any(isinstance(size, str) for size in self.shape)


@dataclass(frozen=True, slots=True)
class Argument:
    """A value from outside: one the caller gives, or a parameter or constant called ``target`` in the module.

    ``value`` is what the caller gave in the example, where that is no tensor: the program holds for it alone.
    """

    name: str
    kind: ArgumentKind
    type: Type
    target: str = ""
    value: bool | int | float | str | None = None


@dataclass(frozen=True)
class Node:
    """One call: ``op`` as ``aten.add.Tensor``; ``line`` is the line of Python it comes from, as ``file:12``."""

    name: str
    op: str
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...]
    type: Type
    line: str = ""

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The names of what it reads, once each, in order."""
        return tuple(dict.fromkeys(references((self.args, tuple(v for _, v in self.kwargs)))))

    def value(self, position: int, name: str, default: Value = None) -> Value:
        """An argument of the call, given by position or by name."""
        return self.args[position] if position < len(self.args) else dict(self.kwargs).get(name, default)


@dataclass(frozen=True, slots=True)
class NodeList:
    """A program: arguments in, ``nodes`` in order, ``outputs`` out."""

    arguments: tuple[Argument, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def types(self) -> dict[str, Type]:
        """The type of every value by name."""
        return {v.name: v.type for v in (*self.arguments, *self.nodes)}


def references(value: Value) -> Iterator[str]:
    """The names in a value, in order."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, tuple):
        for item in value:
            yield from references(item)


def live(program: NodeList) -> NodeList:
    """``program`` without the nodes whose values nothing needs."""
    needed = set(references(program.outputs))
    kept: list[Node] = []
    for node in reversed(program.nodes):
        if node.name in needed:
            kept.append(node)
            needed.update(node.reads)
    return NodeList(program.arguments, tuple(kept[::-1]), program.outputs, program.sizes)


def checked(program: NodeList) -> NodeList:
    """``program`` if it keeps the invariants. Raises TraceError."""
    known: set[str] = set()
    for value in (*program.arguments, *program.nodes):
        if value.name in known:
            raise TraceError(f"two values are called {value.name!r}", expected="a name of its own for every value")
        if isinstance(value, Node):
            _check_reads(value.reads, known, f"node {value.name!r} ({value.op})")
        _check_sizes(value.name, value.type, program.sizes)
        known.add(value.name)
    _check_reads(tuple(references(program.outputs)), known, "the output")
    return program


def _check_reads(reads: Sequence[str], known: set[str], reader: str) -> None:
    for name in reads:
        if name not in known:
            raise TraceError(f"{reader} reads {name!r}", expected="an argument or a node that comes before it")


def _check_sizes(name: str, found: Type, sizes: Mapping[str, int]) -> None:
    for extent in found.extents:
        for symbol in extent.symbols:
            if symbol not in sizes:
                raise TraceError(f"{name!r} has the extent {symbol}, of no known size", legal=tuple(sizes))
