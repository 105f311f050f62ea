"""CUDA C text of bound loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice
from typing import assert_never

from ilang_eq.cuda.across import across_name
from ilang_eq.cuda.ahead import FEWEST_STAGES
from ilang_eq.cuda.barriers import guarded
from ilang_eq.cuda.context import At, Lane, Test, end_of, indented, under
from ilang_eq.cuda.nodes import DIMS, Barrier, Combine, Contract, Copy, Dim, Leaf, Node, Part, Sweep, part_of
from ilang_eq.cuda.quotients import inverted
from ilang_eq.cuda.runs import Runs, conditions, first_of, runs
from ilang_eq.cuda.storage import within_warp
from ilang_eq.cuda.tensor_cores import Tile
from ilang_eq.cuda.text import THREAD, Places
from ilang_eq.cuda.tiles import apart, begun_next, in_line, next_name, stage_name
from ilang_eq.cuda.unrolling import indexes_registers, trips_of, unrolled
from ilang_eq.cuda.used import Used
from ilang_eq.cuda.walks import leaves_of, meets, only_sweep, parts_of_tiles
from ilang_eq.lower.addresses import extent_name
from ilang_eq.lower.ir import Accumulate, Assign, Comment, Declare
from ilang_eq.lower.quotients import INVERSE, LEAST_NORMAL
from ilang_eq.lower.scalar import EXTREMA, Printer, update_text
from ilang_eq.lower.walk import loads, mentions


@dataclass(slots=True)
class Statements:
    """Prints the nodes of one launch. ``aligned`` collects what was assumed of the arrays, to move runs at once."""

    places: Places
    used: Used
    aligned: dict[str, None] = field(default_factory=dict)

    def lines(self, nodes: Sequence[Node], at: At) -> list[str]:
        """The text of ``nodes``."""
        return self._block(nodes, at)

    def _block(self, nodes: Sequence[Node], at: At) -> list[str]:
        if at.lanes and not _passes(nodes, at.lanes):
            return self._in_lanes(nodes, at)
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
                    lines += self._barrier()
                case Sweep():
                    lines += self._sweep(node, at)
                case Assign() | Accumulate():
                    _append(lines, self._tested(node, at))
                case Combine():
                    lines += self._combine(node, at)
                case Copy():
                    lines += self._copy(node, at)
                case Contract():
                    lines += self._contract(node, at)
                case other:
                    assert_never(other)
        return lines

    def _barrier(self) -> list[str]:
        """A barrier, after which groups of warps may read what threads have put into shared memory."""
        if not any(home.swizzled for home in self.places.homes.values()):
            return ["__syncthreads();"]
        self.used.cores.add("publish")
        return ["publish();", "__syncthreads();"]

    def _contract(self, node: Contract, at: At) -> list[str]:
        """A product on tensor cores. Conditions that are left are the same for all threads."""
        tile = Tile(node, self.places, at)
        self.used.cores |= set(tile.functions)
        return under([test.text for test in at.tests], tile.lines)

    def _tested(self, leaf: Assign | Accumulate, at: At) -> list[str]:
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
        return under([*tests, *self._first(leaf, at)], [text])

    def _first(self, leaf: Leaf, at: At) -> list[str]:
        """Conditions that one thread alone does what all of them would do to memory."""
        block = self.places.block
        alike: list[Dim] = [dim for dim in DIMS if block.along(dim) > 1 and dim not in at.dims]
        return [f"{THREAD[dim]} == 0" for dim in alike] if guarded(leaf, self.places.homes) else []

    def _need(self, leaf: Leaf, test: Test, at: At) -> Choice["nothing", "choice", "guard"]:
        """What a condition is to a leaf, so that tails branch little: registers may hold anything where it fails.

        A tile in shared memory gets zeros there, so that what is read has been written.
        """
        if isinstance(leaf, Combine | Copy | Contract):
            return "guard" if isinstance(leaf, Combine) else "nothing"
        homes = self.places.homes
        sources = {homes[load.buffer].where for load in loads(leaf.value)}
        mine = mentions(leaf.target, test.variable) or test.variable in at.declared.get(leaf.target.buffer, ())
        private = mine and homes[leaf.target.buffer].where == "registers"
        anywhere = not sources & {"memory", "scratch"} and all(homes[load.buffer].whole for load in loads(leaf.value))
        if private and anywhere and (test.room is None or "shared" not in sources):
            return "nothing"
        tile = mine and homes[leaf.target.buffer].where == "shared"
        return "choice" if isinstance(leaf, Assign) and (tile or (private and test.room is None)) else "guard"

    def _combine(self, node: Combine, at: At) -> list[str]:
        share = self.places.element(node.share)
        text = update_text(self.places.element(node.target), node.op, share, self.used.functions)
        update = under([*(test.text for test in at.tests), *self._first(node, at)], [text])
        if self.places.block.along(node.dim) == 1:
            return update
        self.used.across.add((node.op, node.dim))
        if node.op in EXTREMA:
            self.used.functions.add(EXTREMA[node.op])
        exchange = "" if within_warp(node.dim, self.places.block) else ", exchange"
        name = across_name(node.op, node.dim, self.places.block)
        return [f"{share} = {name}({share}{exchange});", *update]

    def _sweep(self, node: Sweep, at: At) -> list[str]:
        without = None if at.divides or at.lanes else inverted(node, self.places.homes, self.places.block)
        if without is None:
            return self._looped(node, at)
        inverse = INVERSE.buffer
        return [
            "{",
            f"    const float {inverse} = 1.0f / {self.places.element(without.divisor)};",
            f"    if (fabsf({inverse}) >= {LEAST_NORMAL} && fabsf({inverse}) < INFINITY) {{",
            *indented(indented(self._looped(without.sweep, at))),
            "    } else {",
            *indented(indented(self._looped(node, replace(at, divides=True)))),
            "    }",
            "}",
        ]

    def _looped(self, node: Sweep, at: At) -> list[str]:
        if node.dim is None:
            return self._serial(node, at)
        return self._dealt(node, node.dim, at)

    def _serial(self, node: Sweep, at: At) -> list[str]:
        """A loop that every thread runs through."""
        loop, v = node.source, node.source.variable
        if node.ahead:
            return self._with_copies_ahead(node, at)
        whole = parts_of_tiles(loop, node.body)
        if whole and not at.tail and not at.uneven & set(loop.outer):
            return self._in_whole_tiles(node, whole, at)
        kind = "long long" if loop.limit is None else "int"
        step = f"{v}++" if loop.step == 1 else f"{v} += {loop.step}"
        full = part_of(loop) in at.full
        indexes = indexes_registers(node, self.places.homes)
        unroll = self._unrolling(node, at)
        if indexes and not full and loop.limit is not None:
            # to a constant end, so that registers are indexed by constants
            test = Test(v, f"{v} < {end_of(loop, False, loop.outer)}")
            body = self._guarded(node.body, replace(at, uneven=at.uneven | {v}).inside(loop, [test]))
            return [*unroll, f"for (int {v} = 0; {v} < {loop.limit}; {step}) {{", *indented(body), "}"]
        even = tuple(o for o in loop.outer if o not in at.uneven)
        tests = [] if len(even) == len(loop.outer) else [Test(v, f"{v} < {end_of(loop, full, loop.outer)}")]
        body = self._guarded(node.body, at.inside(loop, tests))
        return [*unroll, f"for ({kind} {v} = 0; {v} < {end_of(loop, full, even)}; {step}) {{", *indented(body), "}"]

    def _unrolling(self, node: Sweep, at: At) -> list[str]:
        """How far a loop of constant length is unrolled: if it picks no registers, not in a tail, which runs seldom."""
        trips = trips_of(node, self.places.block)
        if trips is None:
            return []
        picks = indexes_registers(node, self.places.homes)
        times = 1 if at.tail and not picks else unrolled(node, self.places.homes, self.places.block)
        return [f"#pragma unroll {times}"] if times < trips else ["#pragma unroll"]

    def _in_whole_tiles(self, node: Sweep, whole: frozenset[Part], at: At) -> list[str]:
        """A loop over tiles: the whole ones, then what is left."""
        loop, v = node.source, node.source.variable
        end = end_of(loop, False, loop.outer)
        at = replace(at, steps={**at.steps, v: loop.step})
        main = self._block(node.body, replace(at, full=at.full | whole))
        rest = self._block(node.body, replace(at, tail=True))
        kind = "long long" if loop.limit is None else "int"
        if main == rest:
            return [f"for ({kind} {v} = 0; {v} < {end}; {v} += {loop.step}) {{", *indented(main), "}"]
        return [
            f"for ({kind} {v} = 0; {v} < {end}; {v} += {loop.step}) {{",
            f"    if ({v} + {loop.step} <= {end}) {{",
            *indented(indented(main)),
            "    } else {",
            *indented(indented(rest)),
            "    }",
            "}",
        ]

    def _threads(self, node: Sweep) -> int:
        return 1 if node.dim is None else self.places.block.along(node.dim)

    def _dealt(self, node: Sweep, dim: Dim, at: At) -> list[str]:
        """A loop whose positions go to the threads along ``dim`` in turn, so many neighbours to each at a time."""
        loop, v, width = node.source, node.source.variable, node.width
        threads = self._threads(node)
        at = replace(at, dims=at.dims.union([dim]), uneven=at.uneven | {v})
        at = at if width > 1 or loop.step > 1 else replace(at, steps={**at.steps, v: 1})
        if loop.limit is None:
            return self._dealt_to_the_end(node, dim, at)
        trips = -(-loop.limit // (threads * width))
        full = part_of(loop) in at.full
        room = f"{v} < {loop.limit}" if loop.limit % threads else None
        tests = [] if full and room is None else [Test(v, f"{v} < {end_of(loop, full, loop.outer)}", room)]
        lanes = [Lane(v, width, "int")] if width > 1 else []
        trip, name = f"{v}_trip", lanes[0].run_name if lanes else v
        self.places.trips[v] = trip if width == 1 else f"{v}_lane" if trips == 1 else f"{trip} * {width} + {v}_lane"
        body = self._guarded(node.body, at.inside(loop, tests, lanes))
        if trips == 1:
            return ["{", *indented([f"const int {name} = {THREAD[dim]}{_times(width)};", *body]), "}"]
        position = f"{trip} * {threads} + {THREAD[dim]}"
        position = position if width == 1 else f"({position}) * {width}"
        head = f"for (int {trip} = 0; {trip} < {trips}; {trip}++) {{"
        return [*self._unrolling(node, at), head, *indented([f"const int {name} = {position};", *body]), "}"]

    def _dealt_to_the_end(self, node: Sweep, dim: Dim, at: At) -> list[str]:
        """The same, of a loop that ends where an extent does."""
        loop, v, width = node.source, node.source.variable, node.width
        even = tuple(o for o in loop.outer if o not in at.uneven)
        end = end_of(loop, False, loop.outer)
        lanes = [Lane(v, width, "long long")] if width > 1 else []
        name = lanes[0].run_name if lanes else v
        together = bool(lanes) and not loop.outer
        whole = f"{extent_name(loop.extent)} % {width} == 0" if together else None
        test = Test(v, f"{v} < {end}", run=f"{name} < {end}" if together else None, whole=whole)
        body = self._guarded(node.body, at.inside(loop, [test], lanes))
        position = f"const long long {name} = {v}_first + {THREAD[dim]}{_times(loop.step * width)};"
        stride = self._threads(node) * loop.step * width
        head = f"for (long long {v}_first = 0; {v}_first < {end_of(loop, False, even)}; {v}_first += {stride}) {{"
        return [head, *indented([position, *body]), "}"]

    def _copy(self, node: Copy, at: At) -> list[str]:
        """A tile: runs of neighbours go to the threads of the block in turn, in one line."""
        near = node.loops[-1]
        short = [loop for loop in node.loops if part_of(loop) not in at.full]
        width = node.width if at.together and not short else 1
        tests = [Test(loop.variable, f"{loop.variable} < {end_of(loop, False, loop.outer)}") for loop in short]
        inside = replace(at, dims=frozenset(DIMS), uneven=at.uneven | {loop.variable for loop in node.loops})
        for loop in node.loops[:-1]:
            inside = inside.inside(loop, [])
        inside = inside.inside(near, tests, [Lane(near.variable, width, "int")] if width > 1 else [])
        return in_line(node, width, self.places.block.threads, self._guarded((node.update,), inside))

    def _with_copies_ahead(self, node: Sweep, at: At) -> list[str]:
        """A loop over tiles, during each of which the next ones are copied."""
        loop, stage = node.source, stage_name(node.source)
        stages = self.places.homes[node.ahead[0].target.buffer].stages
        said, rest = apart(node)
        deep = stages > FEWEST_STAGES
        self.used.moves |= {"arrive_but", "commit"} if deep else {"arrive"}

        def begun_in(where: str, position: str) -> list[str]:
            self.places.stages |= {copy.target.buffer: where for copy in node.ahead}
            begun = begun_next(loop, node.ahead, at, self.places, self.used, self.aligned)
            return [f"const long long {next_name(loop)} = {position};", *begun, *(["commit();"] if deep else [])]

        if deep:
            count = f"{loop.variable}_begun"
            first = begun_in(count, f"{count} * {loop.step}")
            head = f"for (int {count} = 0; {count} < {stages - 1}; {count}++) {{"
            lines = [*said, "#pragma unroll 1", head, *indented(first), "}"]
            other, later = f"({stage} + {stages - 1}) % {stages}", (stages - 1) * loop.step
            moving, waiting = f"{stage} = ({stage} + 1) % {stages};", f"arrive_but<{stages - 2}>();"
        else:
            lines = ["{", *indented([*said, *begun_in("0", "0")]), "}"]
            other, later, moving, waiting = f"{stage} ^ 1", loop.step, f"{stage} ^= 1;", "arrive();"
        following = begun_in(other, f"{loop.variable} + {later}")
        self.places.stages |= {copy.target.buffer: stage for copy in node.ahead}
        head, *body, end = self._serial(rest, at)
        arrived = [waiting, *self._barrier(), *following]
        return [*lines, f"int {stage} = 0;", head, *indented(arrived), *body, *indented([moving]), end]

    def _guarded(self, nodes: Sequence[Node], at: At) -> list[str]:
        """``nodes`` under the conditions that are left: around all of it if all in it needs them and nothing waits."""
        if meets(nodes):
            return self._block(nodes, at)
        closed = {lane.variable for lane in at.lanes}
        outer = tuple(t for t in at.tests if t.variable not in closed and self._all_need(nodes, t, at))
        inner = tuple(test for test in at.tests if test not in outer)
        return under([test.text for test in outer], self._block(nodes, replace(at, tests=inner)))

    def _in_lanes(self, nodes: Sequence[Node], at: At) -> list[str]:
        """Opens the loops over neighbours that a thread takes together, the ones that move at once innermost."""
        lanes, at = at.lanes, replace(at, lanes=())
        steps = {**at.steps, **{lane.variable: 1 for lane in lanes}}
        found = runs(nodes, lanes, steps, self.places.homes) if at.together else None
        tests = None if found is None else self._together(nodes, found.lane, at)
        if found is None or tests is None:
            lines = self._guarded(nodes, at)
        else:
            lines = under(tests, self._in_runs(nodes, found, replace(at, tests=())))
            lanes = tuple(lane for lane in lanes if lane != found.lane)
        for lane in reversed(lanes):
            lines = lane.around(lines)
        return lines

    def _together(self, nodes: Sequence[Node], lane: Lane, at: At) -> list[str] | None:
        """The conditions under which whole runs move; None if they are not the same for all of a run."""
        found: list[str] = []
        whole: list[str] = []
        for test in at.tests:
            needs = [self._need(leaf, test, at) for leaf in leaves_of(nodes)]
            if all(need == "nothing" for need in needs):
                continue
            kept = any(
                need == "choice" and self._shared(leaf) for leaf, need in zip(leaves_of(nodes), needs, strict=True)
            )
            text = test.run if test.variable == lane.variable else test.text
            whole += [test.whole] if test.variable == lane.variable and test.whole is not None else []
            if kept or text is None:
                return None
            found.append(text)
        if any(self._first(leaf, at) for leaf in leaves_of(nodes)):
            return None
        self.aligned |= dict.fromkeys(whole)
        return found

    def _shared(self, leaf: Leaf) -> bool:
        return self.places.homes[leaf.target.buffer].where == "shared"

    def _in_runs(self, nodes: Sequence[Node], found: Runs, at: At) -> list[str]:
        """The group with its runs read before and written after the loop over the lane."""
        width = found.lane.width
        for place in {**found.read, **found.written}:
            self.aligned |= dict.fromkeys(conditions(self.places.homes[place.buffer], width))
        before = [f"float {name}[{width}];" for name in {**found.read, **found.written}.values()]
        before += [f"read_{width}({n}, {self.places.address(first_of(p, found.lane))});" for p, n in found.read.items()]
        after = [
            f"write_{width}({self.places.address(first_of(p, found.lane))}, {n});" for p, n in found.written.items()
        ]
        self.used.moves |= {f"read_{width}"} if found.read else set()
        self.used.moves |= {f"write_{width}"} if found.written else set()
        self.places.runs = found.names
        inside = found.lane.around(self._block(nodes, at))
        self.places.runs = {}
        return [*before, *inside, *after]

    def _all_need(self, nodes: Sequence[Node], test: Test, at: At) -> bool:
        """Whether ``test`` guards every leaf of ``nodes``."""
        for node in nodes:
            match node:
                case Declare(name):
                    at = replace(at, declared={**at.declared, name: at.loops})
                case Sweep(source, _, body):
                    if not self._all_need(body, test, replace(at, loops=at.loops | {source.variable})):
                        return False
                case Assign() | Accumulate() | Combine() | Copy() | Contract():
                    # a scalar of an inner loop is no reason to branch again
                    if self._need(node, test, at) != "guard":
                        return False
                case _:
                    pass
        return True


def _passes(nodes: Sequence[Node], lanes: Sequence[Lane]) -> bool:
    """Whether loops over neighbours may be opened further inside: there is one loop, which does not depend on them."""
    inside = only_sweep(nodes)
    return inside is not None and not {lane.variable for lane in lanes} & set(inside.source.outer)


def _times(count: int) -> str:
    return "" if count == 1 else f" * {count}"


def _append(lines: list[str], more: list[str]) -> None:
    """Add the text of an update: a scalar's declaration and the assignment right after it are one sentence."""
    if len(more) == 1 and lines and more[0].startswith(lines[-1].removesuffix(";").removeprefix("float ") + " = "):
        lines[-1] = f"float {more[0]}"
    else:
        lines += more
