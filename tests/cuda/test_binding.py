"""Which threads run what, and where data lives."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq import Component, i
from ilang_eq.cuda.emit import bound, emit
from ilang_eq.cuda.math import NAMES
from ilang_eq.cuda.nodes import Barrier, Combine, Copy, Node, Sweep
from ilang_eq.cuda.steps import BLOCKS_WITH_SCRATCH, Step, layout, steps, workspaces
from ilang_eq.cuda.storage import MOST_SHARED_BYTES, blocks_of, shared_bytes
from ilang_eq.cuda.tiles import in_line
from ilang_eq.lower.ir import Apply, Constant, Load, Precision
from ilang_eq.lower.scalar import spell
from tests.c import programs
from tests.cuda.schedules import ATTENTION, NAMED, SOFTMAX, attention, dots, matmul, program
from tests.golden import Golden


def walk(nodes: tuple[Node, ...]) -> list[Node]:
    return [n for node in nodes for n in (node, *(walk(node.body) if isinstance(node, Sweep) else []))]


def test_a_product_keeps_its_sums_in_registers_and_its_copies_in_shared_memory() -> None:
    ((launch, homes),) = bound(program(matmul(64, 16)))
    assert [loop.variable for loop in launch.grid] == ["i", "j"]
    assert (launch.block.x, launch.block.y) == (16, 16)
    assert (homes["out0_sum"].where, homes["out0_sum"].dims) == ("registers", (4, 4))
    assert [homes[name].where for name in ("add0", "add1", "in0", "out0")] == ["shared", "shared", "memory", "memory"]


def test_a_reduction_whose_shares_would_not_fit_registers_stays_in_a_thread() -> None:
    """4096 sums along y would leave 512 of them to each thread along x."""
    for rows, shared in ((64, True), (4096, False)):
        product = i(f"ij*j~ij|i:{rows}|iji'") >> i(f"+ij~i|i:{rows}|iji'0")
        ((launch, _),) = bound(program(product))
        assert any(isinstance(node, Combine) for node in walk(launch.body)) == shared


def test_larger_tiles_get_larger_register_tiles_before_more_threads() -> None:
    ((launch, homes),) = bound(program(matmul(128, 8)))
    assert launch.block.threads == 256
    assert homes["out0_sum"].dims == (8, 8)


def test_copies_take_neighbours_in_one_line() -> None:
    ((launch, _),) = bound(program(matmul(64, 16)))
    rows, columns = (node for node in walk(launch.body) if isinstance(node, Copy))
    assert (rows.loops[-1].variable, rows.width, rows.runs) == ("k1", 4, 256)
    assert (columns.loops[-1].variable, columns.width, columns.runs) == ("j1", 4, 256)
    assert columns.position(5) == {"k1": 0, "j1": 20}
    assert rows.position(5) == {"i1": 4, "k1": 4}, "row 1 shares banks with row 0"


@given(st.sampled_from([4, 8, 16, 24, 32, 64]), st.sampled_from([8, 16, 20, 64]), st.sampled_from([1, 4]))
def test_rows_that_are_written_together_have_banks_of_their_own(depth: int, length: int, width: int) -> None:
    """As the text has it and as the cost model has it: every element once, eight threads in as many runs of banks."""
    ((launch, _),) = bound(program(matmul(64, 16)))
    copy = next(node for node in walk(launch.body) if isinstance(node, Copy))
    rows, near = (replace(loop, limit=n) for loop, n in zip(copy.loops, (length, depth), strict=True))
    copy = replace(copy, loops=(rows, near), width=width)
    threads = 64
    text = re.findall(r"const int (\w+) = (.*);", "\n".join(in_line(copy, width, threads, [])))
    taken: list[tuple[int, int]] = []
    for run in range(copy.runs):
        known = {"add0_trip": run // threads, "thread": run % threads}
        for name, value in text:
            value = value.replace("threadIdx.x", "thread").replace("/", "//")
            known[name.removesuffix("_run")] = eval(value, {}, dict(known))
        assert {name: known[name] for name in ("i1", "k1")} == copy.position(run)
        taken.append((known["i1"], known["k1"]))
    assert sorted(taken) == [(i, k) for i in range(length) for k in range(0, depth, width)]
    if width == 4 and length % 8 == 0 and depth in (8, 16, 32, 64):
        for first in range(0, copy.runs, 8):
            words = {(i * (depth + 4) + k) // 4 % 8 for i, k in taken[first : first + 8]}
            assert len(words) == 8


def widths(component: Component) -> dict[str, int]:
    return {
        node.source.variable: node.width
        for launch, _ in bound(program(component))
        for node in walk(launch.body)
        if isinstance(node, Sweep) and node.dim is not None
    }


def test_threads_take_runs_of_neighbours() -> None:
    assert widths(matmul(64, 16)) == {"i1": 4, "j1": 4, "i_2": 4, "j_2": 4}
    assert set(widths(matmul(32, 16)).values()) == {2}
    assert widths(NAMED["pointwise"]) == {"j": 4}
    assert set(widths(NAMED["transpose"]).values()) == {1}, "rows of the result are far apart"


def test_rows_of_whole_runs_begin_at_multiples_of_their_size() -> None:
    ((_, homes),) = bound(program(matmul(64, 16)))
    assert (homes["add0"].dims, homes["add0"].aligned, homes["add0"].stages) == ((64, 20), 4, 4)
    assert (homes["add1"].dims, homes["add1"].aligned) == ((16, 68), 4)


def test_runs_are_moved_where_arrays_and_rows_allow_it() -> None:
    source = emit(program(matmul(64, 16))).source
    whole, _, rest = source.partition("} else {\n            // +ijk~ij")
    assert "aligned(in0) && in0_1 % 4 == 0 && aligned(in1) && in1_1 % 4 == 0 && aligned(out0);" in whole
    assert [whole.count(name) for name in ("begin_4(&add0", "begin_4(&add1", "write_4(out0")] == [2, 2, 1]
    assert rest
    assert "begin_4" not in rest
    assert "write_4" not in rest


def test_tiles_are_copied_while_the_ones_before_are_in_use() -> None:
    ((launch, _),) = bound(program(matmul(64, 16)))
    (loop,) = (node for node in walk(launch.body) if isinstance(node, Sweep) and node.ahead)
    assert (loop.source.variable, len(loop.ahead)) == ("k", 2)
    assert not any(isinstance(node, Barrier) for node in loop.body), "the one that an iteration begins with will do"
    kept = bound(program(i("+ij~ij|i:16,j:16|iji'j'") >> i("ij+ij~ij|i:16,j:16|ij0i'j'")))
    assert not any(isinstance(node, Sweep) and node.ahead for launch, _ in kept for node in walk(launch.body))


def test_large_tiles_are_asked_for_and_lie_apart() -> None:
    module = emit(program(matmul(128, 32)))
    (entry,) = module.entries
    found = re.findall(r"auto &(\w+) = .*\(\*\)((?:\[\d+\])+)>\(shared_memory \+ (\d+)\);", module.source)
    ends = [4 * (int(first) + prod(map(int, re.findall(r"\d+", sizes)))) for _, sizes, first in found]
    starts = [4 * int(first) for _, _, first in found]
    assert [name for name, _, _ in found] == ["add0", "add1"]
    assert starts == [0, ends[0]]
    assert ends[-1] == entry.shared
    assert all(start % 16 == 0 for start in starts)


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


@given(st.integers(0, 10**6))
def test_buffers_share_memory_only_if_no_launch_needs_both(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"b{n}" for n in range(rng.integers(1, 6))]
    entry, *_ = emit(program(NAMED["pointwise"])).entries
    launches = tuple(
        Step(
            replace(entry, pointers=tuple(name for name in names if rng.random() < 0.5)),
            1,
            tuple(int(n) for n in rng.integers(1, 500, rng.integers(0, 3))),
            (),
        )
        for _ in range(rng.integers(1, 6))
    )
    floats = {name: int(rng.integers(0, 1000)) for name in names}
    found = layout(floats, launches)
    spans: list[tuple[int, int, set[int]]] = []
    for name, count in floats.items():
        needed = [n for n, step in enumerate(launches) if name in step.entry.pointers]
        spans.append((found.workspaces[name], 4 * count, set(range(needed[0], needed[-1] + 1)) if needed else set()))
    for n, step in enumerate(launches):
        spans += [(at, 4 * count, {n}) for at, count in zip(found.scratch[n], step.scratch, strict=True)]
    for k, (start, size, needed) in enumerate(spans):
        assert start % 256 == 0
        assert start + size <= found.bytes
        for other, other_size, others in spans[:k]:
            apart = start + size <= other or other + other_size <= start
            assert apart or not needed & others


def test_memory_of_what_is_done_is_used_again() -> None:
    """Attention without a schedule: the products of the first sums are gone before those of the second are made."""
    unscheduled = i("ik*jk~ijk") >> i("+ijk~ij") >> i("^ij~ij") >> i("ij*jk~ikj") >> i("+ikj~ik")
    module = emit(program(unscheduled))
    shapes = ((64, 16), (64, 16), (64, 16))
    launches, floats = steps(module, shapes), workspaces(module, shapes)
    assert sum(count >= 64 * 64 * 16 for count in floats.values()) == 2
    assert layout(floats, launches).bytes < 4 * 1.2 * 64 * 64 * 16


def test_nothing_to_do_is_not_launched() -> None:
    module = emit(program(i("ij+ij~ij")))
    assert steps(module, ((0, 5), (0, 5))) == ()


@pytest.mark.parametrize("op", ["exp", "ln", "pow", "log", "finite_or", "shift_factor", "max", "min", "abs"])
def test_every_function_that_is_spelled_exists(op: str) -> None:
    x = Load("x", ())
    count = {"exp": 1, "ln": 1, "abs": 1, "shift_factor": 3}.get(op, 2)
    for arguments in ((x,) * count, (Constant(2.0), x)[:count], (x, Constant(0.5))[:count], (x, Constant(4.0))[:count]):
        if len(arguments) == count:
            assert getattr(spell(Apply(op, arguments)), "function", "larger") in NAMES


@pytest.mark.parametrize("name", ["matmul", "softmax", "attention", "sum"])
def test_golden_source(name: str, golden: Golden) -> None:
    golden.check(f"{name.replace(' ', '_')}.cu", emit(program(NAMED[name])).source)


def test_golden_source_for_tensor_cores(golden: Golden) -> None:
    granted = replace(program(dots(32, 16, 8)), precision="tf32x3")
    golden.check("dots_tf32x3.cu", emit(granted).source)


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_tiles_have_as_many_places_as_leave_room_for_the_blocks_that_registers_do(precision: Precision) -> None:
    for component in (matmul(64, 16), matmul(128, 32), attention(64, 32, 64, 32)):
        ((launch, homes),) = bound(replace(program(component), precision=precision))
        (stages,) = {home.stages for home in homes.values() if home.stages > 1}
        room = MOST_SHARED_BYTES // blocks_of(launch, homes)
        assert 2 <= stages <= 4
        assert stages == 2 or shared_bytes(launch, homes) <= room


def test_warps_are_square_where_threads_have_runs_both_ways() -> None:
    """8 × 4 threads of a product's block; but those of a row together where a row is reduced."""
    ((launch, _),) = bound(program(matmul(128, 16)))
    assert (launch.block.x, launch.block.y, launch.block.across) == (16, 16, 8)
    assert len({(launch.block.position("x", lane), launch.block.position("y", lane)) for lane in range(32)}) == 32
    ((launch, _),) = bound(program(attention(64, 64, 64, 16)))
    assert launch.block.across == 32


def test_the_source_is_the_same_every_time() -> None:
    assert emit(program(ATTENTION)) == emit(program(ATTENTION))
