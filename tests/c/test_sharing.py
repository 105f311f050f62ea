"""Each thread has its own shares of the tasks, and takes over those of a thread that is late. Each is done once."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ilang_eq.c.preamble import HEADERS, preamble
from ilang_eq.c.vectors import Used

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

RUN = """
// If thread 0 is ``late``, all begin their first shares before any goes on, and then it waits for everybody else.
void run(int team, int64_t shares, int late, int64_t *times, int64_t *threads)
{
    int64_t begun = 0, done = 0;
    struct queue queues[team];
    none_taken(queues, team);
#pragma omp parallel num_threads(team)
    for (int64_t after = 0, at; (at = next_share(queues, shares, &after)) < shares;) {
        __atomic_fetch_add(&times[at], 1, __ATOMIC_RELAXED);
        threads[at] = thread_number();
        __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
        while (late && __atomic_load_n(&begun, __ATOMIC_RELAXED) < team_size())
            ;
        while (late && team_size() > 1 && threads[at] == 0 && __atomic_load_n(&done, __ATOMIC_RELAXED) < shares - 1)
            ;
        __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    }
}
"""


def has_threads() -> bool:
    command = ["cc", "-fopenmp", "-fsyntax-only", "-x", "c", "-"]
    return subprocess.run(command, input="#include <omp.h>\n", text=True, capture_output=True).returncode == 0


def shared(flags: list[str], team: int, shares: int, late: bool, scratch: Path) -> tuple[np.ndarray, np.ndarray]:
    """How often each share was done, and by which thread."""
    if flags and not has_threads():
        pytest.skip("this compiler has no OpenMP")
    (scratch / "run.c").write_text(HEADERS + preamble(Used(), RUN) + RUN)
    command = ["cc", "-O2", "-shared", "-fPIC", *flags, "run.c", "-o", "run.so"]
    subprocess.run(command, cwd=scratch, check=True)
    times, threads = np.zeros(shares, np.int64), np.full(shares, -1, np.int64)
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (times, threads))
    ctypes.CDLL(str(scratch / "run.so")).run(team, ctypes.c_int64(shares), int(late), *pointers)
    return times, threads


@pytest.mark.parametrize("flags", [["-fopenmp"], []], ids=["threads", "alone"])
@pytest.mark.parametrize(("team", "shares"), [(2, 2), (2, 7), (2, 32), (3, 5), (4, 64)])
def test_each_share_is_done_once(flags: list[str], team: int, shares: int, tmp_path: Path) -> None:
    times, _ = shared(flags, team, shares, False, tmp_path)
    assert (times == 1).all()


@pytest.mark.parametrize(("team", "shares"), [(2, 2), (2, 7), (3, 48)])
def test_others_do_what_a_late_thread_has_not_begun(team: int, shares: int, tmp_path: Path) -> None:
    times, threads = shared(["-fopenmp"], team, shares, True, tmp_path)
    assert (times == 1).all()
    assert threads.tolist().count(0) == 1
    own = [shares * thread // team for thread in range(team)]
    assert threads[own].tolist() == list(range(team)), "each begins with the first of its own"
