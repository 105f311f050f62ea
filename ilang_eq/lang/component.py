"""Components: expressions and the combinators that wire them.

    f >> g   chain     f's outputs are g's inputs        f & g   fanout    both read the same inputs, pairwise
    f << g   compose   g's outputs are f's inputs        f | g   pair      side by side
    ~f       swap      (~f)(x, y, …) = f(y, x, …)        I       identity

Arities need not match: what is left over stays an input or an output, after those of the component that is fed first
(``f >> g`` lists f's spare outputs before g's outputs). ``wiring.py`` has the exact rule.

Invariants:
  * components are immutable; equality and hash are structural
  * ``inputs``, ``outputs``, ``leaves`` and the hash are computed once, when a component is built, so that chains of any
    length need no recursion
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ilang_eq.lang.expr import Access, Expr
from ilang_eq.lang.parser import parse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ilang_eq.backends import Kernel
    from ilang_eq.lang.ops import Array
    from ilang_eq.lower.plan import Plan


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Component:
    """A function of ``inputs`` tensors that returns ``outputs`` tensors. ``leaves`` counts its expressions."""

    inputs: int = field(init=False)
    outputs: int = field(init=False)
    leaves: int = field(init=False)
    _hash: int = field(init=False)

    def _settle(self, inputs: int, outputs: int, leaves: int, key: tuple[object, ...]) -> None:
        for name, value in (("inputs", inputs), ("outputs", outputs), ("leaves", leaves), ("_hash", hash(key))):
            object.__setattr__(self, name, value)

    @property
    def parts(self) -> tuple[Component, ...]:
        """The components this one combines, left to right."""
        return ()

    def __rshift__(self, other: Component) -> Component:
        return Chain(self, other) if isinstance(other, Component) else NotImplemented

    def __lshift__(self, other: Component) -> Component:
        return Compose(self, other) if isinstance(other, Component) else NotImplemented

    def __and__(self, other: Component) -> Component:
        return Fanout(self, other) if isinstance(other, Component) else NotImplemented

    def __or__(self, other: Component) -> Component:
        return Pair(self, other) if isinstance(other, Component) else NotImplemented

    def __invert__(self) -> Component:
        return Swap(self)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Component):
            return NotImplemented
        pairs: list[tuple[Component, Component]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a is b:
                continue
            if type(a) is not type(b) or a._hash != b._hash:
                return False
            if isinstance(a, Leaf) and isinstance(b, Leaf) and a.expr != b.expr:
                return False
            pairs.extend(zip(a.parts, b.parts, strict=True))
        return True

    def __str__(self) -> str:
        from ilang_eq.lang.component_text import print_component

        return print_component(self)

    __repr__ = __str__

    def interpret(self, *arrays: ArrayLike) -> Array | tuple[Array, ...]:
        """Compute in float64 with NumPy, ignoring schedules: the meaning everything else is tested against.

        Returns:
            One array, or a tuple if the component has not exactly one output.

        Raises:
            ArrayError: the number of arrays is not ``inputs``, or one is not numeric.
            ShapeError: ranks or extents contradict each other.
        """
        from ilang_eq.lang.interpreter import interpret
        from ilang_eq.lang.wiring import wire

        results = interpret(wire(self), arrays)
        return results[0] if len(results) == 1 else results

    def plan(self, shapes: Sequence[tuple[int, ...]] | None = None) -> Plan:
        """What lowering makes of this component: kernels, buffers and corrections (``lower/plan.py``)."""
        from ilang_eq.lower.plan import plan_of

        return plan_of(self, shapes)

    def compile(self, target: str = "c", threads: int | None = None, precision: str = "float32") -> Kernel:
        """A callable kernel for this component as scheduled (``backends.py``)."""
        from ilang_eq.backends import compile_component

        return compile_component(self, target, threads, precision)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Leaf(Component):
    """An expression: one input for each operand that is not a number, one output."""

    expr: Expr

    def __post_init__(self) -> None:
        inputs = sum(isinstance(o, Access) for o in self.expr.operands)
        self._settle(inputs, 1, 1, (Leaf, self.expr))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Identity(Component):
    """One input, returned."""

    def __post_init__(self) -> None:
        self._settle(1, 1, 0, (Identity,))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Combined(Component):
    """Two components joined by ``symbol``."""

    left: Component
    right: Component
    symbol: ClassVar[str]

    def __post_init__(self) -> None:
        inputs, outputs = self._arity()
        self._settle(inputs, outputs, self.left.leaves + self.right.leaves, (type(self), self.left, self.right))

    def _arity(self) -> tuple[int, int]:
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Component, ...]:
        return (self.left, self.right)


class Chain(_Combined):
    """``left >> right``."""

    __slots__ = ()
    symbol = ">>"

    def _arity(self) -> tuple[int, int]:
        fed = min(self.left.outputs, self.right.inputs)
        return self.left.inputs + self.right.inputs - fed, self.left.outputs - fed + self.right.outputs


class Compose(_Combined):
    """``left << right``."""

    __slots__ = ()
    symbol = "<<"

    def _arity(self) -> tuple[int, int]:
        fed = min(self.right.outputs, self.left.inputs)
        return self.right.inputs + self.left.inputs - fed, self.left.outputs + self.right.outputs - fed


class Fanout(_Combined):
    """``left & right``."""

    __slots__ = ()
    symbol = "&"

    def _arity(self) -> tuple[int, int]:
        return max(self.left.inputs, self.right.inputs), self.left.outputs + self.right.outputs


class Pair(_Combined):
    """``left | right``."""

    __slots__ = ()
    symbol = "|"

    def _arity(self) -> tuple[int, int]:
        return self.left.inputs + self.right.inputs, self.left.outputs + self.right.outputs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Swap(Component):
    """``~of``: the first two inputs change places; with fewer than two, the same function as ``of``."""

    of: Component

    def __post_init__(self) -> None:
        self._settle(self.of.inputs, self.of.outputs, self.of.leaves, (Swap, self.of))

    @property
    def parts(self) -> tuple[Component, ...]:
        """The component that is swapped."""
        return (self.of,)


I = Identity()  # noqa: E741
"""The identity, as 𝚒 text spells it."""


def i(text: str) -> Component:
    """The component that computes one expression; or the one that ``text`` spells as ``str`` does: ``i(str(c)) == c``.

    Raises:
        ParseError: the text is not a sentence of 𝚒, nor component text.
        CheckError: a sentence, but not a well-formed expression.
    """
    from ilang_eq.lang.reading import is_component_text, read_component

    spelled = isinstance(text, str) and is_component_text(text)
    return read_component(text) if spelled else Leaf(parse(text))
