"""What is known of the processor."""

from __future__ import annotations

from ilang_eq.host import checked_threads


def test_default_threads_are_those_the_process_may_use() -> None:
    assert checked_threads(None) >= 1
