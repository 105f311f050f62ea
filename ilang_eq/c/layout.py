"""Where each buffer of a kernel lives, and how its elements are addressed in C.

Inputs, outputs and workspaces are arguments. A local is a C variable (no dimensions), an array on the stack (constant
size, within ``STACK_FLOATS``), or a slice of the workspace: *private* to a thread if it is declared inside a
parallel loop, *shared* otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as Choice
from typing import assert_never

from ilang_eq.lower.addresses import STACK_FLOATS, constant_size, index_text, is_spaced, offset_text, size_text
from ilang_eq.lower.ir import Buffer, Declare, For, Kernel, Load, Program, Size, Statement
from ilang_eq.lower.walk import buffers_of, declared_in, walk

Storage = Choice["argument", "scalar", "stack", "shared", "private"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The storage of every buffer that one kernel touches."""

    buffers: dict[str, Buffer]
    storage: dict[str, Storage]

    def slices(self, storage: Storage) -> tuple[Buffer, ...]:
        """The buffers kept in one kind of storage, in the order of their declaration."""
        return tuple(self.buffers[name] for name, where in self.storage.items() if where == storage)

    def element(self, load: Load) -> str:
        """``load`` as a C lvalue. A buffer that the program does not know is a register tile."""
        indices = [index_text(index) for index in load.indices]
        match self.storage.get(load.buffer, "stack"):
            case "scalar":
                return load.buffer
            case "stack":
                return load.buffer + "".join(f"[{index}]" for index in indices)
            case "argument" | "shared" | "private":
                return f"{load.buffer}[{offset_text(indices, self._sizes(load.buffer))}]"
            case other:
                assert_never(other)

    def step(self, load: Load, variable: str) -> str:
        """How many floats ``load`` moves with each step of ``variable``, which no divisor divides."""
        sizes, terms = self._sizes(load.buffer), list[str]()
        for d, index in enumerate(load.indices):
            terms += [" * ".join(sizes[d + 1 :]) or "1"] * index.variables.count(variable)
        return " + ".join(terms)

    def is_known_step(self, load: Load, variable: str) -> bool:
        """Whether that is a number, and not an extent's."""
        return re.fullmatch(r"[\d *+]+", self.step(load, variable)) is not None

    def _sizes(self, name: str) -> list[str]:
        buffer = self.buffers[name]
        return sizes_text(buffer) if self.storage[name] == "private" else [size_text(size) for size in buffer.dims]

    def declaration(self, name: str) -> str | None:
        """The C declaration of a local; None for a slice of the workspace."""
        match self.storage[name]:
            case "scalar":
                return f"float {name};"
            case "stack":
                return array_text(name, self.buffers[name].dims)
            case "argument" | "shared" | "private":
                return None
            case other:
                assert_never(other)


def kernel_layout(program: Program, kernel: Kernel) -> Layout:
    """Decide where the buffers of ``kernel`` live."""
    used = set(buffers_of(kernel.body))
    buffers = {b.name: b for b in program.buffers if b.name in used}
    storage: dict[str, Storage] = {name: "argument" for name, b in buffers.items() if b.role != "local"}
    private = {name for loop in parallel_loops(kernel) for name in declared_in(loop.body)}
    captured = {name for loop in parallel_loops(kernel) for name in buffers_of(loop.body)} - private
    left = STACK_FLOATS
    for statement in walk(kernel.body):
        if not isinstance(statement, Declare) or statement.buffer not in used:
            continue
        buffer = buffers[statement.buffer]
        size = constant_size(buffer)
        if not buffer.dims and buffer.name not in captured:
            storage[buffer.name] = "scalar"
        elif size is not None and size <= left and buffer.name not in captured:
            storage[buffer.name] = "stack"
            left -= size
        else:
            storage[buffer.name] = "private" if buffer.name in private else "shared"
    return Layout(buffers, storage)


def parallel_loops(kernel: Kernel) -> Iterator[For]:
    """The loops that run on several threads: those marked so that are not in another such loop."""
    return _outermost_parallel(kernel.body)


def _outermost_parallel(statements: Sequence[Statement]) -> Iterator[For]:
    for statement in statements:
        if isinstance(statement, For) and statement.parallel:
            yield statement
        elif isinstance(statement, For):
            yield from _outermost_parallel(statement.body)


def array_text(name: str, dims: Sequence[Size]) -> str:
    """The declaration of a stack array."""
    return f"float {name}" + "".join(f"[{size_text(size)}]" for size in dims) + " __attribute__((aligned(64)));"


def floats_text(buffer: Buffer) -> str:
    """The padded number of floats of a slice of the workspace."""
    return f"padded({' * '.join(sizes_text(buffer)) or '1'})"


def sizes_text(buffer: Buffer) -> list[str]:
    """The dimensions of a slice of the workspace, with some room between rows if there are many in a thread's own."""
    sizes = [size_text(size) for size in buffer.dims]
    return [*sizes[:-1], f"spaced({sizes[-1]})"] if is_spaced(buffer) else sizes
