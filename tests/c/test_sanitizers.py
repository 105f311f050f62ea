"""The same nests under the address and undefined-behaviour sanitizers, in processes of their own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ilang_eq import I, i
from ilang_eq.c.build import build, find_compiler
from ilang_eq.c.kernel import CKernel
from ilang_eq.c.library import load
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.streamed import STREAMED_FLOATS
from tests.c import programs
from tests.c.programs import apply, at
from tests.lower.test_passes import TILED

PANELS = lower(
    wire(
        (I | i("+kj~kj|j:2:16|jj'kj''")) >> i("ik*kj~kij|i:4,j:2:16|jij'ki'j''") >> i("+kij~ij|i:4,j:2:16|jij'ki'j''0")
    )
)
ODD_PANELS = lower(
    wire(
        (I | i("+kj~kj|j:14|jkj'"))
        >> i("ik*kj~kij|i:4,j:14|ij1ki'j'")
        >> i("+kij~ij|i:4,j:14|ijki'j'0")
        >> i("ij*2~ij|i:4,j:14|ij0i'j'")
    )
)
CASES = {
    "matmul 6x32": (programs.matmul(6, 32), [(13, 17), (17, 33)]),
    "matmul 6x64": (programs.matmul(6, 64), [(13, 17), (17, 37)]),
    "matmul 5x14": (programs.matmul(5, 14), [(13, 17), (17, 28)]),
    "panels of 14": (ODD_PANELS, [(9, 13), (13, 42)]),
    "matmul 8x16x8": (programs.matmul(8, 16, block=8), [(9, 13), (13, 19)]),
    "dot products": (programs.dot_products(4, 4, 16), [(7, 37), (5, 37)]),
    "transposed": (programs.transposed(4, 16), [(7, 5), (19, 5)]),
    "panels": (PANELS, [(9, 13), (13, 41)]),
    "softmax": (programs.softmax(), [(3, 70)]),
    "few rows of softmax": (programs.softmax(), [(2, 66_003)]),
    "rows asked for": (lower(wire(TILED)), [(2050, 262)]),
    "sum in chunks": (programs.reduction("add", 0.0), [(70_001,)]),
    "streamed": (programs.elementwise(apply("exp", at("in0", "i"))), [(STREAMED_FLOATS + 21,)]),
    "max": (programs.reduction("max", -np.inf), [(67,)]),
    "two kernels": (programs.two_kernels(), [(4, 9), (2,)]),
    "shared memory": (lower(wire(i("-ij~ij") >> i("+ij~i") >> i("^i~i") >> i("-i~i") >> i("^i~i"))), [(5, 7)]),
    "empty": (programs.matmul(6, 32), [(0, 5), (5, 0)]),
}


def runtime() -> str | None:
    """The sanitizer's runtime, to be loaded before Python; None where there is none: clang links its own statically."""
    if shutil.which("cc") is None or "clang" in subprocess.getoutput(shlex.join([*find_compiler(), "--version"])):
        return None
    found = subprocess.run(
        [*find_compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() if os.path.isabs(found.stdout.strip()) else None


def run(name: str) -> None:
    """In the child: compute and compare with an ordinary build."""
    program, shapes = CASES[name]
    arrays = [np.random.default_rng(1).standard_normal(shape, dtype=np.float32) for shape in shapes]
    want, checked = CKernel(program, threads=2)(*arrays), CKernel(program, threads=2)
    checked.__dict__["_library"] = load(build(checked.source, sanitize=True))
    got = checked(*arrays)
    for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(runtime() is None, reason="needs a compiler with sanitizers")
@pytest.mark.parametrize("name", CASES)
def test_clean_under_sanitizers(name: str) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(runtime()), "ASAN_OPTIONS": "detect_leaks=0"}
    code = f"from tests.c.test_sanitizers import run; run({name!r})"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(runtime() is None, reason="needs a compiler with sanitizers")
def test_the_sanitizer_would_notice() -> None:
    """A kernel that is told of more rows than there are is caught: the test above can fail."""
    code = """
import ctypes
import numpy as np
from ilang_eq.c.build import build
from ilang_eq.c.emit import emit
from ilang_eq.c.library import load
from tests.c import programs
library = load(build(emit(programs.reduction("add", 0.0)), sanitize=True))
x, y = np.ones(100, np.float32), np.empty((), np.float32)
pointers = [(ctypes.c_void_p * 1)(a.ctypes.data) for a in (x, y)]
extents = (ctypes.c_int64 * 1)(5000)
scratch = np.empty(library.workspace(extents, 1), np.float32)
library.run(*pointers, extents, scratch.ctypes.data, 1)
"""
    environment = {**os.environ, "LD_PRELOAD": str(runtime()), "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr
