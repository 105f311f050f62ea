"""``optimize_many``: the components of many models, each optimised once, several at a time, in other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from ilang_eq.batch.executors import Executor, LocalProcesses, Outcome
from ilang_eq.batch.progress import Progress, Report, reporting
from ilang_eq.batch.tasks import Source, Task, collected
from ilang_eq.database.record import Key
from ilang_eq.database.tolerant import Results, results_at
from ilang_eq.errors import ILangError, OptionError
from ilang_eq.host import checked_threads
from ilang_eq.kept import found_in, key_of
from ilang_eq.optimized import Found, Optimized
from ilang_eq.optimizer import improving, keep, models_of, optimized, recall, stopped
from ilang_eq.request import Request, checked_request
from ilang_eq.rewrites.rules import RuleSet

BUDGET_S = 300.0
"""Seconds a search may take unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Job:
    """A search that one or more tasks ask for; ``weight`` is theirs together."""

    key: Key
    request: Request
    tasks: tuple[int, ...]
    weight: float
    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a job: ``best`` is None where it failed, and ``error`` says why.

    ``tasks`` are the numbers of the tasks it answers, and ``seconds`` what the search took.
    """

    name: str
    tasks: tuple[int, ...]
    weight: float
    best: Optimized | None
    error: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Batch:
    """``results`` of the distinct searches, the heaviest first; ``best[n]`` is the result for task n."""

    results: tuple[Result, ...]

    @property
    def best(self) -> tuple[Optimized | None, ...]:
        """For each task, in the order given, its result; equal tasks share one."""
        answers = {task: result.best for result in self.results for task in result.tasks}
        return tuple(answers[task] for task in sorted(answers))

    @property
    def failed(self) -> tuple[Result, ...]:
        """Those without a result."""
        return tuple(result for result in self.results if result.best is None)

    @property
    def cost(self) -> float:
        """Predicted seconds of all tasks, each as often as it runs."""
        return sum(r.weight * r.best.cost for r in self.results if r.best is not None)

    @property
    def baseline_cost(self) -> float:
        """The same without schedules, or with those that were given."""
        return sum(r.weight * r.best.baseline_cost for r in self.results if r.best is not None)


def optimize_many(
    tasks: Iterable[Source],
    *,
    target: str = "c",
    threads: int | None = None,
    effort: str = "model",
    budget_s: float | None = BUDGET_S,
    rules: RuleSet | str = "default",
    seed: int = 0,
    database: str | Path | Literal[False] | None = None,
    workers: int | None = None,
    executor: str | Executor = "local",
    memory_bytes: int | None = None,
    progress: Report | None = None,
    precision: str = "float32",
) -> Batch:
    """Optimise many components, equal ones once, and keep every result as soon as it is found.

    What the database knows is not searched again, so a batch that was stopped, by Ctrl-C or by ``kill -9``, goes on
    where it was: at most the searches under way are lost. Ctrl-C is passed on once the searches have been stopped.

    Args:
        tasks: (component, shapes), (component, shapes, weight), traced models, or files (``tasks.read_tasks``).
        target, threads, effort, rules, seed, database, precision: as for ``optimize``, for all of them.
        budget_s: seconds for each search, its process's start included in the first of each worker; then the best so
            far counts. None for no bound.
        workers: searches at a time. If None, as many as cores; but one if they measure, lest they disturb each other.
        executor: "local" for processes on this machine, "ray" for a Ray cluster, or an ``Executor``.
        memory_bytes: what each search may use; a search that needs more fails. None for no bound.
        progress: called as each search ends; a bar on a terminal if None.

    Raises:
        OptionError, ShapeError, ParseError, RuleError: a task or an option that makes no sense, before any search.
    """
    given = collected(tasks)
    request = partial(
        checked_request,
        target=target,
        threads=threads,
        effort=effort,
        budget_s=budget_s,
        rules=rules,
        seed=seed,
        precision=precision,
    )
    jobs = distinct(given, [_named(task, request) for task in given])
    if workers is None and effort == "measure":
        workers = 1
    runner = _executor(executor, checked_threads(workers), memory_bytes)
    with reporting(progress) as report:
        return _run(jobs, runner, results_at(database), report)


def _run(jobs: Sequence[Job], runner: Executor, results: Results, report: Report) -> Batch:
    """What ``results`` know of ``jobs``, and what ``runner`` finds of the rest."""
    ended: list[Result] = []

    def end(job: Job, best: Optimized | None, error: str | None, seconds: float) -> None:
        ended.append(Result(job.name, job.tasks, job.weight, best, error, seconds))
        origin = "failed" if best is None else best.report.origin
        report(Progress(len(ended), len(jobs), job.name, origin, seconds, job.tasks, best))

    unknown: list[Job] = []
    for job in jobs:
        known = recall(job.request, job.key, results)
        if known is None:
            unknown.append(job)
        else:
            end(job, known, None, known.report.seconds["total"])

    def done(number: int, outcome: Outcome) -> None:
        job = unknown[number]
        found, error = _settled(job, outcome)
        if found is not None:
            keep(job.request, job.key, results, found)
        end(job, None if found is None else optimized(job.request, found), error, outcome.seconds)

    runner.run([job.request for job in unknown], done)
    return Batch(tuple(sorted(ended, key=lambda result: (-result.weight, result.tasks))))


def distinct(tasks: Sequence[Task], requests: Sequence[Request]) -> list[Job]:
    """One job for all tasks that ask for the same, the heaviest first."""
    groups: dict[tuple[Key, str], list[int]] = {}
    for number, request in enumerate(requests):
        key = key_of(request, models_of(request).machine)
        groups.setdefault((key, str(request.given)), []).append(number)
    jobs = []
    for (key, _), numbers in groups.items():
        weight = sum(tasks[n].weight for n in numbers)
        jobs.append(Job(key, requests[numbers[0]], tuple(numbers), weight, tasks[numbers[0]].name))
    return sorted(jobs, key=lambda job: -job.weight)


def _named(task: Task, request: Callable[..., Request]) -> Request:
    """The task's request. Raises ILangError that names the task."""
    try:
        return request(task.component, task.shapes, constants=task.constants)
    except ILangError as error:
        raise type(error)(f"{task.name or task.component}: {error}") from None


def _settled(job: Job, outcome: Outcome) -> tuple[Found | None, str | None]:
    """What a search found, and what is to be said of it. One that was stopped too early leaves what was written."""
    if outcome.record is not None and outcome.record.key != job.key:
        theirs, ours = asdict(outcome.record.key), asdict(job.key)
        differing = ", ".join(
            f"{name} {theirs[name]} and not {ours[name]}" for name in ours if theirs[name] != ours[name]
        )
        return None, f"it was searched with {differing}"
    if outcome.record is None and outcome.stopped is None:
        return None, outcome.error
    found = next(improving(job.request)) if outcome.record is None else found_in(outcome.record)
    return found if outcome.stopped is None else stopped(found, outcome.stopped), outcome.error


def _executor(executor: str | Executor, workers: int, memory_bytes: int | None) -> Executor:
    match executor:
        case "local":
            return LocalProcesses(workers, memory_bytes)
        case "ray":
            from ilang_eq.batch.cluster import RayCluster

            return RayCluster(workers, memory_bytes)
        case str():
            raise OptionError(f"no executor {executor!r}", legal=("local", "ray"))
        case _:
            return executor
