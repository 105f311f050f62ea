"""What the statements at the bottom of a nest ask of a core: slots, units, ports, and how long that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Literal as Choice
from typing import NamedTuple

from ilang_eq.extract.footprint import LINE
from ilang_eq.extract.machine import ALONE, Machine
from ilang_eq.extract.micro_kernel import SCRATCH
from ilang_eq.extract.stack import Mask, Stack
from ilang_eq.extract.trips import NO_TURNING, Turning
from ilang_eq.lower.groups import AARCH64, AVX512, OTHERS, grouped_from
from ilang_eq.lower.ir import Load
from ilang_eq.lower.widths import STEPS, WIDTHS, dividing

GATHER_SLOTS = 4.0
"""Instructions for each element that a vector collects from, or scatters to, places that are not neighbours."""
TURNED_SLOTS = 1.5
"""Instructions for each element of rows that become columns in registers (``c/turned.py``): of 8×8, 16 loads, 8 stores
and 24 shuffles, of which some processors do one in a cycle. Packing 1024² takes 0.15 ns an element on Zen 3."""
COLUMN_SLOTS = 2.0
"""The same, for each element of a register tile that is stored in columns (``c/columns.py``): 8 lanes of four rows take
4 instructions to be taken apart, 16 shuffles, and 8 stores, and those of two rows 2, 4 and 8. On Zen 5 adding a tile of
8×48 to columns takes 1.1 cycles an element, of which this has 0.85 with what it takes to load them."""
STRIP = 64
"""Iterations that a reduction takes at a time, each vector with an accumulator of its own."""
MOST_LANES = 128
"""Parts of constant length of which a reduction takes all at a time are no longer (``c/registers.py``)."""
MASKED_CYCLES = 0.03
"""Each element of a vector that is loaded or stored in part: half a cycle for 16, where instructions take masks."""
ASK_SLOTS = 2.0
"""Asking for a line of a panel. With 1, tiles of 4 × 96 are expected to beat 6 × 64, which take 0.93 of their time in
products of 1024³ on Cascade Lake."""
POINTERS = 11
"""Rows of a nest that integer registers point to: 10 of one operand and 1 of the other, on x86-64."""
ADDRESS_SLOTS = 3.0
"""Reloading the address of one row more, as counted in GCC 12's inner loops of 13 to 20 rows."""
STORES = 2.25
"""How many times as long as a load a store takes its ports, which are others: one of half the width of two, or half as
many, on Zen 2 to 4 and on Skylake to Sapphire Rapids (Agner Fog, The Microarchitecture of Intel, AMD and VIA CPUs)."""
THERE_AND_BACK = 1.25
"""How many times as long as a load and a store it takes to come to a sum that is in the nearest cache. With 0.85 and
1.5, 94.7 and 95.5 % of the pairs of nine workloads' schedules are in order on Zen 4, with this 95.2; tiles by
themselves, in the nearest cache, go as well with either."""
_SIZE = 4
RateName = Choice["add", "mul", "fma", "div", "exp", "ln", "pow", "max", "compare"]
ADDERS = frozenset[RateName](("add", "max", "compare"))
"""The rates of what adders do, which have ports of their own on some processors."""
FUNCTIONS = frozenset[RateName](("exp", "ln", "pow"))
"""The rates of what takes all units and nearly all slots, so that little else runs beside it: on Zen 3 rows of
exp(x − m) that are summed take 1.42 cycles a float, with functions beside the rest 1.19 by the model; and 2.4 if x is
gathered across rows, where it was 1.5."""
WAITING = {1: 1.0, 2: 0.3}
"""The part of what functions wait (``Machine.alone``) that are applied to so few vectors side by side. exp of rows in
parts of 8 and 16 floats takes 1.64 and 1.33 of the time on Zen 3 that parts of 32 to 96 take, in twos or fours; all of
a Gaussian sum in 64 dimensions 1.04 with twos."""


class Term(NamedTuple):
    """A value: the loops it moves with, and whether an addition can absorb its multiplication."""

    mask: Mask
    product: bool = False


