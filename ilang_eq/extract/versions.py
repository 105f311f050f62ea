"""Which version of a kernel runs: some rows are written past the caches, each while the next one is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ilang_eq.extract.footprint import Extents, size_of
from ilang_eq.extract.machine import Machine
from ilang_eq.lower.fills import in_first_blocks
from ilang_eq.lower.halves import halved
from ilang_eq.lower.in_place import in_place
from ilang_eq.lower.ir import Kernel, Program, Size
from ilang_eq.lower.late import late
from ilang_eq.lower.streamed import STREAMED_FLOATS, long_enough, streamed_outputs, streamed_sums, whole_lines
from ilang_eq.lower.widths import BLOCK


@dataclass(frozen=True, slots=True)
class Version:
    """A kernel as it runs at some extents.

    Args:
        program: what it belongs to.
        past: the buffers that it writes past the caches.
        late: whether it does so beside what computes the next rows.
    """

    program: Program
    kernel: Kernel
    past: frozenset[str] = frozenset()
    late: bool = False


def versions(program: Program, extents: Extents, machine: Machine) -> Iterator[Version]:
    """The kernels of ``program``, as they run at ``extents`` on ``machine``.

    One whose rows are written late keeps what it computes on its way; of others, that is in the place of what becomes
    of it.
    """

    def sizes(dims: tuple[Size, ...]) -> tuple[int, ...]:
        return tuple(size_of(size, extents) for size in dims)

    outputs = {b.name: sizes(b.dims) for b in program.buffers if b.role == "output" and b.dims}
    large = machine.past_caches and any(prod(each) >= STREAMED_FLOATS for each in outputs.values())
    settled = in_place(program)
    for kernel, before in zip(settled.kernels, program.kernels, strict=True):
        found = late(program, before) if large else None
        if found is not None and found.worthwhile(sizes(found.sizes)):
            yield Version(found.program, found.kernel, frozenset({found.target.buffer}), late=True)
        else:
            streamed = streamed_outputs(settled, kernel).items()
            past = {name for name, fewest in streamed if name in outputs and long_enough(outputs[name], fewest)}
            if machine.past_caches:
                past |= _sums_past(settled, kernel, outputs, extents)
            yield Version(settled, kernel, frozenset(past))


def _sums_past(program: Program, kernel: Kernel, outputs: Mapping[str, tuple[int, ...]], extents: Extents) -> set[str]:
    """The outputs of ``kernel`` that go past the caches from registers, as it is printed (``c/kernels.py``)."""
    large = {name for name, sizes in outputs.items() if whole_lines(sizes)}
    if not large:
        return set()
    printed, half = halved(in_first_blocks(kernel), {buffer.name: buffer for buffer in program.buffers})
    sums = streamed_sums(program, printed).items() if half is None else ()
    return {name for name, summed in sums if name in large and all(size_of(e, extents) <= BLOCK for e in summed)}
