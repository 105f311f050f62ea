"""The same numbers every time: PyTorch's always, hypothesis's where CI is set. No deadlines: machines differ."""

from __future__ import annotations

import os
import sys
import zlib

import pytest
from hypothesis import settings

settings.register_profile("ilang_eq", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("ilang_eq")


def seed(name: str) -> None:
    """Which tests a process ran before must not decide what PyTorch draws."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(zlib.crc32(name.encode()))


def pytest_collectstart(collector: pytest.Collector) -> None:
    if isinstance(collector, pytest.Module):
        seed(collector.nodeid)


@pytest.fixture(autouse=True)
def _seeded(request: pytest.FixtureRequest) -> None:
    seed(request.node.nodeid)
