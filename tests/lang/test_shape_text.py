"""Shapes as text."""

from __future__ import annotations

import pytest

from ilang_eq.errors import ParseError
from ilang_eq.lang.shape_text import print_shape, read_shape


@pytest.mark.parametrize("shape", [(), (7,), (0, 1), (2048, 64, 3)])
def test_there_and_back(shape: tuple[int, ...]) -> None:
    assert read_shape(print_shape(shape)) == shape


@pytest.mark.parametrize("text", ["", "x", "2x", "x2", "2y3", "-1", "2 x 3", "2.5", "..", "1e3"])
def test_no_shape(text: str) -> None:
    with pytest.raises(ParseError, match="is no shape"):
        read_shape(text)