class Time(NamedTuple):
    """Nanoseconds of issuing instructions: ``all`` of them, and those that the ports which load take."""

    all: float = 0.0
    loading: float = 0.0

    def plus(self, other: Time) -> Time:
        """One after the other."""
        return Time(self.all + other.all, self.loading + other.loading)

    def times(self, factor: float) -> Time:
        """So many times."""
        return Time(self.all * factor, self.loading * factor)

    @property
    def spare(self) -> float:
        """The nanoseconds in which nothing is loaded."""
        return max(0.0, self.all - self.loading)


class Known(NamedTuple):
    """What is known of buffers, by name.

    Args:
        padded: they can be read beyond the end of an axis, as far as tiles go: their last dimension holds whole tiles.
        panels: short rows of constant length, which lie one after another.
        asked: those whose lines reductions into registers ask for some steps ahead (``c/ahead.py``).
        begun: their register tiles begin with a number, and with nothing that is loaded.
        near: the next tile takes them out of the registers that they are computed in.
        ragged: results whose rows begin anywhere in a line.
    """

    padded: frozenset[str] = frozenset()
    panels: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    ragged: frozenset[str] = frozenset()

    def of(self, buffers: Iterable[str]) -> Known:
        """What is known of ``buffers``."""
        return Known(*(which and which.intersection(buffers) for which in self))


NOTHING = Known()


