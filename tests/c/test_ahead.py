"""Panels are asked for before they are read: all of them, nothing else, and wherever the shape ends."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq.c import ahead
from ilang_eq.c.ahead import COPIED, SOON, STREAMED
from ilang_eq.c.emit import emit
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Program
from tests.c.counting import counters
from tests.golden import Golden

ROWS = (I | i("+kj~kj|j:16|jkj'")) >> i("ik*kj~kij|i:4,j:16|jiki'j'") >> i("+kij~ij|i:4,j:16|jiki'j'0")
PAIRS = (I | i("+kj~kj|j:2:16|jj'kj''")) >> i("ik*kj~kij|i:4,j:2:16|jij'ki'j''") >> i("+kij~ij|i:4,j:2:16|jij'ki'j''0")
CHUNKS = (
    (I | i("+kj~kj|j:16,k:8|kjk'j'")) >> i("ik*kj~kij|i:4,j:16,k:8|kjik'i'j'") >> i("+kij~ij|i:4,j:16,k:8|kjik'i'j'0")
)
ONCE = (I | i("+kj~kj|j:4|jkj'")) >> i("ik*kj~kji|i:16,j:4|ijkj'i'") >> i("+kji~ij|i:16,j:4|ijkj'i'0")
PARTS = (I | i("+kj~kj|j:32|jkj'")) >> i("ik*kj~kij|i:4,j:2:16|jij'ki'j''") >> i("+kij~ij|i:4,j:2:16|jij'ki'j''0")
FORMS: dict[str, Component] = {"rows": ROWS, "pairs": PAIRS, "chunks": CHUNKS, "once": ONCE}

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def program(component: Component) -> Program:
    return lower(wire(component))


def operands(rows: int, width: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((rows, width), np.float32), rng.standard_normal((width, columns), np.float32)


def asked(
    component: Component,
    rows: int,
    width: int,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    by: str = "fetch_ahead",
) -> np.ndarray:
    """How often each of the first 64 K floats of the panels was asked for, by a kernel that counts."""
    place = "floats" if by == "fetch_ahead" else "first"

    def counting(source: str) -> str:
        body = re.compile(rf"(static inline void {by}\(.*?\)\n\{{\n).*?\n\}}", re.DOTALL)
        counted, found = body.subn(rf"int asked[1 << 16];\n\1    asked[{place}] += p != 0;\n}}", source)
        assert found == 1
        return counted

    counts = counters(counting, 1 << 16, monkeypatch)
    x, w = operands(rows, width, columns)
    np.testing.assert_allclose(CKernel(program(component), 1)(x, w), x @ w, rtol=1e-4, atol=1e-4)
    return counts[-1]


@needs_compiler
@pytest.mark.parametrize(
    ("form", "panel"), [("rows", 24 * 16), ("pairs", 24 * 32), ("chunks", 8 * 16), ("once", 24 * 4)]
)
def test_every_panel_but_the_first_is_asked_for(form: str, panel: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, width, columns = 33, 24, 100
    floats = -(-columns // 32) * 32 * width if form == "pairs" else -(-columns // 16) * 16 * width
    floats = columns * width if form == "once" else floats
    count = asked(FORMS[form], rows, width, columns, monkeypatch)
    lines = np.asarray(count.reshape(-1, 16).any(axis=1))
    assert lines[-(-panel // 16) : floats // 16].all()
    assert not count[1:panel].any(), "where there is no next panel, a line that is there is asked for"
    assert not count[floats + panel :].any()


@needs_compiler
def test_parts_of_rows_of_panels_are_asked_for_some_steps_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tile asks for the part that it reads; nothing asks for the next panel, which no reduction reads whole."""
    rows, width, columns = 33, 24, 64
    count = asked(PARTS, rows, width, columns, monkeypatch, "fetch_part")
    expected = {
        ((panel * width + k + SOON) * 2 + part) * 16 for panel in range(2) for k in range(width) for part in range(2)
    }
    assert set(np.flatnonzero(count)) == expected
    assert "fetch_ahead(" not in emit(program(PARTS))


