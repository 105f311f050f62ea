from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import CodeType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq import errors
from ilang_eq.lang.component import Chain, Component, Compose, Fanout, I, Pair, Swap, i
from ilang_eq.lang.graph import Graph, Input, Source, Value
from ilang_eq.lang.parser import parse
from ilang_eq.lang.wiring import wire
from ilang_eq.rewrites.combinator_laws import DUPLICATING, IDENTITIES, SWAPS, TABLE, Law
from ilang_eq.rewrites.combinator_terms import ARITY, COMPONENTS, Encoder, canonical, new_engine
from ilang_eq.rewrites.combinators import (
    COMBINATOR_LAWS,
    COMBINATOR_LAWS_DUPLICATING,
    WIRING,
    equal_by_laws,
    saturate,
    wire_by_rules,
)
from ilang_eq.rewrites.engine import Cell, Engine, Limits
from ilang_eq.rewrites.rules import Rule, RuleSet
from tests import conformance_cases
from tests.rewrites.free_functions import IDENTITY, alike, free

LAWS = TABLE + IDENTITIES + SWAPS + DUPLICATING
BY_NAME = [pytest.param(law, id=law.name) for law in LAWS]

EXCLUDED = {"swap-chain": 18, "swap-compose": 18, "swap-fanout": 9}
"""True equalities that a guard leaves out though every part has inputs and outputs: there, ``~`` acts on one input."""

SCORES = i("ik*jk~ijk") >> i("+ijk~ij")
SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
ATTENTION = SCORES >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")

LEAVES = [I] + [i(text) for text in ("-i~i", "^i~i", "i-j~ij", "i/i~i", "2*i~i", "1+2~.")]


def components(max_leaves: int) -> st.SearchStrategy[Component]:
    def joined(part: st.SearchStrategy[Component]) -> st.SearchStrategy[Component]:
        return st.one_of(
            st.builds(Swap, part), *(st.builds(join, part, part) for join in (Chain, Compose, Fanout, Pair))
        )

    return st.recursive(st.sampled_from(LEAVES), joined, max_leaves=max_leaves)


Arity = tuple[int, int]


@cache
def compiled(text: str) -> CodeType:
    """A law's text is Python."""
    return compile(text, "<law>", "eval")


def sides(law: Law, parts: Mapping[str, object]) -> tuple[Any, Any]:
    return eval(compiled(law.before), {}, parts), eval(compiled(law.after), {}, parts)


def holds(law: Law, parts: Mapping[str, object]) -> bool:
    return not law.when or any(eval(compiled(when), {}, parts) for when in law.when)


def cases(law: Law, outputs: Iterable[int]) -> Iterator[tuple[tuple[Arity, ...], Mapping[str, object]]]:
    """Every choice of arities for the law's parts, with free functions of these arities."""
    names = [name for name in "fghk" if name in law.before]
    for arities in itertools.product(itertools.product(range(4), outputs), repeat=len(names)):
        yield arities, {name: free(name, *arity) for name, arity in zip(names, arities, strict=True)} | {"I": IDENTITY}


def real(name: str, inputs: int, outputs: int) -> Component:
    """A component of expressions with a given arity; no two names or outputs compute the same."""
    number = 10 * ord(name) + inputs
    feeds = [i(f"{number}+1~."), i(f"{number}*i~i"), i("i-j~ij"), i("i-j~ij") >> i("ij-k~ijk")]
    axes = ["", "i", "ij", "ijk"][inputs]
    made = [feeds[inputs] >> i(f"{number}-{axes or '.'}~{axes or '.'}") >> marked(axes, k) for k in range(outputs)]
    whole = made[0]
    for each in made[1:]:
        whole = whole & each
    return whole


def marked(axes: str, k: int) -> Component:
    return i(f"{k}+{axes or '.'}~{axes or '.'}")


def terms(component: Component) -> tuple[object, ...]:
    """What a component returns, as terms over its inputs, by ``wire``."""
    graph: Graph = wire(component)

    @cache
    def term(source: Source) -> object:
        if not isinstance(source, Value):
            return source
        node = graph.nodes[source.node]
        return (str(canonical(node.expr)), *(term(s) for s in node.operands))

    return (graph.inputs, *(term(wire) for wire in graph.outputs))


@pytest.mark.parametrize("law", BY_NAME)
def test_no_guard_admits_a_false_equality(law: Law) -> None:
    excluded = 0
    for arities, parts in cases(law, range(4)):
        equal, guarded = alike(*sides(law, parts)), holds(law, parts)
        assert equal or not guarded, arities
        excluded += equal and not guarded and all(all(arity) for arity in arities)
    assert excluded == EXCLUDED.get(law.name, 0)


