"""Rows that a reduction goes along are asked for once, some way ahead, and only where that is sure to help."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ilang_eq.c.along import DISTANCE
from ilang_eq.c.emit import emit
from ilang_eq.c.fetches import fetches
from ilang_eq.c.kernel import CKernel
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.passes import FAR
from tests.c.counting import counters
from tests.lower.test_passes import SOFTMAX, SUM_OF_EXPONENTIALS, SUM_OF_SQUARES
from tests.lower.test_passes import TILED as TILED_SOFTMAX

LINE = 16
SUMS = i("+ij~i")
VECTOR = i("ij*j~ij") >> i("+ij~i||ij0")
DOT = i("i*i~i") >> i("+i~.||i0")
TILED = i("ij*j~ij|i:4,j:64|iji'j'") >> i("+ij~i|i:4,j:64|iji'j'0")
ACROSS = i("ij*j~ij|j:64|jij'") >> i("+ij~i|j:64|jij'0")
IN_PARTS = (
    (I & i(">ij~i|i:4,j:64|iji'j'"))
    >> i("ij-i~ij|i:4,j:64|i1ji'j'")
    >> i("^ij~ij|i:4,j:64|iji'j'0")
    >> (I & i("+ij~i|i:4,j:64|i0ji'j'"))
    >> i("ij/i~ij|i:4,j:64|i10ji'j'")
)
PRODUCT = i("ik*jk~ijk|k:64|ijkk'") >> i("+ijk~ij|k:64|ijkk'0")


def tasks(component: Component) -> str:
    """What threads do, where there are rows for all."""
    emitted = emit(lower(wire(component)))
    return emitted[emitted.rindex("static NOINLINE void tasks_") :]


def squares_of_tiles(rows: int) -> Component:
    """``SUM_OF_SQUARES``, so many rows at a time."""
    tile = f"i:{rows}"
    centred = (I & i(f"+ij~i|{tile}|")) >> i(f"ij-i~ij|{tile}|i1i'j")
    return centred >> (I & I) >> i(f"ij*ij~ij|{tile}|ii'j01") >> i(f"+ij~i|{tile}|ii'j0")


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def counted(
    component: Component, x: np.ndarray, rest: list[np.ndarray], threads: int, monkeypatch: pytest.MonkeyPatch
) -> np.ndarray:
    """How often each line from ``x`` on was asked for, by a kernel that counts, on any machine."""

    def counting(source: str) -> str:
        count = f"    for (int64_t f = first; f < first + floats; f += {LINE})\n"
        count += f"        __atomic_add_fetch(&asked[f / {LINE}], p == first_input, 0);\n}}"
        body = re.compile(r"(static inline void fetch_soon\(.*?\)\n\{\n).*?\n\}", re.DOTALL)
        text, found = body.subn(rf"const float *first_input;\nint asked[1 << 18];\n\1{count}", source)
        assert found == 1
        text, found = re.subn(r"(#define ASKS_IN_ORDER) 0", r"\1 1", text)
        assert found == 1
        entered = text.index("const float *const in0 = inputs[0];")
        return f"{text[:entered]}first_input = inputs[0];\n    {text[entered:]}"

    taken = counters(counting, 1 << 18, monkeypatch)
    got = CKernel(lower(wire(component)), threads)(x, *rest)
    np.testing.assert_allclose(got, component.interpret(x, *rest), rtol=1e-3, atol=1e-2)
    return taken[-1]


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("component", "shape", "rest"),
    [
        (SUMS, (600, 1024), []),
        (VECTOR, (600, 1024), [(1024,)]),
        (DOT, (FAR,), [(FAR,)]),
        pytest.param(TILED, (2400, 256), [(256,)], id="short rows side by side"),
    ],
)
def test_every_line_some_way_ahead_is_asked_for_once(
    component: Component,
    shape: tuple[int, ...],
    rest: list[tuple[int, ...]],
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    x, *others = (rng.standard_normal(each, np.float32) for each in (shape, *rest))
    count = counted(component, x, others, threads, monkeypatch)
    begin, end = DISTANCE // LINE, (DISTANCE + x.size) // LINE
    assert (count[begin:end] == 1).all()
    assert not count[:begin].any()
    assert not count[end:].any()


@needs_compiler
@pytest.mark.parametrize("width", [24, 200])
def test_what_is_left_of_short_rows_is_asked_for_as_well(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a step further than a row goes, where the next one is."""
    rng = np.random.default_rng(0)
    x, v = (rng.standard_normal(shape, np.float32) for shape in ((FAR // width // 4 * 4 + 4, width), (width,)))
    count = counted(TILED, x, [v], 1, monkeypatch)
    begin, end = DISTANCE // LINE, (DISTANCE + x.size) // LINE
    assert (count[begin:end] > 0).all()
    assert not count[:begin].any()
    assert not count[end + 64 // LINE :].any()


@needs_compiler
def test_what_is_near_anyway_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((FAR // 1024 - 1, 1024), np.float32)
    assert not counted(SUMS, x, [], 1, monkeypatch).any()


@needs_compiler
@pytest.mark.parametrize(
    ("component", "distance"),
    [
        pytest.param(SUM_OF_SQUARES, 1024, id="the next row"),
        pytest.param(squares_of_tiles(4), 4 * 1024, id="the next rows"),
        pytest.param(squares_of_tiles(8), DISTANCE, id="the rows at hand, as more would not stay"),
    ],
)
def test_quick_passes_ask_for_what_comes_next_twice(
    component: Component, distance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that has enough to do drops requests; the second pass makes them again."""
    x = np.random.default_rng(0).standard_normal((600, 1024), np.float32)
    count = counted(component, x, [], 1, monkeypatch)
    begin, end = distance // LINE, (distance + x.size) // LINE
    assert (count[begin:end] == 2).all()
    assert not count[:begin].any()
    assert not count[end:].any()


@needs_compiler
def test_passes_in_parts_of_short_rows_ask_along_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maximum for the next ones, the sum for those of the result; once."""
    x = np.random.default_rng(0).standard_normal((FAR // 128 + 4, 128), np.float32)
    count = counted(IN_PARTS, x, [], 1, monkeypatch)
    begin, end = DISTANCE // LINE, (DISTANCE + x.size) // LINE
    assert (count[begin:end] == 1).all()
    assert not count[:begin].any()
    assert tasks(IN_PARTS).count("fetch_soon(out0") == 4, "and what is left, in whole tiles and short ones"


def test_passes_of_which_some_go_row_by_row_do_not() -> None:
    assert "_along" not in tasks(TILED_SOFTMAX)


@needs_compiler
def test_long_rows_side_by_side_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, v = (rng.standard_normal(shape, np.float32) for shape in ((600, 1024), (1024,)))
    assert not counted(TILED, x, [v], 1, monkeypatch).any()


@pytest.mark.parametrize("component", [ACROSS, PRODUCT])
def test_rows_across_or_read_again_are_left_alone(component: Component) -> None:
    """``ACROSS`` comes to the next row before the end of one, ``PRODUCT`` to each row again."""
    assert "_along" not in emit(lower(wire(component)))


@pytest.mark.parametrize("component", [SOFTMAX, SUM_OF_EXPONENTIALS, SUM_OF_SQUARES, (I & SUMS) >> i("ij-i~ij||i1j")])
def test_what_passes_ask_for_is_left_to_them(component: Component) -> None:
    body = tasks(component)
    assert "_asked" in body
    assert "_along" not in body


@needs_compiler
@pytest.mark.parametrize(
    ("processor", "in_order", "rapids"),
    [
        ([], "0", "0"),
        (["-D__AMX_TILE__"], "1", "1"),
        (["-D__AVX512FP16__"], "1", "1"),
        (["-D__znver5__"], "1", "0"),
    ],
)
def test_which_processors_ask(processor: list[str], in_order: str, rapids: str, tmp_path: Path) -> None:
    """For rows in order; and not for parts of panels, which is Sapphire Rapids and later."""
    text = [*fetches("ASKS_IN_ORDER fetch_part("), "int in_order = ASKS_IN_ORDER, rapids = SAPPHIRE_RAPIDS;"]
    (tmp_path / "asks.c").write_text("\n".join(text))
    command = ["cc", "-E", *processor, "asks.c"]
    found = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert f"int in_order = {in_order}, rapids = {rapids};" in found
    assert f"f < ({rapids} ? 0 : floats);" in found
