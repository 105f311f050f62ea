"""What the compiler makes of the probes: as many instructions as they say, each of which takes its time."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ilang_eq.c.build import compiler_flags, find_compiler
from ilang_eq.calibrate.source import ADDS, UNITS, probe_source

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
    pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="reads x86-64 assembly"),
]


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("probes")
    (folder / "probes.c").write_text(probe_source())
    flags = [flag for flag in compiler_flags(sanitize=False) if flag != "-shared"]
    subprocess.run([*find_compiler(), *flags, "-S", "probes.c", "-o", "probes.s"], cwd=folder, check=True)
    return (folder / "probes.s").read_text()


def _function(assembly: str, name: str) -> str:
    found = re.search(rf"^{name}:$(.*?)^\s*\.size\s+{name},", assembly, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_a_multiply_add_has_an_addition_of_its_own_beside_it(assembly: str) -> None:
    differences = re.findall(r"^\s+v?subps\s", _function(assembly, "vector_fma_with_add"), re.MULTILINE)
    assert len(differences) >= UNITS


def test_no_tick_adds_a_constant(assembly: str) -> None:
    ticks = _function(assembly, "clock_ticks")
    constants = re.findall(r"^\s+(?:add|sub)[lq]?\s+\$", ticks, re.MULTILINE)
    registers = re.findall(r"^\s+add[lq]?\s+%", ticks, re.MULTILINE)
    assert len(constants) < ADDS // 2 < len(registers)
