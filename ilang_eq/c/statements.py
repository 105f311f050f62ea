"""C text of bound loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from ilang_eq.c.ahead import copied_lines, fetching_lines
from ilang_eq.c.along import along_lines
from ilang_eq.c.bands import in_bands
from ilang_eq.c.bounds import beyond_lines, bound_text, left_text, step_text
from ilang_eq.c.columns import column_lines
from ilang_eq.c.jam import TOGETHER, added, until_line_text, worth_text
from ilang_eq.c.layout import Layout, array_text
from ilang_eq.c.nodes import (
    Fold,
    Held,
    Jam,
    Loop,
    Node,
    Parallel,
    Registers,
    Room,
    Seldom,
    Simd,
    Strips,
    Sum,
    Turned,
    VectorNest,
    Versions,
    block_name,
    unblocked,
)
from ilang_eq.c.operands import operand_lines, operands_asked
from ilang_eq.c.quotients import inverted
from ilang_eq.c.requests import STRIP, asked_lines, asking, strip_name
from ilang_eq.c.row_pointers import row_pointers
from ilang_eq.c.stages import staged_nest_lines
from ilang_eq.c.steps import asked_together, taken_together
from ilang_eq.c.streaming import burst_lines, past_sums
from ilang_eq.c.target_rows import target_rows
from ilang_eq.c.turned import turned_lines
from ilang_eq.c.vectors import Used, indented, nest_lines, unrolled
from ilang_eq.lower.addresses import extent_name, flat_index, index_text
from ilang_eq.lower.ir import Accumulate, Assign, Comment, Declare, Extent, For, Index, Load
from ilang_eq.lower.lanes import single_place
from ilang_eq.lower.scalar import EXTREMA, Printer, update_text
from ilang_eq.lower.streamed import streamed_place
from ilang_eq.lower.walk import updates
from ilang_eq.lower.widths import BLOCK, STEPS, WIDTHS

_CLAUSE = {"add": "+", "mul": "*", "max": "larger", "min": "smaller"}
_DEFINITION = re.compile(r"const \w+ (\w+) =")


@dataclass(slots=True)
class Statements:
    """Prints the statements of one kernel.

    Args:
        layout: where its buffers live.
        used: collects what the text relies on.
        names: variables that stand for places, while they are accumulated into.
        streamed: outputs that may be written past the caches, each with the fewest floats that are.
        sums: outputs that register tiles may write so, each with the extents that are short then.
        dispatch: prints the loop that hands out the tasks of a parallel loop.
        alike: what takes the steps of single floats, as another version of the kernel divides it otherwise.
        beside: prints what goes beside the steps of a loop that is marked.
        foreseen: what passes around the statements ask for.
        parts: of that, what they go through in parts of rows, and ask for unless these are short.
    """

    layout: Layout
    used: Used
    names: dict[Load, str] = field(default_factory=dict)
    streamed: Mapping[str, int] = field(default_factory=dict)
    sums: Mapping[str, tuple[Extent, ...]] = field(default_factory=dict)
    dispatch: Callable[[Parallel], list[str]] | None = None
    alike: frozenset[str] = frozenset()
    beside: Callable[[Loop], list[str]] | None = None
    foreseen: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()

    def lines(self, nodes: Sequence[Node]) -> list[str]:
        """The C text of ``nodes``."""
        lines: list[str] = []
        for node in nodes:
            # what two loops of a block ask for has one name
            text = [line for line in self._node(node) if not _DEFINITION.match(line) or line not in lines]
            if _defined(text) & _defined(lines):
                text = ["{", *indented(text), "}"]
            # a declaration and the assignment right after it are one sentence
            if isinstance(node, Assign) and lines and lines[-1] == f"float {node.target.buffer};":
                lines[-1] = f"float {text[0]}"
            else:
                lines += text
        return lines

    def rows(self, loop: For, nodes: tuple[Node, ...], slow: bool = False) -> list[str]:
        """The C text of ``nodes``, the body of ``loop``, which asks for rows that its passes or copies come to next.

        Args:
            slow: whether it does more than what its passes do.
        """
        found = asking(loop, nodes, self.layout, slow)
        foreseen = self.foreseen | found.foreseen | operands_asked(nodes)
        inside = replace(self, foreseen=foreseen, parts=self.parts | found.parts)
        asked = [*beyond_lines(loop), *found.definitions, *copied_lines(loop, self.layout)]
        return [*asked, *inside.lines(found.body)]

    def _node(self, node: Node) -> list[str]:
        match node:
            case Comment(text):
                return [f"// {text}"]
            case Declare(name):
                declaration = self.layout.declaration(name)
                return [] if declaration is None else [declaration]
            case Assign() | Accumulate():
                return [self._update(node)]
            case Loop():
                return self._loop(node)
            case Simd():
                return self.simd(node, "0", bound_text(node.source, node.full))
            case Jam():
                return self._jam(node)
            case Turned():
                return self._turned(node)
            case VectorNest():
                return self._nest(node)
            case Strips():
                return self._strips(node)
            case Fold():
                return self._fold(node)
            case Held(loops, tile, lanes):
                return unrolled(loops, lanes, [f"HOLD(V{lanes}({self.layout.element(tile)}));"])
            case Room():
                return self._room(node)
            case Registers():
                return self._registers(node)
            case Versions(facts, full, tail):
                test = " && ".join(f"{left_text(fact.extent, fact.outer)} >= {fact.limit}" for fact in facts)
                return [f"if ({test}) {{", *self._scope(full), "} else {", *self._scope(tail), "}"]
            case Seldom():
                return self._seldom(node)
            case Parallel():
                assert self.dispatch is not None, "tasks hold no tasks"
                return self.dispatch(node)
            case other:
                assert_never(other)

    def _nest(self, node: VectorNest) -> list[str]:
        alike = any(update.target.buffer in self.alike for update in updates(node.body))
        across = column_lines(node, self.layout, self.used)
        found = staged_nest_lines(node, self.layout, self.used, alike) if across is None else across
        return nest_lines(node, self.layout, self.used, alike) if found is None else found

    def _seldom(self, node: Seldom) -> list[str]:
        if not node.body and not node.without:
            others = " || ".join(f"{variable} > 0" for variable in node.first)
            return [f"if ({others}) {{", *self._scope(node.otherwise), "}"]
        first = " && ".join(f"{variable} == 0" for variable in node.first)
        without = " || ".join(f"{extent_name(extent)} == 0" for extent in node.without)
        test = f"{first} && ({without})" if first and without else first or without
        otherwise = ["} else {", *self._scope(node.otherwise)] if node.otherwise else []
        return [f"if ({test}) {{", *self._scope(node.body), *otherwise, "}"]

    def _scope(self, nodes: tuple[Node, ...]) -> list[str]:
        """The inside of braces; a register tile needs no braces of its own there."""
        match nodes:
            case (Registers() as only,):
                return self._registers(only)[1:-1]
            case _:
                return indented(self.lines(nodes))

    def _loop(self, node: Loop) -> list[str]:
        node = in_bands(node, self.layout, self.foreseen)
        loop, bound = node.source, bound_text(node.source, node.full)
        v, step = loop.variable, step_text(loop)
        body, ends = self.rows(loop, node.body), list[str]()
        pointers = row_pointers(node, self.layout)
        for rows in pointers:
            body = [rows.replaced(line, self.layout) for line in body]
        fetching = fetching_lines(node, self.layout, bound, self.foreseen)
        before_operands, operands, left = operand_lines(node, self.layout, bound)
        along, coming = along_lines(node, self.layout, self.foreseen, self.parts)
        asked = [*fetching.inside, *operands, *coming, *asked_lines(node.asked, loop.step, self.layout)]
        if node.beside:
            assert self.beside is not None, "something goes there"
            asked += self.beside(node)
        match node.part:
            case "whole" if node.block:
                head = f"for (; {v} < {v}_to; {step}) {{"
            case "whole":
                head = f"for (int64_t {v} = 0; {v} < {bound}; {step}) {{"
                ends = _whole_ends(node) if node.full else []
            case "main":
                head = f"for (int64_t {v} = 0; {v} + {loop.step} <= {bound}; {step}) {{"
                ends = _whole_ends(node)
            case "half":
                first = _whole_steps(bound, 2 * loop.step)
                head = f"for (int64_t {v} = {first}; {v} + {loop.step} <= {bound}; {step}) {{"
            case "rest":
                head = f"for (int64_t {v} = {_whole_steps(bound, loop.step)}; {v} < {bound}; {step}) {{"
                ends = _ends((short for nest in node.body for short in _short(nest) if v in short.outer), body)
        before = [
            *fetching.before,
            *before_operands,
            *along,
            *(line for rows in pointers for line in rows.before(self.layout)),
        ]
        asked = [*asked, *(line for rows in pointers for line in rows.inside())]

        def steps(fetches: Sequence[str]) -> list[str]:
            together = self._together(node, bound, [*fetches, *asked])
            if together and _is_whole(bound, STEPS):
                return together
            rest = head
            if together and not node.block:
                rest = f"for (int64_t {v} = {_whole_steps(bound, STEPS)}; {v} < {bound}; {step}) {{"
            return [*together, rest, *indented([*ends, *fetches, *asked, *body]), "}"]

        if not fetching.turn or any(isinstance(nest, VectorNest) and nest.partial for nest in node.body):
            return [*before, *steps(fetching.asking), *left]
        # most reductions ask for nothing that comes next, and have no slot to spare for it
        asking, alone = indented(steps(fetching.asking)), indented(steps([]))
        return [*before, f"if ({fetching.turn}) {{", *asking, "} else {", *alone, "}", *left]

    def _together(self, node: Loop, bound: str, asked: Sequence[str]) -> list[str]:
        """The steps of a reduction that are taken together, each of which ``asked``, if any are."""
        together = taken_together(node)
        if together is None:
            return []
        v, step = node.source.variable, step_text(together.source)
        begin, end = ("", f"{v}_to") if node.block else (f"int64_t {v} = 0", bound)
        body = [*asked_together(node.source, asked), *self.rows(together.source, together.body)]
        return [f"for ({begin}; {v} + {STEPS} <= {end}; {step}) {{", *indented(body), "}"]

    def _strips(self, node: Strips) -> list[str]:
        bound = bound_text(node.whole.source, node.whole.full)
        if streamed_place(node.whole.source, self.streamed) is not None:
            return self.simd(node.whole, "0", bound)
        # what comes after a tile that may be short is not in its row
        short = node.whole.source.limit is not None
        lines = (replace(self, foreseen=frozenset(self.layout.buffers)) if short else self)._loop(node.main)
        for part in (node.main, node.half):
            if _is_whole(bound, part.source.step):
                return lines
            if part is node.main:
                lines += self._loop(node.half)
        return [*lines, *self._loop(node.rest)]

    def simd(self, node: Simd, first: str, last: str, alone: bool = False) -> list[str]:
        """An innermost loop from ``first`` to ``last``, for the compiler to vectorise; ``alone``: in no other loop."""
        loop = node.source
        names = {r.target: self._accumulator(r.target) for r in node.reductions}
        clauses = "".join(f" reduction({_CLAUSE[r.op]} : {names[r.target]})" for r in node.reductions)
        for reduction in node.reductions:
            if reduction.op in EXTREMA:
                self.used.functions.add(EXTREMA[reduction.op])
                self.used.helpers.add((f"reduction_{EXTREMA[reduction.op]}", 0))
        outside = {target: name for target, name in names.items() if name != target.buffer}
        body = Statements(self.layout, self.used, names).lines([s for s in loop.body if not isinstance(s, For)])
        target = single_place(loop) if alone else streamed_place(loop, self.streamed)
        if target is not None and not names:
            fewest, span = self.streamed.get(target.buffer), (first, last)
            bursts = burst_lines(loop, target, span, body, self.layout, self.used, fewest=fewest, alone=alone)
            if bursts:
                return bursts
        lines = self._vectorised(node, (first, last), clauses, body)
        without = None if names else inverted(loop)
        if without is not None:
            fast = Statements(self.layout, self.used).lines([s for s in without.body if not isinstance(s, For)])
            lines = [
                f"const float inverse = 1.0f / {self.layout.element(without.divisor)};",
                "if (isnormal(inverse)) {",
                *indented(self._vectorised(node, (first, last), "", fast)),
                "} else {",
                *indented(lines),
                "}",
            ]
            return ["{", *indented(lines), "}"]
        if not outside:
            return lines
        into = [f"float {name} = {self.layout.element(target)};" for target, name in outside.items()]
        back = [f"{self.layout.element(target)} = {name};" for target, name in outside.items()]
        return ["{", *indented([*into, *lines, *back]), "}"]

    def _vectorised(self, node: Simd, span: tuple[str, str], clauses: str, body: Sequence[str]) -> list[str]:
        """A loop for the compiler to vectorise; in strips, between which it asks for what comes later."""
        v, (first, last) = node.source.variable, span

        def loop(begin: str, end: str) -> list[str]:
            head = f"for (int64_t {v} = {begin}; {v} < {end}; {step_text(node.source)}) {{"
            return ["#pragma omp simd" + clauses, head, *indented(body), "}"]

        if not node.asked:
            return loop(first, last)
        strip = strip_name(node.source)
        asked = asked_lines(node.asked, STRIP, self.layout)
        head = f"for (int64_t {strip} = 0; {strip} + {STRIP} <= {last}; {strip} += {STRIP}) {{"
        return [
            head,
            *indented([*asked, *loop(strip, f"{strip} + {STRIP}")]),
            "}",
            *loop(_whole_steps(last, STRIP), last),
        ]

    def _jam(self, node: Jam) -> list[str]:
        loop, bound = node.source, bound_text(node.source, False)
        v, worth, end = loop.variable, worth_text(node, self.layout), _whole_steps(bound, TOGETHER)
        before: list[str] = []
        if worth is not None:
            before, end = [f"const int64_t {v}_jam = {worth} ? {end} : 0;"], f"{v}_jam"
        together = [line for found in node.sums for line in self._sums(node, found)]
        alone = self.lines([found.row for found in node.sums])
        return [
            *before,
            f"for (int64_t {v} = 0; {v} < {end}; {v} += {TOGETHER}) {{",
            *indented(together),
            "}",
            f"for (int64_t {v} = {end}; {v} < {bound}; {v}++) {{",
            *indented(alone),
            "}",
        ]

    def _turned(self, node: Turned) -> list[str]:
        main, bound = turned_lines(node, self.layout, self.used), bound_text(node.rows, node.full)
        if node.whole:
            return main
        v, body = node.rows.variable, self.lines([s for s in node.body if not isinstance(s, For)])
        row = self._vectorised(Simd(node.columns, (), True), ("0", str(node.columns.limit)), "", body)
        head = f"for (int64_t {v} = {_whole_steps(bound, node.height)}; {v} < {bound}; {v}++) {{"
        return [*main, head, *indented(row), "}"]

    def _sums(self, node: Jam, found: Sum) -> list[str]:
        row = found.row.source
        target, name = self.layout.element(found.target), self._accumulator(found.target)
        inside = Statements(self.layout, self.used, {found.target: name})
        rows = [inside.lines([s for s in body if not isinstance(s, For)]) for body in added(node.source, row)]
        sums = [line for lines in rows for line in (lines if len(lines) == 1 else ["{", *indented(lines), "}"])]
        body = [f"float {name} = {target};", *sums, f"{target} = {name};"]
        end = bound_text(row, found.row.full)
        until_line = until_line_text(node, found, end, self.layout)
        if until_line is None:
            return self._vectorised(found.row, ("0", end), "", body)
        line, first, last = (f"{row.variable}_{name}" for name in ("line", "first", "last"))
        through = [
            f"const int64_t {line} = {until_line};",
            f"for (int64_t {first} = 0, {last} = {line}; {first} < {end}; {first} = {last}, {last} = {end}) {{",
            *indented(self._vectorised(found.row, (first, last), "", body)),
            "}",
        ]
        return ["{", *indented(through), "}"]

    def _accumulator(self, target: Load) -> str:
        return target.buffer if self.layout.storage[target.buffer] == "scalar" else f"{target.buffer}_sum"

    def _update(self, statement: Assign | Accumulate) -> str:
        target = self.names.get(statement.target) or self.layout.element(statement.target)
        value = Printer(self.layout.element, self.used.functions).text(statement.value)
        if isinstance(statement, Assign):
            return f"{target} = {value};"
        return update_text(target, statement.op, value, self.used.functions)

    def _registers(self, node: Registers) -> list[str]:
        """The C text of register tiles, in braces: two versions of them if their sums may go past the caches."""
        past = past_sums(node, self.sums, self.layout)
        if past is None:
            return self._tiles(node)
        inside = [f"if ({past.test}) {{", *self._tiles(past.node)[1:-1], "} else {", *self._tiles(node)[1:-1], "}"]
        return ["{", *indented(inside), "}"]

    def _tiles(self, node: Registers) -> list[str]:
        if node.blocks is not None and not any(self._is_in_memory(tile.target) for tile in node.tiles):
            node = unblocked(node)
        tiles = [array_text(tile.name, tile.dims) for tile in node.tiles]
        body = self.lines(node.body)
        for rows in target_rows(node, self.layout):
            body = [*rows.before(self.layout), *(rows.replaced(line, self.layout) for line in body)]
        ends = _ends(node.partial, body)
        if node.blocks is not None:
            v, bound = node.blocks.variable, bound_text(node.blocks, False)
            block = f"const int64_t {block_name(node.blocks)} = {v}, {v}_to = least({v} + {BLOCK}, {bound});"
            body = [f"int64_t {v} = 0;", "do {", *indented([block, *body]), f"}} while ({v} < {bound});"]
        return ["{", *indented([*tiles, *ends, *body]), "}"]

    def _is_in_memory(self, buffer: str) -> bool:
        """Whether ``buffer`` lies in memory; what is computed on the way stays in a core's own caches."""
        return self.layout.storage.get(buffer) in ("argument", "shared")

    def _room(self, node: Room) -> list[str]:
        if not self._is_in_memory(node.target.buffer):
            return []
        indices = [index_text(index) for index in node.target.indices]
        first = flat_index(indices, self.layout.buffers[node.target.buffer].dims)
        lines = [f"make_room({node.target.buffer}, {first}, {node.floats});"]
        return unrolled(node.loops, 1, lines) if node.loops else lines

    def _fold(self, node: Fold) -> list[str]:
        lanes, lane, limit = node.lanes, node.lane.variable, node.lane.limit or 0
        self.used.widths.add(lanes)
        self.used.helpers.add((f"across_{node.op}", lanes))
        start = Load(node.tile.buffer, (*node.tile.indices[:-1], Index(())))
        part = f"V{lanes}({self.layout.element(node.tile)})"
        lines = [f"vec{lanes} share = V{lanes}({self.layout.element(start)});"]
        if limit > min(WIDTHS):
            more = self._fold_step(node.op, lanes, part)
            head = f"for (int64_t {lane} = LANES{lanes}; {lane} < {limit}; {lane} += LANES{lanes})"
            lines += ["UNROLL", head, "    " + more]
        rows = sorted(node.partial)
        update = update_text(
            self.layout.element(node.target), node.op, f"across_{node.op}{lanes}(share)", self.used.functions
        )
        test = " && ".join(f"{row} < {row}_end" for row in rows)
        lines += [f"if ({test})", "    " + update] if test else [update]
        return unrolled(node.loops, 1, lines) if node.loops else ["{", *indented(lines), "}"]

    def _fold_step(self, op: str, lanes: int, part: str) -> str:
        if op in EXTREMA:
            self.used.lifted.add((EXTREMA[op], 2, lanes))
            return f"share = {EXTREMA[op]}{lanes}({part}, share);"
        return f"share {'+' if op == 'add' else '*'}= {part};"


