"""``calibrate_gpu``: a description of the GPU of this machine, measured in a few seconds with small kernels.

Capacities are what the driver says. The clock is that of all multiprocessors at work on multiplications; rates,
latencies and barriers are in its cycles. Bandwidths are by the device's events: of a copy far larger than the
second-level cache, and of reading half of that cache over and over. What is not measured (instructions issued, what is
left of shared memory to cache) is the default of the architecture. Whatever disturbs a kernel makes it slower, so the
least time counts.
"""

from __future__ import annotations

import dataclasses
import tempfile
from dataclasses import dataclass
from os import replace
from pathlib import Path
from typing import Any

import numpy as np

from ilang_eq.calibrate.gpu_source import CHAINS, KERNELS, READS, STEPS, TENSOR_SHARE, THREADS, gpu_probe_source
from ilang_eq.cuda import device
from ilang_eq.cuda.build import build
from ilang_eq.errors import OptionError
from ilang_eq.extract.gpu_machine import Gpu, gpu_names, load_gpu, user_gpu_file

ROUNDS = 5
ROUNDS_OF_WORK = 1024
LINE = 128
_WORD = 16
_READ_TIMES = 4
_COPIED_BYTES = 2**30
_CHASED_BYTES = 2**28
_CHASED_LOADS = 2**14
"""Of device memory in one call: all the calls together go to less than there is."""
_LAUNCHES = 500
"""Fewer than a stream takes before the processor has to wait."""
_WARPS = (1, 8)
_LEAST = 0.1
_DIGITS = 3


def calibrate_gpu(path: str | Path | None = None) -> Gpu:
    """Measure the current device, and keep its description where ``chosen_gpu`` finds it.

    Args:
        path: the TOML file to write; if None, the one that ``chosen_gpu`` reads.

    Raises:
        DeviceError: no CuPy, no device, or too little memory free on it.
        BuildError: no NVRTC.
        OptionError: what was measured makes no sense, and is not kept.
        OSError: ``path`` cannot be written.
    """
    gpu = measured_gpu()
    _write(Path(path) if path is not None else user_gpu_file(), dump_gpu(gpu))
    return gpu


def measured_gpu() -> Gpu:
    """The description of the current device. Raises DeviceError, BuildError."""
    module = device.cupy()
    number = module.cuda.runtime.getDevice()
    told = module.cuda.runtime.getDeviceProperties(number)
    arch = device.architecture(number)
    # half of what a multiprocessor holds leaves registers for all, and is plenty to keep it busy
    blocks = told["maxThreadsPerMultiProcessor"] // THREADS // 2
    probes = Probes(_loaded(arch), told["multiProcessorCount"], blocks)
    return _described(probes, told, _default(arch))


