"""What shows of the parts of a phase beside the longest."""

from __future__ import annotations

import pytest

from ilang_eq.extract import overlap
from ilang_eq.extract.nest_cost import NestCost, Part, computing


def test_what_comes_out_of_panels_shows_less_the_shorter_it_takes() -> None:
    issue = Part("issue", 10.0, 10.0)
    rows, few, many = (Part("L2", *times) for times in ((4.0, 4.0), (4.0, 0.0), (10.0, 0.0)))
    assert rows.shown(issue) == pytest.approx(overlap.SHOWN * 4.0)
    assert few.shown(issue) == pytest.approx(overlap.ASKED * 4.0 * 0.4)
    assert many.shown(issue) == pytest.approx(overlap.ASKED * 10.0)


def test_what_comes_from_shared_levels_hides_under_computing_while_it_is_short() -> None:
    """From half as long on it shows as much as what comes from the core's own."""
    issue = Part("issue", 1.0, 1.0)

    def shown(seconds: float, shared: bool) -> float:
        return Part("level", seconds, seconds, shared).shown(issue)

    assert shown(0.1, shared=True) < 0.5 * shown(0.1, shared=False)
    assert shown(0.6, shared=True) == shown(0.6, shared=False)


def test_early_prefetchers_hide_what_is_followed_from_start_to_end() -> None:
    """Out of a core's own caches under computing; computing under it, from beyond."""
    issue, less = Part("issue", 1.0, 1.0), Part("issue", 0.5, 0.5)

    def level(followed: float, shared: bool, seconds: float = 0.6) -> Part:
        return Part("level", seconds, seconds, shared, early=True, followed=followed)

    assert level(0.6, shared=False).shown(issue) < 0.5 * level(0.0, shared=False).shown(issue)
    assert level(0.6, shared=True).shown(issue) == level(0.0, shared=True).shown(issue)
    assert less.shown(level(1.0, shared=True, seconds=1.0)) == pytest.approx(overlap.ASKED * 0.5)
    assert less.shown(level(1.0, shared=False, seconds=1.0)) == pytest.approx(overlap.SHOWN * 0.5)
    assert Part("L2", 0.1, 0.1, early=True).shown(issue) == Part("L3", 0.1, 0.1, shared=True).shown(issue)


def test_phases_follow_each_other_unless_they_are_merged() -> None:
    level = Part("L2", 3e-9, 3e-9)
    apart = NestCost(((computing(2.0), level), (computing(4.0),)), stall=1e-9, overhead=5e-9)
    assert apart.seconds == pytest.approx((3.0 + overlap.SHOWN * 2.0 + 4.0 + 1.0 + 5.0) * 1e-9)
    ((issue, moved),) = apart.merged().phases
    assert (issue.name, issue.seconds, moved.seconds) == ("issue", pytest.approx(6e-9), 3e-9)
    assert (issue.awaited, moved.awaited) == (0.0, 0.0)
    assert apart.merged().seconds < apart.merged(asked=False).seconds < apart.seconds


def test_what_prefetchers_run_on_for_comes_while_other_phases_compute() -> None:
    memory = Part("memory", 3e-9, 3e-9, shared=True)
    reading, computed = (computing(1.0), memory), (computing(8.0),)
    apart = NestCost((reading, computed))
    all_, half, none = (apart.running_on("memory", (share, 0.0)) for share in (1.0, 0.5, 0.0))
    assert all_.seconds < half.seconds < none.seconds == pytest.approx(apart.seconds)
    assert all_.seconds == pytest.approx((1.0 + 8.0 + overlap.ASKED * 3.0 * 3.0 / 8.0) * 1e-9)


def test_no_more_comes_meanwhile_than_other_phases_have_time_for() -> None:
    reading, computed = (computing(1.0), Part("memory", 3e-9, 3e-9, shared=True)), (computing(0.5),)
    found = NestCost((reading, computed)).running_on("memory", (1.0, 1.0))
    assert [part.seconds for part in found.phases[0]] == pytest.approx([1e-9, 2.5e-9])
    alone = NestCost((reading,))
    assert alone.running_on("memory", (1.0,)) == alone


def test_what_shows_is_the_machines() -> None:
    """Half as much of a transfer shows where a description says so; once together, too."""
    issue = Part("issue", 10.0, 10.0)
    level = Part("L2", 4.0, 4.0, shares=overlap.Shares(overlap.SHOWN / 2, 0.0))
    assert level.shown(issue) == pytest.approx(overlap.SHOWN * 2.0)
    assert NestCost(((issue, level),)).merged(asked=False).seconds == pytest.approx(10.0 + overlap.SHOWN * 2.0)
    assert NestCost(((issue, level),)).merged().seconds == pytest.approx(10.0)
