"""Outputs that are stored past the caches, as they are larger: of kernels that do nothing but write them, and sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ilang_eq.lower.dependence import innermost
from ilang_eq.lower.ir import Accumulate, Assign, Constant, Extent, For, Kernel, Load, Program, Size
from ilang_eq.lower.lanes import single_place
from ilang_eq.lower.walk import loads, mentions, stride, updates, walk
from ilang_eq.lower.widths import LINE
from ilang_eq.lower.within import Enclosed, enclosed

STREAMED_FLOATS = 8 * 1024 * 1024
"""The smallest output that is streamed: 32 MiB, about what a socket has of last-level cache. Of 16 MiB, norms of rows
gain as much on one thread of Zen 4, but take 1.3 to 1.4 of the time on two, and exponentials 1.09 on either."""
MOVED_FLOATS = 12 * 1024 * 1024
"""The fewest floats of all arrays, as long as the output, that a loop goes through at once for that to be streamed: the
last-level cache keeps nothing of 48 MiB until it comes round again. On Zen 3, at one and two threads, that gains as
much as with twice of it: x + y takes 0.71 and 0.70 of the time, (x + y)·z 0.75 and 0.71, 2·x 0.68 and 0.72, and
exponentials 0.88 and 0.83."""
SUMMED_FLOATS = 4 * 1024 * 1024
"""The smallest output whose sums are streamed from registers: 16 MiB, half of what a socket has of last-level cache. Of
64 terms each, they take 0.94 of the time on one thread of Zen 4, and 0.83 on two; of 1024 terms as long as before. Of
4 MiB they take 0.84 on two, but whatever reads them next would not find them there."""
FEWEST = 256
"""The shortest loop that streams."""
LEAST_PART = 512
"""The shortest part of a row that streams: what is not whole lines goes by itself, at both ends of each part. GELU in
tiles of 6 × 256 takes 1.45 of the time of 6 × 128 on Zen 3 if it does."""


def streamed_outputs(program: Program, kernel: Kernel) -> Mapping[str, int]:
    """The outputs that ``kernel`` may stream, each with the fewest floats that it does so with.

    It is one loop that writes them from memory, and nothing reads them.

    Where a kernel does more, its stores come in bursts after other work; those are faster through the caches, which
    write them back meanwhile, unless they can go beside other work (``lower/late.py``).
    """
    innermost_loops = [s for s in walk(kernel.body) if isinstance(s, For) and innermost(s)]
    if len(innermost_loops) != 1 or len(list(updates(kernel.body))) != len(list(updates(innermost_loops))):
        return {}
    if (innermost_loops[0].limit or LEAST_PART) < LEAST_PART:
        return {}
    read = {load.buffer for k in program.kernels for update in updates(k.body) for load in loads(update.value)}
    dims = {buffer.name: buffer.dims for buffer in program.buffers}
    outputs = [buffer.name for buffer in program.buffers if buffer.role == "output" and buffer.name not in read]
    return {output: _fewest(innermost_loops[0], output, dims) for output in outputs}


def _fewest(loop: For, output: str, dims: Mapping[str, tuple[Size, ...]]) -> int:
    """The floats from which on ``output`` is streamed, which ``loop`` writes."""
    sizes = Counter(dims[output])
    read = {load.buffer for update in updates(loop.body) for load in loads(update.value) if load.buffer in dims}
    arrays = 1 + sum(Counter(dims[name]) == sizes for name in read)
    return min(STREAMED_FLOATS, MOVED_FLOATS // arrays)


def streamed_sums(program: Program, kernel: Kernel) -> Mapping[str, tuple[Extent, ...]]:
    """The outputs of sums in whole lines, each complete when it leaves its registers if these extents are a ``BLOCK``.

    Nothing reads them, and all that is written before a sum is the number it starts with, each time.
    """
    read = {load.buffer for k in program.kernels for update in updates(k.body) for load in loads(update.value)}
    names = [buffer.name for buffer in program.buffers if buffer.role == "output" and buffer.name not in read]
    found: dict[str, tuple[Extent, ...]] = {}
    for name in names:
        match [e for e in enclosed(kernel.body) if e.statement.target.buffer == name]:
            case [Enclosed(Assign(_, Constant()), start), Enclosed(Accumulate(target, _, _), around)]:
                summed = [loop for loop in around if not mentions(target, loop.variable)]
                lane, again = around[-1], any(loop.seldom for loop in start)
                if not again and (lane.limit or 1) % LINE == 0 and stride(target, lane.variable) == "unit":
                    found[name] = tuple(loop.extent for loop in summed if loop.limit is None)
            case _:
                pass
    return found


def whole_lines(sizes: Sequence[int]) -> bool:
    """Whether sums of such an output are stored past the caches: its rows are whole lines."""
    return prod(sizes) >= SUMMED_FLOATS and sizes[-1] % LINE == 0


def streamed_place(loop: For, outputs: Mapping[str, int]) -> Load | None:
    """The one of ``outputs`` that is an innermost loop's only result, written float by float; None if there is none."""
    target = single_place(loop)
    return target if target is not None and target.buffer in outputs else None


def long_enough(sizes: tuple[int, ...], fewest: int) -> bool:
    """Whether an output of ``sizes``, whose rows are gone through in order, is stored past the caches."""
    return prod(sizes) >= fewest and sizes[-1] >= FEWEST
