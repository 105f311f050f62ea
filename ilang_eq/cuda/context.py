"""Where a node is printed: what is known of the loops around it, and which conditions have still to be tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ilang_eq.cuda.nodes import Dim, Part
from ilang_eq.lower.addresses import extent_name
from ilang_eq.lower.ir import For


@dataclass(frozen=True, slots=True)
class Test:
    """The condition that a loop's position exists.

    Args:
        variable: of the loop.
        text: the condition.
        room: the weaker one that there is room for the position in a tile.
        run: the same of the first position of a run, where all of a run exist or none.
        whole: what has to hold of the extent for that.
    """

    variable: str
    text: str
    room: str | None = None
    run: str | None = None
    whole: str | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """A loop over the ``width`` neighbours that one thread takes together, from position ``run_name`` on."""

    variable: str
    width: int
    kind: str

    @property
    def run_name(self) -> str:
        """The position of the first of them."""
        return f"{self.variable}_run"

    def around(self, lines: list[str]) -> list[str]:
        """The loop around ``lines``."""
        v = self.variable
        head = f"for (int {v}_lane = 0; {v}_lane < {self.width}; {v}_lane++) {{"
        return ["#pragma unroll", head, *indented([f"const {self.kind} {v} = {v}_run + {v}_lane;", *lines]), "}"]


@dataclass(frozen=True, slots=True)
class At:
    """Where a node is printed.

    Args:
        tests: conditions that have still to be tested.
        loops: the variables of the loops around.
        declared: of every local, the variables of the loops around its declaration.
        dims: the directions that loops around have shared out.
        uneven: variables that differ between threads.
        full: the parts that have all their elements.
        tail: whether something around is short, so that whole tiles inside are not worth a version of their own.
        together: whether rows in memory are aligned, so that runs of neighbours may move at once.
        lanes: loops over runs of neighbours that have still to be opened.
        divides: whether this is what divides where a reciprocal will not do.
        steps: of the variables around, a number that their values are multiples of; one that is missing may be odd.
    """

    tests: tuple[Test, ...] = ()
    loops: frozenset[str] = frozenset()
    declared: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dims: frozenset[Dim] = frozenset()
    uneven: frozenset[str] = frozenset()
    full: frozenset[Part] = frozenset()
    tail: bool = False
    divides: bool = False
    together: bool = False
    lanes: tuple[Lane, ...] = ()
    steps: Mapping[str, int] = field(default_factory=dict)

    def inside(self, loop: For, tests: Sequence[Test], lanes: Sequence[Lane] = ()) -> At:
        """Inside ``loop``."""
        return replace(
            self,
            tests=(*self.tests, *tests),
            loops=self.loops | {loop.variable},
            lanes=(*self.lanes, *lanes),
            steps={**self.steps, loop.variable: loop.step},
        )


def end_of(loop: For, full: bool, outer: Sequence[str]) -> str:
    """The exclusive end of ``loop``, as the variables in ``outer`` decide it."""
    if full and loop.limit is not None:
        return str(loop.limit)
    left = " - ".join((extent_name(loop.extent), *outer))
    return left if loop.limit is None else f"least({loop.limit}, {left})"


def under(tests: Sequence[str], lines: list[str]) -> list[str]:
    """``lines`` where all ``tests`` hold."""
    if not tests or not lines:
        return lines
    head = f"if ({' && '.join(tests)})"
    return [head, *indented(lines)] if len(lines) == 1 else [head + " {", *indented(lines), "}"]


def indented(lines: Sequence[str]) -> list[str]:
    """``lines`` one level deeper."""
    return ["    " + line for line in lines]
