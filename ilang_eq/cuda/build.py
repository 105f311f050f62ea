"""Compiles CUDA C to machine code with NVRTC, once: the result is kept by content and architecture.

NVRTC is a library; it needs no device. It comes with ``pip install nvidia-cuda-nvrtc`` (a Python package of the cuda
extra), or with a CUDA toolkit.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ilang_eq.cache import kept
from ilang_eq.errors import BuildError

_OPTIONS = ("--std=c++17", "--ptxas-options=-v")
_OLDEST = 80
"""The oldest architecture that kernels are written for (compute capability times ten)."""
_TARGETS = {90: "sm_90a"}
"""What is compiled for, where an architecture has instructions that later ones need not have."""
_USAGE = re.compile(r"Function properties for (\w+).*?(\d+) bytes spill stores.*?Used (\d+) registers", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the compiler says of one kernel: ``registers`` a thread, and ``spilled`` bytes a thread."""

    registers: int
    spilled: int


def build(source: str, arch: int) -> Path:
    """The machine code (cubin) of ``source`` for ``arch``, such as 90 for sm_90.

    Raises:
        BuildError: no NVRTC, an architecture it does not know, or a source that it refuses.
    """
    if arch < _OLDEST:
        raise BuildError(f"the device has compute capability {arch / 10}", expected=f"at least {_OLDEST / 10}")
    compiler = nvrtc()
    if arch not in (known := _architectures(compiler)):
        raise BuildError(
            f"NVRTC {_version(compiler)} does not know the device, which is sm_{arch}",
            expected="a newer nvidia-cuda-nvrtc",
            legal=tuple(f"sm_{one}" for one in known if one >= _OLDEST),
        )
    key = "\0".join([source, target_of(arch), *_OPTIONS, _version(compiler)])
    name = hashlib.sha256(key.encode()).hexdigest()[:40] + f".sm_{arch}.cubin"

    def make(scratch: Path) -> Path:
        file = scratch / "kernel.cubin"
        file.write_bytes(compiled(source, arch)[0])
        return file

    return kept(name, make)


def compiled(source: str, arch: int) -> tuple[bytes, dict[str, Usage]]:
    """Machine code for ``arch``, and what each kernel uses, by name; not kept. Raises BuildError."""
    compiler = nvrtc()
    program = ctypes.c_void_p()
    _check(compiler, compiler.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        options = [option.encode() for option in (f"--gpu-architecture={target_of(arch)}", *_OPTIONS)]
        given = (ctypes.c_char_p * len(options))(*options)
        code = compiler.nvrtcCompileProgram(program, len(options), given)
        said = _fetched(compiler, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if code != 0:
            shown = "\n".join("  " + line for line in said.splitlines()[:8])
            raise BuildError(f"NVRTC refused a kernel for sm_{arch}:\n{shown}")
        usage = {name: Usage(int(used), int(spilled)) for name, spilled, used in _USAGE.findall(said)}
        return _fetched(compiler, program, "CUBIN"), usage
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


def target_of(arch: int) -> str:
    """What is compiled for an architecture, such as sm_89."""
    return _TARGETS.get(arch, f"sm_{arch}")


@functools.lru_cache(maxsize=1)
def nvrtc() -> Any:
    """The NVRTC library. Raises BuildError if there is none."""
    for path in _candidates():
        try:
            for builtins in sorted(path.parent.glob("libnvrtc-builtins.so.*")):
                # NVRTC opens it by name alone, which finds what is loaded
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise BuildError("no NVRTC library", expected="pip install nvidia-cuda-nvrtc, or $CUDA_HOME naming a CUDA toolkit")


def nvrtc_version() -> str:
    """The version of NVRTC, such as "13.0". Raises BuildError if there is none."""
    return _version(nvrtc())


def _candidates() -> Iterator[Path]:
    """Where NVRTC may be: the toolkit that ``$CUDA_HOME`` names, Python packages, the loader's path."""
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    package = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in (package.submodule_search_locations or ())] if package else []
    folders = [home / "lib64" for home in homes]
    folders += [folder for place in places for folder in sorted(place.glob("*/lib"), reverse=True)]
    folders.append(Path("/usr/local/cuda/lib64"))
    for folder in folders:
        yield from sorted(path for path in folder.glob("libnvrtc.so.*") if ".alt." not in path.name)
    yield from (Path(f"libnvrtc.so.{version}") for version in (13, 12))


def _version(compiler: Any) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(compiler, compiler.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


def _architectures(compiler: Any) -> tuple[int, ...]:
    """What it compiles for."""
    count = ctypes.c_int()
    _check(compiler, compiler.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    found = (ctypes.c_int * count.value)()
    _check(compiler, compiler.nvrtcGetSupportedArchs(found))
    return tuple(found)


def _fetched(compiler: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(compiler, getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(compiler, getattr(compiler, f"nvrtcGet{what}")(program, text))
    return text.raw


def _check(compiler: Any, code: int) -> None:
    if code != 0:
        compiler.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise BuildError(f"NVRTC: {compiler.nvrtcGetErrorString(code).decode()}")
