"""What ``doctor`` says of GPUs: the driver, the devices, CuPy, NVRTC, and whether a kernel runs."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from ilang_eq.cli.finding import Finding
from ilang_eq.errors import BuildError, DeviceError, ILangError

_INSTALL = "pip install ilang-eq[cuda]"
_TRIAL = "__device__ int trial;\n"
_OLDEST = 80


def gpu() -> Iterator[Finding]:
    """Every finding about GPUs; on a machine without one, that it has none, and whether kernels can be built."""
    driver = _driver()
    yield driver
    yield _nvrtc()
    yield from _devices(needed=driver.state == "good")


def _driver() -> Finding:
    command = shutil.which("nvidia-smi")
    if command is None:
        return Finding("NVIDIA driver", "absent", "nvidia-smi is not on the path; kernels for GPUs cannot run here")
    query = [command, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("NVIDIA driver", "broken", f"nvidia-smi fails: {error}", "reinstall the NVIDIA driver")
    return Finding("NVIDIA driver", "good", "; ".join(told.splitlines()))


def _nvrtc() -> Finding:
    from ilang_eq.cuda.build import compiled, nvrtc_version

    try:
        version = nvrtc_version()
        compiled(_TRIAL, _OLDEST)
    except BuildError as error:
        return Finding("NVRTC", "absent", error.message, error.expected or _INSTALL)
    return Finding("NVRTC", "good", f"{version}, compiles for sm_{_OLDEST}")


def _devices(needed: bool) -> Iterator[Finding]:
    """CuPy and what it sees. Without a driver, it is no fault that there is none of it."""
    from ilang_eq.cuda.device import cupy

    installed = _installed()
    if not installed:
        yield Finding("CuPy", "broken" if needed else "absent", "not installed; it runs kernels on GPUs", _INSTALL)
        return
    try:
        module = cupy()
    except DeviceError as error:
        yield Finding("CuPy", "broken" if needed else "absent", f"{installed}: {error.message}", error.expected or "")
        return
    runtime = module.cuda.runtime
    versions = f"driver for CUDA {_cuda(runtime.driverGetVersion())}, CuPy for {_cuda(runtime.runtimeGetVersion())}"
    yield Finding("CuPy", "good", f"{installed}; {versions}")
    for number in range(runtime.getDeviceCount()):
        yield _device(module, number)
    yield _trial(module)


def _device(module: Any, number: int) -> Finding:
    found = module.cuda.runtime.getDeviceProperties(number)
    name, size = found["name"].decode(errors="replace"), found["totalGlobalMem"] / 2**30
    arch = 10 * found["major"] + found["minor"]
    detail = f"{name}, sm_{arch}, {found['multiProcessorCount']} multiprocessors, {size:.0f} GB"
    if arch < _OLDEST:
        return Finding(f"GPU {number}", "broken", detail, f"kernels need at least sm_{_OLDEST}")
    return Finding(f"GPU {number}", "good", detail)


def _trial(module: Any) -> Finding:
    """A kernel, built and run."""
    import numpy as np

    from ilang_eq.backends import compile_component
    from ilang_eq.lang.reading import read_component

    numbers = np.arange(4, dtype=np.float32)
    try:
        kernel = compile_component(read_component('i("i*2.0~i")'), "cuda")
        result = module.asnumpy(kernel(module.asarray(numbers)))
    except ILangError as error:
        return Finding("kernel on the GPU", "broken", error.message, error.expected or "")
    if not np.array_equal(result, 2 * numbers):
        return Finding("kernel on the GPU", "broken", f"2 * {numbers} came to {result}", "update driver and CuPy")
    return Finding("kernel on the GPU", "good", "built, run, and right")


def _installed() -> str:
    """The distribution of CuPy, and its version."""
    for found in importlib.metadata.distributions():
        if re.fullmatch(r"cupy(-cuda\d+x)?", found.metadata["Name"] or ""):
            return f"{found.metadata['Name']} {found.version}"
    return ""


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
