"""Records against the frozen, slotted dataclasses that they stand for."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilang_eq.records import record


@record
class Point:
    """A record with all that one may have."""

    x: int
    y: str = "here"
    seen: list[int] = field(default_factory=list, compare=False)
    secret: float = field(default=0.5, repr=False)

    @property
    def double(self) -> int:
        return 2 * self.x


@dataclass(frozen=True, slots=True)
class Other:
    """The same as a dataclass."""

    x: int
    y: str = "here"
    seen: list[int] = field(default_factory=list, compare=False)
    secret: float = field(default=0.5, repr=False)


ARGUMENTS = st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.lists(st.integers(), max_size=1), st.just(1.0))


@given(ARGUMENTS, ARGUMENTS)
def test_alike(one: tuple[int, str, list[int], float], two: tuple[int, str, list[int], float]) -> None:
    points, others = (Point(*one), Point(*two)), (Other(*one), Other(*two))
    assert (points[0] == points[1]) is (others[0] == others[1])
    assert hash(points[0]) == hash(others[0])
    assert repr(points[0]) == repr(others[0]).replace("Other", "Point")
    assert dataclasses.asdict(points[0]) == dataclasses.asdict(others[0])


def test_defaults_are_made_for_each() -> None:
    one, two = Point(1), Point(x=1)
    assert (one.y, one.seen, one.secret, one.double) == ("here", [], 0.5, 2)
    assert one == two
    assert one.seen is not two.seen


def test_frozen_and_slotted() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="'x'"):
        point.x = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError, match="'x'"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_no_other_class_is_equal() -> None:
    assert Point(1) != Other(1)
    assert Point(1) != (1, "here", [], 0.5)


def test_wrong_arguments_name_the_class() -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # pyright: ignore[reportCallIssue]


def test_copied_replaced_and_matched() -> None:
    point = Point(1, "a", [3])
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == copy.copy(point) == point
    assert pickle.loads(pickle.dumps(point)).seen == [3]
    assert dataclasses.replace(point, x=2) == Point(2, "a")
    match point:
        case Point(x, y):
            assert (x, y) == (1, "a")


def test_own_methods_stay() -> None:
    @record
    class Own:
        x: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert repr(Own(1)) == "mine"
    assert Own(1) == Own(2)
    assert hash(Own(1)) == 7


def test_no_fields() -> None:
    @record
    class Empty:
        """Nothing."""

    assert Empty() == Empty()
    assert repr(Empty()).endswith("Empty()")


def test_more_than_a_record() -> None:
    class Checked:
        x: int

        def __post_init__(self) -> None: ...

    class Counted:
        x: int = field(init=False)

    for cls in (Checked, Counted):
        with pytest.raises(TypeError, match="more than a record"):
            record(cls)
