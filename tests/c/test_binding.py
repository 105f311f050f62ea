"""What loops are bound to: registers, vectors, versions, tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang_eq.c.binding import bind
from ilang_eq.c.nodes import Fold, Held, Loop, Node, Parallel, Registers, Room, Seldom, Simd, VectorNest, Versions
from ilang_eq.c.registers import LONG, strip_mined
from ilang_eq.lower.dependence import independent, reductions
from ilang_eq.lower.ir import Accumulate, Assign, Constant, Declare, For, Kernel
from tests.c import programs
from tests.c.programs import K, M, N, apply, at, loop


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        match node:
            case Loop() | Registers() | Parallel():
                yield from walk(node.body)
            case Versions(_, full, tail):
                yield from walk(full)
                yield from walk(tail)
            case _:
                pass


def bound(*statements: For) -> list[Node]:
    return list(walk(bind(Kernel("k", statements))))


def of(kind: type, nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if isinstance(node, kind)]


def test_matmul_tiles_live_in_registers_in_two_versions() -> None:
    """And the tail again in two, one for each number of vectors."""
    nodes = list(walk(bind(programs.matmul(6, 32).kernels[0])))
    versions, widths = of(Versions, nodes)
    assert isinstance(versions, Versions)
    assert [str(fact.extent) for fact in versions.facts] == ["in0.0", "in1.1"]
    assert [fact.limit for fact in versions.facts] == [6, 32]
    assert isinstance(widths, Versions)
    assert [(str(fact.extent), fact.outer, fact.limit) for fact in widths.facts] == [("in1.1", ("j",), 17)]
    full, *tails = of(Registers, nodes)
    assert isinstance(full, Registers)
    assert full.tiles[0].dims == (6, 32)
    assert not full.partial
    for tail, width in zip(tails, (32, 16), strict=True):
        assert isinstance(tail, Registers)
        assert tail.tiles[0].dims == (6, width)
        assert [short.variable for short in tail.partial] == ["i1", "j1"]


def test_a_tile_that_is_no_whole_vectors_lives_in_registers_under_a_mask() -> None:
    full, tail = of(Registers, list(walk(bind(programs.matmul(6, 14).kernels[0]))))
    assert isinstance(full, Registers)
    assert isinstance(tail, Registers)
    assert [tile.dims for tile in (*full.tiles, *tail.tiles)] == [(6, 16), (6, 16)]
    assert [short.variable for short in full.partial] == ["j1"]
    assert [short.variable for short in tail.partial] == ["i1", "j1"]


def test_a_sum_over_lanes_that_are_no_whole_vectors_goes_under_a_mask() -> None:
    """A lane beyond the end would be added."""
    nodes = list(walk(bind(programs.dot_products(4, 4, 14).kernels[0])))
    (lane,) = {nest.loops[-1].variable for nest in of(VectorNest, nodes) if nest.reduced}
    sums = [nest for nest in of(VectorNest, nodes) if nest.reduced]
    assert sums
    assert all(lane in nest.partial for nest in sums)


def test_initialisation_before_a_tile_is_absorbed() -> None:
    nodes = list(walk(bind(programs.matmul(6, 32).kernels[0])))
    for registers in of(Registers, nodes):
        assert isinstance(registers, Registers)
        start = registers.body[0]
        assert isinstance(start, VectorNest)
        assert isinstance(start.body[0], Assign)
        assert start.body[0].value == Constant(0.0)
    assert not of(Simd, nodes)


def test_all_of_a_tile_is_in_registers_between_its_loop_and_what_stores_it() -> None:
    """In whole tiles and in tails, in whose loops GCC would store what is used after them only."""
    tiles = of(Registers, list(walk(bind(programs.matmul(6, 32).kernels[0]))))
    assert len(tiles) == 3
    for registers in tiles:
        assert isinstance(registers, Registers)
        (held,) = of(Held, registers.body)
        assert isinstance(held, Held)
        assert [loop.limit for loop in held.loops] == list(registers.tiles[0].dims)
        assert held.tile == at(registers.tiles[0].name, "i1", "j1")
        place = registers.body.index(held)
        assert isinstance(registers.body[place - 1], Loop)
        assert isinstance(registers.body[place + 1], Seldom), "what the first block stores, others add to"


def test_without_an_initialisation_the_tile_is_added_to_what_is_there() -> None:
    nodes = list(walk(bind(programs.matmul(8, 16, block=LONG).kernels[0])))
    registers = of(Registers, nodes)[0]
    assert isinstance(registers, Registers)
    start, room, *_, joined, stored = registers.body
    there, tile = at("out0", "i+i1", "j+j1"), at("out0_tile", "i1", "j1")
    assert isinstance(start, VectorNest)
    assert start.body == (Assign(tile, Constant(0.0)),)
    assert isinstance(room, Room)
    assert (room.target, room.floats) == (at("out0", "i+i1", "j"), 16)
    assert isinstance(joined, VectorNest)
    assert joined.body == (Assign(tile, apply("add", there, tile)),)
    assert isinstance(stored, VectorNest)
    assert stored.body == (Assign(there, tile),)
    assert not of(Room, list(walk(bind(programs.matmul(8, 16, block=LONG - 1).kernels[0])))), "too soon"


def test_matmul_tasks_are_tiles_of_both_axes() -> None:
    (parallel,) = bind(programs.matmul(6, 32).kernels[0])
    assert isinstance(parallel, Parallel)
    assert [task.variable for task in parallel.loops] == ["i", "j"]
    (parallel,) = bind(programs.batched_sums().kernels[0])
    assert isinstance(parallel, Parallel)
    assert [task.variable for task in parallel.loops] == ["b", "i", "j"]


def test_lanes_along_a_reduction_are_folded_at_the_end() -> None:
    nodes = list(walk(bind(programs.dot_products(4, 4, 16).kernels[0])))
    parts = [node.part for node in of(Loop, nodes) if isinstance(node, Loop) and node.source.variable == "k"]
    assert parts == ["main", "rest", "main", "rest"]
    folds = of(Fold, nodes)
    assert len(folds) == 2
    assert all(isinstance(fold, Fold) and [x.variable for x in fold.loops] == ["i1", "j1"] for fold in folds)


def test_a_long_reduction_is_stripped_into_independent_accumulators() -> None:
    nodes = bound(loop("k", K, Accumulate(at("out0"), "add", at("in0", "k")), reduces=True))
    (registers,) = of(Registers, nodes)
    assert isinstance(registers, Registers)
    assert registers.tiles[0].dims == (64,)


def test_a_strided_reduction_is_left_to_the_compiler() -> None:
    nodes = bound(loop("k", K, Accumulate(at("out0"), "add", at("in0", "k", "j")), reduces=True))
    (simd,) = nodes
    assert isinstance(simd, Simd)
    assert [reduction.op for reduction in simd.reductions] == ["add"]


def test_a_recurrence_stays_scalar() -> None:
    """acc is read by another statement of the same iteration: the iterations depend on each other."""
    body = (
        Accumulate(at("acc"), "max", at("in0", "k")),
        Assign(at("out0", "k"), apply("sub", at("in0", "k"), at("acc"))),
    )
    scan = loop("k", K, *body)
    assert reductions(scan) is None
    assert isinstance(bound(scan)[0], Loop)


def test_a_shifted_write_is_a_dependence() -> None:
    moved = loop("i", M, Assign(at("out0", "i"), at("out0", "j")))
    assert not independent(moved)
    assert independent(loop("i", M, Assign(at("out0", "i", "j"), at("out0", "i", "j"))))


def test_tiles_are_independent_if_their_parts_stay_inside_a_step() -> None:
    inside = loop("i1", M, Assign(at("out0", "i+i1"), Constant(1.0)), limit=16, outer=("i",))
    assert independent(loop("i", M, inside, step=16))
    assert not independent(loop("i", M, inside, step=8))


def test_a_local_of_the_body_is_private() -> None:
    body = (Declare("t"), Assign(at("t"), at("in0", "i")), Assign(at("out0", "i"), at("t")))
    assert independent(loop("i", M, *body))
    assert not independent(loop("i", M, *body[1:]))


def test_strips_keep_what_they_cannot_vectorise() -> None:
    scattered = loop("k", K, Accumulate(at("out0"), "add", at("in0", "k", "k")), reduces=True)
    assert strip_mined(scattered) is scattered
    odd = loop("k", K, Accumulate(at("out0"), "add", at("in0", "k")), limit=6, outer=("j",), reduces=True)
    assert strip_mined(odd) is odd


def test_an_innermost_parallel_loop_is_not_torn_into_tasks_of_one_element() -> None:
    body = loop("j", N, Assign(at("out0", "i", "j"), Constant(0.0)), parallel=True)
    (parallel,) = bind(Kernel("k", (loop("i", M, body, parallel=True),)))
    assert isinstance(parallel, Parallel)
    assert [task.variable for task in parallel.loops] == ["i"]


def test_far_lanes_of_a_tile_are_gathered() -> None:
    """b is read down its columns, once for all rows of the tile: still registers, not a scalar loop."""
    product = apply("mul", at("in0", "i+i1", "k"), at("in1", "j+j1", "k"))
    lane = loop("j1", N, Accumulate(at("out0", "i+i1", "j+j1"), "add", product), limit=16, outer=("j",))
    nest = loop("k", K, loop("i1", M, lane, limit=4, outer=("i",)), reduces=True)
    nodes = bound(loop("i", M, loop("j", N, nest, step=16), step=4))
    assert [node.tiles[0].dims for node in of(Registers, nodes) if isinstance(node, Registers)] == [(4, 16), (4, 16)]


def test_tiles_too_large_to_unroll_stay_loops() -> None:
    lane = loop("j1", N, Accumulate(at("out0", "i1", "j1"), "add", at("in0", "k", "j1")), limit=512, outer=("j",))
    nodes = bound(loop("k", K, loop("i1", M, lane, limit=8, outer=("i",)), reduces=True))
    assert not of(Registers, nodes)
    assert of(Simd, nodes)
