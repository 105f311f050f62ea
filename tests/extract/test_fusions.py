from __future__ import annotations

from ilang_eq.extract.fusions import Argument, Computed, Fusion, Fusions, Scope
from ilang_eq.rewrites.space import Number, Variant
from tests.extract import spaces


def members(fusions: Fusions, c: int) -> list[tuple[int, ...]]:
    """The classes in each fusion of class ``c``."""
    return [tuple(v.of for v in fusion.members) for fusion in fusions.fusions(c)]


def test_products_are_always_inlined_in_their_sums() -> None:
    fusions = Fusions(spaces.attention())
    assert members(fusions, 3) == [(3, 2)]
    assert members(fusions, 12) == [(12, 10)]
    assert fusions.reads(fusions.fusions(12)[0]) == (6,)


def test_a_shared_value_is_computed_again_only_by_readers_that_come_later() -> None:
    fusions = Fusions(spaces.softmax())
    assert members(fusions, 4) == [(4,)], "the sum may share exponentials with whoever is first"
    assert sorted(members(fusions, 5)) == [(5,), (5, 3, 2)], "the division comes after the sum"


def test_readers_in_different_kernels_may_compute_a_value_for_themselves() -> None:
    fusions = Fusions(spaces.shared_exponential())
    assert sorted(members(fusions, 2)) == [(2,), (2, 1)]
    assert sorted(members(fusions, 3)) == [(3,), (3, 1)]


def test_a_class_can_be_fused_in_different_ways() -> None:
    fusions = Fusions(spaces.attention())
    reads = {fusion: fusions.reads(fusion) for fusion in fusions.fusions(13)}
    assert reads == {
        Fusion(Variant(13, 0), (Variant(11, 0),)): (8,),
        Fusion(Variant(13, 0), (Variant(11, 1), Variant(10, 0))): (7, 6),
        Fusion(Variant(13, 1)): (12, 7),
    }


def test_operands_are_looked_through_numbers_arguments_and_views() -> None:
    assert Fusions(spaces.scaled_sum()).operands(Variant(2, 0)) == (Number(0.5), Argument(0, (0, 1)))
    first, second = Fusions(spaces.gram()).operands(Variant(3, 0))
    assert first == Computed(1)
    assert isinstance(second, Computed)
    assert second.names((0, 2)) == (1, 2)


def test_what_is_viewed_is_not_inlined() -> None:
    fusions = Fusions(spaces.gram())
    assert members(fusions, 4) == [(4, 3)]
    assert fusions.viewed(fusions.fusions(4)[0]) == {1}


def test_a_narrow_scope_has_fewer_fusions() -> None:
    assert len(Fusions(spaces.attention(), Scope(fusions=1)).fusions(13)) == 2
