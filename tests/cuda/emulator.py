"""Runs generated CUDA C on the CPU: the same source as C++ behind ``shim.h``, with every access checked."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ilang_eq.cuda.emit import Module, emit
from ilang_eq.cuda.runs import FUNCTIONS
from ilang_eq.cuda.steps import steps, workspaces
from ilang_eq.cuda.tensor_cores import CORE_FUNCTIONS
from ilang_eq.cuda.warpgroups import GROUP_FUNCTIONS, HOPPER
from ilang_eq.lower.interface import output_shapes, written_outputs
from ilang_eq.lower.ir import Program

SHIM = Path(__file__).parent / "shim.h"
_OF_THE_SHIM = (
    *(CORE_FUNCTIONS[name] for name in ("load_matrices", "tf32_of", "multiply")),
    *(GROUP_FUNCTIONS[name] for name in ("publish", "begin_products", "finish_products", "settle", "descriptor")),
)
"""Functions of tensor cores that it has its own versions of."""


def _together(instruction: re.Match[str]) -> str:
    """The call for a product of a group of warps, of the operands that the instruction gets."""
    sums = re.findall(r'"\+f"\((.+?)\)[,\n]', instruction["sums"] + "\n")
    left = re.findall(r"__float_as_uint\((.+?)\)", instruction["left"])
    places = (", ".join(f"&{place}" for place in places) for places in (sums, left))
    call = "shim::multiply_together({{{0}}}, part, right, first, depth, add);"
    return ("{{ const float *const part[] = {{{1}}}; " + call + " }}").format(*places)


_REWRITES = (
    (r'extern "C" __global__ void __launch_bounds__\([\d, ]+\)', "static void"),
    (r"(?:const )?float \*__restrict__ (\w+)", r"shim::Pointer \1"),
    (r"float \*const (\w+) =", r"const shim::Pointer \1 ="),
    (r"float \*exchange", "auto &exchange"),
    (
        r"__shared__ (?:__align__\(\d+\) )?float (\w+)((?:\[\d+\])+);",
        lambda m: f"static shim::Shared<{_sizes(m[2])}> {m[1]};",
    ),
    (r"extern __shared__ .*;", ""),
    (
        r"(?:const )?float \(&(right|tiles?|rest)\)((?:\[\w+\]){2,})",
        lambda m: f"shim::Shared<{_sizes(m[2])}> &{m[1]}",
    ),
    (
        r'asm volatile\("\{\.reg[^;]*;[^;]*; wgmma[^:]*: (?P<sums>[^:]*): (?P<left>[^:]*)'
        r'"l"\(descriptor\(&right\[first\]\[depth\]\)\), "r"\(\(int\)add\)\);',
        _together,
    ),
    (
        r"auto &(\w+) = \*reinterpret_cast<float \(\*\)((?:\[\d+\])+)>\(shared_memory \+ \d+\);",
        lambda m: f"static shim::Shared<{_sizes(m[2])}> {m[1]};",
    ),
)


class Failure(AssertionError):
    """A kernel did what no kernel may: the shim says what."""


def _sizes(dims: str) -> str:
    return ", ".join(re.findall(r"\w+", dims))


class Emulated:
    """Programs, compiled together for the CPU, as for ``hopper`` or for another device. Call one by its number."""

    def __init__(self, programs: Sequence[Program], sources: Sequence[str] | None = None, hopper: bool = False) -> None:
        self.programs = programs
        modules = [emit(program) for program in programs]
        if sources is not None:
            modules = [replace(module, source=source) for module, source in zip(modules, sources, strict=True)]
        self.modules = modules
        translated = [_translated(n, m, p) for n, (m, p) in enumerate(zip(modules, programs, strict=True))]
        self._library = ctypes.CDLL(str(built("\n".join(translated), hopper)))

    def run(
        self, number: int, arrays: Sequence[np.ndarray], blocks: int | None = None, backwards: bool = False
    ) -> tuple[np.ndarray, ...]:
        """The outputs of program ``number``; at most ``blocks`` blocks, run in order or backwards.

        Raises:
            Failure: an access out of bounds, a read of what was never written, a race, or barriers that do not match.
        """
        program, module = self.programs[number], self.modules[number]
        shapes = tuple(array.shape for array in arrays)
        results = [np.full(shape, np.nan, np.float32) for shape in output_shapes(program, shapes)]
        held = {
            name: np.ascontiguousarray(array, np.float32) for name, array in zip(program.inputs, arrays, strict=True)
        }
        held |= {program.outputs[p]: results[p] for p in written_outputs(program)}
        held |= {name: np.full(n, np.nan, np.float32) for name, n in workspaces(module, shapes).items()}
        taken = {step.entry.name: step for step in steps(module, shapes)}
        pieces: list[np.ndarray] = []
        grids: list[int] = []
        extents: list[int] = []
        for entry in module.entries:
            step = taken.get(entry.name)
            grids.append(0 if step is None else min(step.blocks, blocks or step.blocks))
            scratch = (0,) * len(entry.scratch) if step is None else step.scratch
            pieces += [np.full(n // step.blocks * grids[-1] if step else 0, np.nan, np.float32) for n in scratch]
            extents += (0,) * len(entry.extents) if step is None else step.extents
        memory = [held[name] for name in _memory(module, program)] + pieces
        said = self._library[f"run_{number}"]
        said.restype = ctypes.c_char_p
        failure = said(
            (ctypes.c_void_p * len(memory))(*[array.ctypes.data for array in memory]),
            (ctypes.c_longlong * len(memory))(*[array.size for array in memory]),
            (ctypes.c_longlong * (len(extents) + 1))(*extents),
            (ctypes.c_int * len(grids))(*grids),
            ctypes.c_int(backwards),
        )
        if failure:
            raise Failure(failure.decode())
        for p, name in enumerate(program.outputs):
            if p not in written_outputs(program):
                source = held[name] if name in program.inputs else results[program.outputs.index(name)]
                results[p] = np.array(source).reshape(results[p].shape)
        return tuple(results)


def rewritten(source: str) -> str:
    """CUDA C as C++ for the shim, which has its own versions of what moves runs."""
    for text in (*FUNCTIONS.values(), *_OF_THE_SHIM):
        source = source.replace(text, "")
    for pattern, replacement in _REWRITES:
        source = re.sub(pattern, replacement, source)
    return source


def _memory(module: Module, program: Program) -> list[str]:
    """The buffers of a program that are not the blocks' own."""
    outputs = [program.outputs[p] for p in written_outputs(program)]
    return [*program.inputs, *outputs, *(buffer.name for buffer in module.workspaces)]


