"""Runs single launches of generated CUDA C on the CPU, with the arguments that the driver would get.

``emulator.py`` runs whole programs and knows their buffers. This knows the source alone, so that everything between a
call and the driver can be tested: which argument is where, what is handed on, and what a graph replays.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from typing import Any

from tests.cuda.emulator import Failure, built, rewritten

KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\((\d+)[^)]*\) (\w+)\((.*?)\)\s*\{', re.DOTALL)
"""Threads, name and parameters of each kernel of a source."""


class Executed:
    """The kernels of one source. ``behind(address)`` is how many bytes are left of the memory there."""

    def __init__(self, source: str, behind: Callable[[int], int]) -> None:
        self._library = _library(source)
        self._behind = behind
        self._pointers = {name: ["*" in p for p in given.split(",")] for _, name, given in KERNEL.findall(source)}

    def run(self, name: str, blocks: int, arguments: tuple[int, ...]) -> None:
        """So many blocks of a kernel. Raises Failure for an access out of bounds, a race or a missed barrier."""
        kinds = self._pointers[name]
        counts = [self._behind(a) // 4 if pointer else 0 for a, pointer in zip(arguments, kinds, strict=True)]
        run = self._library[f"launch_{name}"]
        run.restype = ctypes.c_char_p
        number = len(arguments)
        failure = run(
            ctypes.c_int(blocks), (ctypes.c_uint64 * number)(*arguments), (ctypes.c_longlong * number)(*counts)
        )
        if failure:
            raise Failure(failure.decode())


@functools.lru_cache(maxsize=64)
def _library(source: str) -> Any:
    lines = [rewritten(source)]
    for threads, name, parameters in KERNEL.findall(source):
        given = [
            f"memory_{name}[{n}]" if "*" in parameter else f"(long long)given_{name}[{n}]"
            for n, parameter in enumerate(parameters.split(","))
        ]
        number = len(given)
        lines += [
            f"static uint64_t given_{name}[{number}]; static shim::Pointer memory_{name}[{number}];",
            f'extern "C" const char *launch_{name}(int blocks, const uint64_t *given, const long long *counts)',
            "{",
            "    shim::failed = false;",
            "    gridDim.x = blocks;",
            f"    for (int n = 0; n < {number}; n++) {{",
            f"        given_{name}[n] = given[n];",
            f'        memory_{name}[n] = shim::memory((float *)given[n], counts[n], true, "argument");',
            "    }",
            f"    shim::launch(blocks, {threads}, false, [](void *) {{ {name}({', '.join(given)}); }});",
            f"    for (int n = 0; n < {number}; n++) delete[] memory_{name}[n].shadows;",
            "    return shim::failed ? shim::failure : nullptr;",
            "}",
        ]
    return ctypes.CDLL(str(built("\n".join(lines))))
