"""Reading a component from text, such as ``i("ik*kj~ijk") >> i("+ijk~ij")``, without evaluating it.

The text is Python's: ``i("…")``, ``I``, ``>> << & | ~``, parentheses and comments. Names may be given to parts:
``softmax = …`` on a line of its own; the last line is the component. Lines may break inside parentheses. Operators
bind as in Python, which is how ``component_text.py`` prints them. No recursion: chains may be of any length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from ilang_eq.errors import ParseError
from ilang_eq.lang.component import Component, I, Leaf
from ilang_eq.lang.parser import parse


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the text: its kind is the name of a group of ``_TOKEN``."""

    kind: str
    text: str
    position: int


_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f]+|\#[^\n]*|\\\n)
    |(?P<line>\n)
    |(?P<leaf>\bi\s*\(\s*(?:"[^"\n\\]*"|'[^'\n\\]*')\s*\))
    |(?P<name>[^\W\d]\w*)
    |(?P<infix>>>|<<|&|\|)
    |(?P<prefix>~)
    |(?P<open>\()
    |(?P<close>\))
    |(?P<equals>=)""",
    re.VERBOSE,
)

_COMBINE: Mapping[str, tuple[int, Callable[[Component, Component], Component]]] = {
    "|": (1, lambda f, g: f | g),
    "&": (2, lambda f, g: f & g),
    ">>": (3, lambda f, g: f >> g),
    "<<": (3, lambda f, g: f << g),
}
"""How tightly each operator binds, and what it does."""

_PART = 'i("…"), I, ~, a part in parentheses, or a name given above'
_LEGAL = ('i("…")', "I", ">>", "<<", "&", "|", "~", "parentheses", "a name given above")
_CALL = re.compile(r"\bi\s*\(")


def is_component_text(text: str) -> bool:
    """Whether ``text`` can only be meant as component text: it calls ``i``, or has nothing but ``I``."""
    return _CALL.search(text) is not None or ("I" in text and not set(text) - set("I>|&<~() \n"))


def read_component(text: str) -> Component:
    """The component that ``text`` spells.

    Raises:
        ParseError: anything but component text; nothing of it is run.
        CheckError: an expression in it is not well formed.
    """
    names: dict[str, Component] = {}
    last: Component | None = None
    for line in _lines(text):
        if len(line) > 1 and line[0].kind == "name" and line[1].kind == "equals":
            name = line[0].text
            if name in ("i", "I"):
                _fail(f"{name} has a meaning already", text, line[0].position, "another name")
            last = names[name] = _Reader(text, line[1], names).read(line[2:])
        else:
            last = _Reader(text, line[0], names).read(line)
    if last is None:
        raise ParseError("not component text: there is no component in it", legal=_LEGAL)
    return last


def _fail(what: str, text: str, position: int, expected: str) -> NoReturn:
    """Raise ParseError, with the line of ``text`` that has ``position``."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:].partition("\n")[0]
    raise ParseError(f"not component text: {what}", source=line, position=position - start, expected=expected)


def _lines(text: str) -> Iterator[list[_Token]]:
    """The tokens of each line that has any; a line goes on while a parenthesis is open."""
    line: list[_Token] = []
    opened: list[_Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            _fail(f"{text[position]!r} has no meaning in it", text, position, ", ".join(_LEGAL))
        token = _Token(found.lastgroup or "", found.group(), position)
        position = found.end()
        if token.kind == "line" and line and not opened:
            yield line
            line = []
        if token.kind == "open":
            opened.append(token)
        elif token.kind == "close" and opened:
            opened.pop()
        if token.kind not in ("blank", "line"):
            line.append(token)
    if opened:
        _fail("a parenthesis is open at the end", text, opened[-1].position, "')'")
    if line:
        yield line


class _Reader:
    """One line by operator precedence: parts that are read, and operators that wait for what is on their right."""

    def __init__(self, text: str, before: _Token, names: Mapping[str, Component]) -> None:
        self.text = text
        self.last = before
        self.names = names
        self.parts: list[Component] = []
        self.waiting: list[_Token] = []

    def read(self, line: list[_Token]) -> Component:
        """The component that ``line`` spells."""
        wants_part = True
        for token in line:
            self.last = token
            match token.kind:
                case "prefix" | "open" if wants_part:
                    self.waiting.append(token)
                case "leaf" | "name" if wants_part:
                    self.parts.append(self._part(token))
                    wants_part = False
                case "infix" if not wants_part:
                    self._combine(_COMBINE[token.text][0])
                    self.waiting.append(token)
                    wants_part = True
                case "close" if not wants_part:
                    self._close(token)
                case _:
                    what = _PART if wants_part else "an operator between parts, or the end of the line"
                    _fail(f"{token.text!r} is out of place", self.text, token.position, what)
        if wants_part:
            _fail("a part is missing", self.text, self.last.position + len(self.last.text), _PART)
        self._combine(0)
        return self.parts.pop()

    def _part(self, token: _Token) -> Component:
        if token.kind == "leaf":
            quote = min(token.text.find(q) for q in "\"'" if q in token.text)
            return Leaf(parse(token.text[quote + 1 : token.text.rindex(token.text[quote])]))
        if token.text == "I":
            return I
        if token.text not in self.names:
            _fail(f"nothing has the name {token.text!r}", self.text, token.position, _PART)
        return self.names[token.text]

    def _close(self, token: _Token) -> None:
        """Combine what is in the parentheses that ``token`` closes."""
        self._combine(0)
        if not self.waiting:
            _fail("a parenthesis closes that none has opened", self.text, token.position, "an operator, or the end")
        self.waiting.pop()

    def _combine(self, binds: int) -> None:
        """Carry out the operators that wait, back to a parenthesis, as far as they bind as tightly as ``binds``."""
        while self.waiting and self.waiting[-1].kind != "open":
            operator = self.waiting[-1]
            if operator.kind == "prefix":
                self.parts.append(~self.parts.pop())
            elif _COMBINE[operator.text][0] >= binds:
                right, left = self.parts.pop(), self.parts.pop()
                self.parts.append(_COMBINE[operator.text][1](left, right))
            else:
                return
            self.waiting.pop()
