"""The benchmark for GPUs, as far as it goes without one."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gpu_all, gpu_overhead, gpu_ranking
from benchmarks.gpu import RESULTS, scheduled
from benchmarks.gpu_cases import CASES, Case, chosen
from benchmarks.gpu_report import reached_of, table
from benchmarks.ranking import Experiment
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire
from tests.cuda.conftest import fake
from tests.cuda.fake_cupy import Fake

torch = pytest.importorskip("torch")
__all__ = ["fake"]


@pytest.fixture(autouse=True)
def _gradients() -> Iterator[None]:
    """The benchmark turns gradients off for good, in its process."""
    with torch.enable_grad():
        yield


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.slug)
def test_shapes_agree_and_samples_are_of_rows(case: Case) -> None:
    """The rows of a result that ``rows`` says are computed from a sample of the inputs, are."""
    component = read_component(case.text)
    for shapes in (case.shapes, case.small):
        infer(wire(component)).bind(shapes)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in case.small]
    if case.positive is not None:
        arrays[case.positive] = np.abs(arrays[case.positive]) + 1
    rows = [0, 2]
    some = [array[rows] if sampled else array for array, sampled in zip(arrays, case.rows, strict=True)]
    np.testing.assert_allclose(component.interpret(*some), component.interpret(*arrays)[rows], rtol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.slug)
def test_schedules_that_are_kept_compute_the_same(case: Case) -> None:
    rng = np.random.default_rng(0)
    arrays = [np.abs(rng.standard_normal(shape, dtype=np.float32)) + 1 for shape in case.small]
    kept = scheduled(case, RESULTS / "gpu_schedules")
    np.testing.assert_allclose(kept.interpret(*arrays), read_component(case.text).interpret(*arrays), rtol=1e-5)


def test_no_such_case() -> None:
    with pytest.raises(SystemExit, match="no workload 'convolution'; there are: pointwise 256M"):
        chosen("convolution")


def test_a_schedule_that_does_not_compile_keeps_none_of_the_others_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.gpu import main

    broken, *others = chosen("matmul 4096")
    (tmp_path / f"{broken.slug}.i").write_text('i("ik*kj~ijk|')
    for case in others:
        (tmp_path / f"{case.slug}.i").write_text((RESULTS / "gpu_schedules" / f"{case.slug}.i").read_text())
    assert main(["--dry-run", "--only", "matmul 4096", "--schedules", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"{broken.name}: ")
    assert all(f"{case.name}\n" in said for case in others)
    assert "0 bytes spilled" in said


def test_a_rehearsal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One workload, from its schedule to the table, in a process of its own, on the processor."""
    from benchmarks.gpu import main

    case = next(case for case in CASES if case.component == "pointwise")
    (tmp_path / f"{case.slug}.i").write_text(case.text)
    output = tmp_path / "gpu.json"
    status = main(["--rehearse", "--only", case.name, "--schedules", str(tmp_path), "--output", str(output)])
    (record,) = json.loads(output.read_text())["cases"]
    assert status == 0, record
    assert record["right"]
    assert {"ours", "torch", "torch.compile", "torch, in place"} <= record["times"].keys()
    assert record["bytes"] == 5 * 4 * 2**28
    assert case.name in capsys.readouterr().out


def record(**more: object) -> dict[str, object]:
    times = {"ours": 2.0, "torch": 3.0, "torch.compile": 1.0}
    known = {"predicted": 1.0, "bytes": 8e12, "operations": 1e13, "errors": {"ours": 1e-6}, "failed": {}}
    return known | {"times": {name: {"median": time} for name, time in times.items()}} | more


def test_what_is_reached() -> None:
    against = {case.against: case for case in CASES}
    assert reached_of(against["copy"], record(), 5000.0) == pytest.approx(0.8)
    assert reached_of(against["torch"], record(), 5000.0) == 1.5
    assert reached_of(against["best"], record(), 5000.0) == 0.5
    assert reached_of(against["best"], record(times={}), 5000.0) is None


def test_the_table_says_who_failed() -> None:
    known = [record(name=CASES[0].name, failed={"Triton": "no compiler"}), {"name": CASES[1].name, "fault": "cut off"}]
    lines = table({"copy_gbs": 4000.0, "cases": known}, CASES).splitlines()
    assert f"{CASES[0].name}: Triton failed: no compiler" in lines
    assert f"{CASES[1].name}: cut off" in lines


def test_every_step_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = (sys.executable, "-c")
    chosen = (
        gpu_all.Step("one", (*python, "print('well')"), 30),
        gpu_all.Step("two", (*python, "raise SystemExit('badly')"), 30),
        gpu_all.Step("three", (*python, "import time; time.sleep(60)"), 1),
        gpu_all.Step("four", (*python, "no"), 30, ()),
    )
    assert gpu_all.run(chosen, tmp_path, 60, rehearse=True) == 1
    outcomes = json.loads((tmp_path / "gpu_all.json").read_text())
    assert [(o["name"], o["state"]) for o in outcomes] == [
        ("one", "good"), ("two", "failed"), ("three", "cut off"), ("four", "left out")
    ]  # fmt: skip
    assert (tmp_path / "two.log").read_text().strip() == "badly"
    assert "one: good" in capsys.readouterr().out


def test_calls_whose_overhead_is_timed(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    gpu_overhead.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        "CuPy arrays, out=", "CuPy arrays", "CuPy arrays, a graph's replay"
    ]  # fmt: skip
    assert len(fake.launched) == 3 * (25 * 400 + 1)


def test_no_step_begins_when_the_time_is_spent(tmp_path: Path) -> None:
    started = time.monotonic()
    gpu_all.run([gpu_all.Step("one", ("sleep", "60"), 60)], tmp_path, 0.0, rehearse=False)
    assert time.monotonic() - started < 30
    assert json.loads((tmp_path / "gpu_all.json").read_text())[0]["state"] == "left out"


def test_the_steps_name_what_there_is(tmp_path: Path) -> None:
    found = gpu_all.steps(tmp_path, tmp_path)
    assert [step.name for step in found if step.name not in ("memcheck", "racecheck")] == [
        "doctor", "schedules", "tests", "calibrate", "overhead", "figures"
    ]  # fmt: skip
    assert (gpu_all.ROOT / gpu_all._TESTS).exists()


def test_schedules_for_a_gpu_are_sampled_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Timings that are what the model expects are ranked without regret; a schedule without a time does not count."""
    assert gpu_ranking.main(["sample", str(tmp_path), "softmax-16384", "--size", "6"]) == 0
    (path,) = tmp_path.iterdir()
    sampled = Experiment.read(path)
    assert 2 < len(sampled.schedules) <= 6
    timed = tuple(replace(s, samples=(s.predicted, s.predicted)) for s in sampled.schedules[1:])
    replace(sampled, schedules=(sampled.schedules[0], *timed)).save(path)
    capsys.readouterr()
    assert gpu_ranking.main(["judge", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"softmax 16384 +{len(timed)} top-1 +0.0%", said)
