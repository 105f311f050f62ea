"""Results as JSON Lines: out and in again, and what is said of a bad line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ilang_eq.database.exchange import export_lines, import_lines
from ilang_eq.database.record import record_as_json
from ilang_eq.database.store import Database
from ilang_eq.errors import DatabaseError
from tests.database.records import MATMUL, TILED, record


def test_out_and_in_again(tmp_path: Path) -> None:
    lines, database = tmp_path / "results.jsonl", Database(tmp_path / "copy.sqlite")
    records = [record(), record(threads=2, budget_s=1.5)]
    assert export_lines(records, lines) == 2
    assert import_lines(lines, database) == 2
    assert list(database.records()) == records
    again = tmp_path / "again.jsonl"
    export_lines(database.records(), again)
    kept = [json.loads(line) for line in again.read_text().splitlines()]
    assert [row["schedules"][0]["text"] for row in kept] == [TILED, TILED]
    assert all(row["found"] for row in kept)


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(json.dumps(record_as_json(record(threads=2))))
    change(data)
    return json.dumps(data)


OTHER = 'i("ik+kj~ijk") >> i("+ijk~ij")'

BAD: dict[str, tuple[str, str]] = {
    "not JSON": ('{"key": ', "is not JSON"),
    "not an object": ("[1, 2]", "a result is"),
    "deep": ("[" * 100_000, "nested too deeply|is not JSON"),
    "a missing field": (changed(lambda d: d.pop("report")), "report is missing"),
    "an unknown field": (changed(lambda d: d.update(extra=1)), "extra is unknown"),
    "a text for a number": (changed(lambda d: d["key"].update(threads="two")), "threads is 'two'"),
    "true for a number": (changed(lambda d: d["key"].update(threads=True)), "threads is True"),
    "a shape that is none": (changed(lambda d: d["key"].update(shapes=[64, 64])), r"shapes\[0\] is 64"),
    "shapes that do not fit": (changed(lambda d: d["key"].update(shapes=[[64, 64], [3, 3]])), "has extent 3"),
    "endless seconds": (
        changed(lambda d: d["schedules"][0].update(predicted=float("inf"))),
        "predicted of sch.* is inf",
    ),
    "negative seconds": (changed(lambda d: d["schedules"][0].update(measured=-1.0)), "measured of sch.* is -1"),
    "no schedules": (changed(lambda d: d.update(schedules=[])), "schedules is empty"),
    "no component text": (changed(lambda d: d["schedules"][0].update(text="import os")), "illegal, or computes"),
    "another function": (changed(lambda d: d["schedules"][0].update(text=OTHER)), "computes something else"),
    "an illegal schedule": (
        changed(lambda d: d["schedules"][0].update(text=TILED.replace("i:4", "i:8", 1))),
        "illegal",
    ),
    "another component": (changed(lambda d: d["key"].update(component='i("^ab~ab")')), "not in canonical form"),
    "without the component": (changed(lambda d: d["schedules"].pop()), "not among the schedules"),
    "a wrong component": (changed(lambda d: d["key"].update(component="i(")), "not component text"),
    "a wrong pair": (changed(lambda d: d["report"]["rules"].update(x=[1])), "rule x is"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_and_nothing_is_imported(name: str, tmp_path: Path) -> None:
    line, message = BAD[name]
    lines, database = tmp_path / "results.jsonl", Database(tmp_path / "results.sqlite")
    lines.write_text(json.dumps(record_as_json(record())) + "\n\n" + line + "\n")
    with pytest.raises(DatabaseError, match=f"results.jsonl, line 3.*({message})"):
        import_lines(lines, database)
    assert list(database.records()) == []


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="cannot be read"):
        import_lines(tmp_path / "nowhere.jsonl", Database(tmp_path / "results.sqlite"))


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="nowhere"):
        export_lines([record()], tmp_path / "nowhere" / "results.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_the_plain_component_is_canonical() -> None:
    assert record().schedules[1].text == MATMUL
