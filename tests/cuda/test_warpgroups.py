"""Products that four warps take together: which they are, what comes out on either kind of device, what is caught."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ilang_eq import Component, i
from ilang_eq.cuda.accumulators import with_accumulators
from ilang_eq.cuda.build import compiled, nvrtc
from ilang_eq.cuda.contractions import contraction, sharing
from ilang_eq.cuda.emit import emit
from ilang_eq.cuda.regions import regions
from ilang_eq.cuda.walks import contracts_of
from ilang_eq.errors import BuildError
from ilang_eq.lower.ir import For, Precision, Statement
from tests.cuda.assembly import assembly
from tests.cuda.emulator import Emulated, Failure
from tests.cuda.schedules import attention, dots, matmul
from tests.cuda.test_tensor_cores import contracts, error, inputs, made, only
from tests.golden import Golden

runs = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

ROUNDED, TRUNCATED = 2**-10, 2**-11 + 2**-10
"""What a product is off by at most, relative to itself, where both factors are rounded, and where one is truncated."""
TWO_PARTS = 2**-20 + 2**-21
"""The same where both are in two parts: each is off by 2⁻²¹, and what is small, up to 2⁻¹¹ and 2⁻¹⁰, is not multiplied.
Sums are rounded on top, to float32."""

COMPONENTS: dict[str, tuple[Component, tuple[str, ...]]] = {
    "product": (matmul(64, 32), ("mk", "kn")),
    "product of eight warps": (matmul(128, 32), ("mk", "kn")),
    "dot products": (dots(64, 48, 32), ("mk", "nk")),
    "weighted sums": (attention(64, 32, 32, 32), ("mk", "nk", "np")),
}
SIZES = {
    "tails": {"m": 70, "n": 37, "k": 41, "p": 27},
    "full tiles": {"m": 128, "n": 128, "k": 64, "p": 64},
    "less than a tile": {"m": 3, "n": 5, "k": 2, "p": 1},
    "rows that are not aligned": {"m": 66, "n": 65, "k": 33, "p": 49},
}


@runs
@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
@pytest.mark.parametrize("hopper", [False, True])
def test_components(hopper: bool, precision: Precision) -> None:
    emulated = Emulated([made(component, precision) for component, _ in COMPONENTS.values()], hopper=hopper)
    limit = TWO_PARTS if precision == "tf32x3" else TRUNCATED if hopper else ROUNDED
    for (number, (name, (component, shapes))), (size, extents) in product(enumerate(COMPONENTS.items()), SIZES.items()):
        arrays = inputs(shapes, extents)
        (got,) = emulated.run(number, arrays)
        # the scores' error is one of weights, relative to themselves
        assert error(got, component, arrays) < limit * (5 if name == "weighted sums" else 1), (name, size)
        (again,) = emulated.run(number, arrays, blocks=2, backwards=True)
        np.testing.assert_array_equal(again, got)


def layouts() -> list[Component]:
    """A product whose tiles lie both ways, its sums as well."""
    found = []
    for left, right, result in product(("ik", "ki"), ("kj", "jk"), ("ij", "ji")):
        size = {"i": 64, "j": 64, "k": 32}
        copies = [
            i(f"+{axes}~{tile}|{axes[0]}:{size[axes[0]]},{axes[1]}:{size[axes[1]]}|{outer}{tile[0]}'{tile[1]}'")
            for axes, tile, outer in (("ik", left, "ik"), ("kj", right, "jk"))
        ]
        pairing = i(f"{left}*{right}~ijk|i:64,j:64,k:32|ijk01i'j'k'")
        found.append((copies[0] | copies[1]) >> pairing >> i(f"+ijk~{result}|i:64,j:64,k:32|ijki'j'k'0"))
    return found


@runs
@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
def test_any_layout(precision: Precision) -> None:
    """Groups take it where a factor's rows are depths, whatever the other factor and the sums are like.

    In two parts, they take the rest as well, turned.
    """
    components = layouts()
    emulated = Emulated([made(component, precision) for component in components], hopper=True)
    for number, component in enumerate(components):
        text = str(component)
        lies = "~ki|" not in text or "~jk|" in text
        taken = [(one.grouped, one.grouped and one.turned) for one in contracts(component, precision)]
        assert taken == [(lies or precision == "tf32x3", precision == "tf32x3" and not lies)], text
        arrays = inputs(("mk", "kn"), SIZES["tails"], number)
        (got,) = emulated.run(number, arrays)
        assert error(got, component, arrays) < (TWO_PARTS if precision == "tf32x3" else TRUNCATED), text


@runs
@pytest.mark.parametrize("number", [0, 4])
@pytest.mark.parametrize("precision", ["tf32", "tf32x3"])
@pytest.mark.parametrize("hopper", [False, True])
def test_what_is_not_finite(hopper: bool, precision: Precision, number: int) -> None:
    """Also where both factors are infinite, and for the right one as it lies and turned."""
    component = layouts()[number]
    arrays = inputs(("mk", "kn"), SIZES["tails"])
    arrays[0][1, 2], arrays[0][5, 0], arrays[1][3, 7] = np.inf, np.nan, -np.inf
    arrays[0][9, 4], arrays[1][4, 9] = np.inf, 0.0
    arrays[0][11, 6], arrays[1][6, 11], arrays[1][12, 13] = -np.inf, np.inf, np.nan
    (got,) = Emulated([made(component, precision)], hopper=hopper).run(0, arrays)
    with np.errstate(invalid="ignore"):
        right = np.einsum("ik,kj->ij", arrays[0].astype(np.float64), arrays[1].astype(np.float64))
    got = got if got.shape == right.shape else got.T
    np.testing.assert_array_equal(np.isnan(got), np.isnan(right))
    np.testing.assert_array_equal(got[np.isinf(right)], right[np.isinf(right)])
    finite = np.isfinite(right)
    limit = TWO_PARTS if precision == "tf32x3" else TRUNCATED
    np.testing.assert_allclose(got[finite], right[finite], rtol=0, atol=limit * np.abs(right[finite]).max())


@runs
def test_the_largest_numbers_have_two_parts() -> None:
    """What ten bits would round to infinity has its first part just below, and the rest in the second."""
    component, _ = COMPONENTS["product"]
    most = np.float32(np.finfo(np.float32).max * (1 - 2.0**-12))
    left, right = np.zeros((3, 2), np.float32), np.zeros((2, 5), np.float32)
    left[1], right[1, 2] = [0.0, most], 1.0
    left[2], right[0, 3] = [0.5, 0.0], -most
    (got,) = Emulated([made(component, "tf32x3")], hopper=True).run(0, [left, right])
    np.testing.assert_allclose(got, left @ right, rtol=TWO_PARTS)


@runs
def test_small_whole_numbers_are_exact() -> None:
    """Ten bits after the point are theirs, rounded or truncated."""
    component, shapes = COMPONENTS["product"]
    arrays = [np.round(8 * x) for x in inputs(shapes, SIZES["tails"])]
    (got,) = Emulated([made(component, "tf32")], hopper=True).run(0, arrays)
    np.testing.assert_array_equal(got, arrays[0] @ arrays[1])


ALONE: dict[str, tuple[Component, Precision]] = {
    "rows that are not four warps'": (dots(32, 32, 32), "tf32"),
    "columns that are not sixteens": (dots(64, 24, 32), "tf32"),
    "rows shorter than all banks": (matmul(64, 16), "tf32"),
    "no factor in rows of the depth": (layouts()[4], "tf32"),
    "a depth that is no whole rows": (dots(64, 32, 48), "tf32x3"),
}


@pytest.mark.parametrize("name", ALONE)
def test_the_rest_is_left_to_single_warps(name: str) -> None:
    component, precision = ALONE[name]
    assert [one.grouped for one in contracts(component, precision)] == [False]


def test_who_has_what() -> None:
    """All warps below each other, each with whole rows; the right factor swizzled, at a multiple of eight rows."""
    launch, homes = only(made(COMPONENTS["product of eight warps"][0], "tf32"))
    (one,) = (one for one in contracts(COMPONENTS["product of eight warps"][0]))
    assert (launch.block.x, launch.block.y) == (4, 32)
    assert [name for name, home in homes.items() if home.swizzled] == [one.right.buffer]
    assert homes[one.right.buffer].dims == (128, 32)
    source = emit(made(COMPONENTS["product of eight warps"][0], "tf32")).source
    assert f"auto &{one.right.buffer} = *reinterpret_cast<float (*)[2][128][32]>(shared_memory + 0);" in source
    assert "extern __shared__ __align__(1024) float shared_memory[];" in source
    assert source.count("publish();") == source.count("__syncthreads();")


def test_scores_are_of_groups_and_what_is_handed_on_is_so_in_two_parts() -> None:
    """It needs its values turned, which pays for three products, not for one."""
    found = contracts(COMPONENTS["weighted sums"][0])
    assert sorted((one.grouped, one.handed) for one in found) == [(False, True), (True, False)]
    found = contracts(COMPONENTS["weighted sums"][0], "tf32x3")
    assert sorted((one.grouped, one.handed, one.turned) for one in found) == [(True, False, False), (True, True, True)]


def test_what_is_prepared() -> None:
    """The second parts of a factor that lies in rows of depths; of one that is turned, both, in rows of 32."""
    launch, homes = only(made(COMPONENTS["product of eight warps"][0], "tf32x3"))
    (one,) = contracts_of(launch.body)
    assert one.prepared is not None
    rest = homes[one.prepared.buffer]
    assert (rest.where, rest.dims, rest.swizzled, homes[one.right.buffer].swizzled) == (
        "shared",
        (1, 128, 32),
        True,
        True,
    )
    launch, homes = only(made(attention(64, 64, 32, 32), "tf32x3"))
    (one,) = (one for one in contracts_of(launch.body) if one.turned)
    assert one.prepared is not None
    assert homes[one.prepared.buffer].dims == (4, 32, 32)
    assert not homes[one.right.buffer].swizzled


def _changed(
    body: Sequence[Statement], change: Callable[[tuple[Statement, ...]], tuple[Statement, ...]]
) -> list[Statement]:
    """``body`` with what stands beside the first product in it changed."""
    nests = [s for s in body if isinstance(s, For)]
    if any(contraction(nest, frozenset()) is not None for nest in nests):
        return [*change(tuple(body))]
    return [replace(s, body=tuple(_changed(s.body, change))) if s in nests else s for s in body]


def _around(nest: Statement) -> For:
    """A loop over a further axis that runs ``nest`` with each iteration."""
    assert isinstance(nest, For)
    return For("m", replace(nest.extent, input=7), 1, None, (), (nest,))


def test_tiles_that_others_read_or_that_are_read_again_are_not_changed() -> None:
    """Where a factor lies in rows of depths, its infinities are changed in place: it is made anew for each product."""
    granted = made(COMPONENTS["dot products"][0], "tf32x3")
    in_memory = frozenset(b.name for b in granted.buffers if b.role != "local")
    (region,) = regions(granted.kernels[0])
    region, _ = with_accumulators(region, granted)

    def as_they_lie(change: Callable[[tuple[Statement, ...]], tuple[Statement, ...]]) -> list[bool]:
        found = sharing(_changed(region.body, change), in_memory, 2)
        return [] if found is None else [one.grouped and not one.turned for one in found.contracts]

    assert as_they_lie(lambda body: body) == [True]
    assert True not in as_they_lie(lambda body: (*body, body[-1]))
    assert True not in as_they_lie(lambda body: (*body[:-1], _around(body[-1])))


@pytest.mark.parametrize(("columns", "kept"), [(16, 16), (48, 48), (64, 64), (80, 16), (96, 48), (256, 64)])
def test_columns_whose_sums_are_kept_apart(columns: int, kept: int) -> None:
    (one,) = contracts(dots(64, columns, 32), "tf32x3")
    one = one if one.columns.limit == columns else replace(one, rows=one.columns, columns=one.rows)
    assert one.fresh_columns == kept


def test_golden(golden: Golden) -> None:
    golden.check("group.cu", emit(made(COMPONENTS["product"][0], "tf32")).source)
    golden.check("group_tf32x3.cu", emit(made(attention(64, 32, 32, 32), "tf32x3")).source)


def test_instructions() -> None:
    """Of one source: Hopper's on Hopper, a single warp's elsewhere."""
    try:
        nvrtc()
    except BuildError:
        pytest.skip("needs NVRTC: pip install nvidia-cuda-nvrtc")
    source = emit(made(COMPONENTS["product of eight warps"][0], "tf32")).source
    new, old = assembly(source, 90), assembly(source, 80)
    assert new.count("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32") == 16, "of two versions"
    assert "mma.sync" not in new
    assert "wgmma" not in old
    assert "mma.sync.aligned.m16n8k8" in old


def test_instructions_of_two_parts() -> None:
    """Three products for one, 64 columns at a time; nothing spills."""
    try:
        nvrtc()
    except BuildError:
        pytest.skip("needs NVRTC: pip install nvidia-cuda-nvrtc")
    source = emit(made(COMPONENTS["product of eight warps"][0], "tf32x3")).source
    new, old = assembly(source, 90), assembly(source, 80)
    assert new.count("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32") == 2 * 3 * 16, "of two versions"
    assert "mma.sync" not in new
    assert "wgmma" not in old
    _, usage = compiled(source, 90)
    assert [used.spilled for used in usage.values()] == [0]


BROKEN_IN_PARTS = {
    "second parts that nobody waits for": (
        r"(split_tile<.*\n\s+publish\(\);)\s+__syncthreads\(\);",
        r"\1",
        "race|not published",
    ),
    "second parts that are not published": (r"(split_tile<.*\n)\s+publish\(\);", r"\1", "not published"),
    "turned tiles that nobody waits for": (
        r"(turn_tile<.*\n\s+publish\(\);)\s+__syncthreads\(\);",
        r"\1",
        "race|not published",
    ),
}

BROKEN = {
    "tiles that are not published": (r"publish\(\);\s+__syncthreads", "__syncthreads", "not published"),
    "no barrier between copies and product": (
        r"(arrive\(\);\s+publish\(\);\s+)__syncthreads\(\);",
        r"\1",
        "race|still being copied|never written|not published",
    ),
    "copies for where groups still read": (r"k_stage \^ 1", "k_stage", "still being copied|race|never written"),
    "products that nobody begins": (r"begin_products\(\);\n", "\n", "nothing began"),
    "products that nobody waits for": (r"finish_products\(\);\n", "\n", "not waited for|nothing began"),
    "sums that are used too early": (
        r"(\s+)finish_products\(\);\n",
        r"\1out0_sum[0][0] *= 2.0f;\1finish_products();\n",
        "while products are under way",
    ),
    "tiles that are filled too early": (
        r"(\s+)finish_products\(\);\n",
        r"\1__syncthreads();\1if (threadIdx.x == 0)\1    add0[k_stage][0][0] = 0.0f;\1publish();\1finish_products();\n",
        "are reading|race",
    ),
    "factors that are not rounded": (r"to_tf32\(add1_part\[.*\);", "", "more digits"),
    "warps that leave the others alone": (
        r"(\s+multiply_64\w*<\w+>\(out0)",
        r"if (threadIdx.x / 32)\1",
        "different places",
    ),
}


@runs
@pytest.mark.parametrize("name", BROKEN)
def test_broken_kernels_are_caught(name: str) -> None:
    _caught(*BROKEN[name], "product", "tf32")


@runs
@pytest.mark.parametrize("name", BROKEN_IN_PARTS)
def test_broken_kernels_in_parts_are_caught(name: str) -> None:
    _caught(*BROKEN_IN_PARTS[name], "weighted sums", "tf32x3")


def _caught(pattern: str, replacement: str, failure: str, name: str, precision: Precision) -> None:
    """The kernel of a component, changed so, fails so."""
    component, shapes = COMPONENTS[name]
    right = made(component, precision)
    kernel = emit(right).source
    head, kernel = kernel[: kernel.index('extern "C"')], kernel[kernel.index('extern "C"') :]
    broken, count = re.subn(pattern, replacement, kernel)
    assert count
    with pytest.raises(Failure, match=failure):
        Emulated([right], [head + broken], hopper=True).run(0, inputs(shapes, SIZES["full tiles"]))
