"""Text to expressions and back."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq.errors import CheckError, ILangError, ParseError
from ilang_eq.lang.expr import Access, Expr, Literal
from ilang_eq.lang.parser import parse
from tests.conformance_cases import cases
from tests.strategies import exprs

SYNTAX = cases("syntax.json")
STAGES = {"parse": ParseError, "check": CheckError}


def canonical(expr: Expr) -> dict[str, Any]:
    assert all(isinstance(o, Access) for o in expr.operands)
    return {
        "op": expr.op,
        "inputs": [o.axes for o in expr.operands if isinstance(o, Access)],
        "output": expr.output,
        "splits": [[axis, list(factors)] for axis, factors in expr.splits],
        "order": [str(item) for item in expr.order],
    }


@pytest.mark.parametrize("case", SYNTAX, ids=lambda c: c["id"])
def test_conformance(case: dict[str, Any]) -> None:
    if case["ok"] or case["stage"] == "lower":
        expr = parse(case["src"])
        assert canonical(expr) == case["canonical"]
        assert parse(str(expr)) == expr
    else:
        with pytest.raises(STAGES[case["stage"]]) as error:
            parse(case["src"])
        assert type(error.value) is STAGES[case["stage"]]


@settings(max_examples=300)
@given(exprs())
def test_round_trip(expr: Expr) -> None:
    assert parse(str(expr)) == expr


@given(st.text("ij.~+-*>^|:!'019e, ", max_size=24))
def test_anything_else_is_refused_politely(text: str) -> None:
    try:
        expr = parse(text)
    except ILangError:
        return
    assert parse(str(expr)) == expr


i, j, ij, dot = Access("i"), Access("j"), Access("ij"), Access("")


@pytest.mark.parametrize(
    ("text", "op", "operands", "printed"),
    [
        ("0>i~i", "max", (Literal(0.0), i), "0>i~i"),
        ("ij*0.125~ij", "mul", (ij, Literal(0.125)), "ij*0.125~ij"),
        ("ij * 1e-5 ~ ij", "mul", (ij, Literal(1e-5)), "ij*1e-5~ij"),
        ("i*-2~i", "mul", (i, Literal(-2.0)), "i*-2~i"),
        ("-2*i~i", "mul", (Literal(-2.0), i), "-2*i~i"),
        ("-2~.", "sub", (Literal(2.0),), "-2~."),
        ("--2~.", "sub", (Literal(-2.0),), "--2~."),
        ("+-2~.", "add", (Literal(-2.0),), "+-2~."),
        ("2~.", "add", (Literal(2.0),), "+2~."),
        ("2-3~.", "sub", (Literal(2.0), Literal(3.0)), "2-3~."),
        ("i--2~i", "sub", (i, Literal(-2.0)), "i--2~i"),
        ("i>-2~i", "max", (i, Literal(-2.0)), "i>-2~i"),
        ("i>>1e22~i", "gt", (i, Literal(1e22)), "i>>1e22~i"),
        ("2^.~.", "pow", (Literal(2.0), dot), "2^.~."),
        ("!!2~.", "not", (Literal(2.0),), "!!2~."),
        ("i+0.1~i", "add", (i, Literal(0.1)), "i+0.1~i"),
        ("i/-0~i", "div", (i, Literal(0.0)), "i/0~i"),
        ("007*i~i", "mul", (Literal(7.0), i), "7*i~i"),
    ],
)
def test_numbers(text: str, op: str, operands: tuple, printed: str) -> None:
    expr = parse(text)
    assert (expr.op, expr.operands) == (op, operands)
    assert str(expr) == printed
    assert parse(printed) == expr


@pytest.mark.parametrize(
    ("text", "error", "position", "words"),
    [
        ("", ParseError, 0, "blank"),
        (" \t\n", ParseError, 3, "blank"),
        ("+ij", ParseError, 3, "'~' is missing"),
        ("ij", ParseError, 2, "an op or '~' is missing"),
        ("ij?k~i", ParseError, 2, "an op or '~' is missing"),
        ("ij~", ParseError, 3, "a pattern is missing"),
        ("i+~i", ParseError, 2, "a pattern is missing"),
        ("i=i~i", ParseError, 1, "an op or '~' is missing"),
        ("I~I", ParseError, 0, "a pattern is missing"),
        ("é~é", ParseError, 0, "a pattern is missing"),
        ("i−i~i", ParseError, 1, "an op or '~' is missing"),
        ("i~ii", CheckError, 3, "twice"),
        ("i~ij", CheckError, 3, "no operand has"),
        ("i~2", ParseError, 2, "a pattern is missing"),
        (".5*i~i", ParseError, 1, "stands alone"),
        ("i*2.~i", ParseError, 3, "'~' is missing"),
        ("2i~i", ParseError, 1, "an op or '~' is missing"),
        ("i+1E~i", ParseError, 3, "'~' is missing"),
        ("i~.i", ParseError, 3, "stands alone"),
        ("1e999*i~i", CheckError, 0, "finite"),
        ("i*1e999~i", CheckError, 2, "finite"),
        ("ij*j~i", CheckError, 5, "cannot drop axis j"),
        ("-ij~i", CheckError, 0, "cannot reduce axis j"),
        ("ij>>j~i", CheckError, 6, "cannot drop"),
        ("i!!i~i", CheckError, 1, "one operand"),
        ("!!ij~i", CheckError, 0, "cannot reduce"),
        ("i~i~i", ParseError, 3, "left over"),
        ("i~i;", ParseError, 3, "left over"),
        ("i~i|", ParseError, 4, "an axis is missing"),
        ("i~i|i:2", ParseError, 7, "second bar"),
        ("i~i|i|", ParseError, 5, "colon"),
        ("i~i|i:|", ParseError, 6, "factor is missing"),
        ("i~i|i:-1|", ParseError, 6, "factor is missing"),
        ("i~i|i:٤|", ParseError, 6, "factor is missing"),
        ("i~i|i:2:|", ParseError, 8, "factor is missing"),
        ("i~i|i:2,|", ParseError, 8, "an axis is missing"),
        ("i~i|i:2,i:4|", ParseError, 8, "two entries"),
        ("i~i|i:0|", CheckError, 6, "zero"),
        ("i~i|i:2:000|", CheckError, 8, "zero"),
        ("i~i|i:99999999999|", CheckError, 6, "too large"),
        ("i~i|i:65536:65536|", CheckError, 4, "too large"),
        ("i~i|j:2|", CheckError, 4, "axis j is split"),
        ("i~i|i:2|i", CheckError, 8, "leaves out loop i'"),
        ("i~i|i:2|ii'i''", CheckError, 11, "names loop i''"),
        ("i~i||ii", CheckError, 6, "lists i twice"),
        ("i~i||j", CheckError, 5, "names loop j"),
        ("i~i||0", CheckError, 5, "leaves out loop i"),
        ("i~i||'i", ParseError, 5, "something else"),
        ("i~i||i,i", ParseError, 6, "something else"),
        ("i~i||i2", ParseError, 6, "something else"),
        ("i~i||i00", ParseError, 7, "lists 0 twice"),
        ("i~i||i1", CheckError, 6, "which the expression lacks"),
        ("i*2~i||i1", CheckError, 8, "a number: nothing to stage"),
        ("+ij~i||i!j!", ParseError, 10, "lists ! twice"),
        ("+ij~i||!ij", CheckError, 7, "outside a loop of output axis i"),
        ("ij~ij||ij!", CheckError, 9, "reduces nothing"),
        ("+ij~i||ij|", ParseError, 9, "something else"),
    ],
)
def test_fifty_kinds_of_bad_text(text: str, error: type[ILangError], position: int, words: str) -> None:
    with pytest.raises(error) as caught:
        parse(text)
    assert type(caught.value) is error
    assert words in caught.value.message
    assert caught.value.source == text
    assert caught.value.position == position
    assert caught.value.expected
    if text:
        assert str(caught.value).splitlines()[2] == "  " + " " * position + "^"


def test_legal_alternatives() -> None:
    with pytest.raises(CheckError) as caught:
        parse("+ij~i|j:4|ij")
    assert caught.value.legal == ("i", "j", "j'")
    with pytest.raises(CheckError) as caught:
        parse("/ij~i")
    assert caught.value.legal == ("+", "*", ">", "<", "&&", "||", "^^")
    with pytest.raises(CheckError) as caught:
        parse("i*2~i||i1")
    assert caught.value.legal == ("0",)


@pytest.mark.parametrize("text", [None, 3, b"i~i", ["i~i"]])
def test_not_text(text: Any) -> None:
    with pytest.raises(ParseError, match="is text, not"):
        parse(text)


BIG = 1_000_000
DIAGONAL = "i" * BIG + "~i"


@pytest.mark.parametrize(
    "text",
    [
        "i" * BIG,
        DIAGONAL,
        "+" * BIG,
        "1" * BIG + "*i~i",
        "i~i|i:" + "9" * BIG + "|",
        "i~i|i" + ":1" * (BIG // 10) + "|",
        "i~i|i" + ":2" * (BIG // 10) + "|",
        "i~i||" + "i" * BIG,
        "i~i||i" + "'" * BIG,
        "i~i||" + "0" * BIG,
        "i~i||i" + " " * BIG + "?",
        " " * BIG,
        "i" * 26 + "~" + "i" * BIG,
        "i~i" + "|" * BIG,
    ],
    ids=range(14),
)
def test_long_text_neither_crashes_nor_hangs(text: str) -> None:
    started = time.process_time()
    with pytest.raises(ILangError) if text != DIAGONAL else nullcontext():
        parse(text)
    assert time.process_time() - started < 10
