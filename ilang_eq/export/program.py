"""A program as a library: its interface, and its C source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ilang_eq.c.emit import program_functions, source_of
from ilang_eq.c.vectors import Used
from ilang_eq.errors import OptionError
from ilang_eq.export.interface import Array, Interface
from ilang_eq.export.source import WARNINGS, entry_points
from ilang_eq.lower.addresses import extent_name, size_text
from ilang_eq.lower.interface import call_extents, summed_extents, written_outputs
from ilang_eq.lower.ir import Extent, Program
from ilang_eq.lower.lifetimes import slots
from ilang_eq.lower.walk import buffers_of


@dataclass(frozen=True, slots=True)
class Library:
    """What the files of an export say: ``source`` is the C file without the line that includes its header."""

    interface: Interface
    source: str
    notes: tuple[str, ...]


def program_library(program: Program, where_empty: Program | None, name: str, notes: Sequence[str]) -> Library:
    """The library that computes ``program``, or ``where_empty`` where a sum is over an axis without elements.

    Raises OptionError if it computes nothing.
    """
    programs = {"kernels": program}
    nothing = [f"{extent_name(extent)} == 0" for extent in summed_extents(program)]
    if nothing and where_empty is not None:
        programs["plain"] = renamed(_writing(where_empty, program), "plain")
    interface = program_interface(list(programs.values()), name)
    used = Used()
    functions = [f for prefix, each in programs.items() for f in program_functions(each, used, prefix, "static ")]
    sizes = [f"{prefix}_workspace({_extents(each)}, threads)" for prefix, each in programs.items()]
    calls = [_call(interface, prefix, each) for prefix, each in programs.items()]
    sizing = [f"const int64_t floats = {sizes[0]};"]
    running = calls[0]
    if len(programs) > 1:
        empty = " || ".join(nothing)
        sizing = [f"const int64_t floats = {empty}", f"    ? {sizes[1]}", f"    : {sizes[0]};"]
        running = [
            f"if ({empty})  // as it was written: sums of nothing are 0",
            *("    " + line for line in calls[1]),
            *calls[0],
        ]
    public = entry_points(interface, sizing, running)
    return Library(interface, source_of(WARNINGS, (*functions, *public), used), tuple(notes))


def program_interface(programs: Sequence[Program], name: str) -> Interface:
    """The arrays that ``programs`` read and write, and their extents. They write the same."""
    program = programs[0]
    read = {buffer for each in programs for kernel in each.kernels for buffer in buffers_of(kernel.body)}
    written = [program.outputs[p] for p in written_outputs(program)]
    if not written:
        raise OptionError("a component that returns its inputs alone", expected="something to compute")
    return Interface(
        name,
        tuple(_described(programs, given) for given in program.inputs if given in read),
        tuple(_described(programs, given) for given in written),
        tuple(dict.fromkeys(extent_name(extent) for each in programs for extent in call_extents(each))),
    )


def renamed(program: Program, prefix: str) -> Program:
    """``program`` with kernels whose names no other program has."""
    kernels = tuple(replace(kernel, name=f"{prefix}_{kernel.name}") for kernel in program.kernels)
    return replace(program, kernels=kernels)


def _writing(program: Program, other: Program) -> Program:
    """``program`` for callers that have memory only for the outputs that ``other`` writes."""
    written = tuple(other.outputs[p] for p in written_outputs(other))
    assert set(written) <= {program.outputs[p] for p in written_outputs(program)}, "rewriting leaves no output out"
    buffers = [
        replace(buffer, role="workspace") if buffer.role == "output" and buffer.name not in written else buffer
        for buffer in program.buffers
    ]
    return replace(program, buffers=tuple(buffers), outputs=written)


def _extents(program: Program) -> str:
    return numbers(map(extent_name, call_extents(program)))


def _call(interface: Interface, prefix: str, program: Program) -> list[str]:
    """Return what ``program`` does, whose functions begin with ``prefix``."""
    arrays = [
        ", ".join(name if name in {array.name for array in given} else "NULL" for name in names) or "NULL"
        for names, given in ((program.inputs, interface.inputs), (program.outputs, interface.outputs))
    ]
    return [
        f"return {prefix}_run((const float *const[]){{{arrays[0]}}}, (float *const[]){{{arrays[1]}}},",
        f"    {_extents(program)}, workspace, threads);",
    ]


def numbers(values: Iterable[object]) -> str:
    """A constant array of C; it has none without elements."""
    return f"(const int64_t[]){{{', '.join(map(str, values)) or '0'}}}"


def _described(programs: Sequence[Program], name: str) -> Array:
    buffer = next(buffer for program in programs for buffer in program.buffers if buffer.name == name)
    return Array(name, tuple(map(size_text, buffer.dims)))


def described(program: Program) -> dict[str, object]:
    """What the manifest says of ``program`` beside its interface."""
    copies = [p for p in range(len(program.outputs)) if p not in written_outputs(program)]
    return {
        "kernels": [kernel.name for kernel in program.kernels],
        "workspace_buffers": [[buffer.name for buffer in slot] for slot in slots(program)],
        "left_to_the_caller": [{"output": p, "is": program.outputs[p]} for p in copies],
        "equal_extents": [[extent_name(Extent(*place)) for place in tie] for tie in program.ties],
    }
