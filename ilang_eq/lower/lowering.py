"""The lowering: a wired component with schedules in, loop IR out. Its pipeline is ``lower``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Literal as Choice

from ilang_eq.errors import ScheduleError
from ilang_eq.lang.expr import Expr, Stage
from ilang_eq.lang.graph import Graph, Input, Node, Source, Value
from ilang_eq.lang.shapes import Shapes, infer
from ilang_eq.lower.ir import Buffer, Correction, Extent, Kernel, Program
from ilang_eq.lower.meaning import Meanings
from ilang_eq.lower.online import find_repairs
from ilang_eq.lower.panels import in_panels
from ilang_eq.lower.program import KernelCode
from ilang_eq.lower.staging import StagingError, build_nest
from ilang_eq.lower.storage import Place, flat_place
from ilang_eq.lower.sums import Sums
from ilang_eq.lower.symmetry import Symmetries
from ilang_eq.lower.walk import declared_in


def lower(graph: Graph, *, alternatives: bool = True) -> Program:
    """Lower every kernel of ``graph``.

    Args:
        alternatives: whether an error lists the legal sites, which takes lowering with each of them.

    Raises:
        ShapeError: ranks that contradict each other.
        ScheduleError: an illegal staging; ``legal`` lists the expression with each site that can be lowered.
    """
    try:
        return _lower(graph)
    except StagingError as error:
        if not alternatives:
            raise
        raise _with_alternatives(graph, error) from None


def _lower(graph: Graph) -> Program:
    return in_panels(lowered_by_rows(graph))


def lowered_by_rows(graph: Graph) -> Program:
    """Lower every kernel of ``graph``, with all that is in memory row by row; raises what ``lower`` raises."""
    shapes, meanings, sums, symmetries = _analysed(_computing(graph))
    roots = kernel_roots(graph)
    whole = _whole_tensors(graph, shapes, symmetries, roots)
    kernels: list[Kernel] = []
    locals_: list[Buffer] = []
    corrections: set[Correction] = set()
    for root in roots:
        nest = build_nest(graph, shapes, meanings, root)
        online = find_repairs(nest, sums)
        code = KernelCode(shapes, nest, online, whole, buffers=list(locals_))
        kernels.append(Kernel(f"{graph.nodes[root].expr.op}{root}", code.statements()))
        locals_ = code.buffers
        corrections.update(online.corrections())
    declared = {name for kernel in kernels for name in declared_in(kernel.body)}
    return Program(
        ranks=shapes.ranks,
        ties=shapes.ties,
        buffers=(*dict.fromkeys(place.buffer for place in whole.values()), *(b for b in locals_ if b.name in declared)),
        inputs=tuple(f"in{k}" for k in range(graph.inputs)),
        outputs=tuple(whole[wire].buffer.name for wire in graph.outputs),
        kernels=tuple(kernels),
        corrections=tuple(sorted(corrections, key=lambda c: (c.accumulator, c.statistic, c.kind))),
    )


def shapes_of(graph: Graph) -> Shapes:
    """The sizes of all axes. Raises ShapeError."""
    return _analysed(_computing(graph))[0]


def mirrors(graph: Graph) -> bool:
    """Whether some value in memory is the same with its last two axes exchanged."""
    symmetries = Symmetries(graph)
    return any(symmetries.symmetric(root) for root in kernel_roots(graph))


def _computing(graph: Graph) -> Graph:
    """``graph`` without its schedule, but with the axes it has."""
    exprs = ((node, node.expr) for node in graph.nodes)
    nodes = tuple(Node(Expr(expr.op, expr.operands, expr.output), node.operands) for node, expr in exprs)
    return Graph(graph.inputs, nodes, graph.outputs)


@lru_cache(maxsize=16)
def _analysed(graph: Graph) -> tuple[Shapes, Meanings, Sums, Symmetries]:
    """What no schedule changes: a search lowers the same graph under hundreds of them."""
    return infer(graph), Meanings(graph), Sums(graph), Symmetries(graph)


def kernel_roots(graph: Graph) -> tuple[int, ...]:
    """The nodes that are materialised, producers first: outputs, and whatever someone reads unstaged."""
    roots = {wire.node for wire in graph.outputs if isinstance(wire, Value)}
    for node in graph.nodes:
        staged = {item.operand for item in node.expr.order if isinstance(item, Stage)}
        roots |= {s.node for k, s in enumerate(node.operands) if isinstance(s, Value) and k not in staged}
    return tuple(n for n in graph.order() if n in roots)


def _whole_tensors(graph: Graph, shapes: Shapes, symmetries: Symmetries, roots: Iterable[int]) -> dict[Source, Place]:
    """A full-size buffer for every input and every materialised node."""
    whole: dict[Source, Place] = {}
    for k, rank in enumerate(shapes.ranks):
        dims = tuple(Extent(*shapes.input_extent(k, d)) for d in range(rank or 0))
        whole[Input(k)] = flat_place(Buffer(f"in{k}", dims, "input"), len(dims))

    def materialise(wire: Value, name: str, role: Choice["output", "workspace"]) -> None:
        dims = tuple(Extent(*d) for d in shapes.value_dims(wire))
        parts = tuple((d, d) for d in dims)
        buffer = Buffer(name, dims, role, wire.node, parts, symmetries.symmetric(wire.node))
        whole[wire] = flat_place(buffer, len(dims))

    for position, wire in enumerate(graph.outputs):
        if isinstance(wire, Value) and wire not in whole:
            materialise(wire, f"out{position}", "output")
    for root in roots:
        if Value(root) not in whole:
            materialise(Value(root), f"{graph.nodes[root].expr.op}{root}_all", "workspace")
    return whole


def _with_alternatives(graph: Graph, error: StagingError) -> ScheduleError:
    """The error again, with the sites at which the operand could be staged."""
    if error.operand is None:
        return error
    legal = []
    for expr in _other_sites(graph.nodes[error.node].expr, error.operand):
        nodes = list(graph.nodes)
        nodes[error.node] = Node(expr, nodes[error.node].operands)
        try:
            _lower(replace(graph, nodes=tuple(nodes)))
        except ScheduleError:
            continue
        legal.append(f"`{expr}`")
    better = StagingError(error.message, graph, error.node, error.operand)
    return _relisted(better, tuple(legal))


def _relisted(error: StagingError, legal: tuple[str, ...]) -> ScheduleError:
    text = error.source or ""
    bar = text.rfind("|")
    position = text.find(str(error.operand), bar) if bar >= 0 else None
    return ScheduleError(
        error.message,
        source=text,
        position=position,
        expected="a site where the operand's producer can run" if legal else "no digit for this operand",
        legal=legal,
    )


def _other_sites(expr: Expr, operand: int) -> list[Expr]:
    """``expr`` with the operand's digit at every other place, and without it."""
    without = tuple(item for item in expr.sequence if item != Stage(operand))
    found = [replace(expr, order=without)]
    for position in range(len(without) + 1):
        moved = (*without[:position], Stage(operand), *without[position:])
        if moved != expr.sequence:
            found.append(replace(expr, order=moved))
    return found
