"""Components that the tests of the search share."""

from __future__ import annotations

from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites import RuleSet, default
from ilang_eq.rewrites.explore import SearchReport, explore
from ilang_eq.rewrites.space import Apply, ClassId, ENode, Read, Reduce, Space

SCORES = i("ik*jk~ijk") >> i("+ijk~ij")
SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
ATTENTION = SCORES >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")
MATMUL = i("ik*kj~ikj") >> i("+ikj~ij")
RMS = (I & I) >> i("ij*ij~ij") >> i("+ij~i") >> i("i/64~i") >> i("i^0.5~i")
RMS_NORM_LINEAR = (I & RMS) >> i("ij/i~ij") >> i("ij*j~ij") >> MATMUL
MLP = MATMUL >> i("ij+j~ij") >> i("0>ij~ij") >> MATMUL >> i("ij+j~ij")


def chained(parts: list[Component]) -> Component:
    """The parts, one after the other."""
    first, *rest = parts
    for part in rest:
        first = first >> part
    return first


def space_of(component: Component, rules: RuleSet = default) -> Space:
    return explore(wire(component), rules)[0]


def report_of(component: Component, rules: RuleSet = default) -> SearchReport:
    return explore(wire(component), rules)[1]


def shown(space: Space, c: ClassId, node: ENode, depth: int = 9) -> set[str]:
    """Every way to write one node out as a formula, down to ``depth``; axes as numbers, inputs as letters."""
    match node:
        case Read(index, _):
            return {"abcdefgh"[index]}
        case Apply(op, (x,)):
            return {f"{op}({a})" for a in formulas(space, x, depth - 1)}
        case Apply(op, (x, y)):
            rights = formulas(space, y, depth - 1)
            return {f"{op}({a}, {b})" for a in formulas(space, x, depth - 1) for b in rights}
        case Reduce(op, axes, x):
            over = "".join(map(str, axes))
            return {f"{op}_{over}({a})" for a in formulas(space, x, depth - 1)}
        case _:
            return {str(node)}


def formulas(space: Space, c: ClassId, depth: int = 9) -> set[str]:
    """Every way to write a class out as a formula."""
    return {text for node in space.classes[c].nodes for text in shown(space, c, node, depth)} if depth else {"…"}
