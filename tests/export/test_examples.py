"""The examples of deployment: one library, called from ctypes and from Rust."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ilang_eq.export import export
from ilang_eq.lang.reading import read_component
from tests.export.libraries import load, made_up, run
from tests.export.test_export import ATTENTION

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "deploy"


def rust_compiles() -> bool:
    """Whether there is a Rust compiler; rustup's `rustc` without a toolchain is none."""
    found = shutil.which("rustc")
    return found is not None and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = export(ATTENTION, tmp_path_factory.mktemp("examples") / "out", name="attention")
    run(["cc", "-O1", "-march=native", "-shared", "-fPIC", "attention.c", "-lm", "-o", "libattention.so"], directory)
    return directory


def check(printed: str) -> None:
    want = np.sum(ATTENTION.interpret(*(made_up((40, 24), which) for which in range(3))))
    assert float(printed.split()[1]) == pytest.approx(want, abs=2e-4)


def test_ctypes(library: Path) -> None:
    check(run([sys.executable, "-S", EXAMPLES / "call_from_python.py", "./libattention.so"], library))


@pytest.mark.skipif(not rust_compiles(), reason="needs rustc")
def test_rust(library: Path) -> None:
    source = EXAMPLES / "call_from_rust.rs"
    run(["rustc", "-D", "warnings", source, "-L", ".", "-l", "attention", "-o", "call"], library)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    done = subprocess.run(["./call"], cwd=library, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check(done.stdout)


def test_the_exporting_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["export_attention.py", str(tmp_path / "build")])
    best = runpy.run_path(str(EXAMPLES / "export_attention.py"), run_name="__main__")["best"]
    assert {path.name for path in (tmp_path / "build").iterdir()} == {
        "attention.c",
        "attention.h",
        "attention.json",
        "main.c",
    }
    built = load(tmp_path / "build", "attention")
    arrays = [made_up((40, 24), which) for which in range(3)]
    np.testing.assert_array_equal(built.results(*arrays)[0], best(*arrays))
    assert built.manifest["provenance"]["optimised_for"]["extents"]["in0_0"] == 256
    assert read_component(built.manifest["component"]).compile().source == best.source
