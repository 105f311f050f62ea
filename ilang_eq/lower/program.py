"""From merged nests to loop IR: declare, initialise, compute, repair; then freeze."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from ilang_eq.lang.expr import Access, Literal
from ilang_eq.lang.graph import Source, Value
from ilang_eq.lang.ops import OPS
from ilang_eq.lang.shapes import Shapes
from ilang_eq.lower.absolute import absolute_values
from ilang_eq.lower.elements import elements
from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Buffer,
    Comment,
    Constant,
    Declare,
    Extent,
    For,
    Load,
    Scalar,
    Statement,
)
from ilang_eq.lower.nest import Block, Instance, NestLoop
from ilang_eq.lower.online import Online, Repair, Stand, partial_sites
from ilang_eq.lower.staging import KernelNest
from ilang_eq.lower.storage import Parts, Place, fold, load
from ilang_eq.lower.walk import involves, reads

At = Callable[[str], Parts]
"""The position along one axis of an instance."""


@dataclass(slots=True)
class KernelCode:
    """One kernel while its nest is turned into statements. ``whole`` holds inputs, outputs and workspaces."""

    shapes: Shapes
    nest: KernelNest
    online: Online
    whole: dict[Source, Place]
    places: dict[Instance, Place] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)

    def statements(self) -> tuple[Statement, ...]:
        """The kernel's body."""
        for instance in self.nest.instances:
            self._store(instance)
        for instance in self.nest.instances:
            self._begin(instance)
        eager = [repair for repair in self.online.repairs if repair.eager]
        for statistic, rate in dict.fromkeys((r.statistic, r.factor.rate) for r in eager):
            group = [r for r in eager if r.statistic is statistic and r.factor.rate == rate]
            self._follow(statistic, rate, group)
        for repair in reversed(self.online.repairs):
            self._finish(repair)
        return self._freeze(self.nest.top)

    def _store(self, instance: Instance) -> None:
        """Give ``instance`` a buffer: the output or workspace for the root, a folded local otherwise."""
        if instance is self.nest.root:
            self.places[instance] = self.whole[Value(instance.node)]
        else:
            self.places[instance] = self._local(instance, instance.storage, instance_name(instance))

    def _begin(self, instance: Instance) -> None:
        """Declare and initialise ``instance`` where its value starts afresh."""
        first = _item_of(instance, instance.block)
        start = instance.start
        opening: list[Statement] = [Comment(str(instance.expr))]
        if instance is not self.nest.root:
            opening.append(Declare(self.places[instance].buffer.name))
        if start is None:
            _before(instance.block, first, opening)
            return
        identity = OPS[instance.expr.op].identity
        assert identity is not None, "only a reducible op reduces"
        here = elements(instance, start.parent, self._extents(instance))
        target = load(self.places[instance], [here.positions[axis] for axis in instance.expr.output])
        initial = here.nest([Assign(target, Constant(identity))])
        if instance.running:
            _before(start.parent, start, [*opening, *initial])
        else:
            _before(instance.block, first, opening)
            _before(start.parent, start, initial)

    def _local(self, instance: Instance, block: Block, name: str) -> Place:
        taken = {buffer.name for buffer in self.buffers}
        unique = next(n for k in range(1, len(taken) + 2) if (n := name if k == 1 else f"{name}_{k}") not in taken)
        place = fold(instance, block, unique, self._extents(instance))
        self.buffers.append(place.buffer)
        return place

    def _extents(self, instance: Instance) -> tuple[Extent, ...]:
        return tuple(Extent(*self.shapes.extent(instance.node, axis)) for axis in instance.expr.output)

    def _follow(self, statistic: Instance, rate: float, repairs: Sequence[Repair]) -> None:
        """Each time ``statistic`` has moved, rescale its accumulators by e^(rate·(new − old))."""
        block = partial_sites(self.nest, statistic)[0]
        place = self._local(statistic, block, instance_name(statistic) + "_factor")
        here = elements(statistic, block, self._extents(statistic))
        positions = [here.positions[axis] for axis in statistic.expr.output]
        kept, current = load(place, positions), load(self.places[statistic], positions)
        item = _item_of(statistic, block)
        _before(block, item, [Declare(place.buffer.name), *here.nest([Assign(kept, current)])])
        # e^(rate·(new − old)) = (e^−rate)^(old − new)
        moved = Apply("shift_factor", (Constant(-rate), kept, current))
        following = [*here.nest([Assign(kept, moved)])]
        for repair in repairs:
            following += self._rescale(repair.accumulator, block, place, repair.rows)
        _after(block, item, following)

    def _rescale(self, accumulator: Instance, block: Block, factor: Place, rows: str) -> tuple[Statement, ...]:
        here = elements(accumulator, block, self._extents(accumulator))
        target = load(self.places[accumulator], [here.positions[axis] for axis in accumulator.expr.output])
        by = load(factor, [here.positions[row] for row in rows])
        return (Comment(f"rescale {accumulator.expr}"), *here.nest([Assign(target, Apply("mul", (target, by)))]))

    def _finish(self, repair: Repair) -> None:
        """After the loop: apply what was left out of the accumulation."""
        statistic, accumulator = repair.statistic, repair.accumulator
        start = accumulator.start
        assert start is not None, "an accumulator reduces"
        here = elements(accumulator, start.parent, self._extents(accumulator))
        target = load(self.places[accumulator], [here.positions[axis] for axis in accumulator.expr.output])
        final = load(self.places[statistic], [here.positions[row] for row in repair.rows])
        update = here.nest([Assign(target, _applied(repair, target, final))])
        _after(start.parent, start, [Comment(f"complete {accumulator.expr}"), *update])

    def _compute(self, instance: Instance) -> Statement:
        def at(axis: str) -> Parts:
            return [(loop.variable, loop) for loop in instance.loops[axis] if loop is not None]

        target = load(self.places[instance], [at(axis) for axis in instance.expr.output])
        values = [self._read(instance, k, at) for k in range(len(instance.reads))]
        if instance.expr.reduced:
            return Accumulate(target, instance.expr.op, values[0])
        return Assign(target, pointwise(instance.expr.op, values))

    def _read(self, instance: Instance, k: int, at: At) -> Scalar:
        read = instance.reads[k]
        match read.operand:
            case Literal(value):
                return Constant(value)
            case Access(axes):
                place = self.whole[read.source] if read.producer is None else self.places[read.producer]
                element = load(place, [at(axis) for axis in axes])
            case other:
                assert_never(other)
        match self.online.stands.get((instance, k)):
            case None:
                return element
            case Stand.ONE:
                return Constant(1.0)
            case Stand.ZERO:
                return Constant(0.0)
            case Stand.FINITE:
                return Apply("finite_or", (element, Constant(0.0)))

    def _freeze(self, block: Block) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for item in block.items:
            match item:
                case NestLoop():
                    statements.append(self._loop(item))
                case Instance():
                    statements.append(self._compute(item))
                case _:
                    statements.append(item)
        return absolute_values(computed_once(statements))

    def _loop(self, loop: NestLoop) -> For:
        owner, axis = loop.riders[0]
        outer = tuple(x.variable for x in owner.loops[axis] if x is not None and loop.parent.inside(x))
        reduces = any(axis in rider.expr.reduced for rider, axis in loop.riders)
        parallel = loop.parent.loop is None and self._independent(loop)
        body = self._freeze(loop.body)
        return For(loop.variable, loop.extent, loop.step, loop.limit, outer, body, parallel, reduces)

    def _independent(self, loop: NestLoop) -> bool:
        """Whether no two iterations of ``loop`` write the same element."""
        for instance in self.nest.instances:
            home = instance.home
            if home is None or not home.inside(loop) or instance.storage.inside(loop):
                continue
            if not any(loop in instance.loops[axis] for axis in instance.expr.output):
                return False
        return True


