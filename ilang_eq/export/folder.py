"""Files into a directory, all of them or none."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from ilang_eq.errors import OptionError


def write_files(directory: Path, files: Mapping[str, bytes], overwrite: bool) -> None:
    """Write ``files`` by name into ``directory``, which is made if it does not exist.

    They are written elsewhere first: beside a new directory, which then appears as a whole, or inside one that exists,
    where each file is replaced as a whole after all have been written.

    Raises:
        OptionError: a file exists and is not to be overwritten, or the directory cannot be written.
    """
    existing = sorted(name for name in files if (directory / name).exists())
    if existing and not overwrite:
        raise OptionError(
            f"{directory} has {', '.join(existing)} already", expected="overwrite=True, or another directory or name"
        )
    try:
        scratch = (directory if directory.exists() else directory.parent) / f".export-{secrets.token_hex(4)}"
        scratch.mkdir(parents=True)
        try:
            _move(scratch, directory, files)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise OptionError(f"{directory} cannot be written: {error.strerror}") from None


def _move(scratch: Path, directory: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (scratch / name).write_bytes(content)
    if directory.exists():
        for name in files:
            os.replace(scratch / name, directory / name)
    else:
        scratch.rename(directory)
