"""What printed text relies on."""

from __future__ import annotations

from dataclasses import dataclass, field

from ilang_eq.cuda.nodes import Dim


@dataclass(slots=True)
class Used:
    """What the text relies on: functions, scalar ones, ones that move runs, ones of tensor cores; and ways to combine,
    as (op, direction)."""

    functions: set[str] = field(default_factory=set)
    moves: set[str] = field(default_factory=set)
    cores: set[str] = field(default_factory=set)
    across: set[tuple[str, Dim]] = field(default_factory=set)
