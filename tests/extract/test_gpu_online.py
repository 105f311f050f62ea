"""Reductions in the tiles of their readers. Each graph made is the same function, and can be lowered."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.errors import ScheduleError
from ilang_eq.extract.gpu_online import in_tiles_of_readers
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower

SUM = (I & i(">ij~i")) >> i("ij-i~ji|i:2,j:4|i1jj'i'") >> i("^ji~ji|i:2,j:4|ijj'i'0") >> i("+ji~i|i:2,j:4|ij0j'i'")
"""Exponentials over the maximum of each row, summed: the maximum is found first."""


def moved(component: Component) -> Component:
    made = unwire(in_tiles_of_readers(wire(component)))
    x = np.random.default_rng(0).standard_normal((5, 9))
    np.testing.assert_allclose(made.interpret(x), component.interpret(x))
    return made


def test_a_maximum_is_found_tile_by_tile_and_what_was_summed_repaired() -> None:
    made = moved(SUM)
    assert """i(">ij~i|i:2,j:4|iji'j'")""" in str(made)
    assert """|ij1j'i'")""" in str(made)
    kernel = made.compile("c", threads=1)
    assert "rescale" in kernel.source
    x = np.random.default_rng(0).standard_normal((5, 9), dtype=np.float32)
    np.testing.assert_allclose(kernel(x), SUM.interpret(x), rtol=1e-5)


def test_what_cannot_be_repaired_is_refused_when_it_is_lowered() -> None:
    """Of comparisons with a sum that is still under way nothing is left when it is complete."""
    component = (I & i("+ij~i")) >> i("ij>i~ji|i:2,j:4|i1jj'i'") >> i("+ji~i|i:2,j:4|ij0j'i'")
    made = in_tiles_of_readers(wire(component))
    assert made != wire(component)
    with pytest.raises(ScheduleError):
        lower(made)


def test_a_reader_without_tiles_of_it_stays_as_it_is() -> None:
    component = (I & i(">ij~i")) >> i("ij-i~ij||i1j")
    assert in_tiles_of_readers(wire(component)) == wire(component)


def test_loops_that_the_reduction_has_not_are_left_alone() -> None:
    """A product of sums: the reader's tiles are of axes that they have not, or do not reduce."""
    component = (i("+ik~i") | I) >> i("i*j~ij|i:2,j:4|i0ji'j'")
    assert in_tiles_of_readers(wire(component)) == wire(component)
