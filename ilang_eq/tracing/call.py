"""The arguments of one ATen call, as the tables of ops read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ilang_eq.tracing.build import Builder, Inexpressible, View
from ilang_eq.tracing.extents import Extent
from ilang_eq.tracing.nodes import Node, Ref, Type, Value


@dataclass(frozen=True, slots=True)
class Call:
    """A node, with views of the tensors it reads."""

    builder: Builder
    node: Node
    views: Mapping[str, View]
    types: Mapping[str, Type]

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The shape of the result."""
        return self.node.type.extents

    def given(self, position: int, name: str) -> bool:
        """Whether an optional argument is there."""
        return self.node.value(position, name) is not None

    def view(self, position: int, name: str) -> View:
        """A tensor, or a number in place of one. Raises Inexpressible for sizes known only at run time."""
        value = self.node.value(position, name)
        if isinstance(value, Ref):
            if value.name not in self.views:
                raise Inexpressible(f"operand {value.name} is no float32 tensor")
            return self.views[value.name]
        return self.builder.number(self.number(position, name))

    def type(self, position: int, name: str) -> Type:
        """The type of a tensor operand."""
        value = self.node.value(position, name)
        if not isinstance(value, Ref):
            raise Inexpressible(f"argument {name} is no tensor")
        return self.types[value.name]

    def number(self, position: int, name: str, default: float | None = None) -> float:
        """A number."""
        value = self.node.value(position, name, default)
        if not isinstance(value, int | float):
            raise Inexpressible(f"argument {name} is {_shown(value)}, known only at run time")
        return float(value)

    def integer(self, position: int, name: str, default: int | None = None) -> int:
        """A whole number, such as a dimension."""
        value = self.node.value(position, name, default)
        if not isinstance(value, int):
            raise Inexpressible(f"argument {name} is {_shown(value)}, not a whole number")
        return value

    def dims(self, position: int, name: str) -> tuple[int, ...]:
        """Dimensions; all of the first operand's if none are given."""
        value = self.node.value(position, name)
        if value is None or value == ():
            return tuple(range(len(self.view(0, "self").dims)))
        found = value if isinstance(value, tuple) else (value,)
        return tuple(d for d in found if isinstance(d, int))

    def flag(self, position: int, name: str, default: bool = False) -> bool:
        """Yes or no."""
        return bool(self.node.value(position, name, default))


Build: TypeAlias = Callable[[Builder, Call], View]
"""What one ATen call computes."""


def _shown(value: Value) -> str:
    return f"the value {value.name}" if isinstance(value, Ref) else repr(value)
