"""Walks over bound nodes: leaves, what waits, how much there is, and which parts whole tiles make full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ilang_eq.cuda.nodes import Barrier, Combine, Contract, Copy, Leaf, Node, Part, Sweep, part_of
from ilang_eq.lower.ir import Accumulate, Assign, Comment, Declare, For, Load
from ilang_eq.lower.walk import loads


def leaves_of(nodes: Sequence[Node]) -> list[Leaf]:
    """Every leaf."""
    found: list[Leaf] = []
    for node in nodes:
        match node:
            case Sweep():
                found += leaves_of(node.body)
            case Assign() | Accumulate() | Combine() | Copy() | Contract():
                found.append(node)
            case _:
                pass
    return found


def contracts_of(nodes: Sequence[Node]) -> list[Contract]:
    """What tensor cores do."""
    return [leaf for leaf in leaves_of(nodes) if isinstance(leaf, Contract)]


def places_of(leaf: Leaf) -> tuple[Load, ...]:
    """What a leaf writes, then what it reads."""
    match leaf:
        case Combine(target, _, share, _):
            return (target, share)
        case Copy(_, update):
            return (update.target, *loads(update.value))
        case Contract(target, left, right):
            return (target, left, right)
        case Assign(target, value) | Accumulate(target, _, value):
            return (target, *loads(value))


def meets(nodes: Sequence[Node]) -> bool:
    """Whether threads wait for each other somewhere in ``nodes``."""
    return any(
        isinstance(n, Barrier | Combine | Contract) or (isinstance(n, Sweep) and (n.ahead or meets(n.body)))
        for n in nodes
    )


def only_sweep(nodes: Sequence[Node]) -> Sweep | None:
    """The loop that is all there is in ``nodes``."""
    inside = [node for node in nodes if not isinstance(node, Comment)]
    return inside[0] if len(inside) == 1 and isinstance(inside[0], Sweep) else None


def statements(nodes: Sequence[Node], threads: Callable[[Sweep], int]) -> int:
    """The statements of ``nodes``, constant loops unrolled, where so many ``threads`` share a loop."""
    total = 0
    for node in nodes:
        match node:
            case Sweep(source, _, body):
                trips = 1 if source.limit is None else -(-source.limit // (source.step * threads(node)))
                total += trips * statements(body, threads)
            case Assign() | Accumulate() | Combine() | Copy() | Contract():
                total += 1
            case _:
                pass
    return total


def parts_of_tiles(loop: For, body: Sequence[Node]) -> frozenset[Part]:
    """The parts inside that have all their elements in every whole tile of ``loop``."""
    if loop.step == 1:
        return frozenset()
    found: set[Part] = set()
    for inner in loops_of(body):
        part = part_of(inner)
        if part is not None and part.limit == loop.step and set(part.outer) == {*loop.outer, loop.variable}:
            found.add(part)
    return frozenset(found)


def declared_in(nodes: Sequence[Node]) -> frozenset[str]:
    """The locals that are declared somewhere in ``nodes``."""
    found = frozenset(node.buffer for node in nodes if isinstance(node, Declare))
    return found.union(*(declared_in(node.body) for node in nodes if isinstance(node, Sweep)))


def with_leaves(nodes: Sequence[Node], changed: Callable[[Leaf], tuple[Leaf, ...]]) -> tuple[Node, ...]:
    """``nodes`` with other leaves in the place of each."""
    result: list[Node] = []
    for node in nodes:
        match node:
            case Sweep():
                result.append(replace(node, body=with_leaves(node.body, changed)))
            case Assign() | Accumulate() | Combine() | Copy() | Contract():
                result += changed(node)
            case _:
                result.append(node)
    return tuple(result)


def nested(around: Sequence[Sweep], node: Node) -> Node:
    """``node`` alone in the loops ``around``, outermost first."""
    for sweep in reversed(around):
        node = replace(sweep, body=(node,))
    return node


def loops_of(nodes: Sequence[Node]) -> list[For]:
    """Every loop, outer ones first."""
    found: list[For] = []
    for node in nodes:
        match node:
            case Sweep(source, _, body):
                found += (source, *loops_of(body))
            case Copy(loops):
                found += loops
            case Contract():
                found += node.loops
            case _:
                pass
    return found
