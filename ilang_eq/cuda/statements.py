"""CUDA C text of bound loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice
from typing import assert_never

from ilang_eq.cuda.across import across_name
from ilang_eq.cuda.barriers import guarded
from ilang_eq.cuda.nodes import DIMS, Barrier, Combine, Dim, Leaf, Node, Part, Sweep, part_of
from ilang_eq.cuda.storage import within_warp
from ilang_eq.cuda.text import THREAD, Places
from ilang_eq.lower.addresses import extent_name
from ilang_eq.lower.ir import Accumulate, Assign, Comment, Declare, For, Load
from ilang_eq.lower.scalar import EXTREMA, Printer, update_text
from ilang_eq.lower.walk import loads, mentions

UNROLLED = 256
"""Statements that a loop which every thread runs in full is unrolled to, as far as that needs no more trips."""


IN_FLIGHT = 8
"""Trips of a shared-out loop that are unrolled, so that their loads are under way together."""


@dataclass(slots=True)
class Used:
    """What the printed text relies on: scalar functions, and ways to combine as (op, direction)."""

    functions: set[str] = field(default_factory=set)
    across: set[tuple[str, Dim]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Test:
    """The condition that a loop's position exists; ``room`` is the weaker one that there is room for it in a tile."""

    variable: str
    text: str
    room: str | None = None


@dataclass(frozen=True, slots=True)
class _At:
    """Where a node is printed.

    Args:
        tests: conditions that have still to be tested.
        loops: the variables of the loops around.
        declared: of every local, the variables of the loops around its declaration.
        dims: the directions that loops around have shared out.
        uneven: variables that differ between threads.
        full: the parts that have all their elements.
        tail: whether something around is short, so that whole tiles inside are not worth a version of their own.
    """

    tests: tuple[_Test, ...] = ()
    loops: frozenset[str] = frozenset()
    declared: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dims: frozenset[Dim] = frozenset()
    uneven: frozenset[str] = frozenset()
    full: frozenset[Part] = frozenset()
    tail: bool = False


