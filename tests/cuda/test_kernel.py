"""Calls: what is launched with which arguments, and what is said where a call cannot be."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator

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
from tests.cuda.fake_cupy import Fake, ndarray
from tests.cuda.schedules import SOFTMAX, matmul, program
from tests.cuda.test_nvrtc import pytestmark

__all__ = ["pytestmark"]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    found = Fake()
    monkeypatch.setitem(sys.modules, "cupy", found.module())
    device.cupy.cache_clear()
    yield found
    device.cupy.cache_clear()


def floats(*shape: int, where: int = 0) -> ndarray:
    return ndarray(np.ones(shape, np.float32), where)


def test_a_call_launches_with_pointers_and_extents(fake: Fake) -> None:
    a, b, c = floats(100, 40), floats(40, 70), floats(100, 70)
    kernel = CudaKernel(program(matmul(64, 16)))
    assert kernel(a, b, out=c) is c
    ((name, grid, block, arguments),) = fake.launched
    (entry,) = kernel.module.entries
    assert (name, grid, block) == (entry.name, (4, 1, 1), (256, 1, 1))
    by_name = {"in0": a, "in1": b, "out0": c}
    assert list(arguments[:3]) == [by_name[pointer].data.ptr for pointer in entry.pointers]
    assert list(arguments[3:]) == [{"in0.0": 100, "in0.1": 40, "in1.1": 70}[str(extent)] for extent in entry.extents]
    assert all(isinstance(argument, np.uint64 | np.int64) for argument in arguments), "64 bits each"
    assert fake.streams == [7], "the caller's stream"
    assert not fake.copied


def test_kernels_are_built_once_and_for_the_device(fake: Fake) -> None:
    kernel = CudaKernel(program(i("i+i~i")))
    for size in (3, 5, 3):
        assert kernel(floats(size), floats(size)).shape == (size,)
    assert [path.name.split(".", 1)[1] for path in fake.loaded] == ["sm_90.cubin"]
    assert len(fake.launched) == 3


def test_launches_share_workspaces_and_pieces(fake: Fake) -> None:
    CudaKernel(programs.two_kernels())(floats(9, 40), floats(5))
    (_, _, _, first), (_, _, _, second) = fake.launched
    assert set(first[:2]) & set(second[:2]), "what the first writes the second reads"
    assert [count for _, _, count in fake.copied] == [4 * 5, 4 * 9], "an input passed through, and an output again"
    CudaKernel(program(SOFTMAX))(floats(6, 30))
    assert fake.held[-1].nbytes == 6 * 30 * 4


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
    "a dtype": ((ndarray(np.ones(3)), floats(3)), None, "input 0 has dtype float64"),
    "a rank": ((floats(3, 1), floats(3)), None, "input 0 has shape"),
    "extents": ((floats(3), floats(4)), None, "input 1 has 4 elements"),
    "two devices": ((floats(3), floats(3, where=1)), None, "CUDA devices 0 and 1"),
    "strides": ((ndarray(np.ones(6, np.float32)[::2]), floats(3)), None, "not contiguous"),
    "an output's shape": ((floats(3), floats(3)), floats(4), r"out\[0\] has shape"),
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


def test_no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    device.cupy.cache_clear()
    with pytest.raises(DeviceError, match=r"(?s)CuPy cannot be imported.*pip install ilang-eq\[cuda\]"):
        CudaKernel(program(i("i+1.0~i")))(np.ones(3, np.float32))
    device.cupy.cache_clear()


@pytest.mark.parametrize(("devices", "said"), [(0, "no CUDA device"), (-1, "driver too old")])
def test_no_device(devices: int, said: str, fake: Fake) -> None:
    fake.devices = devices
    with pytest.raises(DeviceError, match=said):
        CudaKernel(program(i("i+1.0~i")))(floats(3))


def test_out_of_memory(fake: Fake) -> None:
    fake.memory = 6 * 30 * 4
    with pytest.raises(DeviceError, match=r"(?s)no device memory for 720 bytes.*smaller arrays"):
        CudaKernel(program(SOFTMAX))(floats(6, 30))
    fake.memory = 100
    with pytest.raises(DeviceError, match=r"output of shape \(6, 30\)"):
        CudaKernel(program(SOFTMAX))(floats(6, 30))


def test_a_driver_that_does_not_load_the_kernel(fake: Fake) -> None:
    fake.broken_driver = True
    with pytest.raises(DeviceError, match="NO_BINARY_FOR_GPU"):
        CudaKernel(program(i("i+1.0~i")))(floats(3))


def test_measuring_times_the_kernels_on_the_device(fake: Fake) -> None:
    best = optimize(i("ij*ij~ij") >> i("+ij~i"), [(64, 48)] * 2, target="cuda", effort="measure", database=False)
    timed = [schedule for schedule in best.candidates(10) if schedule.measured is not None]
    assert 1 <= len(timed) <= 4
    assert {name for name, *_ in fake.launched} >= {entry.name for entry in emit(lower(wire(best.component))).entries}


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
