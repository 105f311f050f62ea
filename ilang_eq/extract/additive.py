"""The additive model: a schedule's cost as a sum over classes and pairs of classes, so that elimination is exact.

A class pays for its own loops, the arguments it reads and its buffer; a reader pays for fetching what others computed,
and for repairing what it read unfinished. Work is that of the busiest thread.

Invariants of ``AdditiveModel``:
  * variable n is ``structure.classes[n]``; value 0 of an optional class is None: not computed
  * a finite total is a legal schedule; every state of a domain fits some state of every neighbour
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from ilang_eq.extract import expression_cost as cost
from ilang_eq.extract.assemble import Schedule
from ilang_eq.extract.domains import BREADTHS, Breadth, Domain, Estimate, Row, grow, written_last
from ilang_eq.extract.elimination import Choice, Table
from ilang_eq.extract.fusions import Argument, Computed, Fusion
from ilang_eq.extract.rows import Costs, Knobs, Mask, Numbers, Processor, Rows, SizedRows
from ilang_eq.extract.states import State, Unfinished, brings, depths, read_at
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import Apply, AxisId, ClassId, Nest, Reduce, Variant

_EAGER = ("max-shift", "scale")
"""Repairs that follow the statistic step by step; the others are made once."""


@dataclass(frozen=True, slots=True)
class _Of:
    """The states of one fusion, in its class's domain; ``serial`` and ``kernels`` are columns of booleans."""

    fusion: Fusion
    places: Numbers
    states: tuple[State, ...]
    rows: Rows
    serial: Mask
    kernels: Mask

    @property
    def kinds(self) -> tuple[tuple[int, bool], ...]:
        """What states cost besides their loops depends on: their sites, and whether one thread runs their kernels."""
        return tuple((state.site, state.serial) for state in self.states)

    def shared_out(self, sized: SizedRows, work: Costs) -> Costs:
        """The busiest thread's part of ``work``."""
        return work * np.where(self.serial, 1.0, sized.share)


@dataclass(frozen=True, slots=True)
class _Reads:
    """Pairs of states in which those of one fusion find a class in the same way.

    Args:
        rows: the reader's row of each pair.
        readers, producers: their states, in the domains of their classes.
    """

    of: _Of
    found: _Found
    rows: Numbers
    readers: Numbers
    producers: Numbers


