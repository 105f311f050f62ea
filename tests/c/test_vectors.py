"""Products in the sums that they are added to."""

from __future__ import annotations

from ilang_eq.c.vectors import _contracted
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Index, Load

A, B, SUM = (Load(name, (Index((variable,)),)) for name, variable in (("a", "i"), ("b", "j"), ("sum", "j")))
PRODUCT = Load("product", ())
VALUE = Apply("mul", (A, B))


def test_a_product_that_is_only_added_is_part_of_the_sum() -> None:
    body = [Assign(PRODUCT, VALUE), Accumulate(SUM, "add", PRODUCT)]
    assert _contracted(body) == [Accumulate(SUM, "add", VALUE)]


def test_a_product_that_others_read_stays() -> None:
    body = [Assign(PRODUCT, VALUE), Accumulate(SUM, "add", PRODUCT), Accumulate(B, "max", PRODUCT)]
    assert _contracted(body) == body


def test_a_product_of_what_changes_meanwhile_stays() -> None:
    body = [Assign(PRODUCT, VALUE), Accumulate(A, "add", B), Accumulate(SUM, "add", PRODUCT)]
    assert _contracted(body) == body


def test_other_sums_stay() -> None:
    body = [Assign(PRODUCT, VALUE), Accumulate(SUM, "max", PRODUCT)]
    assert _contracted(body) == body
