"""Outputs larger than the caches are written past them, and nothing else changes."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq.c import streaming
from ilang_eq.c.emit import emit
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower, streamed


def streams(component: Component) -> int:
    """The loops that stream."""
    return emit(lower(wire(component))).count("stream16(&")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output counts as large, and every row as long."""
    monkeypatch.setattr(streamed, "STREAMED_FLOATS", 1)
    monkeypatch.setattr(streaming, "FEWEST", 40)


@pytest.mark.usefixtures("small")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("text", ["^ij~ij", "2*ij~ij", "ij^2~ij"])
@pytest.mark.parametrize("columns", [1, 16, 39, 40, 41, 64, 100, 150])
def test_rows_that_begin_anywhere(text: str, columns: int) -> None:
    """Rows of every length modulo a vector, in memory of every alignment."""
    component = i(text)
    x = np.random.default_rng(0).standard_normal((9, columns), dtype=np.float32)
    kernel = component.compile(threads=2)
    for start in range(0, 20, 3):
        memory = np.zeros(x.size + 40, np.float32)
        out = memory[start : start + x.size].reshape(x.shape)
        np.testing.assert_allclose(kernel(x, out=out), component.interpret(x), rtol=1e-6)
        assert not memory[:start].any()
        assert not memory[start + x.size :].any()


def test_bursts_in_stages() -> None:
    assert "exp_of16_alike(" in emit(lower(wire(i("^i~i"))))
    assert "_each(" not in emit(lower(wire(i("2*i~i"))))


def test_what_is_streamed() -> None:
    assert streams(i("^i~i")) == 2, "in bursts, and line by line"
    assert streams(i("i*j~ij")) == 2
    assert streams(i("^i~i|i:1024|")) == 4, "the last part may be shorter"
    assert not streams(i("^i~i|i:256|")), "too little of it is whole lines"
    assert not streams(i("*ij~ji")), "its loads are far apart"
    assert not streams(i("+ij~i")), "it is accumulated"
    assert streams(i("^i~i") >> (I & i("0>i~i"))) == 2, "the first result is read for the second"


@pytest.mark.parametrize(
    ("component", "arrays"),
    [
        (i("i*j~ij"), 1),
        (i("2*ij~ij"), 2),
        (i("ij+j~ij"), 2),
        (i("ij*ij~ij"), 3),
        ((I & I) >> i("ij*ij~ij"), 2),
        ((I | (I | I) >> i("ij/ij~ij")) >> i("ij-ij~ij||ij1"), 4),
    ],
)
def test_the_more_arrays_are_gone_through_the_shorter_they_are_where_it_streams(
    component: Component, arrays: int
) -> None:
    """Those as long as the output, each once, but never a longer one than where there is no other."""
    (found,) = re.findall(rf">= (\d+) && .* >= {streamed.FEWEST}\)", emit(lower(wire(component))))
    assert int(found) == min(streamed.STREAMED_FLOATS, streamed.MOVED_FLOATS // arrays)


def product(width: int = 32) -> Component:
    tile = f"i:6,j:{width}"
    return i(f"ik*kj~kij|{tile}|ijki'j'") >> i(f"+kij~ij|{tile}|ijki'j'0")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("terms", [1, 1024, 1025])
@pytest.mark.parametrize("columns", [16, 31, 64, 144])
def test_sums_past_the_caches_are_the_same(columns: int, terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, in memory of every alignment, of few terms and in blocks."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((13, terms), np.float32), rng.standard_normal((terms, columns), np.float32)
    expected = product().compile(threads=1)(x, y)
    monkeypatch.setattr(streaming, "SUMMED_FLOATS", 1)
    kernel = product().compile(threads=2)
    for start in range(0, 20, 4):
        memory = np.zeros(expected.size + 40, np.float32)
        out = memory[start : start + expected.size].reshape(expected.shape)
        np.testing.assert_array_equal(kernel(x, y, out=out), expected)
        assert not memory[:start].any()
        assert not memory[start + expected.size :].any()


@pytest.mark.parametrize(
    ("component", "streamed"),
    [
        (product(), True),
        (product(24), False),
        (i("ik*kj~kij|k:64,i:6,j:32|kijk'i'j'") >> i("+kij~ij|k:64,i:6,j:32|kijk'i'j'0"), False),
        (product() >> (I & i("^ij~ij")), False),
        (i("ik*jk~kij|i:4,j:4|ijki'j'") >> i("+kij~ij|i:4,j:4|ijki'j'0"), False),
    ],
    ids=["complete", "no whole lines", "in parts", "read again", "across lanes"],
)
def test_which_sums_go_past_the_caches(component: Component, streamed: bool) -> None:
    source = emit(lower(wire(component)))
    decided = re.findall(r"SELDOM\(STREAMS && .* in\d_\d <= 1024 &&", source)
    assert bool(decided) == streamed
    if streamed:
        assert "stream16(" in source
        assert "fence();" in source
