"""Runs of neighbours in memory that one thread moves at once, 16 or 8 bytes each.

    before   for lane < 4: out[j + lane] = x[j + lane] * 2
    after    read_4(x_run, x + j);  for lane < 4: out_run[lane] = x_run[lane] * 2;  write_4(out + j, out_run)

That a run is aligned follows from the variables in its index, which step by multiples of its width, and from
``conditions``, which are tested once: the buffer begins at a multiple of 16 bytes, and its rows are whole runs long.
What lies in shared memory is left to the compiler, which knows how it is aligned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ilang_eq.cuda.context import Lane
from ilang_eq.cuda.nodes import Node
from ilang_eq.cuda.storage import Home
from ilang_eq.lower.addresses import size_text
from ilang_eq.lower.ir import Accumulate, Assign, Comment, Declare, Load
from ilang_eq.lower.walk import loads, replace_variable, stride

_BYTES = 4

FUNCTIONS: dict[str, str] = {
    "aligned": """\
// Whether runs of 16 bytes begin here.
__device__ __forceinline__ bool aligned(const float *place) { return (unsigned long long)place % 16 == 0; }""",
    "arrive": """\
// What this thread has begun to copy has arrived; a barrier later, what all others have.
__device__ __forceinline__ void arrive() { asm volatile("cp.async.wait_all;" ::: "memory"); }""",
    "arrive_but": """\
// What this thread has begun to copy has arrived, but for what it has since the last N times of commit.
template <int N> __device__ __forceinline__ void arrive_but()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}""",
    "begin_1": """\
// Begins to copy a float to shared memory, or to put a zero there; the source is not read then.
__device__ __forceinline__ void begin_1(float *to, const float *from, bool exists)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    const int bytes = exists ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
}""",
    "begin_2": """\
// Begins to copy 8 bytes to shared memory; both places are aligned.
__device__ __forceinline__ void begin_2(float *to, const float *from)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(from) : "memory");
}""",
    "begin_4": """\
// Begins to copy 16 bytes to shared memory, past the first-level cache; both places are aligned.
__device__ __forceinline__ void begin_4(float *to, const float *from)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}""",
    "commit": """\
// What this thread has begun to copy since the last time can be waited for on its own.
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }""",
    "read_2": """\
__device__ __forceinline__ void read_2(float (&to)[2], const float *place)
{
    const float2 found = *reinterpret_cast<const float2 *>(place);
    to[0] = found.x, to[1] = found.y;
}""",
    "read_4": """\
__device__ __forceinline__ void read_4(float (&to)[4], const float *place)
{
    const float4 found = *reinterpret_cast<const float4 *>(place);
    to[0] = found.x, to[1] = found.y, to[2] = found.z, to[3] = found.w;
}""",
    "write_2": """\
__device__ __forceinline__ void write_2(float *place, const float (&from)[2])
{
    *reinterpret_cast<float2 *>(place) = make_float2(from[0], from[1]);
}""",
    "write_4": """\
__device__ __forceinline__ void write_4(float *place, const float (&from)[4])
{
    *reinterpret_cast<float4 *>(place) = make_float4(from[0], from[1], from[2], from[3]);
}""",
}
"""CUDA C of what moves runs, each emitted only where it is used."""


@dataclass(frozen=True, slots=True)
class Runs:
    """What a group of statements reads and writes in runs along ``lane``: the places, and the arrays they go by."""

    lane: Lane
    read: Mapping[Load, str]
    written: Mapping[Load, str]

    @property
    def names(self) -> dict[Load, str]:
        """How each place is spelled in the loop over the lane."""
        return {place: f"{name}[{self.lane.variable}_lane]" for place, name in {**self.read, **self.written}.items()}


def first_of(place: Load, lane: Lane) -> Load:
    """The first element of the run along ``lane`` that ``place`` is in."""
    moved = replace_variable(place, lane.variable, (lane.run_name,))
    assert isinstance(moved, Load), "a place stays one"
    return moved


def runs(
    nodes: Sequence[Node], lanes: Sequence[Lane], steps: Mapping[str, int], homes: Mapping[str, Home]
) -> Runs | None:
    """The runs of a group without loops, along the first of the ``lanes`` that has any."""
    if not all(isinstance(node, Assign | Accumulate | Declare | Comment) for node in nodes):
        return None
    read: dict[Load, None] = {}
    written: dict[Load, None] = {}
    for node in nodes:
        if isinstance(node, Assign | Accumulate):
            read |= dict.fromkeys(loads(node.value))
            read |= {node.target: None} if isinstance(node, Accumulate) else {}
            written[node.target] = None
    for lane in lanes:
        found = [
            place
            for place in {**read, **written}
            if homes[place.buffer].where in ("memory", "scratch")
            and _aligned(place, lane, steps, homes[place.buffer])
            and _alone(place, {**read, **written}, written)
        ]
        if found:
            names = {place: _name(place, found) for place in found}
            return Runs(
                lane, {p: n for p, n in names.items() if p in read}, {p: n for p, n in names.items() if p in written}
            )
    return None


def _name(place: Load, found: Sequence[Load]) -> str:
    same = [other for other in found if other.buffer == place.buffer]
    return f"{place.buffer}_run{same.index(place) + 1 if len(same) > 1 else ''}"


def _aligned(place: Load, lane: Lane, steps: Mapping[str, int], home: Home) -> bool:
    """Whether ``place`` moves to neighbours along ``lane``, and a run of them begins at a multiple of its width."""
    if lane.width == 1 or stride(place, lane.variable) != "unit" or home.slots:
        return False
    others = [v for v in place.indices[-1].variables if v != lane.variable]
    last = home.buffer.dims[-1]
    even = len(place.indices) == 1 or not isinstance(last, int) or last % lane.width == 0
    return even and all(steps.get(v, 1) % lane.width == 0 for v in others)


def _alone(place: Load, touched: Mapping[Load, None], written: Mapping[Load, None]) -> bool:
    """Whether nothing else in the buffer of ``place`` is touched, if any of it is written."""
    others = [other for other in touched if other.buffer == place.buffer and other != place]
    return not others or all(other.buffer != place.buffer for other in written)


def may_move(place: Load, lane: Lane, steps: Mapping[str, int], homes: Mapping[str, Home]) -> bool:
    """Whether runs of ``place`` may move at once along ``lane``, in memory under ``conditions``, else in any case."""
    home = homes[place.buffer]
    if home.where != "shared":
        return _aligned(place, lane, steps, home)
    others = [v for v in place.indices[-1].variables if v != lane.variable]
    return home.aligned % lane.width == 0 and stride(place, lane.variable) == "unit" and not others


def conditions(buffer: Home, width: int) -> tuple[str, ...]:
    """What has to hold of a buffer in memory, so that its rows are whole runs."""
    *outer, last = buffer.buffer.dims
    rows = (f"{size_text(last)} % {width} == 0",) if outer and not isinstance(last, int) else ()
    return (f"aligned({buffer.buffer.name})", *rows)
