"""Graphs that differ in steps alone are lowered once, to what each would be lowered to by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ilang_eq import Component, I, i
from ilang_eq.errors import ScheduleError
from ilang_eq.lang.graph import Graph
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower, resizing
from ilang_eq.lower.ir import Comment, For, Program, Statement
from ilang_eq.lower.lowering import lowered_by_rows
from ilang_eq.lower.resizing import Lowerings

SIZES = ((2, 4), (3, 5), (4, 4), (5, 3), (1, 6), (8, 1), (1, 1))


def product(rows: int, columns: int) -> Component:
    """Tiles of a product, of a copy in panels."""
    splits = f"i:{rows},j:{columns}"
    copy = i(f"+kj~kj|j:{columns}|jkj'")
    return (I | copy) >> i(f"ik*kj~kij|{splits}|jiki'j'") >> i(f"+kij~ij|{splits}|jiki'j'0")


def online(rows: int, columns: int) -> Component:
    """The sum of the exponentials of rows, under their maximum."""
    splits = f"i:{rows},j:{columns}"
    return (I & i(f">ij~i|{splits}|iji'j'")) >> (
        i(f"ij-i~ij|{splits}|ij1i'j'") >> i(f"^ij~ij|{splits}|iji'j'0") >> i(f"+ij~i|{splits}|iji'j'0")
    )


def gram(rows: int, columns: int) -> Component:
    """Two axes over the same dimension, whose steps may be the same or not."""
    splits = f"i:{rows},j:{columns}"
    return (I & I) >> i(f"ik*jk~ijk|{splits}|ijki'j'") >> i(f"+ijk~ij|{splits}|ijki'j'0")


def inner_level(rows: int, columns: int) -> Component:
    """An inner level of an axis is folded alone: some sizes are what one step is of another."""
    splits = f"j:{rows}:{columns}"
    return i(f"^ij~ij|{splits}|j'ijj''") >> i(f"^ij~ij|{splits}|j'i0jj''")


def bare(program: Program) -> Program:
    """``program`` without comments, and without how dimensions are split."""

    def statements(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        kept = (s for s in body if not isinstance(s, Comment))
        return tuple(replace(s, body=statements(s.body)) if isinstance(s, For) else s for s in kept)

    kernels = tuple(replace(kernel, body=statements(kernel.body)) for kernel in program.kernels)
    return replace(program, kernels=kernels, buffers=tuple(replace(b, parts=()) for b in program.buffers))


@pytest.mark.parametrize("component", [product, online, gram, inner_level])
def test_a_graph_is_lowered_to_the_same_with_others_before_it(component: Callable[[int, int], Component]) -> None:
    lowerings = Lowerings()
    for rows, columns in (*SIZES, *reversed(SIZES)):
        graph = wire(component(rows, columns))
        assert bare(lowerings.lower(graph)) == bare(lower(graph))


@pytest.mark.parametrize(("component", "times"), [(product, 1), (online, 1), (gram, 2), (inner_level, 3)])
def test_what_is_alike_is_lowered_once(
    component: Callable[[int, int], Component], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two axes over one dimension may be merged where they take the same steps; these are of different ones."""
    lowered: list[Graph] = []

    def by_rows(graph: Graph) -> Program:
        lowered.append(graph)
        return lowered_by_rows(graph)

    monkeypatch.setattr(resizing, "lowered_by_rows", by_rows)
    lowerings = Lowerings()
    for sizes in ((2, 4), (3, 5), (4, 4)):
        lowerings.lower(wire(component(*sizes)))
    assert len(lowered) == times


def test_what_is_illegal_with_some_steps_only_is_refused_with_these() -> None:
    def staged(theirs: int) -> Graph:
        return wire(i(f"^i~i|i:{theirs}|ii'") >> i("^i~i|i:4|i0i'"))

    lowerings = Lowerings()
    lowerings.lower(staged(4))
    with pytest.raises(ScheduleError):
        lowerings.lower(staged(8))
