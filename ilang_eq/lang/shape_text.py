"""Shapes as text: ``2048x64``, and ``.`` for a scalar."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ilang_eq.errors import ParseError

_SHAPE = re.compile(r"\.|\d+(x\d+)*")


def read_shape(text: str) -> tuple[int, ...]:
    """The shape that ``text`` spells. Raises ParseError."""
    if not _SHAPE.fullmatch(text):
        raise ParseError(f"{text!r} is no shape", expected="extents such as 2048x64, or . for a scalar")
    return () if text == "." else tuple(int(n) for n in text.split("x"))


def print_shape(shape: Sequence[int]) -> str:
    """The text of ``shape``."""
    return "x".join(map(str, shape)) or "."
