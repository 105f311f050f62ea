"""What ``optimize`` returns: the chosen schedule, the runners-up, and how it was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilang_eq.backends import Kernel, compile_component
from ilang_eq.errors import OptionError
from ilang_eq.lang.component import Component
from ilang_eq.lower.ir import Precision
from ilang_eq.lower.plan import Plan

if TYPE_CHECKING:
    from ilang_eq.bench import Bench
    from ilang_eq.c.prepared import Prepared
    from ilang_eq.cuda.graphs import Captured
    from ilang_eq.cuda.prepared import CudaPrepared
    from ilang_eq.extract.full_model import Cost


@dataclass(frozen=True, slots=True)
class Schedule:
    """A scheduled component and its cost.

    Args:
        component: the component.
        cost: the model's.
        measured: seconds, only where it was timed.
        stored: bytes of its intermediate results, copies left out, where a search looked at them.
    """

    component: Component
    cost: Cost
    measured: float | None = None
    stored: float = 0.0

    def __str__(self) -> str:
        return str(self.component)

    @property
    def seconds(self) -> float:
        """The measured time if there is one, else the model's."""
        return self.cost.seconds if self.measured is None else self.measured

    def plan(self, shapes: Sequence[tuple[int, ...]] | None = None) -> Plan:
        """Its kernels, buffers and corrections."""
        return self.component.plan(shapes)

    def compile(self, target: str = "c", threads: int | None = None, precision: str = "float32") -> Kernel:
        """Its kernel."""
        return compile_component(self.component, target, threads, precision)


@dataclass(frozen=True, slots=True)
class Report:
    """How a search went.

    Attributes:
        seconds: by phase.
        nodes: e-nodes at the end.
        facts: rows of every relation at the end.
        rules: per rule, (matches, seconds).
        stop_reason: "saturated"; or the limit that was reached: "nodes", "time", "iterations"; or "budget",
            "interrupted" or "died" where its process was stopped, and this is the best it had found.
        refused: proposals the lowering refused, with its reason.
        origin: "search", or the database that the result was in, and when it was found.
    """

    seconds: Mapping[str, float]
    nodes: int
    facts: int
    rules: Mapping[str, tuple[int, float]]
    stop_reason: str
    refused: tuple[tuple[str, str], ...] = ()
    origin: str = "search"


@dataclass(frozen=True, slots=True)
class Found:
    """Where a search stands: every schedule judged so far, the best first."""

    schedules: tuple[Schedule, ...]
    report: Report


