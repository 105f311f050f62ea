"""Threads combine what they have reduced once a loop around it has ended, not in each of its iterations.

    before   for k: { share = 0;  for j (along x): share += …;  sum ⊕= the shares of all }
    after    own = 0
             for k: { share = 0;  for j (along x): share += …;  own ⊕= share }
             sum ⊕= what all have of their own

Nothing else in the loop may read the sum. It may be scaled (``sum = sum * factor``, of online reductions): so is then
what each thread has of its own. Sums are still added up tile by tile: rounding errors grow no faster than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from ilang_eq.cuda.accesses import touched
from ilang_eq.cuda.nodes import Combine, Dim, Launch, Leaf, Node, Sweep
from ilang_eq.cuda.walks import declared_in, leaves_of, nested, with_leaves
from ilang_eq.lang.ops import OPS
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Buffer, Constant, Declare, Load, Program, Scalar
from ilang_eq.lower.walk import mentions, reads


@dataclass(frozen=True, slots=True)
class _Found:
    """A ``combine`` that may wait for the end of a loop, in which it stands inside the sweeps of ``path``."""

    combine: Combine
    path: tuple[Sweep, ...]
    buffer: Buffer

    @property
    def name(self) -> str:
        """The buffer that is combined into."""
        return self.combine.target.buffer


def with_deferred_combines(launch: Launch, program: Program) -> Launch:
    """``launch`` with every ``Combine`` behind the outermost loops that may do without."""
    deferring = _Deferring({b.name: b for b in (*program.buffers, *launch.buffers)}, {})
    body = deferring.block(launch.body)
    added = tuple(deferring.buffers[name] for name in deferring.own)
    return replace(launch, body=body, buffers=(*launch.buffers, *added), shares={**launch.shares, **deferring.own})


@dataclass(frozen=True, slots=True)
class _Deferring:
    """``own`` collects what is added: buffers of each thread along a direction."""

    buffers: dict[str, Buffer]
    own: dict[str, Dim]

    def block(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        result: list[Node] = []
        for node in nodes:
            if not isinstance(node, Sweep):
                result.append(node)
                continue
            loop = replace(node, body=self.block(node.body))
            behind: list[Node] = []
            while loop.dim is None and (found := next(self._waiting(loop), None)) is not None:
                before, loop, after = self._deferred(loop, found, _starts_anew(result, found))
                result += before
                behind += after
            result += [loop, *behind]
        return tuple(result)

    def _waiting(self, loop: Sweep) -> Iterator[_Found]:
        """What may wait for the end of ``loop``."""
        for combine, path in _combines(loop.body, ()):
            found = _Found(combine, path, self.buffers[combine.target.buffer])
            local = found.buffer.role == "local" and all(isinstance(size, int) for size in found.buffer.dims)
            inner = [sweep.source.variable for sweep in path]
            fixed = not mentions(combine.target, loop.source.variable)
            if local and fixed and all(mentions(combine.target, v) for v in inner) and _alone(loop, found):
                yield found

    def _deferred(self, loop: Sweep, found: _Found, anew: bool) -> tuple[tuple[Node, ...], Sweep, tuple[Node, ...]]:
        """What comes before ``loop``, the loop, and what comes behind it."""
        combine = found.combine
        identity = OPS[combine.op].identity
        assert identity is not None, f"{combine.op} does not reduce"
        name = next(n for k in count(1) if (n := f"{found.name}_own{k if k > 1 else ''}") not in self.buffers)
        self.buffers[name] = Buffer(name, found.buffer.dims, "local")
        self.own[name] = combine.dim

        def own(place: Load) -> Load:
            return replace(place, buffer=name)

        def changed(leaf: Leaf) -> tuple[Leaf, ...]:
            if leaf is combine:
                return (Accumulate(own(combine.target), combine.op, combine.share),)
            if isinstance(leaf, Assign) and leaf.target.buffer == found.name:
                scaled = Assign(own(leaf.target), _scaled(leaf, own(leaf.target)))
                return (scaled,) if anew else (leaf, scaled)
            return (leaf,)

        start = nested(found.path, Assign(own(combine.target), Constant(identity)))
        end = nested(found.path, replace(combine, share=own(combine.target)))
        return (Declare(name), start), replace(loop, body=with_leaves(loop.body, changed)), (end,)


def _combines(nodes: Sequence[Node], path: tuple[Sweep, ...]) -> Iterator[tuple[Combine, tuple[Sweep, ...]]]:
    for node in nodes:
        match node:
            case Sweep():
                yield from _combines(node.body, (*path, node))
            case Combine():
                yield node, path
            case _:
                pass


def _alone(loop: Sweep, found: _Found) -> bool:
    """Whether all else that ``loop`` does with the sum is to scale it, in no loop that the shares are taken along."""
    if found.name in declared_in(loop.body):
        return False
    others = [leaf for leaf in leaves_of(loop.body) if leaf is not found.combine]
    mine = [leaf for leaf in others if any(place.buffer == found.name for place, _ in touched(leaf))]
    if mine and found.combine.op != "add":
        return False
    whole = leaves_of(_not_along(loop.body, found.combine.dim))
    return all(isinstance(leaf, Assign) and _factor(leaf) is not None and leaf in whole for leaf in mine)


def _factor(leaf: Assign) -> Scalar | None:
    """What ``leaf`` scales its target by, if it does nothing else."""
    match leaf.value:
        case Apply("mul", (target, factor)) if target == leaf.target and not reads(factor, leaf.target.buffer):
            return factor
        case _:
            return None


def _scaled(leaf: Assign, place: Load) -> Scalar:
    factor = _factor(leaf)
    assert factor is not None, "what touches a deferred sum scales it"
    return Apply("mul", (place, factor))


def _not_along(nodes: Sequence[Node], dim: str) -> tuple[Node, ...]:
    """``nodes`` without the loops that threads along ``dim`` share out."""
    return tuple(
        replace(node, body=_not_along(node.body, dim)) if isinstance(node, Sweep) else node
        for node in nodes
        if not (isinstance(node, Sweep) and node.dim == dim)
    )


def _starts_anew(before: Sequence[Node], found: _Found) -> bool:
    """Whether the sum is declared among the nodes ``before`` the loop, and only set to the identity there."""
    if found.name not in {node.buffer for node in before if isinstance(node, Declare)}:
        return False
    mine = [leaf for leaf in leaves_of(before) if any(place.buffer == found.name for place, _ in touched(leaf))]
    identity = OPS[found.combine.op].identity
    return all(isinstance(leaf, Assign) and leaf.value == Constant(identity or 0.0) for leaf in mine)
