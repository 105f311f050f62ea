"""Which threads run what, and where data lives."""

from __future__ import annotations

import pytest

from ilang_eq import i
from ilang_eq.cuda.emit import bound, emit
from ilang_eq.cuda.math import NAMES
from ilang_eq.cuda.nodes import Combine, Node, Sweep
from ilang_eq.cuda.steps import BLOCKS_WITH_SCRATCH, steps, workspaces
from ilang_eq.lower.ir import Apply, Constant, Load
from ilang_eq.lower.scalar import spell
from tests.c import programs
from tests.cuda.schedules import ATTENTION, NAMED, SOFTMAX, matmul, program
from tests.golden import Golden


def walk(nodes: tuple[Node, ...]) -> list[Node]:
    return [n for node in nodes for n in (node, *(walk(node.body) if isinstance(node, Sweep) else []))]


def test_a_product_keeps_its_sums_in_registers_and_its_copies_in_shared_memory() -> None:
    ((launch, homes),) = bound(program(matmul(64, 16)))
    assert [loop.variable for loop in launch.grid] == ["i", "j"]
    assert (launch.block.x, launch.block.y) == (16, 16)
    assert (homes["out0_sum"].where, homes["out0_sum"].dims) == ("registers", (4, 4))
    assert [homes[name].where for name in ("add0", "add1", "in0", "out0")] == ["shared", "shared", "memory", "memory"]


def test_larger_tiles_get_larger_register_tiles_before_more_threads() -> None:
    ((launch, homes),) = bound(program(matmul(128, 8)))
    assert launch.block.threads == 256
    assert homes["out0_sum"].dims == (8, 8)


def test_copies_read_neighbours_along_x() -> None:
    ((launch, _),) = bound(program(matmul(64, 16)))
    dims = {s.source.variable: s.dim for s in walk(launch.body) if isinstance(s, Sweep) if s.source.limit == 16}
    assert dims["k1"] is None, "the product's own loop over k is not shared out"
    source = emit(program(matmul(64, 16))).source
    assert "const int k1 = tx;" in source


def test_statistics_are_combined_by_shuffles_and_the_weights_shared() -> None:
    ((launch, homes),) = bound(program(ATTENTION))
    assert [node.dim for node in walk(launch.body) if isinstance(node, Combine)] == ["x", "x"]
    assert "__shfl_xor_sync" in emit(program(ATTENTION)).source
    kept = {name for name, home in homes.items() if home.where == "registers"}
    assert {"max2", "add7", "add1", "sub3"} <= kept


def test_a_row_is_shared_by_a_block_and_lies_in_memory_of_its_own() -> None:
    ((launch, homes),) = bound(program(SOFTMAX))
    assert launch.block.threads == 256
    assert homes["pow2"].where == "scratch", "the length of a row is not known"
    module = emit(program(SOFTMAX))
    (step,) = steps(module, ((100_000, 30),))
    assert step.blocks == BLOCKS_WITH_SCRATCH
    assert step.scratch[0] == BLOCKS_WITH_SCRATCH * 30


def test_loops_without_a_schedule_are_cut_up_for_the_threads() -> None:
    ((launch, _),) = bound(program(i("ij+ij~ij")))
    assert [(loop.variable, loop.step) for loop in launch.grid] == [("i", 1), ("j_tile", 1024)]


def test_launches_hand_on_what_outlives_them() -> None:
    module = emit(programs.two_kernels())
    assert workspaces(module, ((9, 40), ())) == {"mul0_all": 360}


def test_nothing_to_do_is_not_launched() -> None:
    module = emit(program(i("ij+ij~ij")))
    assert steps(module, ((0, 5), (0, 5))) == ()


@pytest.mark.parametrize("op", ["exp", "ln", "pow", "log", "finite_or", "shift_factor", "max", "min"])
def test_every_function_that_is_spelled_exists(op: str) -> None:
    x = Load("x", ())
    count = {"exp": 1, "ln": 1, "shift_factor": 3}.get(op, 2)
    for arguments in ((x,) * count, (Constant(2.0), x)[:count], (x, Constant(0.5))[:count], (x, Constant(4.0))[:count]):
        if len(arguments) == count:
            assert getattr(spell(Apply(op, arguments)), "function", "larger") in NAMES


@pytest.mark.parametrize("name", ["matmul", "softmax", "attention", "sum"])
def test_golden_source(name: str, golden: Golden) -> None:
    golden.check(f"{name.replace(' ', '_')}.cu", emit(program(NAMED[name])).source)


def test_the_source_is_the_same_every_time() -> None:
    assert emit(program(ATTENTION)) == emit(program(ATTENTION))
