"""Time to run the loop-free statements at the bottom of a nest, from the first-level cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import ceil, log2, prod
from operator import or_
from typing import assert_never

from ilang_eq.extract.machine import Machine
from ilang_eq.extract.micro_kernel import SCRATCH, beside
from ilang_eq.extract.stack import Mask, Stack
from ilang_eq.extract.tally import ADDERS, MOST_LANES, NOTHING, STRIP, Known, RateName, Tally, Term, Time
from ilang_eq.extract.trips import NO_TURNING, lanes_of, turned, visited
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, Load, Scalar
from ilang_eq.lower.passes import calls_functions
from ilang_eq.lower.quotients import divisors
from ilang_eq.lower.rolling import staying
from ilang_eq.lower.walk import loads
from ilang_eq.lower.widths import FEWEST_STEPS, WIDTHS

HALVE_SLOTS = 3.0
"""Instructions to fold one half of a vector with the other: a copy, the move, and the fold, as counted in GCC 12's
code. Rows overlap with what follows, so that nothing waits: on Zen 3 their sums take 12 cycles a row and 0.07 each
float (64 to 5120 in the nearest cache), and passes that wait for a row's maximum 20 to 40 and what they take."""
JAMMED = 4.0
"""Rows that are added to a row at a time (``c/jam.py``). Short ones from memory go alone, but memory hides that."""
FEWEST = 16
"""The least constant number of rows of which that is done."""


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
    "abs": "add",
}
"""The rate that each op runs at; those not here run as comparisons do."""
FOLD_CYCLES = 3.0
"""From one step of a fold to the next."""
BEGUN_SLOTS = 32.0
"""A vector that is added up across its lanes and has no register goes to memory before the first step, and comes back
from there after the last: 65536 sums of 64 floats 12 and 16 at a time, with 48 and 64 vectors, take 5 cycles for each
of those beyond 32 on Zen 5, of which one is in the only step."""
BEGUN_STORES = 3.0
"""What a sum in the nearest cache takes to begin, and to get to its target, in stores. Of 480³ in tiles of 32×48, each
begun takes 7.8 cycles a vector on Zen 4, in blocks of 8 steps, and a store 2."""
ROW_SLOTS = 3.0
"""Instructions to get to the next row of a tile whose rows stay a loop."""
FUNCTION_CYCLES = 60.0
"""From the argument of a function to its result. A row of 50 floats alone, in one strip, takes 65 ns for its maximum,
its exponentials and their sum on Zen 3, where rows eight at a time take 31: one waits for the other."""
POWERS: dict[float, RateName] = {1.0: "mul", 2.0: "mul", 3.0: "mul", 0.5: "div", -0.5: "div", -1.0: "div"}
"""The rate that each constant power runs at; others are general."""


Statements = Sequence[Assign | Accumulate]


def leaf_time(statements: Statements, stack: Stack, machine: Machine, known: Known = NOTHING) -> Time:
    """What every execution of ``statements`` takes under ``stack``, tails included."""
    lanes = _lanes(statements, stack, machine)
    width = stack.loops[-1].width if stack.loops else None
    if lanes == 1 and width is not None and width > min(WIDTHS) and _is_vectorisable(statements, stack):
        return _in_parts(statements, stack, stack.trips[-1], machine)
    if lanes == 1:
        return _run(statements, stack, machine, 1).time()
    if width is not None:
        shortened = lanes_of(stack.loops[-1], tuple(statements)) == WIDTHS[0]
        found = _run(statements, stack.padded(lanes, shortened), machine, lanes, known)
        full = 0.0 if width % lanes else prod(loop.full for loop in stack.unit)
        return found.time().times(full).plus(found.time(masked=True).times(1.0 - full))
    step = STRIP if only_folds(statements, stack) else lanes
    trips = stack.trips[-1]
    whole = trips // step * step
    vectors = _run(statements, stack.innermost_runs(whole), machine, lanes, known).time() if whole else Time()
    if whole == trips:
        return vectors
    if step == STRIP:
        return vectors.plus(_rest_of_strips(statements, stack, trips - whole, machine, lanes, known))
    if calls_functions(statements):
        rest = _run(statements, stack.innermost_runs(lanes), machine, lanes, known)
        return vectors.plus(rest.time(masked=True))
    return vectors.plus(_in_parts(statements, stack, trips - whole, machine))


def _rest_of_strips(
    statements: Statements, stack: Stack, left: float, machine: Machine, lanes: int, known: Known
) -> Time:
    """What is left of a loop that folds: half a strip where functions are called, then vectors one by one."""
    half = left // (STRIP / 2) * (STRIP / 2) if calls_functions(statements) else 0.0
    whole = _run(statements, stack.innermost_runs(half), machine, lanes, known).time() if half else Time()
    if half == left:
        return whole
    vectors = _run(statements, stack.innermost_runs(ceil((left - half) / lanes) * lanes), machine, lanes, known)
    return whole.plus(vectors.time(masked=True))


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


