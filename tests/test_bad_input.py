"""Bad schedules, options and arrays: one clear error each; no compiler is called and no file is left behind.

Malformed text and ill-formed expressions, fifty-seven kinds, are in ``tests/lang``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang_eq import Component, I, ILangError, i, optimize
from ilang_eq.errors import ArrayError, OptionError, RuleError, ScheduleError, ShapeError
from ilang_eq.lang.reading import read_component
from ilang_eq.measure import random_inputs

MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def build(*_: object, **__: object) -> None:
        raise AssertionError("bad input reached the compiler")

    monkeypatch.setenv("ILANG_EQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ilang_eq.c.kernel.build", build)
    yield
    assert not list(tmp_path.rglob("*"))


def matmul(producer: str, consumer: str) -> Component:
    return i(f"ik*kj~ijk|{producer}") >> i(f"+ijk~ij|{consumer}")


SCHEDULES: dict[str, tuple[Component, str]] = {
    "a graph input staged": (i("+ij~i||i0j"), "no producer to stage"),
    "a graph input staged beside a producer": (i("^ij~ij") >> i("ij*j~ij||i1j"), "no producer to stage"),
    "shared loops in another order": (matmul("|kji", "|ij0k"), "in another order"),
    "unsplit under split": (matmul("|ijk", "i:2|ii'0jk"), "split not at all there but by 2 here"),
    "split under unsplit": (matmul("i:2|ii'jk", "|i0jk"), "split by 2 there but not at all here"),
    "other factors": (matmul("i:2:4|ii'i''jk", "i:4:2|ii'i''0jk"), "split by 2:4 there but by 4:2 here"),
    "a partial sum escapes": ((I & i("+ij~i||ij")) >> i("ij/i~ij||ij1"), "before its reduction is complete"),
    "a partial tile escapes": ((I & i("+ij~i|j:2|jij'")) >> i("ij/i~ij|j:2|j1ij'"), "before its reduction is complete"),
    "a sum that does not separate": (
        (I & i(">ij~i||ji")) >> i("ij-i~ij||j1i") >> i("^ij~ij||j0i") >> i("ij+ij~ij||j0i") >> i("+ij~i||j0i"),
        "does not separate",
    ),
    "a product of partial values": (
        (I & i("+ij~i||ji")) >> i("ij/i~ij||j1i") >> i("*ij~i||j0i"),
        "does not separate",
    ),
    "a base that is not a number": (
        (I | ((I & i(">ij~i||ji")) >> i("ij-i~ij||j1i"))) >> i("i^ij~ij||j1i") >> i("+ij~i||j0i"),
        "does not separate",
    ),
    "an update in a foreign loop": (
        ((I & i("+ij~i||ji")) >> i("ij/i~ij||ji1")) >> i("ij*jk~ikj||jki0") >> i("+ikj~ik||jki0"),
        "updated again in every step of loop k",
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_illegal_schedule(name: str) -> None:
    component, message = SCHEDULES[name]
    with pytest.raises(ScheduleError, match=message) as caught:
        component.compile()
    assert caught.value.source is not None
    assert caught.value.legal, "the legal alternatives are listed"
    assert "^" in str(caught.value)


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_is_listed_as_legal_lowers(name: str) -> None:
    component, _ = SCHEDULES[name]
    with pytest.raises(ScheduleError) as caught:
        component.plan()
    wrong = caught.value.source
    assert wrong is not None
    for text in caught.value.legal:
        read_component(str(component).replace(wrong, text.strip("`"))).plan()


RANKS = {
    "rank too low": i("+ij~i") >> i("+ij~j"),
    "rank too high": i("-ij~ij") >> i("-i~i"),
    "one input at two ranks": (I & I) >> i("ij*i~ij"),
}


@pytest.mark.parametrize("name", RANKS)
def test_contradictory_ranks(name: str) -> None:
    with pytest.raises(ShapeError):
        RANKS[name].compile()


def array(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


CALLS: dict[str, Callable[[], Any]] = {
    "too few arrays": lambda: MATMUL.compile()(array(2, 2)),
    "too many arrays": lambda: MATMUL.compile()(array(2, 2), array(2, 2), array(2, 2)),
    "a result with too many elements to count": lambda: MATMUL.compile()(array(2**40, 0), array(0, 2**40)),
    "a result larger than memory": lambda: MATMUL.compile()(array(2**31, 0), array(0, 2**31)),
    "a copy larger than memory": lambda: MATMUL.compile()(_repeated(2**30, 2**30), _repeated(2**30, 1)),
    "a vector for a matrix": lambda: MATMUL.compile()(array(2), array(2, 2)),
    "inner extents differ": lambda: MATMUL.compile()(array(2, 3), array(2, 3)),
    "float64": lambda: MATMUL.compile()(array(2, 2).astype(np.float64), array(2, 2)),
    "integers": lambda: MATMUL.compile()(array(2, 2).astype(np.int32), array(2, 2)),
    "a list": lambda: MATMUL.compile()([[1.0]], array(1, 1)),
    "out of another shape": lambda: MATMUL.compile()(array(2, 3), array(3, 4), out=array(4, 2)),
    "out of another type": lambda: MATMUL.compile()(array(2, 3), array(3, 4), out=np.ones((2, 4))),
    "out not contiguous": lambda: MATMUL.compile()(array(2, 3), array(3, 4), out=array(4, 2).T),
    "out read-only": lambda: MATMUL.compile()(array(2, 3), array(3, 4), out=_frozen(array(2, 4))),
    "out over an input": lambda: _in_place(),
}


def _frozen(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


def _repeated(*shape: int) -> np.ndarray:
    """One element, shown as an array of any size."""
    return np.broadcast_to(np.float32(1), shape)


def _in_place() -> None:
    a = array(3, 3)
    MATMUL.compile()(a, array(3, 3), out=a)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arrays(name: str) -> None:
    with pytest.raises((ArrayError, ShapeError)):
        CALLS[name]()


OPTIONS: dict[str, tuple[type[ILangError], dict[str, Any]]] = {
    "an unknown target": (OptionError, {"target": "fpga"}),
    "no threads": (OptionError, {"threads": 0}),
    "more threads than any machine has": (OptionError, {"threads": 10**9}),
    "an unknown effort": (OptionError, {"effort": "heroic"}),
    "an empty budget": (OptionError, {"budget_s": 0}),
    "a budget in words": (OptionError, {"budget_s": "a minute"}),
    "a budget without an end": (OptionError, {"budget_s": float("inf")}),
    "one name for constants": (OptionError, {"constants": "in0"}),
    "a number for constants": (OptionError, {"constants": 0}),
    "a negative seed": (OptionError, {"seed": -1}),
    "half an element": (ShapeError, {"shapes": [(2, 2.5), (2, 2)]}),
    "one number for shapes": (ShapeError, {"shapes": 2}),
    "a number for shapes": (ShapeError, {"shapes": [2, 2]}),
    "an unknown rule set": (RuleError, {"rules": "everything"}),
    "too few shapes": (ShapeError, {"shapes": [(2, 2)]}),
    "shapes that do not fit": (ShapeError, {"shapes": [(2, 3), (2, 3)]}),
    "a negative extent": (ShapeError, {"shapes": [(-1, 3), (3, 3)]}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options(name: str) -> None:
    error, options = OPTIONS[name]
    with pytest.raises(error):
        optimize(MATMUL, **options)


@pytest.mark.parametrize("given", [None, 3, "+ij~i"])
def test_what_is_no_component(given: Any) -> None:
    with pytest.raises(OptionError, match="no component"):
        optimize(given)


@pytest.mark.parametrize("shapes", [3, [(2, 2)], [(2, 2), ("a", 2)], [(2, 2), (2.5, 2)]])
def test_a_plan_of_wrong_shapes(shapes: Any) -> None:
    with pytest.raises(ShapeError):
        MATMUL.plan(shapes)


@pytest.mark.parametrize("extent", [2**40, 10**20])
def test_inputs_that_no_memory_holds_are_not_made_up(extent: int) -> None:
    with pytest.raises(ArrayError, match="do not fit in memory"):
        random_inputs({(0, 0): extent, (0, 1): 2**20}, 1, seed=0)


@pytest.mark.parametrize("shapes", [[(0, 0), (0, 0)], [(0, 3), (3, 4)], [(3, 0), (0, 4)]])
@pytest.mark.filterwarnings("error")
def test_extents_of_nothing_are_optimised_for(shapes: list[tuple[int, int]]) -> None:
    assert optimize(MATMUL, shapes, threads=1, database=False).component.inputs == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "i(",
        "i(1)",
        "open('x')",
        "i('+ij~i').compile()",
        "import os",
        "__import__('os')",
        "x = i('i~i')\ny",
        "I + I",
    ],
)
def test_component_text_is_not_evaluated(text: str) -> None:
    with pytest.raises(ILangError):
        read_component(text)
