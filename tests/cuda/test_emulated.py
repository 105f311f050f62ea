"""Generated kernels, run on the CPU with every access checked, against the float64 interpreter."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence

import numpy as np
import pytest

from ilang_eq import Component, i
from ilang_eq.cuda.emit import emit
from ilang_eq.cuda.phases import CHUNK
from ilang_eq.lower.ir import Program
from tests.c import programs
from tests.c.programs import apply, at
from tests.cuda.emulator import Emulated, Failure
from tests.cuda.schedules import NAMED, matmul, program
from tests.random_programs import Case, random_case
from tests.test_random_programs import lowered, tame

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")

SIZES = {"tails": lambda k, d: 21 + 3 * d + 5 * k, "full tiles": lambda k, d: 32, "less than a tile": lambda k, d: 3}


@pytest.fixture(scope="module")
def named() -> Emulated:
    return Emulated([program(component) for component in NAMED.values()])


def inputs(program: Program, size: str) -> list[np.ndarray]:
    """Random arrays whose extents agree."""
    shapes = [[SIZES[size](k, d) for d in range(rank or 0)] for k, rank in enumerate(program.ranks)]
    for (k, d), *others in program.ties:
        for other, dim in others:
            shapes[other][dim] = shapes[k][d]
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


def agrees(got: Sequence[np.ndarray], component: Component, arrays: Sequence[np.ndarray]) -> None:
    right = component.interpret(*arrays)
    for mine, theirs in zip(got, right if isinstance(right, tuple) else (right,), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5 * float(np.abs(theirs).max()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMED)
def test_components(name: str, size: str, named: Emulated) -> None:
    number = list(NAMED).index(name)
    arrays = inputs(named.programs[number], size)
    agrees(named.run(number, arrays), NAMED[name], arrays)


@pytest.mark.parametrize("name", ["matmul", "attention", "softmax"])
def test_neither_the_number_of_blocks_nor_their_order_matters(name: str, named: Emulated) -> None:
    number = list(NAMED).index(name)
    arrays = inputs(named.programs[number], "tails")
    (all_at_once,) = named.run(number, arrays)
    np.testing.assert_array_equal(named.run(number, arrays, blocks=2)[0], all_at_once)
    np.testing.assert_array_equal(named.run(number, arrays, backwards=True)[0], all_at_once)


def random_cases(seeds: range) -> list[tuple[int, Case, Program, list[np.ndarray]]]:
    found = []
    for seed in seeds:
        case = random_case(seed)
        program, right = lowered(case), tame(case)
        if program is not None and right is not None:
            found.append((seed, case, program, right))
    return found


def compare(seeds: range) -> int:
    """How many random programs under random schedules were run."""
    cases = random_cases(seeds)
    for first in range(0, len(cases), 20):
        batch = cases[first : first + 20]
        emulated = Emulated([program for _, _, program, _ in batch])
        for number, (seed, case, _, right) in enumerate(batch):
            for blocks, backwards in ((None, False), (2, True)):
                try:
                    got = emulated.run(number, case.arrays, blocks, backwards)
                except Failure as failure:
                    raise AssertionError(f"seed {seed}: {failure}") from None
                for mine, theirs in zip(got, right, strict=True):
                    scale = max(1.0, float(np.abs(theirs).max(initial=0)))
                    np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3 * scale, err_msg=f"seed {seed}")
    return len(cases)


def test_random_programs() -> None:
    assert compare(range(60)) > 20


@pytest.mark.long
def test_many_random_programs() -> None:
    print(f"{compare(range(100, 3000))} compared")


BROKEN = {
    "no barrier between copies and product": (
        r"(arrive_but<2>\(\);\s+)__syncthreads\(\);",
        r"\1",
        "race|still being copied|never written",
    ),
    "no barrier before the next copies": (r"__syncthreads\(\);(\s+// \+ik~ik)", r"\1", "race|being copied"),
    "no wait for the copies": (r"arrive_but<2>\(\);", "", "still being copied"),
    "a wait for too few of the copies": (r"arrive_but<2>\(\);", "arrive_but<3>();", "still being copied"),
    "copies for where others still read": (
        r"\(k_stage \+ 3\) % 4",
        "k_stage",
        "still being copied|race|never written",
    ),
    "no barrier at all": (r"__syncthreads\(\);", "", "race|never written"),
    "a barrier that some threads miss": (
        r"__syncthreads\(\);",
        "if (tx) __syncthreads();",
        "different places|never written",
    ),
    "an index beyond the end": (r"in0(\[| \+ )\(i \+ i1\)", r"in0\1(i + i1 + 16)", "out of bounds"),
    "an element of a tile that nobody writes": (r"begin_1\(&add1", "if (tx) begin_1(&add1", "never written"),
    "two blocks that write the same": (r"out0\[\(i \+ ", "out0[(0 * i + ", "race: two writes"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_shim_catches(what: str) -> None:
    """Each check fails where it should: the same kernel, broken in one way."""
    old, new, said = BROKEN[what]
    right = program(matmul(16, 8))
    source = emit(right).source
    broken = re.sub(old, new, source)
    assert broken != source
    rng = np.random.default_rng(0)
    # six tiles of the depth: more than are under way at a time
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in ((21, 45), (45, 29))]
    Emulated([right]).run(0, arrays, blocks=3)
    with pytest.raises(Failure, match=said):
        Emulated([right], [broken]).run(0, arrays, blocks=3)


def unaligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins between two multiples of 16 bytes."""
    room = np.empty(array.size + 5, np.float32)
    first = (room.ctypes.data // 4 + 1) % 4
    moved = room[4 - first :][: array.size].reshape(array.shape)
    moved[...] = array
    assert moved.ctypes.data % 16
    return moved


@pytest.mark.parametrize("name", ["matmul", "softmax", "pointwise", "row sums", "transpose"])
def test_rows_that_are_not_aligned(name: str, named: Emulated) -> None:
    """Runs of 16 bytes are for arrays and rows that allow it; the others are computed all the same."""
    number = list(NAMED).index(name)
    arrays = inputs(named.programs[number], "full tiles")
    for moved in ([unaligned(array) for array in arrays], [*arrays[:-1], unaligned(arrays[-1])]):
        agrees(named.run(number, moved), NAMED[name], moved)


def test_what_is_assumed_of_rows_is_needed() -> None:
    """Both conditions: where the array begins, and that its rows are whole runs."""
    right = program(matmul(64, 16))
    source = emit(right).source
    taken = Emulated([right], [re.sub(r"aligned_rows = .*;", "aligned_rows = true;", source)])
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape, dtype=np.float32) for shape in ((64, 32), (32, 66)))
    with pytest.raises(Failure, match="misaligned: in1"):
        taken.run(0, [x, y])
    with pytest.raises(Failure, match="misaligned: in0"):
        taken.run(0, [unaligned(x), y])
    agrees(Emulated([right]).run(0, [x, y]), matmul(64, 16), [x, y])


