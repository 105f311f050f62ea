"""What was measured on Zen 4, by its description."""

from __future__ import annotations

import pytest

from ilang_eq.extract.machine import load
from ilang_eq.lang.component import i
from tests.extract.costs import cost

ZEN4 = load("x86_64_zen4")


def test_what_a_core_keeps_for_itself_counts_like_what_it_is_given() -> None:
    """Weights of 8192 keys for 96 queries are more than a second level has, and are read for each column."""
    weights = i("+il~li|i:96|ili'") >> i("li-kl~lki|i:96,k:4|i0klk'i'") >> i("+lki~ki|i:96,k:4|iklk'i'0")
    component = weights >> i("ki*kj~jki|i:96|i0jki'") >> i("+jki~ij|i:96|ijki'0")

    def beyond(keys: int) -> float:
        terms = cost(component, (1024, 2), (keys, 2), (keys, 2), machine=ZEN4).terms
        return sum(time for name, time in terms if name.endswith("L3"))

    assert beyond(512) == 0.0
    assert beyond(8192) > 0.0


def test_columns_that_compete_for_few_places_are_waited_for() -> None:
    """Tiles of 8 × 64 in blocks of 256 steps take 1.84 and 1.19 cycles a vector where rows are 1024 and 1040 floats."""
    tile = "|i:64,j:8,k:256|"
    product = i("+ki~ki|i:64,k:256|ikk'i'") >> ~i(f"jk*ki~kji{tile}ik1jk'j'i'") >> i(f"+kji~ij{tile}ikjk'j'i'0")
    near, far = (cost(product, (1024, 1024), (rows, 1024), machine=ZEN4).seconds / rows for rows in (1024, 1040))
    assert near > 1.2 * far


@pytest.mark.parametrize(("rows", "cycles"), [(2, 4.6), (4, 8.4), (8, 16.7)])
def test_an_element_for_several_vectors_takes_a_port_of_zen4_for_half_a_cycle(rows: int, cycles: float) -> None:
    """As measured, a step: two vectors and two lines take longer than that, a multiply-add by itself a cycle."""
    product = i("+ik~ki|i:32|iki'") >> ~i(f"jk*ki~kji|i:32,j:{rows}|i1jkj'i'") >> i(f"+kji~ji|i:32,j:{rows}|ijkj'i'0")
    steps = 192 * 1536 * 512 / (32 * rows)
    expected = cost(product, (192, 512), (1536, 512), machine=ZEN4).seconds * ZEN4.clock_ghz * 1e9 / steps
    assert cycles < expected < 1.3 * cycles