@dataclass(slots=True)
class Statements:
    """Prints the nodes of one launch."""

    places: Places
    used: Used

    def lines(self, nodes: Sequence[Node], full: frozenset[Part] = frozenset(), tail: bool = False) -> list[str]:
        """The text of ``nodes``, where the parts in ``full`` have all their elements, or some have not (``tail``)."""
        return self._block(nodes, _At(full=full, tail=tail))

    def _block(self, nodes: Sequence[Node], at: _At) -> list[str]:
        lines: list[str] = []
        for node in nodes:
            match node:
                case Comment(text):
                    lines.append(f"// {text}")
                case Declare(name):
                    at = replace(at, declared={**at.declared, name: at.loops})
                    home = self.places.homes.get(name)
                    if home is not None and home.where == "registers":
                        lines.append(self.places.declaration(home))
                case Barrier():
                    lines.append("__syncthreads();")
                case Sweep():
                    lines += self._sweep(node, at)
                case Assign() | Accumulate():
                    _append(lines, self._tested(node, at))
                case Combine():
                    lines += self._combine(node, at)
                case other:
                    assert_never(other)
        return lines

    def _tested(self, leaf: Assign | Accumulate, at: _At) -> list[str]:
        """An update under the conditions that are left."""
        kinds = {test: self._need(leaf, test, at) for test in at.tests}
        target = self.places.element(leaf.target)
        value = Printer(self.places.element, self.used.functions).text(leaf.value)
        chosen = [test.text for test, need in kinds.items() if need == "choice"]
        if chosen:
            value = f"{' && '.join(chosen)} ? {value} : 0.0f"
        tests = [test.text for test, need in kinds.items() if need == "guard"]
        tests += [test.room for test, need in kinds.items() if need == "choice" and test.room is not None]
        if isinstance(leaf, Assign):
            text = f"{target} = {value};"
        else:
            text = update_text(target, leaf.op, value, self.used.functions)
        return _under([*tests, *self._first(leaf, at)], [text])

    def _first(self, leaf: Leaf, at: _At) -> list[str]:
        """Conditions that one thread alone does what all of them would do to memory."""
        block = self.places.block
        alike: list[Dim] = [dim for dim in DIMS if block.along(dim) > 1 and dim not in at.dims]
        return [f"{THREAD[dim]} == 0" for dim in alike] if guarded(leaf, self.places.homes) else []

    def _need(self, leaf: Leaf, test: _Test, at: _At) -> Choice["nothing", "choice", "guard"]:
        """What a condition is to a leaf, so that tails branch little: registers may hold anything where it fails.

        A tile in shared memory gets zeros there, so that what is read has been written.
        """
        if isinstance(leaf, Combine):
            return "guard"
        homes = self.places.homes
        sources = {homes[load.buffer].where for load in loads(leaf.value)}
        mine = mentions(leaf.target, test.variable) or test.variable in at.declared.get(leaf.target.buffer, ())
        private = mine and homes[leaf.target.buffer].where == "registers"
        if private and not sources & {"memory", "scratch"} and (test.room is None or "shared" not in sources):
            return "nothing"
        tile = mine and homes[leaf.target.buffer].where == "shared"
        return "choice" if isinstance(leaf, Assign) and (tile or (private and test.room is None)) else "guard"

    def _combine(self, node: Combine, at: _At) -> list[str]:
        share = self.places.element(node.share)
        text = update_text(self.places.element(node.target), node.op, share, self.used.functions)
        update = _under([*(test.text for test in at.tests), *self._first(node, at)], [text])
        if self.places.block.along(node.dim) == 1:
            return update
        self.used.across.add((node.op, node.dim))
        if node.op in EXTREMA:
            self.used.functions.add(EXTREMA[node.op])
        exchange = "" if within_warp(node.dim, self.places.block) else ", exchange"
        name = across_name(node.op, node.dim, self.places.block)
        return [f"{share} = {name}({share}{exchange});", *update]

    def _sweep(self, node: Sweep, at: _At) -> list[str]:
        if node.dim is None:
            return self._serial(node, at)
        return self._dealt(node, node.dim, at)

    def _serial(self, node: Sweep, at: _At) -> list[str]:
        """A loop that every thread runs through."""
        loop, v = node.source, node.source.variable
        whole = _parts_of_tiles(loop, node.body)
        if whole and not at.tail and not at.uneven & set(loop.outer):
            return self._in_whole_tiles(node, whole, at)
        kind = "long long" if loop.limit is None else "int"
        step = f"{v}++" if loop.step == 1 else f"{v} += {loop.step}"
        full = part_of(loop) in at.full
        indexes = self._indexes_registers(node)
        unroll = ["#pragma unroll"] if indexes else self._unrolling(node, at)
        if indexes and not full and loop.limit is not None:
            # to a constant end, so that registers are indexed by constants
            test = _Test(v, f"{v} < {_end(loop, False, loop.outer)}")
            body = self._inside(node, replace(at, uneven=at.uneven | {v}), [test])
            return [*unroll, f"for (int {v} = 0; {v} < {loop.limit}; {step}) {{", *indented(body), "}"]
        even = tuple(o for o in loop.outer if o not in at.uneven)
        tests = [] if len(even) == len(loop.outer) else [_Test(v, f"{v} < {_end(loop, full, loop.outer)}")]
        body = self._inside(node, at, tests)
        return [*unroll, f"for ({kind} {v} = 0; {v} < {_end(loop, full, even)}; {step}) {{", *indented(body), "}"]

    def _unrolling(self, node: Sweep, at: _At) -> list[str]:
        """How far a loop is unrolled that picks no registers: not at all in a tail, which runs seldom."""
        if node.source.limit is None:
            return []
        trips = -(-node.source.limit // node.source.step)
        times = 1 if at.tail else min(trips, max(1, UNROLLED // max(1, self._statements(node.body))))
        return [f"#pragma unroll {times}"] if times < trips else ["#pragma unroll"]

    def _statements(self, nodes: Sequence[Node]) -> int:
        """The statements of ``nodes``, constant loops unrolled."""
        total = 0
        for node in nodes:
            match node:
                case Sweep(source, dim, body):
                    threads = 1 if dim is None else self.places.block.along(dim)
                    trips = 1 if source.limit is None else -(-source.limit // (source.step * threads))
                    total += trips * self._statements(body)
                case Assign() | Accumulate() | Combine():
                    total += 1
                case _:
                    pass
        return total

    def _in_whole_tiles(self, node: Sweep, whole: frozenset[Part], at: _At) -> list[str]:
        """A loop over tiles: the whole ones, then what is left."""
        loop, v = node.source, node.source.variable
        end = _end(loop, False, loop.outer)
        main = self._block(node.body, replace(at, full=at.full | whole))
        rest = self._block(node.body, replace(at, tail=True))
        kind = "long long" if loop.limit is None else "int"
        return [
            f"for ({kind} {v} = 0; {v} < {end}; {v} += {loop.step}) {{",
            f"    if ({v} + {loop.step} <= {end}) {{",
            *indented(indented(main)),
            "    } else {",
            *indented(indented(rest)),
            "    }",
            "}",
        ]

    def _dealt(self, node: Sweep, dim: Dim, at: _At) -> list[str]:
        """A loop whose positions go to the threads along ``dim`` in turn."""
        loop, v, threads = node.source, node.source.variable, self.places.block.along(dim)
        full = part_of(loop) in at.full
        inside = replace(at, dims=at.dims.union([dim]), uneven=at.uneven | {v})
        if loop.limit is None:
            even = tuple(o for o in loop.outer if o not in at.uneven)
            body = self._inside(node, inside, [_Test(v, f"{v} < {_end(loop, False, loop.outer)}")])
            thread = THREAD[dim] if loop.step == 1 else f"{THREAD[dim]} * {loop.step}"
            position = f"const long long {v} = {v}_first + {thread};"
            stride = threads * loop.step
            head = f"for (long long {v}_first = 0; {v}_first < {_end(loop, False, even)}; {v}_first += {stride}) {{"
            return [head, *indented([position, *body]), "}"]
        trips = -(-loop.limit // threads)
        room = f"{v} < {loop.limit}" if loop.limit % threads else None
        tests = [] if full and room is None else [_Test(v, f"{v} < {_end(loop, full, loop.outer)}", room)]
        self.places.trips[v] = f"{v}_trip"
        body = self._inside(node, inside, tests)
        if trips == 1:
            return ["{", *indented([f"const int {v} = {THREAD[dim]};", *body]), "}"]
        position = f"const int {v} = {v}_trip * {threads} + {THREAD[dim]};"
        head = f"for (int {v}_trip = 0; {v}_trip < {trips}; {v}_trip++) {{"
        return [self._unroll_dealt(node, trips), head, *indented([position, *body]), "}"]

    def _unroll_dealt(self, node: Sweep, trips: int) -> str:
        """In full where the loop's own positions are in registers or few, else some loads at a time."""
        homes = self.places.homes
        owned = any(
            dim is not None and node.source.variable in index.variables
            for leaf in _leaves(node.body)
            for place in _touched(leaf)
            if homes[place.buffer].where == "registers"
            for index, dim in zip(place.indices, homes[place.buffer].owned, strict=True)
        )
        return "#pragma unroll" if owned or trips <= IN_FLIGHT else f"#pragma unroll {IN_FLIGHT}"

    def _inside(self, node: Sweep, at: _At, tests: list[_Test]) -> list[str]:
        """The body of a loop under ``tests``: around all of it if all in it needs them and no thread waits inside."""
        at = replace(at, tests=(*at.tests, *tests), loops=at.loops | {node.source.variable})
        if _meets(node.body):
            return self._block(node.body, at)
        outer = tuple(test for test in at.tests if self._all_need(node.body, test, at))
        inner = tuple(test for test in at.tests if test not in outer)
        return _under([test.text for test in outer], self._block(node.body, replace(at, tests=inner)))

    def _all_need(self, nodes: Sequence[Node], test: _Test, at: _At) -> bool:
        """Whether ``test`` guards every leaf of ``nodes``."""
        for node in nodes:
            match node:
                case Declare(name):
                    at = replace(at, declared={**at.declared, name: at.loops})
                case Sweep(source, _, body):
                    if not self._all_need(body, test, replace(at, loops=at.loops | {source.variable})):
                        return False
                case Assign() | Accumulate() | Combine():
                    # a scalar of an inner loop is no reason to branch again
                    if self._need(node, test, at) != "guard":
                        return False
                case _:
                    pass
        return True

    def _indexes_registers(self, node: Sweep) -> bool:
        """Whether the loop's variable picks a register of an array."""
        homes, v = self.places.homes, node.source.variable
        for leaf in _leaves(node.body):
            for place in _touched(leaf):
                home = homes[place.buffer]
                pairs = zip(place.indices, home.owned, strict=True) if home.where == "registers" else ()
                if any(v in index.variables and dim is None for index, dim in pairs):
                    return True
        return False


def _append(lines: list[str], more: list[str]) -> None:
    """Add the text of an update: a scalar's declaration and the assignment right after it are one sentence."""
    if len(more) == 1 and lines and more[0].startswith(lines[-1].removesuffix(";").removeprefix("float ") + " = "):
        lines[-1] = f"float {more[0]}"
    else:
        lines += more


def _touched(leaf: Leaf) -> tuple[Load, ...]:
    return (leaf.target, *((leaf.share,) if isinstance(leaf, Combine) else loads(leaf.value)))


def _leaves(nodes: Sequence[Node]) -> list[Leaf]:
    found: list[Leaf] = []
    for node in nodes:
        match node:
            case Sweep():
                found += _leaves(node.body)
            case Assign() | Accumulate() | Combine():
                found.append(node)
            case _:
                pass
    return found


def _meets(nodes: Sequence[Node]) -> bool:
    """Whether threads wait for each other somewhere in ``nodes``."""
    return any(isinstance(n, Barrier | Combine) or (isinstance(n, Sweep) and _meets(n.body)) for n in nodes)


def _parts_of_tiles(loop: For, body: Sequence[Node]) -> frozenset[Part]:
    """The parts inside that have all their elements in every whole tile of ``loop``."""
    if loop.step == 1:
        return frozenset()
    found: set[Part] = set()
    for node in body:
        if isinstance(node, Sweep):
            part = part_of(node.source)
            if part is not None and part.limit == loop.step and set(part.outer) == {*loop.outer, loop.variable}:
                found.add(part)
            found |= _parts_of_tiles(loop, node.body)
    return frozenset(found)


def _end(loop: For, full: bool, outer: Sequence[str]) -> str:
    """The exclusive end of ``loop``, as the variables in ``outer`` decide it."""
    if full and loop.limit is not None:
        return str(loop.limit)
    left = " - ".join((extent_name(loop.extent), *outer))
    return left if loop.limit is None else f"least({loop.limit}, {left})"


def _under(tests: Sequence[str], lines: list[str]) -> list[str]:
    if not tests:
        return lines
    head = f"if ({' && '.join(tests)})"
    return [head, *indented(lines)] if len(lines) == 1 else [head + " {", *indented(lines), "}"]


def indented(lines: Sequence[str]) -> list[str]:
    """``lines`` one level deeper."""
    return ["    " + line for line in lines]
