"""Extents of traced tensors: whole numbers, or products of them with sizes known only at run time.

Invariants of ``Extent``:
  * ``number`` is at least 0; ``symbols`` is sorted and may repeat
  * a symbol is an identifier, or the text of an expression that is no product, taken as a unit
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_FACTOR = re.compile(r"[0-9]+|[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Extent:
    """``number`` times the product of ``symbols``."""

    number: int = 1
    symbols: tuple[str, ...] = ()

    @property
    def is_one(self) -> bool:
        """Whether it is the number 1."""
        return self.number == 1 and not self.symbols

    def __mul__(self, other: Extent) -> Extent:
        return Extent(self.number * other.number, tuple(sorted(self.symbols + other.symbols)))

    def over(self, other: Extent) -> Extent | None:
        """The extent that times ``other`` makes this one, if every value of the symbols agrees."""
        if other.number == 0 or self.number % other.number or not Counter(other.symbols) <= Counter(self.symbols):
            return None
        left = Counter(self.symbols) - Counter(other.symbols)
        return Extent(self.number // other.number, tuple(sorted(left.elements())))

    def value(self, sizes: Mapping[str, int]) -> int:
        """The number it is where the symbols have these ``sizes``."""
        return self.number * math.prod(sizes[symbol] for symbol in self.symbols)

    def __str__(self) -> str:
        factors = ([str(self.number)] if self.number != 1 or not self.symbols else []) + list(self.symbols)
        return "*".join(factors)


def extent_of(size: int | str) -> Extent:
    """An extent as a node list writes it: ``12``, ``"s0"``, ``"4*s0"``; other expressions are symbols of their own."""
    if isinstance(size, int):
        return Extent(size)
    factors = [factor.strip() for factor in size.split("*")]
    if not all(_FACTOR.fullmatch(factor) for factor in factors):
        return Extent(1, (f"({size})",))
    numbers = [int(factor) for factor in factors if factor.isdecimal()]
    return Extent(math.prod(numbers), tuple(sorted(factor for factor in factors if not factor.isdecimal())))


def product(extents: Iterable[Extent]) -> Extent:
    """Their product."""
    return math.prod(extents, start=Extent())


def solve(pairs: Iterable[tuple[Extent, int]]) -> dict[str, int]:
    """The symbols' sizes, given the values of some extents; what cannot be solved for one symbol is left out."""
    open_pairs: Sequence[tuple[Extent, int]] = [(extent, value) for extent, value in pairs if extent.symbols]
    sizes: dict[str, int] = {}
    while True:
        left: list[tuple[Extent, int]] = []
        for extent, value in open_pairs:
            unknown = Counter(symbol for symbol in extent.symbols if symbol not in sizes)
            known = extent.number * math.prod(sizes[s] for s in extent.symbols if s in sizes)
            if sum(unknown.values()) == 1 and known:
                sizes[next(iter(unknown))] = value // known
            elif unknown:
                left.append((extent, value))
        if len(left) == len(open_pairs):
            return sizes
        open_pairs = left
