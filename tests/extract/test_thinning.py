from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ilang_eq.extract.elimination import Table, eliminate
from ilang_eq.extract.rows import Knobs
from ilang_eq.extract.thinning import thinned
from ilang_eq.rewrites.space import Space
from tests.extract import spaces
from tests.extract.test_additive import SMALL, knobs, model_of


@pytest.mark.parametrize("extent", [6, 600])
@pytest.mark.parametrize("make", [*SMALL, spaces.attention])
def test_no_optimum_is_lost(make: Callable[[], Space], extent: int) -> None:
    model = model_of(make)
    axes = range(len(model.structure.space.extents))
    at = Knobs(dict.fromkeys(axes, extent), {axis: np.array([4.0, 32.0]) for axis in axes})
    thin, left = thinned(model, model.tables(at))
    before, after = (eliminate(m.sizes, m.tables(at), 2).costs for m in (model, thin))
    np.testing.assert_allclose(after, before)
    np.testing.assert_allclose(eliminate(thin.sizes, left, 2).costs, before)


@pytest.mark.parametrize("seed", range(20, 50))
def test_no_optimum_is_lost_whatever_the_costs(seed: int) -> None:
    model, random = model_of(spaces.scaled_product), np.random.default_rng(seed)
    legal = model.tables(knobs(model.structure.space, 2.0))
    costs = [random.integers(0, 10 if len(t.scope) == 1 else 1, t.values.shape) for t in legal]
    tables = [Table(t.scope, np.where(np.isfinite(t.values), c, np.inf)) for t, c in zip(legal, costs, strict=True)]
    thin, left = thinned(model, tables)
    before = eliminate(model.sizes, tables, 1).costs
    np.testing.assert_array_equal(eliminate(thin.sizes, left, 1).costs, before)


def test_states_that_are_beaten_go() -> None:
    model = model_of(spaces.attention)
    thin, _ = thinned(model, model.tables(knobs(model.structure.space, 1.0, 2.0)))
    assert sum(thin.sizes) < sum(model.sizes)
    assert all(set(thin.domains[c]) <= set(domain) for c, domain in model.domains.items())
