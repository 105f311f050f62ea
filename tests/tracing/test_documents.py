"""The guide's block about PyTorch, which is not run with the others because PyTorch is optional."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is optional")

GUIDE = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_guide_runs() -> None:
    (block,) = re.findall(r"```py\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    assert not names["traced"].coverage.rows
    assert len(names["traced"].regions) == 3
