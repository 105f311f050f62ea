"""The workloads for GPUs: components of ``benchmarks/components`` at sizes that fill a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from benchmarks import formulas
from benchmarks.workloads import COMPONENTS, Shape
from ilang_eq.lower.ir import Precision

Against = Literal["copy", "torch", "best"]
"""What a target is a multiple of: the bandwidth of a copy, the speed of torch's own call, or of the quickest peer."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table.

    Args:
        name: what it is called; ``slug`` is the same for files.
        component: a file under ``benchmarks/components``, without its suffix.
        shapes: of the inputs.
        small: the same for a rehearsal without a device.
        formula: the same over an array library's operations.
        target: the speed to reach, as a multiple of what it is measured ``against``.
        rows: whether a sample of the result's rows needs the same rows of each input only, or all of it.
        sample: how many rows are checked.
        scale: standard deviation of the inputs.
        positive: the input that divides, if one does.
        precision: what the factors of summed products may be rounded to. So may torch's for "tf32"; against "tf32x3",
            which it has not by name, it computes in float32.
    """

    name: str
    component: str
    shapes: tuple[Shape, ...]
    small: tuple[Shape, ...]
    formula: Callable[..., Any]
    against: Against
    target: float
    rows: tuple[bool, ...]
    sample: int = 64
    scale: float = 1.0
    positive: int | None = None
    precision: Precision = "float32"

    @property
    def text(self) -> str:
        """The component, as 𝚒 text."""
        return (COMPONENTS / f"{self.component}.i").read_text(encoding="utf-8")

    @property
    def slug(self) -> str:
        """The name of its files."""
        return self.name.replace(" ", "-")

    @property
    def bytes(self) -> int:
        """Of all inputs."""
        return 4 * sum(map(prod, self.shapes))


def _named(name: str, precision: Precision) -> str:
    return name if precision == "float32" else f"{name} {precision}"


def _attention(width: int, precision: Precision = "float32") -> Case:
    return Case(
        _named(f"attention 16x4096x{width}", precision),
        "attention_heads",
        ((16, 4096, width),) * 3,
        ((3, 40, 8),) * 3,
        formulas.attention,
        "best",
        1.2,
        (True, True, True),
        sample=2,
        scale=width**-0.25,
        precision=precision,
    )


def _matmul(size: int, precision: Precision = "float32", target: float = 0.8) -> Case:
    return Case(
        _named(f"matmul {size}", precision),
        "matmul",
        ((size, size),) * 2,
        ((70, 50), (50, 60)),
        formulas.matmul,
        "torch",
        target,
        (True, False),
        precision=precision,
    )


def _cross_entropy(precision: Precision) -> Case:
    return Case(
        _named("cross-entropy 8192x4096x128K", precision),
        "linear_logsumexp",
        ((8192, 4096), (131072, 4096)),
        ((40, 16), (70, 16)),
        formulas.linear_logsumexp,
        "best",
        3.0,
        (True, False),
        scale=0.125,
        precision=precision,
    )


CASES = (
    Case("pointwise 256M", "pointwise", ((2**28,),) * 4, ((1000,),) * 4, formulas.pointwise, "copy", 0.9, (True,) * 4,
         sample=2**20, positive=3),
    Case("softmax 16384", "softmax", ((16384, 16384),), ((30, 50),), formulas.softmax, "copy", 0.9, (True,)),
    _matmul(4096),
    _matmul(8192),
    _matmul(4096, "tf32", 0.6),
    _matmul(8192, "tf32", 0.6),
    _matmul(4096, "tf32x3", 1.0),
    _matmul(8192, "tf32x3", 1.0),
    _attention(64),
    _attention(128),
    Case("soft-cap 16x4096x64", "attention_heads_softcap", ((16, 4096, 64),) * 3, ((3, 40, 8),) * 3,
         formulas.heads_softcap, "best", 1.2, (True, True, True), sample=2),
    _attention(64, "tf32x3"),
    _attention(128, "tf32x3"),
    Case("gaussian sum 65536x3", "gaussian_sum", ((65536, 3), (65536, 3), (65536,)), ((50, 3), (60, 3), (60,)),
         formulas.gaussian_sum, "best", 3.0, (True, False, False)),
    _cross_entropy("float32"),
    _cross_entropy("tf32x3"),
)  # fmt: skip


def chosen(words: str) -> tuple[Case, ...]:
    """The cases whose names contain ``words``. Raises SystemExit if none does."""
    found = tuple(case for case in CASES if words in case.name)
    if not found:
        raise SystemExit(f"no workload {words!r}; there are: {', '.join(case.name for case in CASES)}")
    return found
