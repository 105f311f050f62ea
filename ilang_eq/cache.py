"""Files kept by content: what was built once is not built again.

The cache is ``$ILANG_EQ_CACHE`` or the platform's cache directory. A file's name is a hash of everything that decides
its bytes. It is made in a temporary directory and renamed into place, so that concurrent processes never see half of
one. Where the cache cannot be written, files live in a temporary directory until the process ends.
"""

from __future__ import annotations

import atexit
import errno
import functools
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from ilang_eq.errors import BuildError

_ROOM = 1 << 20
"""Bytes that the disk has left where a compiler that failed did not fail for want of them."""


def kept(name: str, make: Callable[[Path], Path]) -> Path:
    """The file called ``name``, made in a directory that ``make`` gets unless it is there already.

    Raises:
        BuildError: nowhere to put it. What ``make`` raises.
    """
    try:
        return _kept_in(cache_directory(), name, make)
    except OSError as error:
        why = f"{cache_directory()}: {error.strerror}"
    try:
        return _kept_in(_temporary_cache(why), name, make)
    except OSError as error:
        raise BuildError(f"nowhere to put a kernel: {why}; temporary directory: {error.strerror}") from None


def _kept_in(directory: Path, name: str, make: Callable[[Path], Path]) -> Path:
    """The file ``name`` of ``directory``, made and moved there unless it exists. Raises OSError."""
    file = directory / name
    if not file.exists():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix="build-") as scratch:
            os.replace(_made(make, Path(scratch)), file)
    return file


def _made(make: Callable[[Path], Path], scratch: Path) -> Path:
    """What ``make`` makes. Raises OSError for a full disk, of which compilers tell in words of their own."""
    try:
        return make(scratch)
    except BuildError:
        if shutil.disk_usage(scratch).free < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise


def cache_directory() -> Path:
    """Where files are kept, if it can be written."""
    return Path(os.environ.get("ILANG_EQ_CACHE") or _user_cache() / "ilang_eq")


def _user_cache() -> Path:
    match sys.platform:
        case "darwin":
            return Path.home() / "Library" / "Caches"
        case "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        case _:
            return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@functools.lru_cache(maxsize=1)
def _temporary_cache(why: str) -> Path:
    """A directory for this process alone; says so once."""
    warnings.warn(f"kernels are not cached between runs ({why}); set ILANG_EQ_CACHE to change that", stacklevel=3)
    directory = Path(tempfile.mkdtemp(prefix="ilang_eq-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
