"""What a loop carries from one iteration to the next, if that is nothing but reductions, plain or online."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ilang_eq.lower.dependence import REDUCTIONS, shared
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, For, Index, Load
from ilang_eq.lower.walk import declared_in, loads, mentions
from ilang_eq.lower.within import Enclosed, enclosed


@dataclass(frozen=True, slots=True)
class Factor:
    """``place`` becomes e^(rate·(old − new)) whenever ``statistic`` moves."""

    place: Load
    rate: Constant
    statistic: Load

    def statistic_at(self, place: Load) -> Load | None:
        """The statistic of the factor at ``place``; None where the indices do not correspond."""
        names: dict[str, str] = {}
        for mine, theirs in zip(self.place.indices, place.indices, strict=True):
            if len(mine.variables) != len(theirs.variables) or mine.divisor != theirs.divisor:
                return None
            names |= dict(zip(mine.variables, theirs.variables, strict=True))
        indices = (Index(tuple(names.get(v, v) for v in i.variables), i.divisor) for i in self.statistic.indices)
        return Load(self.statistic.buffer, tuple(indices))


@dataclass(frozen=True, slots=True)
class State:
    """A buffer that the loop accumulates into with ``op``; ``loops`` run over its elements.

    ``statistic`` is what the element is repaired for, by a factor, whenever that has moved.
    """

    target: Load
    op: str
    loops: tuple[For, ...]
    statistic: Load | None


@dataclass(frozen=True, slots=True)
class Carried:
    """All that a loop carries; every factor's statistic is a state without a statistic."""

    states: tuple[State, ...]
    factors: tuple[Factor, ...]


def carried(loop: For) -> Carried | None:
    """What ``loop`` carries; None if its iterations depend on each other in any other way."""
    inside = list(enclosed(loop.body))
    factors = {factor.place.buffer: factor for e in inside if (factor := _factor(e)) is not None}
    states = {name: _state(name, inside, factors, loop) for name in shared(loop)}
    found = [state for state in states.values() if state is not None]
    statistics = [factor.statistic.buffer for factor in factors.values()]
    if len(found) < len(states) or len(set(statistics)) < len(statistics):
        return None
    if not set(factors) <= set(declared_in(loop.body)) or any(
        s.statistic and s.target.buffer in statistics for s in found
    ):
        return None
    if not set(statistics) <= set(states) or not _separate(inside, set(states), factors, found, loop):
        return None
    return Carried(tuple(found), tuple(factors.values()))


def _factor(update: Enclosed) -> Factor | None:
    match update.statement:
        case Assign(place, Apply("shift_factor", (Constant() as rate, Load() as old, Load() as new))) if old == place:
            return Factor(place, rate, new)
        case _:
            return None


def _state(name: str, inside: Sequence[Enclosed], factors: Mapping[str, Factor], loop: For) -> State | None:
    """The state of one buffer: accumulated into at one place, rescaled at one at most."""
    mine = [e for e in inside if e.statement.target.buffer == name]
    repairs = [(e, by) for e in mine if (by := _rescale(e)) is not None and by.buffer in factors]
    match [e for e in mine if e not in [repair for repair, _ in repairs]], repairs:
        case [Enclosed(Accumulate(target, op)) as sum], [] if op in REDUCTIONS:
            state = State(target, op, sum.moving().around, None)
        case [Enclosed(Accumulate(_, "add" | "max" | "min" as op))], [(repair, by)]:
            state = State(repair.statement.target, op, repair.moving().around, factors[by.buffer].statistic_at(by))
            if state.statistic is None:
                return None
        case _:
            return None
    return None if any(mentions(e.statement.target, loop.variable) for e in mine) else state


def _rescale(update: Enclosed) -> Load | None:
    """By what ``update`` multiplies its target in place; None if it does anything else."""
    match update.statement:
        case Assign(target, Apply("mul", (Load() as old, Load() as by))) if old == target:
            return by
        case _:
            return None


def _separate(
    inside: Sequence[Enclosed],
    names: set[str],
    factors: Mapping[str, Factor],
    states: Sequence[State],
    loop: For,
) -> bool:
    """Whether a state is read only where a factor repairs what becomes of it, and nothing else depends on one."""
    private = set(declared_in(loop.body))
    repaired = {s.target.buffer: {s.statistic.buffer} for s in states if s.statistic is not None}
    partial: dict[str, set[str]] = {name: set() for name in private}
    # twice: a local of the body may be read before the statement that writes it in the text
    for e in (*inside, *inside):
        target, read = e.statement.target.buffer, {load.buffer for load in loads(e.statement.value)}
        if target in factors or (_rescale(e) is not None and read & set(factors)):
            continue
        if read & set(factors):
            return False
        depends = (read & names) | {s for name in read & private for s in partial[name]}
        if target in private:
            partial[target] |= depends
        elif not depends <= repaired.get(target, set()):
            return False
    return all(_follows(e, factors) for e in inside if e.statement.target.buffer in factors)


def _follows(update: Enclosed, factors: Mapping[str, Factor]) -> bool:
    """Whether ``update`` of a factor is one of the two it is made by: what the statistic was, and how far it moved."""
    factor = factors[update.statement.target.buffer]
    match update.statement:
        case Assign(_, Load(buffer)):
            return buffer == factor.statistic.buffer
        case _:
            return _factor(update) is not None
