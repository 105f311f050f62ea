"""Results to keep, made without a search."""

from __future__ import annotations

from ilang_eq.database.record import Key, Record, StoredReport, StoredSchedule

MATMUL = 'i("ik*kj~ijk") >> i("+ijk~ij")'
TILED = """i("ik*kj~ijk|i:4,j:32|ijki'j'") >> i("+ijk~ij|i:4,j:32|ijki'j'0")"""
REPORT = StoredReport({"total": 1.5}, 10, 20, {"commute": (3, 0.25)}, "saturated", (("text", "why"),))


def key(threads: int = 1, component: str = MATMUL) -> Key:
    return Key(component, ((64, 64), (64, 64)), "c", "m-0", threads, "model", "r", "v", 0)


def record(threads: int = 1, seconds: float = 1e-3, budget_s: float | None = None) -> Record:
    tiled = StoredSchedule(TILED, seconds, (("add1: issue", seconds),), measured=2e-3)
    return Record(key(threads), (tiled, StoredSchedule(MATMUL, 5e-3)), REPORT, budget_s)
