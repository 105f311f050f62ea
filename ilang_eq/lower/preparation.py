"""A program in two: what depends on constant inputs alone, run once, and the rest, run at every call.

Whole kernels move: a packed or transposed copy, or a product of weights, that the schedule materialises. What is staged
inside a kernel that reads other inputs too stays there, and so does a kernel that writes an output of the program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as Choice
from typing import TypeVar

from ilang_eq.lower.addresses import extents_in
from ilang_eq.lower.ir import Buffer, Extent, Kernel, Program
from ilang_eq.lower.renaming import Renaming
from ilang_eq.lower.walk import buffers_of, declared_in, loads, updates

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Preparation:
    """``first`` once, then ``rest`` as often as need be: together they compute what the program did, bit by bit.

    Attributes:
        first: takes the inputs numbered ``constants`` and returns what is kept for ``rest``.
        rest: takes the inputs numbered ``varying``, then those numbered ``fixed``, then what ``first`` returned. Of
            some fixed ones it reads the extents alone.
    """

    first: Program
    constants: tuple[int, ...]
    rest: Program
    varying: tuple[int, ...]
    fixed: tuple[int, ...]


def prepare(program: Program, constants: Collection[int]) -> Preparation:
    """Split ``program`` for inputs number ``constants`` that stay the same from call to call."""
    names = program.inputs
    early = _early(program, {names[k] for k in constants})
    late = [kernel for kernel in program.kernels if kernel not in early]
    made = {name for kernel in early for name in _written(kernel)}
    read = {name for kernel in late for name in buffers_of(kernel.body)}
    kept = [buffer.name for buffer in program.buffers if buffer.name in made & read]
    needed = {name for kernel in early for name in buffers_of(kernel.body)}
    taken = tuple(k for k in sorted(constants) if names[k] in needed)
    varying = tuple(k for k in range(len(names)) if k not in constants)
    given = {*(names[k] for k in varying), *kept, *((read | set(program.outputs)) & set(names))}
    sizing = _sizing(program, late, given)
    fixed = tuple(k for k in sorted(constants) if names[k] in given or k in sizing)
    first = _part(program, early, [names[k] for k in taken], kept)
    rest = _part(program, late, [*(names[k] for k in (*varying, *fixed)), *kept], program.outputs)
    return Preparation(first, taken, rest, varying, fixed)


def recurring(program: Program, constants: Collection[int]) -> Program:
    """What runs at every call if inputs number ``constants`` stay the same, by the names that ``program`` has."""
    early = _early(program, {program.inputs[k] for k in constants})
    if not early:
        return program
    late = tuple(kernel for kernel in program.kernels if kernel not in early)
    touched = {name for kernel in late for name in (*buffers_of(kernel.body), *declared_in(kernel.body))}
    kept = tuple(b for b in program.buffers if b.name in touched | set(program.outputs))
    return replace(program, buffers=kept, kernels=late)


def merged(varying: Sequence[T], constants: Mapping[int, T]) -> list[T]:
    """The inputs in the order of a program, of which those by number are ``constants``."""
    rest = iter(varying)
    return [constants[k] if k in constants else next(rest) for k in range(len(varying) + len(constants))]


def _sizing(program: Program, kernels: Sequence[Kernel], given: Collection[str]) -> set[int]:
    """The inputs that ``kernels`` need for their extents alone, which no buffer that is ``given`` has."""
    touched = {name for kernel in kernels for name in buffers_of(kernel.body)} | set(program.outputs)
    buffers = [buffer for buffer in program.buffers if buffer.name in touched]
    found = extents_in(buffers, [statement for kernel in kernels for statement in kernel.body])
    known = {size for buffer in program.buffers if buffer.name in given for size in buffer.dims}
    return {extent.input for extent in found if extent not in known}


def _early(program: Program, constants: set[str]) -> list[Kernel]:
    """The kernels that read nothing but constants, and what such kernels have written, and write no output."""
    known = set(constants)
    early: list[Kernel] = []
    workspaces = {buffer.name for buffer in program.buffers if buffer.role == "workspace"}
    for kernel in program.kernels if workspaces else ():
        written = _written(kernel)
        if written <= workspaces and _read(kernel) - set(declared_in(kernel.body)) - written <= known:
            early.append(kernel)
            known |= written
    return early


def _read(kernel: Kernel) -> set[str]:
    return {load.buffer for update in updates(kernel.body) for load in loads(update.value)}


def _written(kernel: Kernel) -> set[str]:
    """The buffers that ``kernel`` leaves behind."""
    return {update.target.buffer for update in updates(kernel.body)} - set(declared_in(kernel.body))


def _part(program: Program, kernels: Sequence[Kernel], inputs: Sequence[str], outputs: Sequence[str]) -> Program:
    """``kernels`` as a program of its own, its inputs numbered afresh."""
    by_name = {buffer.name: buffer for buffer in program.buffers}
    members: dict[Extent, list[tuple[int, int]]] = {}
    for k, name in enumerate(inputs):
        for d, size in enumerate(by_name[name].dims):
            if isinstance(size, Extent):
                members.setdefault(size, []).append((k, d))
    numbered = {name: f"in{k}" for k, name in enumerate(inputs)}
    renaming = Renaming(numbered, {extent: Extent(*where[0]) for extent, where in members.items()})
    used = {name for kernel in kernels for name in (*buffers_of(kernel.body), *declared_in(kernel.body))}
    roles: dict[str, Choice["input", "output"]] = dict.fromkeys(inputs, "input")
    roles |= {name: "output" for name in outputs if name not in inputs}
    ranks = dict(zip(program.inputs, program.ranks, strict=True))
    return replace(
        program,
        ranks=tuple(ranks[name] if name in ranks else len(by_name[name].dims) for name in inputs),
        ties=tuple(tuple(where) for where in members.values() if len(where) > 1),
        buffers=tuple(
            renaming.buffer(_in_role(buffer, roles)) for buffer in program.buffers if buffer.name in used | set(roles)
        ),
        inputs=tuple(numbered.values()),
        outputs=tuple(renaming.name(name) for name in outputs),
        kernels=tuple(Kernel(kernel.name, renaming.statements(kernel.body)) for kernel in kernels),
    )


def _in_role(buffer: Buffer, roles: dict[str, Choice["input", "output"]]) -> Buffer:
    return replace(buffer, role=roles.get(buffer.name, buffer.role))
