"""Where regions begin and end.

A value stays inside a region if all that reads it is in there too: it has one reader, or readers whose paths meet
again after elementwise work and reductions. Every other value is stored: it is returned, PyTorch reads it, its readers
lie far apart, or it is small next to what the products around it move (``_cheap_to_store``). So a region has one
result, everything in it leads there, and no path leaves and comes back. One too large for the search is cut where the
smallest operand of a product passes, or else the smallest value. All of this looks at a node's surroundings only, so
equal layers fall into equal regions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilang_eq.tracing.nodes import Node, NodeList
from ilang_eq.tracing.region import Region, Unbuildable, build_region
from ilang_eq.tracing.support import ROOT, Support, support
from ilang_eq.tracing.table import CONTRACTIONS, POINTWISE

CAPACITY = 10
"""How many expressions with decisions of their own a region may have: what the search takes in one piece
(``extract/segments.py``), which is not loaded before a kernel is asked for."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A program, its regions in order, and why each node outside of them is left to PyTorch."""

    support: Support
    regions: tuple[Region, ...]


def partition(program: NodeList, capacity: int = CAPACITY) -> Partition:
    """Cut a program into regions.

    A node that 𝚒 expresses by itself but not together with its neighbours becomes a region of its own.
    """
    found = support(program, {})
    apart: set[str] = set()
    while True:
        try:
            return Partition(found, tuple(_regions(found, apart, capacity)))
        except Unbuildable as error:
            name = found.origin(error.node)
            if name in apart or name not in found.computed:
                found = support(program, {**found.left, error.node: error.reason})
            apart.add(name)


def _regions(found: Support, apart: set[str], capacity: int) -> Iterator[Region]:
    inside = _inside(found, apart, capacity)
    parts = [part for chunk in _chunks(found, inside) for part in _cut(found, chunk, capacity)]
    results = {part[-1]: _result(found, part[-1]) for part in parts}
    position = {node.name: n for n, node in enumerate(found.program.nodes)}
    stored = frozenset(results.values())
    for part in sorted(parts, key=lambda part: position[part[-1]]):
        result = results[part[-1]]
        yield build_region(found.values, found.views, part, stored - {result}, result)


def _inside(found: Support, apart: set[str], capacity: int) -> frozenset[str]:
    """The nodes whose readers are all in their region."""
    meeting = _meeting(found, apart, frozenset(), capacity)
    return _meeting(found, apart, _cheap_to_store(found, meeting), capacity)


def _meeting(found: Support, apart: set[str], stored: frozenset[str], capacity: int) -> frozenset[str]:
    """The nodes, less those ``stored``, whose readers' paths come together before they reach a product, or the end."""
    position = {name: n for n, name in enumerate(found.computed)}

    def meet(name: str) -> bool:
        open_paths = set(found.readers[name])
        decisions = 0
        while len(open_paths) > 1:
            if ROOT in open_paths or open_paths & apart:
                return False
            first = min(open_paths, key=position.__getitem__)
            decisions += found.decisions(first)
            if found.values.nodes[first].op in CONTRACTIONS or decisions > capacity or first in stored:
                return False
            open_paths = open_paths - {first} | set(found.readers[first])
        return not open_paths & (apart | {ROOT})

    return frozenset(name for name in found.computed if name not in apart | stored and meet(name))


def _cheap_to_store(found: Support, inside: frozenset[str]) -> frozenset[str]:
    """The nodes that cost little to store and read again, next to what the products before and after them move.

    Elementwise work stays with what reads it. What products with weights have to do with stays with a product that
    reads it if it is no smaller than what else that product reads and makes, and with a reduction if it is no smaller
    than what those products read that it is made of. Where elementwise work joins such products, all but the last are
    stored if they are smaller than what they read. So layers come apart. Products without weights, such as scores and
    what is summed by them, stay together.
    """
    cheap: set[str] = set()
    moved: dict[str, int | None] = {}
    products: dict[str, frozenset[str]] = {}
    position = {name: n for n, name in enumerate(found.computed)}
    for name in found.computed:
        node = found.values.nodes[name]
        operands = [found.origin(read) for read in node.reads]
        within = [o for o in operands if o in inside and o not in cheap]
        if node.op in POINTWISE and len(within) > 1 and not frozenset.intersection(*(products[o] for o in within)):
            first, *others = sorted(within, key=position.__getitem__, reverse=True)
            cheap.update(o for o in others if products[o] and products[first] and found.elements(o) < (moved[o] or 0))
            within = [o for o in within if o not in cheap]
        products[name] = frozenset({name} if node.op in CONTRACTIONS else ()).union(*(products[o] for o in within))
        before = [moved[o] for o in within]
        own = sum(map(found.elements, node.reads)) if _is_layer(found, node) else 0
        known = [count for count in before if count is not None]
        moved[name] = None if node.op in POINTWISE and not known else own + sum(known)
        if name in inside and not all(_stays(found, name, reader, moved[name]) for reader in found.readers[name]):
            cheap.add(name)
    return frozenset(cheap)


