"""Which pass over a row the last one of the row before goes beside (``lower/late.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ilang_eq.c.nodes import Loop, Node, Registers, Strips, VectorNest, Versions
from ilang_eq.c.stages import worth_stages
from ilang_eq.lower.widths import WIDTHS


def hosted(nodes: Sequence[Node]) -> tuple[Node, ...] | None:
    """``nodes``, the other passes over a row, of which one is marked; None if none goes in steps of whole vectors.

    Slow functions leave memory the most time, and of several the last, when lines are there that others asked for.
    """
    found = [loop for loop in steps(nodes) if _in_whole_vectors(loop)]
    if not found:
        return None
    slow = [loop for loop in found if any(worth_stages(nest.body) for nest in _nests(loop))]
    host = (slow or found)[-1]
    return tuple(_marked(node, host) for node in nodes)


def steps(nodes: Sequence[Node]) -> list[Loop]:
    """The loops around vectors, in order."""
    found: list[Loop] = []
    for node in nodes:
        match node:
            case Loop(part="main" | "whole") if _nests(node):
                found.append(node)
            case Strips(main=loop):
                found.append(loop)
            case Loop(body=body) | Registers(body=body) | Versions(full=body):
                found += steps(body)
            case _:
                pass
    return found


def _nests(loop: Loop) -> list[VectorNest]:
    return [node for node in loop.body if isinstance(node, VectorNest)]


def _in_whole_vectors(loop: Loop) -> bool:
    step = loop.source.step
    along = (nest.loops[-1] for nest in _nests(loop))
    return step % WIDTHS[0] == 0 and all(lane.limit == step and loop.source.variable in lane.outer for lane in along)


def _marked(node: Node, host: Loop) -> Node:
    """``node``, in which ``host`` may be, with that marked."""
    if node is host:
        return replace(host, beside=True)
    match node:
        case Strips(main):
            return replace(node, main=replace(main, beside=True)) if main is host else node
        case Loop(body=body) | Registers(body=body):
            return replace(node, body=tuple(_marked(inner, host) for inner in body))
        case Versions(full=full):
            return replace(node, full=tuple(_marked(inner, host) for inner in full))
        case _:
            return node