def _described(probes: Probes, told: dict[str, Any], default: Gpu) -> Gpu:
    one, many = (probes.barrier(32 * warps) for warps in _WARPS)
    barrier_warp = max((many - one) / (_WARPS[1] - _WARPS[0]), _LEAST)
    fma, clock = probes.rate("fma")
    tensor = _figure(TENSOR_SHARE * probes.rate("tensor")[0])
    cached, far = told["l2CacheSize"] // 2, max(_CHASED_BYTES, 4 * told["l2CacheSize"])
    return Gpu(
        name=f"{default.name}-calibrated",
        sms=told["multiProcessorCount"],
        clock_ghz=_figure(clock),
        issue=default.issue,
        fma=_figure(fma),
        tensor=tensor,
        warpgroup=_figure(tensor * default.warpgroup / default.tensor),
        special=_figure(probes.rate("special")[0]),
        shared_bytes_per_clock=_figure(probes.shared()),
        registers=told["regsPerMultiprocessor"],
        shared_bytes=told["sharedMemPerMultiprocessor"],
        threads=told["maxThreadsPerMultiProcessor"],
        blocks=told.get("maxBlocksPerMultiProcessor", default.blocks),
        l1_bytes=default.l1_bytes,
        l2_bytes=told["l2CacheSize"],
        l2_gbs=_figure(probes.reading(cached)),
        dram_gbs=_figure(probes.copying(_COPIED_BYTES)),
        l2_latency=_figure(probes.latency(cached, cached // LINE)),
        dram_latency=_figure(probes.latency(far, _CHASED_LOADS)),
        barrier=_figure(max(one - barrier_warp, _LEAST)),
        barrier_warp=_figure(barrier_warp),
        shuffle=_figure(probes.shuffling()),
        launch_us=_figure(probes.launching()),
    )


@dataclass(frozen=True, slots=True)
class Probes:
    """The kernels of ``gpu_source``, loaded on the current device.

    Args:
        kernels: by name.
        sms: its multiprocessors.
        blocks: how many blocks of ``THREADS`` threads run on one at once.
    """

    kernels: dict[str, Any]
    sms: int
    blocks: int

    def rate(self, name: str) -> tuple[float, float]:
        """Operations of a chain per cycle and multiprocessor, and the clock meanwhile in GHz."""
        seconds, taken = self._everywhere(name, ROUNDS_OF_WORK)
        return ROUNDS_OF_WORK * STEPS * CHAINS * THREADS * self.blocks / taken, taken / seconds * 1e-9

    def shared(self) -> float:
        """Bytes per cycle out of a multiprocessor's shared memory."""
        _, taken = self._everywhere("read_shared", ROUNDS_OF_WORK)
        return ROUNDS_OF_WORK * READS * _WORD * THREADS * self.blocks / taken

    def reading(self, size: int) -> float:
        """GB/s of reading ``size`` bytes over and over, by every multiprocessor."""
        blocks, words = self.sms * self.blocks, size // _WORD
        memory, out = _floats(4 * words), _floats(blocks * THREADS)
        seconds = self._least("read_all", blocks, THREADS, memory, out, words, _READ_TIMES)
        return words * _WORD * _READ_TIMES * blocks / seconds * 1e-9

    def copying(self, size: int) -> float:
        """GB/s of copying ``size`` bytes, reads and writes counted."""
        source, target = _floats(size // 4), _floats(size // 4)
        seconds = self._least("copy", -(-size // (4 * _WORD * THREADS)), THREADS, source, target, size // _WORD)
        return 2 * size / seconds * 1e-9

    def latency(self, size: int, loads: int) -> float:
        """Cycles from a load to the next that needs it, in ``size`` bytes, of which each call goes to so many more."""
        cycle, last, cycles = device.place([cycle_of(size // LINE)])[0], _longs(1), _longs(1)
        return self._cycles("chase", 1, 1, cycles, cycle, last, cycles, loads) / loads

    def barrier(self, threads: int) -> float:
        """Cycles of a barrier of so many threads."""
        cycles = _longs(1)
        return self._cycles("wait", 1, threads, cycles, cycles, ROUNDS_OF_WORK) / ROUNDS_OF_WORK / READS

    def shuffling(self) -> float:
        """Cycles from a shuffle to the next that needs it."""
        out, cycles = _floats(32), _longs(1)
        return self._cycles("shuffle", 1, 32, cycles, out, cycles, ROUNDS_OF_WORK) / ROUNDS_OF_WORK / READS

    def launching(self) -> float:
        """Microseconds between launches that are queued: behind a long one, lest they wait for this processor."""
        events, cycles = device.cupy().cuda, _longs(1)
        found: list[float] = []
        for _ in range(ROUNDS):
            before, after = events.Event(), events.Event()
            self._everywhere("special", 4 * ROUNDS_OF_WORK, rounds=0)
            before.record()
            for _ in range(_LAUNCHES):
                self._launch("nothing", 1, 32, cycles)
            after.record()
            after.synchronize()
            found.append(events.get_elapsed_time(before, after) / _LAUNCHES * 1e3)
        return min(found)

    def _everywhere(self, name: str, times: int, rounds: int = ROUNDS) -> tuple[float, float]:
        """The least seconds and cycles of a kernel that fills every multiprocessor once."""
        blocks = self.sms * self.blocks
        given, out, cycles = _floats(64), _floats(blocks * THREADS), _longs(blocks)
        arguments = (given, out, cycles, times)
        seconds = self._least(name, blocks, THREADS, *arguments, rounds=rounds)
        return seconds, self._cycles(name, blocks, THREADS, cycles, *arguments, rounds=rounds)

    def _least(self, name: str, blocks: int, threads: int, *arguments: Any, rounds: int = ROUNDS) -> float:
        """The least seconds of several launches, after one."""

        def call() -> None:
            self._launch(name, blocks, threads, *arguments)

        call()
        return min((device.seconds(call) for _ in range(rounds)), default=0.0)

    def _cycles(
        self, name: str, blocks: int, threads: int, cycles: Any, *arguments: Any, rounds: int = ROUNDS
    ) -> float:
        """The least cycles that the slowest block of several launches takes, by what it writes to ``cycles``."""
        found: list[float] = []
        for _ in range(rounds):
            self._launch(name, blocks, threads, *arguments)
            found.append(float(device.fetch([cycles])[0].max()))
        return min(found, default=0.0)

    def _launch(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
        numbers = tuple(np.int64(one) if isinstance(one, int) else np.uint64(one.data.ptr) for one in arguments)
        self.kernels[name]((blocks,), (threads,), numbers)


def cycle_of(lines: int) -> np.ndarray:
    """Positions of int32, one a line of ``LINE`` bytes, each with that of another, all in one random cycle."""
    step = LINE // 4
    order = np.random.default_rng(0).permutation(lines).astype(np.int32) * step
    following = np.zeros(lines * step, np.int32)
    following[order] = np.roll(order, -1)
    return following


def dump_gpu(gpu: Gpu) -> str:
    """``gpu`` as TOML, which ``load_gpu`` reads."""
    values = dataclasses.asdict(gpu)
    return "".join(
        f'{name} = "{value}"\n' if name == "name" else f"{name} = {value}\n" for name, value in values.items()
    )


def _loaded(arch: int) -> dict[str, Any]:
    """The kernels, by their names without ``probe_``."""
    found = device.load(build(gpu_probe_source(), arch), {f"probe_{name}": 0 for name in KERNELS})
    return {name.removeprefix("probe_"): kernel for name, kernel in found.items()}


def _default(arch: int) -> Gpu:
    """The description of the newest architecture that comes with the package and is no newer than ``arch``."""
    known = sorted(gpu_names())
    return load_gpu(next((name for name in reversed(known) if int(name.removeprefix("sm_")) <= arch), known[0]))


def _floats(count: int) -> Any:
    return device.place([np.ones(count, np.float32)])[0]


def _longs(count: int) -> Any:
    return device.place([np.zeros(count, np.int64)])[0]


def _figure(value: float) -> float:
    """As many digits as a measurement is good for."""
    return float(f"{value:.{_DIGITS}g}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".gpu-", delete=False, encoding="utf-8") as file:
        file.write(text)
    try:
        load_gpu(file.name)
    except OptionError:
        Path(file.name).unlink()
        raise
    replace(file.name, path)
