"""Measuring a GPU: the kernels compile, and compute on the CPU what they should; figures become a description."""

from __future__ import annotations

import ctypes
import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang_eq.calibrate import calibrate_gpu, gpu
from ilang_eq.calibrate.gpu import LINE, Probes, cycle_of, dump_gpu
from ilang_eq.calibrate.gpu_source import KERNELS, THREADS, gpu_probe_source
from ilang_eq.cli.main import main
from ilang_eq.errors import DeviceError, OptionError
from ilang_eq.extract.gpu_machine import chosen_gpu, load_gpu
from tests.cuda import test_nvrtc
from tests.cuda.conftest import fake
from tests.cuda.emulator import built
from tests.cuda.fake_cupy import Fake, ndarray

__all__ = ["fake"]

PRELUDE = """
struct float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static long long ticks;
static long long clock64() { return ticks += 100; }
#define __restrict__
#define __shared__ static
#define __expf expf
"""
MATRIX_PRODUCT = "for (int n = 0; n < 4; n++) sums[k][n] += 1.0f;"
"""What stands for one of tensor cores."""
HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\)\s*(\w+)\(\s*(.*?)\)\s*\{', re.DOTALL)
TOLD = {
    "multiProcessorCount": 2, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472,
    "maxThreadsPerMultiProcessor": 512, "maxBlocksPerMultiProcessor": 32, "l2CacheSize": 8192,
}  # fmt: skip


def test_they_compile_and_fill_a_multiprocessor_once() -> None:
    if test_nvrtc._missing():
        pytest.skip("needs NVRTC")
    for arch in (80, 89, 90):
        _, usage = test_nvrtc.compiled(gpu_probe_source(), arch)
        assert usage.keys() == {f"probe_{name}" for name in KERNELS}
        for used in usage.values():
            assert used.spilled == 0
            assert used.registers * 1024 <= 65536


def on_the_cpu() -> dict[str, Callable[..., None]]:
    """The kernels as functions of a grid, a block and arguments, like CuPy's."""
    source = re.sub(r'extern "C" __global__ void __launch_bounds__\(\d+\)', "static void", gpu_probe_source())
    source = re.sub(r"asm volatile\(.*?\);", MATRIX_PRODUCT, source, flags=re.DOTALL)
    lines = [PRELUDE, "static uint64_t given[8];", source]
    for name, parameters in HEAD.findall(gpu_probe_source()):
        kinds = [parameter.rsplit(" ", 1)[0].replace("*__restrict__", "*") for parameter in parameters.split(",")]
        arguments = ", ".join(f"({kind.strip()})given[{n}]" for n, kind in enumerate(kinds))
        lines.append(f'extern "C" const char *run_{name}(int blocks, int threads, const uint64_t *numbers) {{')
        lines.append(f"memcpy(given, numbers, {len(kinds)} * sizeof *given); shim::failed = false; gridDim.x = blocks;")
        lines.append(f"shim::launch(blocks, threads, false, [](void *) {{ {name}({arguments}); }});")
        lines.append("return shim::failed ? shim::failure : nullptr; }")
    library = ctypes.CDLL(str(built("\n".join(lines))))
    return {name: kernel(library, f"run_probe_{name}") for name in KERNELS}


def kernel(library: ctypes.CDLL, name: str) -> Callable[..., None]:
    run = library[name]
    run.restype = ctypes.c_char_p

    def launch(grid: tuple[int], block: tuple[int], arguments: tuple[np.integer[Any], ...]) -> None:
        numbers = (ctypes.c_uint64 * len(arguments))(*(int(argument) for argument in arguments))
        failure = run(grid[0], block[0], numbers)
        assert failure is None, failure

    return launch


needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


def place(array: np.ndarray) -> ndarray:
    return ndarray(array)


def run(name: str, blocks: int, threads: int, *arguments: ndarray | int) -> None:
    numbers = (np.int64(a) if isinstance(a, int) else np.uint64(a.data.ptr) for a in arguments)
    on_the_cpu()[name]((blocks,), (threads,), tuple(numbers))


@needs_compiler
def test_what_the_kernels_do() -> None:
    rng = np.random.default_rng(0)
    source = place(rng.standard_normal(4 * 1000, dtype=np.float32))
    target = place(np.zeros(4 * 1000, np.float32))
    run("copy", 3, THREADS, source, target, 1000)
    np.testing.assert_array_equal(target.values, source.values)
    sums = place(np.zeros(3 * THREADS, np.float32))
    run("read_all", 3, THREADS, source, sums, 1000, 2)
    for block in sums.values.reshape(3, THREADS):
        assert block.sum() == pytest.approx(2 * source.values.sum(), rel=1e-3)
    given, cycles = place(np.full(64, 0.5, np.float32)), place(np.zeros(3, np.int64))
    run("fma", 3, THREADS, given, sums, cycles, 40)
    assert sums.values == pytest.approx(np.full(3 * THREADS, 8 * 1.0 + 1.0)), "x → x/2 + 1/2 ends at 1, eight times"
    assert (cycles.values > 0).all()
    run("special", 3, THREADS, given, sums, cycles, 4)
    assert sums.values == pytest.approx(np.full(3 * THREADS, 8 * 0.5671433 + 1.0), rel=1e-3), "x = exp(-x)"
    run("tensor", 3, THREADS, given, sums, cycles, 2)
    assert sums.values == pytest.approx(np.full(3 * THREADS, 8 * 4 * (2 * 32 + 0.5))), (
        "each sum is added to 32 times a round"
    )
    run("read_shared", 3, THREADS, given, sums, cycles, 5)
    assert sums.values == pytest.approx(np.full(3 * THREADS, 5 * 8 * 4 * 0.5))
    run("shuffle", 1, 32, sums, cycles, 3)
    np.testing.assert_array_equal(sums.values[:32], np.arange(32))


@needs_compiler
def test_a_chase_goes_on_where_it_was() -> None:
    cycle, last, cycles = place(cycle_of(50)), place(np.zeros(1, np.int64)), place(np.zeros(1, np.int64))
    seen = []
    for _ in range(50):
        run("chase", 1, 1, cycle, last, cycles, 1)
        seen.append(int(last.values[0]))
    assert sorted(seen) == [n * LINE // 4 for n in range(50)]


@needs_compiler
def test_calibrate(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the kernels to the file that the search reads, on a device of two small multiprocessors."""
    kernels = on_the_cpu()
    monkeypatch.setattr(gpu, "_loaded", lambda arch: kernels)
    monkeypatch.setattr(fake, "properties", TOLD)
    for name, value in (("ROUNDS_OF_WORK", 4), ("_COPIED_BYTES", 2**16), ("_CHASED_BYTES", 2**15), ("_LAUNCHES", 3)):
        monkeypatch.setattr(gpu, name, value)
    monkeypatch.setattr(gpu, "_CHASED_LOADS", 16)
    monkeypatch.setattr(gpu.device, "seconds", lambda call: call() or 1e-6)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["calibrate", "--target", "cuda"]) == 0
    found = chosen_gpu()
    assert found.name == "sm_90-calibrated"
    assert (found.sms, found.registers, found.l2_bytes) == (2, 65536, 8192)
    assert found.dram_gbs == pytest.approx(2 * 2**16 / 1e-6 * 1e-9, rel=1e-2)
    assert found.issue == load_gpu("sm_90").issue


def test_figures_become_a_description() -> None:
    class Pretended(Probes):
        def rate(self, name: str) -> tuple[float, float]:
            return {"fma": (127.6, 1.85), "special": (15.9, 1.9), "tensor": (20.2, 1.9)}[name]

        def shared(self) -> float:
            return 126.44

        def reading(self, size: int) -> float:
            return float(size)

        def copying(self, size: int) -> float:
            return 4123.0

        def latency(self, size: int, loads: int) -> float:
            return 260.0 if size == 4096 else 640.0

        def barrier(self, threads: int) -> float:
            return 20.0 + 2.0 * threads / 32

        def shuffling(self) -> float:
            return 24.0

        def launching(self) -> float:
            return 2.2

    found = gpu._described(Pretended({}, 2, 2), TOLD, load_gpu("sm_90"))
    assert (found.fma, found.clock_ghz, found.special, found.shared_bytes_per_clock) == (128.0, 1.85, 15.9, 126.0)
    assert (found.l2_gbs, found.dram_gbs, found.l2_latency, found.dram_latency) == (4100.0, 4120.0, 260.0, 640.0)
    assert (found.barrier, found.barrier_warp, found.shuffle, found.launch_us) == (20.0, 2.0, 24.0, 2.2)


def test_a_description_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "gpu.toml"
    written = dataclasses.replace(load_gpu("sm_80"), name="mine")
    path.write_text(dump_gpu(written))
    assert load_gpu(path) == written


def test_what_makes_no_sense_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "measured_gpu", lambda: dataclasses.replace(load_gpu("sm_80"), launch_us=0.0))
    with pytest.raises(OptionError, match=r"launch_us is 0.0"):
        calibrate_gpu(tmp_path / "gpu.toml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("arch", "name"), [(75, "sm_80"), (86, "sm_80"), (89, "sm_89"), (90, "sm_90"), (120, "sm_90")])
def test_the_default_is_of_the_architecture(arch: int, name: str) -> None:
    assert gpu._default(arch).name == name


def test_without_a_device(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.devices, fake.driver_version = -1, 0
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        calibrate_gpu()
    assert main(["calibrate", "--target", "cuda"]) == 2
    assert "no NVIDIA driver is installed\nexpected: a CUDA device" in capsys.readouterr().err