@dataclass(frozen=True)
class Optimized:
    """The best schedule found, callable.

    ``best`` is that schedule, ``baseline`` the component as it was given. ``find_others`` yields the runners-up: texts
    out of a database are read when somebody asks. Costs are those of a call after inputs number ``constants`` have
    been prepared, and of factors rounded as ``precision`` grants.
    """

    best: Schedule
    baseline: Schedule = field(repr=False)
    report: Report = field(repr=False)
    target: str
    threads: int
    extents: Mapping[tuple[int, int], int] = field(repr=False)
    find_others: Callable[[], Sequence[Schedule]] = field(repr=False)
    constants: tuple[int, ...] = ()
    precision: Precision = "float32"

    @cached_property
    def schedules(self) -> tuple[Schedule, ...]:
        """All that were judged, cheapest first; of the first few that cost alike, that with the fewest kernels."""
        return (self.best, *self.find_others())

    @property
    def component(self) -> Component:
        """The chosen component: its text alone reproduces the kernel."""
        return self.best.component

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the inputs, as it was optimised for."""
        found: list[list[int]] = [[] for _ in range(self.component.inputs)]
        for (k, _), n in sorted(self.extents.items()):
            found[k].append(n)
        return tuple(map(tuple, found))

    @property
    def cost(self) -> float:
        """Predicted seconds a call."""
        return self.best.cost.seconds

    @property
    def baseline_cost(self) -> float:
        """Predicted seconds a call of the component as it was given."""
        return self.baseline.cost.seconds

    @cached_property
    def kernel(self) -> Kernel:
        """The compiled kernel."""
        return compile_component(self.component, self.target, self.threads, self.precision, self.baseline.component)

    @property
    def source(self) -> str:
        """The generated code."""
        return self.kernel.source

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run the kernel. Shapes need not be those it was optimised for."""
        return self.kernel(*arrays, out=out)

    def capture(self, *arrays: Any, out: Any = None) -> Captured:
        """A call as a CUDA graph: see ``CudaKernel.capture``. Raises OptionError for another target."""
        from ilang_eq.cuda.kernel import CudaKernel

        if not isinstance(self.kernel, CudaKernel):
            raise OptionError(f"a kernel for {self.target} has no CUDA graph", expected='target="cuda"')
        return self.kernel.capture(*arrays, out=out)

    def prepare(self, **constants: Any) -> Prepared | CudaPrepared:
        """The kernel for inputs that stay the same, such as ``in1=weights``: see ``CKernel.prepare``."""
        return self.kernel.prepare(**constants)

    def export(self, directory: str | Path, *, name: str = "kernel", overwrite: bool = False) -> Path:
        """Write the kernel as a C library that needs neither Python nor a compiler at run time.

        Args:
            directory: where to; it is made if it does not exist.
            name: what the files and functions are called: ``name.c``, ``name.h``, ``name.json``; and a ``main.c``.
            overwrite: whether files that exist are replaced.

        Returns:
            The directory.

        Raises:
            OptionError: it was optimised for another target than C; or what ``ilang_eq.export.export`` raises.
        """
        from ilang_eq.export import export
        from ilang_eq.lower.addresses import extent_name
        from ilang_eq.lower.ir import Extent

        if self.target != "c":
            raise OptionError(f"a schedule for {self.target} cannot be exported", expected='target="c"')
        sizes = {extent_name(Extent(*place)): n for place, n in sorted(self.extents.items())}
        provenance = {
            "optimised_for": {"extents": sizes, "threads": self.threads},
            "predicted_seconds": self.cost,
            "measured_seconds": self.best.measured,
            "origin": self.report.origin,
        }
        return export(
            self.component,
            directory,
            name=name,
            overwrite=overwrite,
            sizes=sizes,
            provenance=provenance,
            meaning=self.baseline.component,
        )

    def bench(self, *arrays: Any, repeats: int = 20, warm_up: int = 3) -> Bench:
        """Time the kernel, and set it against the machine's limit (``ilang_eq/bench.py``).

        Args:
            arrays: as for a call; random ones of the shapes it was optimised for if there are none.
            repeats: samples.
            warm_up: calls before the first.

        Raises:
            ArrayError, BuildError: as a call does.
            OptionError: no samples, or no warm-up.
        """
        from ilang_eq.bench import bench

        return bench(self, arrays, repeats, warm_up)

    def __str__(self) -> str:
        return str(self.component)

    def plan(self, shapes: Sequence[tuple[int, ...]] | None = None) -> Plan:
        """Kernels, buffers and online corrections of the chosen schedule."""
        return self.component.plan(shapes)

    def candidates(self, k: int) -> list[Schedule]:
        """The ``k`` best distinct schedules, in the order of ``schedules`` (fewer, if fewer were found)."""
        return list(self.schedules[:k])

    def explain(self) -> str:
        """Why this schedule: the rules that fired, the terms of its cost, the runners-up, why the search stopped."""
        report = self.report
        fired = sorted(((n, name) for name, (n, _) in report.rules.items() if n), reverse=True)
        lines = [str(self), "", f"predicted {_time(self.cost)}; as given {_time(self.baseline_cost)}"]
        lines += [f"  {name}: {_time(seconds)}" for name, seconds in self.best.cost.terms if seconds > 0]
        if self.constants:
            names = ", ".join(f"in{k}" for k in self.constants)
            lines += [f"  (calls after `prepare`: what depends on {names} alone has been computed)"]
        if self.precision != "float32":
            lines += [f"  (factors of summed products as {self.precision})"]
        lines += ["", str(self.plan()), "", f"search: {report.nodes} e-nodes, {report.facts} facts"]
        lines += [f"stopped: {report.stop_reason}", f"from: {report.origin}", "rules that fired:"]
        lines += [f"  {name}: {n} matches" for n, name in fired]
        lines += ["runners-up:"]
        lines += [f"  {_time(s.seconds)}  {s}" for s in self.schedules[1:4]]
        lines += [f"  refused: {text}: {why}" for text, why in report.refused]
        return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.2f} µs"
