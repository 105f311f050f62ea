"""Where the buffers of a region live: in the threads' registers, in shared memory, or in device memory.

A local is in registers if no thread touches what another one has written, in shared memory if it fits there, and in
device memory otherwise, a piece for each block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal as Choice

from ilang_eq.cuda.accesses import Access, Anyone, Owner, Scope, Slot, leaves, touched
from ilang_eq.cuda.directions import WIDEST, widest
from ilang_eq.cuda.nodes import DIMS, REGISTER_FLOATS, Block, Combine, Contract, Copy, Dim, Launch, Sweep
from ilang_eq.cuda.walks import contracts_of, leaves_of
from ilang_eq.lower.ir import Accumulate, Assign, Buffer, Load, Program
from ilang_eq.lower.walk import stride

BASE_REGISTERS, BASE_ARRAYS, ARRAY_REGISTERS, TILE_REGISTERS = 64, 3, 8, 30
"""Registers of a thread beside those that hold data: for counters and addresses in so many arrays, and in each further
one; or, where tensor cores work, for each tile that is copied for them. As the compiler reports them."""
CHUNK_REGISTERS = 24
"""The same for each tile where groups of warps take products in chunks: what is handed on is then where scores were."""
MOST_BESIDE = 60
"""The most registers for what is computed from kept data: as many as are kept, where these are few."""
ENOUGH, FEWEST_BESIDE = 128, 48
"""Registers that the compiler gets along with, if it is told to and so many are left beside what is kept: without a
spill in three of four of 80 kernels. It takes more if it may, but then half as many warps hide what they wait for: a
product of 4096² takes 3.23 instead of 3.69 ms on an H200, a sum of Gaussians 3.16 instead of 4.08."""
USUAL_REGISTERS = 40
"""What kernels take that keep nothing: 36 to 56, of some twenty that were compiled for sm_90."""
MOST_REGISTERS = 255
"""What a thread can have."""
REGISTERS = 65536
"""Registers of a multiprocessor, on every architecture."""
THREADS_TOGETHER = 1024
"""Threads of a multiprocessor that are asked for, registers permitting."""
STATIC_BYTES = 48 * 1024
"""Shared memory that a block may declare; for more, a launch asks."""
SWIZZLE_BYTES = 1024
"""Eight rows of a tile that is swizzled: where it begins decides how."""
MOST_SHARED_BYTES = 99 * 1024
"""What a block can have on every architecture (sm_89 has the least), so that kernels are the same on all."""

Where = Choice["memory", "registers", "shared", "scratch"]


@dataclass(frozen=True, slots=True)
class Home:
    """Where a buffer lives.

    Args:
        buffer: its logical shape.
        where: "memory" for what the caller or another region also uses.
        slots: the directions along which each thread has one of its own (outer dimensions, but in registers).
        owned: per dimension, the direction whose threads share it out; registers hold a thread's part.
        dims: extents of the storage, without slots, where they are constant; the last one of shared memory is padded
            so that neither rows nor columns lie in few banks: by four elements where rows are read four at a time,
            as ``apart`` says where tensor cores read them, else by one; not where they are swizzled.
        stages: places of a tile that is copied ahead (``ahead.py``).
        whole: whether all of a tile is written, zeros beyond an extent's end: else nobody may read there.
        swizzled: whether run n of row r has the place of run n ^ r % 8, as groups of warps read it.
    """

    buffer: Buffer
    where: Where
    slots: tuple[Dim, ...] = ()
    owned: tuple[Dim | None, ...] = ()
    dims: tuple[int, ...] = ()
    stages: int = 1
    whole: bool = True
    swizzled: bool = False

    @property
    def alignment(self) -> int:
        """The bytes that an array in shared memory begins at a multiple of."""
        return SWIZZLE_BYTES if self.swizzled else 4 * self.aligned

    @property
    def aligned(self) -> int:
        """How many floats of shared memory may move together: every so many begin at a multiple of their size."""
        return next((w for w in (WIDEST, 2) if self.dims and self.dims[-1] % w == 0), 1)

    def sizes(self, block: Block) -> tuple[int, ...]:
        """The extents of an array in shared memory, with stages and slots."""
        stages = (self.stages,) if self.stages > 1 else ()
        return (*stages, *(block.along(dim) for dim in self.slots), *self.dims) or (1,)

    def bytes(self, block: Block) -> int:
        """What it takes of shared memory; whole runs, so that the next one is aligned."""
        return -(-4 * prod(self.sizes(block)) // 16) * 16 if self.where == "shared" else 0


def apart(contract: Contract, place: Load) -> int:
    """How far rows of shared memory should lie apart for no conflicts when a warp reads its part of a factor.

    Odd multiples of it: a warp reads four neighbours of eight rows, or, where the depth is not the last index, eight
    neighbours of four rows, which are every second one where the depth is handed on in pairs.
    """
    last = place.indices[-1].variables
    along_depth = contract.depth.variable in last
    return 8 if along_depth == contract.handed else 4


def taken_by_cores(launch: Launch, homes: Mapping[str, Home]) -> bool:
    """Whether all sums of contracts are in registers, and all factors there or, whole, in shared memory."""
    for contract in contracts_of(launch.body):
        target, left, right = (homes[place.buffer] for place in (contract.target, contract.left, contract.right))
        if target.where != "registers" or right.where != "shared" or left.slots or right.slots:
            return False
        if left.where != "shared" and not (left.where == "registers" and contract.handed):
            return False
        if not (left.whole and right.whole):
            return False
        read = [] if contract.turned else [right]
        read += [] if contract.prepared is None else [homes[contract.prepared.buffer]]
        if contract.grouped and not all(home.swizzled for home in read):
            return False
    return True


def shares_are_own(launch: Launch, homes: Mapping[str, Home]) -> bool:
    """Whether what each thread is to have of its own lies in its registers."""
    return all(homes[name].where == "registers" for name in launch.shares)


def shared_bytes(launch: Launch, homes: Mapping[str, Home]) -> int:
    """Shared memory that a block takes."""
    return exchange_bytes(launch) + sum(home.bytes(launch.block) for home in homes.values())


def asked_bytes(launch: Launch, homes: Mapping[str, Home]) -> int:
    """Shared memory that a launch has to ask for: none, if all of it can be declared."""
    return 0 if shared_bytes(launch, homes) <= STATIC_BYTES else shared_bytes(launch, homes) - exchange_bytes(launch)


def needed_registers(launch: Launch, homes: Mapping[str, Home]) -> int:
    """Registers that a thread is expected to need: factors of products on top of what it keeps. Scalars come and go."""
    sizes = {name: prod(home.dims) for name, home in homes.items() if home.where == "registers"}
    contracts = contracts_of(launch.body)
    if not contracts:
        arrays = sum(home.where in ("memory", "scratch") for home in homes.values())
        kept = sum(size for name, size in sizes.items() if homes[name].dims)
        taken = BASE_REGISTERS + ARRAY_REGISTERS * max(0, arrays - BASE_ARRAYS) + kept + min(kept, MOST_BESIDE)
        return taken if taken <= ENOUGH else max(ENOUGH, FEWEST_BESIDE + kept)
    tiles = {leaf.target.buffer for leaf in leaves_of(launch.body) if isinstance(leaf, Copy)}
    handed = sum(sizes.get(leaf.left.buffer, 0) for leaf in contracts)
    fragments = max(leaf.fragments(launch.block) for leaf in contracts)
    if any(leaf.in_chunks for leaf in contracts):
        return CHUNK_REGISTERS * len(tiles) + sum(sizes.values()) - handed + fragments
    return TILE_REGISTERS * len(tiles) + sum(sizes.values()) + handed + 2 * fragments


def usual_registers(launch: Launch, homes: Mapping[str, Home]) -> int:
    """Registers that the compiler uses as a rule: fewer than it is allowed, where there are few sums."""
    if contracts_of(launch.body):
        return registers_of(launch, homes)
    kept = sum(prod(home.dims) for home in homes.values() if home.where == "registers")
    return min(registers_of(launch, homes), -(-(USUAL_REGISTERS + 2 * kept) // 8) * 8)


def registers_of(launch: Launch, homes: Mapping[str, Home]) -> int:
    """Registers that a thread is to have, in the eights that they come in."""
    return min(most_registers(launch), -(-needed_registers(launch, homes) // 8) * 8)


def most_registers(launch: Launch) -> int:
    """Registers that a thread can have, if a multiprocessor is to hold one block."""
    return min(MOST_REGISTERS, REGISTERS // launch.block.threads)


def blocks_of(launch: Launch, homes: Mapping[str, Home]) -> int:
    """How many blocks a multiprocessor is to hold, as far as registers go: the compiler is told of it."""
    threads = launch.block.threads
    return max(1, min(REGISTERS // (registers_of(launch, homes) * threads), THREADS_TOGETHER // threads))


def homes(launch: Launch, program: Program, outliving: frozenset[str]) -> dict[str, Home]:
    """The home of every buffer that ``launch`` touches, in the order of their first use."""
    buffers = {b.name: b for b in (*program.buffers, *launch.buffers)}
    found: dict[str, tuple[list[Access], tuple[Dim, ...]]] = {}
    runs: dict[str, int] = {}
    rows: dict[str, int] = {}
    ragged: set[str] = set()
    grouped = [leaf for leaf in contracts_of(launch.body) if leaf.grouped]
    swizzled = {leaf.prepared.buffer for leaf in grouped if leaf.prepared is not None}
    swizzled |= {leaf.right.buffer for leaf in grouped if not leaf.turned}
    for leaf, scope in leaves(launch.body, Scope()):
        if isinstance(leaf, Contract):
            rows |= {place.buffer: apart(leaf, place) for place in (leaf.left, leaf.right)}
        for place, written in touched(leaf):
            entry = found.setdefault(place.buffer, ([], scope.slots(place.buffer)))
            if not written:
                runs[place.buffer] = min(runs.get(place.buffer, WIDEST), _run(place, scope.path))
            elif not isinstance(leaf, Accumulate | Combine | Contract) and not _fills(leaf, scope.path, place, buffers):
                ragged.add(place.buffer)
            entry[0].append(Access(place, written, scope.who(leaf, place, launch.block, first=False)))
    left = MOST_SHARED_BYTES - exchange_bytes(launch)
    result: dict[str, Home] = {}
    for name, (accesses, slots) in found.items():
        buffer = buffers[name]
        if buffer.role != "local" or name in outliving:
            result[name] = Home(buffer, "memory")
            continue
        own = _registers(buffer, accesses, launch.block, launch.shares.get(name))
        if own is not None:
            result[name] = own
            continue
        swizzles = name in swizzled and not slots
        dims = _padded(buffer, runs.get(name, 1), rows.get(name), swizzles)
        shared = None
        if dims is not None:
            shared = Home(buffer, "shared", slots, dims=dims, whole=name not in ragged, swizzled=swizzles)
        if shared is not None and shared.bytes(launch.block) <= left:
            left -= shared.bytes(launch.block)
            result[name] = shared
        else:
            result[name] = Home(buffer, "scratch", slots)
    return result


def _fills(leaf: Assign | Copy, path: Sequence[Sweep], place: Load, buffers: Mapping[str, Buffer]) -> bool:
    """Whether ``leaf`` sets all elements of a tile: threads that share out a loop go beyond an extent's end."""
    loops = leaf.loops if isinstance(leaf, Copy) else [sweep.source for sweep in path if sweep.dim is not None]
    limits = {loop.variable: loop.limit for loop in loops}
    return all(
        size == 1 or (len(index.variables) == 1 and limits.get(index.variables[0]) == size)
        for index, size in zip(place.indices, buffers[place.buffer].dims, strict=True)
    )


