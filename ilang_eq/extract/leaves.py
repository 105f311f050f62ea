"""Time to run the loop-free statements at the bottom of a nest, from the first-level cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import log2, prod
from operator import or_
from typing import Literal as Choice
from typing import NamedTuple, assert_never

from ilang_eq.extract.footprint import LINE
from ilang_eq.extract.machine import Machine
from ilang_eq.extract.micro_kernel import SCRATCH, beside
from ilang_eq.extract.stack import Mask, Stack
from ilang_eq.extract.trips import lanes_of, turned
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, Load, Scalar
from ilang_eq.lower.passes import calls_functions
from ilang_eq.lower.quotients import divisors
from ilang_eq.lower.walk import loads
from ilang_eq.lower.widths import WIDTHS

GATHER_SLOTS = 4.0
"""Instructions for each element that a vector collects from, or scatters to, places that are not neighbours."""
TURNED_SLOTS = 1.5
"""Instructions for each element of rows that become columns in registers (``c/turned.py``): of 8×8, 16 loads, 8 stores
and 24 shuffles, of which some processors do one in a cycle. Packing 1024² takes 0.15 ns an element on Zen 3."""
STRIP = 64
"""Iterations that a reduction takes at a time, each vector with an accumulator of its own."""
MASKED_CYCLES = 0.03
"""Each element of a vector that is loaded or stored in part: half a cycle for 16, where instructions take masks."""
SOFT = 6.0
"""How soft ceilings are that are nearly reached at once: their p-norm counts. Of 23 register tiles, each in the nearest
cache of a core of Cascade Lake, most take within 4 % of that."""
HALVE_SLOTS = 3.0
"""Instructions to fold one half of a vector with the other: a copy, the move, and the fold, as counted in GCC 12's
code. Rows overlap with what follows, so that nothing waits: on Zen 3 their sums take 12 cycles a row and 0.07 each
float (64 to 5120 in the nearest cache), and passes that wait for a row's maximum 20 to 40 and what they take."""
SPILL_SLOTS = 6.0
"""An accumulator that goes to memory and back: stores go one a cycle."""
ASK_SLOTS = 2.0
"""Asking for a line of a panel. With 1, tiles of 4 × 96 are expected to beat 6 × 64, which take 0.93 of their time in
products of 1024³ on Cascade Lake."""
JAMMED = 4.0
"""Rows that are added to a row at a time (``c/jam.py``). Short ones from memory go alone, but memory hides that."""
FEWEST = 16
"""The least constant number of rows of which that is done."""
POINTERS = 11
"""Rows of a nest that integer registers point to: 10 of one operand and 1 of the other, on x86-64."""
ADDRESS_SLOTS = 3.0
"""Reloading the address of one row more, as counted in GCC 12's inner loops of 13 to 20 rows."""
STORES = 2.25
"""How many times as long as a load a store takes its ports, which are others: one of half the width of two, or half as
many, on Zen 2 to 4 and on Skylake to Sapphire Rapids (Agner Fog, The Microarchitecture of Intel, AMD and VIA CPUs)."""
_SIZE = 4

RateName = Choice["add", "mul", "fma", "div", "exp", "ln", "pow", "max", "compare"]

RATE_OF: dict[str, RateName] = {
    "add": "add",
    "sub": "add",
    "mul": "mul",
    "div": "div",
    "max": "max",
    "min": "max",
    "exp": "exp",
    "ln": "ln",
    "log": "ln",
    "pow": "pow",
    "shift_factor": "exp",
}
"""The rate that each op runs at; those not here run as comparisons do."""
ADDERS = frozenset[RateName](("add", "max", "compare"))
"""The rates of what adders do, which have ports of their own on some processors."""
FUNCTIONS = frozenset[RateName](("exp", "ln", "pow"))
"""The rates of what takes all units and nearly all slots, so that little else runs beside it: on Zen 3 rows of
exp(x − m) that are summed take 1.42 cycles a float, with functions beside the rest 1.19 by the model; and 2.4 if x is
gathered across rows, where it was 1.5."""
POWERS: dict[float, RateName] = {1.0: "mul", 2.0: "mul", 3.0: "mul", 0.5: "div", -0.5: "div", -1.0: "div"}
"""The rate that each constant power runs at; others are general."""

WAITING = {1: 1.25, 2: 1.1, 3: 1.1}
"""How many times as long functions take that are applied to so few of the widest vectors side by side
(``c/abreast.py``). exp of rows of 8 and 16 floats takes 1.17 to 1.45 of what the model has without on Zen 3, of 32 to
96 0.96 to 1.1; all of a Gaussian sum in 64 dimensions 1.1 with two and 1.2 with three instead of four."""

