"""What a worker process runs: requests from standard input, each answered by ever better results.

Lines out: ``{"ready": true}`` once; for each request any number of ``{"found": …}``, then ``{"done": true}`` or
``{"error": …}``. The process ends when its standard input does, so it does not outlive who started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any, TextIO

from ilang_eq.database.record import record_as_json
from ilang_eq.errors import RuleError
from ilang_eq.garbage import seldom_collected
from ilang_eq.kept import key_of, record_of
from ilang_eq.optimizer import improving, models_of
from ilang_eq.rewrites.engine import load_egglog
from ilang_eq.workers.messages import error_as_json, read_request


def main() -> None:
    """Serve until standard input ends. The first argument bounds the memory in bytes, if it is not 0."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = _replies_only()
    _bound_memory(int(sys.argv[1]))
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    with contextlib.suppress(RuleError):  # of which every request tells
        load_egglog()  # which is no part of any request's time
    _send(replies, {"ready": True})
    while True:
        try:
            _serve(json.loads(requests.get()), replies)
        except BaseException as error:
            # a panic in egglog is no Exception, and leaves nothing to go on with
            _send(replies, {"error": error_as_json(error)})
            if not isinstance(error, Exception):
                raise


@seldom_collected()
def _serve(data: dict[str, Any], replies: TextIO) -> None:
    request = read_request(data)
    key = key_of(request, models_of(request).machine)
    for found in improving(request):
        _send(replies, {"found": record_as_json(record_of(key, found, None))})
    _send(replies, {"done": True})


def _replies_only() -> TextIO:
    """Standard output for replies alone: whatever else prints goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies


def _send(replies: TextIO, message: Mapping[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


def _read(requests: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _bound_memory(limit: int) -> None:
    if limit:
        with contextlib.suppress(ImportError):
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