@dataclass(slots=True)
class Tally:
    """Demands on the core, for all executions: ``lanes`` innermost iterations at a time.

    Instructions take ``slots``. ``multiplying`` and ``adding`` are the times of the arithmetic units, ``calling`` of
    functions, ``beginning`` of getting tiles to where they are and back, ``spreading`` that of loading elements over
    registers, ``masking`` what a mask adds to the first, and ``chain`` that of waiting for accumulators, each of which
    takes ``sums`` loads to begin with. Bytes are ``loaded`` and ``stored``. Of ``terms`` in memory so many ``rows``
    have addresses of their own. ``jams`` says whether several rows are added to one at a time, ``tiles`` whether sums
    are held in registers. What is ``turned`` makes columns of rows. Sums that are in the nearest cache have so many
    ``visits`` in a step, in so many loops that are ``staying``.
    """

    stack: Stack
    machine: Machine
    lanes: int
    known: Known
    jams: bool = False
    tiles: bool = False
    turned: Turning = NO_TURNING
    visits: float = 0.0
    staying: int = 0
    slots: float = 0.0
    multiplying: float = 0.0
    adding: float = 0.0
    calling: float = 0.0
    beginning: float = 0.0
    spreading: float = 0.0
    masking: float = 0.0
    loaded: float = 0.0
    stored: float = 0.0
    chain: float = 0.0
    sums: float = 0.0
    rows: float = 0.0
    terms: dict[Load, Term] = field(default_factory=dict)

    def time(self, masked: bool = False) -> Time:
        """Functions, tiles that begin, and the highest ceiling of what else there is, perhaps under a mask."""
        addressing = ADDRESS_SLOTS * max(0.0, self.rows - POINTERS) * self.stack.entered
        slots = (self.slots + addressing) / (self.machine.issue_width * self.machine.clock_ghz)
        # the next sums begin as soon as the core has looked so far ahead
        chain = self.chain / (1.0 + self.sums * self.machine.window / self.slots) if self.sums else self.chain
        nearest = self.machine.levels[0].bandwidth
        loading = self.loaded / nearest
        ceilings = (slots, self.computing(masked), loading, STORES * self.stored / nearest, chain)
        soft = self.machine.softness
        return Time(self.calling + self.beginning + sum(c**soft for c in ceilings) ** (1 / soft), loading)

    def computing(self, masked: bool = False) -> float:
        """Time on the ports, perhaps under a mask; additions may run beside the rest."""
        others = self.multiplying + self.masking if masked else self.multiplying
        beside = 2.0 - self.machine.fma_with_add
        alone = others + self.adding - beside * min(others, self.adding)
        # one of two units of each kind can spread elements instead
        longer, all_four = max(others, self.adding) + self.spreading, others + self.adding + self.spreading
        return max(alone, longer * 2 / 3, all_four / 2) if self.spreading else alone

    def width(self, mask: Mask) -> int:
        """Elements at a time of a term that moves with ``mask``."""
        return self.lanes if mask & self.stack.innermost else 1

    def filling(self, width: int) -> float:
        """How long an element takes in vectors of ``width``, in times of those of whole ones."""
        return max(1.0, self.machine.port_lanes / width)

    def loads(self, mask: Mask) -> float:
        """How often elements that move with ``mask`` are loaded: a few vectors stay in registers until they move."""
        few = self.stack.copies(mask) / self.width(mask) <= self.machine.vector_registers / 4
        return self.stack.held(mask) if few and self.lanes > 1 else self.stack.executions(mask)

    def vectors_beside(self, target: Load) -> float:
        """The vectors of the widest operand in memory, which all rows of what is accumulated in ``target`` wait for."""
        loaded = (term.mask for place, term in self.terms.items() if place.indices and place != target)
        along = (mask for mask in loaded if mask & self.stack.innermost)
        return max((self.stack.copies(mask) / self.width(mask) for mask in along), default=0.0)

    def loaded_by_rows(self, target: Load, registers: float) -> float:
        """The vectors that rows which stay a loop load in a step, beside what all of a step is loaded once for.

        Several steps are taken together: the rows next to each other share what registers hold of all of them. What
        moves from row to row is in none.

        Args:
            registers: the vectors of the sums in ``target``.
        """
        inside = self.stack.unrolled + self.staying
        left = self.machine.vector_registers - SCRATCH - STEPS
        found = 0.0
        for place, term in self.terms.items():
            if place.indices and place != target and term.mask & self.stack.innermost:
                inner = prod(self.stack.trips[n] for n in range(inside, len(self.stack.loops)) if term.mask >> n & 1)
                moves = bool(term.mask >> (inside - 1) & 1)
                anew = 1.0 if moves else max(0.0, 1.0 - left / (STEPS * inner / self.lanes))
                found += anew * (registers - self.stack.copies(term.mask) / self.lanes)
        return found

    def abreast(self) -> int:
        """How many vectors a function is applied to side by side."""
        grouping = AARCH64 if self.machine.vector_registers > 16 else OTHERS
        grouping = AVX512 if self.machine.vector_bits == 512 else grouping
        *outer, last = (loop.width for loop in self.stack.unit)
        if last is None:
            last = STRIP
        lanes = WIDTHS[0] if not self.tiles else dividing(last)
        if last % lanes:
            return 1
        # rows of what is not summed in registers go one by one
        vectors = [*((width or 1 for width in outer) if self.tiles else ()), last // lanes]
        first = grouped_from(vectors)
        return 1 if first is None else grouping.abreast(prod(vectors[first:]) * lanes // min(lanes, self.machine.lanes))

    def waiting(self) -> float:
        """How many times as long functions take as where several vectors go side by side."""
        alone = self.machine.alone if self.tiles else ALONE
        return 1.0 + (alone - 1.0) * WAITING.get(self.abreast(), 0.0)

    def ask(self) -> None:
        """Charge asking for lines ahead: an instruction that takes a load port, for each."""
        for place, term in self.terms.items():
            if place.buffer in self.known.asked and self.width(term.mask) * _SIZE == LINE:
                lines = self.stack.executions(term.mask) / self.width(term.mask)
                self.slots += ASK_SLOTS * lines
                self.loaded += lines * self.machine.port_lanes * _SIZE

    def operate(self, rate: RateName, mask: Mask, times: float) -> None:
        """Charge ``times`` scalar operations on a term that moves with ``mask``."""
        width = self.width(mask)
        rates = self.machine.vector if width > 1 else self.machine.scalar
        self.slots += times / width
        time = times / getattr(rates, rate) * (self.filling(width) if width > 1 else 1.0)
        if rate in ADDERS:
            self.adding += time
        elif rate in FUNCTIONS:
            self.calling += time * (self.waiting() if width > 1 else 1.0)
        else:
            self.multiplying += time

    def load(self, place: Load, mask: Mask, times: float) -> None:
        """Charge ``times`` elements from the first-level cache into registers."""
        self.loaded += self._charged(place, mask, times)

    @property
    def vector_bytes(self) -> float:
        """Bytes that keep a port busy as long as a vector does."""
        return self.lanes * self.filling(self.lanes) * _SIZE

    def go_there_and_back(self, vectors: float) -> None:
        """Charge loading so many ``vectors`` of sums from the nearest cache, and storing them there."""
        vectors *= THERE_AND_BACK
        self.slots += 2.0 * vectors
        self.loaded += vectors * self.vector_bytes
        self.stored += vectors * self.vector_bytes

    def begin(self, vectors: float) -> None:
        """Charge storing so many ``vectors`` of sums to the nearest cache, with nothing beside."""
        self.beginning += vectors * STORES * self.vector_bytes / self.machine.levels[0].bandwidth

    def store(self, place: Load, mask: Mask, times: float, tile: bool = False) -> None:
        """Charge ``times`` elements, perhaps of a ``tile``, from registers into the first-level cache."""
        scattered = COLUMN_SLOTS if tile and _goes_in_columns(place, self.stack) else GATHER_SLOTS
        self.stored += self._charged(place, mask, times, scattered)
        if tile and place.buffer in self.known.ragged and self.width(mask) * _SIZE == LINE:
            self.beginning += times / self.width(mask) * self.machine.split_store_cycles / self.machine.clock_ghz

    def _charged(self, place: Load, mask: Mask, times: float, scattered: float = GATHER_SLOTS) -> float:
        """Charge the instructions that move ``times`` elements; the bytes that keep a port busy as long."""
        width = self.width(mask)
        apart = width > 1 and is_strided(place, self.stack)
        left = self.turned.left if place in self.turned.places else 1.0
        each = left * scattered + (1.0 - left) * TURNED_SLOTS
        self.slots += times * each if apart else times / width
        if width > 1 and place.buffer not in self.known.padded:
            self.masking += times * MASKED_CYCLES / self.machine.clock_ghz
        # an element takes a port as long as a vector does that fills it
        return times * _SIZE * (1 if apart else self.filling(width))

    def spreads(self, mask: Mask, apart: bool = False) -> bool:
        """Are elements spread over registers? What a single vector takes stays an operand in memory.

        Args:
            apart: whether it cannot, as something is subtracted from it.
        """
        if self.lanes == 1 or mask & self.stack.innermost:
            return False
        width = self.stack.loops[-1].width
        return apart or width is None or width > self.lanes

    def broadcast(self, mask: Mask, times: float, apart: bool = False) -> None:
        """Charge spreading ``times`` elements over registers, as in ``spreads``."""
        if self.spreads(mask, apart):
            self.spreading += (
                times / self.machine.broadcasts * self.lanes * self.filling(self.lanes) / self.machine.lanes
            )


def _goes_in_columns(place: Load, stack: Stack) -> bool:
    """Are the rows of a tile of several rows, whose lanes go to rows of ``place``, side by side there?"""
    if not place.indices:
        return False
    *outer, last = place.indices
    rows = (loop.variable for loop in stack.unit[:-1] if loop.width is not None and loop.width > 1)
    return last.divisor == 1 and any(v in last.variables and not any(v in i.variables for i in outer) for v in rows)


def is_strided(place: Load, stack: Stack) -> bool:
    """Does ``place`` move by more than one element as the innermost loop runs?"""
    if not stack.mask(place) & stack.innermost:
        return False
    variable = stack.loops[-1].variable
    *outer, last = place.indices
    return last.divisor != 1 or any(variable in index.variables for index in outer)
