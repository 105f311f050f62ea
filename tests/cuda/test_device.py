"""Kernels as a device runs them: with ``-m gpu`` on a real one, and a few of them on the stand-in always.

The same components and random programs as ``test_emulated.py``, against the float64 interpreter. CuPy's memory pool is
off, so that ``compute-sanitizer`` sees the bounds of every array.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ilang_eq import I, i
from ilang_eq.cuda import device
from ilang_eq.cuda.build import build
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.errors import BuildError, DeviceError
from ilang_eq.lower.ir import Precision, Program
from tests.c import programs
from tests.cuda.fake_cupy import Fake, ndarray
from tests.cuda.schedules import NAMED, SOFTMAX, attention, dots, matmul, program
from tests.cuda.test_emulated import POINTWISE, SIZES, SPECIAL, inputs, meaning, random_cases

SEEDS = int(os.environ.get("ILANG_EQ_GPU_SEEDS", "120"))
"""How many random programs run on a device."""
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where kernels run: how arrays get there and back, and what makes a second stream current."""

    place: Callable[[np.ndarray], Any]
    fetch: Callable[[Any], np.ndarray]
    real: bool

    def run(self, program: Program, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        found = CudaKernel(program)(*map(self.place, arrays))
        return tuple(map(self.fetch, found if isinstance(found, tuple) else (found,)))


@pytest.fixture(params=["stand-in", pytest.param("device", marks=pytest.mark.gpu)])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    if request.param == "stand-in":
        if shutil.which("g++") is None:
            pytest.skip("needs a C++ compiler")
        fake: Fake = request.getfixturevalue("fake")
        fake.executes = True
        yield Machine(lambda x: ndarray(np.array(x, np.float32, order="C")), lambda x: x.values, False)
        return
    device.cupy.cache_clear()
    try:
        cupy = device.cupy()
    except DeviceError as error:
        pytest.skip(error.message)
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(None)
    yield Machine(lambda x: cupy.asarray(x, dtype="float32", order="C"), cupy.asnumpy, True)
    cupy.cuda.set_allocator(before)


def compared(got: Sequence[np.ndarray], right: Sequence[np.ndarray], what: str, tolerance: float) -> None:
    for mine, theirs in zip(got, right, strict=True):
        scale = max(1.0, float(np.abs(theirs).max(initial=0)))
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def several(result: Any) -> tuple[np.ndarray, ...]:
    return result if isinstance(result, tuple) else (np.asarray(result),)


@pytest.mark.parametrize("name", NAMED)
def test_components(name: str, machine: Machine) -> None:
    made = program(NAMED[name])
    for size in SIZES if machine.real else ("less than a tile",):
        arrays = inputs(made, size)
        compared(machine.run(made, arrays), several(NAMED[name].interpret(*arrays)), f"{name}, {size}", 1e-5)


TILED = {
    "product": (matmul(64, 16), ("mk", "kn")),
    "more shared memory than may be declared": (matmul(128, 32), ("mk", "kn")),
    "dot products": (dots(32, 32, 16), ("mk", "nk")),
    "rows of eight": (dots(32, 32, 8), ("mk", "nk")),
    "weighted sums": (attention(32, 32, 32, 16), ("mk", "nk", "np")),
    "dot products of four warps together": (dots(64, 48, 32), ("mk", "nk")),
    "weighted sums of scores of four warps together": (attention(64, 32, 32, 32), ("mk", "nk", "np")),
}
"""Tiles that are copied ahead, for tensor cores where they are granted; and the axes of the inputs."""
AXES = ({"m": 100, "n": 130, "k": 70, "p": 50}, {"m": 128, "n": 128, "k": 64, "p": 64})
ERRORS: dict[Precision, float] = {"float32": 1e-5, "tf32x3": 1e-5, "tf32": 1e-2}
"""Of results, relative to the largest; weights have the absolute error of scores."""


def test_tiles(machine: Machine) -> None:
    for name in TILED if machine.real else ("dot products",):
        component, axes = TILED[name]
        for precision in ERRORS if machine.real else ("tf32x3",):
            made = replace(program(component), precision=precision)
            for sizes in AXES if machine.real else ({"m": 3, "n": 5, "k": 4},):
                rng = np.random.default_rng(0)
                arrays = [rng.standard_normal([sizes[a] for a in of], dtype=np.float32) for of in axes]
                right = np.asarray(component.interpret(*arrays))
                (got,) = machine.run(made, arrays)
                assert np.abs(got - right).max() < ERRORS[precision] * np.abs(right).max(), (name, precision, sizes)


@pytest.mark.gpu
def test_errors_are_next_to_those_of_torch() -> None:
    """Of products by tensor cores, relative to the norm of the result."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no CUDA device")
    kernel = CudaKernel(replace(program(matmul(128, 32)), precision="tf32"))
    x, y = torch.randn(2, 1024, 1024, device="cuda")
    right = x.double() @ y.double()
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        errors = [float((got.double() - right).norm() / right.norm()) for got in (kernel(x, y), x @ y)]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert 0 < errors[0] < 2 * errors[1]


def test_random_programs(machine: Machine) -> None:
    cases = random_cases(range(SEEDS if machine.real else 4))
    if machine.real:
        built([made for _, _, made, _ in cases])
    for seed, case, made, right in cases:
        compared(machine.run(made, case.arrays), right, f"seed {seed}", 2e-3)


def built(made: Sequence[Program]) -> None:
    """Compile ahead, on all cores. What is refused is for the call to say."""
    arch = device.architecture(0)

    def ahead(program: Program) -> None:
        try:
            build(CudaKernel(program).source, arch)
        except BuildError as error:
            print(error)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(ahead, made))


def test_special_values(machine: Machine) -> None:
    x, y = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(SPECIAL, SPECIAL))
    for name, (value, count) in POINTWISE.items() if machine.real else [("max", POINTWISE["max"])]:
        (got,) = machine.run(programs.elementwise(value, inputs=count), [x, y][:count])
        want = meaning(name, x.astype(np.float64), y.astype(np.float64))
        np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=name)


def test_memory_is_reused_and_graphs_replay(machine: Machine) -> None:
    """Calls, and graphs between them, of a kernel that keeps intermediate results in memory."""
    kernel = CudaKernel(program(SOFTMAX))
    drawn = np.random.default_rng(0).standard_normal((2, 70, 300), dtype=np.float32)
    arrays = [machine.place(x) for x in drawn]
    rights = [SOFTMAX.interpret(x) for x in drawn]
    graph = kernel.capture(arrays[0])
    for _ in range(3):
        for array, right in zip(arrays, rights, strict=True):
            compared([machine.fetch(kernel(array))], [right], "call", 1e-5)
        compared([machine.fetch(graph())], [rights[0]], "graph", 1e-5)


def test_an_axis_without_elements(machine: Machine) -> None:
    """Online, a sum of quotients divides by what is left of the divisor: nothing."""
    online = (I & i("+ij~i||ji")) >> i("ij/i~ij||j1i") >> i("+ij~i||j0i")
    assert online.plan().corrections
    kernel = online.compile("cuda")
    assert isinstance(kernel, CudaKernel)
    for columns in (0, 5, 0):
        x = machine.place(np.ones((3, columns), np.float32))
        right = online.interpret(np.ones((3, columns)))
        for call in (kernel, kernel.prepare()):
            compared([machine.fetch(call(x)), machine.fetch(call.capture(x)())], [right, right], "rows", 1e-6)
        compared([machine.fetch(kernel.prepare(in0=x)())], [right], "rows", 1e-6)


def test_streams_do_not_share_memory(machine: Machine) -> None:
    cupy = device.cupy()
    kernel = CudaKernel(program(SOFTMAX))
    drawn = np.random.default_rng(0).standard_normal((2, 70, 300), dtype=np.float32)
    arrays = [machine.place(x) for x in drawn]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in drawn]
    found: list[list[Any]] = [[], []]
    device.cupy().cuda.Device().synchronize()
    for _ in range(5):
        for n, stream in enumerate(streams):
            with stream:
                found[n].append(kernel(arrays[n]))
    for stream in streams:
        stream.synchronize()
    for results, x in zip(found, drawn, strict=True):
        compared([machine.fetch(result) for result in results], [SOFTMAX.interpret(x)] * 5, "stream", 1e-5)


@pytest.mark.gpu
def test_torch_tensors() -> None:
    """On torch's current stream; captured by torch; with memory of torch's."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no CUDA device")
    kernel = CudaKernel(program(SOFTMAX))
    x = torch.randn(70, 300, device="cuda")
    y = torch.empty_like(x)
    right = x.double().softmax(1).float()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert kernel(x, out=y) is y
    torch.cuda.current_stream().wait_stream(side)
    torch.testing.assert_close(y, right, **CLOSE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        again = kernel(kernel(x))
    x.copy_(torch.randn(70, 300))
    graph.replay()
    torch.testing.assert_close(again, x.double().softmax(1).softmax(1).float(), **CLOSE)
    captured = kernel.capture(x)
    torch.testing.assert_close(captured(), x.double().softmax(1).float(), **CLOSE)


@pytest.mark.gpu
def test_a_full_device(machine: Machine) -> None:
    """An outer product whose result is larger than any device's memory."""
    if not machine.real:
        pytest.skip("the stand-in's memory is this machine's")
    x = machine.place(np.ones(2**21, np.float32))
    with pytest.raises(DeviceError, match=r"(?s)no device memory for 17592186044416 bytes.*expected: smaller arrays"):
        CudaKernel(program(i("i*j~ij")))(x, x)


@pytest.mark.gpu
def test_a_kernel_first_called_in_a_capture() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no CUDA device")
    x = torch.randn(70, 300, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(DeviceError, match="a call of it before the capture"), torch.cuda.graph(graph):
        CudaKernel(program(SOFTMAX))(x, out=torch.empty_like(x))
