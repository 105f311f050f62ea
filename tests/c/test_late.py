"""Rows written late are the same rows: each is written once, whole, and nothing around it."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from ilang_eq.c import late as c_late
from ilang_eq.c.emit import emit
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import late, lower
from ilang_eq.lower.ir import Assign, Buffer, Extent, Kernel
from ilang_eq.lower.streamed import STREAMED_FLOATS
from tests.c import programs
from tests.c.programs import apply, at, loop

SOFTMAX = (I & i(">ij~i|j:64|")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||ij0")) >> i("ij/i~ij||i10j")
OF_OTHERS = (I | i("+ij~i||ij")) >> i("ij-i~ij||i1j")
"""Rows of one array less the sums of another's, whose rows may be of other lengths."""
STORED = i("ij*j~ij") >> (I & i("+ij~i||ij0")) >> i("ij/i~ij||i10j")
"""Its other pass stores and sums, which no vectors of ours do."""
ODD = (I & i(">ij~i|j:24|")) >> i("ij/i~ij||i1j")
"""Its other pass goes in steps of 24, half of which is no vector."""
NORM = (I & (I & I) >> i("ij*ij~ij") >> i("+ij~i||ij0") >> i("i^0.5~i||i0")) >> i("ij/i~ij||i1j")
CENTRED = (I & i("+ij~i") >> i("i/8~i||i0")) >> i("ij-i~ij||i1j")
SCALED = NORM >> i("ij*j~ij||ij0")
LOG = (I & i(">ij~i||ij")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0")
"""Its last pass applies a slow function."""
BATCHES = (I & (I & I) >> i("kij*kij~kij") >> i("+kij~ki||kij0") >> i("ki^0.5~ki||ki0")) >> i("kij/ki~kij||ki1j")

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output counts as large, and rows of 40 as long."""
    monkeypatch.setattr(c_late, "STREAMED_FLOATS", 1)
    monkeypatch.setattr(late, "HANDED_ON", 40)
    monkeypatch.setattr(late, "LONG", 40)


def source(component: Component) -> str:
    return emit(lower(wire(component)))


def is_late(component: Component) -> bool:
    return "_late(" in source(component)


@pytest.mark.usefixtures("small")
@needs_compiler
@pytest.mark.parametrize("component", [SOFTMAX, NORM, CENTRED, LOG])
@pytest.mark.parametrize("columns", [1, 39, 40, 41, 63, 64, 80, 255, 320, 705])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_any_length_anywhere_in_memory(component: Component, columns: int, threads: int) -> None:
    """Also shorter than what the others are ahead, and in memory of every alignment."""
    assert is_late(component)
    x = np.random.default_rng(0).standard_normal((37, columns), dtype=np.float32)
    kernel = component.compile(threads=threads)
    want = component.interpret(x)
    for start in range(0, 20, 3):
        memory = np.full(x.size + 40, 7.0, np.float32)
        out = memory[start : start + x.size].reshape(x.shape)
        np.testing.assert_allclose(kernel(x, out=out), want, rtol=2e-5, atol=1e-6)
        assert (memory[:start] == 7.0).all()
        assert (memory[start + x.size :] == 7.0).all()


@pytest.mark.usefixtures("small")
@needs_compiler
@pytest.mark.parametrize("others", [7, 64, 1000])
def test_passes_of_other_lengths(others: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((37, 300), dtype=np.float32), rng.standard_normal((37, others), dtype=np.float32)
    assert "_lag < " in source(OF_OTHERS)
    np.testing.assert_allclose(OF_OTHERS.compile()(x, y), OF_OTHERS.interpret(x, y), rtol=2e-5, atol=1e-5)


@pytest.mark.usefixtures("small")
@needs_compiler
@pytest.mark.parametrize("columns", [40, 100, 333])
def test_passes_that_nothing_goes_beside(columns: int) -> None:
    """Rows are late all the same: the model expects it."""
    rng = np.random.default_rng(0)
    x, gain = rng.random((37, columns), dtype=np.float32), rng.random(columns, dtype=np.float32)
    for component, arrays in ((STORED, (x, gain)), (ODD, (x,))):
        assert is_late(component)
        assert "_lag < " not in source(component)
        np.testing.assert_allclose(component.compile()(*arrays), component.interpret(*arrays), rtol=2e-5)


@pytest.mark.usefixtures("small")
@needs_compiler
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 300])
def test_any_number_of_rows(rows: int) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 400), dtype=np.float32)
    for component in (SOFTMAX, CENTRED):
        np.testing.assert_allclose(component.compile(threads=2)(x), component.interpret(x), rtol=2e-5, atol=1e-6)


@pytest.mark.usefixtures("small")
@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(3, 5, 100), (40, 1, 64), (1, 40, 300)])
def test_rows_of_several_axes(shape: tuple[int, int, int], threads: int) -> None:
    assert is_late(BATCHES)
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    np.testing.assert_allclose(BATCHES.compile(threads=threads)(x), BATCHES.interpret(x), rtol=2e-5)


@pytest.mark.usefixtures("small")
@needs_compiler
def test_what_does_not_move_with_rows_is_read_as_it_is() -> None:
    rng = np.random.default_rng(0)
    x, gain = rng.standard_normal((37, 300), dtype=np.float32), rng.standard_normal(300, dtype=np.float32)
    np.testing.assert_allclose(SCALED.compile()(x, gain), SCALED.interpret(x, gain), rtol=2e-5)


@pytest.mark.usefixtures("small")
@needs_compiler
@pytest.mark.parametrize("divisor", [0.0, 1e-39, 3e38, np.inf, 2.0])
def test_rows_whose_divisor_has_no_reciprocal(divisor: float) -> None:
    """Every other row: what one row needs is not what the next one does."""
    component = (I & i(">ij~i||ij")) >> i("ij/i~ij||i1j")
    assert is_late(component)
    x = -np.abs(np.random.default_rng(0).standard_normal((20, 300), dtype=np.float32))
    x[:, 5] = 3.0
    x[::2, 5] = divisor
    with np.errstate(all="ignore"):
        want = x / x.max(axis=1, keepdims=True)
    np.testing.assert_allclose(component.compile()(x), want, rtol=2e-7, atol=1.5e-45)


@pytest.mark.usefixtures("small")
@needs_compiler
def test_one_thread_and_several_agree_to_the_bit() -> None:
    x = np.random.default_rng(0).standard_normal((301, 1000), dtype=np.float32)
    for component in (SOFTMAX, NORM, CENTRED, LOG):
        np.testing.assert_array_equal(component.compile(threads=1)(x), component.compile(threads=3)(x))


@pytest.mark.parametrize(
    ("component", "found"),
    [
        (SOFTMAX, True),
        (NORM, True),
        (i("ij-i~ij"), False),
        (i("+ij~i"), False),
        (SOFTMAX >> i("ij*2~ij||ij0"), True),
        (NORM >> (I & i("+ij~i")), False),
        (SOFTMAX >> i("ij*2~ij"), False),
    ],
    ids=["softmax", "norm", "one pass", "no rows", "more in the last pass", "read again", "in a kernel of its own"],
)
def test_what_is_put_off(component: Component, found: bool) -> None:
    assert is_late(component) == found


def test_rows_whose_other_passes_are_tasks_of_their_own_are_not() -> None:
    """Without its last pass, all that is left of a row is loops that threads share."""
    i_, j_, k_ = Extent(0, 0), Extent(0, 1), Extent(0, 2)
    first = Assign(at("out1", "i", "j", "k"), apply("mul", at("in0", "i", "j", "k"), 2.0))
    last = Assign(at("out0", "i", "j"), apply("mul", at("in1", "i", "j"), 2.0))
    rows = (loop("j", j_, loop("k", k_, first)), loop("j", j_, last))
    program = programs.program(
        (3, 2),
        [
            Buffer("in0", (i_, j_, k_), "input"),
            Buffer("in1", (i_, j_), "input"),
            Buffer("out0", (i_, j_), "output"),
            Buffer("out1", (i_, j_, k_), "output"),
        ],
        Kernel("both", (loop("i", i_, *rows, parallel=True),)),
        outputs=("out0", "out1"),
    )
    assert "_late(" not in emit(program)


def test_when_it_is_worth_it() -> None:
    """Rows that are kept have to be longer."""
    assert f"in0_0 * in0_1 >= {STREAMED_FLOATS} && in0_1 >= {late.HANDED_ON} && in0_1 <= {late.MOST}" in source(SOFTMAX)
    assert f"in0_0 * in0_1 >= {STREAMED_FLOATS} && in0_1 >= {late.LONG} && in0_1 <= {late.MOST}" in source(NORM)


def test_slow_functions_have_time_for_it() -> None:
    """Beside exponentials rather than maxima; beside the norm's only other pass, which asks for what comes next."""
    softmax, norm = (re.split(r"tasks_\w+_late\(", source(component))[1] for component in (SOFTMAX, NORM))
    before, after = softmax.split("stream16(", 1)
    assert "larger16(" in before
    assert "exp_of16_each(" not in before
    assert "exp_of16_each(" in after
    assert "fetch_row(in0, i * in0_1 + j_block + j + 2048, 64);" in norm
    assert "fetch_row(in0, (i + 1) * in0_1" in softmax
    assert "fetch_row(in0, i * in0_1 + j_block + j + 2048" not in softmax


def test_rows_lag_behind_and_share_lines() -> None:
    for component in (SOFTMAX, NORM):
        text = source(component)
        assert f"if (j_lag < {c_late.LAG}) {{" in text
        assert "make_room(&out0[i * in0_1 + in0_1], 0, 16);" in text
        assert "else if (STREAMS && " in text
