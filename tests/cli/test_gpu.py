"""The commands for kernels of GPUs: with a device, which a stand-in plays, and without."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from ilang_eq.cli import gpu_checks
from ilang_eq.cuda import device
from tests.cli.test_main import Say, answer, say
from tests.cuda.conftest import fake
from tests.cuda.fake_cupy import Fake

__all__ = ["fake", "say"]

SUM = 'i("ij*ij~ij") >> i("+ij~i")'
ON_A_GPU = [SUM, "--shapes", "64x48", "64x48", "--target", "cuda"]
runs = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    """A machine without a GPU."""
    fake.devices, fake.driver_version = -1, 0


@pytest.mark.usefixtures("nothing")
def test_optimize_without_a_device(say: Say, tmp_path: Path) -> None:
    file = tmp_path / "sum.cu"
    data = answer(say, "optimize", *ON_A_GPU, "--source", str(file))
    assert data["error"] is None
    assert any("blocks of" in line for line in data["launches"])
    assert "__global__" in file.read_text()
    _, out, _ = say("optimize", *ON_A_GPU)
    assert "not run: no NVIDIA driver is installed" in out


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("command", ["run", "bench"])
def test_what_needs_a_device(command: str, say: Say) -> None:
    status, _, err = say(command, *ON_A_GPU)
    assert status == 2
    assert "no NVIDIA driver is installed\nexpected: a CUDA device" in err


@pytest.mark.usefixtures("nothing")
def test_what_needs_none(say: Say) -> None:
    assert answer(say, "explain", *ON_A_GPU)["target"] == "cuda"
    status, _, err = say("export", SUM, "out", "--target", "cuda")
    assert status == 2
    assert "cannot be exported\nexpected: --target c; for the source alone" in err


@runs
def test_run_and_optimize_on_a_device(say: Say, fake: Fake, tmp_path: Path) -> None:
    fake.executes = True
    assert answer(say, "optimize", *ON_A_GPU)["error"] < 1e-5
    saved = str(tmp_path / "sum.npy")
    assert answer(say, "run", *ON_A_GPU, "--output", saved)["error"] < 1e-5
    assert np.load(saved).shape == (64,)


def test_bench_on_a_device(say: Say, fake: Fake) -> None:
    """By the device's events: the stand-in's say one millisecond for each launch that there ever was."""
    data = answer(say, "bench", *ON_A_GPU, "--repeats", "3")
    assert len(data["samples"]) == 3
    assert min(data["samples"]) >= 1e-3
    assert data["fraction"] > 0
    assert len(answer(say, "bench", *ON_A_GPU, "--repeats", "2", "--candidates", "2")["candidates"]) == 2


def test_the_gpu_to_optimise_for(say: Say, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ILANG_EQ_GPU", "sm_90")
    on_each = [answer(say, "explain", *ON_A_GPU, "--gpu", name)["predicted_seconds"] for name in ("sm_80", "sm_90")]
    assert on_each[0] > on_each[1]
    assert os.environ["ILANG_EQ_GPU"] == "sm_90"
    for words, said in (
        ([SUM, "--gpu", "sm_90"], "--gpu sm_90 says nothing about kernels for 'c'\nexpected: --target cuda"),
        ([*ON_A_GPU, "--gpu", "sm_70"], "no GPU description 'sm_70'"),
    ):
        status, _, err = say("explain", *words)
        assert status == 2
        assert said in err


def states(monkeypatch: pytest.MonkeyPatch, smi: str | None = None) -> dict[str, tuple[str, str, str]]:
    monkeypatch.setattr(shutil, "which", lambda name: smi)
    return {found.subject: (found.state, found.detail, found.fix) for found in gpu_checks.gpu()}


def smi(tmp_path: Path, text: str, status: int = 0) -> str:
    file = tmp_path / "nvidia-smi"
    file.write_text(f"#!/bin/sh\necho '{text}'\nexit {status}\n")
    file.chmod(0o755)
    return str(file)


def installed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(gpu_checks, "_installed", lambda: name)


@runs
def test_doctor_with_a_gpu(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake.executes = True
    installed(monkeypatch, "cupy-cuda13x 14.2.0")
    found = states(monkeypatch, smi(tmp_path, "NVIDIA H200, 143771 MiB, 580.159.03"))
    assert found["NVIDIA driver"][:2] == ("good", "NVIDIA H200, 143771 MiB, 580.159.03")
    assert found["CuPy"][:2] == ("good", "cupy-cuda13x 14.2.0; driver for CUDA 13.0, CuPy for 13.2")
    assert found["GPU 0"][:2] == ("good", "NVIDIA H200, sm_90, 132 multiprocessors, 150 GB")
    assert found["kernel on the GPU"][0] == "good"


def test_doctor_finds_what_is_broken(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed(monkeypatch, "cupy-cuda13x 14.2.0")
    assert states(monkeypatch)["kernel on the GPU"][0] == "broken", "a stand-in that computes nothing"
    fake.capability = "75"
    assert states(monkeypatch)["GPU 0"][2] == "kernels need at least sm_80"
    fake.devices, fake.driver_version = -1, 12040
    device.cupy.cache_clear()
    driver = smi(tmp_path, "NVIDIA H200")
    assert states(monkeypatch, driver)["CuPy"][0] == "broken"
    assert states(monkeypatch)["CuPy"][0] == "absent", "no fault where there is no GPU"
    installed(monkeypatch, "")
    assert states(monkeypatch, driver)["CuPy"] == (
        "broken", "not installed; it runs kernels on GPUs", "pip install ilang-eq[cuda]"
    )  # fmt: skip
    assert states(monkeypatch, smi(tmp_path, "no", status=9))["NVIDIA driver"][0] == "broken"
