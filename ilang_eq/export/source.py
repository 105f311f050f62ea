"""The text of an exported library: its header, and the public functions around what it computes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ilang_eq.export.interface import ABI_VERSION, ERRORS, Array, Interface

WARNINGS = """\
// Vectors are filled lane by lane, which gcc takes for a use before initialisation; without -fopenmp-simd it does not
// know the pragmas. clang reports loops that it leaves scalar, a & b ? x : y, and functions for other processors.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma clang diagnostic ignored "-Wparentheses"
#pragma clang diagnostic ignored "-Wunknown-pragmas"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif
"""


def header(interface: Interface, notes: Sequence[str]) -> str:
    """The header; ``notes`` are lines that say what is computed."""
    macro = interface.macro
    errors = [
        f"    {macro}_{error} = {code},  // {meaning.format(name=interface.name)}"
        for code, (error, meaning) in enumerate(ERRORS)
    ]
    lines = [
        *_commented(notes),
        f"#ifndef {macro}_H",
        f"#define {macro}_H",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {macro}_ABI_VERSION {ABI_VERSION}",
        "",
        "enum {",
        *errors,
        "};",
        "",
        f"// {macro}_ABI_VERSION of the library that is linked.",
        f"{interface.abi_version};",
        "",
        "// The bytes of workspace that a call needs, at any address of a float (a multiple of 64 is fastest);",
        "// an error code times -1 if there is an error.",
        *_prototype(interface.workspace_size),
        "",
        *_commented(
            [
                f"{', '.join(array.declared for array in interface.outputs)} from "
                f"{', '.join(array.declared for array in interface.inputs) or 'nothing'}.",
                "Arrays are row-major and overlap none that is written. Memory is the caller's; nothing is kept "
                "between calls, so any number may run at once, each with a workspace of its own. Results do not "
                f"depend on threads. Returns {macro}_OK or another code.",
            ]
        ),
        *_prototype(interface.run),
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        f"#endif  // {macro}_H",
    ]
    return "\n".join(lines) + "\n"


def entry_points(interface: Interface, sizing: Sequence[str], running: Sequence[str]) -> tuple[str, ...]:
    """The public functions.

    Args:
        interface: their prototypes.
        sizing: statements that define ``floats``, the workspace of a call, negative if it is too large.
        running: statements that compute, and return 0.
    """
    macro = interface.macro
    version = [interface.abi_version, "{", f"    return {macro}_ABI_VERSION;", "}"]
    negative = " || ".join(f"{extent} < 0" for extent in interface.extents)
    bad_extent = [f"if ({negative})", f"    return -{macro}_BAD_EXTENT;"] if negative else []
    size = [
        "if (threads < 1)",
        f"    return -{macro}_BAD_THREADS;",
        *bad_extent,
        *sizing,
        "if (floats < 0 || floats > INT64_MAX / (int64_t)sizeof(float))",
        f"    return -{macro}_TOO_LARGE;",
        "return floats * (int64_t)sizeof(float);",
    ]
    missing = [_missing(array) for array in (*interface.inputs, *interface.outputs)]
    run = [
        f"const int64_t needed = {interface.called('workspace_size', (), ('threads',))};",
        "if (needed < 0)",
        "    return (int)-needed;",
        "if (needed > workspace_size)",
        f"    return {macro}_SMALL_WORKSPACE;",
        *_either([*missing, "(workspace == NULL && needed > 0)"]),
        f"    return {macro}_NULL_POINTER;",
        *running,
    ]
    return (
        "\n".join(version),
        "\n".join([*_wrapped(interface.workspace_size), "{", *_indented(size), "}"]),
        "\n".join([*_wrapped(interface.run), "{", *_indented(run), "}"]),
    )


def _missing(array: Array) -> str:
    """Whether the caller gave no memory for an array that has elements."""
    sizes = [f"{dim} > 0" for dim in dict.fromkeys(array.dims) if not dim.isdigit()]
    return f"({' && '.join([f'{array.name} == NULL', *sizes])})"


def _either(conditions: Sequence[str]) -> list[str]:
    """An ``if`` with one condition a line."""
    first, *others = conditions
    lines = [f"if ({first}", *(f"    || {other}" for other in others)]
    return [*lines[:-1], lines[-1] + ")"]


def _prototype(text: str) -> list[str]:
    return _wrapped(text + ";")


def _wrapped(text: str) -> list[str]:
    """A prototype, continued under its first parameter."""
    indent = " " * (text.index("(") + 1)
    return textwrap.wrap(text, 118, subsequent_indent=indent, break_long_words=False)


def _commented(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, 118, initial_indent="// ", subsequent_indent="// ")]


def _indented(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]
