"""Staging: from digits in the order to one merged loop nest per kernel.

The rules, all of them (design: predictable, never heuristic):
  1. A digit stands inside the loops before it. Its *site* is the body of the innermost of these in the merged nest;
     with none before it, the block around the reader's outermost loop.
  2. Above the site, a producer shares every loop that means the same: output axes by position in the reader's
     pattern, reduced axes by what they run over. Shared loops must take the same steps and keep their relative order;
     an axis shared from its outermost part inwards may be split as one likes below the site.
  3. A producer staged twice at one site, or already complete there, is computed once.
  4. Producers staged at one site whose first own loops mean the same and are split alike run in one loop, unless one
     needs the other's finished result. They share further loops only around what both stage further inside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ilang_eq.errors import ScheduleError
from ilang_eq.lang.expr import Access, Expr, Loop, Stage
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.shapes import Shapes
from ilang_eq.lower.ir import Extent
from ilang_eq.lower.meaning import Meanings
from ilang_eq.lower.nest import Block, Instance, NestLoop, ReadOf
from ilang_eq.lower.storage import split_step

Fused = dict[tuple[str, int], NestLoop]


class StagingError(ScheduleError):
    """A schedule that cannot be lowered; ``node`` and ``operand`` say which digit is at fault."""

    def __init__(self, why: str, graph: Graph, node: int, operand: int | None) -> None:
        super().__init__(why, source=str(graph.nodes[node].expr))
        self.node, self.operand = node, operand


class _MergeConflict(Exception):
    """Two sibling loops were merged although one needs the other's finished result."""

    def __init__(self, merge: tuple[int, int]) -> None:
        self.merge = merge


@dataclass(slots=True)
class KernelNest:
    """The merged nest of one kernel: ``root`` is computed in full, ``instances`` in the order they were placed."""

    graph: Graph
    shapes: Shapes
    meanings: Meanings
    top: Block = field(default_factory=lambda: Block(None))
    instances: list[Instance] = field(default_factory=list)
    apart: frozenset[tuple[int, int]] = frozenset()
    merged: list[tuple[NestLoop, tuple[int, int]]] = field(default_factory=list)

    @property
    def root(self) -> Instance:
        """The instance of the node the kernel is for (placed first)."""
        return self.instances[0]


def build_nest(graph: Graph, shapes: Shapes, meanings: Meanings, root: int) -> KernelNest:
    """Stage everything that ``root`` stages, transitively. Raises StagingError."""
    apart: frozenset[tuple[int, int]] = frozenset()
    while True:
        nest = KernelNest(graph, shapes, meanings, apart=apart)
        try:
            _place(nest, root, nest.top, {})
            return nest
        except _MergeConflict as conflict:
            apart |= {conflict.merge}


def _place(nest: KernelNest, node: int, block: Block, fused: Fused) -> Instance:
    """Compute ``node`` inside ``block``, on the ``fused`` loops and own ones for the rest."""
    expr = nest.graph.nodes[node].expr
    loops: dict[str, list[NestLoop | None]] = {
        axis: [fused.get((axis, level)) for level in range(len(factors) + 1)] for axis, factors in expr.factors.items()
    }
    instance = Instance(node, expr, block, loops)
    nest.instances.append(instance)
    for (axis, _), loop in fused.items():
        loop.riders.append((instance, axis))
    instance.reads = [ReadOf(o, s) for o, s in zip(expr.operands, nest.graph.nodes[node].operands, strict=True)]
    own = [loop for loop in expr.loops if (loop.axis, loop.level) not in fused]
    place = {loop: position for position, loop in enumerate(own)}
    sites = [(max((place.get(b, -1) for b in before), default=-1), k, before) for k, before in _digits(expr)]
    for last, operand, before in sites:
        if last < 0:
            _stage(nest, instance, operand, _shared_site(instance, before))
    filled: list[tuple[Block, NestLoop | None]] = []
    here = block
    for position, loop in enumerate(own):
        filled.append((here, here.open))
        here = _open(nest, instance, loop, here).body
        for last, operand, _ in sites:
            if last == position:
                _stage(nest, instance, operand, here)
    here.add(instance)
    instance.settle(here)
    for outer, previous in filled:
        if outer.open is not None:
            outer.open.filling = False
        outer.open = previous
    return instance


def _digits(expr: Expr) -> list[tuple[int, list[Loop]]]:
    """Each staged operand with the loops before its digit, in textual order."""
    found: list[tuple[int, list[Loop]]] = []
    before: list[Loop] = []
    for item in expr.sequence:
        if isinstance(item, Loop):
            before.append(item)
        elif isinstance(item, Stage):
            found.append((item.operand, list(before)))
    return found


