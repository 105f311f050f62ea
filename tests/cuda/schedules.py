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
