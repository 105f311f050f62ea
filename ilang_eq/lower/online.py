"""Online reductions: which reads see a reduction under way, and what repairs the values accumulated from them.

A statistic x read inside its own reduction loop is partial. Everything computed from it there must end in an
accumulator that restarts with the same loop and whose value separates from x (``forms.py``). Two repairs follow:

  * deferred: accumulate u alone (x reads as 1, or as 0 for a pure shift) and apply x once, after the loop.
    No partial x is ever divided by, so a partial sum that passes through zero does no harm.
  * eager: u·e^(rate·x) would overflow if x were left out; the accumulator is multiplied by
    e^(rate·(x' − x)) each time x moves to x'. Infinite x reads as 0, and is put right after the loop, so
    that −inf − (−inf) never arises inside. Only an extremum will do, and only in the direction that makes the
    factor at most 1: what has underflowed does not grow back. And only of what is raised itself (``sums.py``):
    e^(v − x) may overflow before x is its maximum, unless that is the maximum of v; what has overflowed stays so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import product
from typing import Literal as Choice

from ilang_eq.lang.expr import Access, Literal
from ilang_eq.lower.forms import FREE, Factor, Form, apply_form, raises, read_form, reduce_form
from ilang_eq.lower.ir import Correction
from ilang_eq.lower.nest import Block, Instance, NestLoop
from ilang_eq.lower.staging import KernelNest, StagingError
from ilang_eq.lower.sums import Sums, bounded, lowers, scaled

Kind = Choice["max-shift", "divisor", "shift", "scale"]


class Stand(Enum):
    """What stands for a partial statistic where it is read."""

    ONE = "one"
    ZERO = "zero"
    FINITE = "finite"


@dataclass(frozen=True, slots=True)
class Repair:
    """``accumulator`` is put right for ``statistic``: by ``factor``, or by adding ``shift`` times it.

    ``rows`` are the accumulator's axes that index the statistic's dimensions. Eager where the factor has a rate.
    ``divided``: the statistic is divided by on the way.
    """

    accumulator: Instance
    statistic: Instance
    rows: str
    factor: Factor
    shift: float
    divided: bool

    @property
    def eager(self) -> bool:
        """Whether the accumulator must follow the statistic step by step."""
        return self.factor.rate != 0

    @property
    def kind(self) -> Kind:
        """The reference's name where it has one."""
        if self.eager:
            return "max-shift" if self.statistic.expr.op == "max" else "shift"
        if self.shift:
            return "shift"
        return "divisor" if self.factor.power < 0 else "scale"

    @property
    def stand(self) -> Stand:
        """What partial reads of the statistic become on the way to this accumulator."""
        extremum = self.statistic.expr.op in ("max", "min")
        if self.eager or (extremum and not self.shift and not self.factor.power and not self.divided):
            return Stand.FINITE
        return Stand.ZERO if self.shift else Stand.ONE


@dataclass(slots=True)
class Online:
    """The repairs of one kernel, and what stands for each partial read, by (reader, operand)."""

    repairs: list[Repair] = field(default_factory=list)
    stands: dict[tuple[Instance, int], Stand] = field(default_factory=dict)

    def corrections(self) -> list[Correction]:
        """The repairs, as leaf numbers."""
        return [Correction(r.accumulator.node, r.statistic.node, r.kind) for r in self.repairs]


@dataclass(slots=True)
class _Analysis:
    nest: KernelNest
    sums: Sums
    forms: dict[Instance, dict[Instance, Form | None]] = field(default_factory=dict)
    entries: dict[Instance, dict[Instance, frozenset[tuple[Instance, int]]]] = field(default_factory=dict)


def find_repairs(nest: KernelNest, sums: Sums) -> Online:
    """Derive every repair, or raise StagingError where a partial value cannot be repaired."""
    online, analysis = Online(), _Analysis(nest, sums)
    for instance in _by_dependence(nest):
        for site in partial_sites(nest, instance):
            _require_unbroken(nest, instance, site)
        forms = _forms(analysis, instance)
        for statistic in list(forms):
            _settle(analysis, online, instance, statistic, forms)
        analysis.forms[instance] = forms
    for repair in online.repairs:
        if repair.eager and any(r.accumulator is repair.statistic for r in online.repairs):
            raise _refusal(nest, repair.statistic, "it is itself repaired, so that it moves unseen or the other way")
    return online


