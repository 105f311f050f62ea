"""The C compilers that there are to test with. The package ziglang has a clang too, without OpenMP's library."""

from __future__ import annotations

import importlib.util
import shutil
import sys

import pytest

CLANG_OF_ZIG = (sys.executable, "-m", "ziglang", "cc")


def command_of(name: str) -> tuple[str, ...] | None:
    """How to run ``gcc`` or ``clang``; None if there is none."""
    found = shutil.which(name)
    if found is None and name == "clang" and importlib.util.find_spec("ziglang"):
        return CLANG_OF_ZIG
    return None if found is None else (found,)


COMPILERS = [
    pytest.param(command_of(name), id=name, marks=pytest.mark.skipif(command_of(name) is None, reason=f"needs {name}"))
    for name in ("gcc", "clang")
]
"""For ``parametrize``: the words that commands begin with."""
