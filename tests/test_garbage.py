"""Looking for garbage less often, and as often as before afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ilang_eq.garbage import OBJECTS, seldom_collected


@pytest.fixture(autouse=True)
def as_usual() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_seldom_and_then_as_before() -> None:
    gc.set_threshold(500, 5, 6)
    with seldom_collected():
        assert gc.get_threshold()[:2] == (OBJECTS, 5)
    assert gc.get_threshold()[:2] == (500, 5)


def test_as_before_after_an_error() -> None:
    gc.set_threshold(500)
    with pytest.raises(ZeroDivisionError), seldom_collected():
        raise ZeroDivisionError
    assert gc.get_threshold()[0] == 500


def test_as_before_whoever_leaves_last() -> None:
    gc.set_threshold(500)
    first, second = ExitStack(), ExitStack()
    first.enter_context(seldom_collected())
    second.enter_context(seldom_collected())
    first.close()
    second.close()
    assert gc.get_threshold()[0] == 500


@pytest.mark.parametrize("objects", [0, 10 * OBJECTS])
def test_never_more_often_than_before(objects: int) -> None:
    gc.set_threshold(objects)
    with seldom_collected():
        assert gc.get_threshold()[0] == objects
