"""A worker process as its owner sees it: requests in, ever better results out, until a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ilang_eq.database.record import Record, read_record
from ilang_eq.request import Request
from ilang_eq.workers.messages import read_error, request_as_json

_ROOT = Path(__file__).parent.parent.parent


class Expired(Exception):
    """The deadline has passed: the worker has been killed."""


class Died(Exception):
    """The worker ended by itself; the message says how."""


class Worker:
    """One process, which answers one request after another. Used by one thread, and as a context manager.

    Args:
        memory_bytes: the address space it may use; None for any amount.
    """

    def __init__(self, memory_bytes: int | None = None) -> None:
        command = [sys.executable, "-P", "-m", "ilang_eq.workers.loop", str(memory_bytes or 0)]
        paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C at a terminal goes to the owner alone
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._ready = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def improvements(self, request: Request, deadline: float | None = None) -> Iterator[Record]:
        """What the worker finds, each better than the one before; ends with the search.

        Args:
            deadline: on the clock of ``time.monotonic``. The worker is told how much time is left.

        Raises:
            Expired, Died: the worker is of no more use.
            ILangError: what the search raised.
        """
        if not self._ready:
            self._receive(deadline)
            self._ready = True
        data = request_as_json(request)
        if deadline is not None:
            data["budget_s"] = max(deadline - time.monotonic(), 1e-3)
        self._send(data)
        while "done" not in (reply := self._receive(deadline)):
            if "error" in reply:
                raise read_error(reply["error"])
            yield read_record(reply["found"])

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _send(self, data: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(data) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._died() from None

    def _receive(self, deadline: float | None) -> dict[str, Any]:
        left = None if deadline is None else deadline - time.monotonic()
        try:
            line = self._lines.get(timeout=left) if left is None or left > 0 else self._lines.get_nowait()
        except queue.Empty:
            self.kill()
            raise Expired from None
        if not line.endswith("\n"):
            raise self._died()
        return json.loads(line)

    def _read(self) -> None:
        """Lines as they come; an empty one for the end, which may also cut one short."""
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put("")

    def _died(self) -> Died:
        code = self._process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        return Died(f"the process that searched {how}")
