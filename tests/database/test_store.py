"""Keeping results: what comes back, from several processes, and from files that do not work."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ilang_eq.database import store
from ilang_eq.database.store import Database
from ilang_eq.errors import DatabaseError
from tests.database.records import key, record


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "deep" / "results.sqlite")


def test_what_is_saved_is_found(database: Database) -> None:
    assert database.find(key()) is None
    assert not database.path.exists(), "looking makes no file"
    database.save([record(), record(threads=2, seconds=3e-3)])
    assert database.find(key()) == record()
    assert database.find(key(threads=2)) == record(threads=2, seconds=3e-3)
    assert database.find(key(threads=3)) is None
    assert list(database.records()) == [record(), record(threads=2, seconds=3e-3)]


def test_one_row_a_key(database: Database) -> None:
    database.save([record(seconds=1.0)])
    database.save([record(seconds=2.0)])
    assert list(database.records()) == [record(seconds=2.0)]


def test_a_shorter_search_serves_shorter_searches_only(database: Database) -> None:
    database.save([record(seconds=1.0, budget_s=5.0)])
    assert database.find(key(), budget_s=4.0) is not None
    assert database.find(key(), budget_s=6.0) is None
    assert database.find(key()) is None
    database.save([record(seconds=2.0, budget_s=1.0)])
    assert database.find(key(), budget_s=1.0) == record(seconds=1.0, budget_s=5.0)
    database.save([record(seconds=3.0)])
    assert database.find(key(), budget_s=60.0) == record(seconds=3.0)


def test_the_file_is_in_wal_mode(database: Database) -> None:
    database.save([record()])
    assert sqlite3.connect(database.path).execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_clearing(database: Database) -> None:
    assert database.clear() == 0
    database.save([record(), record(threads=2)])
    assert database.clear(but_version="v") == 0
    assert database.clear(but_version="w") == 2
    assert list(database.records()) == []
    database.save([record()])
    assert database.clear() == 1


@pytest.mark.parametrize(("column", "damage"), [("schedules", "[{]"), ("report", "{}"), ("budget_s", "soon")])
def test_a_damaged_row_counts_as_missing(database: Database, column: str, damage: str) -> None:
    database.save([record(), record(threads=2)])
    with sqlite3.connect(database.path) as connection:
        connection.execute(f"UPDATE results SET {column} = ? WHERE threads = 1", (damage,))
    assert database.find(key()) is None
    assert database.find(key(threads=2)) == record(threads=2)


WRITER = """
import sys
from pathlib import Path
from ilang_eq.database.store import Database
from tests.database.records import record
for threads in range(int(sys.argv[2]), int(sys.argv[2]) + 20):
    Database(Path(sys.argv[1])).save([record(threads)])
"""


def test_many_processes_write_at_once(database: Database) -> None:
    command = [sys.executable, "-c", WRITER, str(database.path)]
    writers = [subprocess.Popen([*command, str(100 * n)]) for n in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 3
    assert sorted(r.key.threads for r in database.records()) == sorted(100 * n + k for n in range(3) for k in range(20))


def test_a_file_that_is_no_database(database: Database) -> None:
    database.path.parent.mkdir()
    database.path.write_text("not a database" * 100)
    for use in (lambda: database.find(key()), lambda: database.save([record()]), lambda: list(database.records())):
        with pytest.raises(DatabaseError, match=r"results.sqlite: file is not a database"):
            use()
    assert database.path.read_text().startswith("not a database"), "it is left alone"


def test_a_truncated_file(database: Database) -> None:
    database.save([record(threads) for threads in range(1, 50)])
    with sqlite3.connect(database.path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.path.write_bytes(database.path.read_bytes()[:6000])
    with pytest.raises(DatabaseError, match="malformed"):
        list(database.records())


def test_a_locked_file(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.save([record()])
    monkeypatch.setattr(store, "BUSY_S", 0.05)
    holder = sqlite3.connect(database.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="locked"):
        database.save([record(threads=2)])
    assert database.find(key()) == record(), "reading does not wait for a writer"
    holder.execute("COMMIT")
    database.save([record(threads=2)])


def test_a_full_disk(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.save([record()])
    connect = store._connect

    def nearly_full(path: Path, how: str) -> sqlite3.Connection:
        connection = connect(path, how)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(store, "_connect", nearly_full)
    with pytest.raises(DatabaseError, match="full"):
        database.save([record(threads) for threads in range(2, 200)])
    monkeypatch.undo()
    assert list(database.records()) == [record()], "nothing half-saved"


def test_a_directory_that_is_read_only(database: Database, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Results that come with an installation can be used, and nothing is written."""
    database.save([record()])
    with sqlite3.connect(database.path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    database.path.chmod(0o444)
    database.path.parent.chmod(0o555)
    base = tmp_path_factory.getbasetemp()
    for parent in database.path.parent.parents:
        if parent.is_relative_to(base) or parent.name.startswith("pytest-"):
            parent.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", READ_ONLY, str(database.path)], capture_output=True, text=True)
    database.path.parent.chmod(0o755)
    assert done.stdout.split() == ["True", "DatabaseError"], done.stderr


READ_ONLY = """
import os, sys
from pathlib import Path
from ilang_eq.database.store import Database
from ilang_eq.errors import DatabaseError
from tests.database.records import key, record
import ilang_eq.lang.reading, json, sqlite3
if os.geteuid() == 0:
    os.setegid(65534); os.seteuid(65534)
database = Database(Path(sys.argv[1]))
print(database.find(key()) == record())
try:
    database.save([record(threads=2)])
except DatabaseError as error:
    print("DatabaseError")
"""


def test_an_earlier_format_makes_way(database: Database) -> None:
    database.path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(database.path) as connection:
        connection.execute("CREATE TABLE results (component TEXT NOT NULL PRIMARY KEY)")
        connection.execute("INSERT INTO results VALUES ('old')")
        connection.execute("PRAGMA user_version = 1")
    assert database.find(key()) is None
    assert not list(database.records())
    database.save([record()])
    assert list(database.records()) == [record()]


def test_a_later_format(database: Database) -> None:
    database.save([record()])
    with sqlite3.connect(database.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(DatabaseError, match="format 99, of a later version"):
        database.find(key())


@pytest.mark.skipif(os.name != "posix", reason="needs a path that cannot be made")
def test_a_path_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match=r"Not a directory|File exists"):
        Database(tmp_path / "file" / "results.sqlite").save([record()])