def _in_parts(statements: Statements, stack: Stack, left: float, machine: Machine) -> Time:
    """What is ``left`` of a loop of the compiler's: in vectors, then in shorter ones, and then one by one."""
    total = Time()
    for lanes in (*(lanes for lanes in WIDTHS if lanes <= machine.lanes), 1):
        part = left // lanes * lanes if lanes > 1 else left
        if part:
            total = total.plus(_run(statements, stack.innermost_runs(part), machine, lanes).time())
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


def _run(statements: Statements, stack: Stack, machine: Machine, lanes: int, known: Known = NOTHING) -> Tally:
    """What every execution of ``statements`` asks for."""
    turning = turned(*stack.loops[-2:]) if len(stack.loops) > 1 and stack.innermost else NO_TURNING
    sums = (stack.mask(s.target) for s in statements if isinstance(s, Accumulate))
    tiles = any(_stays_in_registers(mask, stack) for mask in sums)
    around = stack.loops[stack.unrolled - 1] if stack.unrolled and lanes > 1 else None
    visits = 0.0 if around is None else visited(around, stack.unit, tuple(statements))
    limits = [loop.width or 1 for loop in stack.unit]
    rows = staying(limits, lanes_of(stack.unit[-1], tuple(statements)), statements) if visits else 0
    tally = Tally(stack, machine, lanes, known, _jams(statements, stack), tiles, turning, visits, rows)
    tally.slots = visits * ROW_SLOTS * stack.entered * prod(stack.trips[stack.unrolled : stack.unrolled + rows])
    for statement in statements:
        value = _evaluate(statement.value, tally)
        match statement:
            case Assign(target) if target.buffer in known.begun and isinstance(statement.value, Constant):
                tally.slots += stack.executions(stack.mask(target)) / lanes
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


def _evaluate(value: Scalar, tally: Tally) -> Term:
    """Charge the computation of ``value``."""
    match value:
        case Constant():
            return Term(0)
        case Load():
            return _load(value, tally)
        case Apply(op, arguments):
            first, *others = arguments
            # of the two of a subtraction or a division, the first is in a register
            apart = op in ("sub", "div")
            terms = [_load(first, tally, apart) if isinstance(first, Load) else _evaluate(first, tally)]
            terms += [_evaluate(argument, tally) for argument in others]
            mask = reduce(or_, (term.mask for term in terms), 0)
            times = tally.stack.executions(mask)
            if op in ("add", "sub"):
                _add(mask, times, terms, tally)
            else:
                for rate in ("mul",) if _inverted(op, terms, tally) else _rates(op, arguments):
                    tally.operate(rate, mask, times)
            return Term(mask, op == "mul")
        case other:
            assert_never(other)


def _inverted(op: str, terms: Sequence[Term], tally: Tally) -> bool:
    """Is it a division by what the innermost loop does not move? Compiled code multiplies by the inverse."""
    return op == "div" and len(terms) == 2 and bool(terms[0].mask) and not terms[1].mask & tally.stack.innermost


def _rates(op: str, arguments: Sequence[Scalar]) -> tuple[RateName, ...]:
    """The rates that ``op`` runs at; a power with one constant is an exponential, a square root or a product."""
    match op, arguments:
        case "pow", (_, Constant(exponent)):
            return (POWERS.get(exponent, "pow"),)
        case "pow", (Constant(base), _) if base > 0:
            return ("exp",)
        case "max" | "min", (Load() | Apply(), Load() | Apply()):
            # either may be NaN, which is skipped
            return "compare", "max"
        case _:
            return (RATE_OF.get(op, "compare"),)


def _load(place: Load, tally: Tally, apart: bool = False) -> Term:
    """A place is loaded once in an iteration, perhaps ``apart`` from what takes it; scalars live in registers."""
    term = tally.terms.get(place)
    if term is None:
        mask = tally.stack.mask(place)
        term = tally.terms[place] = Term(mask)
        if place.indices and place.buffer not in tally.known.near:
            times = tally.loads(mask)
            tally.load(place, mask, times)
            tally.broadcast(mask, times, apart)
            tally.rows += tally.stack.copies(tally.stack.rows(place))
    return term


def _add(mask: Mask, times: float, terms: Sequence[Term], tally: Tally) -> bool:
    """An addition; whether it absorbs one multiplication, that runs as often."""
    absorbed = any(term.product and tally.stack.executions(term.mask) == times for term in terms)
    if absorbed:
        tally.operate("mul", mask, -times)
    tally.operate("fma" if absorbed else "add", mask, times)
    return absorbed


def _store(target: Load, value: Term, tally: Tally) -> None:
    if not target.indices:
        tally.terms[target] = value
        return
    mask = tally.stack.mask(target)
    tally.store(target, mask, tally.stack.executions(mask))
    tally.terms[target] = Term(mask)