def computed_once(block: Sequence[Statement]) -> tuple[Statement, ...]:
    """``block`` with what was computed in it before read from there: a value for two readers, at two of its sites.

    What has changed since is computed anew; loops may change anything.
    """
    known: dict[Scalar, Load] = {}
    found: list[Statement] = []
    for statement in block:
        match statement:
            case Assign(target, value):
                found.append(Assign(target, known.get(value, value)))
                known = _unchanged(known, target)
                if isinstance(value, Apply) and not reads(value, target.buffer):
                    known.setdefault(value, target)
            case Accumulate(target):
                found.append(statement)
                known = _unchanged(known, target)
            case For():
                found.append(statement)
                known = {}
            case Declare() | Comment():
                found.append(statement)
            case other:
                assert_never(other)
    return tuple(found)


def _unchanged(known: Mapping[Scalar, Load], target: Load) -> dict[Scalar, Load]:
    """What of ``known`` neither reads nor lies in the buffer of ``target``."""
    return {value: place for value, place in known.items() if not involves(place, value, target.buffer)}


def instance_name(instance: Instance) -> str:
    """A C identifier for an instance's buffer: the op and the leaf's number."""
    return f"{instance.expr.op}{instance.node}"


def pointwise(op: str, values: Sequence[Scalar]) -> Scalar:
    """A pointwise expression as a scalar; the unary forms spelled out."""
    if len(values) == 2:
        return Apply(op, tuple(values))
    match OPS[op].unary_form:
        case "copy":
            return values[0]
        case "not":
            return Apply("not", (values[0],))
        case "zero-right":
            return Apply(op, (values[0], Constant(0.0)))
        case "default-left":
            return _default_left(op, values[0])
        case other:
            assert_never(other)


