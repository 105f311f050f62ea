"""What ``doctor`` looks at: each check is a function that yields findings, in a table."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ilang_eq.c.build import build, compiler_flags, find_compiler
from ilang_eq.cache import cache_directory
from ilang_eq.cli.finding import Finding
from ilang_eq.cli.gpu_checks import gpu
from ilang_eq.database.store import Database
from ilang_eq.database.tolerant import results_at
from ilang_eq.database.version import package_version
from ilang_eq.errors import BuildError, DatabaseError, ILangError
from ilang_eq.host import processor_name


def _program() -> Iterator[Finding]:
    yield Finding("ilang_eq", "good", f"{package_version()} at {Path(__file__).parent.parent}")
    yield Finding("Python", "good", f"{platform.python_version()} at {sys.executable}")


def _processor() -> Iterator[Finding]:
    from ilang_eq.extract.machine import detect, user_file

    try:
        machine = detect()
    except ILangError as error:
        yield Finding("processor", "broken", f"{processor_name()}: {error.message}", "ilang-eq calibrate")
        return
    told = f"{processor_name()}, {machine.cores} cores, {machine.vector_bits}-bit vectors"
    known = user_file().is_file()
    source = f"measured, in {user_file()}" if known else f"the family's, {machine.name}"
    yield Finding("processor", "good", told)
    yield Finding("machine description", "good", source, "" if known else "ilang-eq calibrate measures this machine")


_TRIAL = "#include <math.h>\nfloat ilang_trial(float x) { return sqrtf(x); }\n"


def _compiler() -> Iterator[Finding]:
    try:
        command = find_compiler()
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=False)
        build(_TRIAL)
    except BuildError as error:
        yield Finding("C compiler", "broken", error.message, error.expected or "set CC to a C compiler that works")
        return
    except (OSError, subprocess.SubprocessError) as error:
        yield Finding("C compiler", "broken", str(error), "set CC to a C compiler that works")
        return
    yield Finding("C compiler", "good", f"{' '.join(command)}: {(version.stdout.splitlines() or ['?'])[0]}")
    yield _openmp(command)


def _openmp(command: tuple[str, ...]) -> Finding:
    """Whether kernels can use threads: that they build does not say, since they also build without."""
    with tempfile.TemporaryDirectory(prefix="ilang_eq-") as scratch:
        source = Path(scratch) / "trial.c"
        source.write_text("#include <omp.h>\nint trial(void) { return omp_get_max_threads(); }\n")
        built = subprocess.run(
            [*command, *compiler_flags(sanitize=False), str(source), "-o", str(Path(scratch) / "trial.so")],
            capture_output=True,
            timeout=60,
            check=False,
        )
    if built.returncode == 0:
        return Finding("OpenMP", "good", "kernels use threads")
    return Finding("OpenMP", "broken", "kernels run on one thread", "install libomp-dev (clang), or use gcc")


_LIBRARIES = {
    "numpy": ("", ""),
    "egglog": ("the search", "pip install 'egglog~=13.2'"),
    "networkx": ("the search", "pip install networkx"),
}
_OPTIONAL = {
    "torch": ("torch tensors and traced models", "pip install torch"),
    "rich": ("progress bars", "pip install rich"),
    "ray": ("batches on a cluster", "pip install ray"),
}


def _libraries() -> Iterator[Finding]:
    for name, (use, fix) in _LIBRARIES.items():
        version = _version(name)
        if version is None:
            yield Finding(name, "broken", f"not installed; {use} needs it", fix)
        elif name == "egglog" and not version.startswith("13."):
            yield Finding(name, "broken", f"{version}, and the search is written for 13", fix)
        else:
            yield Finding(name, "good", version)
    for name, (use, fix) in _OPTIONAL.items():
        version = _version(name)
        yield (
            Finding(name, "absent", f"not installed; for {use}", fix)
            if version is None
            else Finding(name, "good", version)
        )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cache() -> Iterator[Finding]:
    directory = cache_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        fix = "set ILANG_EQ_CACHE to a directory that can be written"
        yield Finding("kernel cache", "broken", f"{directory}: {error.strerror}", fix)
        return
    kernels = [path.stat().st_size for path in directory.glob("*.so")]
    yield Finding("kernel cache", "good", f"{directory}: {len(kernels)} kernels, {sum(kernels) / 2**20:.1f} MB")


def _database() -> Iterator[Finding]:
    path = results_at(None).path
    if path is None:
        yield Finding("database", "absent", "switched off by ILANG_EQ_DATABASE", "unset it to keep results")
        return
    try:
        results = len(list(Database(path).records()))
        Database(path).save([])
    except DatabaseError as error:
        yield Finding("database", "broken", error.message, error.expected or "")
        return
    yield Finding("database", "good", f"{path}: {results} results")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _program,
    _processor,
    _compiler,
    gpu,
    _libraries,
    _cache,
    _database,
)
