"""CUDA graphs: those a kernel makes, and those that its calls become part of."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from ilang_eq import i, optimize
from ilang_eq.cuda import device
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.errors import ArrayError, DeviceError, OptionError
from tests.c import programs
from tests.cuda.fake_cupy import Fake, Stream
from tests.cuda.schedules import SOFTMAX, program
from tests.cuda.test_kernel import drawn, floats


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_graph_computes_on_what_lies_in_its_arrays(fake: Fake) -> None:
    fake.executes = True
    x, y = drawn(9, 40), drawn(5)
    captured = CudaKernel(programs.two_kernels()).capture(x, y)
    assert not fake.launched, "nothing runs while it is captured"
    for scale in (1.0, 3.0):
        x.values *= scale
        sums, passed, again = captured()
        np.testing.assert_allclose(sums.values, (x.values**2).sum(1), rtol=1e-5)
        np.testing.assert_array_equal(passed.values, y.values)
        np.testing.assert_array_equal(again.values, sums.values)
    assert captured.inputs == (x, y)


def test_a_replay_is_one_call_of_the_driver_on_the_current_stream(fake: Fake) -> None:
    x, y = floats(6, 30), floats(6, 30)
    kernel = CudaKernel(program(SOFTMAX))
    captured = kernel.capture(x, out=y)
    fake.capturing[9] = []
    fake.stream = 9
    assert captured() is y
    assert len(fake.capturing[9]) == 1, "a graph may be part of another"
    fake.stream = 7
    captured()
    assert len(fake.launched) == len(kernel.module.entries)


def test_a_graph_has_memory_of_its_own(fake: Fake) -> None:
    x, y = floats(6, 30), floats(6, 30)
    kernel = CudaKernel(program(SOFTMAX))
    kernel(x, out=y)
    graphs = [kernel.capture(x, out=y) for _ in range(2)]
    for graph in graphs:
        graph()
    known = {x.data.ptr, y.data.ptr, 6, 30}
    scratch = [frozenset(launched.arguments) - known for launched in fake.launched]
    assert len(set(scratch)) == 3


def test_calls_become_part_of_a_graph_of_the_caller(fake: Fake) -> None:
    x, y = floats(6, 30), floats(6, 30)
    kernel = CudaKernel(program(SOFTMAX))
    kernel(x, out=y)
    (outside,) = fake.launched
    fake.stream = 9
    stream = Stream(fake, 9)
    stream.begin_capture(1)
    kernel(x, out=y)
    kernel(x, out=y)
    graph = stream.end_capture()
    kernel(x, out=y)
    assert len(fake.launched) == 2
    device.cupy().cuda.runtime.graphLaunch(graph.graphExec, 7)
    _, after, *inside = fake.launched
    assert len(inside) == 2
    assert not {outside.arguments, after.arguments} & {launched.arguments for launched in inside}, (
        "what the graph uses, no call outside does"
    )


def test_what_a_capture_does_not_allow(fake: Fake) -> None:
    x, y = floats(6, 30), floats(6, 30)
    kernel = CudaKernel(program(SOFTMAX))
    fake.stream = 9
    fake.capturing[9] = []
    with pytest.raises(DeviceError, match=r"(?s)the first call of a kernel.*expected: a call of it before the capture"):
        kernel(x, out=y)
    with pytest.raises(DeviceError, match=r"(?s)being captured already.*expected: a call of the kernel"):
        kernel.capture(x, out=y)


def test_wrong_arrays_are_not_captured(fake: Fake) -> None:
    kernel = CudaKernel(program(SOFTMAX))
    with pytest.raises(ArrayError, match="input 0 has shape"):
        kernel.capture(floats(3))
    with pytest.raises(ArrayError, match=r"out\[0\] overlaps input 0"):
        kernel.capture(x := floats(3, 3), out=x)
    assert not fake.graphs


def test_optimised_and_prepared_kernels(fake: Fake) -> None:
    best = optimize(i("ij*ij~ij") >> i("+ij~i"), [(64, 48)] * 2, target="cuda", database=False)
    out = floats(64)
    assert best.capture(floats(64, 48), floats(64, 48), out=out)() is out
    prepared = CudaKernel(program(i("+ij~ji") >> i("ji*j~ji"))).prepare(in0=floats(4, 6))
    assert prepared.capture(floats(6))().shape == (6, 4)
    with pytest.raises(OptionError, match='target="cuda"'):
        optimize(i("i*i~i"), [(8,), (8,)], database=False).capture(np.ones(8), np.ones(8))
