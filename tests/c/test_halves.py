"""Symmetric results of which half is computed, and the other half copied."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.halves import FEW

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def square(splits: str, order: str, batch: str = "") -> Component:
    product = f"{batch}ik*{batch}jk~{batch}ijk|{splits}|{batch}{order}"
    return (I & I) >> i(product) >> i(f"+{batch}ijk~{batch}ij|{splits}|{batch}{order}0")


BELOW, ABOVE = square("i:6,j:16", "ijki'j'"), square("i:6,j:16", "jiki'j'")
FINER = square("i:8:6,j:2:16,k:32", "ijki'j'k'i''j''")
BATCH = square("i:6,j:16", "ijki'j'", "b")
CHUNKS = (I & I) >> i("ki*kj~kij|i:8:6,j:16,k:256|ikji'k'i''j'") >> i("+kij~ij|i:8:6,j:16,k:256|ikji'k'i''j'0")
IN_CHUNKS = "|i:8:6,j:4:16,k:256|ikji'j'k'i''j''"
TILES_OF_CHUNKS = (I & I) >> i("ki*kj~kij" + IN_CHUNKS) >> i("+kij~ij" + IN_CHUNKS + "0")
OF_ALL = "|i:6,j:16,k:32|kjik'i'j'"
CHUNKS_OF_ALL = (
    (I & i("+kj~kj|j:16,k:32|kjk'j'")) >> i("ki*kj~kij|i:6,j:16,k:32|kj1ik'i'j'") >> i("+kij~ij" + OF_ALL + "0")
)
TILES = "|i:6,j:16|ijki'j'"
DIFFERENCES = (
    (I & I)
    >> i("ik-jk~ijk" + TILES)
    >> (I & I)
    >> i("ijk*ijk~ijk" + TILES + "01")
    >> i("+ijk~ij" + TILES + "0")
    >> i("-ij~ij|i:6,j:16|ij0i'j'")
    >> i("^ij~ij|i:6,j:16|ij0i'j'")
)


def kernels(component: Component, *threads: int) -> list[CKernel]:
    program = lower(wire(component))
    return [CKernel(program, each) for each in threads]


def is_half(component: Component) -> bool:
    return "mirror(out0" in emit(lower(wire(component)))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 63, 64, 65, 100, 200])
@pytest.mark.parametrize(
    "component", [BELOW, ABOVE, FINER, DIFFERENCES], ids=["below", "above", "finer", "differences"]
)
def test_every_element_is_there(component: Component, n: int) -> None:
    """Whatever was there before; and the same to the last bit for any number of threads."""
    assert is_half(component)
    for terms in (FEW - 1, FEW):
        x = np.random.default_rng(n).uniform(-0.2, 0.2, (n, terms)).astype(np.float32)
        results = [kernel(x, out=np.full((n, n), np.nan, np.float32)) for kernel in kernels(component, 1, 2, 3)]
        np.testing.assert_allclose(results[0], component.interpret(x), rtol=1e-5, atol=1e-5)
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


def test_matrices_of_a_batch() -> None:
    x = np.random.default_rng(1).standard_normal((5, 70, FEW), dtype=np.float32)
    (kernel,) = kernels(BATCH, 2)
    assert is_half(BATCH)
    np.testing.assert_allclose(kernel(x), BATCH.interpret(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("terms", [FEW - 1, FEW, 1100, 5000])
@pytest.mark.parametrize("component", [CHUNKS, TILES_OF_CHUNKS, CHUNKS_OF_ALL], ids=["rows", "tiles", "all"])
def test_sums_of_chunks(component: Component, terms: int) -> None:
    assert is_half(component)
    x = np.random.default_rng(2).standard_normal((terms, 75), dtype=np.float32)
    one, two = (kernel(x, out=np.full((75, 75), np.nan, np.float32)) for kernel in kernels(component, 1, 2))
    np.testing.assert_allclose(one, component.interpret(x), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(one, two)


def test_a_chunk_stops_where_each_of_its_tiles_ends() -> None:
    """Not where the rows end that it has sums of."""
    chunks = emit(lower(wire(TILES_OF_CHUNKS))).partition("_few_rows(")[2].partition("static void kernel")[0]
    assert "if (j + j1 >= padded(i + i1 + 6)" in chunks
    assert "if (j + j1 >= padded(i + 48)" not in chunks


def test_the_other_half_is_copied() -> None:
    """Sums of many terms are the same on both sides; those of few are each computed."""
    x = np.random.default_rng(3).standard_normal((90, FEW), dtype=np.float32)
    (kernel,) = kernels(BELOW, 1)
    result = kernel(x)
    blocks = np.arange(90) // 16
    apart = blocks[:, None] != blocks
    np.testing.assert_array_equal(result[apart], result.T[apart])


def test_another_reads_it() -> None:
    component = BELOW >> (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij")
    x = np.random.default_rng(4).uniform(-0.5, 0.5, (50, FEW)).astype(np.float32)
    (kernel,) = kernels(component, 2)
    np.testing.assert_allclose(kernel(x), component.interpret(x), rtol=1e-4)


def test_what_is_read_before_it_is_whole_is_computed_whole() -> None:
    """The exponentials are in the place of the quotients, and summed there."""
    component = BELOW >> i("^ij~ij|i:6,j:16|ij0i'j'") >> (I & i("+ij~.||0ij")) >> i("ij/.~ij||01ij")
    x = np.random.default_rng(5).uniform(-0.2, 0.2, (100, FEW)).astype(np.float32)
    (kernel,) = kernels(component, 1)
    result = kernel(x, out=np.full((100, 100), np.nan, np.float32))
    np.testing.assert_allclose(result, component.interpret(x), rtol=1e-4)


def test_sums_of_nothing_beside_it() -> None:
    """What stops, and what is copied, is decided alike, by all sums."""
    component = read_component(
        """(I | I & I) >> (((I & I) >> i("ik*jk~ijk|i:6,j:64:16|ijj'ki'j''") >> i("+ijk~ij|i:6,j:64:16|ijj'ki'j''0")"""
        """ | i("+il~i|i:64:16|ii'li''")) >> i("ij*j~ij|i:6,j:64:16|ij1j'0i'j''") | i("+il~i|i:6|ili'"))"""
        """ >> i("ij*i~ij|i:6,j:64:16|i1jj'0i'j''")"""
    )
    x = np.random.default_rng(6).standard_normal((100, 100), dtype=np.float32)
    for terms in (0, 3):
        z = np.ones((100, terms), np.float32)
        (kernel,) = kernels(component, 1)
        result = kernel(x, z, out=np.full((100, 100), np.nan, np.float32))
        np.testing.assert_allclose(result, component.interpret(x, z), rtol=1e-4, atol=1e-2)


def test_an_inner_part_of_an_axis_outside_its_outer_part() -> None:
    component = square("i:24,j:4", "i'jkij'")
    x = np.random.default_rng(7).standard_normal((100, 100), dtype=np.float32)
    (kernel,) = kernels(component, 1)
    result = kernel(x, out=np.full((100, 100), np.nan, np.float32))
    np.testing.assert_allclose(result, component.interpret(x), rtol=1e-4, atol=1e-3)


def test_panels_of_a_symmetric_value() -> None:
    """Their last dimensions are other axes."""
    component = read_component(
        """((I & I) >> i("ik*ik~ik||ik") >> (I & I) >> i("ik*jk~ijk|j:4,i:4|jj'iki'") & I)"""
        """ >> i("ijk*ak~aijk|j:4,i:4|jj'aik0i'") >> i("+aijk~aij|j:4,i:4|jj'aik0i'")"""
        """ >> i("aij*b~baij|j:4,i:4|jbj'ai0i'") >> i("baij+j~baij|j:4|jbj'ai")"""
    )
    rng = np.random.default_rng(8)
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in ((40, FEW), (3,), (40,))]
    (kernel,) = kernels(component, 1)
    np.testing.assert_allclose(kernel(*arrays), component.interpret(*arrays), rtol=1e-4, atol=1e-3)


def test_factors_that_differ_are_not_taken_for_one() -> None:
    component = i("ik*jk~ijk|i:6,j:16|ijki'j'") >> i("+ijk~ij|i:6,j:16|ijki'j'0")
    assert not is_half(component)
