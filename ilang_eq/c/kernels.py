"""C functions for kernels: one per kernel, and one per parallel loop that runs a range of its tasks.

A task function stands alone, and is not inlined, because ``restrict`` on parameters is what tells the compiler that
buffers do not overlap: OpenMP's outlining would lose it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ilang_eq.c.binding import bind
from ilang_eq.c.bounds import beyond_lines, bound_text, step_text, trips_text
from ilang_eq.c.hosts import hosted, steps
from ilang_eq.c.late import LateText, worth_text
from ilang_eq.c.layout import Layout, floats_text, kernel_layout
from ilang_eq.c.mirror import mirrored_lines
from ilang_eq.c.nodes import Loop, Node, Parallel, Simd
from ilang_eq.c.statements import Statements
from ilang_eq.c.streaming import fenced
from ilang_eq.c.vectors import Used, indented
from ilang_eq.c.work import work_text
from ilang_eq.lower.addresses import extent_name, extents_in
from ilang_eq.lower.dependence import innermost
from ilang_eq.lower.division import EVEN, FEW, TILED_UPDATES, Apart, divided
from ilang_eq.lower.fills import in_first_blocks
from ilang_eq.lower.halves import Half, halved
from ilang_eq.lower.in_place import in_place
from ilang_eq.lower.ir import Buffer, Comment, For, Kernel, Program, Statement
from ilang_eq.lower.late import Late, late
from ilang_eq.lower.streamed import streamed_outputs, streamed_sums
from ilang_eq.lower.walk import buffers_of, declared_in, updates, walk

ELEMENT_GRAIN = 4096
"""The fewest elements of an element-wise loop that are worth a thread's while."""
WORTH = 4 * TILED_UPDATES
"""The work of tiles that are shared block by block: of a product, which takes four units for each update."""


@dataclass(frozen=True, slots=True)
class KernelText:
    """One kernel in C: its functions, the call that runs it, and the slices of scratch memory that it needs."""

    functions: tuple[str, ...]
    call: str
    shared: tuple[Buffer, ...]
    private: tuple[Buffer, ...]


def kernel_texts(program: Program, used: Used) -> tuple[KernelText, ...]:
    """The kernels of ``program`` in C, and their other versions; ``used`` collects what they need."""
    division, with_rows = divided(in_place(program)), divided(program)
    texts: list[KernelText] = []
    for n, (kernel, apart) in enumerate(zip(division.program.kernels, division.apart, strict=True)):
        alike = _divided_anew(apart)
        text = kernel_text(division.program, kernel, used, alike)
        versions: list[tuple[str, KernelText]] = []
        for version in apart:
            other = kernel_text(division.program, version.kernel, used)
            if version.tiles:
                # neither one thread nor even rows need a division of what comes out the same to the last bit
                other = replace(other, call=f"{_uneven(version.few)} ? {other.call[:-1]} : {text.call}")
            versions.append((_fits(version), other))
        put_off = late_text(with_rows.program, with_rows.program.kernels[n], used, alike)
        versions += [] if put_off is None else [put_off]
        for before, (condition, version) in zip(("if", *["else if"] * len(versions)), versions, strict=False):
            texts.append(replace(version, call=f"{before} ({condition})\n        {version.call}"))
        texts.append(replace(text, call=f"else\n        {text.call}") if versions else text)
    return tuple(texts)


def _divided_anew(versions: Sequence[Apart]) -> frozenset[str]:
    """What innermost loops write whose iterations ``versions`` for several threads divide among them."""
    loops = [s for version in versions if version.tiles for s in walk(version.kernel.body) if isinstance(s, For)]
    return frozenset(u.target.buffer for s in loops if s.parallel and innermost(s) for u in updates(s.body))


def _fits(version: Apart) -> str:
    """Whether the extents are those that ``version`` is for."""
    few = f"{' * '.join(trips_text(loop) for loop in version.few)} < {FEW}"
    tiles = [f"{trips_text(loop)} >= {FEW} && {work_text([loop])} >= {WORTH}.0" for loop in version.tiles]
    long = [f"{extent_name(extent)} >= {length}" for extent, length in version.long]
    return f"{few} && {_either(tiles or long)}"


