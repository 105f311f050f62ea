"""Rows that passes ask for (``lower/passes.py``), in C: a few lines in each step of a pass.

before →  for i: { for j: m = max(m, x[i][j]);  for j: s += exp(x[i][j] - m) }
after  →  for i: { for j: m = max(m, x[i][j]);  for j: { ask for x[i + 1][j]; s += exp(x[i][j] - m) } }

The first pass over a row in memory waits for it, and memory waits while the others compute. Asked for in time, rows
come meanwhile: a log-sum-exp of 4096 rows of 4096 floats in two passes takes 7.1 ms on Cascade Lake instead of 11.0,
where reading takes 6. Nothing is asked for where rows are near anyway, so short that prefetchers see them coming, or so
long that they would not stay. What would come too late from the next row is asked for some rows before: 8192 rows of
1000 floats less their log-sum-exp, times another array, take 0.63 of the time on Zen 5.

Of passes that only read and compute little, those for Zen 5 ask (``c/along.py``): the variance of 4096 rows of 4096
floats takes 0.61 of the time there, and 0.75 if lines come to the second cache alone. Of rows too many to stay in the
nearest cache beside the next ones, each pass asks for its own, some way ahead: the variance takes 0.91 of the time in
tiles of 4, 8 and 16 rows, and 0.77 if the last level holds all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ilang_eq.c.along import DISTANCE
from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Asked, Jam, Loop, Node, Registers, Simd, Strips, VectorNest, Versions
from ilang_eq.c.vectors import indented, unrolled
from ilang_eq.lower.addresses import flat_index, index_text, size_text
from ilang_eq.lower.ir import For, Index, Load
from ilang_eq.lower.passes import FAR, LONG, ROOM, SHARES, Passes, Request, passes, quick_passes
from ilang_eq.lower.widths import LINE

STRIP = 64
"""The floats between requests of a loop that is the compiler's to vectorise: a line of them for each share."""
BOTH = 4096
"""Floats of rows of which a third of the nearest cache holds as many again: with 4 rows of 1024, those below are asked
for in 0.91 of the time that it takes to ask along them, and with 8 rows in 1.22."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The body of a loop over rows, with what its passes ask for: ``foreseen``, by ``definitions``.

    Of these, passes go through what is in ``parts`` a part of all rows at a time, and ask for none that are short.
    """

    body: tuple[Node, ...]
    definitions: tuple[str, ...] = ()
    foreseen: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()


def asking(row: For, nodes: tuple[Node, ...], layout: Layout, slow: bool) -> Asking:
    """``nodes``, the body of the loop ``row``, with what its passes ask for, ``slow`` or not."""
    found = passes(row, layout.buffers, slow) or quick_passes(row, layout.buffers)
    if found is None:
        return Asking(nodes)
    binder = _Binder(found, list(found.requests))
    bound = binder.nodes(nodes, ())
    if binder.left:
        return Asking(nodes)
    definitions = tuple(line for request in found.asked for line in _definitions(request, row, layout))
    foreseen = frozenset(request.place.buffer for request in found.asked)
    return Asking(bound, definitions, foreseen, foreseen if found.parts else frozenset())


@dataclass(slots=True)
class _Binder:
    """Hands the requests of passes to their loops, in order; ``left`` are those not handed out yet.

    What a loop that is in parts was ``given`` goes to all of them: what the last ones did not ask for, the next pass
    would wait for. Rows of 1000 floats less their log-sum-exp take 0.87 of the time on Zen 5.
    """

    passes: Passes
    left: list[tuple[Request, ...]]
    given: dict[str, tuple[Asked, ...]] = field(default_factory=dict)

    def nodes(self, nodes: Sequence[Node], around: tuple[For, ...]) -> tuple[Node, ...]:
        """``nodes`` in the loops ``around`` of the row's body."""
        return tuple(self._node(node, around) for node in nodes)

    def _node(self, node: Node, around: tuple[For, ...]) -> Node:
        match node:
            case Loop(source, part="half" | "rest"):
                return replace(node, asked=self.given.get(source.variable, ()))
            case Loop(source, body) if nests := [nest for inner in body for nest in _unrolled(inner)]:
                asked = self._asked((*around, source), nests[0].loops, source.variable)
                self.given[source.variable] = asked
                return replace(node, asked=asked)
            case Loop(source, body):
                return replace(node, body=self.nodes(body, (*around, source)))
            case Simd(source) if self._is_along(source) and not node.reductions:
                return replace(node, asked=self._asked((*around, source), (), strip_name(source)))
            case Simd(source) if self._is_along(source) and self.left and not self.left[0]:
                # what compilers reduce is not cut into strips, but may come before what asks
                self.left.pop(0)
                return node
            case Jam(source, sums):
                # rows that are asked for come one by one
                return self._node(Loop(source, tuple(found.row for found in sums), False), around)
            case Strips(Loop(source) as main, half, rest):
                asked = self._asked((*around, source), (), source.variable)
                main, half, rest = (replace(part, asked=asked) for part in (main, half, rest))
                return replace(node, main=main, half=half, rest=rest)
            case Registers(body=body):
                return replace(node, body=self.nodes(body, around))
            case Versions(full=full):
                return replace(node, full=self.nodes(full, around))
            case _:
                return node

    def _is_along(self, loop: For) -> bool:
        """Whether ``loop`` goes along a row; those over the rows at hand may have the same extent."""
        return loop.extent == self.passes.extent and self.passes.row.variable not in loop.outer

    def _asked(self, around: tuple[For, ...], nest: tuple[For, ...], position: str) -> tuple[Asked, ...]:
        """What the next pass asks for in the last loop of ``around``, which gets to ``position``."""
        row = self.passes.row
        rows = tuple(loop for loop in nest if row.variable in loop.outer)
        tile = tuple(loop.variable for loop in (*around, *rows) if row.variable in loop.outer)
        along = tuple(loop.variable for loop in around[:-1] if self._is_along(loop))
        requests = self.left.pop(0) if self.left else ()
        return tuple(Asked(r, _beginning(r, row, tile), (*along, position), rows) for r in requests)


