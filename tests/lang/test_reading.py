from __future__ import annotations

import pytest
from hypothesis import given

from ilang_eq.errors import CheckError, ParseError
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.reading import read_component
from tests.strategies import Typed, components

f, g, h = i("-i~i"), i("^i~i"), i("i*j~ij")


@given(components())
def test_text_reads_back(typed: Typed) -> None:
    assert i(str(typed.component)) == typed.component


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("I", I),
        ("~(I & I)", ~(I & I)),
        ('i("-i~i")>>i("^i~i")|I&I', f >> g | I & I),
        ("i('-i~i') << (i( \"^i~i\" ) >> I)", f << (g >> I)),
        ('~~i("i*j~ij") >> i("-ij~ij")', ~~h >> i("-ij~ij")),
        ('i("ik*kj~ijk|k:4|ikjk\'")', i("ik*kj~ijk|k:4|ikjk'")),
        ('# both\nfirst = i("-i~i")  # this\n\n(first\n  >> i("^i~i"))\n', f >> g),
        ('x = i("-i~i")\nx = x >> x\nx', f >> f),
        ('i("-i~i") \\\n >> I', f >> I),
    ],
)
def test_what_text_means(text: str, right: Component) -> None:
    assert read_component(text) == right


@pytest.mark.parametrize("nested", [False, True])
def test_chains_of_any_length_read_back(nested: bool) -> None:
    chain = f
    for _ in range(3000):
        chain = f >> chain if nested else chain >> f
    assert i(str(chain)) == chain


def test_any_number_of_swaps_reads_back() -> None:
    assert read_component("~" * 2000 + "I").leaves == 0


@pytest.mark.parametrize(
    ("text", "line", "position"),
    [
        ('i("-i~i") >>', 'i("-i~i") >>', 12),
        ('i("-i~i") i("-i~i")', 'i("-i~i") i("-i~i")', 10),
        ("I\nI >> (I &)", "I >> (I &)", 9),
        ("I\n(I >> (I", "(I >> (I", 6),
        ("I)", "I)", 1),
        ("I + I", "I + I", 2),
        ("x = I\ny", "y", 0),
        ("I = I", "I = I", 0),
        ("x =", "x =", 3),
        ("i(3)", "i(3)", 2),
        ('i("-i~i").compile()', 'i("-i~i").compile()', 9),
        ("(I)(I)", "(I)(I)", 3),
    ],
)
def test_the_caret_stands_under_what_is_wrong(text: str, line: str, position: int) -> None:
    with pytest.raises(ParseError) as caught:
        read_component(text)
    assert (caught.value.source, caught.value.position) == (line, position)


def test_an_expression_in_it_is_checked() -> None:
    with pytest.raises(CheckError, match="names axis k"):
        i('I >> i("ij~jk")')


def test_a_capital_axis_is_not_taken_for_component_text() -> None:
    with pytest.raises(ParseError, match="a pattern is missing"):
        i("Ij~ij")
