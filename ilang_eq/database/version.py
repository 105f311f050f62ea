"""Which program found a result."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
_DECIDING = ("lang", "rewrites", "extract", "lower", "c", "cuda", "optimizer.py", "measure.py", "backends.py")
"""The sources that decide what a search finds."""


@functools.lru_cache(maxsize=1)
def package_version() -> str:
    """The package's version and a digest of the sources that decide results: a checkout changes between versions."""
    try:
        version = importlib.metadata.version("ilang-eq")
    except importlib.metadata.PackageNotFoundError:
        version = "checkout"
    digest = hashlib.sha256()
    for source in sorted(path for name in _DECIDING for path in _sources(_PACKAGE / name)):
        digest.update(source.relative_to(_PACKAGE).as_posix().encode())
        digest.update(source.read_bytes())
    return f"{version}+{digest.hexdigest()[:12]}"


def _sources(path: Path) -> list[Path]:
    return list(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
