"""The command line: every command, as text and as JSON, and what is said of mistakes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang_eq.cli import checks
from ilang_eq.cli.main import main
from ilang_eq.database.version import package_version
from ilang_eq.errors import BuildError
from ilang_eq.extract.machine import Machine, detect
from ilang_eq.lang.reading import read_component

MATMUL = 'i("ik*kj~ijk") >> i("+ijk~ij")'
SIZES = ["--shapes", "8x6", "6x4", "--threads", "1"]
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    """Run the command line; its status, and what it prints."""
    monkeypatch.setenv("ILANG_EQ_DATABASE", str(tmp_path / "results.sqlite"))

    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = main(words)
        except SystemExit as exit:
            status = int(exit.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def answer(say: Say, *words: str) -> Any:
    status, out, err = say(*words, "--json")
    assert status == 0, err
    return json.loads(out)


def test_optimize_twice(say: Say) -> None:
    status, out, _ = say("optimize", MATMUL, *SIZES)
    assert status == 0
    assert out.startswith(("i(", "(I"))
    assert "largest error" in out
    data = answer(say, "optimize", MATMUL, *SIZES)
    assert data["origin"].startswith("database")
    assert data["schedule"] == out.splitlines()[0]
    assert data["shapes"] == ["8x6", "6x4"]
    assert data["error"] < 1e-5
    assert answer(say, "optimize", MATMUL, *SIZES, "--no-database")["origin"] == "search"


def test_explain(say: Say) -> None:
    data = answer(say, "explain", 'i("^i~i")', "--shapes", "16", "--threads", "1")
    assert data["candidates"][0]["schedule"] == data["schedule"]
    _, out, _ = say("explain", 'i("^i~i")', "--shapes", "16", "--threads", "1")
    assert "from: database" in out


def test_a_file_with_its_shapes(say: Say, tmp_path: Path) -> None:
    path = tmp_path / "exp.i"
    path.write_text('# shapes: 3x5\ni("^ij~ij")\n')
    assert answer(say, "optimize", str(path))["shapes"] == ["3x5"]
    assert answer(say, "optimize", str(path), "--shapes", "4x4")["shapes"] == ["4x4"]


def test_standard_input(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO('i("^i~i")'))
    assert answer(say, "optimize", "-", "--shapes", "7")["shapes"] == ["7"]


@pytest.mark.parametrize("as_is", [True, False])
def test_run_on_files(as_is: bool, say: Say, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    files = ["--inputs", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]
    data = answer(say, "run", 'i("^ij~ij")', *files, *(["--as-is"] if as_is else []))
    assert data["outputs"][0]["shape"] == [3, 4]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.exp(x), rtol=1e-5)


def test_run_refuses_pickles(say: Say, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    status, _, err = say("run", 'i("^i~i")', "--as-is", "--inputs", str(tmp_path / "x.npy"))
    assert status == 2
    assert "x.npy cannot be read" in err


def test_bench(say: Say) -> None:
    data = answer(say, "bench", MATMUL, *SIZES, "--repeats", "3")
    assert len(data["samples"]) == 3
    assert data["gflops"] > 0
    assert len(answer(say, "bench", MATMUL, *SIZES, "--repeats", "3", "--candidates", "2")["candidates"]) == 2


def test_export(say: Say, tmp_path: Path) -> None:
    data = answer(say, "export", MATMUL, str(tmp_path / "out"), "--name", "matmul", *SIZES)
    assert {"matmul.c", "matmul.h", "matmul.json", "main.c"} <= {Path(f).name for f in data["files"]}


def test_batch_and_the_database(say: Say, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    lines = [
        {"component": MATMUL, "shapes": [[8, 6], [6, 4]], "weight": 2},
        {"component": 'i("^i~i")', "shapes": [[9]]},
    ]
    tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = answer(say, "batch", str(tasks), "--threads", "1", "--workers", "1")
    assert [row["weight"] for row in done["results"]] == [2, 1]
    assert answer(say, "db", "info")["results"] == 2
    kept = tmp_path / "kept.jsonl"
    assert answer(say, "db", "export", str(kept))["results"] == 2
    other = ["--database", str(tmp_path / "other.sqlite")]
    assert answer(say, "db", "import", str(kept), *other)["results"] == 2
    assert answer(say, "db", "list", *other) == answer(say, "db", "list")
    assert say("db", "clear", *other)[0] == 2
    assert answer(say, "db", "prune", *other)["results"] == 0
    assert answer(say, "db", "clear", "--yes", *other)["results"] == 2
    again = answer(say, "batch", str(tasks), "--threads", "1")
    assert [row["origin"].split()[0] for row in again["results"]] == ["database", "database"]
    assert "as often as they run" in say("batch", str(tasks), "--threads", "1")[1]


MODEL = """
import torch

class Block(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2, -1)

def gelu(x):
    return torch.nn.functional.gelu(x)
