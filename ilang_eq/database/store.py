"""The database: one SQLite file in WAL mode, which any number of processes read and write at once.

Every call opens the file anew and closes it: connections survive neither forks nor threads, and opening takes 0.2 ms.
A file that cannot be used raises ``DatabaseError``; who optimises says so once and goes on without (``tolerant.py``).
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from ilang_eq.database.record import Key, Record, read_key, read_report, read_schedules
from ilang_eq.errors import DatabaseError

BUSY_S = 10.0
"""How long to wait for other processes to finish writing."""

_FORMAT = 3
"""The layout of the table, in SQLite's ``user_version``. Results of an earlier one are of no use, and make way."""

_KEY = tuple(Key.__dataclass_fields__)
_LISTS = ("shapes", "constants")
_COLUMNS = (*_KEY, "budget_s", "schedules", "report", "found")
_UNBOUNDED = math.inf
"""The budget of a search that came to its end, as SQLite orders it."""

_CREATE = f"""
CREATE TABLE IF NOT EXISTS results (
    component TEXT NOT NULL, shapes TEXT NOT NULL, target TEXT NOT NULL, machine TEXT NOT NULL,
    threads INTEGER NOT NULL, effort TEXT NOT NULL, rules TEXT NOT NULL, version TEXT NOT NULL, seed INTEGER NOT NULL,
    constants TEXT NOT NULL, precision TEXT NOT NULL,
    budget_s REAL NOT NULL, schedules TEXT NOT NULL, report TEXT NOT NULL, found TEXT NOT NULL,
    PRIMARY KEY ({", ".join(_KEY)})
) WITHOUT ROWID
"""
_FIND = f"SELECT {', '.join(_COLUMNS)} FROM results WHERE {' AND '.join(f'{name} = ?' for name in _KEY)}"
_SAVE = f"""
INSERT INTO results ({", ".join(_COLUMNS)}) VALUES ({", ".join("?" * len(_COLUMNS))})
ON CONFLICT DO UPDATE SET budget_s = excluded.budget_s, schedules = excluded.schedules, report = excluded.report,
    found = excluded.found
WHERE excluded.budget_s >= results.budget_s
"""
_ALL = f"SELECT {', '.join(_COLUMNS)} FROM results ORDER BY {', '.join(_KEY)}"

_Row = tuple[str | int | float, ...]


@dataclass(frozen=True, slots=True)
class Database:
    """The results kept at ``path``. The file is made when the first one is saved."""

    path: Path

    def find(self, key: Key, budget_s: float | None = None) -> Record | None:
        """The result of ``key`` from a search given at least ``budget_s`` seconds (None: one that came to its end).

        A row that cannot be read counts as missing.

        Raises:
            DatabaseError: the file cannot be used.
        """
        with _faults(self.path):
            if not self.path.exists():
                return None
            with closing(_reader(self.path)) as connection:
                row = connection.execute(_FIND, _key_cells(key)).fetchone() if _is_current(connection) else None
        record = None if row is None else _record(row)
        allowed = _UNBOUNDED if record is None or record.budget_s is None else record.budget_s
        return record if allowed >= (_UNBOUNDED if budget_s is None else budget_s) else None

    def save(self, records: Iterable[Record]) -> None:
        """Keep ``records``, all or none; one from a shorter search does not replace one from a longer.

        Raises:
            DatabaseError: the file cannot be written.
        """
        rows = [_cells(record) for record in records]
        with _faults(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(_writer(self.path)) as connection, connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(_SAVE, rows)

    def records(self) -> Iterator[Record]:
        """Every readable result, in the order of the keys. Raises DatabaseError."""
        with _faults(self.path):
            if not self.path.exists():
                return
            with closing(_reader(self.path)) as connection:
                rows = connection.execute(_ALL).fetchall() if _is_current(connection) else []
        for row in rows:
            record = _record(row)
            if record is not None:
                yield record

    def clear(self, but_version: str = "") -> int:
        """Forget every result but those of one version; returns how many that were. Raises DatabaseError."""
        with _faults(self.path):
            if not self.path.exists():
                return 0
            with closing(_writer(self.path)) as connection, connection:
                return connection.execute("DELETE FROM results WHERE version != ?", (but_version,)).rowcount


def _reader(path: Path) -> sqlite3.Connection:
    """A connection that reads; where the file's directory is read-only too, one that takes the file as it is."""
    try:
        return _checked(_connect(path, "mode=rw"))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        return _checked(_connect(path, "mode=ro&immutable=1"))


def _writer(path: Path) -> sqlite3.Connection:
    connection = _connect(path, "mode=rwc")
    try:
        # switching to WAL does not wait for others, as every other statement does
        _patiently(connection, "PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _checked(connection).execute("BEGIN IMMEDIATE")
        if not _is_current(connection):
            connection.execute("DROP TABLE IF EXISTS results")
        connection.execute(_CREATE)
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=BUSY_S, isolation_level=None)


def _is_current(connection: sqlite3.Connection) -> bool:
    """Whether its file has the table, in this version's layout."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    return found == _FORMAT


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    """``connection`` if its file has a layout that this version knows."""
    try:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        if found > _FORMAT:
            raise DatabaseError(f"it has format {found}, of a later version", expected=f"format {_FORMAT} or earlier")
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(connection: sqlite3.Connection, command: str) -> None:
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute(command)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Turns what SQLite and the system raise into ``DatabaseError``, naming the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise DatabaseError(f"database {path}: {error}", expected=_REMEDY) from error
    except OSError as error:
        raise DatabaseError(f"database {path}: {error.strerror}", expected=_REMEDY) from error
    except DatabaseError as error:
        raise DatabaseError(f"database {path}: {error.message}", expected=error.expected) from error


_REMEDY = "a file that can be written; move this one away, or set ILANG_EQ_DATABASE to another, or to `off`"


def _key_cells(key: Key) -> _Row:
    cells = {name: getattr(key, name) for name in _KEY} | {name: _json(getattr(key, name)) for name in _LISTS}
    return tuple(cells.values())


def _cells(record: Record) -> _Row:
    budget = _UNBOUNDED if record.budget_s is None else record.budget_s
    found = record.found or datetime.now(UTC).isoformat(timespec="seconds")
    schedules = [asdict(schedule) for schedule in record.schedules]
    return (*_key_cells(record.key), budget, _json(schedules), _json(asdict(record.report)), found)


def _record(row: _Row) -> Record | None:
    """The row as a record; None if it is damaged."""
    cells = dict(zip(_COLUMNS, row, strict=True))
    try:
        key = {name: cells[name] for name in _KEY} | {name: json.loads(str(cells[name])) for name in _LISTS}
        budget = float(cells["budget_s"])
        return Record(
            key=read_key(key),
            schedules=read_schedules(json.loads(str(cells["schedules"]))),
            report=read_report(json.loads(str(cells["report"]))),
            budget_s=None if budget == _UNBOUNDED else budget,
            found=str(cells["found"]),
        )
    except (ValueError, DatabaseError):
        return None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
