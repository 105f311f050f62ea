"""Results from the database: when one serves, when it does not, and that nothing depends on it."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang_eq import Component, I, i, optimize
from ilang_eq.database import store, tolerant
from ilang_eq.database.record import read_record, record_as_json
from ilang_eq.errors import OptionError
from ilang_eq.extract.machine import detect
from ilang_eq.kept import found_in, key_of, record_of
from ilang_eq.optimized import Found, Optimized
from ilang_eq.request import checked_request
from ilang_eq.rewrites import default

MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")
SHAPES = [(64, 48), (48, 32)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("database") / "results.sqlite"


@pytest.fixture(scope="module")
def searched(path: Path) -> Optimized:
    best = optimize(MATMUL, SHAPES, threads=1, database=path)
    assert best.report.origin == "search"
    return best


def from_database(best: Optimized) -> bool:
    return best.report.origin.startswith("database")


def test_the_second_time_it_is_there(searched: Optimized, path: Path) -> None:
    best = optimize(MATMUL, SHAPES, threads=1, database=path)
    assert f"from: database {path}, found 20" in best.explain()
    assert [str(s) for s in best.schedules] == [str(s) for s in searched.schedules]
    assert [s.cost for s in best.schedules] == [s.cost for s in searched.schedules]
    assert str(best.baseline) == str(searched.baseline)
    assert best.report.rules == searched.report.rules
    assert best.source == searched.source
    a, b = (np.random.default_rng(0).standard_normal(shape, dtype=np.float32) for shape in SHAPES)
    np.testing.assert_allclose(best(a, b), a @ b, rtol=1e-4, atol=1e-4)


SAME: dict[str, Component] = {
    "other names": i("ac*cb~abc") >> i("+xyz~xy"),
    "other brackets": (I | I) >> (i("ik*kj~ijk") >> (I >> i("+ijk~ij"))),
    "composed": i("+ijk~ij") << i("ik*kj~ijk"),
}


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("name", SAME)
def test_names_and_brackets_do_not_matter(name: str, path: Path) -> None:
    assert from_database(optimize(SAME[name], SHAPES, threads=1, database=path))


OTHER: dict[str, dict[str, Any]] = {
    "shapes": {"shapes": [(64, 48), (48, 33)]},
    "threads": {"threads": 2},
    "rules": {"rules": default.upto("exact")},
    "seed": {"seed": 1},
    "effort": {"effort": "measure"},
}


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("name", OTHER)
def test_what_else_a_result_depends_on(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def searching(*_: object) -> None:
        raise InterruptedError

    monkeypatch.setattr("ilang_eq.optimizer.improving", searching)
    options = {"shapes": SHAPES, "threads": 1, "database": path}
    assert from_database(optimize(MATMUL, **options))
    with pytest.raises(InterruptedError):
        optimize(MATMUL, **options | OTHER[name])


@pytest.mark.usefixtures("searched")
def test_a_users_schedule_competes_with_what_is_known(path: Path) -> None:
    scheduled = i("ik*kj~ijk|i:4|iki'j") >> i("+ijk~ij|i:4|iki'j0")
    best = optimize(scheduled, SHAPES, threads=1, database=path)
    assert from_database(best)
    assert best.baseline.component == scheduled
    assert any(s.component == scheduled for s in best.schedules)
    assert best.cost <= best.baseline_cost
    assert str(scheduled) not in json.dumps([s[0] for s in rows(path, "schedules")])


def rows(path: Path, column: str) -> list[tuple[str]]:
    with sqlite3.connect(path) as connection:
        return connection.execute(f"SELECT {column} FROM results").fetchall()


def other_function(schedules: list[dict[str, Any]]) -> None:
    schedules[0]["text"] = schedules[0]["text"].replace("*", "+", 1)


def no_component(schedules: list[dict[str, Any]]) -> None:
    schedules[0]["text"] = "__import__('os').abort()"


def an_illegal_stage(schedules: list[dict[str, Any]]) -> None:
    schedules[0]["text"] = """i("ik*kj~ijk|i:2") >> i("+ijk~ij|i:4|ii'0jk")"""


def without_the_baseline(schedules: list[dict[str, Any]]) -> None:
    schedules[:] = schedules[:1]


@pytest.mark.parametrize("tamper", [other_function, no_component, an_illegal_stage, without_the_baseline])
def test_a_row_that_cannot_be_trusted_is_ignored(
    searched: Optimized, path: Path, tamper: Callable[[list[dict[str, Any]]], None]
) -> None:
    ((text,),) = rows(path, "schedules")
    schedules = json.loads(text)
    tamper(schedules)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE results SET schedules = ?", (json.dumps(schedules),))
    best = optimize(MATMUL, SHAPES, threads=1, database=path)
    assert best.report.origin == "search"
    assert str(best) == str(searched)
    assert from_database(optimize(MATMUL, SHAPES, threads=1, database=path)), "and the row is mended"


def test_a_bad_runner_up_is_left_out(searched: Optimized, path: Path) -> None:
    ((text,),) = rows(path, "schedules")
    schedules = json.loads(text)
    schedules[1]["text"] = schedules[1]["text"].replace("*", "+", 1)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE results SET schedules = ?", (json.dumps(schedules),))
    best = optimize(MATMUL, SHAPES, threads=1, database=path)
    assert from_database(best)
    assert len(best.schedules) == len(searched.schedules) - 1
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE results SET schedules = ?", (text,))


def test_times_survive_and_so_does_a_kernel_that_failed(searched: Optimized) -> None:
    timed = [replace(s, measured=m) for s, m in zip(searched.schedules, (1e-3, math.inf, None), strict=False)]
    request = checked_request(MATMUL, SHAPES, threads=1)
    record = record_of(key_of(request, detect()), Found(tuple(timed), searched.report), None)
    again = read_record(json.loads(json.dumps(record_as_json(record))))
    assert [s.measured for s in found_in(again).schedules] == [1e-3, math.inf, None]


FRESH = """
import sys
from ilang_eq import i, optimize
from ilang_eq.rewrites.engine import load_egglog
best = optimize(i("ik*kj~ijk") >> i("+ijk~ij"), [(64, 48), (48, 32)], threads=1)
heavy = [m for m in ("egglog", "networkx", "torch") if m in sys.modules]
print(best.report.origin.split()[0], heavy, load_egglog.cache_info().misses)
"""


@pytest.mark.usefixtures("searched")
def test_a_fresh_process_needs_no_egglog(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_DATABASE", str(path))
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True)
    assert done.stdout.strip() == "database [] 0", done.stderr


def test_it_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_DATABASE", str(tmp_path / "used.sqlite"))
    small = i("^i~i")
    optimize(small, [(8,)], threads=1, database=False)
    assert list(tmp_path.iterdir()) == []
    optimize(small, [(8,)], threads=1)
    assert (tmp_path / "used.sqlite").exists()
    with pytest.raises(OptionError, match="database is True"):
        optimize(small, [(8,)], **{"database": True})


def damaged(path: Path) -> None:
    path.write_text("no database" * 100)


def a_directory(path: Path) -> None:
    path.mkdir()


def locked(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    _holders.append(connection)


_holders: list[sqlite3.Connection] = []


@pytest.mark.parametrize("harm", [damaged, a_directory, locked])
def test_without_a_working_database_it_works_and_says_so_once(
    harm: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_S", 0.05)
    monkeypatch.setattr(tolerant, "_complained", set())
    path = tmp_path / "results.sqlite"
    harm(path)
    with pytest.warns(UserWarning, match=r"results are not kept: database .*results.sqlite") as caught:
        best = optimize(i("^i~i"), [(8,)], threads=1, database=path)
    assert len(caught) == 1
    np.testing.assert_allclose(best(np.zeros(8, np.float32)), np.ones(8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimize(i("^i~i"), [(8,)], threads=1, database=path)


def test_a_python_without_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ilang_eq.database.store", None)
    monkeypatch.setattr(tolerant, "_complained", set())
    with pytest.warns(UserWarning, match="results are not kept"):
        best = optimize(i("^i~i"), [(8,)], threads=1, database=tmp_path / "results.sqlite")
    assert best.report.origin == "search"


def test_the_warning_points_at_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tolerant, "_complained", set())
    damaged(tmp_path / "results.sqlite")
    with pytest.warns(UserWarning, match="results are not kept") as caught:
        optimize(i("^i~i"), [(8,)], threads=1, database=tmp_path / "results.sqlite")
    assert caught[0].filename == __file__