def _defined(lines: Sequence[str]) -> set[str]:
    """The constants that ``lines`` define in their own scope."""
    found = map(_DEFINITION.match, lines)
    return {match[1] for match in found if match is not None}


def _is_whole(bound: str, step: int) -> bool:
    """Whether a loop to ``bound`` is known to have whole steps alone."""
    return bound.isdigit() and int(bound) % step == 0


def _whole_steps(bound: str, step: int) -> str:
    """Where the whole steps of a loop to ``bound`` end."""
    whole = f"({bound})" if " - " in bound and not bound.startswith("least(") else bound
    return f"{whole} / {step} * {step}"


def _short(node: Node) -> Iterable[For]:
    """The loops of a vector nest that may be short."""
    return [loop for loop in node.loops if loop.variable in node.partial] if isinstance(node, VectorNest) else []


def _whole_ends(node: Loop) -> list[str]:
    """How far lanes go that fill a step of the loop ``node``, but no vectors."""
    steps = (loop for nest in node.body for loop in _short(nest) if loop.limit == node.source.step)
    filled = dict.fromkeys(loop for loop in steps if node.source.variable in loop.outer)
    return [f"const int64_t {loop.variable}_end = {loop.limit};" for loop in filled]


def _ends(loops: Iterable[For], body: Sequence[str]) -> list[str]:
    """How far loops that may be short go, where ``body`` asks."""
    words = set(re.findall(r"\w+", "\n".join(body)))
    ends = {f"{loop.variable}_end": bound_text(loop, False) for loop in loops}
    return [f"const int64_t {name} = {bound};" for name, bound in ends.items() if name in words]
