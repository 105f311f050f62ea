"""What of a program runs in kernels of ours, by floating-point operations, and what stays with PyTorch, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ilang_eq.tracing.extents import Extent, product
from ilang_eq.tracing.nodes import Node, Ref, Type
from ilang_eq.tracing.partition import Partition
from ilang_eq.tracing.table import CONTRACTIONS, SKIP_NAN

_MOVES = """
alias arange as_strided cat chunk clone copy diagonal embedding expand flip full full_like gather index index_select
lift_fresh_copy masked_fill new_zeros ones pad permute repeat reshape roll scalar_tensor select slice slice_scatter
split split_with_sizes squeeze stack t to _to_copy transpose tril triu unbind unfold unsqueeze view where zeros
"""
"""Names of calls that compute no numbers."""

_MOVED = frozenset(_MOVES.split())


@dataclass(frozen=True, slots=True)
class Row:
    """Calls left to PyTorch: of one op, from one line, for one reason.

    Attributes:
        op: such as ``aten.embedding.default``.
        line: where in the model, as ``file:12``; empty if PyTorch did not say, as it does inside ``forward``.
        reason: why 𝚒 does not compute it.
        calls: how many there are.
        operations: floating-point operations in all of them, estimated.
        integers: whether they make or read whole numbers or truth values, as embeddings do: those stay by design.
        once: whether they depend on no input, so that they are computed at the first call only.
    """

    op: str
    line: str
    reason: str
    calls: int
    operations: int
    integers: bool = False
    once: bool = False

    @property
    def shown(self) -> str:
        """The reason, and whether it matters at each call."""
        return f"{self.reason}; computed once" if self.once else self.reason


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a program runs in kernels of ours.

    Attributes:
        covered: floating-point operations in regions, at the example's shapes: one for each expression and iteration.
        rows: what stays with PyTorch, what costs most first.
        skipping: ops that skip NaN in our kernels, where PyTorch passes it on, and how many calls of each there are.
    """

    covered: int
    rows: tuple[Row, ...]
    skipping: tuple[tuple[str, int], ...] = ()

    @property
    def left(self) -> int:
        """Floating-point operations that stay with PyTorch."""
        return sum(row.operations for row in self.rows)

    @property
    def refused(self) -> tuple[Row, ...]:
        """What a strict trace refuses: the rows of floating-point numbers alone that run at each call."""
        return tuple(row for row in self.rows if not row.integers and not row.once)

    @property
    def fraction(self) -> float:
        """The part of the operations that runs in kernels of ours; 1 if there are none at all."""
        total = self.covered + self.left
        return self.covered / total if total else 1.0

    def __str__(self) -> str:
        head = f"{self.fraction:.2%} of {self.covered + self.left:.3g} operations in kernels"
        cells = [(row.op, str(row.calls), f"{row.operations:.3g}", row.line, row.shown) for row in self.rows]
        titles = ("left to PyTorch", "calls", "operations", "line", "reason")
        widths = [max(len(row[k]) for row in (titles, *cells)) for k in range(len(titles))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (titles, *cells)
        ]
        skipping = ", ".join(f"{op} ({calls})" for op, calls in self.skipping)
        told = [f"NaN is skipped, and not passed on, by {skipping}"] if skipping else []
        return "\n".join([head, *(line.rstrip() for line in lines if cells), *told])


def coverage(partition: Partition, once: Collection[str] = ()) -> Coverage:
    """The coverage of a program at the shapes of its example. ``once``: nodes that depend on no input."""
    found = partition.support
    sizes = found.program.sizes
    rows: dict[tuple[str, str, str, bool, bool], tuple[int, int]] = {}
    for name, reason in found.left.items():
        node = found.values.nodes[name]
        if node.op.startswith("ilang_eq."):
            continue
        types = [found.values.types[value].dtype for value in (name, *node.reads)]
        integers = any(dtype.startswith(("int", "uint", "bool")) for dtype in types)
        key = node.op, node.line, reason, integers, name in once
        calls, operations = rows.get(key, (0, 0))
        own = 0 if name in once else _operations(node, found.values.types).value(sizes)
        rows[key] = calls + 1, operations + own
    listed = [
        Row(op, line, reason, calls, operations, integers, fixed)
        for (op, line, reason, integers, fixed), (calls, operations) in rows.items()
    ]
    listed.sort(key=lambda row: -row.operations)
    skipping = Counter(op for op in (found.values.nodes[name].op for name in found.computed) if op in SKIP_NAN)
    covered = sum(region.operations(sizes) for region in partition.regions)
    return Coverage(covered, tuple(listed), tuple(sorted(skipping.items())))


def _operations(node: Node, types: Mapping[str, Type]) -> Extent:
    """An estimate: two for each term of a sum of products, else one for each element made."""
    made = types[node.name]
    if node.op == "getitem" or node.op.split(".")[1] in _MOVED or "float" not in made.dtype:
        return Extent(0)
    shapes = [types[a.name].extents for a in node.args if isinstance(a, Ref)]
    elements = product(made.extents)
    match node.op:
        case "aten.convolution.default":
            channels = shapes[1][0]
            terms = product(shapes[1]).over(channels)
            return Extent(2) * elements * (terms or Extent())
        case "aten.addmm.default" | "aten.baddbmm.default":
            return Extent(2) * elements * shapes[1][-1]
        case op if op in CONTRACTIONS:
            return Extent(2) * elements * shapes[0][-1]
        case _:
            return elements