def _run(place: Load, path: tuple[Sweep, ...]) -> int:
    """How many neighbours a thread reads together, in a loop of its own or its part of one that is shared out."""
    near = [sweep for sweep in path if stride(place, sweep.source.variable) == "unit"]
    own = [s.width if s.dim is not None else widest(s.source.limit or 1, 1) for s in near]
    return max(own, default=1)


def _padded(buffer: Buffer, run: int, rest: int | None, swizzled: bool) -> tuple[int, ...] | None:
    """The extents of a buffer in shared memory; None if they are not constant.

    Args:
        buffer: which one.
        run: how many neighbours are read together.
        rest: what is to be left of the length of its rows in twos of itself, if tensor cores read them.
        swizzled: whether rows stay as they are.
    """
    dims = [size for size in buffer.dims if isinstance(size, int)]
    if len(dims) < len(buffer.dims):
        return None
    if len(dims) < 2 or dims[-1] % 2 or swizzled:
        return tuple(dims)
    if rest is not None and dims[-1] % WIDEST == 0:
        return (*dims[:-1], dims[-1] + (rest - dims[-1]) % (2 * rest))
    return (*dims[:-1], dims[-1] + (WIDEST if run == WIDEST and dims[-1] % WIDEST == 0 else 1))


def exchange_bytes(launch: Launch) -> int:
    """What combining across warps takes."""
    combines = [leaf for leaf, _ in leaves(launch.body, Scope()) if isinstance(leaf, Combine)]
    return 4 * launch.block.threads if any(_exchanges(c.dim, launch.block) for c in combines) else 0


