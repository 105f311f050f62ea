"""Components under schedules as a GPU wants them, for the tests of the CUDA backend."""

from __future__ import annotations

from ilang_eq import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Program


def program(component: Component) -> Program:
    return lower(wire(component))


def matmul(tile: int, depth: int) -> Component:
    """A product whose tiles are copied to shared memory."""
    copies = i(f"+ik~ik|i:{tile},k:{depth}|iki'k'") | i(f"+kj~kj|j:{tile},k:{depth}|jkj'k'")
    return (
        copies
        >> i(f"ik*kj~ijk|i:{tile},j:{tile},k:{depth}|ijk01k'i'j'")
        >> i(f"+ijk~ij|i:{tile},j:{tile},k:{depth}|ijkk'i'j'0")
    )


ROWS = "i:1"
SOFTMAX = (
    (I & i(f">ij~i|{ROWS}|ii'j"))
    >> i(f"ij-i~ij|{ROWS}|i1i'j")
    >> i(f"^ij~ij|{ROWS}|i0i'j")
    >> (I & i(f"+ij~i|{ROWS}|i0i'j"))
    >> i(f"ij/i~ij|{ROWS}|i01i'j")
)
"""Softmax of rows: a block takes a row, which its threads share."""

ATTENTION = (
    i("ik*jk~ijk|i:16,j:8|ijki'j'")
    >> i("+ijk~ij|i:16,j:8|ijki'j'0")
    >> (I & i(">ij~i|i:16,j:8|ij0i'j'"))
    >> i("ij-i~ij|i:16,j:8|ij01i'j'")
    >> i("^ij~ij|i:16,j:8|ij0i'j'")
    >> (i("ij*jk~ikj|i:16,j:8,k:16|ij0kj'i'k'") >> i("+ikj~ik|i:16,j:8,k:16|ijkj'i'k'0") & i("+ij~i|i:16,j:8|ij0i'j'"))
    >> i("ik/i~ik|i:16,k:16|i01ki'k'")
)
"""FlashAttention-2: one kernel, online corrections."""


def dots(rows: int, columns: int, depth: int) -> Component:
    """Dot products of the rows of two matrices, whose tiles are copied as they lie."""
    copies = i(f"+ik~ik|i:{rows},k:{depth}|iki'k'") | i(f"+jk~jk|j:{columns},k:{depth}|jkj'k'")
    return (
        copies
        >> i(f"ik*jk~ijk|i:{rows},j:{columns},k:{depth}|ijk01i'j'k'")
        >> i(f"+ijk~ij|i:{rows},j:{columns},k:{depth}|ijki'j'k'0")
    )


def attention(rows: int, keys: int, values: int, depth: int) -> Component:
    """FlashAttention-2 in tiles, all of them copied: weights are needed by the threads that compute them alone."""
    tile, reduced = f"i:{rows},j:{keys}", f"i:{rows},j:{keys},k:{depth}"
    copies = i(f"+ik~ik|i:{rows},k:{depth}|iki'k'") | i(f"+jk~jk|j:{keys},k:{depth}|jkj'k'")
    scores = copies >> i(f"ik*jk~ijk|{reduced}|ijk01i'j'k'") >> i(f"+ijk~ij|{reduced}|ijki'j'k'0")
    weights = (I & i(f">ij~i|{tile}|ij0i'j'")) >> i(f"ij-i~ij|{tile}|ij01i'j'") >> i(f"^ij~ij|{tile}|iji'j'0")
    product = i(f"ij*jk~ikj|{tile},k:{values}|ikj01i'j'k'") >> i(f"+ikj~ik|{tile},k:{values}|ikji'j'k'0")
    copied = (I | i(f"+jk~jk|j:{keys},k:{values}|kjj'k'")) >> product
    return scores >> weights >> (copied & i(f"+ij~i|{tile}|ij0i'j'")) >> i(f"ik/i~ik|i:{rows},k:{values}|ik01i'k'")


LARGE = (
    (i("+ik~ik|i:256,k:16|ikk'i'") | i("+kj~kj|j:128,k:16|jkk'j'"))
    >> i("ik*kj~kij|i:256,j:128,k:16|ijk10k'i'j'")
    >> i("+kij~ij|i:256,j:128,k:16|ijkk'i'j'0")
)
"""A product in the tiles that a search finds for tensor cores."""

NAMED: dict[str, Component] = {
    "matmul": matmul(16, 8),
    "product": i("ik*kj~ijk|i:32,j:32|ijki'j'") >> i("+ijk~ij|i:32,j:32|ijki'j'0"),
    "unscheduled product": i("ik*kj~ijk") >> i("+ijk~ij"),
    "softmax": SOFTMAX,
    "attention": ATTENTION,
    "pointwise": i("ij*ij~ij") >> i("^ij~ij"),
    "transpose": i("+ij~ji|i:16,j:16|ijj'i'"),
    "sum": i("+i~."),
    "row sums": i("+ij~i|i:4|ii'j"),
    "column sums": i("+ij~j"),
    "matrix and vector": i("ij*j~ij|i:8|iji'") >> i("+ij~i|i:8|iji'0"),
}