def _unrolled(node: Node) -> Iterator[VectorNest]:
    """``node`` if it is unrolled, or what is of it where nothing is short."""
    match node:
        case VectorNest():
            yield node
        case Versions(full=full):
            yield from (nest for inner in full for nest in _unrolled(inner))
        case _:
            pass


def _beginning(request: Request, row: For, tile: tuple[str, ...]) -> Load:
    """Where the rows begin that are asked for, or go on, at the one that the variables ``tile`` choose."""
    ahead = (str(row.step),) if request.next and not request.quick else ()

    def index(old: Index) -> Index:
        return Index((*old.variables, *ahead, *tile)) if row.variable in old.variables else old

    return Load(request.place.buffer, tuple(map(index, request.place.indices)))


def strip_name(loop: For) -> str:
    """The variable of strips of ``loop``."""
    return f"{loop.variable}_strip"


def _definitions(request: Request, row: For, layout: Layout) -> list[str]:
    """Whether it is worth asking for a row, and how much further than where it is."""
    buffer = layout.buffers[request.place.buffer]
    sizes = [size_text(size) for size in buffer.dims]
    worth = [f"{' * '.join(sizes)} >= {FAR}", f"{sizes[-1]} >= {LONG}"]
    ((n, index),) = [(n, x) for n, x in enumerate(request.place.indices) if row.variable in x.variables]
    if request.quick:
        floats, below = (_times(row.step, sizes[k:]) for k in (-1, n + 1))
        return [
            f"const int {buffer.name}_asked = {' && '.join(['ASKS_IN_ORDER', *worth])};",
            f"const int64_t {buffer.name}_further = {floats} <= {BOTH} ? {below} : {DISTANCE};",
        ]
    floats = _times(row.step, sizes[-1:])
    rows = floats if row.step == 1 else f"({floats})"
    worth.append(f"{floats} <= {ROOM}")
    worth += [f"{index_text(index)} + {2 * row.step} <= {sizes[n]}"] if request.next else []
    return [
        f"const int {buffer.name}_asked = {' && '.join(worth)};",
        f"const int64_t {buffer.name}_further = {buffer.name}_asked ? {DISTANCE} / {rows} * {rows} : 0;",
    ]


def _times(count: int, sizes: Sequence[str]) -> str:
    return " * ".join(sizes if count == 1 else (str(count), *sizes))


def asked_lines(asked: Sequence[Asked], step: int, layout: Layout) -> list[str]:
    """What a loop asks for in each iteration, which gets ``step`` floats further."""
    lines: list[str] = []
    for one in asked:
        request, name = one.request, one.place.buffer
        dims = layout.buffers[name].dims
        position = " + ".join(one.along)
        start = [f"{size_text(dims[-1])} / {SHARES} * {request.first}"] if request.first else []
        if request.count < SHARES:
            position = f"({position})" if " " in position else position
            position = f"{position} * {request.count} / {SHARES}"
        *outer, _ = (index_text(index) for index in one.place.indices)
        first = flat_index([*outer, " + ".join([*start, position, f"{name}_further"])], dims)
        function = "make_room" if request.written else "fetch_soon" if request.quick else "fetch_row"
        call = [f"{function}({name}, {first}, {max(LINE, step * request.count // SHARES)});"]
        lines += [f"if ({name}_asked) {{", *indented(unrolled(one.rows, 1, call) if one.rows else call), "}"]
    return lines
