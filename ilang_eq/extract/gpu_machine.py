"""Descriptions of GPUs for the cost model, one TOML file for each architecture.

Units: per multiprocessor (SM) and clock for rates, bytes for capacities, GB/s for bandwidths, cycles for latencies.
The figures are published microbenchmarks, not data sheets: each file says whose.

Invariants (``load_gpu`` enforces them):
  * every field is there, and positive
"""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ilang_eq.errors import OptionError
from ilang_eq.extract.machine import Level, Machine, Rates, config_directory

_SHIPPED = Path(__file__).parent / "gpus"
VARIABLE = "ILANG_EQ_GPU"
"""Names the GPU to optimise for: a description that comes with the package, or a file."""
_DEFAULT = "sm_90"
_FAR = 1 / 8
"""The share of outer levels' bandwidth that the additive model is told of. It adds up what a GPU overlaps and does not
see what waits; with the whole of it, no schedule that keeps scores out of memory was among its proposals."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the cost model sees it.

    Args:
        name: of the description.
        sms: multiprocessors.
        clock_ghz: sustained clock.
        issue: warp instructions an SM issues per clock.
        fma: fused multiply-adds of float32 per clock and SM.
        tensor: multiply-adds of tf32 factors per clock and SM, by ``mma.sync``.
        warpgroup: the same by ``wgmma``, where there is that; else no more.
        special: exponentials, logarithms, reciprocals per clock and SM.
        shared_bytes_per_clock: out of shared memory and L1, per SM.
        registers: 32-bit registers of an SM.
        shared_bytes: shared memory of an SM that blocks can have together.
        threads: threads that an SM holds at most.
        blocks: blocks that an SM holds at most.
        l1_bytes: what is left of shared memory to cache, per SM.
        l2_bytes, l2_gbs: capacity and bandwidth of the second-level cache.
        dram_gbs: bandwidth of a copy, measured.
        l2_latency, dram_latency: from load to use.
        barrier: a barrier of one warp; every warp adds ``barrier_warp``.
        barrier_warp: see ``barrier``.
        shuffle: from a shuffle to the use of its result.
        launch_us: between queued launches.
    """

    name: str
    sms: int
    clock_ghz: float
    issue: float
    fma: float
    tensor: float
    warpgroup: float
    special: float
    shared_bytes_per_clock: float
    registers: int
    shared_bytes: int
    threads: int
    blocks: int
    l1_bytes: int
    l2_bytes: int
    l2_gbs: float
    dram_gbs: float
    l2_latency: float
    dram_latency: float
    barrier: float
    barrier_warp: float
    shuffle: float
    launch_us: float


def gpu_names() -> tuple[str, ...]:
    """The descriptions that come with the package."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir()))


def load_gpu(name_or_path: str | Path) -> Gpu:
    """The GPU called ``name_or_path``, or described by the TOML file there.

    Raises:
        OptionError: no such GPU, or a faulty description.
    """
    known = str(name_or_path) in gpu_names()
    source = _SHIPPED / f"{name_or_path}.toml" if known else Path(name_or_path)
    if not source.is_file():
        message = f"no GPU description {str(name_or_path)!r}"
        raise OptionError(message, expected="the path of a TOML file, or a name", legal=gpu_names())
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{source} is not TOML: {error}") from error
    if "tensor" in data:
        data.setdefault("warpgroup", data["tensor"])  # descriptions may be older than that field
    fields = [field.name for field in dataclasses.fields(Gpu)]
    faults = [f"{name} is missing" for name in fields if name not in data]
    faults += [f"{name} is unknown" for name in data if name not in fields]
    faults += [f"{k} is {v!r}, expected a positive number" for k, v in data.items() if k != "name" and not _positive(v)]
    if faults:
        raise OptionError(f"faulty GPU description {source}: {'; '.join(faults)}", legal=gpu_names())
    return Gpu(**data)


def chosen_gpu() -> Gpu:
    """The GPU to optimise for. No device is asked.

    That is what ``$ILANG_EQ_GPU`` names, a description or a file; else what ``calibrate`` found out about the GPU of
    this machine; else the default.

    Raises:
        OptionError: ``$ILANG_EQ_GPU`` names nothing, or a faulty description.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return load_gpu(named)
    return load_gpu(user_gpu_file() if user_gpu_file().is_file() else _DEFAULT)


def user_gpu_file() -> Path:
    """Where the description of this machine's GPU is kept.

    ``$ILANG_EQ_GPU`` if that is set and no description that comes with the package; else in ``$XDG_CONFIG_HOME``.
    """
    named = os.environ.get(VARIABLE)
    if named and named not in gpu_names():
        return Path(named)
    return config_directory() / "gpu.toml"


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def as_processor(gpu: Gpu) -> Machine:
    """``gpu`` as a processor for the additive model: an SM as a core, a warp as a vector, shared memory as L1."""
    lanes = gpu.fma * gpu.clock_ghz
    special = gpu.special * gpu.clock_ghz
    rates = Rates(
        add=lanes, mul=lanes, fma=lanes, div=special / 2, exp=special, ln=special, pow=special / 2, max=lanes / 2,
        compare=lanes / 2,
    )  # fmt: skip
    clock = gpu.clock_ghz
    l2, dram = _FAR * gpu.l2_gbs, _FAR * gpu.dram_gbs
    levels = (
        Level("shared", gpu.shared_bytes, 64, False, gpu.shared_bytes_per_clock * clock,
              gpu.shared_bytes_per_clock * clock * gpu.sms, 1.0),
        Level("L2", gpu.l2_bytes, 64, True, l2 / gpu.sms, l2, gpu.l2_latency / clock / 32),
        Level("memory", math.inf, 64, True, dram / gpu.sms, dram, gpu.dram_latency / clock / 32),
    )  # fmt: skip
    return Machine(
        name=gpu.name, cores=gpu.sms, vector_bits=1024, vector_registers=255, clock_ghz=clock, issue_width=gpu.issue,
        chain_cycles=1.0, kernel_us=gpu.launch_us, fork_join_us=0.001, vector=rates, scalar=rates, levels=levels,
    )  # fmt: skip
