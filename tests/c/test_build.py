"""Compiling and caching: once, whole files only, safe between processes, clear errors."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from ilang_eq.c import build as building
from ilang_eq.c.build import build, compiler_flags, find_compiler
from ilang_eq.cache import cache_directory
from ilang_eq.errors import BuildError
from tests.compilers import COMPILERS

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

SOURCE = "int answer(void) { return 42; }\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("ILANG_EQ_CACHE", str(directory))
    return directory


def stub(path: Path, script: str) -> str:
    """An executable that stands in for a compiler."""
    path.write_text("#!/bin/sh\n" + textwrap.dedent(script))
    path.chmod(0o755)
    return str(path)


def test_builds_once_and_leaves_nothing_else(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(SOURCE)
    assert ctypes.CDLL(str(first)).answer() == 42
    assert list(cache.iterdir()) == [first]
    monkeypatch.setattr(building, "_compile", lambda *_: pytest.fail("compiled again"))
    assert build(SOURCE) == first


def test_many_are_built_at_a_time_each_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a compiler that goes on when two of it run
    script = f"""\
        [ "$1" = --version ] && exec cc --version
        touch {tmp_path}/run-$$
        for _ in $(seq 200); do [ $(ls {tmp_path}/run-* | wc -l) -ge 2 ] && exec cc "$@"; sleep 0.05; done
        exit 1
        """
    monkeypatch.setenv("CC", stub(tmp_path / "meeting", script))
    monkeypatch.setattr(building, "checked_threads", lambda _: 2)
    with building.building() as start:
        for source in (SOURCE, SOURCE + "\n", SOURCE):
            start(source)
    assert len(list(cache.iterdir())) == len(list(tmp_path.glob("run-*"))) == 2


def test_what_one_of_many_is_refused_for_is_raised(cache: Path) -> None:
    with pytest.raises(BuildError, match="refused a kernel"), building.building() as start:
        start("not C")
    assert not list(cache.iterdir())


def test_the_key_covers_source_flags_and_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = build(SOURCE)
    assert build(SOURCE + "\n") != plain
    assert build(SOURCE, sanitize=True) != plain
    monkeypatch.setenv("CC", "cc -DX=1")
    assert build(SOURCE) != plain
    assert len(list(cache.iterdir())) == 4


def test_flags_never_give_up_infinities() -> None:
    for sanitize in (False, True):
        assert not {"-ffast-math", "-ffinite-math-only", "-Ofast"} & set(compiler_flags(sanitize))


def test_a_refusal_shows_what_the_compiler_said(cache: Path) -> None:
    with pytest.raises(BuildError, match=r"refused a kernel:\n(  .*\n)?  kernel.c.*error: .*missing_thing"):
        build("int g(void) { int unused_one; return 1 || 0; }\nint f(void) { return missing_thing; }")
    assert list(cache.iterdir()) == []


def test_a_compiler_that_writes_nothing(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", stub(tmp_path / "cc", "exit 0"))
    with pytest.raises(BuildError, match="cc wrote no kernel"):
        build(SOURCE)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_no_compiler(path: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path)
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(BuildError, match=r"apt install gcc|xcode-select --install"):
        build(SOURCE)
    assert not cache.exists()


def test_a_given_compiler_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(BuildError, match=r"\$CC is 'no-such-compiler'"):
        find_compiler()


def test_a_given_compiler_that_is_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc 'unbalanced")
    with pytest.raises(BuildError, match="cannot be split into words"):
        find_compiler()


def test_arguments_in_cc_are_not_for_a_shell(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"cc -DX='1; touch {tmp_path}/pwned'")
    build(SOURCE)
    assert not (tmp_path / "pwned").exists()


def test_time_out_kills_the_compiler_and_its_children(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = stub(tmp_path / "slow-cc", f'[ "$1" = --version ] && exit 0\n(sleep 5; touch {tmp_path}/late) & wait\n')
    monkeypatch.setenv("CC", slow)
    monkeypatch.setattr(building, "TIMEOUT_S", 0.5)
    with pytest.raises(BuildError, match="took longer than"):
        build(SOURCE)
    assert list(cache.iterdir()) == []
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("refused", ["-fopenmp", "*-mbranches-*", "-fopenmp | *-mbranches-*"])
def test_what_a_compiler_does_not_take_is_done_without(
    refused: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenMP, and what old assemblers do not know; each by itself."""
    script = f"""\
        for a in "$@"; do case "$a" in {refused}) echo "no $a" >&2; exit 1;; esac; done
        echo "$@" > {tmp_path}/taken; exec cc "$@"
        """
    monkeypatch.setenv("CC", stub(tmp_path / "plain-cc", script))
    assert ctypes.CDLL(str(build(SOURCE))).answer() == 42
    taken = (tmp_path / "taken").read_text()
    assert ("-fopenmp" in taken.split()) == ("-fopenmp" not in refused)
    if platform.machine() == "x86_64":
        assert ("-mbranches-" in taken) == ("-mbranches-" not in refused)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a matter of x86-64")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_compilers_are_asked_for_whole_jumps_in_their_own_words(compiler: tuple[str, ...], tmp_path: Path) -> None:
    flags = building._layout_flags(compiler, sanitize=False)
    (tmp_path / "answer.c").write_text(SOURCE)
    built = subprocess.run([*compiler, *flags, "-c", "answer.c"], cwd=tmp_path, capture_output=True, text=True)
    assert flags
    assert built.returncode == 0, built.stderr