def _exchanges(dim: Dim, block: Block) -> bool:
    return block.along(dim) > 1 and not within_warp(dim, block)


def within_warp(dim: Dim, block: Block) -> bool:
    """Whether the threads along ``dim`` that combine lie in one warp."""
    return dim == "x" and block.x == block.lanes


def _registers(buffer: Buffer, accesses: Iterable[Access], block: Block, share: Dim | None) -> Home | None:
    """A home in registers; None if threads touch each other's elements, or there are too many or unknown ones."""
    accesses = list(accesses)
    owned: list[Dim | None] = [None] * len(buffer.dims)
    for axis, dim in enumerate(DIMS):
        if dim == share:
            continue
        kinds = [(access.who[axis], access.written) for access in accesses]
        if all(isinstance(who, Slot) for who, _ in kinds):
            continue
        owners = {who for who, _ in kinds}
        if len(owners) == 1 and isinstance(owner := next(iter(owners)), Owner):
            if owner.rest or buffer.dims[owner.dim] != owner.part.limit or owned[owner.dim] is not None:
                return None
            owned[owner.dim] = dim
        elif any(isinstance(who, Owner | Anyone) for who, written in kinds if written):
            return None
    dims: list[int] = []
    for size, dim in zip(buffer.dims, owned, strict=True):
        if not isinstance(size, int):
            return None
        dims.append(size if dim is None else -(-size // block.along(dim)))
    return Home(buffer, "registers", (), tuple(owned), tuple(dims)) if prod(dims) <= REGISTER_FLOATS else None
