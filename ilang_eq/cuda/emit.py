"""Loop IR to CUDA C for NVRTC, without headers. The output depends on the program alone, byte for byte.

Each launch is one ``extern "C"`` kernel of pointers to float32 arrays, then extents as ``long long``; ``Entry`` lists
both, and how to count blocks. Blocks take tasks in turn, so any number of them from one will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ilang_eq.cuda.across import across, across_name
from ilang_eq.cuda.ahead import with_copies_ahead
from ilang_eq.cuda.barriers import with_barriers
from ilang_eq.cuda.binding import bind
from ilang_eq.cuda.context import At, indented
from ilang_eq.cuda.deferring import with_deferred_combines
from ilang_eq.cuda.math import functions
from ilang_eq.cuda.nodes import Block, Launch, Node, Part, part_of
from ilang_eq.cuda.phases import in_phases
from ilang_eq.cuda.quotients import INVERSE_HOME
from ilang_eq.cuda.regions import Region, outliving, regions
from ilang_eq.cuda.runs import FUNCTIONS
from ilang_eq.cuda.statements import Statements
from ilang_eq.cuda.storage import (
    Home,
    asked_bytes,
    blocks_of,
    exchange_bytes,
    homes,
    shares_are_own,
    taken_by_cores,
)
from ilang_eq.cuda.tensor_cores import CORE_FUNCTIONS, LANE, PARTS
from ilang_eq.cuda.text import Places, text_of
from ilang_eq.cuda.used import Used
from ilang_eq.cuda.walks import loops_of
from ilang_eq.cuda.warpgroups import GROUP_FUNCTIONS
from ilang_eq.lower.addresses import extent_name, extents_in, size_text
from ilang_eq.lower.interface import written_outputs
from ilang_eq.lower.ir import Buffer, Extent, For, Program, Size
from ilang_eq.lower.quotients import INVERSE

PREAMBLE = """\
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
__device__ __forceinline__ long long least(long long x, long long y) { return x < y ? x : y; }
__device__ __forceinline__ long long ceil_div(long long x, long long y) { return (x + y - 1) / y; }
"""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Device memory that each block of a launch needs: ``dims`` floats a block."""

    name: str
    dims: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """How one kernel is launched.

    Args:
        name: its symbol.
        grid: the loops whose iterations are tasks; as many blocks as tasks, or fewer.
        block: the threads of a block.
        pointers: buffers of the program, in the order of the parameters.
        scratch: after them, memory of the blocks' own.
        extents: the last parameters.
        shared: bytes of shared memory that a launch asks for, beside what the kernel declares.
    """

    name: str
    grid: tuple[For, ...]
    block: Block
    pointers: tuple[str, ...]
    scratch: tuple[Scratch, ...]
    extents: tuple[Extent, ...]
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Module:
    """The source of a program, how to launch its kernels in order, and the buffers they need beside its arrays."""

    source: str
    entries: tuple[Entry, ...]
    workspaces: tuple[Buffer, ...]


def bound(program: Program) -> tuple[tuple[Launch, dict[str, Home]], ...]:
    """Every launch of ``program``, with the homes of its buffers."""
    return _bound(in_phases(program))


def _bound(program: Program) -> tuple[tuple[Launch, dict[str, Home]], ...]:
    kept = outliving(program)
    found: list[tuple[Launch, dict[str, Home]]] = []
    for kernel in program.kernels:
        for region in regions(kernel):
            launch, where = _with_homes(region, program, kept)
            launch, where = with_copies_ahead(launch, where)
            found.append((with_barriers(launch, where), where))
    return tuple(found)


def _with_homes(region: Region, program: Program, kept: frozenset[str]) -> tuple[Launch, dict[str, Home]]:
    """The region bound, with tensor cores if that is granted and all they touch lies where they reach it."""
    if PARTS[program.precision]:
        launch, where = _deferred(bind(region, program, PARTS[program.precision]), program, kept)
        if taken_by_cores(launch, where):
            return launch, where
    return _deferred(bind(region, program), program, kept)


