"""Exported libraries, built and called the way a user would."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic")


def made_up(shape: Sequence[int], which: int) -> np.ndarray:
    """The numbers of ``main.c``."""
    n = np.arange(int(np.prod(shape, dtype=int)))
    return (((n * 7 + which * 3) % 13) / 16 - 0.375).astype(np.float32).reshape(shape)


def run(command: Sequence[str | Path], directory: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Built:
    """An exported library in memory."""

    manifest: dict[str, Any]
    functions: ctypes.CDLL

    def workspace_size(self, extents: Sequence[int], threads: int = 1) -> int:
        function = self.functions[f"{self.manifest['name']}_workspace_size"]
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * len(extents) + [ctypes.c_int]
        return function(*extents, threads)

    def run(
        self,
        arrays: Sequence[np.ndarray | None],
        extents: Sequence[int],
        workspace: np.ndarray | None,
        threads: int = 1,
        size: int | None = None,
    ) -> int:
        function = self.functions[f"{self.manifest['name']}_run"]
        pointers, numbers = [ctypes.c_void_p] * len(arrays), [ctypes.c_int64] * len(extents)
        function.argtypes = [*pointers, *numbers, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
        addresses = [None if a is None else a.ctypes.data for a in (*arrays, workspace)]
        held = 0 if workspace is None else workspace.nbytes
        return function(*addresses[:-1], *extents, addresses[-1], held if size is None else size, threads)

    def results(self, *inputs: np.ndarray, threads: int = 1) -> list[np.ndarray]:
        """What the library computes, its extents read off the inputs by the manifest."""
        known = {
            name: n
            for array, described in zip(inputs, self.manifest["inputs"], strict=True)
            for name, n in zip(described["dims"], array.shape, strict=True)
        }
        extents = [known[name] for name in self.manifest["extents"]]
        outputs = [
            np.full([known[d] if d in known else int(d) for d in described["dims"]], np.nan, np.float32)
            for described in self.manifest["outputs"]
        ]
        size = self.workspace_size(extents, threads)
        assert size >= 0
        assert self.run([*inputs, *outputs], extents, np.empty(size, np.uint8), threads) == 0
        return outputs


def load(directory: Path, name: str, compiler: str = "cc") -> Built:
    """The library of ``directory``, built with the flags of its manifest."""
    manifest = json.loads((directory / f"{name}.json").read_text())
    library = directory / f"lib{name}.so"
    run([compiler, *manifest["target"]["flags"], "-shared", "-fPIC", f"{name}.c", "-lm", "-o", library], directory)
    return Built(manifest, ctypes.CDLL(str(library)))
