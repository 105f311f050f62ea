"""Which pass over a row the last one of the row before goes beside (``lower/late.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ilang_eq.c.nodes import Loop, Node, Registers, Strips, VectorNest, Versions
from ilang_eq.c.stages import worth_stages
from ilang_eq.lower.ir import For
from ilang_eq.lower.widths import WIDTHS


def hosted(nodes: Sequence[Node], writer: For) -> tuple[Node, ...] | None:
    """``nodes``, the other passes over a row, with ``writer`` beside one of them; None if it has to stay alone.

    Its steps are whole vectors of the row. Slow functions leave memory the most time.
    """
    found = [loop for loop in _steps(nodes) if _goes_along(loop, writer)]
    if not found:
        return None
    slow = [loop for loop in found if any(worth_stages(nest.body) for nest in _nests(loop))]
    host = (slow or found)[-1]
    return tuple(_beside(node, host) for node in nodes)


def _steps(nodes: Sequence[Node]) -> list[Loop]:
    """The loops around vectors, in order."""
    found: list[Loop] = []
    for node in nodes:
        match node:
            case Loop(part="main" | "whole") if _nests(node):
                found.append(node)
            case Strips(main=loop):
                found.append(loop)
            case Loop(body=body) | Registers(body=body) | Versions(full=body):
                found += _steps(body)
            case _:
                pass
    return found


def _nests(loop: Loop) -> list[VectorNest]:
    return [node for node in loop.body if isinstance(node, VectorNest)]


def _goes_along(loop: Loop, writer: For) -> bool:
    step = loop.source.step
    lanes = all(nest.loops[-1].limit == step and loop.source.variable in nest.loops[-1].outer for nest in _nests(loop))
    return loop.source.extent == writer.extent and step % WIDTHS[0] == 0 and lanes


def _beside(node: Node, host: Loop) -> Node:
    """``node``, in which ``host`` may be, with that marked."""
    if node is host:
        return replace(host, beside=True)
    match node:
        case Strips(main):
            return replace(node, main=replace(main, beside=True)) if main is host else node
        case Loop(body=body) | Registers(body=body):
            return replace(node, body=tuple(_beside(inner, host) for inner in body))
        case Versions(full=full):
            return replace(node, full=tuple(_beside(inner, host) for inner in full))
        case _:
            return node
