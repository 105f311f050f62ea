"""What the e-graph found, read back: the equal computations, and the schedules that are legal for each.

Values carry *named axes*: one number per axis of the whole component, wherever it appears, so that a rule needs no
permutations (SPORES, arXiv 2002.07951). The layout of an intermediate is no part of its meaning; extraction picks it.

Invariants (``check_space`` enforces them):
  * every operand is a class of the space; the graph of classes reachable through *some* choice of nodes is acyclic
  * an ``Apply`` has the union of its operands' axes; a ``Reduce`` its operand's less the reduced ones
  * all nodes of a class have the class's axes
"""

from __future__ import annotations

from dataclasses import dataclass

from ilang_eq.lang.graph import Input

AxisId = int
ClassId = int


@dataclass(frozen=True, slots=True)
class Read:
    """Graph input ``input`` read at ``axes``, one per dimension."""

    input: int
    axes: tuple[AxisId, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: float


@dataclass(frozen=True, slots=True)
class Apply:
    """A pointwise expression over the union of its operands' axes (one operand: the op's unary form)."""

    op: str
    operands: tuple[ClassId, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction of ``operand`` over ``axes`` (sorted, not empty)."""

    op: str
    axes: tuple[AxisId, ...]
    operand: ClassId


@dataclass(frozen=True, slots=True)
class View:
    """``operand`` read under other axis names: dimension ``source[n]`` of it is axis ``axes[n]`` here.

    Appears only where one intermediate is read at two patterns that no single naming serves; no rule looks through it
    and its operand is always materialised.
    """

    operand: ClassId
    source: tuple[AxisId, ...]
    axes: tuple[AxisId, ...]


ENode = Read | Number | Apply | Reduce | View


@dataclass(frozen=True, slots=True)
class EClass:
    """Equal nodes. ``axes`` is sorted; ``nodes`` is in a deterministic order."""

    axes: tuple[AxisId, ...]
    nodes: tuple[ENode, ...]


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """Node ``node`` of class ``of``: one way to compute it, one 𝚒 expression."""

    of: ClassId
    node: int


Nest = tuple[AxisId, ...]
"""The outer (tile) loops of a variant, from the outside in; element loops follow inside. Tile sizes are knobs."""


@dataclass(frozen=True, slots=True, order=True)
class Staging:
    """A legal way to stage a producer: inside the first ``site`` outer loops of ``consumer`` under ``nest``.

    ``inline`` means innermost instead, inside the element loops too: the producer is pointwise, has the
    consumer's axes, and follows its loops.
    """

    consumer: Variant
    nest: Nest
    operand: int
    site: int
    inline: bool
    producer: Variant
    producer_nest: Nest


@dataclass(frozen=True, slots=True, order=True)
class Repair:
    """``accumulator`` may read ``statistic`` while that is still being reduced: an online reduction."""

    accumulator: Variant
    statistic: ClassId
    kind: str


@dataclass(frozen=True, slots=True)
class Space:
    """Everything extraction chooses from. Inputs numbered ``constants`` stay the same from call to call."""

    classes: dict[ClassId, EClass]
    outputs: tuple[tuple[ClassId | Input, tuple[AxisId, ...]], ...]
    extents: tuple[tuple[int, int], ...]
    nests: dict[Variant, tuple[Nest, ...]]
    stagings: tuple[Staging, ...]
    repairs: tuple[Repair, ...]
    splittable: frozenset[AxisId]
    constants: frozenset[int] = frozenset()
