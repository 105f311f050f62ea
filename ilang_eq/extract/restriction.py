"""A space with fewer nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ilang_eq.rewrites.space import ClassId, EClass, Space, Variant


def restricted(space: Space, keep: Callable[[ClassId, int], bool]) -> Space:
    """``space`` with only the nodes to keep, and what they need."""
    kept = {c: [n for n in range(len(eclass.nodes)) if keep(c, n)] for c, eclass in space.classes.items()}
    if all(len(kept[c]) == len(eclass.nodes) for c, eclass in space.classes.items()):
        return space
    classes = {c: EClass(e.axes, tuple(e.nodes[n] for n in kept[c])) for c, e in space.classes.items()}
    number = {Variant(c, old): Variant(c, new) for c, found in kept.items() for new, old in enumerate(found)}
    return replace(
        space,
        classes=classes,
        nests={number[v]: nests for v, nests in space.nests.items() if v in number},
        stagings=tuple(
            s
            if (number[s.consumer], number[s.producer]) == (s.consumer, s.producer)
            else replace(s, consumer=number[s.consumer], producer=number[s.producer])
            for s in space.stagings
            if s.consumer in number and s.producer in number
        ),
        repairs=tuple(replace(r, accumulator=number[r.accumulator]) for r in space.repairs if r.accumulator in number),
    )
