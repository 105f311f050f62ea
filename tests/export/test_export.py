"""Exported libraries: strict builds, the same results, error codes, and whole files only."""

from __future__ import annotations

import errno
import importlib.util
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang_eq import Component, I, i, optimize
from ilang_eq.c.kernel import CKernel
from ilang_eq.errors import OptionError, ScheduleError
from ilang_eq.export import export
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests import test_empty_axes as empty_axes
from tests.compilers import CLANG_OF_ZIG, COMPILERS
from tests.export.libraries import STRICT, Built, load, made_up, run
from tests.golden import Golden
from tests.random_programs import random_case

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
ATTENTION = i("ik*jk~ijk") >> i("+ijk~ij") >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")
COMPONENTS: dict[str, Component] = {
    "attention": ATTENTION,
    "tiles": i("ik*kj~ijk|i:4,j:32|ijki'j'") >> i("+ijk~ij|i:4,j:32|ijki'j'0"),
    "two outputs": i("ij+j~ij") >> (i("+ij~i") & i(">ij~j")),
    "scalars": i(".*.~.") >> i("^.~."),
    "logic": i("i<i~i") >> i("i&&i~i") >> i("i^i~i"),
    "passed through": i("-i~i") & I,
}


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> Built:
    directory = tmp_path_factory.mktemp("library")
    export(ATTENTION, directory, name="attention")
    return load(directory, "attention")


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", COMPONENTS)
def test_strict_builds_and_main(name: str, compiler: tuple[str, ...], tmp_path: Path) -> None:
    component = COMPONENTS[name]
    directory = export(component, tmp_path / "out", name="thing", sizes={"in0_0": 5})
    for flags in (["-O2", "-march=native", "-fopenmp-simd"], ["-O0"]):
        run([*compiler, *STRICT, *flags, "main.c", "thing.c", "-lm", "-o", "thing"], directory)
    manifest = json.loads((directory / "thing.json").read_text())
    sizes = {extent: 5 if extent == "in0_0" else 64 for extent in manifest["extents"]}
    shapes = [[sizes[d] for d in array["dims"]] for array in manifest["inputs"]]
    wanted = component.interpret(*(made_up(shape, k) for k, shape in enumerate(shapes)))
    printed = [float(line.split()[1]) for line in run(["./thing"], directory).splitlines()]
    results = wanted if isinstance(wanted, tuple) else (wanted,)
    for got, want in zip(printed, results, strict=False):
        assert got == pytest.approx(np.sum(want), rel=1e-3, abs=1e-3)
    assert len(printed) == len(manifest["outputs"])


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "riscv64-linux-gnu", "x86_64-windows-gnu"])
def test_strict_builds_for_other_machines(target: str, tmp_path: Path) -> None:
    """For Windows without linking: its C library would be built first, for minutes."""
    export(ATTENTION, tmp_path, name="attention")
    command = [*CLANG_OF_ZIG, "-target", target, *STRICT, "-O1", "-fopenmp-simd"]
    if "windows" in target:
        for source in ("main.c", "attention.c"):
            run([*command, "-c", source], tmp_path)
    else:
        run([*command, "main.c", "attention.c", "-lm", "-o", "main"], tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_random_programs_build_strictly(compiler: tuple[str, ...], tmp_path: Path) -> None:
    """In one go, each under a name of its own: they do not clash when linked."""
    sources = []
    for seed in range(12):
        try:
            program = lower(random_case(seed).scheduled, alternatives=False)
        except ScheduleError:
            continue
        export(CKernel(program), tmp_path, name=f"random{seed}", overwrite=True)
        sources.append(f"random{seed}.c")
    assert len(sources) > 3
    run([*compiler, *STRICT, "-O1", "-march=native", "-fopenmp-simd", "-shared", "-fPIC", *sources], tmp_path)


def test_the_same_bits_as_the_kernel(attention: Built) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((rows, 24), dtype=np.float32) for rows in (40, 33, 33))
    want = ATTENTION.compile(threads=1)(q, k, v)
    for threads in (1, 3):
        (got,) = attention.results(q, k, v, threads=threads)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["sum of a softmax", "attention", "sum of products", "mean"])
def test_axes_without_elements(name: str, tmp_path: Path) -> None:
    component = empty_axes.COMPONENTS[name]
    best = optimize(component, [(64,) * (rank or 0) for rank in infer(wire(component)).ranks], threads=1)
    best.export(tmp_path, name="thing")
    built = load(tmp_path, "thing")
    for arrays in empty_axes.empties(component, [3, 5, 2, 4]):
        np.testing.assert_array_equal(built.results(*arrays)[0], component.interpret(*arrays))


