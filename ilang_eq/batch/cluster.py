"""Batches on a Ray cluster: each search is a Ray task, which runs a worker process so that it can be stopped.

Tasks and results travel as JSON. Nodes need this package installed, in the same version, and the same kind of
processor, because a result is for the machine that judged it; ``optimize_many`` refuses those of another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from ilang_eq.batch.executors import Done, Outcome, solved
from ilang_eq.database.record import read_record
from ilang_eq.errors import OptionError
from ilang_eq.request import Request
from ilang_eq.workers.messages import read_request, request_as_json
from ilang_eq.workers.process import Worker

_ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class RayCluster:
    """The cluster that Ray is connected to, or a local one of ``workers`` CPUs if it is not connected.

    Args:
        workers: searches at a time.
        memory_bytes: what each may use; None for any amount.
    """

    workers: int
    memory_bytes: int | None = None

    def run(self, requests: Sequence[Request], done: Done) -> None:
        """As ``Executor.run``. Raises OptionError without Ray."""
        if not requests:
            return
        ray = _ray()
        own = not ray.is_initialized()
        if own:
            environment = {"env_vars": {"PYTHONPATH": str(_ROOT)}}
            ray.init(num_cpus=self.workers, include_dashboard=False, log_to_driver=False, runtime_env=environment)
        search = ray.remote(num_cpus=1, max_retries=1)(search_as_json)
        waiting = dict(enumerate(json.dumps(request_as_json(request)) for request in requests))
        running: dict[object, int] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    number = next(iter(waiting))
                    running[search.remote(waiting.pop(number), self.memory_bytes)] = number
                (ended,), _ = ray.wait(list(running), num_returns=1)
                number = running.pop(ended)
                done(number, _outcome(ray, ended))
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            if own:
                ray.shutdown()


def search_as_json(request: str, memory_bytes: int | None) -> str:
    """What a Ray task runs: the search of ``request``, and its outcome."""
    with Worker(memory_bytes) as worker:
        return json.dumps(asdict(solved(worker, read_request(json.loads(request)), time.monotonic())))


def _outcome(ray: ModuleType, reference: object) -> Outcome:
    try:
        data = json.loads(ray.get(reference))
    except ray.exceptions.RayError as error:
        return Outcome(None, "died", f"Ray: {error}", 0.0)
    record = None if data["record"] is None else read_record(data["record"])
    return Outcome(record, data["stopped"], data["error"], data["seconds"])


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError as error:
        raise OptionError(f"Ray cannot be imported: {error}", expected="pip install 'ilang-eq[ray]'") from None
    return ray
