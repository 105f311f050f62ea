"""Terms over named axes as egglog program text."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from ilang_eq.rewrites.naming import Terms
from ilang_eq.rewrites.space import Apply, ENode, Number, Read, Reduce, View
from ilang_eq.rewrites.vocabulary import set_of, vec_of


def term_name(position: int) -> str:
    """The egglog global that holds the term at ``position``.

    It must not end in a digit: reading ``$t1`` makes egglog 13.2 invent ``$t11``, which hides a global of that name.
    """
    return f"$t{position}_"


def encode(terms: Terms) -> str:
    """The commands that put ``terms`` in an e-graph: a global for each, producers first, and the axes of its leaves."""
    lines = [f"(axis {axis})" for axis in range(len(terms.extents))]
    for position, node in enumerate(terms.nodes):
        lines.append(f"(let {term_name(position)} {node_text(node, term_name)})")
        match node:
            case Read(_, axes) | View(_, _, axes):
                lines.append(f"(set (axes {term_name(position)}) {set_of(frozenset(axes))})")
            case _:
                pass
    return "\n".join(lines)


def node_text(node: ENode, operand: Callable[[int], str]) -> str:
    """One node as an egglog expression; ``operand`` spells its operands."""
    match node:
        case Read(index, axes):
            return f"(Read {index} {vec_of(axes)})"
        case Number(value):
            return f"(Num {float(value)!r})"
        case Apply(op, (x,)):
            return f'(Un "{op}" {operand(x)})'
        case Apply(op, (x, y)):
            return f'(Bin "{op}" {operand(x)} {operand(y)})'
        case Apply():
            raise AssertionError(f"{node} has neither one operand nor two")
        case Reduce(op, axes, x):
            return f'(Red "{op}" {set_of(axes)} {operand(x)})'
        case View(x, source, axes):
            return f"(View {operand(x)} {vec_of(source)} {vec_of(axes)})"
        case other:
            assert_never(other)