def _shared_site(instance: Instance, before: list[Loop]) -> Block:
    """The site of a digit that only fused loops precede."""
    loops = [instance.loops[b.axis][b.level] for b in before]
    above = [loop for loop in loops if loop is not None]
    if above:
        return max(above, key=lambda loop: loop.depth).body
    outermost = min(instance.rides(), key=lambda loop: loop.depth, default=None)
    return instance.block if outermost is None else outermost.parent


def _open(nest: KernelNest, instance: Instance, loop: Loop, block: Block) -> NestLoop:
    """A loop for one of the instance's own parts: a sibling's, where rule 4 allows, or a new one."""
    factors = instance.expr.factors[loop.axis]
    step, limit = split_step(factors, loop.level), split_step(factors, loop.level - 1) if loop.level else None
    extent = Extent(*nest.shapes.extent(instance.node, loop.axis))
    opened = _sibling(nest, instance, loop, block, (extent, step, limit))
    if opened is None:
        opened = NestLoop(_name(loop, block), extent, step, limit, loop.level, block, [])
        block.add(opened)
    opened.riders.append((instance, loop.axis))
    block.open = opened
    opened.filling = True
    instance.loops[loop.axis][loop.level] = opened
    return opened


def _name(loop: Loop, block: Block) -> str:
    base = loop.axis + (str(loop.level) if loop.level else "")
    taken = {around.variable for around in block.path()}
    if base not in taken:
        return base
    return next(name for n in range(2, len(taken) + 3) if (name := f"{base}_{n}") not in taken)


def _sibling(
    nest: KernelNest, instance: Instance, loop: Loop, block: Block, part: tuple[Extent, int, int | None]
) -> NestLoop | None:
    """A loop of ``block`` that rule 4 lets ``instance`` share."""
    if instance is nest.root:
        return None
    for item in block.items:
        if not isinstance(item, NestLoop) or (item.extent, item.step, item.limit) != part or item.filling:
            continue
        owner, axis = item.riders[0]
        pair = (instance.node, owner.node)
        if owner is nest.root or pair in nest.apart:
            continue
        if item.level != loop.level or instance.expr.factors[loop.axis] != owner.expr.factors[axis]:
            continue
        if instance.block is not owner.block or not _same_rides(instance, loop, owner, axis):
            continue
        if block is not instance.block and not _common_inside(instance, loop, owner, Loop(axis, item.level)):
            continue
        if block.items.index(item) >= block.end() or not _ready_before(instance, block, item):
            continue
        if nest.meanings.distance((instance.node, loop.axis), (owner.node, axis)) is not None:
            nest.merged.append((item, pair))
            return item
    return None


def _common_inside(instance: Instance, loop: Loop, owner: Instance, theirs: Loop) -> bool:
    """Whether both stage one producer inside the given loops of theirs."""
    mine = {instance.reads[k].source for k, before in _digits(instance.expr) if loop in before}
    return any(owner.reads[k].source in mine for k, before in _digits(owner.expr) if theirs in before)


def _ready_before(instance: Instance, block: Block, item: NestLoop) -> bool:
    """Whether everything ``instance`` has staged in ``block`` so far is finished before ``item``."""
    for read in instance.reads:
        home = read.producer.home if read.producer is not None else None
        if read.producer is not None and home is not None and home.within(block):
            holder = block.holder(home)
            if block.items.index(read.producer if holder is None else holder) >= block.items.index(item):
                return False
    return True


def _same_rides(instance: Instance, loop: Loop, owner: Instance, axis: str) -> bool:
    """Whether both have put the outer parts of the axis on the same loops."""
    pairs = zip(instance.loops[loop.axis][: loop.level], owner.loops[axis][: loop.level], strict=True)
    return all(mine is theirs for mine, theirs in pairs)


def _stage(nest: KernelNest, reader: Instance, operand: int, site: Block) -> None:
    """Compute the producer of ``reader``'s operand at ``site``, or find it computed there."""
    read = reader.reads[operand]
    if not isinstance(read.source, Value) or not isinstance(read.operand, Access):
        raise StagingError(
            "operand " + str(operand) + " is an input or a number and has no producer to stage",
            nest.graph,
            reader.node,
            operand,
        )
    fused = _align(nest, reader, operand, site)
    read.site = site
    read.producer = _computed(nest, read.source.node, site, fused) or _place(nest, read.source.node, site, fused)


