"""What ``doctor`` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["good", "absent", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing, whether it works, and what to do if it does not. What is absent is not needed."""

    subject: str
    state: State
    detail: str
    fix: str = ""
