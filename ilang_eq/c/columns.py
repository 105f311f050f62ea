"""Register tiles that lie across their target: its rows are their lanes, and go there four columns at a time.

before →  for j' < 6: for i' < 16 by 8: the lanes of tile[j'] to out[i'][j'], one by one
after  →  for i' < 16 by 8: { four rows of lanes become lanes of four columns, for out[i'][0 … 3]
                              two rows of lanes                            for out[i'][4, 5] }

One by one, each line of the target is written to as often as there are columns, and after all others each time; where
these are a power of two apart, they drive each other out of the nearest cache meanwhile. The columns of xᵀ·yᵀ of 1024³
took 2.2 of its 25.5 ms on Zen 3, and with four at a time 23.3 in all.
"""

from __future__ import annotations

from ilang_eq.c.layout import Layout
from ilang_eq.c.nodes import VectorNest
from ilang_eq.c.vectors import Used, indented, unrolled
from ilang_eq.lower.ir import Assign, For, Load
from ilang_eq.lower.walk import stride, substituted

_TOGETHER = ((4, "scatter_four"), (2, "scatter_two"), (1, "scatter"))
"""How many rows of lanes go at a time, and the name of what has them go."""

COLUMNS = {
    "scatter_two": """\
// Lanes of two rows to places ``step`` floats apart in memory, side by side.
static inline void scatter_two{n}(float *p, vec{n} a, vec{n} b, int64_t step)
{{
    UNROLL
    for (int l = 0; l < LANES{n}; l += 4) {{
        const vec4 u = PART4(a, l), v = PART4(b, l);
        const vec4 x = SHUFFLED4(u, v, 0, 4, 1, 5), y = SHUFFLED4(u, v, 2, 6, 3, 7);
        float *q = p + l * step;
        q[0] = x[0], q[1] = x[1], q[step] = x[2], q[step + 1] = x[3];
        q[2 * step] = y[0], q[2 * step + 1] = y[1], q[3 * step] = y[2], q[3 * step + 1] = y[3];
    }}
}}
""",
    "scatter_four": """\
// Lanes of four rows to places ``step`` floats apart in memory, side by side.
static inline void scatter_four{n}(float *p, vec{n} a, vec{n} b, vec{n} c, vec{n} d, int64_t step)
{{
    UNROLL
    for (int l = 0; l < LANES{n}; l += 4) {{
        const vec4 u = PART4(a, l), v = PART4(b, l), s = PART4(c, l), t = PART4(d, l);
        const vec4 x = SHUFFLED4(u, v, 0, 4, 1, 5), y = SHUFFLED4(u, v, 2, 6, 3, 7);
        const vec4 z = SHUFFLED4(s, t, 0, 4, 1, 5), w = SHUFFLED4(s, t, 2, 6, 3, 7);
        V4(p[l * step]) = SHUFFLED4(x, z, 0, 1, 4, 5);
        V4(p[(l + 1) * step]) = SHUFFLED4(x, z, 2, 3, 6, 7);
        V4(p[(l + 2) * step]) = SHUFFLED4(y, w, 0, 1, 4, 5);
        V4(p[(l + 3) * step]) = SHUFFLED4(y, w, 2, 3, 6, 7);
    }}
}}
""",
}


def column_lines(nest: VectorNest, layout: Layout, used: Used) -> list[str] | None:
    """``nest`` if it does nothing but store full tiles whose lanes go to rows of their target, and rows to columns."""
    match nest.body:
        case (Assign(Load() as target, Load() as tile),) if nest.lanes > 1 and not nest.partial:
            pass
        case _:
            return None
    *outer, lane = nest.loops
    row = next((loop for loop in outer if stride(target, loop.variable) == "unit"), None)
    if row is None or stride(target, lane.variable) != "far" or stride(tile, lane.variable) != "unit":
        return None
    used.widths |= {4, nest.lanes}
    loops = [loop for loop in nest.loops if loop is not row]
    return unrolled(loops, nest.lanes, _stored(nest, row, target, tile, layout, used))


def _stored(nest: VectorNest, row: For, target: Load, tile: Load, layout: Layout, used: Used) -> list[str]:
    """Every row of ``tile``, one vector of each."""
    v, limit, lanes = row.variable, row.limit or 0, nest.lanes
    step = layout.step(target, nest.loops[-1].variable)
    lines: list[str] = []
    done = 0
    for count, name in _TOGETHER:
        end = limit - (limit - done) % count
        if end == done:
            continue
        used.helpers.add((name, lanes))
        rows = [tile, *(substituted(tile, v, (v, str(n))) for n in range(1, count))]
        vectors = ", ".join(f"V{lanes}({layout.element(each)})" for each in rows)
        head = f"for (int64_t {v} = {done}; {v} < {end}; {v} += {count})"
        call = f"{name}{lanes}(&{layout.element(target)}, {vectors}, {step});"
        lines += ["UNROLL", head, *indented([call])]
        done = end
    return lines
