"""A region: nodes that become one component, and the tensors at its border."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ilang_eq.errors import WiringError
from ilang_eq.lang.component import Component
from ilang_eq.tracing.axes import Misaligned
from ilang_eq.tracing.build import Builder, Inexpressible, View
from ilang_eq.tracing.call import Build, Call
from ilang_eq.tracing.compose import compose
from ilang_eq.tracing.extents import Extent
from ilang_eq.tracing.nodes import Node, Type
from ilang_eq.tracing.table import COMPUTED, NUMBERS, VIEWS

READABLE = ("float32", "bool")
"""Types of tensors that an expression can read; truth values are read as 1 and 0."""


class Unbuildable(Exception):
    """Nodes that cannot be written as one component, because of ``node``."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes computed by one kernel.

    Args:
        name: the value it computes.
        members: the nodes it computes, in order.
        component: what they compute.
        inputs: the values it reads, one for each input of the component.
        input_extents: the shape in which each is read: a reshape of its own.
        type: of the value it computes.
        output_extents: the shape in which the component makes it: a reshape of its own.
        work: the extents of each expression's axes; it takes as many operations as their product.
        constants: the numbers of the inputs that stay the same from call to call.
    """

    name: str
    members: tuple[str, ...]
    component: Component
    inputs: tuple[str, ...]
    input_extents: tuple[tuple[Extent, ...], ...]
    type: Type
    output_extents: tuple[Extent, ...]
    work: tuple[Extent, ...]
    constants: tuple[int, ...] = ()

    def shapes(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
        """The component's input shapes where the symbols have these sizes."""
        return tuple(tuple(extent.value(sizes) for extent in extents) for extents in self.input_extents)

    def operations(self, sizes: Mapping[str, int]) -> int:
        """Floating-point operations of one run."""
        return sum(extent.value(sizes) for extent in self.work)


@dataclass(frozen=True, slots=True)
class Values:
    """What regions are built from: the program's nodes and types by name."""

    nodes: Mapping[str, Node]
    types: Mapping[str, Type]


def build_region(
    values: Values, views: Collection[str], members: Sequence[str], stored: Collection[str], result: str
) -> Region:
    """The region of ``members`` that makes ``result``, one of them or a view of one.

    Args:
        values: the program.
        views: the nodes that are patterns.
        members: nodes in the order of the program.
        stored: views that are in memory, and read from there.
        result: what the region is to make.

    Raises:
        Unbuildable: 𝚒 cannot express them, or not together.
    """
    views_of = view_values(values, views, members, stored, result)
    try:
        composed = compose(views_of.builder, views_of.found[result])
    except (Inexpressible, WiringError) as error:
        raise Unbuildable(members[-1], str(error)) from None
    names = list(views_of.inputs)
    return Region(
        result,
        tuple(members),
        composed.component,
        tuple(names[k] for k in composed.inputs),
        composed.input_extents,
        values.types[result],
        composed.output_extents,
        composed.work,
    )


def view_values(
    values: Values, views: Collection[str], members: Sequence[str], stored: Collection[str], result: str
) -> _Views:
    """Views of all values that ``members`` and ``result`` read or are. Raises Unbuildable."""
    found = _Views(values, views, frozenset(stored), Builder())
    for name in members:
        found.compute(name)
    found.see(result)
    return found


class _Views:
    """The values of a region under construction, by name."""

    def __init__(self, values: Values, views: Collection[str], stored: Collection[str], builder: Builder) -> None:
        self.values = values
        self.views = views
        self.stored = stored
        self.builder = builder
        self.inputs: dict[str, None] = {}
        self.found: dict[str, View] = {}

    def compute(self, name: str) -> None:
        """Add the expressions of a member."""
        node = self.values.nodes[name]
        for read in node.reads:
            self.see(read)
        self._built(name, COMPUTED)

    def see(self, name: str) -> None:
        """Make the view of a value: of one in the region, or of one in memory."""
        if name in self.found:
            return
        if name not in self.views or name in self.stored:
            if self.values.types[name].dtype in READABLE:
                self.inputs[name] = None
                self.found[name] = self.builder.input(self.values.types[name].extents)
            return
        if self.values.nodes[name].op in VIEWS:
            self.see(self.values.nodes[name].reads[0])
        self._built(name, VIEWS | NUMBERS)

    def _built(self, name: str, table: Mapping[str, Build]) -> None:
        node = self.values.nodes[name]
        try:
            self.found[name] = table[node.op](self.builder, Call(self.builder, node, self.found, self.values.types))
        except (Inexpressible, Misaligned) as error:
            raise Unbuildable(name, str(error)) from None
