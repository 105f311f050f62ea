"""What nests of a block find in registers."""

from __future__ import annotations

from ilang_eq import Component, I, i
from ilang_eq.extract.in_registers import inside, is_near
from ilang_eq.extract.issue import issue_time
from ilang_eq.extract.machine import load
from ilang_eq.extract.tally import NOTHING
from ilang_eq.extract.trips import Loop, evaluate
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.fills import in_first_blocks

ZEN = load("x86_64_zen")


def nearest(tile: str, order: str, rows: str, reading: str) -> Component:
    """The least of squared distances, in tiles of 6 × ``tile``."""
    return (
        i(f"+ik~ki|i:{rows},k:4|ikk'i'")
        >> i(f"ki-jk~kji|i:{tile},j:6|i0{order}")
        >> (I & I)
        >> i(f"kji*kji~kji|i:{tile},j:6|i{order}01")
        >> i(f"+kji~ji|i:{tile},j:6|i{order}0")
        >> i(f"<ji~i|i:{rows},j:6|{reading}")
    )


ALONE = nearest("16", "jkj'i'", "16", "ij0j'i'")
BLOCKS = nearest("4:16", "ji'kj'i''", "64", "ij0j'i'")


def nests(component: Component, *shapes: tuple[int, ...]) -> tuple[Loop, ...]:
    graph = wire(component)
    (kernel,) = lower(graph).kernels
    found = evaluate(in_first_blocks(kernel).body, infer(graph).bind(shapes))
    return tuple(node for node in found if isinstance(node, Loop))


def within(loop: Loop, *variables: str) -> Loop:
    """The loop that one comes to through ``variables``."""
    for variable in variables:
        loop = next(node for node in loop.body if isinstance(node, Loop) and node.variable == variable)
    return loop


def test_tiles_begin_with_what_they_are_set_to() -> None:
    (rows,) = nests(ALONE, (2048, 16), (2048, 16))
    assert inside(within(rows, "j"), NOTHING).begun == {"add3"}
    assert not inside(rows, NOTHING).begun
    assert not inside(within(rows, "j", "k"), NOTHING).begun


def test_sums_that_come_in_blocks_are_loaded() -> None:
    product = i("ik*kj~kij|i:6,j:16,k:8|kijk'i'j'") >> i("+kij~ij|i:6,j:16,k:8|kijk'i'j'0")
    (blocks,) = nests(product, (48, 64), (64, 48))
    assert not inside(within(blocks, "i", "j"), NOTHING).begun


def test_a_tile_is_near_if_what_reads_it_comes_right_after() -> None:
    (rows,) = nests(ALONE, (2048, 16), (2048, 16))
    block = within(rows, "j")
    known = inside(block, NOTHING)
    assert known.near == {"add3"}
    assert [is_near(node, known) for node in block.body if isinstance(node, Loop)] == [False, False, True]


def test_tiles_of_which_several_are_read_at_once_are_in_memory() -> None:
    (rows,) = nests(BLOCKS, (2048, 16), (2048, 16))
    tiles = within(rows, "j", "i1")
    assert inside(tiles, NOTHING).begun == {"add3"}
    assert not inside(tiles, NOTHING).near
    assert not inside(within(rows, "j"), NOTHING).near


def test_a_large_tile_is_read_in_a_loop() -> None:
    wide = nearest("128", "jkj'i'", "128", "ij0j'i'")
    (rows,) = nests(wide, (2048, 16), (2048, 16))
    assert not inside(within(rows, "j"), NOTHING).near


def test_near_tiles_take_less() -> None:
    """By itself 0.88 on Zen 3, where 2048² distances take 1.54 and 1.75 ms."""
    alone, blocks = (issue_time(nests(c, (2048, 16), (2048, 16)), ZEN) for c in (ALONE, BLOCKS))
    assert alone < 0.99 * blocks
