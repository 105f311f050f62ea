"""Which program found a result."""

from __future__ import annotations

import functools
import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
_DECIDING = ("lang", "rewrites", "extract", "lower", "c", "cuda", "optimizer.py", "measure.py", "backends.py")
"""The sources that decide what a search finds."""


@functools.lru_cache(maxsize=1)
def sources_digest() -> str:
    """A digest of the sources that decide results: a checkout changes between versions."""
    digest = hashlib.blake2b(digest_size=6)
    for source in sorted(path for name in _DECIDING for path in _sources(os.path.join(_PACKAGE, name))):
        name = source.removeprefix(f"{_PACKAGE}{os.sep}").replace(os.sep, "/")
        with open(source, "rb", buffering=0) as file:
            text = file.read()
        # what a checksum takes is a quarter of what a digest of everything would
        digest.update(f"{name} {len(text)} {zlib.crc32(text)}\n".encode())
    return digest.hexdigest()


def package_version() -> str:
    """The package's version, and the digest of its sources."""
    import importlib.metadata

    try:
        version = importlib.metadata.version("ilang-eq")
    except importlib.metadata.PackageNotFoundError:
        version = "checkout"
    return f"{version}+{sources_digest()}"


def _sources(path: str) -> Iterator[str]:
    """The Python files in a folder, or the file itself; ``os`` and no ``pathlib``, as every first call does this."""
    if os.path.isfile(path):
        yield path
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))
