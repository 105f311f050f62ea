"""C text of vector nests: explicit vectors, unrolled, clamped and masked where a loop may be short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import isinf
from typing import TypeGuard

from ilang_eq.c.layout import Layout
from ilang_eq.c.math import FUNCTIONS, TRUTHS
from ilang_eq.c.nodes import VectorNest
from ilang_eq.lang.ops import OPS
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Comment, Constant, Declare, For, Index, Load, Scalar, Statement
from ilang_eq.lower.scalar import (
    EXTREMA,
    Call,
    Printer,
    Spelling,
    Truth,
    combine,
    number_text,
    operands,
    spell,
    update_text,
)
from ilang_eq.lower.walk import loads, mentions, stride, updates


@dataclass(slots=True)
class Used:
    """What the printed text relies on.

    Args:
        functions: of floats.
        lifted: of vectors, as (name, arity, lanes).
        several: of several vectors side by side, as (name, lanes).
        alone: of those, the ones of a single vector, too.
        helpers: vector operations, as (name, lanes).
        widths: of vectors.
    """

    functions: set[str] = field(default_factory=set)
    lifted: set[tuple[str, int, int]] = field(default_factory=set)
    several: set[tuple[str, int]] = field(default_factory=set)
    alone: set[tuple[str, int]] = field(default_factory=set)
    helpers: set[tuple[str, int]] = field(default_factory=set)
    widths: set[int] = field(default_factory=set)


@dataclass(slots=True)
class VectorPrinter(Printer):
    """Prints scalars of one vector nest: what moves with the lane is a vector.

    Functions are ``alike`` if their results are those of single floats, to the bit. What takes more than an instruction
    to load, and is the same in all rows, is loaded ``once`` for them, under a name; if a vector goes ``alone`` through
    all rows, just that one.
    """

    layout: Layout
    nest: VectorNest
    extras: Used
    alike: bool = False
    vectors: set[str] = field(default_factory=set)
    alone: bool = False
    once: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(nest: VectorNest, layout: Layout, used: Used, alike: bool = False, alone: bool = False) -> VectorPrinter:
        """For the body of ``nest``."""
        if nest.lanes > 1:
            used.widths.add(nest.lanes)
        printer = VectorPrinter(lambda load: printer.place(load), used.functions, layout, nest, used, alike)
        printer.alone = alone
        return printer

    @property
    def lane(self) -> str:
        """The loop that runs over lanes."""
        return self.nest.loops[-1].variable

    @property
    def lanes(self) -> int:
        """The lanes of the nest's vectors."""
        return self.nest.lanes

    def helper(self, name: str) -> str:
        """The name of a vector helper, noted as used."""
        self.extras.helpers.add((name, self.lanes))
        return f"{name}{self.lanes}"

    def is_vector(self, value: Scalar) -> bool:
        """Whether ``value`` has a lane for each step of the innermost loop."""
        match value:
            case Load(buffer):
                return buffer in self.vectors or (self.lanes > 1 and stride(value, self.lane) != "none")
            case Constant():
                return False
            case Apply():
                return any(self.is_vector(operand) for operand in operands(spell(value)))

    def vector(self, value: Scalar) -> str:
        """``value`` as a vector, broadcast if it is a number."""
        if isinstance(value, Constant) and isinf(value.value):
            return f"{self.helper('highest' if value.value > 0 else 'lowest')}()"
        text = self.text(value)
        return text if self.is_vector(value) else f"{self.helper('broadcast')}({text})"

    def call(self, call: Call) -> str:
        """A call, lifted to vectors where an argument is one."""
        if not any(self.is_vector(argument) for argument in call.arguments):
            return Printer.call(self, call)
        self.used.add(call.function)
        arguments = ", ".join(self.vector(argument) for argument in call.arguments)
        # short nests have constants of their own: GCC would hold those of full ones in registers throughout
        if FUNCTIONS[call.function].several is not None and not self.alike and not self.nest.partial:
            self.extras.several.add((call.function, self.lanes))
            self.extras.alone.add((call.function, self.lanes))
            return f"{call.function}{self.lanes}_alone({arguments})"
        self.extras.lifted.add((call.function, len(call.arguments), self.lanes))
        return f"{call.function}{self.lanes}({arguments})"

    def spelled(self, spelling: Spelling, around: int) -> str:
        """A comparison of vectors is a call: C has no vector of 1.0f and 0.0f for it."""
        if isinstance(spelling, Truth) and any(self.is_vector(argument) for argument in spelling.arguments):
            return self.call(Call(TRUTHS[spelling.operator], spelling.arguments))
        return Printer.spelled(self, spelling, around)

    def place(self, load: Load) -> str:
        """``load`` as a value: a float, a vector, or as much of a vector as there is."""
        where = self.layout.element(self.clamped(load))
        if load.buffer in self.vectors or not self.is_vector(load):
            return where
        short = f", {self.left()}" if self.lane in self.exposed(load) else ""
        if stride(load, self.lane) == "far":
            step = self.layout.step(load, self.lane)
            name = self.helper("gather_left" if short else "gather")
            return self._loaded(load, f"{name}(&{where}, {step}{short})")
        if short:
            return self._loaded(load, f"{self.helper('load')}(&{where}{short})")
        return f"V{self.lanes}({where})"

    def _loaded(self, load: Load, text: str) -> str:
        """``text``, which loads ``load``, or what has it if that is the same in all rows."""
        rows = self.nest.loops[:-1]
        written = {update.target.buffer for update in updates(self.nest.body)}
        if not rows or load.buffer in written or any(mentions(load, row.variable) for row in rows):
            return text
        others = sum(name.startswith(f"{load.buffer}_once") for name in self.once.values())
        name = self.once.setdefault(text, f"{load.buffer}_once{others or ''}")
        step = "" if self.nest.steps is None else f"[{self.nest.steps.variable}]"
        return name if self.alone else f"{name}{step}[{self.lane} / LANES{self.lanes}]"

    def before(self) -> list[str]:
        """What is loaded once for all rows."""
        lane, lanes = self.nest.loops[-1], f"LANES{self.lanes}"
        if self.alone:
            return [f"const vec{self.lanes} {name} = {text};" for text, name in self.once.items()]
        steps = [] if self.nest.steps is None else [self.nest.steps]
        of_steps = "".join(f"[{loop.limit}]" for loop in steps)
        step = "".join(f"[{loop.variable}]" for loop in steps)
        return [
            line
            for text, name in self.once.items()
            for line in (
                f"vec{self.lanes} {name}{of_steps}[({lane.limit} + {lanes} - 1) / {lanes}];",
                *unrolled([*steps, lane], self.lanes, [f"{name}{step}[{self.lane} / {lanes}] = {text};"]),
            )
        ]

    def left(self) -> str:
        """How many lanes are left."""
        return f"{self.lane}_end - {self.lane}"

    def exposed(self, load: Load) -> frozenset[str]:
        """The partial variables by which ``load`` could leave its buffer, or a row of it that is no whole vectors."""
        if load.buffer not in self.layout.buffers:
            return frozenset()
        sizes = self.layout.buffers[load.buffer].dims
        found: set[str] = set()
        for index, size in zip(load.indices, sizes, strict=True):
            if not isinstance(size, int) or (self.lane in index.variables and size % self.lanes):
                found.update(index.variables)
        return self.nest.partial & found

    def clamped(self, load: Load) -> Load:
        """``load`` with partial rows held at the last one there is."""
        rows = self.exposed(load) - ({self.lane} if self.lanes > 1 else set())
        indices = (
            Index(tuple(f"least({v}, {v}_end - 1)" if v in rows else v for v in index.variables), index.divisor)
            for index in load.indices
        )
        return Load(load.buffer, tuple(indices))