def _default_left(op: str, value: Scalar) -> Scalar:
    match op:
        case "pow":
            return Apply("exp", (value,))
        case "log":
            return Apply("ln", (value,))
        case _:
            default = OPS[op].default
            assert default is not None, f"{op} has no default left operand"
            return Apply(op, (Constant(default), value))


def _identity(repair: Repair) -> Constant:
    """What the accumulator starts from."""
    identity = OPS[repair.accumulator.expr.op].identity
    assert identity is not None, "an accumulator reduces"
    return Constant(identity)


def _applied(repair: Repair, target: Load, final: Load) -> Scalar:
    """The accumulator put right for the final value of the statistic."""
    if repair.shift:
        moved = Apply("add", (target, Apply("mul", (Constant(repair.shift), final))))
        # NaN where all that was to be compared is NaN, which is skipped: nothing is left then but the identity
        return Apply(repair.accumulator.expr.op, (moved, _identity(repair)))
    if repair.eager:
        # 1 where the statistic is finite; where it is not, what reading it as 0 left out
        left_out = Apply("sub", (final, Apply("finite_or", (final, Constant(0.0)))))
        return Apply("mul", (target, Apply("exp", (Apply("mul", (Constant(repair.factor.rate), left_out)),))))
    match repair.factor.power:
        case -1.0:
            return Apply("div", (target, final))
        case 1.0:
            return Apply("mul", (target, final))
        case power:
            return Apply("mul", (target, Apply("pow", (final, Constant(power)))))


def _item_of(instance: Instance, block: Block) -> NestLoop | Instance:
    """The item of ``block`` that holds the instance's statement."""
    assert instance.home is not None
    holder = block.holder(instance.home)
    return instance if holder is None else holder


def _before(block: Block, item: NestLoop | Instance, statements: Sequence[Statement]) -> None:
    position = block.items.index(item)
    block.items[position:position] = statements


def _after(block: Block, item: NestLoop | Instance, statements: Sequence[Statement]) -> None:
    position = block.items.index(item) + 1
    block.items[position:position] = statements