@dataclass(frozen=True)
class AdditiveModel:
    """The cost of every schedule of a space, as tables for ``eliminate``.

    Args:
        structure: the space.
        processor: what it runs on.
        domains: the states of every class.
        sites: for every (reader, class read) and pair of their states, where the one reads the other, -1 if nowhere.
    """

    structure: Structure
    processor: Processor
    domains: dict[ClassId, Domain]
    sites: dict[tuple[ClassId, ClassId], Numbers]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of states of every variable."""
        return tuple(len(self.domains[c]) for c in self.structure.classes)

    @cached_property
    def _by_fusion(self) -> dict[ClassId, tuple[_Of, ...]]:
        return {c: tuple(_grouped(self.structure, domain)) for c, domain in self.domains.items()}

    @cached_property
    def _edges(self) -> dict[tuple[ClassId, ClassId], tuple[_Reads, ...]]:
        found = {c: _Found.of(self.structure, domain) for c, domain in self.domains.items()}
        return {
            (r, x): tuple(
                reads
                for of in self._by_fusion[r]
                if x in self.structure.reads(of.fusion)
                for reads in _reads(of, self.sites[r, x], found[x])
            )
            for r, x in self.sites
        }

    def needed(self, choice: Choice) -> dict[ClassId, int]:
        """The states of the classes that the outputs need."""
        found: dict[ClassId, int] = {}
        stack = list(self.structure.layouts)
        while stack:
            c = stack.pop()
            if c not in found:
                found[c] = choice[self.structure.places[c]]
                state = self.domains[c][found[c]]
                stack.extend(self.structure.reads(state.fusion) if state is not None else ())
        return found

    def schedule(self, choice: Choice) -> Schedule:
        """``choice`` as far as the outputs need it, without tiles."""
        needed = self.needed(choice)
        states = {c: state for c, n in needed.items() if (state := self.domains[c][n]) is not None}
        sites = {
            (c, x): int(self.sites[c, x][needed[c], needed[x]])
            for c, state in states.items()
            for x in self.structure.reads(state.fusion)
        }
        return Schedule(states, sites, {})

    def only(self, chosen: Mapping[ClassId, int]) -> AdditiveModel:
        """The model of one choice: what is not ``chosen`` is not computed."""
        domains = {c: (self.domains[c][chosen[c]],) if c in chosen else (None,) for c in self.structure.classes}
        sites = {
            (r, x): where[np.ix_([chosen[r]], [chosen[x]])]
            for (r, x), where in self.sites.items()
            if r in chosen and x in chosen
        }
        return AdditiveModel(self.structure, self.processor, domains, sites)

    def tables(self, knobs: Knobs) -> list[Table]:
        """Every table, in nanoseconds, at the tile choices ``knobs``."""
        sized = {of.fusion: of.rows.at(knobs, self.processor) for found in self._by_fusion.values() for of in found}
        own = [self._own(c, sized, knobs.points) for c in self.structure.classes]
        return [*own, *(self._edge(edge, sized, knobs.points) for edge in self.sites)]

    def paid(self, c: ClassId, points: int, size: Callable[[Rows], SizedRows]) -> Costs:
        """(points,): what class ``c`` pays in the model of one choice, by itself and for what it reads.

        Args:
            size: the loops of a fusion under the tile choices.
        """
        sized = {of.fusion: size(of.rows) for of in self._by_fusion[c]}
        edges = (self._edge(edge, sized, points) for edge in self.sites if edge[0] == c)
        return np.sum([table.values.reshape(-1) for table in (self._own(c, sized, points), *edges)], axis=0)

    def _own(self, c: ClassId, sized: Mapping[Fusion, SizedRows], points: int) -> Table:
        total = np.zeros((len(self.domains[c]), points))
        for of in self._by_fusion[c]:
            total[of.places] = self._alone_once(of, sized[of.fusion])
        return Table((self.structure.places[c],), total)

    def _alone_once(self, of: _Of, sized: SizedRows) -> Costs:
        """The same of states that differ in their ties alone."""
        return sized.once(("alone", of.fusion, of.kinds), lambda: self._alone(of, sized))

    def _alone(self, of: _Of, sized: SizedRows) -> Costs:
        """What the states of one fusion cost but for what they read of others."""
        machine = self.processor.machine
        demand = inside(self.structure, of.fusion, sized)
        sites = np.array([s.site for s in of.states])
        for site in sorted(set(sites.tolist())):
            at = sites == site
            demand[:, at] += writing(self.structure, of.fusion, sized, site)[:, at]
        fork = np.where(of.serial, 0.0, machine.fork_join_us if self.processor.threads > 1 else 0.0)
        work = of.shared_out(sized, cost.time(demand))
        every_call = work + np.where(of.kernels, 1000 * (machine.kernel_us + fork), 0.0)
        return np.where(self._ahead(of), 0.0, every_call)

    def _ahead(self, of: _Of) -> Mask:
        """(states, 1): which states are computed before any call; a staged copy can be, if its reader lets go of it."""
        c = of.fusion.root.of
        alone = of.kernels[:, 0] if c in self.structure.ahead else np.zeros(len(of.states), dtype=np.bool_)
        return (alone | (c in self.structure.panels))[:, None]

    def _edge(self, edge: tuple[ClassId, ClassId], sized: Mapping[Fusion, SizedRows], points: int) -> Table:
        """What every state of a reader pays for every state of the class it reads."""
        reader, x = edge
        values = np.repeat(np.where(self.sites[edge] < 0, np.inf, 0.0)[:, :, None], points, axis=2)
        for reads in self._edges[edge]:
            paid = self._reading_once(reads.of, sized[reads.of.fusion], x, reads.found)
            values[reads.readers, reads.producers] = paid[reads.rows]
        return Table((self.structure.places[reader], self.structure.places[x]), values)

    def _reading_once(self, of: _Of, sized: SizedRows, x: ClassId, found: _Found) -> Costs:
        """What the states of a fusion pay at every call for class ``x``, as ``found``."""
        key = ("reading", of.fusion, of.kinds, x, found)
        return sized.once(key, lambda: np.where(self._ahead(of), 0.0, self._reading(of, sized, x, found)))

    def _reading(self, of: _Of, sized: SizedRows, x: ClassId, found: _Found) -> Costs:
        """What the states of a fusion pay for class ``x``."""
        total = np.zeros(sized.shape)
        for operand in self.structure.sources(of.fusion):
            if isinstance(operand, Computed) and operand.of == x:
                axes = operand.names(self.structure.axes(x))
                last = None if found.last is None else operand.names((found.last,))[0]
                demand = cost.reading(sized, axes, [last] * len(of.states), found.site)
                total += cost.added(demand)
        for wait in sorted(found.waits):
            total += self._repairing(of, sized, wait)
        if found.site:
            total -= self._still_cached(of, sized, x, found.site)
        return of.shared_out(sized, total)

    def _still_cached(self, of: _Of, sized: SizedRows, x: ClassId, site: int) -> Costs:
        """What a fusion saves on arguments that ``x``, computed just before inside ``site`` loops, has read as well.

        Of several classes that have, the last one counts.
        """
        saved = np.zeros(sized.shape)
        for operand in self.structure.sources(of.fusion):
            if isinstance(operand, Argument):
                before = [c for c in self.structure.reads(of.fusion) if operand in self._read_by_all[c]]
                if x == max(before, key=self.structure.places.__getitem__, default=None):
                    less = np.maximum(0.0, sized.caching(operand.axes, 0) - sized.caching(operand.axes, site))
                    saved += cost.saved(less)
        return saved

    @cached_property
    def _read_by_all(self) -> dict[ClassId, frozenset[Argument]]:
        """The arguments that every way to compute a class reads."""
        found: dict[ClassId, frozenset[Argument]] = {}
        for c in self.structure.classes:
            sources = [self.structure.sources(fusion) for fusion in self.structure.fusions(c)]
            read = [{operand for operand in operands if isinstance(operand, Argument)} for operands in sources]
            found[c] = frozenset(set.intersection(*read)) if read else frozenset()
        return found

    def _repairing(self, of: _Of, sized: SizedRows, wait: Unfinished) -> Costs:
        """Following ``wait.statistic``, where a state reduces over the loop that it starts at."""
        root = of.fusion.root
        if self.structure.repairs.get((root, wait.statistic.of)) not in _EAGER:
            return np.zeros(sized.shape)
        reduced = self.structure.reduced(root)
        deep = [len(s.nest) >= wait.depth and wait.starts_at(self.structure, s.nest) in reduced for s in of.states]
        mine, theirs = self.structure.axes(root.of), self.structure.axes(wait.statistic.of)
        each = cost.rescaling(sized, mine, theirs, min(wait.depth, sized.rows.width))
        return np.where(np.array(deep)[:, None], each, 0.0)


@dataclass(frozen=True, slots=True)
class _Found:
    """How a reader finds a value: in a buffer at ``site``, contiguous along ``last``, waiting for ``waits``."""

    site: int
    last: AxisId | None
    waits: frozenset[Unfinished]

    @staticmethod
    def of(structure: Structure, producers: Domain) -> dict[_Found, Numbers]:
        """The different ways to find a class, each with the states that are found so."""
        found: dict[_Found, list[int]] = {}
        for n, producer in enumerate(producers):
            if producer is not None:
                last = written_last(structure, producer.root, producer.order)
                for depth in depths(structure, producer) if producer.site else (0,):
                    waits = brings(structure, producer, depth).waits if depth else frozenset()
                    found.setdefault(_Found(depth, last, waits), []).append(n)
        return {key: np.array(states, dtype=np.int64) for key, states in found.items()}


def _reads(of: _Of, sites: Numbers, found: Mapping[_Found, Numbers]) -> Iterator[_Reads]:
    for key, producers in found.items():
        rows, columns = np.nonzero(sites[np.ix_(of.places, producers)] == key.site)
        if len(rows):
            yield _Reads(of, key, rows, of.places[rows], producers[columns])


def estimator(structure: Structure, processor: Processor, knobs: Knobs) -> Estimate:
    """What loops take at the tile choices ``knobs``, found out once for all models of a space."""

    @cache
    def estimate(fusion: Fusion, rows: tuple[Row, ...]) -> tuple[Costs, Costs]:
        reduced = frozenset(structure.reduced(fusion.root))
        sized = Rows(structure.loops(fusion.root), rows, reduced).at(knobs, processor)
        demand = inside(structure, fusion, sized) + writing(structure, fusion, sized, 0)
        innermost = sized.rows.innermost.tolist() if sized.rows.loops else [None] * len(rows)
        for operand in structure.sources(fusion):
            if isinstance(operand, Computed):
                demand += cost.reading(sized, operand.names(structure.axes(operand.of)), innermost, 0)
        return cost.time(demand), sized.share

    return estimate


def build(
    structure: Structure, processor: Processor, estimate: Estimate, breadth: Breadth = BREADTHS[0]
) -> AdditiveModel:
    """The model of a space; states that look alike are compared by ``estimate``.

    Raises:
        TooWide: there are far too many states for elimination.
    """
    domains = grow(structure, estimate, breadth)
    alike = {c: _without_orders(domain) for c, domain in domains.items()}
    sites = {(r, x): _sites(structure, alike[r], alike[x], x) for r, x in structure.edges}
    alive = _supported(domains, sites)
    kept = {c: tuple(s for s, keep in zip(domain, alive[c], strict=True) if keep) for c, domain in domains.items()}
    return AdditiveModel(
        structure, processor, kept, {(r, x): where[np.ix_(alive[r], alive[x])] for (r, x), where in sites.items()}
    )


def inside(structure: Structure, fusion: Fusion, sized: SizedRows) -> cost.Demand:
    """Running all members of ``fusion``, and fetching what they read of the component's arguments."""
    demand = cost.looping(sized)
    for rate in rates_of(structure, fusion):
        demand += cost.computing(sized, rate)
    for operand in structure.sources(fusion):
        if isinstance(operand, Argument) and operand.axes:
            demand += cost.fetching(sized, operand.axes, structure.batch)
    return demand


