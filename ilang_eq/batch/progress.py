"""How far a batch is: a bar on a terminal, or a callback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ilang_eq.optimized import Optimized


@dataclass(frozen=True, slots=True)
class Progress:
    """One more search has ended.

    Args:
        done, total: searches that have ended, of how many.
        name: of the task that this was for.
        origin: "search", or the database that knew the result; "failed" if there is none.
        seconds: what it took.
        tasks: the numbers of the tasks that it answers.
        best: the result; None if there is none.
    """

    done: int
    total: int
    name: str
    origin: str
    seconds: float
    tasks: tuple[int, ...]
    best: Optimized | None


Report = Callable[[Progress], None]


@contextmanager
def reporting(progress: Report | None) -> Iterator[Report]:
    """``progress``; or, if it is None, a bar on a terminal; or nothing."""
    if progress is not None:
        yield progress
    elif sys.stderr.isatty():
        with _terminal() as report:
            yield report
    else:
        yield lambda _: None


@contextmanager
def _terminal() -> Iterator[Report]:
    """rich's bar where rich is installed, else a line for each search."""
    try:
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield lambda p: print(f"{p.done}/{p.total} {p.name}: {p.origin}, {p.seconds:.1f} s", file=sys.stderr)
        return
    columns = (*Bar.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("optimising", total=None)
        yield lambda p: bar.update(task, total=p.total, completed=p.done, description=p.name or "optimising")
