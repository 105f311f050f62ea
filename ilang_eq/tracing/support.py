"""Which calls of a program 𝚒 expresses, each tried by itself, and why the others stay with PyTorch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.wiring import wire
from ilang_eq.tracing.extents import product
from ilang_eq.tracing.nodes import Node, NodeList, Type, references
from ilang_eq.tracing.region import Region, Unbuildable, Values, build_region, view_values
from ilang_eq.tracing.table import COMPARISONS, COMPUTED, NUMBERS, VIEWS

ROOT = ""
"""The reader of what is returned, or what PyTorch reads."""


@dataclass(frozen=True)
class Support:
    """A program, and for each node whether it is a view, computed in a region, or left to PyTorch.

    Args:
        program: without dead code.
        values: its nodes and types by name.
        views: nodes that are patterns over what they are a view of.
        computed: nodes that are expressions, each as a region of its own.
        left: the reason why each other node is left to PyTorch.
    """

    program: NodeList
    values: Values
    views: frozenset[str]
    computed: Mapping[str, Region]
    left: Mapping[str, str]
    _decisions: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def readers(self) -> Mapping[str, Mapping[str, None]]:
        """Who reads each computed node, through views or not: computed nodes, or ROOT."""
        found: dict[str, dict[str, None]] = {name: {} for name in self.computed}

        def note(reads: Iterable[str], reader: str) -> None:
            for name in map(self.origin, reads):
                if name in found:
                    found[name][reader] = None

        for node in self.program.nodes:
            if node.name not in self.views:
                note(node.reads, node.name if node.name in self.computed else ROOT)
        note(references(self.program.outputs), ROOT)
        return found

    @cached_property
    def direct(self) -> Mapping[str, Sequence[str]]:
        """The nodes that read each value as it is, views included; ROOT for what is returned."""
        found: dict[str, list[str]] = {}
        for node in self.program.nodes:
            for name in node.reads:
                found.setdefault(name, []).append(node.name)
        for name in references(self.program.outputs):
            found.setdefault(name, []).append(ROOT)
        return found

    @cached_property
    def weights(self) -> frozenset[str]:
        """The values that depend on no input."""
        held = {argument.name for argument in self.program.arguments if argument.kind != "input"}
        for node in self.program.nodes:
            if held.issuperset(node.reads):
                held.add(node.name)
        return frozenset(held)

    def origin(self, name: str) -> str:
        """What a value is a view of, in the end; itself if it is none."""
        while name in self.views and self.values.nodes[name].op in VIEWS:
            name = self.values.nodes[name].reads[0]
        return name

    def elements(self, name: str) -> int:
        """How many elements a value has, at the example's shapes."""
        return product(self.values.types[name].extents).value(self.program.sizes)

    def decisions(self, name: str) -> int:
        """How much a node adds to the search of its region: its expressions that take decisions of their own.

        Elementwise ones that one other reads go with that.
        """
        known = self._decisions.get(name)
        if known is None:
            known = self._decisions[name] = _decisive(wire(self.computed[name].component), len(self.readers[name]))
        return known


def _decisive(graph: Graph, readers: int) -> int:
    """The expressions of ``graph`` that reduce, or that several read; ``readers``: how many read its output."""
    read = Counter(source for node in graph.nodes for source in node.operands)
    read.update(dict.fromkeys(graph.outputs, readers))
    return sum(bool(node.expr.reduced) or read[Value(n)] != 1 for n, node in enumerate(graph.nodes))


def support(program: NodeList, alone: Mapping[str, str]) -> Support:
    """Try every node by itself. ``alone``: nodes known to be left to PyTorch, and why."""
    values = Values({node.name: node for node in program.nodes}, _types(program))
    views: set[str] = set()
    computed: dict[str, Region] = {}
    left = dict(alone)
    split = {name for reader in program.nodes if _takes_other(reader) for name in reader.reads}
    for node in program.nodes:
        name = node.name
        if name in left:
            continue
        reason = _unreadable(node, values.types, computed, split)
        try:
            if reason is not None:
                left[name] = reason
            elif node.op in COMPUTED:
                computed[name] = build_region(values, views, [name], (), name)
            else:
                view_values(values, {*views, name}, (), (), name)
                views.add(name)
        except Unbuildable as error:
            left[name] = error.reason
    return Support(program, values, frozenset(views), computed, left)


def _unreadable(node: Node, types: Mapping[str, Type], computed: Collection[str], split: Collection[str]) -> str | None:
    """Why a call cannot be looked up in the tables; None if it can."""
    if node.op not in COMPUTED and node.op not in VIEWS and node.op not in NUMBERS:
        return "not in the table of ops"
    if types[node.name].dtype != "float32" and not (types[node.name].dtype == "bool" and node.op in COMPARISONS):
        return f"makes {types[node.name].dtype}, not float32"
    if node.name in split:
        return "more than the first of its results is read"
    if node.op == "getitem" and node.reads[0] not in computed:
        return "a result of a call that is left to PyTorch"
    return None


def _takes_other(node: Node) -> bool:
    """Whether a node takes a member of a tuple that is not the first."""
    return node.op == "getitem" and node.args[1] != 0


def _types(program: NodeList) -> dict[str, Type]:
    """The type of every value; of a call in the tables that makes a tuple, that of the first member."""
    types = program.types()
    ops = {node.name: node.op for node in program.nodes}
    for node in program.nodes:
        if node.op == "getitem" and node.args[1] == 0 and ops.get(node.reads[0]) in COMPUTED:
            types[node.reads[0]] = node.type
    return types