def rates_of(structure: Structure, fusion: Fusion) -> list[str]:
    """The rates of the operations of ``fusion``; a product in a sum of products is one with the sum."""
    fused = {member for member in fusion.members if _multiplies_into(structure, fusion, member)}
    found: list[str] = []
    for member in (m for m in fusion.members if m not in fused):
        node = structure.node(member)
        unary = isinstance(node, Apply) and len(node.operands) == 1
        found.append("fma" if fused and member == fusion.root else cost.rate_of(node.op, unary))
    return found


def writing(structure: Structure, fusion: Fusion, sized: SizedRows, site: int) -> cost.Demand:
    """Filling the buffer of ``fusion`` inside the first ``site`` loops."""
    axes = structure.axes(fusion.root.of)
    last = [written_last(structure, fusion.root, order) for _, order in sized.rows.orders]
    if structure.reduced(fusion.root):
        return cost.accumulating(sized, axes, last, site)
    return cost.writing(sized, axes, last, site)


def _multiplies_into(structure: Structure, fusion: Fusion, member: Variant) -> bool:
    """Whether ``member`` is the product in a sum of products: one instruction computes both."""
    root = structure.node(fusion.root)
    if not isinstance(root, Reduce) or root.op != "add" or member.of != root.operand:
        return False
    return structure.node(member).op == "mul"


