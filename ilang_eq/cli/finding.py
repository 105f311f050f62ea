"""What ``doctor`` finds."""

from __future__ import annotations

from typing import Literal

from ilang_eq.records import record

State = Literal["good", "absent", "broken"]


@record
class Finding:
    """One thing, whether it works, and what to do if it does not. What is absent is not needed."""

    subject: str
    state: State
    detail: str
    fix: str = ""
