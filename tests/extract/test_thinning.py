from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ilang_eq.extract.elimination import eliminate
from ilang_eq.extract.thinning import thinned
from ilang_eq.rewrites.space import Space
from tests.extract import spaces
from tests.extract.test_additive import SMALL, knobs, model_of


@pytest.mark.parametrize("make", [*SMALL, spaces.attention])
def test_no_optimum_is_lost(make: Callable[[], Space]) -> None:
    model = model_of(make)
    at = knobs(model.structure.space, 1.0, 2.0)
    thin = thinned(model, model.tables(at))
    before, after = (eliminate(m.sizes, m.tables(at), 2).costs for m in (model, thin))
    np.testing.assert_allclose(after, before)


def test_states_that_are_beaten_go() -> None:
    model = model_of(spaces.attention)
    thin = thinned(model, model.tables(knobs(model.structure.space, 1.0, 2.0)))
    assert sum(thin.sizes) < sum(model.sizes)
    assert all(set(thin.domains[c]) <= set(domain) for c, domain in model.domains.items())
