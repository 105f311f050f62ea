"""The table of whole models."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from benchmarks import models
from benchmarks.models import Process, table


def test_a_contestant_that_failed_is_named_and_the_others_count() -> None:
    timed = {"ms": [1.0, 2.0, 3.0], "error": 0.0, "coverage": 1.0, "export_s": 1.0, "optimise_s": 1.0}
    cold = {"cold": {"optimise_s": 9.0}}
    fast = {"first_call_s": 1.0, "ms": [3.0, 4.0, 5.0]}
    rows = [
        {"model": "one", **cold, "eager": timed, "compile": {"failed": "no compiler"}, "ours": timed},
        {"model": "two", **cold, "eager": timed, "compile": fast, "ours": timed},
    ]
    text = table(rows)
    assert "| one | compile: no compiler |" in text
    assert "geometric mean: 2.00" in text


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Process]:
    """A contestant that runs this program."""
    options = argparse.Namespace(threads=1, small=True, effort="model", patience=request.param[1])
    monkeypatch.setattr(models, "COMMAND", ("sh", "-c", request.param[0]))
    found = Process("bert", "ours", options, {})
    yield found
    found.end()


@pytest.mark.parametrize(
    ("process", "reason"),
    [
        (("echo no model >&2; exit 1", 60), "no model"),
        (("exec sleep 60", 0.2), "died, or took more than 0 s"),
        (("echo '{}'; echo later >&2", 60), "later"),
    ],
    indirect=["process"],
)
def test_what_fails_says_why(process: Process, reason: str) -> None:
    assert process.call() is None
    assert process.found == {"failed": reason}
