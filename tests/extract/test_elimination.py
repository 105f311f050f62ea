from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq.extract import elimination
from ilang_eq.extract.elimination import Table, TooWide, best_k, eliminate


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[int], list[Table], int]:
    """Up to five variables with small integer costs, so that sums are exact and ties common."""
    domains = draw(st.lists(st.integers(1, 4), max_size=5))
    grid = draw(st.integers(1, 3))
    tables = []
    for _ in range(draw(st.integers(0, 5))):
        scope = tuple(draw(st.permutations(range(len(domains)))))[: draw(st.integers(0, 3))]
        shape = (*(domains[v] for v in scope), draw(st.sampled_from([1, grid])))
        cost = st.sampled_from([0.0, 1.0, 2.0, 3.0, 7.0, np.inf])
        flat = draw(st.lists(cost, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        tables.append(Table(scope, np.array(flat).reshape(shape)))
    return domains, tables, grid


def cost_of(tables: list[Table], choice: tuple[int, ...], point: int) -> float:
    return sum(float(t.values[(*(choice[v] for v in t.scope), point % t.values.shape[-1])]) for t in tables)


def brute_force(domains: list[int], tables: list[Table], grid: int) -> list[tuple[float, int, tuple[int, ...]]]:
    choices = itertools.product(*map(range, domains))
    every = [(cost_of(tables, c, g), g, c) for c in choices for g in range(grid)]
    return sorted(e for e in every if np.isfinite(e[0]))


@given(problems())
def test_costs_and_choices_equal_brute_force(problem: tuple[list[int], list[Table], int]) -> None:
    domains, tables, grid = problem
    every = brute_force(domains, tables, grid)
    solution = eliminate(domains, tables, grid)
    for g in range(grid):
        best = min((cost for cost, point, _ in every if point == g), default=np.inf)
        assert solution.costs[g] == best
        if np.isfinite(best):
            assert cost_of(tables, solution.choice(g), g) == best
        else:
            with pytest.raises(ValueError, match="no choice"):
                solution.choice(g)


@given(problems(), st.data())
def test_departures_are_as_if_their_tables_had_been_there(
    problem: tuple[list[int], list[Table], int], data: st.DataObject
) -> None:
    """One after another, as what one finds must not change what is kept for the next; and each departs further."""
    domains, tables, grid = problem
    kept = eliminate(domains, tables, grid, kept=True)
    more: list[Table] = []
    for _ in range(3 if domains else 0):
        v = data.draw(st.integers(0, len(domains) - 1))
        barred = data.draw(st.lists(st.booleans(), min_size=domains[v], max_size=domains[v]))
        more.append(Table((v,), np.where(barred, np.inf, 0.0)[:, np.newaxis]))
        for solution, all_ in (
            (kept.departing(more[-1:]), [*tables, more[-1]]),
            (kept.departing(more), [*tables, *more]),
            (kept.departing(more[:-1]).departing(more[-1:]), [*tables, *more]),
        ):
            whole = eliminate(domains, all_, grid)
            np.testing.assert_array_equal(solution.costs, whole.costs)
            for g in np.flatnonzero(np.isfinite(whole.costs)):
                assert solution.choice(int(g)) == whole.choice(int(g))
    np.testing.assert_array_equal(kept.costs, eliminate(domains, tables, grid).costs)


def test_what_departs_does_so_by_tables_over_one_variable() -> None:
    solution = eliminate([2, 2], [], 1)
    with pytest.raises(ValueError, match="over one variable"):
        solution.departing([Table((0, 1), np.zeros((2, 2, 1)))])
    with pytest.raises(ValueError, match="has shape"):
        solution.departing([Table((0,), np.zeros((3, 1)))])


def test_messages_that_nothing_reaches_are_not_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Along a chain, a table at the end that goes last leaves all others."""
    chain = [Table((n, n + 1), np.arange(9.0).reshape(3, 3, 1)) for n in range(4)]
    kept = eliminate([3] * 5, chain, 1, kept=True)
    found: list[int] = []
    message = elimination._message
    monkeypatch.setattr(
        elimination, "_message", lambda bucket, *rest: (found.append(bucket.variable), message(bucket, *rest))[1]
    )
    last = kept.problem.order[-1]
    kept.departing([Table((last,), np.array([[np.inf], [0.0], [0.0]]))]).choice(0)
    assert found == [last], "once for the costs, and not again for the choice"


@given(problems(), st.integers(0, 40))
def test_best_k_equals_brute_force(problem: tuple[list[int], list[Table], int], k: int) -> None:
    domains, tables, grid = problem
    every = brute_force(domains, tables, grid)
    found = best_k(eliminate(domains, tables, grid), k)
    assert [cost for cost, _, _ in found] == [cost for cost, _, _ in every[:k]]
    assert len(set(found)) == len(found)
    assert set(found) <= set(every)


@given(problems(), st.integers(1, 6))
def test_best_k_keeps_the_cheapest_of_each_kind(problem: tuple[list[int], list[Table], int], k: int) -> None:
    domains, tables, grid = problem
    cheapest: dict[int, float] = {}
    for cost, _, choice in brute_force(domains, tables, grid):
        cheapest.setdefault(sum(choice), cost)
    found = best_k(eliminate(domains, tables, grid), k, distinct=sum)
    assert [cost for cost, _, _ in found] == sorted(cheapest.values())[:k]
    assert len({sum(choice) for _, _, choice in found}) == len(found)


@given(problems())
@settings(max_examples=25)
def test_the_same_problem_gives_the_same_answer(problem: tuple[list[int], list[Table], int]) -> None:
    assert best_k(eliminate(*problem), 10) == best_k(eliminate(*problem), 10)


def test_ties_go_to_the_first_values() -> None:
    chain = [Table((n, n + 1), np.zeros((3, 3, 1))) for n in range(4)]
    assert eliminate([3] * 5, chain, 2).choice(1) == (0, 0, 0, 0, 0)


def test_an_empty_problem_costs_nothing() -> None:
    solution = eliminate([], [], 3)
    assert solution.costs.tolist() == [0.0, 0.0, 0.0]
    assert solution.choice(2) == ()
    assert best_k(eliminate([], [], 1), 5) == [(0.0, 0, ())]


def test_an_empty_domain_allows_nothing() -> None:
    assert eliminate([2, 0], [Table((0,), np.zeros((2, 1)))], 1).costs.tolist() == [np.inf]
    assert best_k(eliminate([2, 0], [], 1), 3) == []


def test_the_grid_is_cut_into_pieces_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = np.random.default_rng(0).random((4, 4, 50))
    tables = [Table((0, 1), costs), Table((1, 2), costs[::-1])]
    whole = eliminate([4, 4, 4], tables, 50)
    monkeypatch.setattr(elimination, "WIDEST", 100)
    pieces = eliminate([4, 4, 4], tables, 50)
    assert pieces.costs.tolist() == whole.costs.tolist()
    assert pieces.choice(49) == whole.choice(49)


def test_a_problem_too_wide_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elimination, "WIDEST", 26)
    clique = [Table(pair, np.zeros((3, 3, 1))) for pair in itertools.combinations(range(3), 2)]
    with pytest.raises(TooWide, match="at most"):
        eliminate([3] * 3, clique, 1)


@pytest.mark.parametrize(
    ("scope", "shape"), [((0,), (3, 1)), ((0,), (2, 2)), ((0, 0), (2, 2, 1)), ((0,), (2,))], ids=str
)
def test_a_table_of_the_wrong_shape_is_refused(scope: tuple[int, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        eliminate([2], [Table(scope, np.zeros(shape))], 3)


def test_a_long_chain_stays_narrow() -> None:
    """Width three cubed would be 64,000; along a chain it is 1,600, whatever the length."""
    rng = np.random.default_rng(1)
    tables = [Table((n, n + 1), rng.random((40, 40, 20))) for n in range(100)]
    solution = eliminate([40] * 101, tables, 20)
    message = np.zeros((40, 20))
    for table in tables:
        message = np.min(message[:, None, :] + table.values, axis=0)
    np.testing.assert_allclose(solution.costs, message.min(axis=0))
