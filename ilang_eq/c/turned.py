"""Rows that become columns, through registers: blocks of as many rows as a vector has lanes.

before →  for k < 32: for j < 16: y[k][j] = x[j][k]
after  →  for k < 32 by 16: { 8 vectors along k become 8 along j, four times: block[16][16]
                              for 16 k: for j < 16 by 8: y[k][j] = block[k][j] }

Element by element it takes some instructions each; and rows that are a power of two apart lie in the same few places of
the nearest cache, from which they drive each other out before their next element is read, or written. Here lines are
read as a whole, and written as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ilang_eq.c.bounds import bound_text
from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import Full, Turned, VectorNest
from ilang_eq.c.registers import full_fact
from ilang_eq.c.vectors import Used, indented, nest_lines
from ilang_eq.lower.dependence import independent, innermost
from ilang_eq.lower.ir import Accumulate, For, Index, Load, Statement
from ilang_eq.lower.passes import calls_functions
from ilang_eq.lower.walk import code, declared_in, loads, replace_in_body, stride, substituted, updates
from ilang_eq.lower.within import moved

LANES = 8
"""Of the vectors; four, where registers have no more."""
STRIP = 16
"""Rows and columns of a block, a line of each, unless half as many leave fewer."""

TURN = """\
// Makes columns, ``width`` floats apart, of as many rows as a vector has lanes, ``step`` floats apart.
static inline void turn{n}(const float *rows, int64_t step, float *columns, int64_t width)
{{
#if LANES{n} == 8
    vec{n} x[8], y[8];
    UNROLL
    for (int r = 0; r < 8; r++)
        x[r] = V{n}(rows[r * step]);
    UNROLL
    for (int r = 0; r < 8; r += 2) {{
        y[r] = SHUFFLED{n}(x[r], x[r + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        y[r + 1] = SHUFFLED{n}(x[r], x[r + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }}
    UNROLL
    for (int r = 0; r < 8; r += 4) {{
        x[r] = SHUFFLED{n}(y[r], y[r + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        x[r + 1] = SHUFFLED{n}(y[r], y[r + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        x[r + 2] = SHUFFLED{n}(y[r + 1], y[r + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        x[r + 3] = SHUFFLED{n}(y[r + 1], y[r + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }}
    UNROLL
    for (int r = 0; r < 4; r++) {{
        V{n}(columns[r * width]) = SHUFFLED{n}(x[r], x[r + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        V{n}(columns[(r + 4) * width]) = SHUFFLED{n}(x[r], x[r + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }}
#else
    for (int r = 0; r < LANES{n}; r++)
        for (int c = 0; c < LANES{n}; c++)
            columns[c * width + r] = rows[r * step + c];
#endif
}}
"""


def turned(loop: For, facts: Collection[Full]) -> Turned | None:
    """``loop`` and the one in it, if they do nothing but make columns of rows, and lanes are known to be full."""
    found = turning(loop)
    if found is None or full_fact(found.columns) not in facts:
        return None
    full = full_fact(found.rows) in facts
    return replace(found, full=full, whole=full and (found.rows.limit or 1) % found.height == 0)


def turning(loop: For) -> Turned | None:
    """``loop`` and the one in it, if they do nothing but make columns of rows, where lanes are full."""
    match code(loop.body):
        case (For() as inner,) if innermost(inner) and _plain(loop) and _plain(inner):
            pairs = ((loop, inner), (inner, loop))
        case _:
            return None
    if any(isinstance(update, Accumulate) for update in updates(inner.body)) or calls_functions(inner.body):
        return None
    if not independent(loop) or not independent(inner):
        return None
    for rows, columns in pairs:
        places = _places(rows, columns, inner.body)
        if places and columns.limit is not None and columns.limit % LANES == 0:
            height = STRIP if rows.limit is None else side(rows.limit)
            return Turned(rows, columns, inner.body, places, height, side(columns.limit), full=False, whole=False)
    return None


def side(positions: int) -> int:
    """Of blocks, so that they leave as few ``positions`` as possible: those that are left are done one by one."""
    return min((STRIP, LANES), key=lambda each: positions % each)


def _plain(loop: For) -> bool:
    return loop.step == 1 and not loop.seldom and (loop.limit is None or loop.limit >= LANES)


def _places(rows: For, columns: For, body: Sequence[Statement]) -> tuple[Load, ...]:
    """What is read along ``rows`` and written along ``columns``; nothing if that is not all that happens."""
    private = set(declared_in(body))
    results = [update.target for update in updates(body) if update.target.buffer not in private]
    read = [place for update in updates(body) for place in loads(update.value) if place.buffer not in private]
    found = tuple(dict.fromkeys(place for place in read if stride(place, columns.variable) == "far"))
    others = [place for place in read if stride(place, columns.variable) == "uneven"]
    apart = rows.variable not in columns.outer and columns.variable not in rows.outer
    across = all(stride(place, rows.variable) == "unit" for place in found)
    along = all(stride(place, columns.variable) == "unit" for place in results)
    return found if apart and across and along and results and not others else ()


def turned_lines(node: Turned, layout: Layout, used: Used) -> list[str]:
    """The whole blocks of ``node``'s rows."""
    rows, columns, height, width = node.rows.variable, node.columns.variable, node.height, node.width
    row, lane = f"{rows}_row", f"{columns}_lane"
    names = {place: Load(f"columns_{n}", (Index((row,)), Index((lane,)))) for n, place in enumerate(node.places)}

    def inside(body: Sequence[Statement]) -> tuple[Statement, ...]:
        return replace_in_body(replace_in_body(body, rows, (rows, row)), columns, (columns, lane))

    lanes = For(lane, node.columns.extent, 1, width, (*node.columns.outer, columns), ())
    body = inside([moved(statement, lambda place: names.get(place, place)) for statement in node.body])
    lines = nest_lines(VectorNest((lanes,), LANES, body), layout, used)
    used.helpers.add(("turn", LANES))
    blocks: list[str] = []
    for place, name in names.items():
        first = layout.element(substituted(substituted(place, rows, (rows, row)), columns, (columns, lane)))
        blocks += [
            f"float {name.buffer}[{height}][{width}] __attribute__((aligned(64)));",
            f"for (int64_t {lane} = 0; {lane} < {width}; {lane} += LANES{LANES})",
            f"    for (int64_t {row} = 0; {row} < {height}; {row} += LANES{LANES})",
            f"        turn{LANES}(&{first}, {layout.step(place, columns)}, &{layout.element(name)}, {width});",
        ]
    bound = bound_text(node.rows, node.full)
    whole = f"{rows} < {bound}" if node.whole else f"{rows} + {height} <= {bound}"
    return [
        f"for (int64_t {rows} = 0; {whole}; {rows} += {height}) {{",
        f"    for (int64_t {columns} = 0; {columns} < {node.columns.limit}; {columns} += {width}) {{",
        *indented(indented(blocks)),
        f"        for (int64_t {row} = 0; {row} < {height}; {row}++) {{",
        *indented(indented(indented(lines))),
        "        }",
        "    }",
        "}",
    ]
