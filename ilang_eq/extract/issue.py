"""Time to issue a kernel's instructions, with every operand in the first-level cache.

Functions, which leave no slots, and beside them ceilings, of which the highest holds: instruction slots, bytes out of
the first-level cache, bytes into it, the throughput of the arithmetic units, and the chain of an accumulation that
waits for itself. Where several are nearly reached, it takes a little longer (``Machine.softness``). A term that an
inner loop does not move is charged where it last moves, as compilers hoist it.

Code is taken to be what a good compiler makes of a nest: an innermost loop runs in vectors where its places move by one
or not at all; a small nest of constant loops is unrolled, and holds what it accumulates in registers while the
loops around it reduce.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ilang_eq.extract.in_registers import inside, is_near
from ilang_eq.extract.leaves import accumulators, leaf_time, only_folds
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.stack import Stack
from ilang_eq.extract.tally import NOTHING, STRIP, Known, Time
from ilang_eq.extract.trips import Loop, Node, leaves

LOOP_SLOTS = 2.0
"""Instructions to step and test a loop."""
ENTRY_CYCLES = 8.0
"""Setting up a loop, and leaving it, beside which what follows begins: on Zen 3 three loops over rows take 10 a row.
With 4, more loops than needed are found."""
FORESEEN = 16
"""Iterations of a reduction whose end branch prediction sees, so that what follows begins meanwhile. Of tiles of
6 × 16, four and six of them one after another, each takes 30 cycles besides 6.2 for each of 16 steps on Zen 3, and 38
and 45 besides 32 steps; alone 15 to 18 with either, and 1 to 4 of 16 to 64 if it is near (``in_registers.py``)."""
Issued = dict[Hashable, list[Time]]
"""What loops take phase by phase, by what decides it."""


def issue_time(nodes: Sequence[Node], machine: Machine, known: Known = NOTHING) -> float:
    """Nanoseconds for one thread to run ``nodes`` once; ``known`` is what is known of its buffers."""
    return _block(nodes, Stack(), machine, known).all


def issue_times(loop: Loop, machine: Machine, known: Known = NOTHING, seen: Issued | None = None) -> list[Time]:
    """The same for ``loop``, phase by phase; after the phases of each loop comes what its body does between them.

    Args:
        seen: what loops took before on the same machine, to which these are added.
    """
    return _phases(loop, Stack(), machine, known, {} if seen is None else seen)


def _phases(loop: Loop, stack: Stack, machine: Machine, known: Known, seen: Issued) -> list[Time]:
    """The same inside other loops."""
    key = loop, tuple(stack.bits), stack.trips, stack.perfect, known.of(loop.buffers)
    if key not in seen:
        seen[key] = _phase_by_phase(loop, stack, machine, known, seen)
    return seen[key]


def _phase_by_phase(loop: Loop, stack: Stack, machine: Machine, known: Known, seen: Issued) -> list[Time]:
    if loop.is_phase:
        return [_loop(loop, stack, machine, known)]
    body, known = stack.enter(loop).before(loop.body), inside(loop, known)
    loops = [node for node in loop.body if isinstance(node, Loop)]
    found = [time for node in loops for time in _phases(node, body, machine, known, seen)]
    own = [node for node in loop.body if not isinstance(node, Loop)]
    stepping = loop.trips * LOOP_SLOTS / machine.issue_width
    steps = stack.iterations * (stepping + ENTRY_CYCLES) / machine.clock_ghz
    return [*found, _block(own, body, machine, known).plus(Time(steps))]


def _block(nodes: Sequence[Node], stack: Stack, machine: Machine, known: Known) -> Time:
    stack = stack.before(nodes)
    own = [node for node in nodes if not isinstance(node, Loop)]
    loops = [node for node in nodes if isinstance(node, Loop)]
    held = [_held(loop, stack, machine) for loop in loops] if len(loops) > 1 else [0.0] * len(loops)
    besides = (sum(held) - count for count in held)
    total = leaf_time(own, stack.enter(), machine, known) if own else Time()
    for loop, n in zip(loops, besides, strict=True):
        total = total.plus(_loop(loop, stack, machine, known, n))
    return total


def _held(loop: Loop, stack: Stack, machine: Machine) -> float:
    """The vectors that ``loop`` holds from one iteration around it to the next, if it is unrolled."""
    nest = loop.unrolled
    return 0.0 if nest is None else accumulators(nest[1], stack.enter(*nest[0]), machine)


def _loop(loop: Loop, stack: Stack, machine: Machine, known: Known, beside: float = 0.0) -> Time:
    """One loop, next to others that hold ``beside`` vectors."""
    nest = loop.unrolled
    if nest is not None:
        loops, body = nest
        return leaf_time(body, stack.enter(*loops, beside=beside), machine, known)
    steps = stack.iterations * loop.trips * LOOP_SLOTS / machine.issue_width
    inner = stack.enter(loop)
    body = leaves(loop.body)
    if body is None:
        body_time = _block(loop.body, inner, machine, inside(loop, known))
        if is_near(loop, known):
            return body_time
    else:
        steps /= STRIP if only_folds(body, inner) else machine.lanes
        body_time = leaf_time(body, inner, machine, known)
    return body_time.plus(Time((steps + stack.iterations * _entering(loop, machine, known)) / machine.clock_ghz))


def _entering(loop: Loop, machine: Machine, known: Known) -> float:
    """Cycles to set up ``loop`` and leave it: accumulators of a long reduction are waited for."""
    tiles = loop.reduces and any(isinstance(node, Loop) and node.unrolled is not None for node in loop.body)
    if tiles and known.near and not known.near.isdisjoint(loop.buffers):
        return 0.0
    return machine.entry_cycles if tiles and loop.trips > FORESEEN else ENTRY_CYCLES
