"""Kernels without Python: a C library with a header, a description of it, and a program that calls it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ilang_eq.c.build import standalone_flags
from ilang_eq.c.kernel import CKernel
from ilang_eq.export.example import example
from ilang_eq.export.folder import write_files
from ilang_eq.export.interface import checked_name
from ilang_eq.export.manifest import manifest
from ilang_eq.export.model import Model, model_library, parameters, prepared, weights_bytes
from ilang_eq.export.model import described as described_model
from ilang_eq.export.program import Library, described, program_library
from ilang_eq.export.source import header
from ilang_eq.lang.component import Component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.empty import where_empty

__all__ = ["export", "export_model"]


def export(
    subject: Component | CKernel,
    directory: str | Path,
    *,
    name: str = "kernel",
    overwrite: bool = False,
    sizes: Mapping[str, int] | None = None,
    provenance: Mapping[str, object] | None = None,
    meaning: Component | None = None,
) -> Path:
    """Write ``name.c``, ``name.h``, ``name.json`` and ``main.c``: a library in plain C, and a program that calls it.

    The library serves any extents, allocates nothing, keeps nothing between calls and returns error codes.

    Args:
        subject: a component, as it is scheduled, or its kernel.
        directory: where to; it is made if it does not exist.
        name: what files and functions are called: a C identifier.
        overwrite: whether files that exist are replaced.
        sizes: extents by name, ``in0_1`` for dimension 1 of input 0, that ``main.c`` uses if it gets no others.
        provenance: what else ``name.json`` shall say of how the component was found; JSON values.
        meaning: what the component was rewritten from, None if it was not.

    Returns:
        The directory.

    Raises:
        OptionError: a name that is none in C; files that exist; a directory that cannot be written; nothing to compute.
        ScheduleError, ShapeError: a component that cannot be lowered.
    """
    if isinstance(subject, CKernel):
        text, program, plain = None, subject.program, subject.where_empty()
    else:
        text, program = str(subject), lower(wire(subject))
        plain = where_empty(program, subject, meaning)
    library = program_library(program, plain, checked_name(name), [f"𝚒: {text}"] if text else [])
    computes = {"component": text, **described(program)}
    write_library(library, Path(directory), overwrite, computes, sizes or {}, provenance or {})
    return Path(directory)


def export_model(
    model: Model,
    directory: str | Path,
    *,
    name: str = "model",
    overwrite: bool = False,
    provenance: Mapping[str, object] | None = None,
) -> Path:
    """Write programs that feed each other as one library, for the shapes they have; beside it ``name.weights``.

    The library plans one workspace for all that lies between the programs. What they compute from weights alone is
    computed now.

    Args:
        model: the programs, and what they read.
        directory: where to; it is made if it does not exist.
        name: what files and functions are called: a C identifier.
        overwrite: whether files that exist are replaced.
        provenance: what else ``name.json`` shall say of where the model comes from; JSON values.

    Returns:
        The directory.

    Raises:
        OptionError: a name that is none in C; files that exist; a directory that cannot be written; nothing to compute.
    """
    ready = prepared(model)
    library = model_library(ready, checked_name(name), parameters(ready, name))
    extra = {f"{name}.weights": weights_bytes(ready)} if ready.weights else {}
    write_library(library, Path(directory), overwrite, described_model(ready), {}, provenance or {}, extra)
    return Path(directory)


def write_library(
    library: Library,
    directory: Path,
    overwrite: bool,
    computes: Mapping[str, object],
    sizes: Mapping[str, int],
    provenance: Mapping[str, object],
    extra: Mapping[str, bytes] | None = None,
) -> None:
    """Write the files of ``library``, and ``extra`` ones; see ``write_files`` for what it raises."""
    interface = library.interface
    build = f"cc {' '.join(standalone_flags())} main.c {interface.name}.c -lm -o {interface.name}"
    files = {
        f"{interface.name}.c": f'#include "{interface.name}.h"\n\n{library.source}',
        f"{interface.name}.h": header(interface, library.notes),
        f"{interface.name}.json": manifest(interface, computes, provenance),
        "main.c": example(interface, build, sizes),
    }
    write_files(directory, {file: text.encode() for file, text in files.items()} | dict(extra or {}), overwrite)
