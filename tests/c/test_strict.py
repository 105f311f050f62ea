"""What is generated for random programs is C without a warning, for every compiler that there is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ilang_eq.c.emit import emit
from ilang_eq.errors import ScheduleError
from ilang_eq.export.source import WARNINGS
from ilang_eq.lower import lower
from tests.compilers import COMPILERS
from tests.random_programs import random_case

FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fopenmp-simd", "-c", "-x", "c", "-", "-o")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_warnings(compiler: tuple[str, ...], tmp_path: Path) -> None:
    checked = 0
    for seed in range(270):
        try:
            source = emit(lower(random_case(seed).scheduled, alternatives=False))
        except ScheduleError:
            continue
        command = [*compiler, *FLAGS, tmp_path / "kernel.o"]
        done = subprocess.run(command, input=WARNINGS + source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"seed {seed}: {done.stderr}"
        checked += 1
    assert checked > 80