def test_openmp_without_its_library_is_done_without(cache: Path) -> None:
    """As clang where libomp is missing: the linker may leave functions to whoever loads the library."""
    library = build("#ifdef _OPENMP\nint missing(void);\nint f(void) { return missing(); }\n#endif\n" + SOURCE)
    assert ctypes.CDLL(str(library)).answer() == 42


def test_what_would_not_load_is_refused(cache: Path) -> None:
    with pytest.raises(BuildError, match="missing_thing"):
        build("int missing_thing(void);\nint f(void) { return missing_thing(); }\n")


def test_cache_directory_follows_the_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ILANG_EQ_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "ilang_eq"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "Library" / "Caches" / "ilang_eq"


def test_an_unwritable_cache_falls_back_and_says_so_once(tmp_path: Path) -> None:
    """In a process of its own, because the fallback belongs to the process."""
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    script = f"""
        import ctypes, warnings
        from ilang_eq.c.build import build
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            paths = [build({SOURCE!r}), build({SOURCE!r}), build({SOURCE!r} + " ")]
        assert len(caught) == 1, caught
        assert "ILANG_EQ_CACHE" in str(caught[0].message)
        assert paths[0] == paths[1] != paths[2]
        assert ctypes.CDLL(str(paths[0])).answer() == 42
        print(paths[0])
    """
    environment = {**os.environ, "ILANG_EQ_CACHE": str(blocked / "below")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_a_full_disk_falls_back(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BuildError, match="No space left"), pytest.warns(UserWarning, match="No space left"):
        build(SOURCE)
    assert list(cache.iterdir()) == []


def test_a_compiler_that_fails_on_a_full_disk_falls_back(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(cache.parent)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(BuildError, match="No space left"), pytest.warns(UserWarning, match="No space left"):
        build("not C")
    monkeypatch.undo()
    with pytest.raises(BuildError, match="refused a kernel"):
        build("not C")


def test_a_cache_that_can_only_be_read_is_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build(SOURCE)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda **_: pytest.fail("wrote"))
    assert build(SOURCE) == library


def test_processes_that_build_at_once_agree(cache: Path) -> None:
    script = f"import ctypes; from ilang_eq.c.build import build; print(ctypes.CDLL(str(build({SOURCE!r}))).answer())"
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    outputs = [process.communicate() for process in started]
    assert [out.strip() for out, _ in outputs] == ["42"] * 6, outputs
    assert len(list(cache.iterdir())) == 1
