"""What it takes to find the addresses of pages, where rows have gaps between them (papers_notes/ecm.md)."""

from __future__ import annotations

from dataclasses import replace

from ilang_eq.extract.footprint import Traffic, TranslationBuffer
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.nest_cost import NS, NestCost, Part
from ilang_eq.extract.regions import Region

_AGAIN = 2.4
"""Cycles to read a line in two parts once more, on Cascade Lake."""


def translations(machine: Machine) -> tuple[tuple[int, float, float], ...]:
    """The page addresses that each level of a core's translation buffer holds, and what it takes to find another.

    That is nanoseconds, less what an out-of-order core hides; and the cycles that each split line in such a page takes
    again (papers_notes/ecm.md).
    """
    return (64, 0.2, _AGAIN * machine.split_again), (1536, machine.walk_ns, 0.0)


def finding_pages(cost: NestCost, region: Region, machine: Machine, share: float) -> NestCost:
    """``cost`` with what it takes to find the pages of rows with gaps between them."""
    if not region.gaps:
        return cost
    seconds = [0.0] * region.count
    for entries, each, repeated in translations(machine):
        for phase, found in enumerate(region.phases(TranslationBuffer(entries))):
            pages = Traffic.total(found.values())
            seconds[phase] += (pages.bytes * each + pages.apart * repeated / machine.clock_ghz) * share * NS
    cost = replace(cost, stall=cost.stall + (1.0 - machine.hides) * sum(seconds))
    if not machine.hides:
        return cost
    hidden = (Part("pages", each * machine.hides, each * machine.hides) for each in seconds)
    phases = [(*parts, part._replace(shares=parts[0].shares)) for parts, part in zip(cost.phases, hidden, strict=False)]
    return replace(cost, phases=(*phases, *cost.phases[len(phases) :]))