"""


@pytest.mark.parametrize("name", ["Block", "gelu"])
def test_trace(name: str, say: Say, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "model.py").write_text(MODEL)
    nodes = tmp_path / "nodes.json"
    data = answer(say, "trace", f"{tmp_path / 'model.py'}:{name}", "--inputs", "4x8", "--output", str(nodes))
    assert data["coverage"] == 1.0
    assert all(read_component(region["component"]) for region in data["regions"])
    assert json.loads(nodes.read_text())
    status, _, err = say("trace", f"{tmp_path / 'model.py'}:Blok", "--inputs", "4x8")
    assert status == 2
    assert "did you mean Block?" in err


def test_calibrate(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def quick(path: Path) -> Machine:
        written.append(path)
        return detect()

    monkeypatch.setattr("ilang_eq.calibrate.calibrate", quick)
    data = answer(say, "calibrate", "--output", str(tmp_path / "machine.toml"))
    assert written == [tmp_path / "machine.toml"]
    assert data["machine"]["levels"][-1]["bytes"] is None, "JSON has no infinity"
    assert "GFLOP/s a core" in say("calibrate", "--output", str(tmp_path / "machine.toml"))[1]


def test_a_healthy_machine(say: Say) -> None:
    states = {finding["subject"]: finding["state"] for finding in answer(say, "doctor")["findings"]}
    assert states["C compiler"] == states["kernel cache"] == states["database"] == "good"
    assert "broken" not in states.values()


def test_doctor_names_what_is_broken(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> tuple[str, ...]:
        raise BuildError("no C compiler", expected="apt install gcc")

    monkeypatch.setattr(checks, "find_compiler", missing)
    monkeypatch.setattr(checks, "_version", {"numpy": "1", "networkx": "1", "egglog": "12.0"}.get)
    monkeypatch.setenv("ILANG_EQ_CACHE", "/proc/nowhere")
    (tmp_path / "results.sqlite").write_text("no database" * 100)
    status, out, _ = say("doctor")
    assert status == 1
    broken = [line.split(":")[0].removeprefix("FAIL").strip() for line in out.splitlines() if line.startswith("FAIL")]
    assert broken == ["C compiler", "egglog", "kernel cache", "database"]
    assert out.count("fix:") >= 4


MISTAKES: dict[str, tuple[list[str], str]] = {
    "a command": (["optimze", MATMUL], "did you mean optimize?"),
    "an option": (["optimize", MATMUL, "--theads", "2"], "did you mean --threads?"),
    "a rule set": (["optimize", 'i("^i~i")', "--rules", "exakt"], "did you mean exact?"),
    "a file": (["optimize", "benchmarks/components/atention.i"], "did you mean benchmarks/components/attention.i"),
    "a shape": (["optimize", MATMUL, "--shapes", "3y4"], "'3y4' is no shape"),
    "shapes": (["optimize", MATMUL, "--shapes", "3x4"], "1 shapes given"),
    "text": (["optimize", 'i("ik*kj~ijkl")'], "^"),
    "a model": (["trace", "model", "--inputs", "3"], "names no model"),
    "an input": (["trace", "json:loads", "--inputs", "3:float7"], "is no input"),
    "a component after an option": (["optimize", "--shapes", "3x4", MATMUL], "components come before options"),
    "a file after an option": (
        ["db", "export", "--database", "d", "results.jsonl"],
        "come before options",
    ),
    "no file": (["db", "export"], "needs a file"),
    "outputs": (["run", 'i("^i~i")', "--as-is", "--output", "a.npy", "b.npy"], "2 files for 1 results"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, say: Say) -> None:
    words, message = MISTAKES[name]
    status, out, err = say(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_the_version(say: Say) -> None:
    status, out, _ = say("--version")
    assert status == 0
    assert out == f"ilang-eq {package_version()}\n"


@pytest.mark.parametrize("budget", [[], ["--budget", "20"]], ids=["here", "in a process"])
def test_without_egglog(budget: list[str], tmp_path: Path) -> None:
    (tmp_path / "egglog.py").write_text("raise ImportError('no egglog here')\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}", "ILANG_EQ_DATABASE": "off"}
    command = [sys.executable, "-m", "ilang_eq", "optimize", MATMUL, *SIZES, *budget]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert found.returncode == 2
    assert found.stderr.startswith("the search needs egglog")
    assert "pip install 'egglog" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_mistake_as_json(say: Say) -> None:
    status, out, _ = say("optimize", 'i("^i~i")', "--rules", "exakt", "--json")
    assert status == 2
    assert json.loads(out)["error"]["near"] == ["exact"]


def test_where_a_mistake_is_as_json(say: Say) -> None:
    status, out, _ = say("run", 'i("+ij")', "--as-is", "--json")
    assert status == 2
    error = json.loads(out)["error"]
    assert (error["kind"], error["source"], error["position"]) == ("ParseError", "+ij", 3)
    assert error["expected"] == "'~' and the output"


def test_an_expression_alone(say: Say) -> None:
    assert answer(say, "run", "+ij~i", "--as-is", "--shapes", "3x4")["schedule"] == 'i("+ij~i")'
    status, _, err = say("run", "+ij~k", "--as-is")
    assert status == 2
    assert "  +ij~k" in err


@pytest.mark.parametrize("words", [["--help"], ["explain", 'i("+ij~i")', *SIZES[:2]]])
def test_an_output_that_lacks_some_letters(words: list[str], tmp_path: Path) -> None:
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "ILANG_EQ_DATABASE": str(tmp_path / "results.sqlite")}
    said = subprocess.run([sys.executable, "-m", "ilang_eq", *words], capture_output=True, text=True, env=plain)
    assert said.returncode == 0, said.stderr


def test_a_database_that_does_not_work_is_said_of_the_database_command(say: Say, tmp_path: Path) -> None:
    (tmp_path / "results.sqlite").write_text("no database" * 100)
    status, _, err = say("db", "info")
    assert status == 2
    assert "not a database" in err


def test_a_reader_that_has_seen_enough() -> None:
    command = [sys.executable, "-m", "ilang_eq", "run", 'i("^i~i")', "--as-is"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err == b""


def test_both_names_are_the_same_program() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["ilang-eq"].partition(":")
    assert getattr(importlib.import_module(module), name) is main
    help_text = subprocess.run([sys.executable, "-m", "ilang_eq", "--help"], capture_output=True, text=True).stdout
    for word in ("optimize", "explain", "run", "bench", "trace", "batch", "db", "export", "calibrate", "doctor"):
        assert word in help_text
    assert "usage: ilang-eq" in help_text
