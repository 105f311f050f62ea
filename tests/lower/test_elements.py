"""Initial values under loops that split an axis out of order."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq.lang.component import I, i
from ilang_eq.lang.interpreter import interpret
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.check import check
from tests.lower.execute import execute

STAGED_UNDER_AN_INNER_PART = {
    "three parts left, the outermost around": i("+ij~i|i:2:3:2|i'iji''i'''") >> i("-i~i|i:2:3:2|i'0ii''i'''"),
    "three parts left, none around": i("+ij~i|i:2:3:2|i'jii''i'''") >> i("-i~i|i:2:3:2|i'0ii''i'''"),
    "an online repair": (I & i(">ij~i|i:2:3:2|i'iji''i'''"))
    >> i("ij-i~ij|i:2:3:2|i'ij1i''i'''")
    >> i("^ij~ij|i:2:3:2|i'ij0i''i'''")
    >> i("+ij~i|i:2:3:2|i'ij0i''i'''")
    >> i("$i~i|i:2:3:2|i'0ii''i'''"),
}


@pytest.mark.parametrize("name", STAGED_UNDER_AN_INNER_PART)
@pytest.mark.parametrize("rows", [1, 12, 17])
def test_parts_of_an_axis_that_no_buffer_folds_keep_their_dimensions(name: str, rows: int) -> None:
    graph = wire(STAGED_UNDER_AN_INNER_PART[name])
    program = lower(graph)
    check(program)
    x = np.random.default_rng(0).standard_normal((rows, 5), dtype=np.float32)
    np.testing.assert_allclose(execute(program, [x])[0], interpret(graph, [x])[0], rtol=1e-6)