Statements = Sequence[Assign | Accumulate]


class _Term(NamedTuple):
    """A value: the loops it moves with, and whether an addition can absorb its multiplication."""

    mask: Mask
    product: bool = False


class Known(NamedTuple):
    """What is known of buffers, by name.

    Args:
        padded: they can be read beyond the end of an axis, as far as tiles go: their last dimension holds whole tiles.
        panels: reductions into registers ask for their lines some steps ahead (``c/ahead.py``).
    """

    padded: frozenset[str] = frozenset()
    panels: frozenset[str] = frozenset()

    def of(self, buffers: Iterable[str]) -> Known:
        """What is known of ``buffers``."""
        return Known(self.padded.intersection(buffers), self.panels.intersection(buffers))


NOTHING = Known()


@dataclass(slots=True)
class _Tally:
    """Demands on the core, for all executions: ``lanes`` innermost iterations at a time.

    ``multiplying`` and ``adding`` are the times of the arithmetic units, ``calling`` of functions, and ``masking`` what
    a mask adds to the first.
    ``jams`` says whether several rows are added to one at a time. What is ``turned`` makes columns of rows.
    """

    stack: Stack
    machine: Machine
    lanes: int
    known: Known
    jams: bool = False
    turned: frozenset[Load] = frozenset()
    slots: float = 0.0
    multiplying: float = 0.0
    adding: float = 0.0
    calling: float = 0.0
    spreading: float = 0.0
    masking: float = 0.0
    loaded: float = 0.0
    stored: float = 0.0
    chain: float = 0.0
    sums: float = 0.0
    rows: float = 0.0
    terms: dict[Load, _Term] = field(default_factory=dict)

    def nanoseconds(self, masked: bool = False) -> float:
        """Functions, and the highest ceiling of what else there is, perhaps under a mask."""
        addressing = ADDRESS_SLOTS * max(0.0, self.rows - POINTERS) * self.stack.entered
        slots = (self.slots + addressing) / (self.machine.issue_width * self.machine.clock_ghz)
        chain = self.chain * min(1.0, self.slots / (self.sums * self.machine.window)) if self.sums else self.chain
        nearest = self.machine.levels[0].bandwidth
        ceilings = (slots, self.computing(masked), self.loaded / nearest, STORES * self.stored / nearest, chain)
        return self.calling + sum(c**SOFT for c in ceilings) ** (1 / SOFT)

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

    def abreast(self, mask: Mask) -> int:
        """How many of the widest vectors a function is applied to side by side, if its argument moves with ``mask``."""
        if self.stack.loops[-1].width is None:
            return STRIP // WIDTHS[0]
        vectors = max(1, int(self.stack.copies(mask)) // WIDTHS[0])
        if self.machine.vector_registers > 16 and vectors <= 7:
            return vectors
        most = (6, 5, 4, 2, 3) if self.machine.vector_registers > 16 else (4, 2, 3)
        return next((count for count in most if vectors % count == 0), 1)

    def ask(self) -> None:
        """Charge asking for the lines of panels ahead: an instruction that takes a load port, for each."""
        for place, term in self.terms.items():
            if place.buffer in self.known.panels and self.width(term.mask) * _SIZE == LINE:
                lines = self.stack.executions(term.mask) / self.width(term.mask)
                self.slots += ASK_SLOTS * lines
                self.loaded += lines * LINE

    def operate(self, rate: RateName, mask: Mask, times: float) -> None:
        """Charge ``times`` scalar operations on a term that moves with ``mask``."""
        width = self.width(mask)
        rates = self.machine.vector if width > 1 else self.machine.scalar
        self.slots += times / width
        time = times / getattr(rates, rate) * (self.filling(width) if width > 1 else 1.0)
        if rate in ADDERS:
            self.adding += time
        elif rate in FUNCTIONS:
            self.calling += time * (WAITING.get(self.abreast(mask), 1.0) if width > 1 else 1.0)
        else:
            self.multiplying += time

    def load(self, place: Load, mask: Mask, times: float) -> None:
        """Charge ``times`` elements from the first-level cache into registers."""
        self.loaded += self._charged(place, mask, times)

    def store(self, place: Load, mask: Mask, times: float) -> None:
        """Charge ``times`` elements from registers into the first-level cache."""
        self.stored += self._charged(place, mask, times)

    def _charged(self, place: Load, mask: Mask, times: float) -> float:
        """Charge the instructions that move ``times`` elements; the bytes that keep a port busy as long."""
        width = self.width(mask)
        apart = width > 1 and _strided(place, self.stack)
        each = TURNED_SLOTS if place in self.turned else GATHER_SLOTS
        self.slots += times * each if apart else times / width
        if width > 1 and place.buffer not in self.known.padded:
            self.masking += times * MASKED_CYCLES / self.machine.clock_ghz
        # an element takes a port as long as a vector does, and as long as the register that it is spread over
        spread = self.lanes if self.spreads(mask) else 1
        return times * _SIZE * (1 if apart else max(self.filling(width), spread))

    def spreads(self, mask: Mask) -> bool:
        """Are elements spread over registers? What a single vector takes stays an operand in memory."""
        if self.lanes == 1 or mask & self.stack.innermost:
            return False
        width = self.stack.loops[-1].width
        return width is None or width > self.lanes

    def broadcast(self, mask: Mask, times: float) -> None:
        """Charge spreading ``times`` elements over registers."""
        if self.spreads(mask):
            self.spreading += times / self.machine.broadcasts


def leaf_time(statements: Statements, stack: Stack, machine: Machine, known: Known = NOTHING) -> float:
    """Nanoseconds for every execution of ``statements`` under ``stack``, tails included."""
    lanes = _lanes(statements, stack, machine)
    width = stack.loops[-1].width if stack.loops else None
    if lanes == 1 and width is not None and width > min(WIDTHS) and _is_vectorisable(statements, stack):
        return _in_parts(statements, stack, machine)
    if lanes == 1:
        return _run(statements, stack, machine, 1).nanoseconds()
    if width is not None:
        shortened = lanes_of(stack.loops[-1], tuple(statements)) == WIDTHS[0]
        found = _run(statements, stack.padded(lanes, shortened), machine, lanes, known)
        full = 0.0 if width % lanes else prod(loop.full for loop in stack.unit)
        return full * found.nanoseconds() + (1.0 - full) * found.nanoseconds(masked=True)
    step = STRIP if only_folds(statements, stack) else lanes
    trips = stack.trips[-1]
    whole = trips // step * step
    vectors = _run(statements, stack.innermost_runs(whole), machine, lanes, known).nanoseconds() if whole else 0.0
    if whole == trips:
        return vectors
    if step == STRIP:
        strip = _run(statements, stack.innermost_runs(STRIP), machine, lanes, known)
        return vectors + strip.nanoseconds(masked=True)
    return vectors + _run(statements, stack.innermost_runs(trips - whole), machine, 1).nanoseconds()


def fold_slots(lanes: int, strip: float = STRIP) -> float:
    """Instructions to fold a strip of numbers in vectors of ``lanes`` into one.

    Each vector meets what a fold starts with, and the one before it.
    """
    return 2 * _joins(lanes, strip) + 1 + HALVE_SLOTS * log2(lanes)


def _joins(lanes: int, strip: float) -> float:
    return max(1.0, strip / lanes) - 1


def accumulators(statements: Statements, stack: Stack, machine: Machine) -> float:
    """The vectors in which a unit holds what the loop around it comes back to."""
    lanes = _lanes(statements, stack, machine)
    masks = [stack.mask(s.target) for s in statements if isinstance(s, Accumulate)]
    widths = [lanes if mask & stack.innermost else 1 for mask in masks]
    held = [stack.copies(mask) / width for mask, width in zip(masks, widths, strict=True)]
    return sum(count for mask, count in zip(masks, held, strict=True) if _stays_in_registers(mask, stack))


def only_folds(statements: Statements, stack: Stack) -> bool:
    """Does the innermost loop do nothing but reduce?"""
    return all(
        isinstance(s, Accumulate) and not stack.mask(s.target) & stack.innermost
        for s in statements
        if s.target.indices or isinstance(s, Accumulate)
    )


def _in_parts(statements: Statements, stack: Stack, machine: Machine) -> float:
    """A loop that no vector divides, and the compiler's: in vectors, then in shorter ones, and then one by one."""
    left = stack.trips[-1]
    total = 0.0
    for lanes in (*(lanes for lanes in WIDTHS if lanes <= machine.lanes), 1):
        part = left // lanes * lanes if lanes > 1 else left
        if part:
            total += _run(statements, stack.innermost_runs(part), machine, lanes).nanoseconds()
        left -= part
    return total


def _is_vectorisable(statements: Statements, stack: Stack) -> bool:
    """Whether iterations of the innermost loop go side by side."""
    if not stack.innermost or _recurs(statements, stack):
        return False
    fixed = (
        not stack.mask(s.target) & stack.innermost for s in statements if isinstance(s, Assign) and s.target.indices
    )
    return not any(fixed)


def _lanes(statements: Statements, stack: Stack, machine: Machine) -> int:
    """The widest vector that the innermost loop allows; 1 where iterations depend on each other."""
    if not _is_vectorisable(statements, stack):
        return 1
    width = stack.loops[-1].width
    if width is None:
        return machine.lanes
    return min(machine.lanes, lanes_of(stack.loops[-1], tuple(statements)))


def _recurs(statements: Statements, stack: Stack) -> bool:
    """Does an iteration of the innermost loop read what the one before wrote?"""
    carried = {
        s.target.buffer
        for s in statements
        if not stack.mask(s.target) & stack.innermost and (s.target.indices or isinstance(s, Accumulate))
    }
    updates = [s.target.buffer for s in statements if s.target.buffer in carried]
    read = {load.buffer for s in statements for load in loads(s.value)}
    return bool(carried & read) or len(set(updates)) < len(updates)


def _strided(place: Load, stack: Stack) -> bool:
    """Does ``place`` move by more than one element as the innermost loop runs?"""
    if not stack.mask(place) & stack.innermost:
        return False
    variable = stack.loops[-1].variable
    *outer, last = place.indices
    return last.divisor != 1 or any(variable in index.variables for index in outer)


def _run(statements: Statements, stack: Stack, machine: Machine, lanes: int, known: Known = NOTHING) -> _Tally:
    """What every execution of ``statements`` asks for."""
    places = turned(*stack.loops[-2:]) if len(stack.loops) > 1 and stack.innermost else frozenset[Load]()
    tally = _Tally(stack, machine, lanes, known, _jams(statements, stack), places)
    for statement in statements:
        value = _evaluate(statement.value, tally)
        match statement:
            case Assign(target):
                _store(target, value, tally)
            case Accumulate(target, op):
                _accumulate(target, op, value, tally, as_it_is=isinstance(statement.value, Load))
            case other:
                assert_never(other)
    if lanes == 1 and stack.innermost and _recurs(statements, stack):
        # one operation waits for the other through the whole body
        tally.chain += tally.computing() + tally.slots * machine.chain_cycles / machine.clock_ghz
    return tally


def _evaluate(value: Scalar, tally: _Tally) -> _Term:
    """Charge the computation of ``value``."""
    match value:
        case Constant():
            return _Term(0)
        case Load():
            return _load(value, tally)
        case Apply(op, arguments):
            terms = [_evaluate(argument, tally) for argument in arguments]
            mask = reduce(or_, (term.mask for term in terms), 0)
            times = tally.stack.executions(mask)
            if op in ("add", "sub"):
                _add(mask, times, terms, tally)
            else:
                tally.operate("mul" if _inverted(op, terms, tally) else _rate(op, arguments), mask, times)
            return _Term(mask, op == "mul")
        case other:
            assert_never(other)


def _inverted(op: str, terms: Sequence[_Term], tally: _Tally) -> bool:
    """Is it a division by what the innermost loop does not move? Compiled code multiplies by the inverse."""
    return op == "div" and len(terms) == 2 and bool(terms[0].mask) and not terms[1].mask & tally.stack.innermost


def _rate(op: str, arguments: Sequence[Scalar]) -> RateName:
    """The rate that ``op`` runs at; a power with one constant is an exponential, a square root or a product."""
    match op, arguments:
        case "pow", (_, Constant(exponent)):
            return POWERS.get(exponent, "pow")
        case "pow", (Constant(base), _) if base > 0:
            return "exp"
        case _:
            return RATE_OF.get(op, "compare")


def _load(place: Load, tally: _Tally) -> _Term:
    """A place is loaded once in an iteration; scalars live in registers."""
    term = tally.terms.get(place)
    if term is None:
        mask = tally.stack.mask(place)
        term = tally.terms[place] = _Term(mask)
        if place.indices:
            times = tally.loads(mask)
            tally.load(place, mask, times)
            tally.broadcast(mask, times)
            tally.rows += tally.stack.copies(tally.stack.rows(place))
    return term


def _add(mask: Mask, times: float, terms: Sequence[_Term], tally: _Tally) -> None:
    """An addition, which absorbs one multiplication that runs as often."""
    absorbed = any(term.product and tally.stack.executions(term.mask) == times for term in terms)
    if absorbed:
        tally.operate("mul", mask, -times)
    tally.operate("fma" if absorbed else "add", mask, times)


def _store(target: Load, value: _Term, tally: _Tally) -> None:
    if not target.indices:
        tally.terms[target] = value
        return
    mask = tally.stack.mask(target)
    tally.store(target, mask, tally.stack.executions(mask))
    tally.terms[target] = _Term(mask)


def _accumulate(target: Load, op: str, value: _Term, tally: _Tally, *, as_it_is: bool) -> None:
    """Charge adding ``value`` to ``target``, by ``op``; ``as_it_is``: it comes from memory and is not computed."""
    stack = tally.stack
    mask = stack.mask(target)
    times = stack.executions(stack.all)
    if op in ("add", "sub"):
        _add(stack.all, times, [value], tally)
    else:
        tally.operate(RATE_OF.get(op, "compare"), stack.all, times)
    if _stays_in_registers(mask, stack):
        _hold(target, mask, times, tally, as_it_is=as_it_is)
        tally.ask()
    else:
        times /= JAMMED if tally.jams and _comes_back(mask, stack) else 1.0
        tally.load(target, mask, times)
        tally.store(target, mask, times)
    tally.terms[target] = _Term(mask)


def _comes_back(mask: Mask, stack: Stack) -> bool:
    """Is it a row of run-time length, and does the loop around it do nothing but come back to the same one?"""
    around = len(stack.loops) - 2
    return stack.perfect <= around and stack.loops[-1].width is None and not mask >> around & 1


def _jams(statements: Statements, stack: Stack) -> bool:
    """Do sums of rows take several at a time? Neither few ones, nor where something else takes longer."""
    if len(stack.loops) < 2 or calls_functions(statements):
        return False
    width = stack.loops[-2].width
    divided = (d for s in statements for d in divisors(s.value) if isinstance(d, Load))
    return (width is None or width >= FEWEST) and all(stack.mask(d) & stack.innermost for d in divided)


def _stays_in_registers(mask: Mask, stack: Stack) -> bool:
    """Does the unit, or the loop around it, come back to the same place?"""
    if not stack.innermost:
        return False
    constant = stack.loops[-1].width is not None
    around = 1 << (stack.unrolled - 1) if stack.unrolled else 0
    return not mask & stack.innermost or (constant and bool(around) and not mask & around)


def _hold(target: Load, mask: Mask, times: float, tally: _Tally, *, as_it_is: bool) -> None:
    """Charge an accumulation into registers: getting there and back, folding lanes, spills, and the wait."""
    stack, machine = tally.stack, tally.machine
    constant = stack.loops[-1].width is not None
    folds = tally.lanes > 1 and not mask & stack.innermost
    # lanes that several rows of a tile add to are folded once for each tile
    several = folds and any(not mask >> n & 1 for n in range(stack.unrolled, len(stack.loops) - 1))
    moves = stack.accumulated(mask) if constant and not several else stack.entered * stack.copies(mask)
    tally.load(target, mask, moves)
    tally.store(target, mask, moves)
    if folds:
        _fold(moves, tally)
    registers = stack.copies(mask) / (1 if folds else tally.width(mask))
    shared = tally.vectors_beside(target)
    # what one row alone adds as it is stays an operand in memory
    alone = 0.0 if as_it_is else SCRATCH
    taken = beside(shared) if constant and (folds or registers != shared) else alone
    free, held = machine.vector_registers - taken, registers + stack.beside
    tally.slots += SPILL_SLOTS * max(0.0, held - free) * registers / max(held, 1.0) * stack.entered
    if tally.width(mask) > machine.port_lanes:
        # what is beside them may wait in memory for the whole reduction; they go there in each of its steps
        over = max(0.0, registers - (machine.vector_registers - SCRATCH))
        tally.slots += (machine.split_spill_slots - SPILL_SLOTS) * over * stack.entered
    tally.sums = max(tally.sums, moves / stack.copies(mask))
    chains = registers
    if folds:
        chains *= max(1.0, min(stack.trips[-1], STRIP) / tally.lanes)
    updates = times / tally.lanes if tally.lanes > 1 else times
    tally.chain = max(tally.chain, updates / chains * machine.chain_cycles / machine.clock_ghz)


def _fold(times: float, tally: _Tally) -> None:
    """Charge folding a strip into one number."""
    machine, lanes, width = tally.machine, tally.lanes, tally.stack.loops[-1].width
    strip = STRIP if width is None else width
    tally.slots += times * fold_slots(lanes, strip)
    tally.adding += times * (_joins(lanes, strip) + log2(lanes)) * machine.lanes / machine.vector.add
