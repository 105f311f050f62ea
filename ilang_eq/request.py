"""What ``optimize`` was asked for, checked: everything that decides its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ilang_eq.backends import checked_precision, checked_target
from ilang_eq.errors import OptionError
from ilang_eq.host import checked_threads
from ilang_eq.lang.canonical import canonical
from ilang_eq.lang.component import Component
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import Dimension, infer, whole_shapes
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.lower.ir import Precision
from ilang_eq.rewrites.rules import RuleSet

NOMINAL_EXTENT = 1024
"""What every dimension is taken to be where no shapes are given. Kernels serve any shape all the same."""

LONGEST_S = 1e8
"""The longest budget, three years: clocks can tell when it ends."""

EFFORTS = ("model", "measure")


@dataclass(frozen=True, slots=True)
class Request:
    """A component to optimise, for what, and how.

    Args:
        given: the component as it was given if it is scheduled, else ``plain``.
        plain: the same without a schedule, as canonical text has it.
        graph: what both compute, canonical.
        shapes: of the inputs; ``extents`` says the same by (input, dimension).
        constants: the numbers of inputs that stay the same from call to call, ascending.
        precision: how the factors of summed products may be rounded.
    """

    given: Component
    plain: Component
    graph: Graph
    shapes: tuple[tuple[int, ...], ...]
    extents: dict[Dimension, int]
    target: str
    threads: int
    effort: str
    budget_s: float | None
    rules: RuleSet
    seed: int
    constants: tuple[int, ...]
    precision: Precision

    @property
    def populated(self) -> dict[Dimension, int]:
        """The extents that the cost models take: a dimension without elements costs what one element does."""
        return {dimension: max(extent, 1) for dimension, extent in self.extents.items()}


def checked_request(
    component: Component,
    shapes: Sequence[Sequence[int]] | None = None,
    *,
    target: str = "c",
    threads: int | None = None,
    effort: str = "model",
    budget_s: float | None = None,
    rules: RuleSet | str = "default",
    seed: int = 0,
    constants: Iterable[str] = (),
    precision: str = "float32",
) -> Request:
    """The request that the arguments of ``optimize`` make.

    Raises:
        ShapeError: shapes that do not fit the component.
        OptionError, RuleError: no component, or an option outside its range.
    """
    from ilang_eq.rewrites import rule_set

    if not isinstance(component, Component):
        raise OptionError(f"{component!r} is no component", expected='a component, such as i("+ij~i")')
    written = wire(component)
    inferred = infer(written)
    if shapes is None:
        shapes = [(NOMINAL_EXTENT,) * (rank or 0) for rank in inferred.ranks]
    _check_budget(budget_s)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise OptionError(f"seed is {seed!r}", expected="a whole number of at least 0")
    sizes = whole_shapes(shapes)
    extents = inferred.bind(sizes)
    graph = canonical(written)
    plain = unwire(graph)
    scheduled = any(node.expr.splits or node.expr.order for node in written.nodes)
    return Request(
        given=component if scheduled else plain,
        plain=plain,
        graph=graph,
        shapes=sizes,
        extents=extents,
        target=checked_target(target),
        threads=checked_threads(threads),
        effort=checked_effort(effort),
        budget_s=budget_s,
        rules=rule_set(rules),
        seed=seed,
        constants=_numbers(constants, component.inputs),
        precision=checked_precision(target, precision),
    )


def checked_effort(effort: str) -> str:
    """``effort`` itself. Raises OptionError for one there is not."""
    if effort not in EFFORTS:
        raise OptionError(f"no effort {effort!r}", legal=EFFORTS)
    return effort


def _check_budget(seconds: float | None) -> None:
    """Raises OptionError."""
    if seconds is None:
        return
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds <= LONGEST_S:
        expected = f"more than 0, at most {LONGEST_S:.0e}; None for no limit"
        raise OptionError(f"a budget of {seconds!r} seconds", expected=expected)


def _numbers(names: Iterable[str], inputs: int) -> tuple[int, ...]:
    """The inputs called ``names``. Raises OptionError."""
    legal = tuple(f"in{k}" for k in range(inputs))
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise OptionError(f"constants is {names!r}", expected='the names of inputs, such as ("in1",)')
    found = list(names)
    for name in found:
        if name not in legal:
            raise OptionError(f"no input {name!r} to be constant", legal=legal)
    return tuple(k for k, name in enumerate(legal) if name in found)