def nest_lines(nest: VectorNest, layout: Layout, used: Used, alike: bool = False) -> list[str]:
    """The unrolled loops of ``nest``; results are ``alike`` if they are those of single floats, to the bit.

    Of lanes that may be short, and are reduced or take long, whole vectors have code of their own, and absent ones are
    passed over: once for all rows. With a test in each, the largest of 24 floats take 1.45 times as long on Zen 5.
    """
    *rows, lane = nest.loops
    slow = nest.reduced or any(slow_call(update.value) is not None for update in updates(nest.body))
    if not slow or nest.lanes == 1 or lane.variable not in nest.partial:
        return _loop_lines(nest.loops, VectorPrinter.of(nest, layout, used, alike))
    v, end = lane.variable, f"{lane.variable}_end"
    nests = replace(nest, partial=nest.partial - {v}), nest
    whole, left = (_loop_lines(rows, VectorPrinter.of(each, layout, used, alike, alone=True)) for each in nests)
    chosen = [f"if ({v} + LANES{nest.lanes} <= {end}) {{", *indented(whole)]
    chosen += [f"}} else if ({v} < {end}) {{", *indented(left), "}"]
    return unrolled([lane], nest.lanes, chosen)


def _loop_lines(loops: Sequence[For], printer: VectorPrinter) -> list[str]:
    """The body of a nest in ``loops``: all of it, or those over rows."""
    nest, lanes = printer.nest, 1 if printer.alone else printer.lanes
    body = _contracted(nest.body) if nest.lanes > 1 else nest.body
    lines = [line for statement in body for line in statement_lines(statement, printer)]
    lines = lines if nest.steps is None else unrolled([nest.steps], 1, lines)
    return [*printer.before(), *(unrolled(loops, lanes, lines, nest.rolled) if loops else lines)]


def _contracted(body: Sequence[Statement]) -> list[Statement]:
    """``body`` with each product that is only ever added to a sum inside that sum, where it takes no instruction."""
    reads = Counter(place for update in updates(body) for place in loads(update.value))
    written = {update.target.buffer for update in updates(body) if update.target.indices}
    products = {s.target: s for s in body if isinstance(s, Assign) and _is_product(s.value) and not s.target.indices}
    absorbed = [s.value for s in body if isinstance(s, Accumulate) and s.op == "add" and s.value in products]
    alone = {
        place: products[place]
        for place in absorbed
        if isinstance(place, Load) and reads[place] == 1
        if written.isdisjoint(factor.buffer for factor in loads(products[place].value))
    }
    return [
        replace(s, value=alone[s.value].value) if isinstance(s, Accumulate) and s.value in alone else s
        for s in body
        if s not in alone.values()
    ]


