"""Where the searches of a batch run: processes on this machine, or a Ray cluster. Both give the same results."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ilang_eq.database.record import Record
from ilang_eq.errors import ILangError
from ilang_eq.request import Request
from ilang_eq.workers.process import Died, Expired, Worker


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a search.

    Args:
        record: the best it found; None if it failed before it had anything.
        stopped: why it was stopped before its end, "budget" or "died"; None if it came to its end.
        error: what went wrong, if anything did.
        seconds: what it took.
    """

    record: Record | None
    stopped: str | None
    error: str | None
    seconds: float


Done: TypeAlias = Callable[[int, Outcome], None]


class Executor(Protocol):
    """Runs searches, several at a time."""

    def run(self, requests: Sequence[Request], done: Done) -> None:
        """Search each request and call ``done`` with its number, from the calling thread, as each ends.

        An exception in ``done``, or Ctrl-C, stops every search and is passed on.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalProcesses:
    """Worker processes on this machine.

    Args:
        workers: how many at a time.
        memory_bytes: what each may use; None for any amount.
    """

    workers: int
    memory_bytes: int | None = None

    def run(self, requests: Sequence[Request], done: Done) -> None:
        """As ``Executor.run``. A worker that was killed, or died, is replaced."""
        jobs: queue.SimpleQueue[int] = queue.SimpleQueue()
        outcomes: queue.SimpleQueue[tuple[int, Outcome]] = queue.SimpleQueue()
        for number in range(len(requests)):
            jobs.put(number)
        crew = _Crew(self.memory_bytes)

        def serve() -> None:
            while not crew.dismissed:
                try:
                    number = jobs.get_nowait()
                except queue.Empty:
                    return
                outcomes.put((number, crew.solve(requests[number])))

        threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(self.workers, len(requests)))]
        for thread in threads:
            thread.start()
        try:
            for _ in requests:
                done(*outcomes.get())
        finally:
            crew.dismiss()
            for thread in threads:
                thread.join()


class _Crew:
    """The workers of a batch: one for each thread that asks, until they are dismissed."""

    def __init__(self, memory_bytes: int | None) -> None:
        self.dismissed = False
        self._memory_bytes = memory_bytes
        self._workers: dict[int, Worker] = {}
        self._lock = threading.Lock()

    def solve(self, request: Request) -> Outcome:
        """Search with the calling thread's worker."""
        started = time.monotonic()
        try:
            worker = self._worker()
        except OSError as error:
            return Outcome(None, "died", f"no process could be started: {error.strerror}", time.monotonic() - started)
        if worker is None:
            return Outcome(None, "died", "dismissed", 0.0)
        outcome = solved(worker, request, started)
        if outcome.stopped is not None or outcome.error is not None:
            self._drop(worker)
        return outcome

    def dismiss(self) -> None:
        """Kill every worker, and hire no more."""
        with self._lock:
            self.dismissed = True
            workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.kill()

    def _worker(self) -> Worker | None:
        with self._lock:
            thread = threading.get_ident()
            if not self.dismissed and thread not in self._workers:
                self._workers[thread] = Worker(self._memory_bytes)
            return self._workers.get(thread)

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._workers.pop(threading.get_ident(), None)
        worker.kill()


def solved(worker: Worker, request: Request, started: float) -> Outcome:
    """Search ``request`` with ``worker``, within its budget counted from ``started``."""
    deadline = None if request.budget_s is None else started + request.budget_s
    record, stopped, error = None, None, None
    try:
        for better in worker.improvements(request, deadline):
            record = better
    except Expired:
        stopped = "budget"
    except Died as death:
        stopped, error = "died", str(death)
    except ILangError as fault:
        error = str(fault)
    if record is None and error is None:
        error = "nothing found within the budget"
    return Outcome(record, stopped, error, time.monotonic() - started)