def test_more_shared_memory_than_a_kernel_may_declare() -> None:
    right = program(matmul(128, 32))
    assert emit(right).entries[0].shared > 48 * 1024
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in ((128, 72), (72, 130))]
    agrees(Emulated([right]).run(0, arrays), matmul(128, 32), arrays)


HAND = {
    "matmul": (programs.matmul(6, 32), [(37, 19), (19, 70)]),
    "blocked matmul": (programs.matmul(8, 16, block=8), [(20, 19), (19, 33)]),
    "dot products": (programs.dot_products(4, 4, 16), [(9, 40), (7, 40)]),
    "batched sums": (programs.batched_sums(), [(2, 9, 3, 17)]),
    "two kernels": (programs.two_kernels(), [(9, 40), (5,)]),
    "largest": (programs.reduction("max", -np.inf), [(100,)]),
}


def expected(name: str, x: np.ndarray, *more: np.ndarray) -> tuple[np.ndarray, ...]:
    match name:
        case "dot products":
            return (x @ more[0].T,)
        case "batched sums":
            return (x.sum(3),)
        case "two kernels":
            return ((x**2).sum(1), more[0], (x**2).sum(1))
        case "largest":
            return (x.max(),)
        case _:
            return (x @ more[0],)


def test_programs_by_hand() -> None:
    emulated = Emulated([made for made, _ in HAND.values()])
    rng = np.random.default_rng(1)
    for number, (name, (_, shapes)) in enumerate(HAND.items()):
        arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
        for mine, theirs in zip(emulated.run(number, arrays), expected(name, *arrays), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4, err_msg=name)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e30, np.inf, -np.inf, np.nan], np.float32)
POINTWISE = {
    **{
        op: (apply(op, at("in0", "i"), at("in1", "i")), 2)
        for op in ("max", "min", "pow", "log", "gt", "and", "finite_or")
    },
    "exp": (apply("exp", at("in0", "i")), 1),
    "ln": (apply("ln", at("in0", "i")), 1),
    "abs": (apply("abs", at("in0", "i")), 1),
    "root": (apply("pow", at("in0", "i"), 0.5), 1),
    "power of two": (apply("pow", 2.0, at("in0", "i")), 1),
    "logarithm to base two": (apply("log", 2.0, at("in0", "i")), 1),
}


def meaning(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    table = {
        "max": lambda: np.fmax(x, y), "min": lambda: np.fmin(x, y), "pow": lambda: np.power(x, y),
        "log": lambda: np.log(y) / np.log(x), "gt": lambda: np.greater(x, y), "and": lambda: np.logical_and(x, y),
        "finite_or": lambda: np.where(np.isfinite(x), x, y), "exp": lambda: np.exp(x), "ln": lambda: np.log(x),
        "abs": lambda: np.abs(x),
        "root": lambda: np.power(x, np.full(x.shape, 0.5)), "power of two": lambda: np.exp2(x),
        "logarithm to base two": lambda: np.log2(x),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return table[name]().astype(np.float32)


def test_pointwise_on_special_values() -> None:
    emulated = Emulated([programs.elementwise(value, inputs=count) for value, count in POINTWISE.values()])
    x, y = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(SPECIAL, SPECIAL))
    for number, (name, (_, count)) in enumerate(POINTWISE.items()):
        (got,) = emulated.run(number, [x, y][:count])
        want = meaning(name, x.astype(np.float64), y.astype(np.float64))
        np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)


def test_names_are_those_of_the_text() -> None:
    source = emit(program(NAMED["attention"])).source
    for expression in re.findall(r'i\("(.*?)"\)', str(NAMED["attention"])):
        assert expression.replace(" ", "") in source.replace(" ", "")


def test_a_reduction_over_everything_in_two_launches() -> None:
    components = {"sum": i("+i~."), "largest": i(">ij~."), "squares": i("i*i~i|i:16|ii'") >> i("+i~.|i:16|ii'0")}
    emulated = Emulated([program(component) for component in components.values()])
    x = np.random.default_rng(2).standard_normal(2 * CHUNK + 100, dtype=np.float32)
    for number, (name, arrays) in enumerate({"sum": [x], "largest": [x.reshape(-1, 4)], "squares": [x, x]}.items()):
        assert len(emulated.modules[number].entries) == 2, name
        (got,) = emulated.run(number, arrays)
        np.testing.assert_allclose(got, components[name].interpret(*arrays), rtol=1e-5, err_msg=name)
        (empty,) = emulated.run(number, [array[:0] for array in arrays])
        assert empty == (-np.inf if name == "largest" else 0.0)
