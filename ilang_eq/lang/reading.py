"""Reading a component from text, such as ``i("ik*kj~ijk") >> i("+ijk~ij")``, without evaluating it.

The text is Python's expression grammar cut down to ``i("…")``, ``I``, ``>> << & | ~`` and parentheses. Names may be
given to parts: ``softmax = …`` on a line of its own; the last line is the component.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ilang_eq.errors import ParseError
from ilang_eq.lang.component import Component, I, i

_COMBINE: Mapping[type[ast.operator], Callable[[Component, Component], Component]] = {
    ast.RShift: lambda f, g: f >> g,
    ast.LShift: lambda f, g: f << g,
    ast.BitAnd: lambda f, g: f & g,
    ast.BitOr: lambda f, g: f | g,
}
_LEGAL = ('i("…")', "I", ">>", "<<", "&", "|", "~", "parentheses", "a name given above")


def read_component(text: str) -> Component:
    """The component that ``text`` spells.

    Raises:
        ParseError: anything but component text; nothing of it is run.
    """
    try:
        return _read(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ParseError(f"not component text: {error}", legal=_LEGAL) from None


def _read(module: ast.Module) -> Component:
    names: dict[str, Component] = {}
    last: Component | None = None
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in ("i", "I"):
                last = names[name] = _component(value, names)
            case ast.Expr(value=value):
                last = _component(value, names)
            case _:
                raise _unexpected(statement)
    if last is None:
        raise ParseError("no component in the text", legal=_LEGAL)
    return last


def _component(node: ast.expr, names: Mapping[str, Component]) -> Component:
    match node:
        case ast.Name(id="I"):
            return I
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Call(func=ast.Name(id="i"), args=[ast.Constant(value=str(text))], keywords=[]):
            return i(text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMBINE:
            return _COMBINE[type(op)](_component(left, names), _component(right, names))
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ~_component(operand, names)
        case _:
            raise _unexpected(node)


def _unexpected(node: ast.AST) -> ParseError:
    line = getattr(node, "lineno", 1)
    return ParseError(f"line {line} has something that is not component text: {ast.unparse(node)}", legal=_LEGAL)