def _by_dependence(nest: KernelNest) -> list[Instance]:
    """Producers before their readers."""
    done: dict[Instance, None] = {}

    def visit(instance: Instance) -> None:
        if instance not in done:
            for read in instance.reads:
                if read.producer is not None:
                    visit(read.producer)
            done[instance] = None

    for instance in nest.instances:
        visit(instance)
    return list(done)


def _forms(analysis: _Analysis, instance: Instance) -> dict[Instance, Form | None]:
    """How the value about to be stored depends on each partial statistic (before any reduction)."""
    home = instance.home
    assert home is not None
    found: dict[Instance, list[Form | None]] = {}
    entries: dict[Instance, set[tuple[Instance, int]]] = {}
    for k, read in enumerate(instance.reads):
        producer = read.producer
        if producer is None or not isinstance(read.operand, Access):
            continue
        inherited = {s: f for s, f in analysis.forms[producer].items() if home.inside(s.start)}
        for statistic, form in inherited.items():
            renamed = form and _renamed(form, producer.expr.output, read.operand.axes)
            _put(found, statistic, len(instance.reads), k, renamed)
            entries.setdefault(statistic, set()).update(analysis.entries[producer][statistic])
        if home.inside(producer.start):
            _put(found, producer, len(instance.reads), k, read_form(read.operand.axes))
            entries.setdefault(producer, set()).add((instance, k))
    analysis.entries[instance] = {s: frozenset(e) for s, e in entries.items()}
    if instance.expr.reduced:
        return {s: forms[0] for s, forms in found.items()}
    return {
        s: apply_form(instance.expr, tuple(forms), raises(instance.expr, forms) and _bounded(analysis, instance, s))
        for s, forms in found.items()
    }


def _bounded(analysis: _Analysis, power: Instance, statistic: Instance) -> bool:
    """Whether an exponent with ``statistic`` in it is at most what it is at the element that decides the statistic."""
    sums = analysis.sums
    base = power.expr.operands[0]
    falls = len(power.expr.operands) == 2 and isinstance(base, Literal) and base.value < 1
    exponent = scaled(sums.read(power.node, -1), -1 if falls else 1)
    ((atom, _),) = sums.of_node[statistic.node]
    terms = [term for term, c in exponent.items() if term[0] == atom and lowers(sums, term, c)]
    if len(terms) != 1:
        return False
    bound = sums.bound[statistic.node]
    return bounded(sums, exponent, terms[0], _elements(analysis.nest, power, statistic, bound))


def _elements(nest: KernelNest, reader: Instance, statistic: Instance, reduced: str) -> Iterator[tuple[str, ...]]:
    """Which axes of ``reader`` may stand for the ``reduced`` ones: the statistic has seen the element there."""
    sites = partial_sites(nest, statistic)

    def along(axis: str) -> list[str]:
        shared = [(n, loop) for n, loop in enumerate(statistic.loops[axis]) if any(s.inside(loop) for s in sites)]
        return [a for a, loops in reader.loops.items() if all(loop in loops[n : n + 1] for n, loop in shared)]

    return product(*map(along, reduced))


def _put(found: dict[Instance, list[Form | None]], statistic: Instance, arity: int, k: int, form: Form | None) -> None:
    found.setdefault(statistic, [FREE] * arity)[k] = form


def _renamed(form: Form, output: str, axes: str) -> Form | None:
    """A producer's form in its reader's axis names; a row axis that was reduced away leaves none."""
    if form is FREE:
        return form
    if any(axis not in output for axis in form.rows):
        return None
    return replace(form, rows="".join(axes[output.index(axis)] for axis in form.rows))


def _settle(
    analysis: _Analysis, online: Online, instance: Instance, statistic: Instance, forms: dict[Instance, Form | None]
) -> None:
    """Decide what becomes of ``instance``'s dependence on ``statistic``: repaired here, passed on, or refused."""
    nest, loop, form = analysis.nest, statistic.start, forms[statistic]
    assert loop is not None
    if instance.expr.reduced:
        form = reduce_form(instance.expr, form)
    if instance.expr.reduced and instance.start is loop:
        if form is None:
            raise _refusal(nest, statistic, f"`{instance.expr}` accumulates a value that does not separate from it")
        if form is not FREE:
            _repair(analysis, online, instance, statistic, form)
        del forms[statistic]
    elif instance.block.inside(loop):
        forms[statistic] = form
    else:
        why = "it is read before its reduction is complete, and no later reduction in the same loop can repair that"
        raise _refusal(nest, statistic, why)


