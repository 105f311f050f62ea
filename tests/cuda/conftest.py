from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ilang_eq.cuda import device, kernel
from tests.cuda.fake_cupy import Fake, stand_in_build


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Fake]:
    """A stand-in for CuPy and a device."""
    found = Fake()
    monkeypatch.setitem(sys.modules, "cupy", found.module())
    monkeypatch.setattr(kernel, "build", stand_in_build(tmp_path))
    device.cupy.cache_clear()
    yield found
    device.cupy.cache_clear()
