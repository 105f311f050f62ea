from __future__ import annotations

from dataclasses import replace

from ilang_eq.extract.fusions import Fusion
from ilang_eq.extract.states import FREE, Ended, State, Ties, Unfinished, brings, depths, joined, left, read_at
from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import Variant
from tests.extract import spaces
from tests.extract.spaces import COLUMN, INNER, KEY, ROW

STRUCTURE = Structure(spaces.attention())

BLOCK = (ROW, KEY)
WAITING = Ties(frozenset({Unfinished(Variant(4, 0), 2)}), frozenset(), 13)

SCORES = State(Fusion(Variant(3, 0), (Variant(2, 0),)), BLOCK, (ROW, KEY, INNER), 2)
MAXIMUM = State(Fusion(Variant(4, 0)), BLOCK, BLOCK, 2, ties=Ties(open_until=13))
EXPONENTIALS = State(Fusion(Variant(6, 0), (Variant(5, 0),)), BLOCK, BLOCK, 2, ties=WAITING)
SUM = State(Fusion(Variant(7, 0)), BLOCK, BLOCK, 1, ties=Ties(open_until=13))
PRODUCT = State(Fusion(Variant(12, 0), (Variant(10, 0),)), BLOCK, (ROW, COLUMN, KEY), 1, ties=Ties(open_until=13))
QUOTIENT = State(Fusion(Variant(13, 1)), (ROW,), (ROW, COLUMN))


def test_flash_attention_fits_together() -> None:
    assert read_at(STRUCTURE, MAXIMUM, SCORES, 3) == 2
    assert read_at(STRUCTURE, EXPONENTIALS, SCORES, 3) == 2
    assert read_at(STRUCTURE, EXPONENTIALS, MAXIMUM, 4) == 2
    assert read_at(STRUCTURE, SUM, EXPONENTIALS, 6) == 2
    assert read_at(STRUCTURE, PRODUCT, EXPONENTIALS, 6) == 2
    assert read_at(STRUCTURE, QUOTIENT, SUM, 7) == 1
    assert read_at(STRUCTURE, QUOTIENT, PRODUCT, 12) == 1


def test_a_statistic_is_read_unfinished_or_where_it_is_finished() -> None:
    assert depths(STRUCTURE, MAXIMUM) == (2, 1)
    assert depths(STRUCTURE, SUM) == (1,)
    assert brings(STRUCTURE, MAXIMUM, 2).waits == WAITING.waits
    assert brings(STRUCTURE, MAXIMUM, 1).waits == frozenset()
    assert brings(STRUCTURE, MAXIMUM, 1).ended == {Ended(1, KEY)}


def test_what_waits_stays_in_the_loop() -> None:
    waits = brings(STRUCTURE, MAXIMUM, 2)
    assert left(STRUCTURE, EXPONENTIALS, waits, 2) == WAITING
    assert left(STRUCTURE, replace(EXPONENTIALS, site=1), waits, 2) is None
    assert left(STRUCTURE, replace(EXPONENTIALS, site=0), waits, 2) is None


def test_a_repaired_sum_waits_no_more_and_any_other_is_illegal() -> None:
    waits = brings(STRUCTURE, EXPONENTIALS, 2)
    owed = left(STRUCTURE, SUM, waits, 2)
    assert owed is not None
    assert owed.waits == frozenset()
    unrepaired = Structure(replace(spaces.attention(), repairs=()))
    assert left(unrepaired, SUM, waits, 2) is None


def test_what_comes_after_a_loop_is_not_in_it() -> None:
    after = brings(STRUCTURE, SUM, 1)
    assert after.ended == {Ended(1, KEY)}
    again = State(Fusion(Variant(8, 0)), BLOCK, BLOCK, 1)
    assert left(STRUCTURE, again, after, 1) is None
    assert left(STRUCTURE, replace(again, nest=(ROW,)), after, 1) is not None


def test_no_kernel_ends_before_the_readers_of_a_shared_value_meet() -> None:
    shared = brings(STRUCTURE, SCORES, 2)
    assert shared.open_until == 13
    assert left(STRUCTURE, MAXIMUM, shared, 2) is not None
    assert left(STRUCTURE, replace(MAXIMUM, site=0), shared, 2) is None
    assert left(STRUCTURE, QUOTIENT, Ties(open_until=13), 1) == FREE


def test_serial_and_parallel_kernels_share_nothing() -> None:
    assert read_at(STRUCTURE, replace(MAXIMUM, serial=True), SCORES, 3) is None


def test_what_is_in_memory_is_read_anywhere_and_what_is_not_computed_nowhere() -> None:
    assert read_at(STRUCTURE, QUOTIENT, replace(SUM, site=0), 7) == 0
    assert read_at(STRUCTURE, QUOTIENT, None, 7) is None


def test_a_reader_has_to_account_for_what_it_owes() -> None:
    assert read_at(STRUCTURE, replace(EXPONENTIALS, ties=FREE), MAXIMUM, 4) is None
    assert joined(STRUCTURE, [WAITING, Ties(ended=frozenset({Ended(1, KEY)}))]) == replace(
        WAITING, ended=frozenset({Ended(1, KEY)})
    )
