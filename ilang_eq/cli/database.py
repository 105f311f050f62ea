"""``db``: the results that are kept."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ilang_eq.cli.command import Answer, Command
from ilang_eq.database.exchange import export_lines, import_lines
from ilang_eq.database.record import Record
from ilang_eq.database.store import Database
from ilang_eq.database.tolerant import results_at
from ilang_eq.database.version import sources_digest
from ilang_eq.errors import OptionError
from ilang_eq.lang.shape_text import print_shape
from ilang_eq.text_table import text_table, time_text


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=list(_ACTIONS), help="what to do with the results")
    parser.add_argument("file", nargs="?", type=Path, help="of JSON Lines, for export and import")
    parser.add_argument(
        "--database", metavar="FILE", help="where results are kept (default: $ILANG_EQ_DATABASE, or yours)"
    )
    parser.add_argument("--yes", action="store_true", help="clear without this is refused")


def _db(options: argparse.Namespace) -> Answer:
    path = results_at(options.database).path
    if path is None:
        raise OptionError(
            "the database is switched off", expected="--database FILE, or ILANG_EQ_DATABASE set to a file"
        )
    return _ACTIONS[options.action](Database(path), options)


def _info(database: Database, _: argparse.Namespace) -> Answer:
    records = list(database.records())
    size = database.path.stat().st_size if database.path.exists() else 0
    components = len({record.key.component for record in records})
    text = f"{database.path}\n{len(records)} results for {components} components, {size / 1024:.0f} KB"
    return Answer(text, {"path": str(database.path), "results": len(records), "components": components, "bytes": size})


def _list(database: Database, _: argparse.Namespace) -> Answer:
    records = list(database.records())
    header = ("found", "predicted", "threads", "target", "effort", "version", "shapes", "component")
    return Answer(text_table(header, list(map(_row, records))), {"results": [_data(record) for record in records]})


def _export(database: Database, options: argparse.Namespace) -> Answer:
    path = _file(options)
    count = export_lines(database.records(), path)
    return Answer(f"{count} results written to {path}", {"results": count, "file": str(path)})


def _import(database: Database, options: argparse.Namespace) -> Answer:
    path = _file(options)
    count = import_lines(path, database)
    return Answer(f"{count} results of {path} are in {database.path}", {"results": count, "path": str(database.path)})


def _clear(database: Database, options: argparse.Namespace) -> Answer:
    if not options.yes:
        raise OptionError(f"this would forget every result in {database.path}", expected="--yes, if that is meant")
    count = database.clear()
    return Answer(f"{count} results forgotten", {"results": count})


def _prune(database: Database, _: argparse.Namespace) -> Answer:
    count = database.clear(but_version=sources_digest())
    return Answer(f"{count} results of other versions forgotten", {"results": count})


_ACTIONS: dict[str, Callable[[Database, argparse.Namespace], Answer]] = {
    "info": _info,
    "list": _list,
    "export": _export,
    "import": _import,
    "prune": _prune,
    "clear": _clear,
}


def _file(options: argparse.Namespace) -> Path:
    if options.file is None:
        raise OptionError(f"db {options.action} needs a file", expected=f"ilang-eq db {options.action} results.jsonl")
    return options.file


def _row(record: Record) -> tuple[str, ...]:
    key, best = record.key, record.schedules[0]
    shapes = " ".join(map(print_shape, key.shapes))
    short = key.component if len(key.component) <= 60 else key.component[:57] + "…"
    predicted = time_text(best.predicted)
    target = key.target if key.precision == "float32" else f"{key.target}, {key.precision}"
    return record.found, predicted, str(key.threads), target, key.effort, key.version, shapes, short


def _data(record: Record) -> dict[str, Any]:
    key, best = record.key, record.schedules[0]
    times = {"predicted_seconds": best.predicted, "measured_seconds": best.measured}
    names = ("component", "shapes", "target", "precision", "threads", "effort", "version")
    told = {name: getattr(key, name) for name in names}
    return told | times | {"schedule": best.text, "found": record.found}


COMMANDS = (Command("db", "show, write out, read in or forget the results that are kept", _arguments, _db),)
