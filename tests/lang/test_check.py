"""Expressions built by hand, each breaking one invariant."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from ilang_eq.errors import CheckError
from ilang_eq.lang.check import MAX_LEVELS, MAX_TILE, check
from ilang_eq.lang.expr import Access, Expr, Init, Literal, Loop, Stage
from tests.strategies import exprs

ROW, MATRIX = Access("i"), Access("ij")


@given(exprs())
def test_well_formed(expr: Expr) -> None:
    check(expr)


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (Expr("sum", (ROW,), "i"), "no op named 'sum'"),
        (Expr("add", (), "i"), "one or two operands, not 0"),
        (Expr("add", (ROW, ROW, ROW), "i"), "one or two operands, not 3"),
        (Expr("not", (ROW, ROW), "i"), "takes one operand"),
        (Expr("add", (Access("I"),), "I"), "'I' is no pattern"),
        (Expr("add", (Access("."),), ""), "'.' is no pattern"),
        (Expr("add", (ROW, Literal(math.inf)), "i"), "finite"),
        (Expr("add", (ROW, Literal(math.nan)), "i"), "finite"),
        (Expr("add", (ROW,), "ii"), "names axis i twice"),
        (Expr("add", (ROW,), "j"), "no operand has"),
        (Expr("add", (Literal(1.0),), "i"), "no operand has"),
        (Expr("add", (MATRIX, ROW), "i"), "cannot drop axis j"),
        (Expr("sub", (MATRIX,), "i"), "cannot reduce axis j"),
        (Expr("add", (ROW,), "i", (("j", (2,)),)), "axis j is split"),
        (Expr("add", (ROW,), "i", (("", (2,)),)), "is split, but"),
        (Expr("add", (ROW,), "i", (("i", ()),)), "by 0 factors"),
        (Expr("add", (ROW,), "i", (("i", (1,) * (MAX_LEVELS + 1)),)), f"by {MAX_LEVELS + 1} factors"),
        (Expr("add", (ROW,), "i", (("i", (2, -1)),)), "factor of axis i is -1"),
        (Expr("add", (ROW,), "i", (("i", (MAX_TILE + 1,)),)), "too large"),
        (Expr("add", (ROW,), "i", (("i", (2,)), ("i", (2,)))), "split twice"),
        (Expr("add", (ROW,), "i", (), (Loop("i"), Loop("i"))), "lists i twice"),
        (Expr("add", (ROW,), "i", (), (Loop("i", 1),)), "names loop i'"),
        (Expr("add", (ROW,), "i", (), (Loop("i", -1),)), "names loop"),
        (Expr("add", (MATRIX,), "i", (), (Loop("i"),)), "leaves out loop j"),
        (Expr("add", (ROW,), "i", (), (Stage(0),)), "leaves out loop i"),
        (Expr("add", (ROW,), "i", (), (Loop("i"), Stage(1))), "operand 1, which the expression lacks"),
        (Expr("add", (ROW,), "i", (), (Loop("i"), Stage(-1))), "operand -1, which the expression lacks"),
        (Expr("add", (ROW, Literal(1.0)), "i", (), (Loop("i"), Stage(1))), "nothing to stage"),
        (Expr("add", (ROW,), "i", (), (Loop("i"), Init())), "reduces nothing"),
        (Expr("add", (MATRIX,), "i", (), (Init(), Loop("i"), Loop("j"))), "outside a loop"),
        (Expr("add", (MATRIX,), "i", (("i", (2,)),), (Loop("i"), Init(), Loop("i", 1), Loop("j"))), "outside a loop"),
    ],
)
def test_refused(expr: Expr, words: str) -> None:
    with pytest.raises(CheckError) as caught:
        check(expr)
    assert words in caught.value.message
    assert caught.value.position is None


def test_the_largest_tile() -> None:
    check(Expr("add", (ROW,), "i", (("i", (MAX_TILE,)),)))
    check(Expr("add", (ROW,), "i", (("i", (1,) * MAX_LEVELS),)))
