"""The laws of the combinators, as data. Arities need not match, so most hold only under a guard.

Each law is written once, as 𝚒 text over components f, g, h, k, and compiled to egglog. The guards were found by trying
every arity, 0 to 3 inputs and 0 to 3 outputs, with free functions (the tests repeat it). None admits a false equality.
Those that leave out a true one do so only where a part has no inputs or no outputs, or where ``~`` acts on a single
input and ``swap-nothing`` says the same.

``combinator-laws-duplicating`` stands apart because its law doubles f. Rows of unscheduled attention (9 expressions),
at saturation, on 2 cores:

    at the start                                     19
    combinator-laws                                 251     6 iterations,  0.02 s
    both, without ``compose-is-chain``           23,333    12 iterations,   12 s
    both                                        245,381    20 iterations,  106 s

The duplicating law alone gives 22 rows, with ``chain-associates`` 174: it is the exchange laws, ``fanout-of-chains``
and ``chain-of-pairs``, that turn every copy of f into new places to cut a chain, and that take nine tenths of the time.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ilang_eq.rewrites.rules import Rule, RuleSet


@dataclass(frozen=True, slots=True)
class Law:
    """before = after, where a guard holds.

    Args:
        name: of the rule.
        before, after: 𝚒 text over f, g, h, k and ``I``.
        when: alternative guards, each a conjunction of comparisons of arities; none means always.
        reversible: also rewrite after → before.
    """

    name: str
    before: str
    after: str
    when: tuple[str, ...] = ()
    reversible: bool = True

    def rule(self) -> Rule:
        """The law as a rewrite, one per alternative guard."""
        arrow = "↔" if self.reversible else "→"
        doc = f"{self.before} {arrow} {self.after}" + (f", if {' or '.join(self.when)}" if self.when else "")
        text = "\n".join(self._rewrite(guard) for guard in self.when or ("",))
        return Rule(self.name, doc, "combinators", text)

    def _rewrite(self, guard: str) -> str:
        command = "birewrite" if self.reversible else "rewrite"
        sides = " ".join(_term(ast.parse(side, mode="eval").body) for side in (self.before, self.after))
        condition = f" :when ({_facts(ast.parse(guard, mode='eval').body)})" if guard else ""
        return f"({command} {sides}{condition})"


_CONSTRUCTORS: dict[type[ast.operator], str] = {
    ast.RShift: "Chain",
    ast.LShift: "Compose",
    ast.BitAnd: "Fanout",
    ast.BitOr: "Pair",
}

_COMPARISONS: dict[type[ast.cmpop], str] = {ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "=", ast.NotEq: "!="}


def _term(node: ast.expr) -> str:
    """A side of a law as an egglog pattern."""
    match node:
        case ast.Name(id="I"):
            return "(Id)"
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return f"(Swap {_term(operand)})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({_CONSTRUCTORS[type(op)]} {_term(left)} {_term(right)})"
        case _:
            raise TypeError(f"not a component pattern: {ast.unparse(node)}")


def _facts(node: ast.expr) -> str:
    """A guard as egglog facts."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return " ".join(map(_facts, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return f"({_COMPARISONS[type(op)]} {_count(left)} {_count(right)})"
        case _:
            raise TypeError(f"not a guard: {ast.unparse(node)}")


def _count(node: ast.expr) -> str:
    """One side of a comparison: an arity or a number."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=arity):
            return f"({arity} {name})"
        case ast.Constant(value=int(number)):
            return str(number)
        case _:
            raise TypeError(f"not an arity: {ast.unparse(node)}")


TABLE = (
    Law("chain-associates", "(f >> g) >> h", "f >> (g >> h)", ("f.outputs <= g.inputs",)),
    Law("compose-associates", "(f << g) << h", "f << (g << h)"),
    Law("fanout-associates", "(f & g) & h", "f & (g & h)"),
    Law("pair-associates", "(f | g) | h", "f | (g | h)"),
    Law("compose-is-chain", "f << g", "g >> f", ("g.outputs <= f.inputs",)),
    Law(
        "chain-of-pairs",
        "(f | g) >> (h | k)",
        "(f >> h) | (g >> k)",
        ("f.outputs == h.inputs and g.outputs <= k.inputs",),
    ),
    Law("compose-of-pairs", "(f | g) << (h | k)", "(f << h) | (g << k)", ("f.inputs == h.outputs",)),
    Law(
        "fanout-of-chains",
        "(f & g) >> (h | k)",
        "(f >> h) & (g >> k)",
        (
            "f.outputs == h.inputs and g.outputs == k.inputs",
            "f.outputs == h.inputs and g.outputs <= k.inputs and f.inputs <= g.inputs",
        ),
    ),
    Law("chain-enters-pair", "f >> (g | h)", "(f >> g) | h", ("f.outputs <= g.inputs",)),
)
"""How the joins meet."""

IDENTITIES = (
    Law("identity-chain", "I >> f", "f", ("f.inputs >= 1",), reversible=False),
    Law("chain-identity", "f >> I", "f", ("f.outputs == 1",), reversible=False),
    Law("identity-compose", "I << f", "f", ("f.outputs >= 1",), reversible=False),
    Law("compose-identity", "f << I", "f", ("f.inputs >= 1",), reversible=False),
    Law("identities-chain", "(I | I) >> f", "f", ("f.inputs >= 2",), reversible=False),
    Law("chain-identities", "f >> (I | I)", "f", ("f.outputs == 2",), reversible=False),
)
"""What does nothing; rewritten away only, since f → I >> f would match everywhere."""

SWAPS = (
    Law("swap-twice", "~~f", "f", reversible=False),
    Law("swap-nothing", "~f", "f", ("f.inputs <= 1",), reversible=False),
    Law("swap-wires", "~(I | I) >> f", "~f", ("f.inputs >= 2",)),
    Law("swap-chain", "~(f >> g)", "~f >> g", ("f.inputs >= 2",)),
    Law("swap-compose", "~(f << g)", "f << ~g", ("g.inputs >= 2",)),
    Law("swap-pair", "~(f | g)", "~f | g", ("f.inputs >= 2",)),
    Law("swap-pair-right", "~(f | g)", "f | ~g", ("f.inputs == 0",)),
    Law("swap-fanout", "~(f & g)", "~f & ~g", ("f.inputs != 1 and g.inputs != 1",)),
    Law("fanout-swapped", "(f & g) >> ~(I | I)", "g & f", ("f.outputs == 1 and g.outputs == 1",), reversible=False),
    Law(
        "pair-swapped",
        "(f | g) >> ~(I | I)",
        "~(g | f)",
        ("f.inputs <= 1 and f.outputs == 1 and g.inputs <= 1 and g.outputs == 1",),
        reversible=False,
    ),
)
"""How ``~`` moves; it swaps inputs."""

DUPLICATING = (
    Law(
        "chain-into-fanout",
        "f >> (g & h)",
        "(f >> g) & (f >> h)",
        ("f.outputs <= g.inputs and f.outputs <= h.inputs",),
    ),
)
"""The law that doubles f."""

COMBINATOR_LAWS = RuleSet("combinator-laws", tuple(law.rule() for law in TABLE + IDENTITIES + SWAPS))

COMBINATOR_LAWS_DUPLICATING = RuleSet("combinator-laws-duplicating", tuple(law.rule() for law in DUPLICATING))
