"""Reductions in chunks and in blocks: the same results, whatever the sizes; what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.interpreter import interpret
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import blocking, chunks, lower
from ilang_eq.lower.check import check
from ilang_eq.lower.chunks import chunked
from ilang_eq.lower.division import divided
from ilang_eq.lower.ir import Accumulate, Assign, Declare, For, Program
from ilang_eq.lower.walk import walk
from tests.c import programs
from tests.c.programs import K, M, apply, at, local, loop, tensor
from tests.lower.execute import execute
from tests.lower.test_online import flash_attention_2, normal
from tests.random_programs import random_case
from tests.test_random_programs import lowered, tame


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks and blocks of a few elements, so that small programs have many."""
    for name, size in {"CHUNK": 4, "ROWS": 2, "ROW": 3, "FEWEST": 2}.items():
        monkeypatch.setattr(chunks, name, size)
    for name, size in {"BLOCK": 4, "ROW_BLOCK": 2, "FEWEST": 2}.items():
        monkeypatch.setattr(blocking, name, size)


def versions(program: Program) -> Iterator[Program]:
    """``program`` divided: its general version, and those for few rows if there are any."""
    division = divided(program)
    yield division.program
    for n in range(max(map(len, division.apart))):
        pairs = zip(division.program.kernels, division.apart, strict=True)
        kernels = tuple(apart[min(n, len(apart) - 1)].kernel if apart else kernel for kernel, apart in pairs)
        yield replace(division.program, kernels=kernels)


def has_tasks(program: Program) -> bool:
    loops = [s for kernel in program.kernels for s in walk(kernel.body) if isinstance(s, For)]
    return any(s.parallel for s in loops)


def agrees(component: Component, arrays: list[np.ndarray]) -> None:
    """Every version computes what the interpreter does, and has something to do for threads."""
    graph = wire(component)
    right = interpret(graph, arrays)
    for version in versions(lower(graph)):
        check(version)
        assert has_tasks(version)
        for mine, theirs in zip(execute(version, arrays), right, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("small")
def test_random_programs() -> None:
    compared = cut = online = 0
    for seed in (*range(20_100, 20_300), 1094, 1476, 1665):
        case = random_case(seed)
        program, right = lowered(case), tame(case)
        if program is None or right is None:
            continue
        for version in versions(program):
            check(version)
            for mine, theirs in zip(execute(version, case.arrays), right, strict=True):
                atol = 1e-6 * max(1.0, float(np.abs(theirs).max(initial=0)))
                np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=atol, err_msg=f"seed {seed}")
            compared += 1
            cut += any("_chunk" in buffer.name for buffer in version.buffers)
            online += any("_so_far" in buffer.name for buffer in version.buffers)
    assert compared > 80
    assert cut > 50
    assert online > 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", [(1, 3), (4, 3), (9, 3), (37, 5), (0, 3)], ids=str)
def test_few_rows_of_flash_attention_share_the_keys(shape: tuple[int, int]) -> None:
    keys, width = shape
    agrees(flash_attention_2(), normal((3, 4), (keys, 4), (keys, width)))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("bad", [-np.inf, np.inf, np.nan, 0.0])
def test_an_online_row_with_special_values(bad: float) -> None:
    parts = (i("ij-i~ij||ij1") >> i("^ij~ij||ij0"), i("+ij~i||ij0"))
    online = (I & i(">ij~i||ij")) >> parts[0] >> parts[1]
    x = normal((2, 23))[0]
    x[0, 5:9] = bad
    x[1, :] = bad
    graph = wire(online)
    program = lower(graph)
    assert program.corrections, "the schedule is online"
    whole = execute(program, [x])
    for version in versions(program):
        check(version)
        for mine, theirs in zip(execute(version, [x]), whole, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("component", "shape"),
    [
        (i("+i~."), (31,)),
        (i(">i~."), (31,)),
        (i("<ij~."), (7, 10)),
        (i("+ij~."), (7, 10)),
        (i("+ij~j||ij"), (9, 4)),
        (i("+ij~j|j:2|ijj'"), (9, 5)),
        (i("+ij~i"), (3, 30)),
        (i("*ijk~i|k:2|ijkk'"), (2, 3, 5)),
    ],
    ids=str,
)
def test_reductions_are_cut(component: Component, shape: tuple[int, ...]) -> None:
    agrees(component, normal(shape))


