"""How far loops are unrolled: the printer says so to the compiler, and the cost model counts with it."""

from __future__ import annotations

from collections.abc import Mapping

from ilang_eq.cuda.nodes import Block, Sweep
from ilang_eq.cuda.storage import Home
from ilang_eq.cuda.tiles import IN_FLIGHT
from ilang_eq.cuda.walks import leaves_of, loops_of, places_of, statements

UNROLLED, UNROLLED_READING = 2048, 128
"""Statements that a loop which every thread runs in full is unrolled to, as far as that needs no more trips: fewer
where device memory is read, since what is under way takes registers. With half of them products take 1.03 of the time
on an H200, attention 1.00 and 1.01; twice as many are no better."""


def trips_of(node: Sweep, block: Block) -> int | None:
    """How often a thread runs the body of a loop of constant length; None if it goes to an extent's end."""
    loop = node.source
    return None if loop.limit is None else -(-loop.limit // (loop.step * node.width * _threads(node, block)))


def unrolled(node: Sweep, homes: Mapping[str, Home], block: Block) -> int:
    """How many trips of a loop stand one after another, where its tile is full: 1 if it is not unrolled."""
    trips = trips_of(node, block)
    if trips is None or (node.source.step > 1 and node.dim is None):
        return 1
    if indexes_registers(node, homes):
        return trips
    if any(loop.limit is None for loop in loops_of(node.body)):
        return 1
    if node.dim is not None:
        return min(trips, IN_FLIGHT)
    read = {homes[place.buffer].where for leaf in leaves_of(node.body) for place in places_of(leaf)[1:]}
    most = UNROLLED if not read & {"memory", "scratch"} else UNROLLED_READING
    return min(trips, max(1, most // max(1, statements(node.body, lambda sweep: _threads(sweep, block)))))


def indexes_registers(node: Sweep, homes: Mapping[str, Home]) -> bool:
    """Whether the positions of a loop pick registers, which only constants can."""
    return any(
        node.source.variable in index.variables and dim == node.dim
        for leaf in leaves_of(node.body)
        for place in places_of(leaf)
        if homes[place.buffer].where == "registers"
        for index, dim in zip(place.indices, homes[place.buffer].owned, strict=True)
    )


def _threads(node: Sweep, block: Block) -> int:
    return 1 if node.dim is None else block.along(node.dim)
