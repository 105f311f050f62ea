"""What two sites of a value read is computed once."""

from __future__ import annotations

from ilang_eq.lang.component import I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Extent, For, Index, Load, Statement
from ilang_eq.lower.program import computed_once
from ilang_eq.lower.walk import updates

X = Load("x", (Index(("i",)),))
S, T, Y = Load("s", ()), Load("t", ()), Load("y", (Index(("i",)),))
EXP = Apply("exp", (X,))


def after(*block: Statement) -> tuple[Statement, ...]:
    return computed_once(block)


def test_a_value_for_two_readers() -> None:
    assert after(Assign(S, EXP), Accumulate(T, "add", S), Assign(Y, EXP))[-1] == Assign(Y, S)


def test_what_has_changed_is_computed_anew() -> None:
    shifted = Apply("sub", (X, T))
    block = Assign(S, shifted), Accumulate(T, "max", X), Assign(Y, shifted)
    assert after(*block) == block
    overwritten = Assign(S, EXP), Assign(S, X), Assign(Y, EXP)
    assert after(*overwritten) == overwritten


def test_loops_may_change_anything() -> None:
    inside = For("j", Extent(0, 0), 1, None, (), (Assign(Load("x", (Index(("j",)),)), T),))
    block = Assign(S, EXP), inside, Assign(Y, EXP)
    assert after(*block) == block


def test_a_value_that_reads_where_it_goes_is_not_known() -> None:
    again = Apply("mul", (S, X))
    block = Assign(S, again), Assign(Y, again)
    assert after(*block) == block


def test_a_row_that_is_summed_as_it_is_computed() -> None:
    """The sum wants each exponential in the innermost loop, the division the row."""
    rows = (I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0") >> (I & i("+ij~i||ij0")) >> i("ij/i~ij||i10j")
    (kernel,) = lower(wire(rows)).kernels
    values = [update.value for update in updates(kernel.body) if isinstance(update.value, Apply)]
    assert [value.op for value in values].count("exp") == 1
