"""Calls: what is launched with which arguments, and what is said where a call cannot be."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from ilang_eq import i, optimize
from ilang_eq.cuda import device
from ilang_eq.cuda.emit import emit
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.errors import ArrayError, DeviceError
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests.c import programs
from tests.cuda.fake_cupy import CUDADriverError, CUDARuntimeError, DlpackArray, Fake, ndarray
from tests.cuda.schedules import NAMED, SOFTMAX, matmul, program

runs = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


def floats(*shape: int, where: int = 0) -> ndarray:
    return ndarray(np.ones(shape, np.float32), where)


def drawn(*shape: int) -> ndarray:
    return ndarray(np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32))


def test_a_call_launches_with_pointers_and_extents(fake: Fake) -> None:
    a, b, c = floats(100, 40), floats(40, 70), floats(100, 70)
    kernel = CudaKernel(program(matmul(64, 16)))
    assert kernel(a, b, out=c) is c
    (launched,) = fake.launched
    (entry,) = kernel.module.entries
    assert (launched.name, launched.blocks, launched.threads) == (entry.name, 4, entry.block.threads)
    assert launched.stream == 7, "the caller's stream"
    by_name = {"in0": a, "in1": b, "out0": c}
    assert list(launched.arguments[:3]) == [by_name[pointer].data.ptr for pointer in entry.pointers]
    sizes = {"in0.0": 100, "in0.1": 40, "in1.1": 70}
    assert list(launched.arguments[3:]) == [sizes[str(extent)] for extent in entry.extents]
    assert not fake.copied
    assert not fake.allocated


@runs
@pytest.mark.parametrize("name", ["matmul", "softmax", "attention", "sum"])
def test_results(name: str, fake: Fake) -> None:
    """The launches, as the driver would get them, compute what the component means."""
    fake.executes = True
    kernel = CudaKernel(program(NAMED[name]))
    for size in (21, 33):
        arrays = [drawn(*(size,) * (rank or 0)) for rank in kernel.program.ranks]
        right = NAMED[name].interpret(*(array.values for array in arrays))
        for _ in range(2):
            np.testing.assert_allclose(kernel(*arrays).values, right, rtol=1e-4, atol=1e-4)


def test_kernels_are_built_once_and_for_the_device(fake: Fake) -> None:
    kernel = CudaKernel(program(i("i+i~i")))
    for size in (3, 5, 3):
        assert kernel(floats(size), floats(size)).shape == (size,)
    assert [path.name.split(".", 1)[1] for path in fake.loaded] == ["sm_90.cubin"]
    assert [launched.arguments[-1] for launched in fake.launched] == [3, 5, 3]


def test_launches_share_workspaces(fake: Fake) -> None:
    CudaKernel(programs.two_kernels())(floats(9, 40), floats(5))
    first, second = fake.launched
    assert set(first.arguments[:2]) & set(second.arguments[:2]), "what the first writes the second reads"
    assert [count for _, _, count in fake.copied] == [4 * 5, 4 * 9], "an input passed through, and an output again"


def test_memory_is_kept_for_each_stream(fake: Fake) -> None:
    kernel = CudaKernel(program(SOFTMAX))
    x, y = floats(6, 30), floats(6, 30)
    for fake.stream in (7, 7, 8, 7, 8):
        kernel(x, out=y)
    size = kernel.signature(((6, 30),)).layout.bytes
    assert size >= 6 * 30 * 4
    assert fake.allocated == [(7, size), (8, size)], "one for a stream, in its order"
    mine, _, others, *_ = [set(launched.arguments) - {x.data.ptr, y.data.ptr, 6, 30} for launched in fake.launched]
    assert not mine & others


def test_memory_grows_but_does_not_shrink(fake: Fake) -> None:
    kernel = CudaKernel(program(SOFTMAX))
    for rows in (6, 60, 6, 60, 7):
        kernel(floats(rows, 64))
    sizes = [kernel.signature(((rows, 64),)).layout.bytes for rows in (6, 60)]
    assert [count for _, count in fake.allocated] == sizes


def test_memory_of_many_streams_is_let_go(fake: Fake) -> None:
    kernel = CudaKernel(program(SOFTMAX))
    for fake.stream in range(7, 40):
        kernel(floats(6, 64))
    assert len(kernel._memory) == 16


def test_every_thread_packs_its_own_arguments(fake: Fake) -> None:
    kernel = CudaKernel(program(i("i+i~i")))
    arrays = floats(3), floats(3)
    kernel(*arrays)
    worker = threading.Thread(target=kernel, args=arrays)
    worker.start()
    worker.join()
    assert fake.switched == [0, 0], "each thread gets a context"


def test_threads_on_one_stream_do_not_mix_their_launches(fake: Fake) -> None:
    """They share its memory: what one thread hands on, the other must not write over."""
    kernel = CudaKernel(programs.two_kernels())
    kernel(floats(9, 40), floats(5))
    fake.launched.clear()
    mixed = threading.Event()
    other = threading.Thread(target=kernel, args=(floats(9, 40), floats(5)))

    def after_a_launch() -> None:
        if threading.current_thread() is other:
            mixed.set()
        elif not other.ident:
            other.start()
            # enough for the other's launches, if nothing holds them back
            mixed.wait(0.2)

    fake.launching = after_a_launch
    kernel(floats(9, 40), floats(5))
    other.join()
    assert [launched.name for launched in fake.launched] == 2 * [entry.name for entry in kernel.module.entries]


def test_work_is_queued_on_the_device_of_the_arrays(fake: Fake) -> None:
    fake.devices = 2
    kernel = CudaKernel(program(i("i+i~i")))
    assert kernel(floats(3, where=1), floats(3, where=1)).data.device_id == 1
    assert fake.current == 0
    kernel(floats(3), floats(3))
    assert len(fake.loaded) == 2, "machine code belongs to a device"


def test_arrays_of_others_through_dlpack(fake: Fake) -> None:
    x = np.ones(3, np.float32)
    assert CudaKernel(program(i("i+i~i")))(DlpackArray(x), DlpackArray(x, kind=13)).shape == (3,)
    assert fake.launched[0].arguments.count(x.ctypes.data) == 2


def test_nothing_is_launched_for_nothing(fake: Fake) -> None:
    assert CudaKernel(program(i("i+i~i")))(floats(0), floats(0)).shape == (0,)
    assert not fake.launched


def test_constants_are_prepared_once(fake: Fake) -> None:
    kernel = CudaKernel(program(i("+ij~ji") >> i("ji*j~ji")))
    prepared = kernel.prepare(in0=floats(4, 6))
    before = len(fake.launched)
    prepared(floats(6))
    assert before == 1
    assert len(fake.launched) == before + 1


WRONG = {
    "too few": ((floats(3),), None, "1 arrays for a kernel of 2 inputs"),
    "NumPy": ((np.ones(3, np.float32), floats(3)), None, "input 0 is a ndarray\nexpected: a CuPy array"),
    "DLPack on the CPU": ((DlpackArray(np.ones(3), kind=1), floats(3)), None, "input 0 is a DlpackArray"),
    "a dtype": ((ndarray(np.ones(3)), floats(3)), None, "input 0 has dtype float64"),
    "a rank": ((floats(3, 1), floats(3)), None, r"input 0 has shape \(3, 1\)\nexpected: 1 dimension"),
    "extents": ((floats(3), floats(4)), None, "input 1 has 4 elements"),
    "two devices": ((floats(3), floats(3, where=1)), None, "CUDA devices 0 and 1"),
    "an output elsewhere": ((floats(3), floats(3)), floats(3, where=1), "CUDA devices 0 and 1"),
    "strides": ((ndarray(np.ones(6, np.float32)[::2]), floats(3)), None, "not contiguous"),
    "an output's shape": ((floats(3), floats(3)), floats(4), r"out\[0\] has shape \(4,\)\nexpected: shape \(3,\)"),
    "several outputs": ((floats(3), floats(3)), (floats(3), floats(3)), "out is 2 arrays"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arrays(what: str, fake: Fake) -> None:
    arrays, out, said = WRONG[what]
    with pytest.raises(ArrayError, match=said):
        CudaKernel(program(i("i+i~i")))(*arrays, out=out)
    assert not fake.launched


def test_an_output_over_an_input(fake: Fake) -> None:
    x = floats(8)
    with pytest.raises(ArrayError, match=r"out\[0\] overlaps input 1"):
        CudaKernel(program(i("i+i~i")))(floats(8), x, out=x)


def test_an_output_over_an_input_after_calls_that_were_right(fake: Fake) -> None:
    """What was found of some arrays says nothing of others."""
    kernel = CudaKernel(program(i("i+i~i")))
    x, y, z = floats(8), floats(8), floats(8)
    for _ in range(2):
        assert kernel(x, y, out=z) is z
        with pytest.raises(ArrayError, match=r"out\[0\] overlaps input 0"):
            kernel(x, y, out=x)
        with pytest.raises(ArrayError, match=r"out\[0\] overlaps input 1"):
            kernel(x, z, out=z)


def test_no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    device.cupy.cache_clear()
    with pytest.raises(DeviceError, match=r"(?s)CuPy cannot be imported.*pip install ilang-eq\[cuda\]"):
        CudaKernel(program(i("i+1.0~i")))(np.ones(3, np.float32))
    device.cupy.cache_clear()


NOT_FIT = {
    "none": ({"devices": 0}, r"no CUDA device\nexpected: .*CUDA_VISIBLE_DEVICES"),
    "no driver": ({"devices": -1, "driver_version": 0}, "no NVIDIA driver is installed"),
    "an old driver": (
        {"devices": -1, "driver_version": 12040},
        r"the driver is for CUDA 12.4, and CuPy for 13.2\nexpected: a driver for CUDA 13, or .*cupy-cuda12x",
    ),
    "another fault": ({"devices": -1}, "no CUDA device can be used: cudaErrorInsufficientDriver"),
    "an old NVRTC's code": (
        {"broken_driver": "CUDA_ERROR_INVALID_IMAGE"},
        "(?s)INVALID_IMAGE.*an NVRTC that is not newer than the driver, which is for CUDA 13.0",
    ),
}


@pytest.mark.parametrize("what", NOT_FIT)
def test_a_machine_that_is_not_fit(what: str, fake: Fake) -> None:
    values, said = NOT_FIT[what]
    for name, value in values.items():
        setattr(fake, name, value)
    with pytest.raises(DeviceError, match=said):
        CudaKernel(program(i("i+1.0~i")))(floats(3))


def test_machine_code_for_another_device(fake: Fake, tmp_path: Path) -> None:
    fake.broken_driver, fake.capability = "CUDA_ERROR_NO_BINARY_FOR_GPU", "80"
    with pytest.raises(DeviceError, match=r"(?s)NO_BINARY_FOR_GPU.*machine code for sm_80, not sm_90"):
        device.load(tmp_path / "kernel.sm_90.cubin", {"ilang_kernel": 0})


def test_out_of_memory(fake: Fake) -> None:
    fake.memory = 6 * 30 * 4
    with pytest.raises(DeviceError, match=r"(?s)\d+ bytes of intermediate results; 0 MB of 954 MB .*smaller arrays"):
        CudaKernel(program(SOFTMAX))(floats(6, 30))
    fake.memory = 100
    with pytest.raises(DeviceError, match=r"720 bytes of an output of shape \(6, 30\)"):
        CudaKernel(program(SOFTMAX))(floats(6, 30))


def test_allocators_say_in_their_own_ways_why_not(fake: Fake) -> None:
    kernel = CudaKernel(program(SOFTMAX))
    x, y = floats(6, 30), floats(6, 30)
    fake.memory = 0
    fake.full = CUDARuntimeError("cudaErrorMemoryAllocation", 2)
    with pytest.raises(DeviceError, match=r"(?s)bytes of intermediate results; .*expected: smaller arrays"):
        kernel(x, out=y)
    fake.full = CUDARuntimeError("cudaErrorStreamCaptureUnsupported", 900)
    with pytest.raises(DeviceError, match=r"(?s)CaptureUnsupported.*expected: a first call before the capture"):
        kernel(x, out=y)
    fake.full = RuntimeError("another")
    with pytest.raises(RuntimeError, match="another"):
        kernel(x, out=y)


def test_a_launch_that_the_driver_refuses(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(device.cupy().cuda.driver, "launchKernel", refuse)
    with pytest.raises(DeviceError, match="refuses a launch, or an earlier one has failed: CUDA_ERROR_ILLEGAL_ADDRESS"):
        CudaKernel(program(i("i+1.0~i")))(floats(3))


def test_measuring_times_the_kernels_on_the_device(fake: Fake) -> None:
    best = optimize(i("ij*ij~ij") >> i("+ij~i"), [(64, 48)] * 2, target="cuda", effort="measure", database=False)
    timed = [schedule for schedule in best.candidates(10) if schedule.measured is not None]
    assert 1 <= len(timed) <= 4
    assert {launched.name for launched in fake.launched} >= {
        entry.name for entry in emit(lower(wire(best.component))).entries
    }


def test_the_source_needs_nothing() -> None:
    """In a process of its own: neither CuPy nor NVRTC nor egglog is loaded."""
    script = """
        import sys
        from ilang_eq import i
        kernel = (i("ij*ij~ij") >> i("+ij~i")).compile("cuda")
        assert "__global__" in kernel.source
        assert not {"cupy", "torch", "egglog"} & set(sys.modules)
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
