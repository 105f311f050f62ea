"""Rows of the database as values, and as JSON.

Invariants (``read_record`` enforces their form, ``verify.py`` what the texts compute):
  * ``key.component`` is canonical: no schedules, axes renamed, nodes in the order of ``lang/canonical.py``
  * ``schedules`` is not empty, the best first; one of them is ``key.component`` itself
  * all numbers are finite; seconds are not negative
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from ilang_eq.errors import DatabaseError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Key:
    """What a result depends on; one row each.

    Args:
        component: canonical text, without schedules.
        shapes: of the inputs: the extents that the cost model, or the clock, judged by.
        target: the backend.
        machine: name and digest of the machine description.
        threads: that the kernel may use.
        effort: "model" or "measure".
        rules: digest of the rule set.
        version: of the package, with a digest of the sources that decide results.
        seed: of the search's random starts.
        constants: the inputs that stay the same from call to call.
        precision: how the factors of summed products may be rounded.
    """

    component: str
    shapes: tuple[tuple[int, ...], ...]
    target: str
    machine: str
    threads: int
    effort: str
    rules: str
    version: str
    seed: int
    constants: tuple[int, ...] = ()
    precision: str = "float32"


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """A schedule as 𝚒 text, predicted seconds with their terms, and measured seconds where it was timed.

    ``measured`` is "failed" for one whose kernel did not build.
    """

    text: str
    predicted: float
    terms: tuple[tuple[str, float], ...] = ()
    measured: float | Literal["failed"] | None = None


@dataclass(frozen=True, slots=True)
class StoredReport:
    """How the search went, as in ``ilang_eq.optimized.Report``."""

    seconds: Mapping[str, float]
    nodes: int
    facts: int
    rules: Mapping[str, tuple[int, float]]
    stop_reason: str
    refused: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """A result: ``budget_s`` is the time after which its search was cut short, None if it came to its end."""

    key: Key
    schedules: tuple[StoredSchedule, ...]
    report: StoredReport
    budget_s: float | None = None
    found: str = field(default="", compare=False)
    """When, in UTC, as ISO 8601."""


def record_as_json(record: Record) -> dict[str, Any]:
    """``record`` as plain lists, dicts, strings and numbers."""
    return asdict(record)


def read_record(data: object) -> Record:
    """The record that ``data``, plain JSON, spells.

    Raises:
        DatabaseError: a field is missing, unknown or of the wrong kind; the message names it.
    """
    fields = _table(data, "a result", ("key", "schedules", "report", "budget_s", "found"))
    budget = fields["budget_s"]
    return Record(
        key=read_key(fields["key"]),
        schedules=read_schedules(fields["schedules"]),
        report=read_report(fields["report"]),
        budget_s=None if budget is None else _seconds(budget, "budget_s"),
        found=_text(fields["found"], "found"),
    )


def read_key(data: object) -> Key:
    """The key that ``data`` spells. Raises DatabaseError."""
    fields = _table(data, "key", tuple(Key.__dataclass_fields__))
    constants = _many(fields["constants"], "constants", _count)
    shapes = _many(fields["shapes"], "shapes", lambda shape, name: _many(shape, name, _count))
    texts = {name: _text(fields[name], name) for name in _TEXTS}
    return Key(
        shapes=shapes,
        threads=_count(fields["threads"], "threads"),
        seed=_count(fields["seed"], "seed"),
        constants=constants,
        **texts,
    )


def read_schedules(data: object) -> tuple[StoredSchedule, ...]:
    """The schedules that ``data`` spells. Raises DatabaseError."""
    found = _many(data, "schedules", _schedule)
    if not found:
        raise DatabaseError("schedules is empty", expected="the best schedule, and the component itself")
    return found


def read_report(data: object) -> StoredReport:
    """The report that ``data`` spells. Raises DatabaseError."""
    fields = _table(data, "report", tuple(StoredReport.__dataclass_fields__))
    seconds = _mapping(fields["seconds"], "seconds")
    rules = _mapping(fields["rules"], "rules")
    return StoredReport(
        seconds={phase: _seconds(spent, f"seconds of {phase}") for phase, spent in seconds.items()},
        nodes=_count(fields["nodes"], "nodes"),
        facts=_count(fields["facts"], "facts"),
        rules={name: _pair(tried, f"rule {name}", _count, _seconds) for name, tried in rules.items()},
        stop_reason=_text(fields["stop_reason"], "stop_reason"),
        refused=_many(fields["refused"], "refused", lambda pair, name: _pair(pair, name, _text, _text)),
    )


_TEXTS = ("component", "target", "machine", "effort", "rules", "version", "precision")
_S = TypeVar("_S")


def _schedule(data: object, name: str) -> StoredSchedule:
    fields = _table(data, name, tuple(StoredSchedule.__dataclass_fields__))
    measured = fields["measured"]
    return StoredSchedule(
        text=_text(fields["text"], f"text of {name}"),
        predicted=_seconds(fields["predicted"], f"predicted of {name}"),
        terms=_many(fields["terms"], f"terms of {name}", lambda pair, term: _pair(pair, term, _text, _seconds)),
        measured=measured if measured in (None, "failed") else _seconds(measured, f"measured of {name}"),
    )


def _table(data: object, name: str, fields: Sequence[str]) -> dict[str, Any]:
    found = _mapping(data, name)
    missing, unknown = [f for f in fields if f not in found], [f for f in found if f not in fields]
    if missing or unknown:
        faults = [f"{f} is missing" for f in missing] + [f"{f} is unknown" for f in unknown]
        raise DatabaseError(f"{name}: {', '.join(faults)}", legal=tuple(fields))
    return found


def _mapping(data: object, name: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _wrong(name, data, "a JSON object")
    return data


def _many(data: object, name: str, read: Callable[[object, str], _T]) -> tuple[_T, ...]:
    if not isinstance(data, list | tuple):
        raise _wrong(name, data, "a JSON array")
    return tuple(read(item, f"{name}[{n}]") for n, item in enumerate(data))


def _pair(
    data: object, name: str, first: Callable[[object, str], _T], second: Callable[[object, str], _S]
) -> tuple[_T, _S]:
    if not isinstance(data, list | tuple) or len(data) != 2:
        raise _wrong(name, data, "a pair")
    return first(data[0], name), second(data[1], name)


def _text(data: object, name: str) -> str:
    if not isinstance(data, str):
        raise _wrong(name, data, "text")
    return data


def _count(data: object, name: str) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or data < 0:
        raise _wrong(name, data, "a whole number of at least 0")
    return data


def _seconds(data: object, name: str) -> float:
    if not isinstance(data, int | float) or isinstance(data, bool) or not 0 <= data < math.inf:
        raise _wrong(name, data, "finite seconds of at least 0")
    return float(data)


def _wrong(name: str, data: object, expected: str) -> DatabaseError:
    shown = repr(data)
    return DatabaseError(f"{name} is {shown if len(shown) <= 60 else shown[:57] + '…'}", expected=expected)
