"""Functions of several vectors: C divides them into the same groups as the cost model."""

from __future__ import annotations

import re

import pytest

from ilang_eq import i
from ilang_eq.c.emit import emit
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.groups import AARCH64, AVX512, OTHERS, Grouping


@pytest.mark.parametrize(("place", "grouping"), [(0, AVX512), (1, AARCH64), (2, OTHERS)])
def test_c_divides_vectors_as_the_model_does(place: int, grouping: Grouping) -> None:
    macros = re.findall(r"#define ABREAST\(n\) (.*)", emit(lower(wire(i("^ij~ij|j:64|")))))
    assert len(macros) == 3
    (most,) = re.findall(r"\(n\) <= (\d+) \? \(n\)", macros[place])
    sizes = [(int(x), int(y)) for x, y in re.findall(r"\(n\) % (\d+) == 0 \? (\d+)", macros[place])]
    assert macros[place].endswith(": 1)")
    for n in range(1, 100):
        in_c = n if n <= int(most) else next((size for x, size in sizes if n % x == 0), 1)
        assert in_c == grouping.abreast(n)
