"""Compiles C source to a shared library, once.

A library's name is a hash of everything that decides its bytes; ``ilang_eq/cache.py`` says where it is kept.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from ilang_eq.cache import kept
from ilang_eq.errors import BuildError
from ilang_eq.host import checked_threads

TIMEOUT_S = 300
"""How long the compiler may take over one kernel."""

_LIBRARY = ("-std=gnu11", "-shared", "-fPIC")
_MEANING = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")
_FAST = ("-O3", "-march=native", "-fopenmp-simd")
_SANITIZED = (
    "-O1",
    "-g",
    "-march=native",
    "-fopenmp-simd",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
_THREADED = "-fopenmp"
_COMPLETE = "-Wl,-z,defs"
"""Has the linker refuse what would not load, such as clang's OpenMP without its library; others do so by themselves.
Sanitizers do not: clang leaves what they call to the program."""
_WHOLE_JUMPS = "-Wa,-mbranches-within-32B-boundaries"
"""Processors from Skylake to Cascade Lake decode 32 bytes of a loop anew in each iteration if a jump ends beyond them.
The assembler can see to it that none does: 0.95 to 1.00 of the time of products (papers_notes/jump_erratum.md)."""
_WHOLE_JUMPS_OF_CLANG = _WHOLE_JUMPS.removeprefix("-Wa,")
_WHOLE_LOOPS = "-falign-loops=64"
"""What has been decoded is kept by lines of 32 or 64 bytes. Loops that begin with one take 0.88 to 1.03 of the time on
Zen 3, in the mean over thirty workloads 0.99 (benchmarks/findings.md)."""
_LAYOUT = frozenset({_WHOLE_JUMPS, _WHOLE_JUMPS_OF_CLANG, _WHOLE_LOOPS})


def build(source: str, sanitize: bool = False) -> Path:
    """The shared library of ``source``, compiled now unless it is in the cache.

    Args:
        source: C11 with GNU extensions, needing nothing but the C library and, if there is one, OpenMP.
        sanitize: with the address and undefined-behaviour sanitizers, which abort at the first error.

    Raises:
        BuildError: no compiler; or one that refuses the source, or takes longer than ``TIMEOUT_S``; or a full disk.
    """
    compiler = find_compiler()
    flags = (*compiler_flags(sanitize), *_layout_flags(compiler, sanitize))
    key = "\0".join([source, *compiler, *flags, _version(compiler), _processor()])
    name = hashlib.sha256(key.encode()).hexdigest()[:40] + ".so"
    return kept(name, lambda scratch: _compile(compiler, flags, source, scratch))


@contextmanager
def building() -> Iterator[Callable[[str], None]]:
    """A function that has a source compiled beside what else is done; each once, as many at a time as there are cores.

    They are done when the context ends. Raises what ``build`` raised first.
    """
    pending: dict[str, Future[Path]] = {}
    with ThreadPoolExecutor(checked_threads(None)) as pool:

        def start(source: str) -> None:
            if source not in pending:
                pending[source] = pool.submit(build, source)

        try:
            yield start
            for future in pending.values():
                future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def find_compiler() -> tuple[str, ...]:
    """The compiler as an absolute path, followed by arguments that ``$CC`` gives. Raises BuildError."""
    try:
        given = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise BuildError(f"$CC is {os.environ['CC']!r}, which cannot be split into words: {error}") from None
    for candidate in [given] if given else [["cc"], ["gcc"], ["clang"]]:
        path = shutil.which(candidate[0])
        if path is not None:
            return (path, *candidate[1:])
    install = "`xcode-select --install`" if sys.platform == "darwin" else "`apt install gcc` or the like"
    if given:
        raise BuildError(f"$CC is {given[0]!r}, which is not an executable", expected=f"a C compiler: {install}")
    raise BuildError("no C compiler: cc, gcc and clang are not on the PATH", expected=f"a C compiler: {install}")


def compiler_flags(sanitize: bool) -> tuple[str, ...]:
    """The flags for a library on this machine, OpenMP included."""
    flags = (*_LIBRARY, *_MEANING, *(_SANITIZED if sanitize else _FAST), _THREADED)
    if not sanitize and sys.platform not in ("darwin", "win32"):
        flags = (*flags, _COMPLETE)
    if platform.machine() in ("x86_64", "AMD64"):
        # gcc shies away from AVX-512 by default on processors that pay for it with their clock; kernels gain by it
        return (*flags, "-mprefer-vector-width=512")
    return flags


def _layout_flags(compiler: tuple[str, ...], sanitize: bool) -> tuple[str, ...]:
    """What decides only where instructions lie; old assemblers refuse it."""
    if sanitize or platform.machine() not in ("x86_64", "AMD64"):
        return ()
    return (_WHOLE_JUMPS_OF_CLANG if "clang" in _version(compiler) else _WHOLE_JUMPS, _WHOLE_LOOPS)


def standalone_flags() -> tuple[str, ...]:
    """The flags that make object files of the same code, for this machine, with any compiler; plain C11."""
    return ("-std=c11", *(flag for flag in compiler_flags(sanitize=False) if flag not in (*_LIBRARY, _COMPLETE)))


def _compile(compiler: tuple[str, ...], flags: tuple[str, ...], source: str, scratch: Path) -> Path:
    """Compile into ``scratch``: with OpenMP and all that the assembler can do, or else without."""
    text, library = scratch / "kernel.c", scratch / "kernel.so"
    text.write_text(source, encoding="utf-8")
    refused = ""
    for spared in (frozenset[str](), _LAYOUT, frozenset({_THREADED}), _LAYOUT | {_THREADED}):
        attempt = [flag for flag in flags if flag not in spared]
        code, errors = _run([*compiler, *attempt, str(text), "-o", str(library), "-lm"])
        if code == 0 and not library.is_file():
            raise BuildError(f"{compiler[0]} wrote no kernel", expected="a C compiler, which $CC may name")
        if code == 0:
            return library
        refused = refused or errors
    told = refused.replace(str(scratch) + os.sep, "").splitlines()
    # gcc names the function on the line before; warnings come first
    start = max(next((n for n, line in enumerate(told) if "error:" in line), 0) - 1, 0)
    first = "\n".join("  " + line for line in told[start : start + 8])
    raise BuildError(f"{compiler[0]} refused a kernel:\n{first}")


def _run(command: list[str]) -> tuple[int, str]:
    """The exit code and standard error of ``command``. The compiler's own children die with it on a time-out."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise BuildError(f"{command[0]} does not run: {error.strerror}") from None
    try:
        _, errors = process.communicate(timeout=TIMEOUT_S)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise BuildError(f"{command[0]} took longer than {TIMEOUT_S} s over a kernel") from None
        raise
    return process.returncode, errors.decode(errors="replace")


@functools.lru_cache(maxsize=8)
def _version(compiler: tuple[str, ...]) -> str:
    try:
        return subprocess.run([*compiler, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"{compiler[0]} does not run: {error}") from None


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """What ``-march=native`` depends on: the processor's model and features."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU part", "CPU implementer")
    told = {line.partition(":")[0].strip(): line for line in reversed(lines)}
    return "\n".join([platform.machine(), platform.processor(), *(told[key] for key in wanted if key in told)])
