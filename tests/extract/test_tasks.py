"""What threads share of a nest: the model says what the versions of a kernel do."""

from __future__ import annotations

from ilang_eq.extract.footprint import Extents, bytes_of
from ilang_eq.extract.tasks import Chunks, Tasks, chunks_of
from ilang_eq.extract.tasks import tasks_of as shared
from ilang_eq.extract.trips import Loop, evaluate
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.fills import in_first_blocks
from ilang_eq.lower.ir import Buffer, For


def panels(columns: int, block: int) -> Component:
    """A product of (i, k) and (k, j) in tiles of 6 rows that goes through panels, whose rows come by the block."""
    product = f"|i:6,j:{columns},k:{block}|jk"
    return (I | i(f"+kj~kj|j:{columns},k:{block}|jkk'j'")) >> (
        i(f"ik*kj~kij{product}1ik'i'j'") >> i(f"+kij~ij{product}ik'i'j'0")
    )


Nest = tuple[Loop, For, tuple[Buffer, ...], Extents]


def nest(component: Component, *shapes: tuple[int, ...]) -> Nest:
    """The last outermost loop of ``component`` at the extents of ``shapes``, and as it is written."""
    extents = {(n, d): extent for n, shape in enumerate(shapes) for d, extent in enumerate(shape)}
    program = lower(wire(component))
    last, written = evaluate(in_first_blocks(program.kernels[-1]).body, extents)[-1], program.kernels[-1].body[-1]
    assert isinstance(last, Loop)
    assert isinstance(written, For)
    return last, written, program.buffers, extents


def cut(found: Nest) -> Chunks | None:
    loop, written, buffers, _ = found
    return chunks_of(loop, written, buffers)


def tasks_of(found: Nest, threads: int) -> Tasks:
    loop, written, _, extents = found
    return shared(loop, written, cut(found), threads, extents)


def product(rows: int, inner: int, columns: int) -> Nest:
    return nest(panels(64, 256), (rows, inner), (inner, columns))


def test_many_panels_are_the_tasks() -> None:
    tasks = tasks_of(product(600, 1024, 512), threads=2)
    assert (tasks.number, tasks.positions, tasks.entered) == (8, 0, 1)


def test_few_panels_have_tiles_of_rows_in_each_block() -> None:
    tasks = tasks_of(product(600, 1024, 448), threads=2)
    assert (tasks.number, tasks.positions) == (100, 0)
    assert tasks.entered == 7 * 4 * 2, "a panel is packed and used, block by block"
    assert tasks_of(product(600, 1024, 448), threads=1).number == 7


def test_even_rows_share_no_tiles() -> None:
    assert tasks_of(product(600, 1024, 384), threads=2).number == 6
    assert tasks_of(product(600, 1024, 384), threads=4).number == 100, "two have one panel, and two have two"
    assert tasks_of(product(600, 1024, 362), threads=2).number == 6, "the last panel is short"
    assert tasks_of(product(600, 1024, 340), threads=2).number == 100, "by much"


def test_tiles_that_are_not_worth_sharing() -> None:
    assert tasks_of(product(42, 1024, 448), threads=2).number == 7, "few"
    assert tasks_of(nest(panels(16, 16), (600, 1024), (1024, 112)), threads=2).number == 7, "little to do in each block"


def test_what_reduces_in_a_row_besides_tiles_is_not_left_to_one_thread() -> None:
    softmax = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
    assert tasks_of(nest(softmax, (3, 4096)), threads=2).number == 3


def test_rows_of_several_loops() -> None:
    tasks = tasks_of(nest(i("+ijk~ij|i:4,j:8|iji'j'k"), (40, 64, 100)), threads=3)
    assert (tasks.number, tasks.positions) == (80, 10)
    assert tasks.used(3) == 3
    assert tasks.share(3) == 27 / 80
    assert tasks.share(1) == 1.0


def test_a_reduction_outside_everything_else_is_shared_in_chunks() -> None:
    columns = nest(i("+ij~j||ij"), (4096, 512))
    assert tasks_of(columns, threads=2).number == 4096 / 256
    assert tasks_of(columns, threads=1).number == 1
    tiled = nest(i("+ij~j|i:6|iji'"), (4096, 512))
    assert tasks_of(tiled, threads=2).number == 16, "chunks of 258 rows"


def test_few_rows_share_chunks_of_what_they_reduce() -> None:
    tile = "|j:32,k:6|ikjk'j'"
    rows = i(f"ik*kj~ikj{tile}") >> i(f"+ikj~ij{tile}0")
    assert tasks_of(nest(rows, (1, 2048), (2048, 2048)), threads=2).number == 8, "chunks of 258"
    assert tasks_of(nest(rows, (1, 2048), (2048, 2048)), threads=1).number == 1
    assert tasks_of(nest(rows, (3, 500), (500, 2048)), threads=2).number == 3, "two chunks are fewer than the rows"


def test_chunks_have_results_of_their_own_with_any_number_of_threads() -> None:
    tile = "|j:32,k:6|ikjk'j'"
    rows = i(f"ik*kj~ikj{tile}") >> i(f"+ikj~ij{tile}0")
    chunks = cut(nest(rows, (1, 2048), (2048, 2048)))
    assert chunks is not None
    assert (chunks.number, chunks.rows) == (8, 1)
    extents = {(0, 0): 1, (0, 1): 2048, (1, 0): 2048, (1, 1): 2048}
    assert bytes_of(chunks.results, extents) == 4 * 8 * 2048, "a row of sums each"
    assert cut(nest(rows, (3, 500), (500, 2048))) is None, "two chunks are fewer than the rows"
    assert cut(nest(rows, (1, 200), (200, 2048))) is None, "a single one"
    assert cut(product(600, 1024, 448)) is None, "tiles are shared"


def test_a_reduction_with_partial_results_as_large_as_what_it_reads_is_not_shared() -> None:
    outer_product = nest(i("ki*kj~kij||kij") >> i("+kij~ij||kij0"), (4096, 512), (4096, 512))
    assert tasks_of(outer_product, threads=2).number == 1