def _stays(found: Support, name: str, reader: str, moved: int | None) -> bool:
    """Whether a value stays with ``reader``.

    Args:
        moved: what its products with weights read, None for elementwise work.
    """
    node = found.values.nodes[reader]
    if moved is None or node.op in POINTWISE:
        return True
    size = found.elements(name)
    if node.op in CONTRACTIONS and (moved or _is_layer(found, node)):
        others = (found.elements(read) for read in node.reads if found.origin(read) != name)
        return size >= sum(others) + found.elements(reader)
    return size >= moved


def _is_layer(found: Support, node: Node) -> bool:
    """Whether it is a product with weights."""
    return node.op in CONTRACTIONS and any(read in found.weights for read in node.reads)


def _chunks(found: Support, inside: frozenset[str]) -> list[list[str]]:
    """Nodes that belong together, in the order of the program."""
    parents = {name: name for name in found.computed}

    def root(name: str) -> str:
        while parents[name] != name:
            name = parents[name]
        return name

    for name in inside:
        for reader in found.readers[name]:
            parents[root(name)] = root(reader)
    chunks: dict[str, list[str]] = {}
    for name in found.computed:
        chunks.setdefault(root(name), []).append(name)
    return list(chunks.values())


def _cut(found: Support, chunk: Sequence[str], capacity: int) -> list[list[str]]:
    """A chunk in parts that are not too heavy, as far as it can be cut; the result of a part is its last node."""
    options = [] if sum(map(found.decisions, chunk)) <= capacity else list(_options(found, chunk, capacity))
    if not options:
        return [list(chunk)]
    _, name = min(options)
    cone = _cone(found, chunk, name)
    rest = [other for other in chunk if other not in cone]
    return [*_cut(found, cone, capacity), *_cut(found, rest, capacity)]


def _options(found: Support, chunk: Sequence[str], capacity: int) -> Iterator[tuple[tuple[bool, bool, int, int], str]]:
    """Where a chunk can be cut: before a product rather than elsewhere, then where little passes, then late."""
    for name in chunk[:-1]:
        cone = set(_cone(found, chunk, name))
        if any(set(found.readers[inner]) - cone for inner in cone - {name}):
            continue
        feeds = any(found.values.nodes[reader].op in CONTRACTIONS for reader in found.readers[name])
        decisions = sum(map(found.decisions, cone))
        yield (decisions > capacity, not feeds, found.elements(name), -decisions), name


def _cone(found: Support, chunk: Sequence[str], name: str) -> list[str]:
    """The nodes of a chunk that ``name`` needs, itself last."""
    needed = {name}
    for other in reversed(chunk):
        if needed.intersection(found.readers[other]):
            needed.add(other)
    return [other for other in chunk if other in needed]


def _result(found: Support, name: str) -> str:
    """What to store for a node: of the views that lead to its readers, as long as there is one, that of least rank.

    Heads that are merged after attention are stored merged: what reads them then has one axis to sum over, not two.
    """
    best, rank = name, _rank(found, name)
    while True:
        reads = found.direct.get(name, ())
        if len(reads) != 1 or reads[0] not in found.views:
            return best
        name = reads[0]
        if _rank(found, name) < rank:
            best, rank = name, _rank(found, name)


def _rank(found: Support, name: str) -> float:
    """The dimensions that matter; a value in a tuple is stored as what is taken out."""
    node = found.values.nodes[name]
    return math.inf if node.type.dtype == "tuple" else sum(not extent.is_one for extent in node.type.extents)