def _uneven(rows: Sequence[For]) -> str:
    """Whether one of several threads has more of ``rows`` than others."""
    number = " * ".join(map(trips_text, rows))
    busiest = f"ceil_div({number}, threads) * threads * {EVEN * prod(loop.step for loop in rows)}"
    return f"threads > 1 && {busiest} > {' * '.join(extent_name(loop.extent) for loop in rows)} * {EVEN + 1}"


def _either(conditions: Sequence[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return f"({' || '.join(f'({c})' if '&&' in c else c for c in conditions)})"


def kernel_text(program: Program, kernel: Kernel, used: Used, alike: frozenset[str] = frozenset()) -> KernelText:
    """``kernel`` in C; what it writes to buffers that are ``alike`` takes the steps of single floats."""
    kernel, half = halved(in_first_blocks(kernel), {buffer.name: buffer for buffer in program.buffers})
    return _kernel_text(program, kernel, bind(kernel), used, alike, half=half)


def late_text(program: Program, kernel: Kernel, used: Used, alike: frozenset[str]) -> tuple[str, KernelText] | None:
    """``kernel`` in C with the last pass of its rows put off, and when it is worth it; None if it has none."""
    found = late(program, in_first_blocks(replace(kernel, name=f"{kernel.name}_late")))
    if found is None:
        return None
    *comments, tasks = bind(found.others)
    if not isinstance(tasks, Parallel) or tasks.loops != found.rest:
        # what is left of a row is tasks of its own
        return None
    body = hosted(tasks.body) or tasks.body
    bound = (*comments, Parallel(found.loops, body))
    return worth_text(found), _kernel_text(found.program, found.kernel, bound, used, alike, found)


def _kernel_text(
    program: Program,
    kernel: Kernel,
    bound: Sequence[Node],
    used: Used,
    alike: frozenset[str],
    put_off: Late | None = None,
    half: Half | None = None,
) -> KernelText:
    layout = kernel_layout(program, kernel)
    shared, private = layout.slices("shared"), layout.slices("private")
    streamed = streamed_outputs(program, kernel)
    sums = streamed_sums(program, kernel) if half is None else {}
    functions: list[str] = []
    again = _meet_again(bound)

    def dispatch(node: Parallel) -> list[str]:
        name = f"tasks_{kernel.name}" + (f"_{len(functions) + 1}" if functions else "")
        task = _TaskFunction(program, layout, name, node, _variables_around(kernel, node), again, put_off)
        body = fenced(task.body(Statements(layout, used, streamed=streamed, sums=sums, alike=alike)))
        functions.append("static NOINLINE " + task.signature(body).definition(body))
        return task.dispatch(body, private)

    statements = Statements(layout, used, streamed=streamed, sums=sums, dispatch=dispatch, alike=alike)
    whole = work_text(s for s in kernel.body if isinstance(s, For)) if again else ""
    awake = [f"const int awake = team_for({whole}, threads);"] if again else []
    body = fenced(_carved(shared) + awake + statements.lines(bound))
    body += [] if half is None else mirrored_lines(half, "threads" if functions else "1")
    buffers = tuple(buffer for buffer in layout.buffers.values() if layout.storage[buffer.name] == "argument")
    extra = (["float *scratch"] if shared or private else []) + (["int threads"] if functions else [])
    function = _Signature(f"kernel_{kernel.name}", (), program, buffers, kernel.body, tuple(extra))
    title = next((f"// {s.text}\n" for s in kernel.body if isinstance(s, Comment)), "")
    functions.append(f"{title}static {function.definition(body)}")
    return KernelText(tuple(functions), function.call(body, ()) + ";", shared, private)


def _meet_again(nodes: Sequence[Node]) -> bool:
    """Whether threads come together more than once, so that they are awake when they do again."""
    meetings = [node for node in nodes if isinstance(node, Parallel) or _meet(node)]
    return len(meetings) > 1 or any(isinstance(node, Loop) for node in meetings)


def _meet(node: Node) -> bool:
    return isinstance(node, Loop) and any(isinstance(inner, Parallel) or _meet(inner) for inner in node.body)


def _variables_around(kernel: Kernel, node: Parallel) -> frozenset[str]:
    """The variables that may be loops around ``node``: a loop inside it never takes the name of one around it."""
    inside = {s.variable for s in walk([node.loops[0]]) if isinstance(s, For)}
    return frozenset(s.variable for s in walk(kernel.body) if isinstance(s, For)) - inside


@dataclass(frozen=True, slots=True)
class _Signature:
    """The parameters of a function: some of its own, buffers, the extents its body names, and some more."""

    name: str
    before: tuple[str, ...]
    program: Program
    buffers: tuple[Buffer, ...]
    statements: Sequence[Statement]
    after: tuple[str, ...]

    def _extents(self, body: Sequence[str]) -> list[str]:
        words = set(re.findall(r"\w+", "\n".join(body)))
        extents = extents_in(self.program.buffers, self.statements)
        return [name for extent in extents if (name := extent_name(extent)) in words]

    def definition(self, body: Sequence[str]) -> str:
        """The function with its body."""
        constant = {"input": "const float", "output": "float", "workspace": "float", "local": "float"}
        pointers = [f"{constant[b.role]} *restrict {b.name}" for b in self.buffers]
        extents = [f"int64_t {name}" for name in self._extents(body)]
        parameters = ", ".join([*self.before, *pointers, *extents, *self.after]) or "void"
        return "\n".join([f"void {self.name}({parameters})", "{", *indented(body), "}"])

    def call(self, body: Sequence[str], before: Sequence[str], **after: str) -> str:
        """A call that passes every parameter on under its own name, but for those before and ``after``."""
        last = [after.get(name, name) for parameter in self.after for name in [parameter.split("*")[-1].split()[-1]]]
        arguments = [*before, *(b.name for b in self.buffers), *self._extents(body), *last]
        return f"{self.name}({', '.join(arguments)})"


@dataclass(frozen=True, slots=True)
class _TaskFunction:
    """The function that runs tasks ``first`` to ``last`` of a parallel loop, and the loop that hands them out."""

    program: Program
    layout: Layout
    name: str
    node: Parallel
    around: frozenset[str]
    again: bool
    put_off: Late | None = None

    def signature(self, body: Sequence[str]) -> _Signature:
        """The parameters: shares of tasks, the variables of loops around that ``body`` names, and what it captures."""
        outer = self.node.loops[0]
        code = "\n".join(line for line in body if not line.lstrip().startswith("//"))
        variables = sorted(self.around & set(re.findall(r"\w+", code)))
        names = [name for name in self.layout.buffers if name in buffers_of([outer])]
        captured = tuple(self.layout.buffers[n] for n in names if self.layout.storage[n] in ("argument", "shared"))
        after = ("float *scratch",) if self._private else ()
        before = ("int64_t first", "int64_t last", *(f"int64_t {v}" for v in variables))
        return _Signature(self.name, before, self.program, captured, (outer,), after)

    @property
    def _private(self) -> tuple[Buffer, ...]:
        declared = declared_in(self.node.loops[0].body)
        return tuple(buffer for buffer in self.layout.slices("private") if buffer.name in declared)

    def body(self, statements: Statements) -> list[str]:
        """The inside of the task function."""
        lines = _carved(self._private)
        loops = self.node.loops
        if self.put_off is not None:
            text = LateText.of(self.put_off, self.layout, statements.used, self._hosts)
            return [*lines, *self._late(text, statements)]
        match self.node.body:
            case (Simd() as simd,) if simd.source is loops[0]:
                return [*lines, *statements.simd(simd, "first", "last", alone=True)]
            case (Loop(source, body),) if source is loops[0]:
                return [*lines, *_for_tasks(source, statements.rows(source, body))]
            case body:
                beyond = [line for loop in loops[:-1] for line in beyond_lines(loop)]
                return [*lines, *_for_each(loops, [*beyond, *statements.rows(loops[-1], body)])]

    @property
    def _hosts(self) -> bool:
        """Whether a pass is marked for another one to go beside."""
        return any(loop.beside for loop in steps(self.node.body))

    def _late(self, text: LateText, statements: Statements) -> list[str]:
        """The loops over tasks, each with the last pass of the one before."""
        rows = replace(statements, beside=text.beside).rows(text.late.rest[-1], self.node.body, slow=True)
        return [
            *text.declarations(),
            *_for_each(self.node.loops, [*text.begin(), *rows, *text.end()]),
            *text.last(),
        ]

    def dispatch(self, body: Sequence[str], private: Sequence[Buffer]) -> list[str]:
        """The loop over shares of the tasks, given the inside of their function.

        All tasks at once are none of OpenMP's: GCC's library takes 0.3 µs and a system call for a team of one.
        """
        tasks = " * ".join(trips_text(loop) for loop in self.node.loops)
        grain = ELEMENT_GRAIN if innermost(self.node.loops[-1]) else 1
        slices = " + ".join(floats_text(buffer) for buffer in private)
        signature = self.signature(body)
        around = [p.removeprefix("int64_t ") for p in signature.before[2:]]
        of_thread = f"scratch + thread_number() * ({slices})"
        call = signature.call(body, ("at * share", "least((at + 1) * share, tasks)", *around), scratch=of_thread)
        alone = signature.call(body, ("0", "tasks", *around), scratch="scratch")
        work = work_text([self.node.loops[0]])
        team = f"part_of_team({work}, awake)" if self.again else f"team_for({work}, threads)"
        return [
            "{",
            f"    const int64_t tasks = {tasks};",
            f"    const int team = {team};",
            f"    const int64_t share = share_of(tasks, team, {grain});",
            "    if (share < tasks) {",
            "        const int64_t shares = ceil_div(tasks, share);",
            "        struct queue queues[team];",
            "        none_taken(queues, team);",
            "#pragma omp parallel num_threads(team)",
            "        for (int64_t after = 0, at; (at = next_share(queues, shares, &after)) < shares;)",
            f"            {call};",
            "    } else if (tasks > 0) {",
            f"        {alone};",
            "    }",
            "}",
        ]


def _carved(slices: Sequence[Buffer]) -> list[str]:
    """Take ``slices`` off the front of the scratch memory."""
    lines: list[str] = []
    for buffer in slices:
        lines += [f"float *restrict {buffer.name} = scratch;", f"scratch += {floats_text(buffer)};"]
    return lines


def _for_each(loops: Sequence[For], body: list[str]) -> list[str]:
    """The iterations of ``loops`` that are tasks ``first`` to ``last``."""
    return _for_tasks(loops[0], body) if len(loops) == 1 else _for_rows_of_tasks(loops, body)


def _for_tasks(loop: For, body: list[str]) -> list[str]:
    """The iterations of one loop that are tasks ``first`` to ``last``."""
    step, bound = loop.step, bound_text(loop, False)
    begin, end = ("first", "last") if step == 1 else (f"first * {step}", f"least(last * {step}, {bound})")
    v = loop.variable
    return [f"for (int64_t {v} = {begin}; {v} < {end}; {step_text(loop)}) {{", *indented(body), "}"]


def _for_rows_of_tasks(loops: Sequence[For], body: list[str]) -> list[str]:
    """The iterations of nested loops that are tasks ``first`` to ``last``, the last loop moving fastest.

    Tasks that differ in the last loop alone run as a loop, so that there is a division for each row only.
    """
    *outer, last = loops
    v = last.variable
    counts = [f"const int64_t tasks_{loop.variable} = {trips_text(loop)};" for loop in loops[1:]]
    positions: list[str] = []
    left = f"task / tasks_{v}"
    for loop in reversed(outer[1:]):
        positions.append(f"const int64_t {loop.variable} = {left} % tasks_{loop.variable}{_times(loop.step)};")
        left = f"{left} / tasks_{loop.variable}"
    positions.append(f"const int64_t {outer[0].variable} = {left}{_times(outer[0].step)};")
    end = f"{v}_last" if last.step == 1 else f"least({v}_last{_times(last.step)}, {bound_text(last, False)})"
    inside = [
        *reversed(positions),
        f"const int64_t {v}_first = task % tasks_{v};",
        f"const int64_t {v}_last = least(tasks_{v}, {v}_first + last - task);",
        f"for (int64_t {v} = {v}_first{_times(last.step)}; {v} < {end}; {step_text(last)}) {{",
        *indented(body),
        "}",
        f"task += {v}_last - {v}_first;",
    ]
    return [*counts, "for (int64_t task = first; task < last;) {", *indented(inside), "}"]


def _times(step: int) -> str:
    return "" if step == 1 else f" * {step}"
