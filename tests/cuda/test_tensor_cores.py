"""Products on tensor cores: which they take, what comes out, and that a broken kernel is caught."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.cuda.emit import bound, emit
from ilang_eq.cuda.nodes import Contract, Launch
from ilang_eq.cuda.storage import Home
from ilang_eq.cuda.walks import contracts_of
from ilang_eq.lower.ir import Precision, Program
from tests.cuda.emulator import Emulated, Failure
from tests.cuda.schedules import attention, dots, matmul, program

runs = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

ERROR: dict[Precision, float] = {"tf32": 4e-3, "tf32x3": 4e-6}
"""What a product of normal numbers may be off by, relative to the largest value."""

TWICE = i("+ik~ik|i:16,k:8|iki'k'") >> i("ik*jk~ijk|i:16,j:16,k:8|ijk0k'i'j'") >> i("+ijk~ij|i:16,j:16,k:8|ijkk'i'j'0")

COMPONENTS: dict[str, tuple[Component, tuple[str, ...]]] = {
    "product": (matmul(64, 16), ("mk", "kn")),
    "dot products": (dots(32, 16, 16), ("mk", "nk")),
    "dot products, odd trips": (dots(16, 24, 8), ("mk", "nk")),
    "weighted sums": (attention(16, 16, 16, 8), ("mk", "nk", "np")),
    "weighted sums, more rows": (attention(64, 16, 24, 16), ("mk", "nk", "np")),
}
SIZES = {
    "tails": {"m": 70, "n": 37, "k": 21, "p": 27},
    "full tiles": {"m": 64, "n": 64, "k": 32, "p": 48},
    "less than a tile": {"m": 3, "n": 5, "k": 2, "p": 1},
    "rows that are not aligned": {"m": 66, "n": 65, "k": 33, "p": 49},
}


def made(component: Component, precision: Precision) -> Program:
    return replace(program(component), precision=precision)


def inputs(shapes: tuple[str, ...], size: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal([size[axis] for axis in axes], dtype=np.float32) for axes in shapes]


def error(got: np.ndarray, component: Component, arrays: list[np.ndarray]) -> float:
    right = component.interpret(*arrays)
    assert isinstance(right, np.ndarray)
    return float(np.abs(got - right).max() / np.abs(right).max())


def only(program: Program) -> tuple[Launch, dict[str, Home]]:
    (found,) = bound(program)
    return found


def contracts(component: Component, precision: Precision = "tf32") -> list[Contract]:
    return contracts_of(only(made(component, precision))[0].body)


@runs
@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
def test_components(precision: Precision) -> None:
    emulated = Emulated([made(component, precision) for component, _ in COMPONENTS.values()])
    for (number, (name, (component, shapes))), (size, extents) in product(enumerate(COMPONENTS.items()), SIZES.items()):
        arrays = inputs(shapes, extents)
        (got,) = emulated.run(number, arrays)
        assert error(got, component, arrays) < ERROR[precision], (name, size)
        (again,) = emulated.run(number, arrays, blocks=2, backwards=True)
        np.testing.assert_array_equal(again, got)


@runs
def test_rounding_is_what_was_granted() -> None:
    """One tf32 number a factor is visibly less than float32; two are next to it."""
    component, shapes = COMPONENTS["product"]
    arrays = inputs(shapes, SIZES["full tiles"])
    both = Emulated([made(component, "tf32"), made(component, "tf32x3")])
    rough, fine = (error(both.run(n, arrays)[0], component, arrays) for n in range(2))
    assert rough > 50 * fine


def layouts() -> list[Component]:
    """A product under every order of its loops, its tiles lying both ways."""
    found = []
    for order, left, right in product(permutations(("i'", "j'", "k'")), ("ik", "ki"), ("kj", "jk")):
        loops, splits = "".join(order), "i:32,j:16,k:8"
        copies = [
            i(f"+{axes}~{tile}|{axes[0]}:{size[axes[0]]},{axes[1]}:{size[axes[1]]}|{outer}{tile[0]}'{tile[1]}'")
            for axes, tile, outer in (("ik", left, "ik"), ("kj", right, "jk"))
            for size in [{"i": 32, "j": 16, "k": 8}]
        ]
        pairing = i(f"{left}*{right}~ijk|{splits}|ijk01{loops}")
        found.append((copies[0] | copies[1]) >> pairing >> i(f"+ijk~ij|{splits}|ijk{loops}0"))
    return found


@runs
def test_any_layout_and_any_order_of_loops() -> None:
    components = layouts()
    assert len(components) == 24
    emulated = Emulated([made(component, "tf32x3") for component in components])
    for number, component in enumerate(components):
        assert len(contracts(component)) == 1, str(component)
        arrays = inputs(("mk", "kn"), SIZES["tails"], number)
        (got,) = emulated.run(number, arrays)
        assert error(got, component, arrays) < ERROR["tf32x3"], str(component)


@runs
@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
def test_what_is_not_finite(precision: Precision) -> None:
    """Infinities and NaN stay in their rows and columns, and are what they are without tensor cores."""
    component, shapes = COMPONENTS["product"]
    arrays = inputs(shapes, SIZES["tails"])
    arrays[0][1, 2], arrays[0][5, 0], arrays[1][3, 7] = np.inf, np.nan, -np.inf
    arrays[0][9, 4], arrays[1][4, 9] = np.inf, 0.0
    (got,) = Emulated([made(component, precision)]).run(0, arrays)
    with np.errstate(invalid="ignore"):
        right = np.einsum("ik,kj->ij", arrays[0].astype(np.float64), arrays[1].astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(right))
    np.testing.assert_array_equal(got[np.isinf(right)], right[np.isinf(right)])
    finite = np.isfinite(right)
    np.testing.assert_allclose(got[finite], right[finite], rtol=0, atol=ERROR[precision] * np.abs(right[finite]).max())


def random_attention(seed: int) -> tuple[Program, Component, list[np.ndarray]]:
    """Tiles that fit, of any shape, on extents that need not be whole tiles."""
    rng = np.random.default_rng(seed)
    tile = [int(rng.choice(sizes)) for sizes in ((16, 32, 64), (8, 16, 32), (8, 16, 24), (8, 16))]
    component = attention(*tile)
    size = {axis: int(rng.integers(1, 81)) for axis in "mnkp"}
    precision: Precision = "tf32" if seed % 2 else "tf32x3"
    return made(component, precision), component, inputs(("mk", "nk", "np"), size, seed)


def compare(seeds: range) -> None:
    cases = [random_attention(seed) for seed in seeds]
    emulated = Emulated([granted for granted, _, _ in cases])
    for number, (granted, component, arrays) in enumerate(cases):
        (got,) = emulated.run(number, arrays)
        # the scores' error is one of weights, relative to themselves
        limit = 20 * ERROR[granted.precision]
        assert error(got, component, arrays) < limit, (seeds[number], [array.shape for array in arrays])


@runs
def test_random_tiles() -> None:
    compare(range(6))


@runs
@pytest.mark.long
def test_many_random_tiles() -> None:
    for first in range(100, 300, 10):
        compare(range(first, first + 10))


@runs
def test_weights_that_vanish() -> None:
    """Scores of −∞, for some keys and for all of a row: nothing of them gets into other rows."""
    tile = "i:16,j:16"
    scores = (
        (i("+ik~ik|i:16,k:8|iki'k'") | i("+jk~jk|j:16,k:8|jkj'k'"))
        >> i("ik*jk~ijk|i:16,j:16,k:8|ijk01i'j'k'")
        >> i("+ijk~ij|i:16,j:16,k:8|ijki'j'k'0")
        >> i(f"ij+ij~ij|{tile}|ij0i'j'")
    )
    weights = (I & i(f">ij~i|{tile}|ij0i'j'")) >> i(f"ij-i~ij|{tile}|ij01i'j'") >> i(f"^ij~ij|{tile}|iji'j'0")
    total = i("ij*jk~ikj|i:16,j:16,k:16|ikj01i'j'k'") >> i("+ikj~ik|i:16,j:16,k:16|ikji'j'k'0")
    component = scores >> weights >> (I | i("+jk~jk|j:16,k:16|kjj'k'")) >> total
    q, k, mask, v = inputs(("mk", "nk", "mn", "np"), SIZES["tails"])
    mask[:, 3:9] = -np.inf
    mask[4, :] = -np.inf
    granted = made(component, "tf32x3")
    assert [one.handed for one in contracts_of(only(granted)[0].body)] == [False, True]
    (got,) = Emulated([granted]).run(0, [q, k, mask, v])
    with np.errstate(invalid="ignore"):
        right = component.interpret(q, k, mask, v)
    assert isinstance(right, np.ndarray)
    live = np.arange(len(q)) != 4
    assert not np.isnan(got[live]).any()
    np.testing.assert_allclose(got[live], right[live], rtol=0, atol=2e-5 * np.abs(right[live]).max())


def test_weights_stay_in_registers() -> None:
    """The first product's sums are the second's left factor, and nothing in between leaves its thread."""
    launch, homes = only(made(COMPONENTS["weighted sums"][0], "tf32"))
    second = next(one for one in contracts_of(launch.body) if one.handed)
    assert homes[second.left.buffer].where == "registers"
    shared = {name for name, home in homes.items() if home.where == "shared"}
    assert shared == {name for name in shared if name.startswith("add")}
    assert not any(home.where == "scratch" for home in homes.values())
    assert len(contracts_of(launch.body)) == 2


PIECES = {
    "of depths": ("+ik~ik|i:32,k:2:8|ikk'i'k''", "+jk~jk|j:32,k:2:8|jkk'j'k''"),
    "of rows": ("+ik~ik|i:4:8,k:16|iki'i''k'", "+jk~jk|j:4:8,k:16|jkj'j''k'"),
}
"""Copies in tiles of tiles: what lies beyond an extent's end is not written."""


