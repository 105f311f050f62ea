"""Results as JSON Lines, so that they can be checked in, compared and merged: one object a line, sorted by key."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ilang_eq.database.record import Record, read_record, record_as_json
from ilang_eq.database.store import Database
from ilang_eq.database.verify import verified
from ilang_eq.errors import DatabaseError, ILangError
from ilang_eq.lang.canonical import canonical
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire


def export_lines(records: Iterable[Record], path: Path) -> int:
    """Write ``records`` to ``path``, which appears whole or not at all; returns how many there were.

    Raises:
        DatabaseError: the file cannot be written.
    """
    lines = [json.dumps(record_as_json(record), ensure_ascii=False, allow_nan=False) for record in records]
    try:
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix="export-") as scratch:
            draft = Path(scratch) / path.name
            draft.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            os.replace(draft, path)
    except OSError as error:
        raise DatabaseError(f"{path}: {error.strerror}", expected="a file that can be written") from error
    return len(lines)


def import_lines(path: Path, database: Database) -> int:
    """Save the results that the lines of ``path`` hold, all or none; returns how many there were.

    A result from a longer search, if ``database`` has one, stays.

    Raises:
        DatabaseError: a line that is malformed, or holds a schedule that computes something else; or no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatabaseError(f"{path} cannot be read: {error}") from error
    numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    records = [_record(line, f"{path}, line {n}") for n, line in numbered]
    database.save(records)
    return len(records)


def _record(line: str, place: str) -> Record:
    try:
        record = read_record(json.loads(line))
        fault = _fault(record)
    except json.JSONDecodeError as error:
        raise DatabaseError(f"{place} is not JSON: {error}", expected="one JSON object a line") from None
    except RecursionError:
        raise DatabaseError(f"{place} is nested too deeply", expected="what `db export` writes") from None
    except ILangError as error:
        raise DatabaseError(f"{place}: {error.message}", expected=error.expected) from None
    if fault is not None:
        raise DatabaseError(f"{place}: {fault}", expected="what `db export` writes")
    return record


def _fault(record: Record) -> str | None:
    """What is wrong with the texts of ``record``; None if nothing is. Raises ILangError."""
    graph = canonical(wire(read_component(record.key.component)))
    if str(unwire(graph)) != record.key.component:
        return "the component is not in canonical form"
    infer(graph).bind(record.key.shapes)
    texts = [schedule.text for schedule in record.schedules]
    if record.key.component not in texts:
        return "the component itself is not among the schedules"
    wrong = next((text for text in texts if verified(graph, text) is None), None)
    return None if wrong is None else f"this schedule is illegal, or computes something else: {wrong}"
