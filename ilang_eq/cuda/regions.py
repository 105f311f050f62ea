"""Cuts a kernel into regions, each a launch of its own: loops over the grid, and what a block does for each task.

Loops come in their order; nothing is moved. What lives across regions moves to device memory.

    before   for i par: for j par: out[i][j] = …                     no loop left for the threads
    after    grid i, j_tile step 256;  block: for j < 256: …         the last loop is cut up for them
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ilang_eq.cuda.places import summed
from ilang_eq.lower.dependence import independent
from ilang_eq.lower.ir import Comment, Declare, For, Kernel, Program, Statement
from ilang_eq.lower.walk import buffers_of, code, loads, stride, updates, walk

LINE = 1024
"""Positions a block takes of a loop with nothing inside: several a thread, to have enough in flight."""
LINE_AROUND = 256
"""Positions a block takes of a loop with loops inside, where it is the only one that is cut up."""
TILE_X, TILE_Y = 32, 8
"""Positions a block takes of two loops that are cut up."""


@dataclass(frozen=True, slots=True)
class Region:
    """Part of a kernel. Blocks take the iterations of ``grid`` and run ``body`` for each."""

    name: str
    grid: tuple[For, ...]
    body: tuple[Statement, ...]


def regions(kernel: Kernel) -> tuple[Region, ...]:
    """The regions of ``kernel``, in the order they run."""
    groups: list[tuple[tuple[For, ...], tuple[Statement, ...]]] = []
    pending: list[Statement] = []
    for statement in kernel.body:
        loops = _grid(statement) if isinstance(statement, For) else ()
        if not loops:
            pending.append(statement)
            continue
        said = tuple(s for s in pending if isinstance(s, Comment))
        if code(pending):
            groups.append(((), tuple(pending)))
            said = ()
        pending = []
        grid, body = _with_threads(loops, loops[-1].body)
        groups.append((grid, (*said, *body)))
    if code(pending):
        groups.append(((), tuple(pending)))
    groups = [group for group in groups if any(True for _ in updates(group[1]))]
    names = [kernel.name] if len(groups) == 1 else [f"{kernel.name}_{n}" for n in range(len(groups))]
    return tuple(Region(name, grid, body) for name, (grid, body) in zip(names, groups, strict=True))


def outliving(program: Program) -> frozenset[str]:
    """The locals that several regions share, or several blocks of one: they live in device memory."""
    found: set[str] = set()
    for kernel in program.kernels:
        declared = {s.buffer for s in kernel.body if isinstance(s, Declare)}
        cut = regions(kernel)
        for name in declared:
            users = [region for region in cut if name in buffers_of(region.body)]
            if len(users) > 1 or any(region.grid for region in users):
                found.add(name)
    return frozenset(found)


def _grid(outermost: For) -> tuple[For, ...]:
    """The loops, perfectly nested from ``outermost`` inwards, whose iterations blocks may share."""
    if not (outermost.parallel or independent(outermost)):
        return ()
    loops = [outermost]
    while len(inside := code(loops[-1].body)) == 1:
        (only,) = inside
        if not isinstance(only, For) or {outer.variable for outer in loops} & set(only.outer) or not independent(only):
            break
        loops.append(only)
    return tuple(loops)


def _with_threads(grid: tuple[For, ...], body: tuple[Statement, ...]) -> tuple[tuple[For, ...], tuple[Statement, ...]]:
    """Leave part of the last loops to the threads, where the schedule leaves them none or neighbours in memory."""
    last = grid[-1]
    inside = any(isinstance(s, For) for s in body)
    if last.step != 1 or (inside and not _neighbours(last)):
        return grid, body
    if not inside or len(grid) < 2 or grid[-2].step != 1:
        return _cut(grid, body, len(grid) - 1, LINE_AROUND if inside else LINE)
    grid, body = _cut(grid, body, len(grid) - 1, TILE_X)
    return _cut(grid, body, len(grid) - 2 if len(grid) > 1 and grid[-1].step != 1 else len(grid) - 1, TILE_Y)


def _neighbours(loop: For) -> bool:
    """Whether neighbouring iterations of ``loop`` read neighbours in memory, or write them where none inside do."""
    read = [load for update in updates(loop.body) for load in loads(update.value)]
    if any(stride(load, loop.variable) == "unit" for load in read):
        return True
    inside = [inner.variable for inner in walk(loop.body) if isinstance(inner, For)]
    if any(stride(load, variable) == "unit" for load in read for variable in inside):
        return False
    return any(stride(update.target, loop.variable) == "unit" for update in updates(loop.body))


def _cut(
    grid: tuple[For, ...], body: tuple[Statement, ...], position: int, tile: int
) -> tuple[tuple[For, ...], tuple[Statement, ...]]:
    """The loop at ``position`` over tiles, and a loop over the elements of one around ``body``; or all of it inside."""
    loop = grid[position]
    if loop.limit is not None:
        return grid[:position] + grid[position + 1 :], (replace(loop, body=body, parallel=False),)
    name = loop.variable
    outer = f"{name}_tile"
    tiles = replace(loop, variable=outer, step=tile)
    inside = summed(body, name, (outer, name))
    element = For(name, loop.extent, 1, tile, (*loop.outer, outer), inside)
    return (*grid[:position], tiles, *grid[position + 1 :]), (element,)
