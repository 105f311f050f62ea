from __future__ import annotations

from ilang_eq.extract.structure import Structure
from ilang_eq.rewrites.space import Apply, ENode, Read, Variant
from tests.extract import spaces


def test_classes_that_are_always_inlined_take_no_decision() -> None:
    assert Structure(spaces.attention()).classes == (3, 4, 6, 7, 8, 12, 13)
    assert Structure(spaces.matmul()).classes == (3,)


def test_paths_from_a_shared_value_meet() -> None:
    assert Structure(spaces.softmax()).meets == {1: 5, 3: 5}
    assert Structure(spaces.attention()).meets == {3: 13, 4: 13, 6: 13}


def test_what_different_outputs_read_meets_nowhere() -> None:
    assert Structure(spaces.shared_exponential()).meets == {1: None}


def test_what_is_shared_across_too_many_classes_meets_nowhere() -> None:
    def chain(length: int) -> Structure:
        nodes: dict[int, tuple[ENode, ...]] = {0: (Read(0, (0, 1)),), 1: (Apply("pow", (0,)),)}
        for n in range(2, length, 2):
            # a sum over a new axis of its own keeps each from being inlined in the next
            nodes[n] = (Read(n, (0, n)),)
            nodes[n + 1] = (Apply("add", (n - 1, n)),)
        nodes[length] = (Apply("mul", (1, length - 1)),)
        dims = [(0, 0), (0, 1), *((n, 1) for n in range(2, length))]
        return Structure(
            spaces.make_space(nodes, [(length, tuple(sorted({0, 1, *range(2, length, 2)})))], dims, depth=1)
        )

    assert chain(8).meets == {1: 8}
    assert chain(30).meets == {1: None}


def test_depths_at_which_something_can_be_staged() -> None:
    structure = Structure(spaces.attention())
    (product,) = structure.fusions(12)
    assert structure.shared_depths[product, (spaces.ROW, spaces.KEY, spaces.COLUMN)] == 2
    assert (product, (spaces.COLUMN, spaces.ROW)) not in structure.shared_depths
    assert ((spaces.ROW,), 1) in structure.sites[Variant(12, 0)]


def test_axes_reduced_later() -> None:
    structure = Structure(spaces.attention())
    assert structure.reduced_above[3] == {spaces.KEY}
    assert structure.reduced_above[13] == frozenset()
