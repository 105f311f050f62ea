"""Which values stay the same with their last two axes exchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.symmetry import MOST_TERMS, Symmetries

SQUARE = (I & I) >> i("ij*ij~ij")
NORM = SQUARE >> i("+ij~i") >> i("i^0.5~i")
DIFFERENCE = (I & I) >> i("ik-jk~ijk")

SYMMETRIC = {
    "x xT": (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij"),
    "xT x": (I & I) >> i("ki*kj~kij") >> i("+kij~ij"),
    "of one with its copy": (I & i("+ki~ik")) >> i("ki*jk~ijk") >> i("+ijk~ij"),
    "in a batch": (I & I) >> i("bik*bjk~bijk") >> i("+bijk~bij"),
    "weighted": (i("ki*k~ki") & I) >> i("ki*kj~kij") >> i("+kij~ij"),
    "of what is computed twice, alike": (i("2*ik~ik") & i("2*jk~jk")) >> i("ik*jk~ijk") >> i("+ijk~ij"),
    "squares of differences": DIFFERENCE >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij"),
    "differences to the second": DIFFERENCE >> i("ijk^2~ijk") >> i("+ijk~ij"),
    "absolute differences": DIFFERENCE >> (I & i("-ijk~ijk")) >> i("ijk>ijk~ijk") >> i("+ijk~ij"),
    "Gaussian": DIFFERENCE >> i("ijk^2~ijk") >> i("+ijk~ij") >> i("-ij~ij") >> i("^ij~ij"),
    "cosines": (I & NORM) >> i("ik/i~ik") >> (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij"),
    "sums of two": (I & I) >> i("i+j~ij"),
    "Cauchy": DIFFERENCE >> i("ijk^2~ijk") >> i("+ijk~ij") >> i("1+ij~ij") >> i("/ij~ij"),
    "over products of differences": DIFFERENCE >> (I & I) >> i("ijk*ijk~ijk") >> i("/ijk~ijk") >> i("+ijk~ij"),
    "least common": (I & I) >> i("ik<jk~ijk") >> i(">ijk~ij"),
    "equal ones": (I & I) >> i("i==j~ij"),
    "x + xT": (I & i("+ij~ji")) >> i("ij+ij~ij"),
}
UNLIKE = {
    "two arguments": i("ik*jk~ijk") >> i("+ijk~ij"),
    "differences": DIFFERENCE >> i("+ijk~ij"),
    "their third power": DIFFERENCE >> i("ijk^3~ijk") >> i("+ijk~ij"),
    "quotients": (I & I) >> i("ik/jk~ijk") >> i("+ijk~ij"),
    "slopes": (DIFFERENCE | DIFFERENCE) >> i("ijk/ijk~ijk") >> i("+ijk~ij"),
    "over absolute differences": DIFFERENCE >> (I & i("-ijk~ijk")) >> i("ijk>ijk~ijk") >> i("/ijk~ijk") >> i("+ijk~ij"),
    "over two differences": (DIFFERENCE | DIFFERENCE) >> i("ijk*ijk~ijk") >> i("/ijk~ijk") >> i("+ijk~ij"),
    "comparisons": (I & I) >> i("ik>>jk~ijk") >> i("+ijk~ij"),
    "powers": (I & I) >> i("i^j~ij"),
    "rows scaled": (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij") >> (I & i("+ij~i")) >> i("ij/i~ij"),
    "rows of a sum": (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij") >> (I & i("+ij~i")) >> i("ij+i~ij"),
    "one reduced otherwise": (i("+ik~i") & i(">jk~j")) >> i("i*j~ij"),
    "an argument": i("+ij~ij"),
    "a row in all rows": i("ij*i~ij"),
    "one axis": i("+ij~i"),
    "x - xT": (I & i("+ij~ji")) >> i("ij-ij~ij"),
    "other axes exchanged": (I & I) >> i("bk*jk~bjk") >> i("bjk*2~bkj"),
}


def last(component: Component) -> tuple[Graph, int]:
    graph = wire(component)
    (output,) = graph.outputs
    assert isinstance(output, Value)
    return graph, output.node


@pytest.mark.parametrize("component", SYMMETRIC.values(), ids=SYMMETRIC)
def test_symmetric(component: Component) -> None:
    graph, node = last(component)
    assert Symmetries(graph).symmetric(node)
    arrays = [np.random.default_rng(rank).uniform(0.5, 1.5, (5,) * rank) for rank in lower(graph).ranks if rank]
    result = component.interpret(*arrays)
    np.testing.assert_allclose(result, np.swapaxes(result, -1, -2), rtol=1e-12)


@pytest.mark.parametrize("component", UNLIKE.values(), ids=UNLIKE)
def test_not_symmetric(component: Component) -> None:
    graph, node = last(component)
    assert not Symmetries(graph).symmetric(node)


def test_chains_that_are_too_long_are_compared_as_they_are_bracketed() -> None:
    """Whoever writes x·x thirty times over doubles the factors each time."""
    product = (I & I) >> i("i*j~ij")
    for _ in range(40):
        product = product >> (I & I) >> i("ij*ij~ij")
    graph, node = last(product)
    assert Symmetries(graph).symmetric(node)
    assert MOST_TERMS < 2**40


def test_long_chains() -> None:
    component = (I & I) >> i("i*j~ij")
    for _ in range(1200):
        component = component >> i("ij*2~ij")
    graph, node = last(component)
    assert Symmetries(graph).symmetric(node)


def test_what_is_in_memory_is_marked() -> None:
    square, values = (I & I) >> i("ik*jk~ijk") >> i("+ijk~ij||ijk0"), i("ij*jk~ijk") >> i("+ijk~ik||ijk0")
    assert [buffer.name for buffer in lower(wire(square >> values)).buffers if buffer.symmetric] == ["add1_all"]
