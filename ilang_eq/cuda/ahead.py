"""Copies that run ahead: while a block works on one tile, the next one is on its way from device memory.

    before   for k: { barrier; tile = x[k]; barrier; … tile … }
    after    tile[0] = x[0]  (under way)
             for k: { arrive; barrier; tile[other] = x[k + step]  (under way);  … tile[this] … }

``cp.async`` moves the elements past the registers. A tile has two places in shared memory, or more where that leaves
room for as many blocks as registers do; all of them but one are on their way. One barrier an iteration is enough: who
begins to fill a place has passed the barrier that its readers, of the iteration before, have reached. With more than
two, copies are waited for by their order: what is begun later, by a loop inside, only makes that stricter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ilang_eq.cuda.accesses import Scope, leaves, touched
from ilang_eq.cuda.nodes import Copy, Launch, Node, Sweep
from ilang_eq.cuda.storage import MOST_SHARED_BYTES, Home, blocks_of, shared_bytes
from ilang_eq.lower.ir import Assign, Declare, Load
from ilang_eq.lower.walk import mentions, replace_in_body

FEWEST_STAGES, MOST_STAGES = 2, 4
"""Places of a tile that is copied ahead."""


def with_copies_ahead(launch: Launch, homes: Mapping[str, Home]) -> tuple[Launch, dict[str, Home]]:
    """``launch`` with the copies that may run ahead marked, as far as shared memory allows it, and the homes."""
    places = [found for leaf, _ in leaves(launch.body, Scope()) for found in touched(leaf)]
    written = {place.buffer for place, is_written in places if is_written}
    found = dict(homes)

    def fits(copy: Copy) -> bool:
        home = found[copy.target.buffer]
        more = {**found, copy.target.buffer: replace(home, stages=FEWEST_STAGES)}
        return home.where == "shared" and not home.slots and shared_bytes(launch, more) <= MOST_SHARED_BYTES

    def marked(nodes: Sequence[Node], around: Sweep | None) -> tuple[Node, ...]:
        declared = {node.buffer for node in nodes if isinstance(node, Declare)}
        result: list[Node] = []
        for node in nodes:
            match node:
                case Sweep():
                    result.append(replace(node, body=marked(node.body, node)))
                case Copy() if around is not None and _may(node, around, declared, written) and fits(node):
                    name = node.target.buffer
                    found[name] = replace(found[name], stages=FEWEST_STAGES)
                    result.append(replace(node, ahead=True))
                case _:
                    result.append(node)
        return tuple(result)

    marked_launch = replace(launch, body=marked(launch.body, None))
    return marked_launch, _deeper(marked_launch, found)


def _deeper(launch: Launch, homes: dict[str, Home]) -> dict[str, Home]:
    """``homes`` with more places for every tile that is copied ahead, as long as as many blocks fit."""
    for stages in range(MOST_STAGES, FEWEST_STAGES, -1):
        deep = {name: replace(home, stages=stages) if home.stages > 1 else home for name, home in homes.items()}
        if deep != homes and shared_bytes(launch, deep) <= MOST_SHARED_BYTES // blocks_of(launch, deep):
            return deep
    return homes


def _may(copy: Copy, around: Sweep, declared: set[str], written: set[str]) -> bool:
    """Whether the copy for the next iteration of ``around`` may run while this one does."""
    target, value, v = copy.target.buffer, copy.update.value, around.source.variable
    if (
        around.dim is not None
        or around.source.limit is not None
        or not isinstance(value, Load)
        or target not in declared
        or value.buffer in written
    ):
        return False
    return mentions(value, v) and not mentions(copy.target, v)


def next_tile(copy: Copy, variable: str, name: str) -> Copy:
    """``copy`` for the position ``name`` of the loop over ``variable``."""

    def renamed(variables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name if v == variable else v for v in variables)

    (update,) = replace_in_body((copy.update,), variable, (name,))
    assert isinstance(update, Assign), "a copy stays one"
    return replace(copy, loops=tuple(replace(loop, outer=renamed(loop.outer)) for loop in copy.loops), update=update)
