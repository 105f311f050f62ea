"""𝚒 text to expressions, by recursive descent over the text itself.

    sentence = semantic [ "|" [split {"," split}] "|" {item} ]
    semantic = [op] operand "~" pattern  |  operand op operand "~" pattern
    operand  = pattern | ["-"] number             pattern = letter {letter} | "."
    split    = letter ":" digits {":" digits}     item    = letter {"'"} | digit | "!"

ASCII white space may stand between tokens. An op is the longest symbol that fits; a pattern, a symbol and a number
hold no white space. ``-2~.`` negates 2, in ``-2*i~i`` the sign belongs to the number; ``-0`` is 0, because equal
numbers must mean the same.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

from ilang_eq.errors import CheckError, ParseError
from ilang_eq.lang.check import MAX_ITEMS, MAX_TILE, Positions, check
from ilang_eq.lang.expr import Access, Expr, Init, Literal, Loop, Operand, OrderItem, Stage
from ilang_eq.lang.ops import BY_SYMBOL

_BLANK = r"[ \t\n\r\f\v]*"
_SPACE = re.compile(_BLANK)
_AXES = re.compile(r"[a-z]+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_SYMBOL = re.compile("|".join(re.escape(s) for s in sorted(BY_SYMBOL, key=len, reverse=True)))
_FACTOR = re.compile(r"[0-9]+")
_LOOP = re.compile(rf"([a-z])((?:{_BLANK}')*)")

_OPERAND = "an operand: axis letters such as ij, '.' for a scalar, or a number"
_ITEMS = "loops such as i or i', operand digits 0 and 1, and '!'"


def parse(text: str) -> Expr:
    """The expression that ``text`` spells.

    Raises:
        ParseError: the text is not a sentence.
        CheckError: a sentence, but not a well-formed expression (``check.py``).
    """
    if not isinstance(text, str):
        raise ParseError(f"an expression is text, not {type(text).__name__}", expected='a str such as "+ij~i"')
    return _Reader(text).sentence()


class _Reader:
    """A position in the text, and one method a rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.skip()

    def skip(self) -> None:
        """Pass over white space."""
        blank = _SPACE.match(self.text, self.position)
        self.position = blank.end() if blank else self.position

    def take(self, token: re.Pattern[str]) -> str | None:
        """The token here, if it is here, and the white space after it passed over."""
        found = token.match(self.text, self.position)
        if found is None:
            return None
        self.position = found.end()
        self.skip()
        return found.group()

    def take_character(self, character: str) -> bool:
        """Pass over ``character`` if it is here."""
        here = self.text.startswith(character, self.position)
        if here:
            self.position += len(character)
            self.skip()
        return here

    def done(self) -> bool:
        """Is the text at its end?"""
        return self.position == len(self.text)

    def fail(self, message: str, expected: str, legal: tuple[str, ...] = (), position: int | None = None) -> NoReturn:
        """Raise ParseError, here unless ``position`` says elsewhere."""
        here = self.position if position is None else position
        raise ParseError(message, source=self.text, position=here, expected=expected, legal=legal)

    def sentence(self) -> Expr:
        """The whole text."""
        if self.done():
            self.fail("the text is blank", "an expression such as +ij~i")
        expr, at = self.semantic()
        if self.take_character("|"):
            spots, splits = self.splits()
            if not self.take_character("|"):
                self.fail("the second bar of the schedule is missing", "',' and another split, or '|' and the order")
            order_spots, order = self.order()
            expr = replace(expr, splits=splits, order=order)
            at = replace(at, splits=spots, order=order_spots)
        elif not self.done():
            self.fail("text is left over after the expression", "the end, or '|' and a schedule")
        check(expr, at)
        return expr

    def semantic(self) -> tuple[Expr, Positions]:
        """``op pattern ~ pattern``, ``pattern op pattern ~ pattern`` or ``pattern ~ pattern``."""
        start = self.position
        signed = self.text.startswith("-", start) and _NUMBER.match(self.text, start) is not None
        prefix = None if signed else self.take(_SYMBOL)
        spots, operands = [self.position], [self.operand()]
        infix, infix_spot = None, self.position
        if prefix is None and not self.take_character("~"):
            infix = self.take(_SYMBOL)
            if infix is None:
                self.fail("an op or '~' is missing", "'~' and the output, or an op", tuple(BY_SYMBOL))
            spots.append(self.position)
            operands.append(self.operand())
        if (prefix or infix) and not self.take_character("~"):
            self.fail("'~' is missing", "'~' and the output")
        if signed and infix is None:
            prefix, operands, spots = "-", [_negated(operands[0])], [start + 1]
        output_spot, output = self.position, self.pattern("the output: axis letters such as ij, or '.' for a scalar")
        op = BY_SYMBOL[infix or prefix or "+"]
        operator_spot = infix_spot if infix else start
        at = Positions(self.text, operator_spot, tuple(spots), output_spot, (), ())
        return Expr(op.name, tuple(operands), output), at

    def operand(self) -> Operand:
        """A pattern or a number."""
        number = self.take(_NUMBER)
        return Access(self.pattern(_OPERAND)) if number is None else Literal(float(number) + 0.0)

    def pattern(self, expected: str) -> str:
        """Axis letters, or nothing for ``.``."""
        dot = self.position
        if self.text.startswith(".", dot):
            if re.match(r"[a-z.0-9]", self.text[dot + 1 : dot + 2]):
                self.fail("'.' stands alone", "an op or '~' after it; a number starts with a digit", position=dot + 1)
            self.take_character(".")
            return ""
        axes = self.take(_AXES)
        if axes is None:
            self.fail("a pattern is missing", expected)
        return axes

    def splits(self) -> tuple[tuple[int, ...], tuple[tuple[str, tuple[int, ...]], ...]]:
        """Offsets and entries of the split segment, which may be empty."""
        spots: list[int] = []
        entries: dict[str, tuple[int, ...]] = {}
        while entries or not self.text.startswith("|", self.position):
            spot = self.position
            axis = self.text[spot : spot + 1]
            if not ("a" <= axis <= "z"):
                self.fail("an axis is missing where a split should start", "a split such as i:16, or '|'")
            if axis in entries:
                self.fail(f"axis {axis} is split in two entries", f"one entry, such as {axis}:16:4")
            self.take_character(axis)
            spots.append(spot)
            entries[axis] = self.factors()
            if not self.take_character(","):
                break
        return tuple(spots), tuple(entries.items())

    def factors(self) -> tuple[int, ...]:
        """``:16:4``."""
        if not self.text.startswith(":", self.position):
            self.fail("the colon of a split is missing", "':' and a factor, as in i:16")
        factors: list[int] = []
        while self.take_character(":"):
            spot = self.position
            digits = self.take(_FACTOR)
            if digits is None:
                self.fail("a split factor is missing", "a whole number of at least 1")
            factors.append(self.factor(digits.lstrip("0"), spot))
        return tuple(factors)

    def factor(self, digits: str, spot: int) -> int:
        """A factor in range, so that absurdly long numbers are never converted."""
        if not digits or len(digits) > len(str(MAX_TILE)):
            size = "zero" if not digits else "too large"
            expected = f"a whole number from 1 to {MAX_TILE}"
            raise CheckError(f"a split factor is {size}", source=self.text, position=spot, expected=expected)
        return int(digits)

    def order(self) -> tuple[tuple[int, ...], tuple[OrderItem, ...]]:
        """Offsets and items of the order segment, which may be empty."""
        items: list[OrderItem] = []
        spots: list[int] = []
        while not self.done():
            spot = self.position
            item = self.item()
            if not isinstance(item, Loop) and item in items:
                self.fail(f"the order lists {item} twice", "each digit and '!' at most once", position=spot)
            if len(items) == MAX_ITEMS:
                self.fail("the order has more items than any expression has loops", "each loop once", position=spot)
            items.append(item)
            spots.append(spot)
        return tuple(spots), tuple(items)

    def item(self) -> OrderItem:
        """One item of the order."""
        loop = _LOOP.match(self.text, self.position)
        if loop is not None:
            self.position = loop.end()
            self.skip()
            return Loop(loop.group(1), loop.group(2).count("'"))
        if self.take_character("!"):
            return Init()
        for operand in (0, 1):
            if self.take_character(str(operand)):
                return Stage(operand)
        return self.fail("the order holds something else than loops, digits and '!'", _ITEMS)


def _negated(operand: Operand) -> Operand:
    """The number without the sign that turned out to be the op."""
    return Literal(abs(operand.value)) if isinstance(operand, Literal) else operand
