"""The table of register tiles."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from benchmarks.register_tiles import FORMS, MOST, measured, table, text
from ilang_eq.extract.machine import load
from ilang_eq.lang.reading import read_component

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
MACHINE = load("x86_64_zen4")


@pytest.mark.parametrize("form", sorted(FORMS))
def test_each_form_sums_over_its_steps(form: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 5)), rng.standard_normal((3, 4))
    pairs = (x[:, :, None] - y[:, None]) ** 2 if form.startswith("squares") else x[:, :, None] * y[:, None]
    found = read_component(text(form, 2, 4)).interpret(x if form.endswith("across") else x.T, y)
    np.testing.assert_allclose(found, pairs.sum(axis=0))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_step_takes_some_time(form: str) -> None:
    assert min(measured(form, 7, 16, 5, 1, MACHINE)) > 0.0


def test_tiles_that_are_too_large_are_left_out() -> None:
    *_, small, large = table("product", 2, 1, MACHINE, (1, 2), (16, MOST)).splitlines()
    assert "|  |" in large
    assert "|  |" not in small
