"""A slow, checked executor of the loop IR in plain Python: the lowering is tested without a compiler."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ilang_eq.lang.ops import OPS
from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    CeilDiv,
    Comment,
    Constant,
    Declare,
    Extent,
    For,
    Index,
    Load,
    Program,
    Scalar,
    Size,
    Statement,
)


class Machine:
    """Runs one program; every access is bounds-checked, and reading an element never written is an error."""

    def __init__(self, program: Program, arrays: Sequence[np.ndarray]) -> None:
        self.extents = {Extent(k, d): n for k, a in enumerate(arrays) for d, n in enumerate(a.shape)}
        self.dims = {b.name: tuple(self.size(s) for s in b.dims) for b in program.buffers}
        self.data: dict[str, dict[tuple[int, ...], float]] = {b.name: {} for b in program.buffers}
        self.inputs = frozenset(program.inputs)
        for name, array in zip(program.inputs, arrays, strict=True):
            self.dims[name] = array.shape
            self.data[name] = {i: float(array[i]) for i in np.ndindex(array.shape)}
        self.variables: dict[str, int] = {}

    def size(self, size: Size) -> int:
        match size:
            case int():
                return size
            case Extent():
                return self.extents[size]
            case CeilDiv(extent, divisor):
                return -(-self.extents[extent] // divisor)

    def run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case For():
                    self.loop(statement)
                case Assign(target, value):
                    self.store(target, self.value(value))
                case Accumulate(target, op, value):
                    self.store(target, apply(op, [self.load(target), self.value(value)]))
                case Declare(buffer):
                    self.data[buffer] = {}
                case Comment():
                    pass

    def loop(self, loop: For) -> None:
        if any(self.variables[v] for v in loop.first) or (loop.without and all(map(self.size, loop.without))):
            return
        end = self.extents[loop.extent] - sum(self.variables[v] for v in loop.outer)
        end = end if loop.limit is None else min(end, loop.limit)
        assert loop.variable not in self.variables, f"{loop.variable} is defined twice"
        for value in range(0, end, loop.step):
            self.variables[loop.variable] = value
            self.run(loop.body)
        self.variables.pop(loop.variable, None)

    def place(self, load: Load) -> tuple[int, ...]:
        at = tuple(self.index(i) for i in load.indices)
        dims = self.dims[load.buffer]
        assert len(at) == len(dims), f"{load} has {len(at)} indices for {dims}"
        assert all(0 <= i < n for i, n in zip(at, dims, strict=True)), f"{load} at {at} is outside {dims}"
        return at

    def index(self, index: Index) -> int:
        total = sum(self.variables[v] for v in index.variables)
        assert total % index.divisor == 0
        return total // index.divisor

    def load(self, load: Load) -> float:
        at = self.place(load)
        assert at in self.data[load.buffer], f"{load} at {at} was never written"
        return self.data[load.buffer][at]

    def store(self, target: Load, value: float) -> None:
        assert target.buffer not in self.inputs
        self.data[target.buffer][self.place(target)] = value

    def value(self, value: Scalar) -> float:
        match value:
            case Load():
                return self.load(value)
            case Constant(number):
                return number
            case Apply(op, arguments):
                return apply(op, [self.value(a) for a in arguments])


def apply(op: str, x: Sequence[float]) -> float:
    match op:
        case "abs":
            return abs(x[0])
        case "finite_or":
            return x[0] if math.isfinite(x[0]) else x[1]
        case "shift_factor":
            return float(np.exp(x[0] * (x[1] - x[2]))) if math.isfinite(x[1]) and math.isfinite(x[2]) else 1.0
        case "exp":
            return float(np.exp(np.float64(x[0])))
        case "ln":
            return float(np.log(np.float64(x[0])))
        case "not":
            return float(x[0] == 0)
        case _:
            return float(OPS[op].apply(np.float64(x[0]), np.float64(x[1])))


def execute(program: Program, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The program's outputs."""
    with np.errstate(all="ignore"):
        machine = Machine(program, arrays)
        for kernel in program.kernels:
            machine.run(kernel.body)
    results = []
    for name in program.outputs:
        out = np.full(machine.dims[name], np.nan)
        for at, value in machine.data[name].items():
            out[at] = value
        # the last tiles of a copy in panels are wider than what it copies
        tiled = any(isinstance(size, CeilDiv) for size in program.buffer(name).dims)
        assert tiled or len(machine.data[name]) == out.size, f"{name} was not written in full"
        results.append(out)
    return tuple(results)