@runs
@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_tiles_that_are_written_in_pieces(name: str, precision: Precision) -> None:
    """Cores would take what an earlier tile has left there for depths of this one."""
    copies = i(PIECES[name][0]) | i(PIECES[name][1])
    product = i("ik*jk~ijk|i:32,j:32,k:16|ijk01i'j'k'") >> i("+ijk~ij|i:32,j:32,k:16|ijki'j'k'0")
    component = copies >> product
    granted = made(component, precision)
    assert not contracts_of(only(granted)[0].body)
    arrays = [np.random.default_rng(0).standard_normal(shape, dtype=np.float32) for shape in ((37, 21), (45, 21))]
    assert error(Emulated([granted]).run(0, arrays), component, arrays) < 1e-6


LEFT_OUT = {
    "nobody granted it": (matmul(64, 16), "float32"),
    "neither rows nor columns in sixteens": (dots(24, 24, 8), "tf32"),
    "columns that are not eights": (dots(16, 20, 8), "tf32"),
    "a depth that is not eights": (dots(16, 16, 12), "tf32"),
    "factors in device memory": (
        i("ik*kj~ijk|i:32,j:32,k:8|ijkk'i'j'") >> i("+ijk~ij|i:32,j:32,k:8|ijkk'i'j'0"),
        "tf32",
    ),
    "not a product": (
        (i("+ik~ik|i:16,k:8|iki'k'") | i("+jk~jk|j:16,k:8|jkj'k'"))
        >> i("ik-jk~ijk|i:16,j:16,k:8|ijk01k'i'j'")
        >> i("+ijk~ij|i:16,j:16,k:8|ijkk'i'j'0"),
        "tf32",
    ),
    "not a sum": (
        (i("+ik~ik|i:16,k:8|iki'k'") | i("+jk~jk|j:16,k:8|jkj'k'"))
        >> i("ik*jk~ijk|i:16,j:16,k:8|ijk01k'i'j'")
        >> i(">ijk~ij|i:16,j:16,k:8|ijkk'i'j'0"),
        "tf32",
    ),
    "one factor in device memory": (TWICE, "tf32"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_rest_is_left_to_the_other_units(name: str) -> None:
    component, precision = LEFT_OUT[name]
    launch, _ = only(made(component, precision))
    assert not contracts_of(launch.body)
    plain = replace(made(component, precision), precision="float32")
    assert emit(made(component, precision)).source == emit(plain).source


@pytest.mark.parametrize("handed", [False, True])
@pytest.mark.parametrize("along_depth", [False, True])
def test_a_warp_reads_different_banks(handed: bool, along_depth: bool) -> None:
    """All fragments of both factors, wherever their depth is: one word of each bank."""
    name = "weighted sums" if handed else "product" if not along_depth else "dot products"
    launch, homes = only(made(COMPONENTS[name][0], "tf32"))
    for contract in contracts_of(launch.body):
        for place, loop in ((contract.left, contract.rows), (contract.right, contract.columns)):
            if homes[place.buffer].where != "shared":
                continue
            row = homes[place.buffer].dims[-1]
            last = contract.depth.variable in place.indices[-1].variables
            step = 2 if contract.handed else 1
            pairs = [(lane // 4, lane % 4 * step) for lane in range(32)]
            words = [n * row + k if last else k * row + n for n, k in pairs]
            assert len({word % 32 for word in words}) == 32, (name, place.buffer, loop.variable)


BROKEN = {
    "no barrier between copies and product": (
        r"(arrive\(\);\s+)__syncthreads\(\);",
        r"\1",
        "race|still being copied|never written",
    ),
    "copies for where others still read": (r"k_stage \^ 1", "k_stage", "still being copied|race|never written"),
    "factors that are not rounded": (r"to_tf32\(add1_part\[\w+\]\);", "", "more digits"),
    "a row of a matrix that is not aligned": (
        r"(load_matrices\([^;]*)\[k1\]\)",
        r"\1[k1 + 1])",
        "misaligned|out of bounds",
    ),
    "a row beyond the tile": (r"\+ lane % 8;", "+ lane % 8 + 64;", "out of bounds"),
    "lanes that leave the others alone": (r"multiply\((out0)", r"if (tx) multiply(\1", "different places"),
}


@runs
@pytest.mark.parametrize("name", BROKEN)
def test_broken_kernels_are_caught(name: str) -> None:
    pattern, replacement, failure = BROKEN[name]
    component, shapes = COMPONENTS["product"]
    right = made(component, "tf32")
    source, count = re.subn(pattern, replacement, emit(right).source)
    assert count
    with pytest.raises(Failure, match=failure):
        Emulated([right], [source]).run(0, inputs(shapes, SIZES["full tiles"]))
