"""Search time and memory by phase: what is summed up, and that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.search_time import SAMPLED, Task, measure, peaks, run, task


def test_memory_is_that_of_the_phase_and_what_came_before() -> None:
    samples = [(10.5, 4_000_000), (11.5, 9_000_000), (12.5, 7_000_000), (13.5, 20_000_000)]
    found = peaks({"import": 1.0, "propose": 2.0, "total": 9.0, "cold": 9.0}, 10.0, samples)
    assert found == {"import": 4.0, "propose": 9.0, "cold": 20.0}


def test_stacked_blocks_feed_each_other() -> None:
    stacked = task("stacked")
    assert len(stacked.shapes) == 17
    assert stacked.text.count("block") == 9


def test_a_small_search_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(Task("sum", 'i("+ij~i")', [(8, 8)]), 1, str(tmp_path))
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == "sum:"
    assert {"import", "propose", "cold", "cached", "again"} <= set(rows)
    (report, (started, samples)) = run(SAMPLED, ['i("+ij~i")', [(8, 8)], False, 1], str(tmp_path))
    assert report[0]["cold"] > 0
    assert all(used > 0 for _, used in samples)
    assert samples[-1][0] > started