def _repair(analysis: _Analysis, online: Online, instance: Instance, statistic: Instance, form: Form) -> None:
    nest = analysis.nest
    factor = form.factor if instance.expr.op == "add" or form.shift is None else None
    repair = Repair(
        instance,
        statistic,
        form.rows,
        factor or Factor(),
        form.shift or 0.0 if factor is None else 0.0,
        form.divided,
    )
    if (repair.factor.power or repair.divided) and repair.factor.rate:
        raise _refusal(nest, statistic, "it enters both as a factor and in an exponent")
    if repair.eager and not _shrinks(repair):
        why = f"as it moves, what `{instance.expr}` has accumulated may have to grow, after it has underflowed"
        raise _refusal(nest, statistic, why)
    if not form.tame:
        why = f"`{instance.expr}` accumulates powers that may overflow on the way: what is raised must be bounded by it"
        raise _refusal(nest, statistic, why)
    _require_rows(nest, repair)
    if repair.eager or repair.factor.power or repair.shift:
        online.repairs.append(repair)
    for entry in analysis.entries[instance][statistic]:
        if online.stands.setdefault(entry, repair.stand) is not repair.stand:
            raise _refusal(nest, statistic, "two accumulators need it repaired in different ways")


def _shrinks(repair: Repair) -> bool:
    """Whether e^(rate·(x' − x)) is at most 1 however the statistic moves."""
    match repair.statistic.expr.op:
        case "max":
            return repair.factor.rate < 0
        case "min":
            return repair.factor.rate > 0
        case _:
            return False


def _require_rows(nest: KernelNest, repair: Repair) -> None:
    """Each element of the accumulator belongs to one row of the statistic, at every step."""
    a, p = repair.accumulator, repair.statistic
    shared = {loop for loop in _reduced_rides(p) if any(site.inside(loop) for site in partial_sites(nest, p))}
    if shared - set(_reduced_rides(a)):
        raise _refusal(nest, p, f"`{a.expr}` does not reduce over all the loops that it is reduced over")
    sites = partial_sites(nest, p)
    if repair.eager and len(sites) > 1:
        raise _refusal(nest, p, "it is read at several sites there, so that no single repair serves")
    blocks = [p.storage, *sites] if repair.eager else [p.storage]
    for axis, row in zip(p.expr.output, repair.rows, strict=True):
        for block in blocks:
            mine = [loop for loop in p.loops[axis] if loop is not None and block.inside(loop)]
            theirs = [loop for loop in a.loops[row] if loop is not None and block.inside(loop)]
            if mine != theirs:
                raise _refusal(nest, p, f"`{a.expr}` runs their common axis {row} in other loops")


def _reduced_rides(instance: Instance) -> list[NestLoop]:
    """The loops of reduced axes, fused and own."""
    return [loop for axis in instance.expr.reduced for loop in instance.loops[axis] if loop is not None]


def partial_sites(nest: KernelNest, statistic: Instance) -> list[Block]:
    """The sites inside its own reduction loop at which ``statistic`` is read, while it is partial."""
    reads = (read for instance in nest.instances for read in instance.reads if read.producer is statistic)
    sites = [read.site for read in reads if read.site is not None and read.site.inside(statistic.start)]
    return [site for n, site in enumerate(sites) if not any(site is other for other in sites[:n])]


def _require_unbroken(nest: KernelNest, statistic: Instance, site: Block) -> None:
    """Between the start of a running reduction and its update there may be no loop that is not its own."""
    rides = set(statistic.rides())
    for loop in _between(site, statistic.start):
        if loop not in rides:
            why = f"it would be updated again in every step of loop {loop.variable}, which it does not have"
            raise _refusal(nest, statistic, why)


def _between(block: Block, start: NestLoop | None) -> list[NestLoop]:
    """The loops around ``block`` from ``start`` inwards."""
    loops: list[NestLoop] = []
    for loop in block.path():
        loops.append(loop)
        if loop is start:
            break
    return loops


def _refusal(nest: KernelNest, statistic: Instance, why: str) -> StagingError:
    reader, operand = next(
        ((i.node, k) for i in nest.instances for k, read in enumerate(i.reads) if read.producer is statistic),
        (statistic.node, None),
    )
    text = f"`{statistic.expr}` is staged inside the loop it is reduced over: {why}"
    return StagingError(text, nest.graph, reader, operand)