def _grouped(structure: Structure, domain: Domain) -> Iterator[_Of]:
    found: dict[Fusion, list[int]] = {}
    for place, state in enumerate(domain):
        if state is not None:
            found.setdefault(state.fusion, []).append(place)
    for fusion, places in found.items():
        states = tuple(s for s in domain if s is not None and s.fusion == fusion)
        reduced = frozenset(structure.reduced(fusion.root))
        rows = Rows(structure.loops(fusion.root), tuple((s.nest, s.order) for s in states), reduced)
        serial, kernels = np.array([[s.serial for s in states], [s.site == 0 for s in states]])[:, :, None]
        yield _Of(fusion, np.array(places, dtype=np.int64), states, rows, serial, kernels)


def _sites(structure: Structure, readers: _Alike, producers: _Alike, x: ClassId) -> Numbers:
    """Where each state of a reader reads each of class ``x``; only pairs that share loops are looked at closely."""
    (mine, which), (theirs, others) = readers, producers
    sites = np.zeros((len(mine), len(theirs)), dtype=np.int64)
    in_memory = [0 if p is not None and p.site == 0 else -1 for p in theirs]
    sharing: dict[Nest, list[int]] = {}
    for n, p in enumerate(theirs):
        if p is not None and p.site:
            for depth in depths(structure, p):
                sharing.setdefault(p.nest[:depth], []).append(n)
    for m, reader in enumerate(mine):
        if reader is not None and x in structure.reads(reader.fusion):
            sites[m] = in_memory
            for n in {n for depth in range(1, len(reader.nest) + 1) for n in sharing.get(reader.nest[:depth], ())}:
                pair = reader, theirs[n], x
                site = structure.readings.get(pair)
                if site is None:
                    found = read_at(structure, *pair)
                    site = structure.readings[pair] = -1 if found is None else found
                sites[m, n] = site
    return sites[np.ix_(which, others)]


_Alike = tuple[list[State | None], Numbers]
"""The states of a domain up to their element orders, and for every state which of them it is."""


def _without_orders(domain: Domain) -> _Alike:
    """Element orders make no difference to readers, so states that differ only there are looked at once."""
    found: dict[State | None, int] = {}
    which = [found.setdefault(s and replace(s, order=()), len(found)) for s in domain]
    return list(found), np.array(which, dtype=np.int64)


def _supported(domains: dict[ClassId, Domain], sites: dict[tuple[ClassId, ClassId], Numbers]) -> dict[ClassId, Mask]:
    """The states left when those that fit no state of some neighbour are dropped, again and again."""
    alive = {c: np.ones(len(domain), dtype=np.bool_) for c, domain in domains.items()}
    changed = True
    while changed:
        changed = False
        for (r, x), where in sites.items():
            fits = where >= 0
            for c, support in ((r, fits[:, alive[x]].any(axis=1)), (x, fits[alive[r]].any(axis=0))):
                kept = alive[c] & support
                changed |= bool((kept != alive[c]).any())
                alive[c] = kept
    return alive
