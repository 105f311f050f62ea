"""Where the database is, and what version its rows are of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ilang_eq.database import version
from ilang_eq.database.location import default_path
from ilang_eq.database.tolerant import results_at


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ILANG_EQ_DATABASE", str(tmp_path / "mine.sqlite"))
    assert default_path() == tmp_path / "mine.sqlite"
    monkeypatch.setenv("ILANG_EQ_DATABASE", "off")
    assert default_path() is None
    assert results_at(None).path is None
    assert results_at("here.sqlite").path == Path("here.sqlite")
    assert results_at(False).path is None


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="the rules of other systems")
def test_the_users_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ILANG_EQ_DATABASE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "ilang_eq" / "results.sqlite"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local" / "share" / "ilang_eq" / "results.sqlite"


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("ILANG_EQ_DATABASE")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert results_at(None).path is None


def test_a_change_of_the_search_is_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(version, "_PACKAGE", tmp_path)
    (tmp_path / "lang").mkdir()

    def after(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return version.sources_digest.__wrapped__()

    first = after("lang/rule.py", "1")
    assert after("unrelated.py", "1") == first
    assert after("lang/rule.py", "2") != first
    assert after("lang/rule.py", "1") == first
    assert after("optimizer.py", "1") != first