def _deferred(launch: Launch, program: Program, kept: frozenset[str]) -> tuple[Launch, dict[str, Home]]:
    """``launch`` with what threads combine deferred, if what each has of its own then lies in its registers."""
    later = with_deferred_combines(launch, program)
    where = homes(later, program, kept)
    if shares_are_own(later, where):
        return later, where
    where = homes(launch, program, kept)
    assert shares_are_own(launch, where), "the shares of a reduction are each thread's own"
    return launch, where


def emit(program: Program) -> Module:
    """The CUDA C of ``program``."""
    program = in_phases(program)
    launches = _bound(program)
    kernels: list[str] = []
    entries: list[Entry] = []
    needed: set[str] = set()
    moves: set[str] = set()
    cores: set[str] = set()
    combining: dict[str, str] = {}
    for launch, where in launches:
        used = Used()
        text, entry = _kernel(program, launch, where, used)
        kernels.append(text)
        entries.append(entry)
        needed |= used.functions
        moves |= used.moves
        cores |= used.cores
        combining |= {across_name(op, dim, launch.block): across(op, dim, launch.block) for op, dim in used.across}
    kept = outliving(program)
    workspaces = tuple(b for b in program.buffers if b.role == "workspace" or b.name in kept)
    helpers = [
        *functions(needed),
        *(FUNCTIONS[name] for name in sorted(moves)),
        *(text for name, text in {**CORE_FUNCTIONS, **GROUP_FUNCTIONS}.items() if name in cores),
        *(text for _, text in sorted(combining.items())),
    ]
    source = "\n\n".join([_title(program) + "\n" + PREAMBLE.rstrip(), *helpers, *kernels])
    return Module(source + "\n", tuple(entries), workspaces)


def _title(program: Program) -> str:
    shapes = {buffer.name: "".join(f"[{size_text(size)}]" for size in buffer.dims) for buffer in program.buffers}
    inputs = ", ".join(name + shapes[name] for name in program.inputs)
    outputs = ", ".join(program.outputs[p] + shapes[program.outputs[p]] for p in written_outputs(program))
    return f"// Generated by ilang_eq: {inputs} -> {outputs or 'nothing'}"


def _kernel(program: Program, launch: Launch, where: dict[str, Home], used: Used) -> tuple[str, Entry]:
    places = Places({**where, INVERSE.buffer: INVERSE_HOME}, launch.block)
    body = _body(launch, places, used)
    memory = [home for home in where.values() if home.where == "memory"]
    scratch = [home for home in where.values() if home.where == "scratch"]
    text = "\n".join([*body, *(places.floats(home) for home in scratch)])
    extents = tuple(
        extent
        for extent in extents_in([home.buffer for home in (*memory, *scratch)], [*launch.grid, *loops_of(launch.body)])
        if extent_name(extent) in text
    )
    parameters = [
        f"{'const ' if home.buffer.role == 'input' else ''}float *__restrict__ {home.buffer.name}" for home in memory
    ]
    parameters += [f"float *__restrict__ {home.buffer.name}_pieces" for home in scratch]
    parameters += [f"long long {extent_name(extent)}" for extent in extents]
    block = launch.block
    x, y = text_of("threadIdx.x", block) if block.y > 1 else ("threadIdx.x", "")
    opening = [f"const int tx = {x};", *([f"const int ty = {y};"] if block.y > 1 else [])]
    opening += [LANE] if used.cores else []
    opening += _shared(launch, places)
    for home in scratch:
        pieces = f"{home.buffer.name}_pieces + (long long)blockIdx.x * ({places.floats(home)})"
        opening.append(f"float *const {home.buffer.name} = {pieces};")
    name = f"ilang_{launch.name}"
    head = f'extern "C" __global__ void __launch_bounds__({block.threads}, {blocks_of(launch, where)}) {name}('
    signature = [head, *("    " + p + "," for p in parameters[:-1]), f"    {parameters[-1]})"]
    own = tuple(
        Scratch(home.buffer.name, (*(block.along(dim) for dim in home.slots), *home.buffer.dims)) for home in scratch
    )
    pointers = tuple(home.buffer.name for home in memory)
    entry = Entry(name, launch.grid, block, pointers, own, extents, asked_bytes(launch, where))
    return "\n".join([*signature, "{", *indented([*opening, *body]), "}"]), entry


