from __future__ import annotations

from pathlib import Path

import pytest

from ilang_eq.calibrate import caches
from ilang_eq.calibrate.caches import Cache, data_caches

ENTRIES = [
    ("index0", "1", "Data", "32K", "8", "0,4"),
    ("index1", "1", "Instruction", "32K", "8", "0,4"),
    ("index2", "2", "Unified", "1M", "16", "0,4"),
    ("index3", "3", "Unified", "36608K", "11", "0-7"),
]


def _describe(root: Path, entries: list[tuple[str, str, str, str, str, str]]) -> None:
    names = ("level", "type", "size", "ways_of_associativity", "shared_cpu_list")
    for folder, *values in entries:
        (root / folder).mkdir()
        for name, value in zip(names, values, strict=True):
            (root / folder / name).write_text(value + "\n")


def test_data_caches_by_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _describe(tmp_path, ENTRIES)
    monkeypatch.setattr(caches, "_CACHES", tmp_path)
    assert data_caches() == (
        Cache(1, 32 << 10, 4096, False),
        Cache(2, 1 << 20, 65536, False),
        Cache(3, 36608 << 10, 64, True),
    )


def test_the_third_level_of_a_single_core_is_shared_with_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _describe(tmp_path, [(*entry[:-1], "0") for entry in ENTRIES])
    monkeypatch.setattr(caches, "_CACHES", tmp_path)
    assert [cache.shared for cache in data_caches()] == [False, False, True]


def test_a_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_CACHES", tmp_path)
    assert data_caches() == ()
    _describe(tmp_path, [("index0", "1", "Data", "unknown", "8", "0")])
    assert data_caches() == ()
