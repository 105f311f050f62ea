"""Components as Python text: ``eval(print_component(c), {"i": i, "I": I}) == c``."""

from __future__ import annotations

from ilang_eq.lang.component import Chain, Component, Compose, Fanout, Identity, Leaf, Pair, Swap
from ilang_eq.lang.printer import print_expr

_SYMBOLS: dict[type[Component], str] = {Chain: ">>", Compose: "<<", Fanout: "&", Pair: "|"}

_BINDS: dict[type[Component], int] = {Pair: 1, Fanout: 2, Chain: 3, Compose: 3, Swap: 4, Leaf: 5, Identity: 5}
"""How tightly Python binds each form."""


def print_component(component: Component) -> str:
    """Python text with no more parentheses than Python's precedence needs; without recursion."""
    pieces: list[str] = []
    todo: list[str | Component] = [component]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            pieces.append(part)
        else:
            todo.extend(reversed(_unfold(part)))
    return "".join(pieces)


def _unfold(component: Component) -> list[str | Component]:
    """One level of text. Binary operators associate to the left, so a right part that binds alike is enclosed."""
    binds = _BINDS[type(component)]
    match component:
        case Leaf(expr=expr):
            return [f'i("{print_expr(expr)}")']
        case Swap(of=of):
            return ["~", *_enclosed(of, binds)]
        case Chain(left=left, right=right) | Compose(left=left, right=right):
            pass
        case Fanout(left=left, right=right) | Pair(left=left, right=right):
            pass
        case _:
            return ["I"]
    return [*_enclosed(left, binds), f" {_SYMBOLS[type(component)]} ", *_enclosed(right, binds + 1)]


def _enclosed(part: Component, least: int) -> list[str | Component]:
    """``part``, in parentheses if it binds less tightly than ``least``."""
    return [part] if _BINDS[type(part)] >= least else ["(", part, ")"]
