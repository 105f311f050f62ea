"""A database that optimisation does not depend on: what goes wrong with it is said once, and then done without.

So is a Python that was built without SQLite.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ilang_eq.database.location import default_path
from ilang_eq.database.record import Key, Record
from ilang_eq.errors import DatabaseError, OptionError

Choice = str | Path | Literal[False] | None
"""Which database: a path, False for none, or None for ``location.default_path``."""

_complained: set[Path] = set()
"""The databases of which this process has said that they do not work."""


@dataclass(frozen=True, slots=True)
class Results:
    """The results kept at ``path``; nowhere if that is None."""

    path: Path | None

    def find(self, key: Key, budget_s: float | None) -> Record | None:
        """As ``Database.find``, and None where that fails."""
        if self.path is None:
            return None
        try:
            from ilang_eq.database.store import Database

            return Database(self.path).find(key, budget_s)
        except (DatabaseError, ImportError) as error:
            _complain(self.path, error)
            return None

    def save(self, record: Record) -> None:
        """As ``Database.save``, if that works."""
        if self.path is None:
            return
        try:
            from ilang_eq.database.store import Database

            Database(self.path).save([record])
        except (DatabaseError, ImportError) as error:
            _complain(self.path, error)


def results_at(database: Choice) -> Results:
    """The results that ``database`` chooses.

    Raises:
        OptionError: neither a path, nor None, nor False.
    """
    match database:
        case None:
            return Results(_default())
        case False:
            return Results(None)
        case str() | Path() if str(database):
            return Results(Path(database))
        case _:
            raise OptionError(f"database is {database!r}", expected="a path, None for the user's, or False for none")


def _default() -> Path | None:
    try:
        return default_path()
    except RuntimeError:
        # no home directory is known
        return None


def _complain(path: Path, error: Exception) -> None:
    if path not in _complained:
        _complained.add(path)
        warnings.warn(f"results are not kept: {error}", stacklevel=5)