def _translated(number: int, module: Module, program: Program) -> str:
    """The source as C++, and a function that makes its launches."""
    source = rewritten(module.source)
    names = _memory(module, program)
    scratch = [piece.name for entry in module.entries for piece in entry.scratch]
    lines = [
        f"namespace program_{number} {{",
        source,
        f"static shim::Pointer memory[{len(names) + len(scratch) or 1}];",
    ]
    lines += [f"static long long extents[{sum(len(entry.extents) for entry in module.entries) or 1}];"]
    body: list[str] = []
    for n, name in enumerate([*names, *scratch]):
        known = "true" if name in program.inputs else "false"
        body.append(f'memory[{n}] = shim::memory(arrays[{n}], counts[{n}], {known}, "{name}");')
    piece, extent = len(names), 0
    for n, entry in enumerate(module.entries):
        places = [names.index(name) for name in entry.pointers]
        places += range(piece, piece + len(entry.scratch))
        numbers = [f"extents[{extent + k}]" for k in range(len(entry.extents))]
        piece, extent = piece + len(entry.scratch), extent + len(entry.extents)
        given = ", ".join([*(f"memory[{place}]" for place in places), *numbers])
        body.append(f"gridDim.x = grids[{n}];")
        body += [f"shim::settle(memory[{place}]);" for place in places]
        body.append(
            f"shim::launch(grids[{n}], {entry.block.threads}, backwards, [](void *) {{ {entry.name}({given}); }});"
        )
    body += [f"delete[] memory[{n}].shadows;" for n in range(len(names) + len(scratch))]
    head = f"const char *run_{number}(float *const *arrays, const long long *counts, const long long *given, "
    lines += ['extern "C"', head + "const int *grids, int backwards)", "{", "shim::failed = false;"]
    lines += [f"memcpy(extents, given, {extent} * sizeof *extents);", *body]
    lines += ["return shim::failed ? shim::failure : nullptr;", "}", "}"]
    return "\n".join(lines)


def built(source: str, hopper: bool = False) -> Path:
    """The shared library of C++ source behind the shim, built once."""
    text = (f"#define {HOPPER}\n" if hopper else "") + SHIM.read_text() + source
    folder = Path(os.environ["ILANG_EQ_CACHE"])
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"shim-{hashlib.sha256(text.encode()).hexdigest()[:32]}.so"
    if not library.exists():
        made = library.with_suffix(f".{os.getpid()}")
        command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-w", "-x", "c++", "-", "-o", str(made)]
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        os.replace(made, library)
    return library
