"""The cost model of the CUDA binding: what the launches of a program take on a GPU, in closed form.

It reads the very launches that ``cuda/emit.py`` prints. Blocks go to multiprocessors (SMs) in rounds of as many as
fit together; a round keeps several parts busy: issuing instructions, arithmetic, special functions, shared memory with
its bank conflicts, the second-level cache; what one block takes by itself, its latencies and one warp's instructions;
and device memory, by its bandwidth or by the bytes in flight (Little's law). They overlap, but not wholly: a launch
takes the root of the sum of their squares, and what its blocks wait, as far as there are no others to fill the time.
Of 262 schedules of seven workloads, timed on an H200, that ranks 90.8 % of the pairs that differ by 10 % rightly, and
its choice is 0.5 % off the quickest; the longest part alone ranks 89.6 %, and is 8.4 % off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, hypot, inf, log2, prod

from ilang_eq.cuda.accesses import touched
from ilang_eq.cuda.contractions import COLUMNS, DEPTH, GROUP, ROWS
from ilang_eq.cuda.directions import WIDEST, widest
from ilang_eq.cuda.emit import bound
from ilang_eq.cuda.nodes import RUN, SWIZZLED, WARP, Barrier, Combine, Contract, Copy, Launch, Node, Sweep
from ilang_eq.cuda.quotients import INVERSE_HOME, inverted
from ilang_eq.cuda.steps import BLOCKS_WITH_SCRATCH
from ilang_eq.cuda.storage import Home, most_registers, needed_registers, shared_bytes, usual_registers
from ilang_eq.cuda.unrolling import trips_of, unrolled
from ilang_eq.cuda.walks import places_of
from ilang_eq.extract.footprint import Extents, size_of
from ilang_eq.extract.full_model import Cost
from ilang_eq.extract.gpu_machine import Gpu
from ilang_eq.extract.gpu_slots import OTHER, SLOTS, absorbed, arithmetic
from ilang_eq.extract.gpu_volumes import Cache, Run, Use, volume
from ilang_eq.lower.ir import Accumulate, Assign, For, Load, Program
from ilang_eq.lower.quotients import INVERSE
from ilang_eq.lower.walk import loads, mentions, stride

LOOP_SLOTS = 4.0
"""Instructions to step and test a loop that is not unrolled."""
IN_FLIGHT = 4.0
"""Loads that one thread has in flight, on average."""
SECTOR = 8
"""Floats that a request to memory moves at least."""
BANKS = 32
ADDRESS_SLOTS = 2.0
"""Instructions for the address of a request to memory: 64 bits, of strides that only the call knows."""
ROUNDING_SLOTS = {1: 2.0, 2: 8.0}
"""Instructions to round an element for tensor cores, by the parts that it is taken as."""
SPILLING = 2.0
"""How much longer a launch takes if what a thread keeps does not fit its registers. Not measured: it is kept off."""
COPY_SLOTS = 8.0
"""Instructions for the positions of a run that is copied."""
RESTART = 200.0
"""Cycles from the barrier before a tile until its products are under way again, with few warps. Fitted to the schedules
that were timed on an H200: with 0, tiles half as deep look as good as they are bad."""
GROUPS = "tensor cores of four warps"
"""The part of a launch that they do together."""
_SIZE = 4
_US = 1e-6


@dataclass(slots=True)
class _Work:
    """What one block does for one task: per thread, but for ``cycles`` of shared memory and L1, which are of a warp.

    ``cores`` are instructions of tensor cores, which a warp runs together; ``grouped`` what four warps run together
    comes to in those. ``fetches`` move ``fetched`` floats from and to memory.
    """

    slots: float = 0.0
    special: float = 0.0
    requests: float = 0.0
    cycles: float = 0.0
    cores: float = 0.0
    grouped: float = 0.0
    waits: float = 0.0
    latency: float = 0.0
    fetches: float = 0.0
    fetched: float = 0.0

    @property
    def width(self) -> float:
        """The floats that a fetch brings, on average."""
        return self.fetched / self.fetches if self.fetches else 1.0


@dataclass(slots=True)
class _Counter:
    """Counts the work of a launch at some extents."""

    launch: Launch
    homes: Mapping[str, Home]
    gpu: Gpu
    extents: Extents
    work: _Work = field(default_factory=_Work)

    def block(self, nodes: Sequence[Node], path: tuple[Sweep, ...]) -> None:
        """Count ``nodes`` inside the sweeps of ``path``."""
        times = prod(self.trips(sweep) for sweep in path)
        fetched = False
        for node, following in pairwise((*nodes, None)):
            match node:
                case Sweep():
                    without = inverted(node, self.homes, self.launch.block)
                    if without is not None:
                        self.work.slots += times * SLOTS["div"][0]
                        node = without.sweep
                    if not self.unrolled(node):
                        self.work.slots += times * self.trips(node) * LOOP_SLOTS
                    self.block(node.body, (*path, node))
                    if node.ahead:
                        # the first tile is waited for, the others have been on their way for an iteration
                        self.work.waits += times
                        self.work.latency += times * self.trips(node) * (self._barrier() + RESTART)
                case Barrier():
                    self.work.latency += times * self._barrier()
                case Combine():
                    self.work.slots += times * 2 * log2(self.launch.block.along(node.dim))
                    self.work.latency += times * self.gpu.shuffle * log2(self.launch.block.along(node.dim))
                case Assign() | Accumulate():
                    self._leaf(node, following, path, times)
                    fetched |= any(self.homes[load.buffer].where in ("memory", "scratch") for load in loads(node.value))
                case Contract():
                    self._contract(node, times)
                case Copy():
                    self._copy(node, times)
                    fetched |= not node.ahead
                case _:
                    pass
        if fetched:
            # what unrolled and independent loops fetch is in flight together
            self.work.waits += prod(
                self.trips(s) / unrolled(s, self.homes, self.launch.block) for s in path if s.dim is None
            )

    def _barrier(self) -> float:
        """The cycles of a barrier."""
        return self.gpu.barrier + self.gpu.barrier_warp * self.launch.block.threads / WARP

    def trips(self, sweep: Sweep) -> float:
        """How often one thread runs the body of ``sweep``."""
        loop = sweep.source
        length = self.extents[loop.extent.input, loop.extent.dim]
        length = length if loop.limit is None else min(length, loop.limit)
        threads = 1 if sweep.dim is None else self.launch.block.along(sweep.dim)
        return ceil(length / (loop.step * threads))

    def unrolled(self, sweep: Sweep) -> bool:
        """Whether the trips of ``sweep`` stand one after another."""
        return unrolled(sweep, self.homes, self.launch.block) == trips_of(sweep, self.launch.block)

    def _leaf(self, leaf: Assign | Accumulate, following: Node | None, path: tuple[Sweep, ...], times: float) -> None:
        slots, special = arithmetic(leaf.value)
        if isinstance(leaf, Accumulate):
            slots += SLOTS.get(leaf.op, OTHER)[0]
        elif absorbed(leaf, following):
            slots = 0.0
        self.work.slots += times * slots
        self.work.special += times * special
        for place in {*loads(leaf.value), *([leaf.target] if isinstance(leaf, Accumulate) else [])}:
            self._request(place, path, hoisted=True)
        self._request(leaf.target, path, hoisted=False)

    def _request(self, place: Load, path: tuple[Sweep, ...], hoisted: bool) -> None:
        home = self.homes[place.buffer]
        if home.where == "registers":
            return
        moving = [mentions(place, sweep.source.variable) for sweep in path]
        counted = [
            moves or not hoisted or (not self.unrolled(sweep) and any(moving[n + 1 :]))
            for n, (sweep, moves) in enumerate(zip(path, moving, strict=True))
        ]
        requests = prod(self.trips(sweep) for sweep, counts in zip(path, counted, strict=True) if counts)
        lanes = [{s.source.variable: self._first(s, lane) for s in path if s.dim is not None} for lane in range(WARP)]
        near = [sweep for sweep in path if stride(place, sweep.source.variable) == "unit"]
        own = [
            s.width if s.dim is not None else widest(s.source.limit or 1, 1) for s in near if s.dim or self.unrolled(s)
        ]
        width = min(max(own, default=1), self._together(home, own))
        self._asked(
            home, requests / width, [self._address(place, home, lane, n) for n, lane in enumerate(lanes)], width
        )

    def _first(self, sweep: Sweep, lane: int) -> int:
        """The first position of a lane of the first warp."""
        return 0 if sweep.dim is None else sweep.width * self.launch.block.position(sweep.dim, lane)

    def _together(self, home: Home, own: Sequence[int]) -> int:
        """How many floats of a row move together: in memory those of one thread's own part, if rows are whole runs."""
        if home.where == "shared":
            return home.aligned
        row = size_of(home.buffer.dims[-1], self.extents) if len(home.buffer.dims) > 1 else WIDEST
        return widest(row, 1) if own and not home.slots else 1

    def _copy(self, copy: Copy, times: float) -> None:
        """A tile: runs in turn, each read and written at once where both sides allow it."""
        if copy.ahead and not all(stride(place, copy.loops[-1].variable) == "unit" for place in places_of(copy)):
            # what is turned on its way goes element by element
            copy = replace(copy, width=1)
        trips = times * ceil(copy.runs / self.launch.block.threads)
        self.work.slots += trips * COPY_SLOTS
        for place in places_of(copy):
            home = self.homes[place.buffer]
            near = stride(place, copy.loops[-1].variable) == "unit"
            width = min(copy.width, self._together(home, [copy.width])) if near else 1
            lanes = [self._address(place, home, copy.position(lane), lane) for lane in range(WARP)]
            self._asked(home, trips * copy.width / width, lanes, width)

    def _contract(self, node: Contract, times: float) -> None:
        """A product on tensor cores: parts of both factors, rounded, and what is done with them."""
        block = self.launch.block
        pairs, trips = node.pairs(block), node.trips(block)
        steps = times * (node.depth.limit or 0) / DEPTH
        own = [(node.left, node.rows, 4 * pairs), (node.right, node.columns, 2 * trips)]
        products = steps * pairs * (1 if node.parts == 1 else 3)
        if node.grouped and self.gpu.warpgroup > self.gpu.tensor:
            # the right factor goes from shared memory to the cores of four warps at once
            self.work.grouped += products * trips
            self.work.cycles += products * (node.columns.limit or 0) * DEPTH / (GROUP * WARP)
            own.pop()
        else:
            self.work.cores += products * trips
        if node.in_chunks and len(own) > 1:
            # single warps read and truncate the right factor for every product
            reads = products * 2 * trips
            self.work.slots += reads
            self.work.requests += reads / RUN
            self.work.cycles += reads
            own.pop()
        if node.prepared is not None:
            # threads read a tile and write others, four neighbours at a time, and wait for each other
            runs = times * (node.columns.limit or 0) * (node.depth.limit or 0) / RUN / block.threads
            written = node.tiles * SWIZZLED / (node.depth.limit or 1)
            self.work.slots += runs * RUN * ROUNDING_SLOTS[node.parts if node.turned else 1]
            self.work.requests += runs * (written + (RUN if node.turned else 1))
            self.work.cycles += runs * RUN * (written + 1)
            self.work.latency += times * (self._barrier() + RESTART)
        if node.in_chunks:
            # sums of one product at a time are added up
            self.work.slots += times * (node.depth.limit or 0) / SWIZZLED * 4 * pairs * trips
        self.work.slots += steps * sum(count for _, _, count in own) * ROUNDING_SLOTS[node.parts]
        for place, loop, count in own:
            home = self.homes[place.buffer]
            if home.where == "registers":
                continue
            near = place.indices[-1].variables == (node.depth.variable,) and not node.handed
            lanes = [
                {loop.variable: lane // 4, node.depth.variable: lane % 4 * (2 if node.handed else 1)}
                for lane in range(WARP)
            ]
            words = {self._address(place, home, positions, lane) for lane, positions in enumerate(lanes)}
            # four neighbours of eight rows come together in matrices, four at a time
            self.work.requests += steps * count / (4 if near else 1)
            self.work.cycles += steps * count * _conflicts(words)

    def _asked(self, home: Home, requests: float, addresses: Sequence[int], width: int) -> None:
        """Count requests of a warp, each for ``width`` words from every address on."""
        self.work.requests += requests * (1 if home.where == "shared" else 1 + ADDRESS_SLOTS)
        if home.where != "shared":
            self.work.fetches += requests
            self.work.fetched += requests * width
        if home.where == "shared":
            # as many lanes at once as their words fill all banks: what others share is brought to each all the same
            together = WARP // width
            phases = (addresses[first : first + together] for first in range(0, WARP, together))
            self.work.cycles += requests * sum(_conflicts(_words(phase, width)) for phase in phases)
        else:
            sectors = {word // SECTOR for word in _words(addresses, width)}
            self.work.cycles += requests * max(width, len(sectors) / 4)

    def _address(self, place: Load, home: Home, positions: Mapping[str, int], lane: int) -> int:
        """The word that a lane of the first warp touches in the first trips."""
        block = self.launch.block
        dims = [block.along(dim) for dim in home.slots]
        dims += home.dims if home.where == "shared" else [size_of(size, self.extents) for size in home.buffer.dims]
        indices = [block.position(dim, lane) for dim in home.slots]
        indices += [sum(positions.get(v, 0) for v in index.variables) // index.divisor for index in place.indices]
        if home.swizzled:
            indices[-1] ^= indices[-2] % (SWIZZLED // RUN) * RUN
        address = 0
        for index, size in zip(indices, dims, strict=True):
            address = address * size + index
        return address


def gpu_cost(program: Program, extents: Extents, gpu: Gpu) -> Cost:
    """What ``program`` takes at ``extents`` (dimension d of input n under the key (n, d)) on ``gpu``."""
    seconds = 0.0
    terms: list[tuple[str, float]] = []
    for launch, homes in bound(program):
        parts = _launch(launch, homes, extents, gpu)
        seconds += gpu.launch_us * _US + _together(dict(parts))
        terms += [(f"{launch.name}: {part}", spent) for part, spent in (*parts, ("overhead", gpu.launch_us * _US))]
    return Cost(seconds, tuple(terms))


def _together(parts: dict[str, float]) -> float:
    """What the parts of a launch take, which overlap but for what is waited; arithmetic is a part of what is issued.

    What groups of warps and their copies do goes on by itself: the longest of it counts.
    """
    issued = max(parts.get("issue", 0.0), parts.get("arithmetic", 0.0))
    apart = ["issue", "arithmetic", "waiting"]
    by_itself = 0.0
    if parts.get(GROUPS):
        apart += [GROUPS, "shared memory", "L2"]
        by_itself = max(parts[GROUPS], parts["shared memory"], parts["L2"])
    others = (spent for name, spent in parts.items() if name not in apart)
    return parts.get("waiting", 0.0) + hypot(issued, by_itself, *others)


def _launch(launch: Launch, homes: Mapping[str, Home], extents: Extents, gpu: Gpu) -> list[tuple[str, float]]:
    """The seconds of every part of a launch."""
    tasks = tasks_of(launch, extents)
    together = resident(launch, homes, gpu)
    if tasks == 0 or together == 0:
        return [("issue", 0.0 if tasks == 0 else inf)]
    counter = _Counter(launch, {**homes, INVERSE.buffer: INVERSE_HOME}, gpu, extents)
    counter.block(launch.body, ())
    cycle = 1e-9 / gpu.clock_ghz
    scratch = any(home.where == "scratch" for home in homes.values())
    running = min(tasks, together * gpu.sms, BLOCKS_WITH_SCRATCH if scratch else tasks)
    each = ceil(running / gpu.sms)
    near, far = _volumes(launch, homes, extents, gpu, each, running)
    rounds = tasks / running if tasks > running * 8 else ceil(tasks / running)
    cycle *= SPILLING if needed_registers(launch, homes) > most_registers(launch) else 1.0
    parts = [(name, rounds * each * spent * cycle) for name, spent in _throughput(counter.work, launch, near, gpu)]
    wait = gpu.dram_latency if far > gpu.l2_bytes else gpu.l2_latency
    work = counter.work
    alone = work.slots + work.special + work.requests + work.cores
    waiting = work.waits * wait + work.latency
    parts.append(("latency", rounds * (alone + waiting) * cycle))
    # while its groups multiply, a block does nothing else
    groups = dict(parts)[GROUPS] / each
    parts.append(("waiting", groups + rounds * waiting * cycle / each))
    in_flight = _SIZE * running * max(launch.block.threads * IN_FLIGHT * work.width, _ahead(launch.body, homes))
    bandwidth = min(gpu.dram_gbs, in_flight / (gpu.dram_latency / gpu.clock_ghz)) * 1e9
    return [*parts, ("memory", far / bandwidth)]


def _ahead(nodes: Sequence[Node], homes: Mapping[str, Home]) -> int:
    """The most floats that are on their way to a block while it works: of tiles that are copied ahead."""
    own = 0
    for node in nodes:
        if isinstance(node, Sweep):
            sizes = [copy.runs * copy.width * (homes[copy.target.buffer].stages - 1) for copy in node.ahead]
            own = max(own, _ahead(node.body, homes), sum(sizes))
    return own


def _throughput(work: _Work, launch: Launch, near: float, gpu: Gpu) -> list[tuple[str, float]]:
    """The cycles of an SM that one task takes of each of its resources."""
    warps = launch.block.threads / WARP
    return [
        ("issue", warps * (work.slots + work.special + work.requests + work.cores) / gpu.issue),
        ("arithmetic", launch.block.threads * work.slots / gpu.fma),
        ("tensor cores", warps * work.cores * ROWS * COLUMNS * DEPTH / gpu.tensor),
        (GROUPS, warps * work.grouped * ROWS * COLUMNS * DEPTH / gpu.warpgroup),
        ("special functions", launch.block.threads * work.special / gpu.special),
        ("shared memory", warps * work.cycles * WARP * _SIZE / gpu.shared_bytes_per_clock),
        ("L2", near / (gpu.l2_gbs / gpu.sms / gpu.clock_ghz)),
    ]


def tasks_of(launch: Launch, extents: Extents) -> int:
    """The tasks of a launch: as many blocks, unless each needs device memory of its own."""
    return prod(_trips(loop, extents) for loop in launch.grid)


def resident(launch: Launch, homes: Mapping[str, Home], gpu: Gpu) -> int:
    """The blocks that an SM holds at a time: by threads, registers and shared memory."""
    limits = [
        gpu.blocks,
        gpu.threads // launch.block.threads,
        gpu.registers // (usual_registers(launch, homes) * launch.block.threads),
    ]
    return min([*limits, gpu.shared_bytes // (shared_bytes(launch, homes) + 1024)])


def _volumes(
    launch: Launch, homes: Mapping[str, Home], extents: Extents, gpu: Gpu, each: int, running: float
) -> tuple[float, float]:
    """Bytes from the second-level cache for one task, and from device memory for all; so many run at once."""
    grid = tuple(Run(loop.variable, _trips(loop, extents)) for loop in launch.grid)
    uses = list(_uses(launch.body, grid, homes, extents))
    # what blocks do not take of shared memory is cache as well
    cached = gpu.l1_bytes + max(0, gpu.shared_bytes - each * (shared_bytes(launch, homes) + 1024))
    near, far = Cache(cached, each, grid), Cache(gpu.l2_bytes, running, grid)
    return volume(uses, near, len(grid)), volume(uses, far)


def _uses(nodes: Sequence[Node], loops: tuple[Run, ...], homes: Mapping[str, Home], extents: Extents) -> Iterator[Use]:
    """The places of ``nodes`` that lie in memory."""
    for n, node in enumerate(nodes):
        match node:
            case Sweep(source):
                run = Run(source.variable, _trips(source, extents), n)
                yield from _uses(node.body, (*loops, run), homes, extents)
            case Copy(copied):
                runs = tuple(Run(loop.variable, _trips(loop, extents), n) for loop in copied)
                yield from _uses((node.update,), (*loops, *runs), homes, extents)
            case Assign() | Accumulate() | Combine() | Contract():
                for place, _ in touched(node):
                    home = homes[place.buffer]
                    if home.where in ("memory", "scratch"):
                        yield Use(place, loops, float(prod(size_of(size, extents) for size in home.buffer.dims)))
            case _:
                pass


def _trips(loop: For, extents: Extents) -> int:
    length = extents[loop.extent.input, loop.extent.dim]
    return ceil((length if loop.limit is None else min(loop.limit, length)) / loop.step)


def _words(addresses: Iterable[int], width: int) -> set[int]:
    """The words from each address on."""
    return {address + n for address in addresses for n in range(width)}


def _conflicts(addresses: Iterable[int]) -> int:
    """How often shared memory is asked for one request: words of one bank come one after another."""
    words: dict[int, set[int]] = {}
    for address in addresses:
        words.setdefault(address % BANKS, set()).add(address)
    return max(map(len, words.values()))
