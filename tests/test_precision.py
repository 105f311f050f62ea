"""A precision is granted in one place, reaches the kernel, and keeps results apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from ilang_eq import Component, i, optimize, optimize_many
from ilang_eq.cli.main import main
from ilang_eq.errors import OptionError
from ilang_eq.kept import key_of
from ilang_eq.optimizer import models_of
from ilang_eq.request import checked_request
from ilang_eq.workers.messages import read_request, request_as_json

PRODUCT = i("ik*kj~ijk") >> i("+ijk~ij")
SHAPES = [(512, 512), (512, 512)]


def test_it_reaches_the_kernel() -> None:
    found = optimize(PRODUCT, SHAPES, target="cuda", precision="tf32", database=False)
    assert found.precision == "tf32"
    assert "mma.sync" in found.source
    assert found.source == found.component.compile("cuda", precision="tf32").source
    assert "factors of summed products as tf32" in found.explain()
    assert any("tensor cores" in term and seconds > 0 for term, seconds in found.best.cost.terms)
    assert "mma.sync" not in found.component.compile("cuda").source


@pytest.mark.parametrize(
    ("target", "precision", "said"),
    [
        ("cuda", "half", "no precision 'half' for the target 'cuda'\nlegal: float32, tf32, tf32x3"),
        ("c", "tf32", "no precision 'tf32' for the target 'c'\nlegal: float32"),
        ("metal", "tf32", "no target 'metal'\nlegal: c, cuda"),
    ],
)
def test_one_that_the_target_does_not_have(target: str, precision: str, said: str) -> None:
    with pytest.raises(OptionError) as raised:
        optimize(PRODUCT, SHAPES, target=target, precision=precision)
    assert str(raised.value) == said
    with pytest.raises(OptionError) as raised:
        PRODUCT.compile(target, precision=precision)
    assert str(raised.value) == said


def test_results_of_different_precision_are_kept_apart(tmp_path: Path) -> None:
    file = tmp_path / "results.sqlite"

    def found(precision: str) -> tuple[str, str]:
        best = optimize(PRODUCT, SHAPES, target="cuda", precision=precision, database=file)
        return best.report.origin.split(" ")[0], best.precision

    assert [found(precision) for precision in ("tf32", "float32", "tf32x3")] == [
        ("search", "tf32"), ("search", "float32"), ("search", "tf32x3")
    ]  # fmt: skip
    assert [found(precision) for precision in ("tf32", "tf32x3")] == [("database", "tf32"), ("database", "tf32x3")]


def test_a_worker_is_told() -> None:
    request = checked_request(PRODUCT, SHAPES, target="cuda", precision="tf32x3")
    again = read_request(request_as_json(request))
    assert again.precision == "tf32x3"
    assert key_of(again, models_of(again).machine) == key_of(request, models_of(request).machine)


def test_a_batch_is_told(tmp_path: Path) -> None:
    tasks: list[tuple[Component, list[tuple[int, ...]]]] = [(PRODUCT, [(64, 64), (64, 64)])]
    batch = optimize_many(tasks, target="cuda", precision="tf32", database=tmp_path / "results.sqlite", workers=1)
    assert batch.best[0] is not None
    assert batch.best[0].precision == "tf32"


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["explain", str(PRODUCT), "--shapes", "512x512", "512x512", "--target", "cuda", "--no-database"]
    assert main([*given, "--precision", "tf32"]) == 0
    assert "factors of summed products as tf32" in capsys.readouterr().out
    assert main([*given, "--precision", "bf16"]) != 0
    assert "legal: float32, tf32, tf32x3" in capsys.readouterr().err
