"""The cost models of a target: what the search proposes for, and what judges the lowered programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ilang_eq.extract.footprint import FITS, Extents
from ilang_eq.extract.full_model import Cost, Costed, Model, program_cost
from ilang_eq.extract.machine import Machine, detect
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.shapes import Dimension
from ilang_eq.lower.ir import Precision, Program

_KEEPS = 0.25
"""The share of a shared cache that keeps what threads store, beyond doubt: on Zen 3 attention of 1024×128 takes 6.4 ms
where it stores 4.4 MB, a seventh of that cache, and 8.2 with what costs 1.1 % more and stores little."""

_PIECES = 4
"""Pieces of a component, with extents of their own, of which is known what was costed: they are searched in turn."""


class Models(NamedTuple):
    """What a search for one target goes by.

    Args:
        machine: what the additive model proposes schedules for.
        threads: how many threads run at once on it.
        judge: the cost of a lowered program at some extents; just ``most`` seconds, if it is certain to take more.
        variants: of a proposed schedule, itself first, that are judged too.
        kept: the bytes of intermediate results of which it is in doubt whether they stay near.
        near: those that stay in the nearest cache, beyond doubt.
        shared: those that stay in a cache that cores share, beyond doubt.
        collapses: whether axes side by side run as one (``lower/collapsing.py``).
    """

    machine: Machine
    threads: int
    judge: Model
    variants: Callable[[Graph], Iterable[Graph]] = lambda graph: (graph,)
    kept: float = math.inf
    near: float = 0.0
    shared: float = 0.0
    collapses: bool = False


def _on_this_processor(threads: int, precision: Precision) -> Models:
    """There is one precision."""
    del precision
    machine = detect()
    own = max((level.bytes for level in machine.levels if not level.shared), default=0.0)
    shared = max((level.bytes for level in machine.levels[:-1] if level.shared), default=0.0)

    @lru_cache(maxsize=_PIECES)
    def known(extents: frozenset[tuple[Dimension, int]]) -> Costed:
        del extents
        return Costed()

    def judge(program: Program, extents: Extents, most: float = math.inf) -> Cost:
        return program_cost(program, extents, machine, threads, known(frozenset(extents.items())), most)

    near, share = machine.levels[0].bytes * FITS, shared * _KEEPS / threads
    return Models(machine, threads, judge, kept=own, near=near, shared=share, collapses=True)


def _on_a_gpu(threads: int, precision: Precision) -> Models:
    """Threads are the device's own affair."""
    from ilang_eq.extract.gpu_cores import core_variants, in_registers
    from ilang_eq.extract.gpu_machine import as_processor, chosen_gpu
    from ilang_eq.extract.gpu_model import gpu_cost
    from ilang_eq.extract.gpu_staging import variants

    gpu = chosen_gpu()

    def judge(program: Program, extents: Extents, most: float = math.inf) -> Cost:
        del most
        return gpu_cost(replace(program, precision=precision), extents, gpu)

    further = in_registers if precision == "float32" else core_variants

    def wanted(graph: Graph) -> Iterable[Graph]:
        return dict.fromkeys((*variants(graph), *further(graph)))

    # what blocks store is in the model's own account: nothing speaks for storing less than it says
    return Models(as_processor(gpu), gpu.sms, judge, wanted, kept=0.0)


MODELS: dict[str, Callable[[int, Precision], Models]] = {"c": _on_this_processor, "cuda": _on_a_gpu}
"""By target: its models for a number of processor threads, and for how factors of summed products may be rounded."""