@pytest.mark.parametrize("law", BY_NAME)
def test_a_rule_unites_where_its_guard_holds_and_only_equals(law: Law) -> None:
    engine = new_engine()
    engine.add_rules([law.rule()])
    encoder = Encoder(engine)
    inside, outside = [], []
    for arities, parts in cases(law, range(1, 4)):
        (inside if holds(law, parts) else outside).append(arities)
    rng = random.Random(law.name)
    chosen = rng.sample(inside, min(len(inside), 30)) + rng.sample(outside, min(len(outside), 30))
    pairs = []
    for arities in chosen:
        parts = {name: real(name, *arity) for name, arity in zip("fghk", arities, strict=False)}
        before, after = sides(law, parts | {"I": I})
        pairs.append((before, after, encoder.add(before), encoder.add(after)))
    engine.run("combinators", Limits(iterations=1), analysis=ARITY)
    classes = dict(engine.tables(("part",))["part"])
    for n, (before, after, left, right) in enumerate(pairs):
        united = classes[left] == classes[right]
        assert united or n >= min(len(inside), 30), (str(before), str(after))
        assert terms(before) == terms(after) or not united, (str(before), str(after))


@given(components(max_leaves=6), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_all_laws_together_keep_the_meaning(component: Component, rng: random.Random) -> None:
    engine = new_engine()
    engine.add_rules(COMBINATOR_LAWS + COMBINATOR_LAWS_DUPLICATING)
    root = Encoder(engine).add(component)
    engine.run("combinators", Limits(2_000, 5.0, 6), analysis=ARITY)
    members = Members(engine, rng)
    start = dict(engine.tables(("part",))["part"])[root]
    for _ in range(10):
        member = members.draw(start, fuel=12)
        assert terms(member) == terms(component), str(member)


class Members:
    """Draws components out of e-classes."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self.rng = rng
        self.nodes: dict[Cell, list[tuple[str, tuple[Cell, ...]]]] = {}
        for name, rows in engine.tables(COMPONENTS).items():
            for *arguments, whole in rows:
                self.nodes.setdefault(whole, []).append((name, tuple(arguments)))
        self.least: dict[Cell, int] = {}
        for _ in self.nodes:
            for whole, nodes in self.nodes.items():
                sizes = [size for node in nodes if (size := self.size(node)) is not None]
                if sizes:
                    self.least[whole] = min(sizes)

    def size(self, node: tuple[str, tuple[Cell, ...]]) -> int | None:
        name, arguments = node
        if name in ("Leaf", "Id"):
            return 1
        sizes = [self.least.get(argument) for argument in arguments]
        return None if None in sizes else 1 + sum(size for size in sizes if size is not None)

    def draw(self, whole: Cell, fuel: int) -> Component:
        nodes = self.nodes[whole]
        name, arguments = self.rng.choice(nodes) if fuel > 0 else min(nodes, key=lambda n: self.size(n) or 10**9)
        if name == "Leaf":
            return i(arguments[0])
        if name == "Id":
            return I
        makers = {"Chain": Chain, "Compose": Compose, "Fanout": Fanout, "Pair": Pair, "Swap": Swap}
        return makers[name](*(self.draw(argument, fuel - 1) for argument in arguments))


@given(components(max_leaves=10))
@settings(max_examples=60)
def test_wiring_by_rule_is_wiring(component: Component) -> None:
    assert wire_by_rules(component) == wire(component)


@pytest.mark.parametrize("name", ["combinators.json", "disagreements.json"])
def test_wiring_by_rule_on_the_conformance_trees(name: str) -> None:
    trees = [case["tree"] for case in conformance_cases.cases(name) if case.get("topic") != "zero-split-factor"]
    assert trees
    for tree in trees:
        component = conformance_cases.component(tree)
        assert wire_by_rules(component) == wire(component), str(component)


def test_wiring_by_rule_keeps_schedules_and_repeated_expressions_apart() -> None:
    component = i("-i~i|i:4|") >> (i("-k~k") & i("-j~j")) >> i("i*i~i|i:2|ii'0")
    graph = wire_by_rules(component)
    assert graph == wire(component)
    assert [str(node.expr) for node in graph.nodes] == ["-i~i|i:4|", "-k~k", "-j~j", "i*i~i|i:2|ii'0"]


def test_a_long_chain_needs_no_recursion() -> None:
    chain = i("-i~i")
    for _ in range(150):
        chain = chain >> i("-i~i")
    assert wire_by_rules(chain) == wire(chain)
    for _ in range(2_000):
        chain = chain >> i("-i~i")
    assert Encoder(new_engine()).add(chain) > 2_000


def test_returning_inputs_and_sharing_values() -> None:
    assert wire_by_rules(~(I | I)).outputs == (Input(1), Input(0))
    assert wire_by_rules(i("-i~i") >> (I & I)).outputs == (Value(0), Value(0))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (ATTENTION, SCORES >> (SOFTMAX >> i("ab*bc~acb") >> i("+acb~ac"))),
        (i("i-j~ij") << i("-i~i"), i("-k~k") >> i("a-b~ab")),
        (~(i("i-j~ij") >> i("-ij~ij")), ~i("i-j~ij") >> i("-ij~ij")),
        (~~SCORES, SCORES),
        ((i("-i~i") & i("^i~i")) >> ~i("i-j~ij"), (i("^i~i") & i("-i~i")) >> i("i-j~ij")),
        ((i("-i~i") | i("^i~i")) >> (i("+i~.") | I), (i("-i~i") >> i("+i~.")) | i("^i~i")),
    ],
)
def test_equal_by_laws(a: Component, b: Component) -> None:
    assert equal_by_laws(a, b)
    assert equal_by_laws(a, b, WIRING)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (i("i-j~ij"), ~i("i-j~ij")),
        (i("-i~i"), i("^i~i")),
        (I, I | I),
        (i("+ij~i"), i("+ij~j")),
        (SOFTMAX >> I, I >> I >> I),
    ],
)
def test_not_equal_by_laws(a: Component, b: Component) -> None:
    for rules in (COMBINATOR_LAWS, WIRING, COMBINATOR_LAWS + COMBINATOR_LAWS_DUPLICATING + WIRING):
        assert not equal_by_laws(a, b, rules)


@given(components(max_leaves=4), components(max_leaves=4))
@settings(max_examples=60)
def test_wiring_decides_equality(a: Component, b: Component) -> None:
    assert equal_by_laws(a, b, WIRING) == (terms(a) == terms(b))


def test_only_the_duplicating_law_shares_a_producer() -> None:
    f, g, h = i("^i~i"), i("-i~i"), i("+i~.")
    shared, twice = f >> (g & h), (f >> g) & (f >> h)
    assert not equal_by_laws(shared, twice)
    assert equal_by_laws(shared, twice, COMBINATOR_LAWS_DUPLICATING)


def test_what_the_duplicating_law_costs() -> None:
    calm = saturate(ATTENTION)
    assert (calm.rows_before, calm.rows_after, calm.run.stop_reason) == (19, 251, "saturated")
    wild = saturate(ATTENTION, COMBINATOR_LAWS + COMBINATOR_LAWS_DUPLICATING, Limits(nodes=5_000))
    assert wild.run.stop_reason == "nodes"
    assert wild.rows_after > 5_000


def test_renaming_axes_leaves_the_graph_identical() -> None:
    renamed = i("ac*bc~abc") >> i("+xyz~xy") >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")
    ours, theirs = saturate(renamed), saturate(ATTENTION)
    assert (ours.rows_after, ours.run.matches) == (theirs.rows_after, theirs.run.matches)
    assert saturate(i("ik*kj~ijk") & i("ac*cb~abc")).rows_before == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ki*kj~ijk", "ab*ac~bca"),
        ("+zyx~zy|y:4,x:2:2|zyxy'x'0x''", "+abc~ab|b:4,c:2:2|abcb'c'0c''"),
        ("0>q~q", "0>a~a"),
        ("+ii~.", "+aa~."),
    ],
)
def test_canonical(text: str, expected: str) -> None:
    assert str(canonical(parse(text))) == expected


def test_a_rule_that_unites_different_arities_is_refused() -> None:
    false = RuleSet("false", (Rule("drop-left", "f >> g → g", "combinators", "(rewrite (Chain f g) g)"),))
    with pytest.raises(errors.RuleError):
        equal_by_laws(i("i-j~ij") >> i("-ij~ij"), i("-i~i") >> i("i-j~ij"), false)


def test_limits_stop_the_search() -> None:
    rules = COMBINATOR_LAWS + COMBINATOR_LAWS_DUPLICATING
    assert saturate(ATTENTION, rules, Limits(iterations=2)).run.iterations == 2
    assert not equal_by_laws(~~SCORES, SCORES, limits=Limits(iterations=0))
