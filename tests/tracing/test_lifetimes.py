"""Memory is used again when nothing can see it any more, and not before."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is optional")

from ilang_eq.tracing.lifetimes import Memory  # noqa: E402
from tests.tracing.interpreting import assert_close, interpreted  # noqa: E402


def twice(function: Any, *shapes: tuple[int, ...]) -> Any:
    """Two calls with different inputs: the first results must survive the second call."""
    args = [[torch.randn(*shape) for shape in shapes] for _ in range(2)]
    traced = interpreted(function, *args[0])
    results = [traced(*given) for given in args]
    for given, result in zip(args, results, strict=True):
        assert_close(result, function(*given))
    return traced


def test_results_are_the_callers() -> None:
    traced = twice(lambda x: (x.exp() @ x).flip(0), (4, 4))
    assert not any(step.kept for step in traced.runner.steps)


def test_a_returned_view_of_a_result_is_not_written_over() -> None:
    traced = twice(lambda x: ((x * 2)[1:], torch.cumsum(x * 2, 0) * 3), (4, 4))
    assert not traced.runner.steps[0].kept


def test_intermediate_results_take_turns() -> None:
    def chain(x: Any) -> Any:
        for _ in range(4):
            x = torch.cumsum(x * 2, 0)
        return x

    traced = twice(chain, (4, 4))
    assert sum(step.kept for step in traced.runner.steps) == 3, "PyTorch may have made the result from the last"
    assert sum(len(free) for free in traced.runner._memory._free.values()) == 2


def test_a_view_that_pytorch_makes_keeps_memory_alive() -> None:
    def run(x: Any) -> Any:
        y = x * 2
        left, right = y.split(2, -1)
        z = torch.cumsum(torch.cumsum(x * 5, 0) * 7, 0)
        return torch.cumsum(left.exp() @ right.T, 0) + z[:, :3]

    twice(run, (3, 4))


def test_truth_values_are_that_for_pytorch_and_numbers_for_regions() -> None:
    twice(lambda x: (torch.cumsum(x > 0, 0) * 2.0, torch.cumsum(x @ ((x > 0) & (x @ x < 1)).float(), 0)), (4, 4))


def test_memory_of_a_bucket_serves_all_its_sizes() -> None:
    memory = Memory()
    first = memory.take(100)
    memory.give(first)
    assert memory.take(120) is first
    assert memory.take(120) is not first