def slow_call(value: Scalar) -> Call | None:
    """``value`` as a call of a function of many steps, which is faster on several vectors; None for anything else."""
    if not isinstance(value, Apply):
        return None
    spelling = spell(value)
    match spelling:
        case Call(function, (_,)) if FUNCTIONS[function].several is not None:
            return spelling
        case _:
            return None


def _is_product(value: Scalar) -> TypeGuard[Apply]:
    return isinstance(value, Apply) and value.op == "mul"


def unrolled(loops: Iterable[For], lanes: int, body: list[str], rolled: Iterable[For] = ()) -> list[str]:
    """``body`` in loops, the last of which steps by ``lanes``; fully unrolled, but for those that stay ``rolled``."""
    *outer, last = loops
    steps = [f"{loop.variable}++" for loop in outer]
    steps.append(f"{last.variable} += LANES{lanes}" if lanes > 1 else f"{last.variable}++")
    lines = body
    for loop, step in zip(reversed([*outer, last]), reversed(steps), strict=True):
        v = loop.variable
        head = f"for (int64_t {v} = 0; {v} < {loop.limit}; {step}) {{"
        lines = [*([] if loop in rolled else ["UNROLL"]), head, *indented(lines), "}"]
    return lines


def indented(lines: Iterable[str]) -> list[str]:
    """``lines`` one level deeper."""
    return ["    " + line if line and not line.startswith("#") else line for line in lines]


def statement_lines(statement: Statement, printer: VectorPrinter) -> list[str]:
    """One statement of a nest's innermost body."""
    match statement:
        case Comment(text):
            return [f"// {text}"]
        case Assign(target, value) if printer.lanes > 1 and not target.indices:
            # a scalar of the innermost body, declared by its only assignment
            if printer.is_vector(value):
                printer.vectors.add(target.buffer)
                return [f"const vec{printer.lanes} {target.buffer} = {printer.text(value)};"]
            return [f"const float {target.buffer} = {printer.text(value)};"]
        case Assign(target, value):
            return _guarded(target, _store(target, value, printer), printer)
        case Accumulate(target, op, value):
            return _guarded(target, _accumulate(target, op, value, printer), printer)
        case Declare(name):
            return [] if printer.lanes > 1 else [f"float {name};"]
        case For():
            raise ValueError("a vector nest is perfect")


def _guarded(target: Load, sentence: str, printer: VectorPrinter) -> list[str]:
    rows = sorted(printer.exposed(target) - ({printer.lane} if printer.lanes > 1 else set()))
    test = " && ".join(f"{row} < {row}_end" for row in rows)
    return [f"if ({test})", "    " + sentence] if test else [sentence]


def _store(target: Load, value: Scalar, printer: VectorPrinter) -> str:
    where = printer.layout.element(target)
    if printer.lanes == 1:
        return f"{where} = {printer.text(value)};"
    short = printer.lane in printer.exposed(target)
    if stride(target, printer.lane) == "far":
        step, left = printer.layout.step(target, printer.lane), f", {printer.left()}" if short else ""
        name = printer.helper("scatter_left" if short else "scatter")
        return f"{name}(&{where}, {printer.vector(value)}, {step}{left});"
    if short:
        return f"{printer.helper('store')}(&{where}, {printer.vector(value)}, {printer.left()});"
    if target.buffer in printer.nest.streamed:
        return f"{printer.helper('stream')}(&{where}, {printer.vector(value)});"
    return f"V{printer.lanes}({where}) = {printer.vector(value)};"


def _accumulate(target: Load, op: str, value: Scalar, printer: VectorPrinter) -> str:
    where = printer.layout.element(target)
    if printer.lanes == 1:
        return update_text(where, op, printer.text(value), printer.used)
    where = f"V{printer.lanes}({where})"
    if printer.nest.reduced and printer.lane in printer.nest.partial:
        identity = number_text(OPS[op].identity or 0.0)
        addend = f"{printer.helper('keep')}({printer.vector(value)}, {printer.left()}, {identity})"
    elif op in EXTREMA:
        addend = printer.vector(value)
    elif op == "add" and _is_product(value):
        factors = ", ".join(printer.vector(factor) for factor in value.arguments)
        return f"{where} = {printer.helper('multiply_add')}({factors}, {where});"
    else:
        addend = printer.text(value)
    if op in EXTREMA:
        printer.used.add(EXTREMA[op])
        printer.extras.lifted.add((EXTREMA[op], 2, printer.lanes))
        return f"{where} = {EXTREMA[op]}{printer.lanes}({addend}, {where});"
    sentence = combine(op, where, addend)
    assert sentence is not None, f"vectors do not accumulate by {op}"
    return f"{sentence};"
