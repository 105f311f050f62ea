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

Where there are several calls, each has a pass over the groups to itself, and so has what divides before one: results
would wait for each other for a hundred cycles, and no processor looks far enough ahead to find the next group. What
passes hand on lies in rows of all vectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import VectorNest
from ilang_eq.c.vectors import Used, VectorPrinter, indented, slow_call, statement_lines, unrolled
from ilang_eq.lower.groups import grouped_from
from ilang_eq.lower.ir import Accumulate, Apply, Assign, For, Load, Statement
from ilang_eq.lower.scalar import Call, Infix, spell
from ilang_eq.lower.walk import loads, mentions, updates


@dataclass(frozen=True, slots=True)
class _Stage:
    """Statements of the innermost body, and then ``call``, whose result is called ``result``."""

    body: tuple[Statement, ...]
    call: Call | None = None
    result: str = ""


@dataclass(frozen=True, slots=True)
class _Text:
    """C text of a stage: ``body`` for each vector, then ``call``. What is ``made`` is scalars, of them ``result``."""

    made: tuple[str, ...]
    body: list[str]
    call: list[str]
    result: str

    @property
    def words(self) -> frozenset[str]:
        return frozenset(re.findall(r"\w+", "\n".join(self.body)))


def staged_nest_lines(nest: VectorNest, layout: Layout, used: Used, alike: bool = False) -> list[str] | None:
    """The unrolled loops of ``nest``, in stages; None where nothing is gained, or an iteration may touch another's.

    Results are ``alike`` if they are those of single floats, to the bit: where it depends on the threads which of the
    two computes an element.
    """
    stages = _stages(nest)
    around, inside = _side_by_side(nest)
    if nest.partial or len(stages) == 1 or not inside or not iterations_apart(nest, inside):
        return None
    apart = iterations_apart(nest, nest.loops)
    lines = _StagePrinter(nest, around if apart else (), inside, layout, used, alike).lines(stages)
    return lines if apart else unrolled(around, 1, lines, nest.rolled)


def in_passes(nest: VectorNest) -> bool:
    """Whether stages of ``nest`` have passes over its vectors to themselves."""
    return len(_stages(nest)) > 2


def worth_stages(body: Sequence[Statement]) -> bool:
    """Whether ``body`` calls a function that is faster on several vectors."""
    return any(slow_call(update.value) is not None for update in updates(body))


def _stages(nest: VectorNest) -> list[_Stage]:
    stages: list[_Stage] = []
    body: list[Statement] = []
    for statement in nest.body:
        call = slow_call(statement.value) if isinstance(statement, Assign | Accumulate) else None
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
    """Prints the stages of ``nest``: the loops ``inside`` go group by group, for each step of those ``around``."""

    nest: VectorNest
    around: tuple[For, ...]
    inside: tuple[For, ...]
    layout: Layout
    used: Used
    alike: bool

    @property
    def _count(self) -> str:
        """How many vectors there are inside."""
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

    @property
    def _row(self) -> str:
        """Where the vectors inside begin, of all that there are."""
        row = ""
        for loop in self.around:
            row = f"({row} * {loop.limit} + {loop.variable})" if row else loop.variable
        return f"{row} * {self._count} + " if row else ""

    def lines(self, stages: Sequence[_Stage]) -> list[str]:
        """Declarations of what passes hand on, then each pass over the groups."""
        printer = VectorPrinter.of(self.nest, self.layout, self.used, self.alike)
        passes = [[self._text(stage, printer) for stage in some] for some in self._passes(stages)]
        made = {name for texts in passes for text in texts for name in text.made}
        kinds = {name: f"vec{self.nest.lanes}" if name in printer.vectors else "float" for name in made}
        lines, rows = list[str](), list[str]()
        for n, texts in enumerate(passes):
            given = [x for x in rows if _mentioned(x, texts)]
            kept = [x for text in texts for x in text.made if any(_mentioned(x, later) for later in passes[n + 1 :])]
            count = " * ".join((*(str(loop.limit) for loop in self.around), self._count))
            lines += [f"{kinds[x]} {x}_row[{count}];" for x in kept]
            loop = f"for (int group = 0; group < {self._count}; group += ABREAST({self._count})) {{"
            group = f"enum {{ count = ABREAST({self._count}) }};"
            groups = ["UNROLL", loop, *indented([group, *self._pass(texts, given, kept, kinds)]), "}"]
            lines += unrolled(self.around, 1, groups, self.nest.rolled) if self.around else groups
            rows += kept
        return [*printer.before(), *lines]

    def _passes(self, stages: Sequence[_Stage]) -> list[list[_Stage]]:
        """The stages of each pass over the groups; the last stage goes with the last call."""
        if len(stages) < 3:
            return [list(stages)]
        *alone, last = [part for stage in stages[:-1] for part in _divided(stage)]
        return [*([part] for part in alone), [last, stages[-1]]]

    def _pass(
        self, texts: Sequence[_Text], given: Sequence[str], kept: Sequence[str], kinds: Mapping[str, str]
    ) -> list[str]:
        """The stages ``texts`` of a group, which take what is ``given`` from rows, and put there what is ``kept``."""
        lines = [f"{kinds[x]} {x}_each[count];" for x in given]
        lines += _for_each([f"{x}_each[each] = {x}_row[{self._row}group + each];" for x in given])
        known = list(given)
        for n, text in enumerate(texts):
            handed = [x for x in text.made if x in kept or _mentioned(x, texts[n + 1 :])]
            read = [f"const {kinds[x]} {x} = {x}_each[each];" for x in known if x in text.words]
            write = [f"{x}_each[each] = {x};" for x in handed if x != text.result]
            lines += [f"{kinds[x]} {x}_each[count];" for x in handed]
            lines += _for_each([*self._places, *read, *text.body, *write])
            lines += text.call
            known += handed
        return lines + _for_each([f"{x}_row[{self._row}group + each] = {x}_each[each];" for x in kept])

    def _text(self, stage: _Stage, printer: VectorPrinter) -> _Text:
        body = self._body(stage, printer)
        return _Text(tuple(_scalars(stage)), body, self._call(stage), stage.result)

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


def _divided(stage: _Stage) -> list[_Stage]:
    """``stage`` in two, if it divides before its call."""
    spelled = [spell(update.value) for update in updates(stage.body) if isinstance(update.value, Apply)]
    if any(isinstance(value, Infix) and value.operator == "/" for value in spelled):
        return [_Stage(stage.body), replace(stage, body=())]
    return [stage]


def _mentioned(name: str, texts: Sequence[_Text]) -> bool:
    return any(name in text.words for text in texts)


def _for_each(body: Sequence[str]) -> list[str]:
    """``body`` for each vector of a group."""
    return ["UNROLL", "for (int each = 0; each < count; each++) {", *indented(body), "}"] if body else []


def _scalars(stage: _Stage) -> list[str]:
    """What ``stage`` defines."""
    assigned = [s.target.buffer for s in stage.body if isinstance(s, Assign) and not s.target.indices]
    return assigned if stage.call is None else [*assigned, stage.result]
