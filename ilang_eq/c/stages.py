"""Vector nests in stages: functions that take many steps are applied to several vectors side by side.

before →  for i' by vectors: { x = 0 - a[i']; e = exp(x); out[i'] += e * b; }
after  →  for groups of vectors of i': {
              for each: e_each[each] = 0 - a[i'];
              exp_each(e_each)
              for each: out[i'] += e_each[each] * b;
          }

``Function.several`` in ``math.py`` says why. A stage ends at each such call; scalars that a later stage reads are kept
in an array, which compilers hold in registers once the loops are unrolled. A group is as many vectors as the registers
have room for (``lower/groups.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ilang_eq.c.layout import Layout
from ilang_eq.c.math import FUNCTIONS
from ilang_eq.c.nodes import VectorNest
from ilang_eq.c.vectors import Used, VectorPrinter, indented, statement_lines, unrolled
from ilang_eq.lower.groups import grouped_from
from ilang_eq.lower.ir import Accumulate, Apply, Assign, For, Load, Scalar, Statement
from ilang_eq.lower.scalar import Call, spell
from ilang_eq.lower.walk import loads, mentions, updates


@dataclass(frozen=True, slots=True)
class _Stage:
    """Statements of the innermost body, and then ``call``, whose result is called ``result``."""

    body: tuple[Statement, ...]
    call: Call | None = None
    result: str = ""


def staged_nest_lines(nest: VectorNest, layout: Layout, used: Used, alike: bool = False) -> list[str] | None:
    """The unrolled loops of ``nest``, in stages; None where nothing is gained, or an iteration may touch another's.

    Results are ``alike`` if they are those of single floats, to the bit: where it depends on the threads which of the
    two computes an element.
    """
    stages = _stages(nest)
    around, inside = _side_by_side(nest)
    if nest.partial or len(stages) == 1 or not inside or not iterations_apart(nest, inside):
        return None
    lines = _StagePrinter(nest, inside, layout, used, alike).lines(stages)
    return unrolled(around, 1, lines) if around else lines


def worth_stages(body: Sequence[Statement]) -> bool:
    """Whether ``body`` calls a function that is faster on several vectors."""
    return any(_several(update.value) is not None for update in updates(body))


def _several(value: Scalar) -> Call | None:
    """``value`` as a call of a function that is faster on several vectors; None for anything else."""
    if not isinstance(value, Apply):
        return None
    spelling = spell(value)
    match spelling:
        case Call(function, (_,)) if FUNCTIONS[function].several is not None:
            return spelling
        case _:
            return None


def _stages(nest: VectorNest) -> list[_Stage]:
    stages: list[_Stage] = []
    body: list[Statement] = []
    for statement in nest.body:
        call = _several(statement.value) if isinstance(statement, Assign | Accumulate) else None
        if call is None or not isinstance(statement, Assign | Accumulate) or not _moves(call, nest):
            body.append(statement)
            continue
        plain = isinstance(statement, Assign) and not statement.target.indices
        result = statement.target if plain else Load(f"{statement.target.buffer}_value", ())
        stages.append(_Stage(tuple(body), call, result.buffer))
        body = [] if plain else [replace(statement, value=result)]
    return [*stages, _Stage(tuple(body))]


def _moves(call: Call, nest: VectorNest) -> bool:
    """Whether the argument of ``call`` is a vector: it reads something that moves with the lane."""
    scalars = {s.target.buffer: s.value for s in nest.body if isinstance(s, Assign) and not s.target.indices}
    pending, seen = [load for argument in call.arguments for load in loads(argument)], set[str]()
    while pending:
        load = pending.pop()
        if mentions(load, nest.loops[-1].variable):
            return True
        if load.buffer in scalars and load.buffer not in seen:
            seen.add(load.buffer)
            pending += loads(scalars[load.buffer])
    return False


def _side_by_side(nest: VectorNest) -> tuple[tuple[For, ...], tuple[For, ...]]:
    """The loops of ``nest`` around a stage, and those whose vectors go in groups; none if there is one vector."""
    vectors = [loop.limit or 1 for loop in nest.loops[:-1]] + [(nest.loops[-1].limit or 1) // nest.lanes]
    first = grouped_from(vectors) if nest.lanes > 1 else None
    return (nest.loops, ()) if first is None else (nest.loops[:first], nest.loops[first:])


def iterations_apart(nest: VectorNest, inside: Sequence[For]) -> bool:
    """Whether no iteration of ``inside`` reads what another one writes."""
    written = {u.target for u in updates(nest.body) if u.target.indices}
    read = {load for u in updates(nest.body) for load in loads(u.value) if load.indices}
    shared = {load for load in read if load.buffer in {target.buffer for target in written}}
    return shared <= written and all(mentions(load, loop.variable) for load in shared for loop in inside)


@dataclass(slots=True)
class _StagePrinter:
    """Prints the stages of ``nest``, whose loops ``inside`` each of them runs through."""

    nest: VectorNest
    inside: tuple[For, ...]
    layout: Layout
    used: Used
    alike: bool

    @property
    def _count(self) -> str:
        """How many vectors there are."""
        return " * ".join((self._vectors, *(str(loop.limit) for loop in self.inside[:-1])))

    @property
    def _vectors(self) -> str:
        """The vectors of the last loop."""
        return f"{self.inside[-1].limit} / LANES{self.nest.lanes}"

    @property
    def _places(self) -> list[str]:
        """The variables of the loops, for the vector ``group + each``."""
        steps: list[tuple[For, str, str]] = [(self.inside[-1], f"({self._vectors})", f" * LANES{self.nest.lanes}")]
        steps = [*((loop, str(loop.limit), "") for loop in self.inside[:-1]), *steps]
        lines, position = list[str](), "(group + each)"
        for n, (loop, count, scale) in enumerate(reversed(steps)):
            left = position if n + 1 == len(steps) else f"{position} % {count}"
            lines.insert(0, f"const int64_t {loop.variable} = {left}{scale};")
            position = f"{position} / {count}"
        return lines

    def _each(self, body: Sequence[str]) -> list[str]:
        """``body`` for each vector of a group."""
        head = ["UNROLL", "for (int each = 0; each < count; each++) {"]
        return [*head, *indented([*self._places, *body]), "}"]

    def lines(self, stages: Sequence[_Stage]) -> list[str]:
        """Declarations of what stages hand on, then each stage."""
        printer = VectorPrinter.of(self.nest, self.layout, self.used, self.alike)
        bodies = [self._body(stage, printer) for stage in stages]
        words = [set(re.findall(r"\w+", "\n".join(body))) for body in bodies]
        made = [_scalars(stage) for stage in stages]
        kept = {name for n, names in enumerate(made) for name in names if any(name in w for w in words[n + 1 :])}
        kinds = {name: f"vec{self.nest.lanes}" if name in printer.vectors else "float" for name in sorted(kept)}
        lines: list[str] = []
        known: list[str] = []
        for stage, names, body, mentioned in zip(stages, made, bodies, words, strict=True):
            handed = [name for name in names if name in kept]
            read = [f"const {kinds[x]} {x} = {x}_each[each];" for x in known if x in mentioned]
            write = [f"{x}_each[each] = {x};" for x in handed if x != stage.result]
            lines += [f"{kinds[x]} {x}_each[count];" for x in handed]
            lines += self._each([*read, *body, *write])
            lines += self._call(stage)
            known += handed
        loop = f"for (int group = 0; group < {self._count}; group += ABREAST({self._count})) {{"
        count = f"enum {{ count = ABREAST({self._count}) }};"
        return ["UNROLL", loop, *indented([count, *lines]), "}"]

    def _body(self, stage: _Stage, printer: VectorPrinter) -> list[str]:
        """The statements of a stage, and what its call is given."""
        lines = [line for statement in stage.body for line in statement_lines(statement, printer)]
        if stage.call is None:
            return lines
        lines.append(f"{stage.result}_each[each] = {printer.vector(stage.call.arguments[0])};")
        printer.vectors.add(stage.result)
        return lines

    def _call(self, stage: _Stage) -> list[str]:
        if stage.call is None:
            return []
        function, lanes = stage.call.function, self.nest.lanes
        self.used.several.add((function, lanes))
        return [f"{function}{lanes}_{'alike' if self.alike else 'each'}({stage.result}_each, count);"]


def _scalars(stage: _Stage) -> list[str]:
    """What ``stage`` defines."""
    assigned = [s.target.buffer for s in stage.body if isinstance(s, Assign) and not s.target.indices]
    return assigned if stage.call is None else [*assigned, stage.result]
