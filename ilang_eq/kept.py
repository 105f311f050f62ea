"""What a search found as a row of the database, and back."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from ilang_eq.database.record import Key, Record, StoredReport, StoredSchedule
from ilang_eq.database.verify import verified
from ilang_eq.database.version import sources_digest
from ilang_eq.extract.full_model import Cost
from ilang_eq.extract.machine import Machine
from ilang_eq.host import processor_name
from ilang_eq.lang.component import Component
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.reading import read_component
from ilang_eq.optimized import Found, Optimized, Report, Schedule
from ilang_eq.request import Request


def key_of(request: Request, machine: Machine) -> Key:
    """The row of ``request`` on ``machine``: the description it is judged by, and, for measuring, the processor."""
    told = repr(dataclasses.replace(machine, cores=1))
    if request.effort == "measure":
        told += processor_name()
    return Key(
        component=str(request.plain),
        shapes=request.shapes,
        target=request.target,
        machine=f"{machine.name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}",
        threads=request.threads,
        effort=request.effort,
        rules=request.rules.fingerprint,
        version=sources_digest(),
        seed=request.seed,
        constants=request.constants,
        precision=request.precision,
    )


def record_of(key: Key, found: Found, budget_s: float | None, without: Component | None = None) -> Record:
    """``found`` to be kept, the schedule ``without`` left out."""
    kept = [s for s in found.schedules if s.component != without]
    report = asdict(found.report)
    del report["origin"]
    return Record(key, tuple(map(_stored, kept)), StoredReport(**report), budget_s)


def found_in(record: Record) -> Found:
    """What ``record`` holds, trusted: it comes from a process of our own."""
    schedules = tuple(_schedule(s, read_component(s.text)) for s in record.schedules)
    return Found(schedules, _report(record))


def recalled(request: Request, record: Record, path: Path, judge: Callable[[Component], Schedule]) -> Optimized | None:
    """The result of ``request`` that ``record`` of the database at ``path`` holds; None if it is not to be trusted.

    Its texts are read, lowered and run on a few numbers: the best at once, the others when somebody asks for them.

    Args:
        judge: costs the user's own schedule, which is in no database.
    """
    started = time.perf_counter()
    first, *others = record.schedules
    plain = next((s for s in record.schedules if s.text == record.key.component), None)
    component = verified(request.graph, first.text)
    if component is None or plain is None:
        return None
    best, baseline = _schedule(first, component), _schedule(plain, request.plain)
    others = partial(_trusted, request.graph, others)
    if request.given != request.plain:
        baseline = judge(request.given)
        best, others = _with(baseline, best, others)
    seconds = time.perf_counter() - started
    origin = f"database {path}, found {record.found}"
    report = replace(_report(record), seconds={"lookup": seconds, "total": seconds}, origin=origin)
    return Optimized(
        best,
        baseline,
        report,
        request.target,
        request.threads,
        request.extents,
        others,
        request.constants,
        request.precision,
    )


_Others = Callable[[], Sequence[Schedule]]


def _with(given: Schedule, best: Schedule, others: _Others) -> tuple[Schedule, _Others]:
    """The best and the others, ``given`` among them."""
    if given.component == best.component:
        return best, others
    if given.cost.seconds < best.cost.seconds:
        return given, lambda: (best, *others())
    return best, lambda: sorted((given, *others()), key=lambda s: s.seconds)


def _trusted(graph: Graph, stored: Sequence[StoredSchedule]) -> tuple[Schedule, ...]:
    found = ((s, verified(graph, s.text)) for s in stored)
    return tuple(_schedule(s, component) for s, component in found if component is not None)


def _stored(schedule: Schedule) -> StoredSchedule:
    measured = "failed" if schedule.measured == math.inf else schedule.measured
    return StoredSchedule(str(schedule), schedule.cost.seconds, schedule.cost.terms, measured)


def _schedule(stored: StoredSchedule, component: Component) -> Schedule:
    measured = math.inf if stored.measured == "failed" else stored.measured
    return Schedule(component, Cost(stored.predicted, stored.terms), measured)


def _report(record: Record) -> Report:
    report = record.report
    return Report(report.seconds, report.nodes, report.facts, report.rules, report.stop_reason, report.refused)