def test_a_sum_over_everything_has_tasks_of_both_axes() -> None:
    (version,) = versions(lower(wire(i("+ij~."))))
    tasks = [s.variable for s in walk(version.kernels[0].body) if isinstance(s, For) and s.parallel]
    assert tasks == ["i_chunk", "j_chunk"]


def test_sums_are_in_blocks_and_maxima_are_not() -> None:
    sums, maxima = (lower(wire(i(f"{op}ij~i"))) for op in "+>")
    assert any("_block" in b.name for b in divided(sums).program.buffers)
    assert not any("_block" in b.name for b in divided(maxima).program.buffers)


def test_a_matrix_product_keeps_its_tile() -> None:
    program = programs.matmul(6, 32)
    assert divided(program).program.kernels == program.kernels


def in_blocks(rows: int, columns: int, block: int) -> Component:
    """A product of (i, k) and (k, j) that goes through panels of the second, whose rows come ``block`` at a time."""
    panel = i(f"+kj~kj|j:{columns},k:{block}|jkk'j'")
    nest = f"|i:{rows},j:{columns},k:{block}|jk"
    product = i("ik*kj~kij" + nest + "1ik'i'j'") >> i("+kij~ij" + nest + "ik'i'j'0")
    return (I | panel) >> product


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", [(7, 9, 11), (2, 3, 4), (1, 1, 1), (5, 0, 3), (0, 4, 3)], ids=str)
def test_few_panels_share_tiles(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    agrees(in_blocks(2, 4, 3), normal((rows, inner), (inner, columns)))


def test_tiles_are_shared_block_by_block() -> None:
    ((tiled, cut),) = divided(lower(wire(in_blocks(6, 16, 128)))).apart
    loops = [s for s in walk(tiled.kernel.body) if isinstance(s, For)]
    assert [s.variable for s in loops if not s.parallel and s.limit is None] == ["j", "k"], "nothing is cut"
    assert [s.variable for s in tiled.tiles] == ["i"]
    assert [s.step for s in loops if s.parallel and s.limit is None] == [1, 6], "zeros, and tiles"
    assert not cut.tiles
    assert cut.long


def test_a_row_that_reduces_something_else_shares_no_tiles() -> None:
    """Scores of a block of keys, their maximum and their sum would be left to one thread."""
    (versions_apart,) = divided(lower(wire(flash_attention_2()))).apart
    assert [bool(version.tiles) for version in versions_apart] == [False]


def test_partial_results_as_large_as_the_operands_are_refused() -> None:
    """k outside, and the whole product inside: each chunk of k would take a matrix."""
    kernel = programs.matmul(8, 16, block=8).kernels[0]
    program = programs.matmul(8, 16, block=8)
    outer = kernel.body[-1]
    assert isinstance(outer, For)
    assert chunked(outer, (), {b.name: b for b in program.buffers}, "_chunk") is None


BUFFERS = {b.name: b for b in (tensor("in0", M, K), tensor("out0", M, K), local("acc"), local("far"))}


@pytest.mark.parametrize(
    "body",
    [
        (Accumulate(at("acc"), "max", at("in0", "i", "k")), Assign(at("out0", "i", "k"), at("acc"))),
        (Accumulate(at("acc"), "add", apply("mul", at("in0", "i", "k"), at("acc"))),),
        (Accumulate(at("acc"), "add", at("in0", "i", "k")), Accumulate(at("acc"), "max", at("in0", "i", "k"))),
        (Assign(at("acc"), apply("mul", at("acc"), at("in0", "i", "k"))),),
        (Accumulate(at("acc"), "add", at("in0", "i", "k")), Accumulate(at("far"), "add", at("acc"))),
        (Declare("far"), Assign(at("far"), at("acc")), Accumulate(at("acc"), "add", at("far"))),
        (Accumulate(at("acc"), "or", at("in0", "i", "k")),),
    ],
    ids=["scan", "feedback", "two ops", "rescaled by what is read", "read by another", "through a local", "logic"],
)
def test_what_is_not_a_reduction_is_refused(body: tuple[Accumulate | Assign | Declare, ...]) -> None:
    assert chunked(loop("k", K, *body), (loop("i", M),), BUFFERS, "_chunk") is None
