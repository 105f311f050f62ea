"""Large results: memory is used again when a result is gone, and not before."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest

from ilang_eq import i
from ilang_eq.c import memory

KERNEL = i("i*2~i")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_free", {})


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_memory_of_a_result_that_is_gone_is_used_again() -> None:
    kernel, x = KERNEL.compile(threads=1), np.ones(memory.LARGE, np.float32)
    first = kernel(x)
    place = address(first)
    assert place % memory.PAGE == 0
    del first
    again = kernel(x)
    assert address(again) == place
    np.testing.assert_array_equal(again, 2 * x)


def test_memory_stays_while_a_view_of_it_lives() -> None:
    kernel, x = KERNEL.compile(threads=1), np.arange(memory.LARGE, dtype=np.float32)
    view = kernel(x)[5:10].reshape(5, 1)
    gc.collect()
    other = kernel(x + 1)
    assert not np.shares_memory(other, view)
    np.testing.assert_array_equal(view.ravel(), 2 * x[5:10])


@pytest.mark.parametrize("size", [memory.IN_LINES // 4, memory.LARGE // 4 - 1])
def test_results_of_some_size_begin_with_a_cache_line(size: int) -> None:
    kernel, x = KERNEL.compile(threads=1), np.ones(size, np.float32)
    results = [kernel(x) for _ in range(5)]
    assert {address(result) % memory.ALIGNMENT for result in results} == {0}
    assert all((result == 2).all() and result.shape == x.shape for result in results)


@pytest.mark.parametrize("make", [memory.result, memory.aligned])
def test_results_are_plain_arrays(make: Callable[[tuple[int, ...]], memory.Floats]) -> None:
    out = make((3, 4))
    assert type(out) is np.ndarray
    assert out.flags.writeable
    assert out.flags.c_contiguous
    out[...] = 1
    assert out.sum() == 12


def kept() -> list[int]:
    """The floats of what is kept, without those that let it begin with a page."""
    return [block.size - memory.PAGE // 4 for block in memory._free.values()]


def test_no_more_is_kept_than_is_said_and_what_came_back_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEPT", 3 * 4 * (1000 + memory.PAGE // 4))
    results = [memory.result((size,)) for size in (1000, 999, 1000, 998, 500)]
    while results:
        results.pop(0)
    assert kept() == [1000, 998, 500]


def test_what_is_too_large_to_be_kept_drives_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEPT", 4 * (1000 + memory.PAGE // 4))
    small, large = memory.result((1000,)), memory.result((1001,))
    del small, large
    assert kept() == [1000]


def test_sizes_that_come_once_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEPT", 4 * (2000 + memory.PAGE // 4))
    for size in range(1000, 1100):
        memory.result((size,))
    assert len(memory._free) <= 2


def test_small_results_are_left_to_numpy() -> None:
    assert KERNEL.compile(threads=1)(np.ones(8, np.float32)).flags.owndata


def test_threads_never_share_a_result() -> None:
    kernel = KERNEL.compile(threads=1)
    right: list[bool] = []

    def work(number: int) -> None:
        x = np.full(memory.LARGE // 4, number, np.float32)
        right.extend(bool((kernel(x) == 2 * number).all()) for _ in range(50))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 200, "a thread that raises leaves fewer"


def test_torch_tensors_keep_theirs() -> None:
    torch = pytest.importorskip("torch")
    kernel, x = KERNEL.compile(threads=1), torch.ones(memory.LARGE)
    first = kernel(x)
    second = kernel(x + 1)
    assert first.data_ptr() != second.data_ptr()
    assert (first == 2).all()
    place = first.data_ptr()
    del first
    gc.collect()
    assert kernel(x).data_ptr() == place