@needs_compiler
@pytest.mark.parametrize("rows", [16, 400])
def test_shares_do_not_overlap(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last tile of rows asks for a line in each step: every line once, and nothing else."""
    count = asked(ROWS, rows, 24, 64, monkeypatch)
    assert (count[24 * 16 : 24 * 64 : 16] == 1).all()
    assert count.sum() == 3 * 24, "the other tiles have a loop that asks for nothing that comes next"


@pytest.mark.parametrize(
    ("rows", "panel", "by"),
    [(3, 32, "fetch_soon"), (4, 32, "fetch_part"), (6, 48, "fetch_part"), (6, 16, "fetch_soon")],
)
def test_parts_of_rows_are_asked_for_on_some_processors(rows: int, panel: int, by: str) -> None:
    """Unless a tile has few rows."""
    order = f"i:{rows},j:{panel // 16}:16|jij'ki'j''"
    pack = I | i(f"+kj~kj|j:{panel}|jkj'")
    text = emit(program(pack >> i(f"ik*kj~kij|{order}") >> i(f"+kij~ij|{order}0")))
    assert set(re.findall(rf"(fetch_\w+)\(add0\w*, .*\bk \+ {SOON}\)", text)) == {by}


@needs_compiler
@pytest.mark.parametrize(("form", "lanes", "depth"), [("rows", 16, 24), ("pairs", 16, 24), ("chunks", 16, 8)])
def test_rows_of_panels_are_asked_for_some_steps_ahead(
    form: str, lanes: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the tile, each row but the first few of a panel, and a few beyond its end."""
    rows, width, columns = 33, 24, 64
    count = asked(FORMS[form], rows, width, columns, monkeypatch, "fetch_soon")
    expected = {
        (panel * depth + k + SOON) * lanes for panel in range(columns * width // lanes // depth) for k in range(depth)
    }
    assert set(np.flatnonzero(count)) == expected
    assert count.max() <= 2 * -(-rows // 4), "once for each tile of rows, and by one other panel"


@needs_compiler
@pytest.mark.parametrize("form", ["rows", "chunks"])
def test_rows_are_asked_for_before_they_are_copied(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every panel each row but the first few, and nothing beyond the last one."""
    width, columns = 24, 64
    count = asked(FORMS[form], 5, width, columns, monkeypatch, "fetch_copied")
    expected = {k * columns + j for k in range(COPIED, width) for j in range(0, columns, 16)}
    assert set(np.flatnonzero(count)) == expected


def tall(columns: int) -> Component:
    """One row after another of the second factor, so many columns of each, in tiles of 8 rows."""
    tile = f"|j:{columns},k:8|ikjk'j'"
    return i(f"ik*kj~ikj{tile}") >> i(f"+ikj~ij{tile}0")


TALL = tall(128)


@needs_compiler
def test_rows_of_large_arguments_are_asked_for_a_page_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    width, columns = 24, 256
    monkeypatch.setattr(ahead, "FAR", width * columns)
    count = asked(TALL, 1, width, columns, monkeypatch, "fetch_streamed")
    steps = STREAMED // 128
    assert set(np.flatnonzero(count)) == {(k + steps) * columns + j for k in range(width) for j in (0, 128)}
    assert count.max() == 1
    assert not asked(TALL, 1, width, columns - 1, monkeypatch, "fetch_streamed").any(), "near enough without"


@needs_compiler
def test_rows_are_asked_for_along_which_a_reduction_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, width = 40, 64
    monkeypatch.setattr(ahead, "FAR", 1)
    component = i("+ij~i|i:32,j:64|iji'j'")
    source = emit(program(component))
    asked_for = f"fetch_streamed(in0, (i + i1 + {STREAMED // 64}) * in0_1 + j_block + j + j1, 64)"
    assert asked_for in source
    x = operands(rows, width, 1)[0]
    np.testing.assert_allclose(component.compile(threads=1)(x), x.sum(axis=1), rtol=1e-4, atol=1e-4)


@needs_compiler
def test_a_row_of_the_next_tile_is_not_asked_for_if_much_comes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    width, columns = 24, 256
    monkeypatch.setattr(ahead, "FAR", 1)
    monkeypatch.setattr(ahead, "ROOM", 8 * columns - 1)
    assert not asked(TALL, 1, width, columns, monkeypatch, "fetch_streamed").any()


def test_rows_are_not_asked_for_along_which_the_next_tiles_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefetchers follow narrow tiles along their rows, unless these soon go on with the rows below."""
    monkeypatch.setattr(ahead, "FAR", 1)
    assert "fetch_streamed(" in emit(program(tall(128)))
    assert "fetch_streamed(" not in emit(program(tall(64)))
    down = "|j:4:32,k:4|ijkj'k'j''"
    assert "fetch_streamed(" in emit(program(i(f"ik*kj~ikj{down}") >> i(f"+ikj~ij{down}0")))


@pytest.mark.parametrize("schedule", ["|i:4,j:16|jiki'j'", "|i:6:4,j:8:16,k:64|ijki'j'k'i''j''"])
def test_rows_that_are_read_again_while_they_are_near_are_not_asked_for(
    schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next reduction, or by all of the next row of tiles."""
    monkeypatch.setattr(ahead, "FAR", 1)
    component = i(f"ik*kj~kij{schedule}") >> i(f"+kij~ij{schedule}0")
    assert "fetch_streamed(" not in emit(program(component))
    monkeypatch.setattr(ahead, "NEAR", 64 * 128 - 1)
    assert ("fetch_streamed(" in emit(program(component))) == ("k:64" in schedule)


def test_steps_with_slow_functions_ask_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "FAR", 1)
    asks = {op: emit(program(i(f"{op}ij~ij|i:16,j:64|iji'j'"))).count("fetch_soon(in0, ") for op in "^-"}
    assert asks["^"] > asks["-"] == 0


@pytest.mark.parametrize(
    ("tile", "asks"),
    [
        # the rows below a tile of few come after all the tiles along these
        ("i:6,j:128|iji'j'", False),
        # they are those of the tile, or the next tile's
        ("i:24,j:128|iji'j'", True),
        ("i:6,j:128|jii'j'", True),
        # short parts of rows, which prefetchers do not follow
        ("i:6,j:64|iji'j'", True),
    ],
)
def test_rows_below_a_tile_of_few_are_not_asked_for(tile: str, asks: bool) -> None:
    component = i(f"^ij~ij|{tile}") >> i(f"ij+1~ij|{tile}0")
    assert ("fetch_soon(in0" in emit(program(component))) is asks


@pytest.mark.parametrize(
    ("tile", "place", "tested"),
    [
        # after the last rows of a tile come the first of the one beside it
        ("i:24,j:128|iji'j'", "(i + (i1 + 8) % 24) * in0_1 + j + (i1 + 8) / 24 * 128", False),
        ("i:24,j:64|iji'j'", "(i + (i1 + 16) % 24) * in0_1 + j + (i1 + 16) / 24 * 64", False),
        ("i:6,j:64|iji'j'", "(i + (i1 + 16) % 6) * in0_1 + j + (i1 + 16) / 6 * 64", False),
        # or of the one below
        ("i:24,j:128|jii'j'", "(i + i1 + 8) * in0_1 + j", False),
        ("i:6,j:128|jii'j'", "(i + i1 + 8) * in0_1 + j", False),
        # where these come after others, and are few, they are to stay until they are read
        ("i:6,j:4:32|ij'ji'j''", "(i + i1 + 32) * in0_1 + j + j1", True),
    ],
)
def test_rows_that_come_next_are_asked_for_however_long(
    tile: str, place: str, tested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "FAR", 1)
    source = emit(program(i(f"^ij~ij|{tile}") >> i(f"ij+1~ij|{tile}0")))
    assert f"fetch_soon(in0, {place}, " in source
    assert (f"* in0_1 <= {ahead.ROOM}" in source) is tested


def test_rows_at_hand_go_on_where_the_loop_around_them_steps() -> None:
    """Not four rows of a tile below them, which come after all the steps of ``k``."""
    heads = i("il*ikl~kil|i:4,l:64|ilki'l'") >> i("+kil~ki|i:4,l:64|ilki'l'0")
    asked = [line for line in emit(program(heads)).splitlines() if "fetch_streamed(in1, " in line]
    assert asked
    assert all("((i + i1) * in1_1 + k + 4) * in0_1" in line for line in asked)


@pytest.mark.parametrize(("tile", "asks"), [("i:64,k:16", True), ("i:4,k:16", False)])
def test_rows_of_a_tile_of_few_ask_for_none_beyond_it(tile: str, asks: bool) -> None:
    """Most would come after the loops around the tile."""
    sums = i(f"+jik~i|j:4,{tile}|ijki'j'k'")
    assert ("fetch_streamed(in0" in emit(program(sums))) is asks


@pytest.mark.parametrize(("width", "asks"), [(256, True), (512, False)])
def test_long_rows_are_left_to_prefetchers(width: int, asks: bool) -> None:
    source = emit(program(i(f"+jik~i|j:4,i:64,k:{width}|ijki'j'k'")))
    assert any("fetch_streamed(in0" in line and "+ k1, 64" in line for line in source.splitlines()) is asks


def test_neighbours_and_columns_are_copied_without_asking() -> None:
    """Prefetchers see what lies one after another coming, and a column takes a line of each of many rows."""
    assert "fetch_copied(" not in emit(program(i("+ij~ij") >> i("+ij~i")))
    assert "fetch_copied(" not in emit(program(i("+jk~kj|j:16|jkj'") >> i("+kj~j|j:16|jkj'0")))


@needs_compiler
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 8, 16), (5, 9, 17), (3, 7, 33), (67, 3, 65)])
def test_results_stay_what_they_were(form: str, shape: tuple[int, int, int]) -> None:
    x, w = operands(*shape)
    kernel = FORMS[form].compile(threads=2)
    assert "fetch_ahead(" in kernel.source
    np.testing.assert_allclose(kernel(x, w), x @ w, rtol=1e-4, atol=1e-4)
    prepared = kernel.prepare(in1=w)
    assert (prepared(x) == kernel(x, w)).all()


@needs_compiler
@pytest.mark.parametrize("form", ["rows", "pairs", "chunks"])
def test_what_a_short_panel_lacks_is_zero(form: str) -> None:
    """Left as it was, it might hold denormals, which take a hundred times as long to multiply."""
    _, w = operands(9, 24, 37)
    (panels,) = FORMS[form].compile(threads=1).prepare(in1=w).fixed[-1:]
    assert panels.size > w.size
    assert np.count_nonzero(panels) == np.count_nonzero(w)


def test_golden_source(golden: Golden) -> None:
    golden.check("panels.c", emit(program(ROWS)))


def test_what_is_not_in_panels_is_not_asked_for() -> None:
    rowwise = i("ik*kj~kij|i:4,j:16|jiki'j'") >> i("+kij~ij|i:4,j:16|jiki'j'0")
    staged = (I | i("+kj~kj|j:16|jkj'")) >> i("ik*kj~kij|i:4,j:16|j1iki'j'") >> i("+kij~ij|i:4,j:16|jiki'j'0")
    assert "fetch_ahead(" not in emit(program(rowwise))
    assert "fetch_ahead(" not in emit(program(staged)), "one panel, in a buffer of its own"


@pytest.mark.parametrize(
    "component",
    [
        i(".*i~i") >> i("+i~.||i0"),
        i(".*ij~ij") >> i("+ij~i||ij0"),
        i(".*ij~ij|j:32|jij'") >> i(">ij~j|j:32|jij'0"),
        i("j*ij~ij|j:32|jij'") >> i("+ij~j|j:32|jij'0"),
    ],
)
def test_scalars_and_rows_are_no_panels(component: Component) -> None:
    assert "fetch_ahead" not in emit(program(component))


def test_rows_that_passes_ask_for_are_not_asked_for_twice() -> None:
    """A softmax of four rows at a time, which come back to them: four rows of 4096 floats take 0.87 of the time so."""
    rows = (
        (I & i(">ij~i|i:4|"))
        >> i("ij-i~ij|i:4,j:32|i1ji'j'")
        >> i("^ij~ij|i:4,j:32|iji'j'0")
        >> (I & i("+ij~i|i:4|i0i'j"))
        >> i("ij/i~ij|i:4|i10i'j")
    )
    source = emit(program(rows))
    assert "in0_asked" in source
    assert "in0_streamed" not in source
