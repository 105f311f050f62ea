from __future__ import annotations

from collections.abc import Mapping

import pytest

from ilang_eq.extract.assemble import Schedule, assemble
from ilang_eq.extract.fusions import Fusion
from ilang_eq.extract.states import State
from ilang_eq.extract.structure import Structure
from ilang_eq.lang.graph import Graph, Input, Value
from ilang_eq.lang.unwiring import unwire
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.rewrites.space import Apply, ClassId, Read, Reduce, Space, Variant
from tests.extract import spaces
from tests.extract.spaces import COLUMN, INNER, KEY, ROW


def texts(graph: Graph) -> list[str]:
    return [str(node.expr) for node in graph.nodes]


def plain(space: Space, *inlined: tuple[ClassId, ClassId]) -> Schedule:
    """Everything in kernels of its own, but for the pairs (reader, what it inlines); no tile loops."""
    structure = Structure(space)
    inside = dict(inlined)
    states = {}
    for c in space.classes:
        nodes = enumerate(space.classes[c].nodes)
        for variant in (Variant(c, n) for n, node in nodes if isinstance(node, Apply | Reduce)):
            members = (Variant(inside[c], 0),) if c in inside else ()
            states.setdefault(c, State(Fusion(variant, members), (), structure.loops(variant)))
    sites = {(r, x): 0 for r in states for x in structure.reads(states[r].fusion)}
    return Schedule(states, sites, {})


def flash_attention(tiles: Mapping[int, int]) -> Schedule:
    """FlashAttention-2: the scores of a tile feed a running maximum, sum and product; one division at the end."""
    rows, block = (ROW,), (ROW, KEY)
    states = {
        3: State(Fusion(Variant(3, 0), (Variant(2, 0),)), block, (ROW, KEY, INNER), 2),
        4: State(Fusion(Variant(4, 0)), block, (ROW, KEY), 2),
        6: State(Fusion(Variant(6, 0), (Variant(5, 0),)), block, (ROW, KEY), 2),
        7: State(Fusion(Variant(7, 0)), block, (ROW, KEY), 1),
        12: State(Fusion(Variant(12, 0), (Variant(10, 0),)), block, (ROW, COLUMN, KEY), 1),
        13: State(Fusion(Variant(13, 1)), rows, (ROW, COLUMN)),
    }
    sites = {(4, 3): 2, (6, 3): 2, (6, 4): 2, (7, 6): 2, (12, 6): 2, (13, 12): 1, (13, 7): 1}
    return Schedule(states, sites, tiles)


def test_flash_attention_reads_as_it_would_be_written_by_hand() -> None:
    graph = assemble(Structure(spaces.attention()), flash_attention({ROW: 8, KEY: 16}))
    assert texts(graph) == [
        "il*kl~ikl|i:8,k:16|iki'k'l",
        "+ikl~ik|i:8,k:16|iki'k'l0",
        ">ik~i|i:8,k:16|ik0i'k'",
        "ik-i~ik|i:8,k:16|ik01i'k'",
        "^ik~ik|i:8,k:16|iki'k'0",
        "ik*kj~ijk|i:8,k:16|ik0i'jk'",
        "+ijk~ij|i:8,k:16|iki'jk'0",
        "+ik~i|i:8,k:16|ik0i'k'",
        "ij/i~ij|i:8|i01i'j",
    ]
    assert graph.inputs == 3
    assert graph.outputs == (Value(8),)
    program = lower(graph)
    assert len(program.kernels) == 1
    assert {c.kind for c in program.corrections} == {"max-shift"}


def test_a_tile_of_one_element_is_no_split() -> None:
    graph = assemble(Structure(spaces.attention()), flash_attention({ROW: 1, KEY: 16}))
    assert texts(graph)[0] == "il*kl~ikl|k:16|"
    assert texts(graph)[-1] == "ij/i~ij||i01j"


def test_the_order_of_the_loops_is_left_out_where_it_is_the_default() -> None:
    graph = assemble(Structure(spaces.softmax()), plain(spaces.softmax()))
    assert texts(graph) == [">ij~i", "ij-i~ij", "^ij~ij", "+ij~i", "ij/i~ij"]


def test_reductions_are_staged_first() -> None:
    space, (row, column) = spaces.softmax(), (0, 1)
    states = {
        1: State(Fusion(Variant(1, 0)), (row,), (row, column), 1),
        3: State(Fusion(Variant(3, 0), (Variant(2, 0),)), (row,), (row, column), 1),
        4: State(Fusion(Variant(4, 0)), (row,), (row, column), 1),
        5: State(Fusion(Variant(5, 0)), (row,), (row, column)),
    }
    sites = {(3, 1): 1, (4, 3): 1, (5, 3): 1, (5, 4): 1}
    graph = assemble(Structure(space), Schedule(states, sites, {row: 4}))
    assert texts(graph)[-1] == "ij/i~ij|i:4|i10i'j"


def test_what_several_readers_inline_is_written_for_each() -> None:
    space = spaces.shared_exponential()
    graph = assemble(Structure(space), plain(space, (2, 1), (3, 1)))
    assert texts(graph) == ["^ij~ij", "+ij~i||ij0", "^ij~ji", "+ji~j||ji0", "^ij~ij", "+ij~ji"]


def test_outputs_keep_their_order_repeats_inputs_and_layouts() -> None:
    space = spaces.shared_exponential()
    graph = assemble(Structure(space), plain(space))
    assert texts(graph) == ["^ij~ij", "+ij~i", "+ij~j", "+ij~ji"]
    exponential, rows, columns, copy = range(4)
    assert graph.outputs == (
        Value(rows),
        Input(0),
        Value(columns),
        Value(exponential),
        Value(copy),
        Value(rows),
    )


def test_a_view_is_read_under_other_letters() -> None:
    space = spaces.gram()
    graph = assemble(Structure(space), plain(space, (4, 3)))
    assert texts(graph) == ["ik+ik~ik", "ik*jk~ijk", "+ijk~ij||ijk0"]
    assert graph.nodes[1].operands == (Value(0), Value(0))


def test_a_number_stands_as_an_operand() -> None:
    graph = assemble(Structure(spaces.scaled_sum()), plain(spaces.scaled_sum(), (4, 2)))
    assert texts(graph) == ["0.5*ij~ij", "+ij~i||ij0"]


def test_axes_beyond_the_alphabet_borrow_free_letters() -> None:
    far = 30
    nodes = {0: (Read(0, (0, far)),), 1: (Reduce("add", (far,), 0),)}
    space = spaces.make_space(nodes, [(1, (0,))], [(0, 0)] * far + [(0, 1)])
    assert texts(assemble(Structure(space), plain(space))) == ["+ij~i"]


@pytest.mark.parametrize("tiles", [{ROW: 8, KEY: 16}, {ROW: 1, KEY: 4}])
def test_the_graph_is_a_component(tiles: Mapping[int, int]) -> None:
    graph = assemble(Structure(spaces.attention()), flash_attention(tiles))
    assert sorted(texts(wire(unwire(graph)))) == sorted(texts(graph))
