"""C text of a last pass that is put off (``lower/late.py``).

Between two rows, variables that end in ``_late`` have what the pass needs; that of the row is -1 if there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Loop, VectorNest
from ilang_eq.c.quotients import inverted
from ilang_eq.c.stages import staged_nest_lines
from ilang_eq.c.streaming import burst
from ilang_eq.c.vectors import Used, indented, nest_lines
from ilang_eq.lower.addresses import extent_name, flat_index, index_text, size_text
from ilang_eq.lower.ir import Accumulate, Assign, For, Index, Load
from ilang_eq.lower.late import MOST, Late, turn_name
from ilang_eq.lower.scalar import Printer
from ilang_eq.lower.streamed import STREAMED_FLOATS
from ilang_eq.lower.walk import loads, mentions, stride, substituted, updates
from ilang_eq.lower.widths import LINE
from ilang_eq.lower.within import moved

LAG = 256
"""Floats of a row by which its steps are ahead. NumPy's large arrays begin 16 bytes into a page, and rows are often
whole pages: what was stored last lies as far into a page as what is loaded next, and processors take the one for the
other. On Zen 4 the softmax of 4096² takes 5.5 ms without, 5.2 with 64, and 4.0 to 4.2 with 128 to 512."""

FAR_AHEAD = 2048
"""Floats by which a lone pass asks ahead for what it reads from memory, of rows as long: with stores beside it, the
prefetchers fall behind. RMS norms of rows of 4096 to 16384 floats take 0.80 to 0.87 of the time on Zen 4, of 2048 0.90,
but shorter ones 1.09 to 1.16."""


@dataclass(frozen=True, slots=True)
class LateText:
    """The last pass of the row before, in a task function.

    Args:
        late: what is put off.
        layout: where buffers live.
        used: collects what the text relies on.
        writer: the pass as it is for the row before.
        fast: the same with a product with ``inverse`` for a quotient by ``divisor``.
        divisor: what a row is divided by, if anything.
        lagging: whether it goes beside another pass.
    """

    late: Late
    layout: Layout
    used: Used
    writer: For
    fast: For
    divisor: Load | None
    lagging: bool

    @staticmethod
    def of(late: Late, layout: Layout, used: Used, lagging: bool) -> LateText:
        """The text for buffers that ``layout`` places."""
        names = {loop.variable for loop in late.loops} | {turn_name(late.row)}

        def index(old: Index) -> Index:
            return replace(old, variables=tuple(_before(v) if v in names else v for v in old.variables))

        def place(load: Load) -> Load:
            name = _before(load.buffer) if load.buffer in late.scalars else load.buffer
            return Load(name, tuple(map(index, load.indices)))

        writer = moved(late.writer, place)
        assert isinstance(writer, For), "as it was"
        without = inverted(writer)
        if without is None:
            return LateText(late, layout, used, writer, writer, None, lagging)
        return LateText(late, layout, used, writer, replace(writer, body=without.body), without.divisor, lagging)

    def declarations(self) -> list[str]:
        """Before the loops over rows: nothing is put off."""
        *outer, row = (loop.variable for loop in self.late.loops)
        lines = [f"int64_t {_before(variable)} = 0;" for variable in outer]
        lines += [f"int64_t {_before(row)} = -1;"]
        lines += [f"int {turn_name(row)} = 0;"] if self.late.rows else []
        return [*lines, *(f"float {_before(name)} = 0.0f;" for name in self.late.scalars)]

    def begin(self) -> list[str]:
        """Before other passes over a row: up to the first whole line; or all of it, if a reciprocal is none."""
        row, end = self.late.row, extent_name(self.writer.extent)
        lines = [f"int64_t {self._next} = {end};"]
        lines += [f"int64_t {self._lag} = 0;"] if self.lagging else []
        lines += [f"const int {_before(turn_name(row))} = 1 - {turn_name(row)};"] if self.late.rows else []
        up_to_a_line = [
            f"{self._next} = until_aligned(&{self.layout.element(self._place)});",
            *self._plainly(self.fast, "0", self._next),
        ]
        if self.divisor is None:
            return [*lines, f"if ({_before(row)} >= 0) {{", *indented(up_to_a_line), "}"]
        either = [
            f"inverse = 1.0f / {self.layout.element(self.divisor)};",
            "if (isnormal(inverse)) {",
            *indented(up_to_a_line),
            "} else {",
            *indented(self._plainly(self.writer, "0", end)),
            "}",
        ]
        return [*lines, "float inverse = 0.0f;", f"if ({_before(row)} >= 0) {{", *indented(either), "}"]

    def beside(self, host: Loop) -> list[str]:
        """Beside a step of ``host``, which is ahead: as many floats."""
        asking = [f"fetch_row({place}, {host.source.step});" for place in self._further(host)]
        lines = [f"if ({extent_name(self.writer.extent)} >= {FAR_AHEAD}) {{", *indented(asking), "}"] if asking else []
        more, burst_of_it = self._burst(host.source.step)
        waiting = [f"if ({self._lag} < {LAG}) {{", f"    {self._lag} += {host.source.step};", f"}} else if ({more}) {{"]
        return [*lines, *waiting, *indented(burst_of_it), "}"]

    def _further(self, host: Loop) -> list[str]:
        """What ``host`` reads from memory, a few pages further, if no pass before it asks for that."""
        if len(self.late.passes) > 1:
            return []
        found: dict[str, str] = {}
        for nest in (node for node in host.body if isinstance(node, VectorNest)):
            lane = nest.loops[-1].variable
            for load in (load for update in updates(nest.body) for load in loads(update.value)):
                moves = mentions(load, self.late.row) and stride(load, lane) == "unit"
                if moves and self.layout.storage[load.buffer] == "argument":
                    dims = self.layout.buffers[load.buffer].dims
                    start = substituted(load, nest.loops[-1].variable, (str(FAR_AHEAD),))
                    found[load.buffer] = flat_index([index_text(index) for index in start.indices], dims)
        return [f"{name}, {first}" for name, first in found.items()]

    def _burst(self, floats: int) -> tuple[str, list[str]]:
        """So many ``floats``, past the caches; and whether there are as many left."""
        nest = burst(self.fast, self._next, frozenset({self.late.target.buffer}), floats)
        staged = staged_nest_lines(nest, self.layout, self.used, alike=True)
        lines = staged or nest_lines(nest, self.layout, self.used, alike=True)
        more = f"{self._next} + {floats} <= {extent_name(self.writer.extent)}"
        return more, [*lines, f"{self._next} += {floats};"]

    def end(self) -> list[str]:
        """After the other passes: the rest of the row before, and then this one is put off.

        It asks for the line that two rows share: stores wait for each other.
        """
        row, extent = self.late.row, extent_name(self.writer.extent)
        end = self.layout.element(substituted(self.late.target, self.writer.variable, (extent,)))
        lines = [f"if (until_aligned(&{end}) > 0)", f"    make_room(&{end}, 0, {LINE});"]
        lines += [f"{_before(loop.variable)} = {loop.variable};" for loop in self.late.loops]
        lines += [f"{_before(name)} = {name};" for name in self.late.scalars]
        lines += [f"{turn_name(row)} = {_before(turn_name(row))};"] if self.late.rows else []
        return [*self._rest(), *lines]

    def last(self) -> list[str]:
        """After the loops over rows: the last one."""
        return ["{", *indented([*replace(self, lagging=False).begin(), *self._rest()]), "}"]

    @property
    def _next(self) -> str:
        """The variable that says how far the pass has come."""
        return _before(self.writer.variable)

    @property
    def _lag(self) -> str:
        """The variable that says how far the other pass is ahead, until that is enough."""
        return f"{self.writer.variable}_lag"

    @property
    def _place(self) -> Load:
        """Where it goes on."""
        (target,) = (update.target for update in updates(self.writer.body) if update.target.indices)
        return substituted(target, self.writer.variable, ("0",))

    def _rest(self) -> list[str]:
        """What no step of another pass has gone beside: whole lines, and less than one."""
        more, line = self._burst(LINE)
        lines = [f"while ({more}) {{", *indented(line), "}"]
        return [*lines, *self._plainly(self.fast, self._next, extent_name(self.writer.extent))]

    def _plainly(self, loop: For, first: str, last: str) -> list[str]:
        """``loop`` from ``first`` to ``last``, for the compiler to vectorise."""
        v = loop.variable
        printer = Printer(self.layout.element, self.used.functions)
        body: list[str] = []
        for statement in loop.body:
            match statement:
                case Assign(target, value):
                    kind = "" if target.indices else "float "
                    body.append(f"{kind}{self.layout.element(target)} = {printer.text(value)};")
                case _:
                    assert not isinstance(statement, For | Accumulate), "single_place"
        head = f"for (int64_t {v} = {first}; {v} < {last}; {v}++) {{"
        return ["#pragma omp simd", head, *indented(body), "}"]


def worth_text(late: Late) -> str:
    """Whether it is worth it."""
    floats, row = " * ".join(map(size_text, late.sizes)), size_text(late.sizes[-1])
    return f"STREAMS && {floats} >= {STREAMED_FLOATS} && {row} >= {late.least} && {row} <= {MOST}"


def _before(name: str) -> str:
    """What ``name`` is in the row before."""
    return f"{name}_late"
