"""Reductions over everything in two kernels, so that more than one block works on them; the order of sums is fixed.

before   out = 0;  for i: out += x[i]
after    for i_chunk step 16384 par: part[i_chunk / 16384] = 0;  for i < 16384: part[…] += x[i_chunk + i]
         out = 0;  for i_chunk step 16384: out += part[i_chunk / 16384]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ilang_eq.cuda.places import moved, summed
from ilang_eq.lang.ops import OPS
from ilang_eq.lower.dependence import REDUCTIONS, independent, shared
from ilang_eq.lower.ir import (
    Accumulate,
    Assign,
    Buffer,
    CeilDiv,
    Constant,
    For,
    Index,
    Kernel,
    Load,
    Program,
    Statement,
)
from ilang_eq.lower.walk import declared_in, loads, places, updates

CHUNK = 16384
"""Iterations that one block takes."""


def in_phases(program: Program) -> Program:
    """``program`` with its reductions over everything in two kernels."""
    kernels: list[Kernel] = []
    buffers = list(program.buffers)
    for kernel in program.kernels:
        cut = _cut(kernel, buffers)
        if cut is None:
            kernels.append(kernel)
        else:
            first, second, part = cut
            kernels += [first, second]
            buffers.append(part)
    return replace(program, kernels=tuple(kernels), buffers=tuple(buffers))


def _cut(kernel: Kernel, buffers: Sequence[Buffer]) -> tuple[Kernel, Kernel, Buffer] | None:
    """The two kernels and what the first hands on; None unless a loop of ``kernel`` only reduces, into one number."""
    for position, loop in enumerate(kernel.body):
        if not isinstance(loop, For):
            continue
        into = _reduced(loop, kernel, buffers)
        if into is None:
            continue
        taken = {buffer.name for buffer in buffers}
        name = next(n for k in range(1, len(taken) + 2) if (n := f"{into.target.buffer}_parts{k}") not in taken)
        part = Buffer(name, (CeilDiv(loop.extent, CHUNK),), "workspace")
        first = Kernel(f"{kernel.name}_parts", (_chunks(loop, into, name),))
        rest = _whole(loop, into, name)
        body = (*kernel.body[:position], rest, *kernel.body[position + 1 :])
        return first, replace(kernel, body=body), part
    return None


def _reduced(loop: For, kernel: Kernel, buffers: Sequence[Buffer]) -> Accumulate | None:
    """The only thing that ``loop`` does to the outside, if that is a reduction and all it reads is in memory."""
    if loop.parallel or independent(loop) or loop.limit is not None or loop.outer or CHUNK % loop.step:
        return None
    outside = shared(loop)
    inside = set(declared_in(loop.body))
    into = [s for s in updates(loop.body) if s.target.buffer not in inside]
    if len(outside) != 1 or len(into) != 1 or not isinstance(into[0], Accumulate) or into[0].op not in REDUCTIONS:
        return None
    target = into[0].target
    if target.indices or sum(place.buffer == target.buffer for place in places(loop.body)) != 1:
        return None
    roles = {buffer.name: buffer.role for buffer in buffers}
    written = {update.target.buffer for update in updates(kernel.body)}
    read = {load.buffer for update in updates(loop.body) for load in loads(update.value)} - inside
    return into[0] if all(roles[name] != "local" and name not in written for name in read) else None


def _chunk_variable(loop: For) -> str:
    return f"{loop.variable}_chunk"


def _part(loop: For, name: str) -> Load:
    return Load(name, (Index((_chunk_variable(loop),), CHUNK),))


def _chunks(loop: For, into: Accumulate, name: str) -> For:
    """The loop over chunks, for blocks: each reduces one."""
    v, outer = loop.variable, _chunk_variable(loop)
    identity = OPS[into.op].identity
    assert identity is not None, f"{into.op} does not reduce"
    part = _part(loop, name)
    body = moved(summed(loop.body, v, (outer, v)), lambda place: part if place == into.target else place)
    inner = replace(loop, limit=CHUNK, outer=(outer,), body=body)
    start: Statement = Assign(part, Constant(identity))
    return For(outer, loop.extent, CHUNK, None, (), (start, inner), parallel=True)


def _whole(loop: For, into: Accumulate, name: str) -> For:
    """The loop over what the chunks came to."""
    body = (Accumulate(into.target, into.op, _part(loop, name)),)
    return For(_chunk_variable(loop), loop.extent, CHUNK, None, (), body, reduces=True)