def _shared(launch: Launch, places: Places) -> list[str]:
    """Declarations of what lies in shared memory: arrays of their own, or parts of what the launch asks for."""
    found = [home for home in places.homes.values() if home.where == "shared"]
    # the strictest first: what they take is a multiple of what they begin at
    found.sort(key=lambda home: -home.alignment if home.swizzled else 0)
    lines = [f"__shared__ float exchange[{launch.block.threads}];"] if exchange_bytes(launch) else []
    if not asked_bytes(launch, places.homes):
        return [*(places.declaration(home) for home in found), *lines]
    alignment = max([16, *(home.alignment for home in found)])
    lines.append(f"extern __shared__ __align__({alignment}) float shared_memory[];")
    first = 0
    for home in found:
        lines.append(places.declaration(home, first // 4))
        first += home.bytes(launch.block)
    return lines


def _body(launch: Launch, places: Places, used: Used) -> list[str]:
    """The tasks of a block, in a version for full tiles and aligned rows, and in one for any."""
    around = {loop.variable for loop in launch.grid}
    full = sorted(
        {p for p in _parts(launch.body) if p.limit is not None and p.outer and set(p.outer) <= around},
        key=lambda part: (part.extent.input, part.extent.dim, part.outer, part.limit or 0),
    )
    at = At(steps={loop.variable: loop.step for loop in launch.grid})
    fast = Statements(places, used)
    lines = fast.lines(launch.body, replace(at, full=frozenset(full), together=True))
    tests = [f"{' - '.join((extent_name(p.extent), *p.outer))} >= {p.limit}" for p in full]
    assumed = []
    if fast.aligned:
        used.moves.add("aligned")
        assumed = [f"const bool aligned_rows = {' && '.join(fast.aligned)};"]
        tests.append("aligned_rows")
    if tests:
        # rows that are not aligned may still be long: whole tiles inside deserve a version
        rest = Statements(places, used).lines(launch.body, replace(at, tail=not fast.aligned))
        lines = [f"if ({' && '.join(tests)}) {{", *indented(lines), "} else {", *indented(rest), "}"]
    return [*assumed, *(_for_tasks(launch.grid, lines) if launch.grid else lines)]


def _for_tasks(grid: Sequence[For], body: list[str]) -> list[str]:
    """The tasks of a block: every ``gridDim.x``-th of all, the last loop moving fastest."""
    counts = [f"const long long tasks_{loop.variable} = {_tasks(loop)};" for loop in grid]
    positions: list[str] = []
    left = "task"
    for loop in reversed(grid[1:]):
        positions.append(f"const long long {loop.variable} = {left} % tasks_{loop.variable}{_times(loop.step)};")
        left = f"{left} / tasks_{loop.variable}"
    positions.append(f"const long long {grid[0].variable} = {left}{_times(grid[0].step)};")
    total = " * ".join(f"tasks_{loop.variable}" for loop in grid)
    head = f"for (long long task = blockIdx.x; task < {total}; task += gridDim.x) {{"
    return [*counts, head, *indented([*reversed(positions), *body]), "}"]


def _tasks(loop: For) -> str:
    extent = extent_name(loop.extent)
    length = extent if loop.limit is None else f"least({loop.limit}, {extent})"
    return length if loop.step == 1 else f"ceil_div({length}, {loop.step})"


def _times(step: int) -> str:
    return "" if step == 1 else f" * {step}"


def _parts(nodes: Sequence[Node]) -> list[Part]:
    return [part for loop in loops_of(nodes) if (part := part_of(loop)) is not None]