def _accumulate(target: Load, op: str, value: Term, tally: Tally, *, as_it_is: bool) -> None:
    """Charge adding ``value`` to ``target``, by ``op``; ``as_it_is``: it comes from memory and is not computed."""
    stack = tally.stack
    mask = stack.mask(target)
    times = stack.executions(stack.all)
    rate, fused = RATE_OF.get(op, "compare"), False
    if rate == "add":
        fused = _add(stack.all, times, [value], tally)
    else:
        tally.operate(rate, stack.all, times)
    if _stays_in_registers(mask, stack):
        step = tally.machine.adder_cycles if rate in ADDERS and not fused else tally.machine.chain_cycles
        _hold(target, step, mask, times, tally, as_it_is=as_it_is)
        tally.ask()
    else:
        times /= JAMMED if tally.jams and _comes_back(mask, stack) else 1.0
        tally.load(target, mask, times)
        tally.store(target, mask, times)
    tally.terms[target] = Term(mask)


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


def _hold(target: Load, step: float, mask: Mask, times: float, tally: Tally, *, as_it_is: bool) -> None:
    """Charge an accumulation into registers: getting there and back, folding lanes, spills, and the wait.

    Args:
        step: cycles from one to the next that needs its result.
    """
    stack, machine = tally.stack, tally.machine
    constant = stack.loops[-1].width is not None
    folds = tally.lanes > 1 and not mask & stack.innermost
    # lanes that several rows of a tile add to are folded once for each tile
    several = folds and any(not mask >> n & 1 for n in range(stack.unrolled, len(stack.loops) - 1))
    moves = stack.accumulated(mask) if constant and not several else stack.entered * stack.copies(mask)
    if folds and stack.tiles < stack.entered:
        # lanes that rows of constant number add to are folded once for each tile
        moves = max(moves, stack.tiles * stack.copies(mask))
    if tally.visits:
        _visit(target, mask, moves, tally)
    else:
        _come_and_go(target, mask, moves, tally)
    if folds:
        _fold(moves, tally)
    width = min(stack.trips[-1], _strip(stack))
    registers = stack.copies(mask) * (max(1.0, width / tally.lanes) if folds else 1.0 / tally.width(mask))
    shared = tally.vectors_beside(target) * (_strip(stack) / (stack.loops[-1].width or STRIP) if folds else 1.0)
    # what one row alone adds as it is stays an operand in memory, unless it is in registers already
    alone = 0.0 if as_it_is else SCRATCH
    near = any(place.buffer in tally.known.near for place in tally.terms)
    taken = beside(shared) if constant and (registers != shared or (folds and near)) else alone
    free, held = machine.vector_registers - taken, registers + stack.beside
    spilled = 0.0 if tally.visits else max(0.0, held - free) * registers / max(held, 1.0)
    tally.slots += machine.spill_slots * spilled * stack.entered
    if folds:
        tally.slots += BEGUN_SLOTS * spilled * moves / stack.copies(mask)
    tally.sums = max(tally.sums, moves / stack.copies(mask))
    updates = times / tally.lanes if tally.lanes > 1 else times
    waits = updates / registers * step
    if folds:
        # what follows waits for the fold, and for a function before it
        steps = _joins(tally.lanes, width) + log2(tally.lanes)
        waits += tally.sums * (FOLD_CYCLES * steps + (FUNCTION_CYCLES if tally.calling else 0.0))
    tally.chain = max(tally.chain, waits / machine.clock_ghz)


def _come_and_go(target: Load, mask: Mask, moves: float, tally: Tally) -> None:
    """Charge getting so many elements of a sum to where it is held, and back; unless it is where it goes already."""
    if target.buffer not in tally.known.begun:
        tally.load(target, mask, moves)
    if target.buffer not in tally.known.near:
        tally.store(target, mask, moves, tile=True)


def _visit(target: Load, mask: Mask, moves: float, tally: Tally) -> None:
    """Charge a sum that is in the nearest cache, of which so many elements come there, or which few steps leave."""
    stack = tally.stack
    steps = stack.loops[stack.unrolled - 1].width
    in_place = steps is not None and steps < FEWEST_STEPS
    stays = moves < stack.entered * stack.copies(mask)
    vectors = stack.copies(mask) / tally.width(mask)
    if not in_place:
        _come_and_go(target, mask, moves, tally)
    if stays or in_place:
        tally.go_there_and_back(tally.visits * vectors * stack.entered)
    if stays and not in_place:
        tally.begin(BEGUN_STORES * moves / tally.width(mask))
    tally.loaded += tally.loaded_by_rows(target, vectors) * stack.entered * tally.vector_bytes


def _strip(stack: Stack) -> int:
    """How many lanes a sum across them takes at a time: of a part of constant length all, or a divisor."""
    width = stack.loops[-1].width
    if width is None or width <= MOST_LANES:
        return STRIP if width is None else width
    return next((lanes for lanes in (STRIP, 32, *WIDTHS) if not width % lanes), STRIP)


def _fold(times: float, tally: Tally) -> None:
    """Charge folding a strip into one number."""
    machine, lanes, width = tally.machine, tally.lanes, tally.stack.loops[-1].width
    strip = STRIP if width is None else width
    tally.slots += times * fold_slots(lanes, strip)
    tally.adding += times * (_joins(lanes, strip) + log2(lanes)) * machine.lanes / machine.vector.add
