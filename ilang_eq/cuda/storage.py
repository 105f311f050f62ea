"""Where the buffers of a region live: in the threads' registers, in shared memory, or in device memory.

A local is in registers if no thread touches what another one has written, in shared memory if it fits there, and in
device memory otherwise, a piece for each block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Literal as Choice

from ilang_eq.cuda.accesses import Access, Anyone, Owner, Scope, Slot, leaves, touched
from ilang_eq.cuda.nodes import DIMS, Block, Combine, Dim, Launch
from ilang_eq.lower.ir import Buffer, Program

WARP = 32
"""Threads that run together."""
REGISTER_FLOATS = 128
"""The most floats of one buffer that a thread keeps."""
SHARED_BYTES = 48 * 1024
"""What a block may declare on every architecture."""

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
            by an element, so that neither rows nor columns lie in few banks.
    """

    buffer: Buffer
    where: Where
    slots: tuple[Dim, ...] = ()
    owned: tuple[Dim | None, ...] = ()
    dims: tuple[int, ...] = ()


def homes(launch: Launch, program: Program, outliving: frozenset[str]) -> dict[str, Home]:
    """The home of every buffer that ``launch`` touches, in the order of their first use."""
    buffers = {b.name: b for b in (*program.buffers, *launch.buffers)}
    found: dict[str, tuple[list[Access], tuple[Dim, ...]]] = {}
    shares: dict[str, Dim] = {}
    for leaf, scope in leaves(launch.body, Scope()):
        if isinstance(leaf, Combine):
            shares[leaf.share.buffer] = leaf.dim
        for place, written in touched(leaf):
            entry = found.setdefault(place.buffer, ([], scope.slots(place.buffer)))
            entry[0].append(Access(place, written, scope.who(place, launch.block, first=False)))
    left = SHARED_BYTES - _exchange_bytes(launch)
    result: dict[str, Home] = {}
    for name, (accesses, slots) in found.items():
        buffer = buffers[name]
        if buffer.role != "local" or name in outliving:
            result[name] = Home(buffer, "memory")
            continue
        own = _registers(buffer, accesses, launch.block, shares.get(name))
        if own is not None:
            result[name] = own
            continue
        assert name not in shares, "the shares of a reduction are each thread's own"
        dims = _padded(buffer)
        bytes_needed = None if dims is None else 4 * prod((*dims, *(launch.block.along(dim) for dim in slots)))
        if dims is not None and bytes_needed is not None and bytes_needed <= left:
            left -= bytes_needed
            result[name] = Home(buffer, "shared", slots, dims=dims)
        else:
            result[name] = Home(buffer, "scratch", slots)
    return result


def _padded(buffer: Buffer) -> tuple[int, ...] | None:
    """The extents of a buffer in shared memory; None if they are not constant."""
    dims = [size for size in buffer.dims if isinstance(size, int)]
    if len(dims) < len(buffer.dims):
        return None
    return (*dims[:-1], dims[-1] + 1) if len(dims) > 1 and dims[-1] % 2 == 0 else tuple(dims)


def _exchange_bytes(launch: Launch) -> int:
    """What combining across warps takes."""
    combines = [leaf for leaf, _ in leaves(launch.body, Scope()) if isinstance(leaf, Combine)]
    return 4 * launch.block.threads if any(not within_warp(c.dim, launch.block) for c in combines) else 0


def within_warp(dim: Dim, block: Block) -> bool:
    """Whether the threads along ``dim`` that combine lie in one warp."""
    return dim == "x" and block.x <= WARP


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