def test_outputs_that_rewriting_has_found_to_be_inputs(tmp_path: Path) -> None:
    """The component as it was written computes them; the caller has no memory for that."""
    written = (i("-ij~ij") >> i("-ij~ij")) & i("+ij~i")
    export(I & i("+ij~i"), tmp_path, name="thing", meaning=written)
    built = load(tmp_path, "thing")
    for columns in (0, 5):
        (sums,) = built.results(np.ones((3, columns), np.float32))
        np.testing.assert_array_equal(sums, np.full(3, columns))


def test_error_codes(attention: Built) -> None:
    extents = (4, 8, 5, 8)
    arrays = [made_up(shape, 0) for shape in ((4, 8), (5, 8), (5, 8), (4, 8))]
    size = attention.workspace_size(extents)
    workspace = np.empty(size, np.uint8)
    codes = attention.manifest["errors"]
    assert size > 0
    assert attention.workspace_size(extents, threads=0) == -codes["ATTENTION_BAD_THREADS"]
    assert attention.workspace_size((4, -8, 5, 8)) == -codes["ATTENTION_BAD_EXTENT"]
    assert attention.workspace_size((2**31, 2**31, 2**31, 8)) == -codes["ATTENTION_TOO_LARGE"]
    assert attention.run(arrays, extents, workspace, threads=0) == codes["ATTENTION_BAD_THREADS"]
    assert attention.run(arrays, (4, 8, -5, 8), workspace) == codes["ATTENTION_BAD_EXTENT"]
    assert attention.run(arrays, extents, workspace, size=size - 1) == codes["ATTENTION_SMALL_WORKSPACE"]
    assert attention.run(arrays, extents, None, size=size) == codes["ATTENTION_NULL_POINTER"]
    for missing in range(4):
        some = [None if n == missing else array for n, array in enumerate(arrays)]
        assert attention.run(some, extents, workspace) == codes["ATTENTION_NULL_POINTER"]
    assert attention.run(arrays, extents, workspace) == codes["ATTENTION_OK"]
    assert attention.run([None, *arrays[1:3], None], (0, 8, 5, 8), workspace) == codes["ATTENTION_OK"]


def test_calls_at_once(attention: Built) -> None:
    inputs = [[made_up((rows, 16), rows + k) for k in range(3)] for rows in (20, 40, 60)]
    wanted = [attention.results(*arrays)[0] for arrays in inputs]
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(20):
            if not np.array_equal(attention.results(*inputs[n], threads=2)[0], wanted[n]):
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_the_header_is_c_plus_plus_too(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    export(SOFTMAX, tmp_path, name="softmax")
    (tmp_path / "use.cpp").write_text('#include "softmax.h"\nint main() { return softmax_abi_version() - 1; }\n')
    run(["gcc", "-c", "-O1", "-march=native", "-fopenmp-simd", "softmax.c"], tmp_path)
    run(["g++", "-Wall", "-Wextra", "-Werror", "-pedantic", "use.cpp", "softmax.o", "-lm", "-o", "use"], tmp_path)
    run(["./use"], tmp_path)


def test_golden_files(tmp_path: Path, golden: Golden) -> None:
    export(i("ij*ij~ij") >> i("+ij~i"), tmp_path, name="squares")
    for name in ("squares.h", "main.c"):
        text = (tmp_path / name).read_text()
        golden.check(name, "\n".join(line for line in text.splitlines() if "cc -std" not in line) + "\n")


@pytest.mark.parametrize("name", ["", "main", "two words", "1st", "_x", "a-b", "x;y", "../up", "é"])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expected: a C identifier"):
        export(SOFTMAX, tmp_path / "out", name=name)
    assert not (tmp_path / "out").exists()


def test_nothing_to_compute(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="returns its inputs alone"):
        export(I, tmp_path / "out")


def test_files_are_replaced_only_if_asked(tmp_path: Path) -> None:
    export(SOFTMAX, tmp_path, name="softmax")
    (tmp_path / "main.c").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    with pytest.raises(OptionError, match=r"has main.c, softmax.c, softmax.h, softmax.json already\n.*overwrite=True"):
        export(SOFTMAX, tmp_path, name="softmax")
    assert (tmp_path / "main.c").read_text() == "mine"
    export(SOFTMAX, tmp_path, name="softmax", overwrite=True)
    assert "softmax_run" in (tmp_path / "main.c").read_text()
    assert (tmp_path / "notes.txt").read_text() == "mine too"


def refuse(after: int) -> Callable[..., Any]:
    written: list[object] = []

    def write(self: Path, content: bytes) -> int:
        written.append(self)
        if len(written) > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(content)

    return write


@pytest.mark.parametrize("after", [0, 2])
def test_a_full_disk_leaves_nothing_behind(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_bytes", refuse(after))
    with pytest.raises(OptionError, match="cannot be written: No space left on device"):
        export(SOFTMAX, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="cannot be written"):
        export(SOFTMAX, tmp_path / "file" / "out")