def _computed(nest: KernelNest, node: int, site: Block, fused: Fused) -> Instance | None:
    """An instance of ``node`` that is finished, or up to date, at the current end of ``site`` (rule 3)."""
    around = set(site.path())
    for instance in nest.instances:
        if instance.node != node or instance.home is None or not instance.home.within(site):
            continue
        above = {
            (axis, level): loop
            for axis, parts in instance.loops.items()
            for level, loop in enumerate(parts)
            if loop in around
        }
        if above != fused or not site.within(instance.storage):
            continue
        holder = site.holder(instance.home)
        position = site.items.index(instance if holder is None else holder)
        if position < site.end():
            return instance
        for loop, pair in nest.merged:
            if loop is holder or loop is site.open:
                raise _MergeConflict(pair)
    return None


def _align(nest: KernelNest, reader: Instance, operand: int, site: Block) -> Fused:
    """The loops above ``site`` that the producer shares (rule 2)."""
    read = reader.reads[operand]
    assert isinstance(read.source, Value), "inputs are not staged"
    assert isinstance(read.operand, Access), "numbers are not staged"
    producer = nest.graph.nodes[read.source.node].expr
    around = set(site.path())
    fused: Fused = {}
    taken: set[NestLoop] = set()
    for axis, mine in zip(producer.output, read.operand.axes, strict=True):
        above = _parts_above(reader, mine, around)
        if above and not taken.intersection(above.values()):
            _require_alike(nest, reader, operand, producer.factors[axis], reader.expr.factors[mine], axis, set(above))
            fused |= {(axis, level): loop for level, loop in above.items()}
            taken.update(above.values())
    for axis in producer.reduced:
        rider = _meant(nest, read.source.node, axis, around - taken)
        if rider is not None:
            instance, theirs = rider
            above = _parts_above(instance, theirs, around)
            factors = instance.expr.factors[theirs]
            _require_alike(nest, reader, operand, producer.factors[axis], factors, axis, set(above))
            fused |= {(axis, level): loop for level, loop in above.items()}
            taken.update(above.values())
    _require_order(nest, reader, operand, producer, fused)
    return fused


def _parts_above(instance: Instance, axis: str, around: set[NestLoop]) -> dict[int, NestLoop]:
    """The loops of an axis that are among ``around``, by level."""
    return {level: loop for level, loop in enumerate(instance.loops[axis]) if loop is not None and loop in around}


def _meant(nest: KernelNest, node: int, axis: str, loops: Iterable[NestLoop]) -> tuple[Instance, str] | None:
    """The (instance, axis) among the riders of ``loops`` that a reduced axis of ``node`` runs along with."""
    best: tuple[int, int, Instance, str] | None = None
    for loop in sorted(loops, key=lambda loop: loop.depth):
        for instance, theirs in loop.riders:
            steps = nest.meanings.distance((node, axis), (instance.node, theirs))
            if steps is not None and (best is None or steps < best[0]):
                best = (steps, loop.depth, instance, theirs)
    return None if best is None else (best[2], best[3])


def _require_alike(
    nest: KernelNest,
    reader: Instance,
    operand: int,
    mine: tuple[int, ...],
    theirs: tuple[int, ...],
    axis: str,
    levels: set[int],
) -> None:
    if not _alike(mine, theirs, levels):
        raise StagingError(
            f"operand {operand} is staged inside a loop over its axis {axis}, which is split "
            f"{_split_text(mine)} there but {_split_text(theirs)} here",
            nest.graph,
            reader.node,
            operand,
        )


def _alike(mine: tuple[int, ...], theirs: tuple[int, ...], levels: set[int]) -> bool:
    """Whether the loops of ``levels`` mean the same on an axis split by either's factors."""
    if mine == theirs:
        return True
    outermost = levels == set(range(len(levels))) and len(levels) <= min(len(mine), len(theirs))
    return outermost and all(split_step(mine, level) == split_step(theirs, level) for level in levels)


def _split_text(factors: tuple[int, ...]) -> str:
    return "by " + ":".join(map(str, factors)) if factors else "not at all"


def _require_order(nest: KernelNest, reader: Instance, operand: int, producer: Expr, fused: Fused) -> None:
    shared = [fused[loop.axis, loop.level] for loop in producer.loops if (loop.axis, loop.level) in fused]
    depths = [loop.depth for loop in shared]
    if depths != sorted(depths):
        raise StagingError(
            f"operand {operand}'s producer `{producer}` runs the loops it would share in another order",
            nest.graph,
            reader.node,
            operand,
        )
