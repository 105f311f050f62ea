"""A program as a library: its interface, and its C source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilang_eq.c.emit import program_functions, source_of
from ilang_eq.c.vectors import Used
from ilang_eq.errors import OptionError
from ilang_eq.export.interface import Array, Interface
from ilang_eq.export.source import WARNINGS, entry_points
from ilang_eq.lower.addresses import extent_name, size_text
from ilang_eq.lower.interface import call_extents, written_outputs
from ilang_eq.lower.ir import Extent, Program
from ilang_eq.lower.lifetimes import slots
from ilang_eq.lower.walk import buffers_of


@dataclass(frozen=True, slots=True)
class Library:
    """What the files of an export say: ``source`` is the C file without the line that includes its header."""

    interface: Interface
    source: str
    notes: tuple[str, ...]


def program_library(program: Program, name: str, notes: Sequence[str]) -> Library:
    """The library that computes ``program``. Raises OptionError if it computes nothing."""
    interface = program_interface(program, name)
    used = Used()
    functions = program_functions(program, used, "kernels", "static ")
    extents = _array("int64_t", "extents", interface.extents)
    read = {array.name for array in interface.inputs}
    inputs = [given if given in read else "NULL" for given in program.inputs]
    outputs = [given if p in written_outputs(program) else "NULL" for p, given in enumerate(program.outputs)]
    sizing = [extents, "const int64_t floats = kernels_workspace(extents, threads);"]
    running = [
        _array("float *const", "inputs", inputs),
        f"float *const outputs[] = {{{', '.join(outputs)}}};",
        extents,
        "return kernels_run(inputs, outputs, extents, workspace, threads);",
    ]
    public = entry_points(interface, sizing, running)
    return Library(interface, source_of(WARNINGS, (*functions, *public), used), tuple(notes))


def program_interface(program: Program, name: str) -> Interface:
    """The arrays that ``program`` reads and writes, and its extents."""
    read = {buffer for kernel in program.kernels for buffer in buffers_of(kernel.body)}
    written = [program.outputs[p] for p in written_outputs(program)]
    if not written:
        raise OptionError("a component that returns its inputs alone", expected="something to compute")
    return Interface(
        name,
        tuple(_described(program, given) for given in program.inputs if given in read),
        tuple(_described(program, given) for given in written),
        tuple(map(extent_name, call_extents(program))),
    )


def _described(program: Program, name: str) -> Array:
    return Array(name, tuple(map(size_text, program.buffer(name).dims)))


def _array(kind: str, name: str, values: Sequence[str]) -> str:
    """A constant array; C has none without elements."""
    return f"const {kind} {name}[] = {{{', '.join(values) or '0'}}};"


def described(program: Program) -> dict[str, object]:
    """What the manifest says of ``program`` beside its interface."""
    copies = [p for p in range(len(program.outputs)) if p not in written_outputs(program)]
    return {
        "kernels": [kernel.name for kernel in program.kernels],
        "workspace_buffers": [[buffer.name for buffer in slot] for slot in slots(program)],
        "left_to_the_caller": [{"output": p, "is": program.outputs[p]} for p in copies],
        "equal_extents": [[extent_name(Extent(*place)) for place in tie] for tie in program.ties],
    }
