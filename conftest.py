"""Pytest options and fixtures that need the repository's root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.golden import Golden


def pytest_addoption(parser: pytest.Parser) -> None:
    """The flag that rewrites golden files."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files with what the tests produce")


def pytest_configure(config: pytest.Config) -> None:
    """Keep kernels that tests build out of the user's cache, but between runs; no results, and no calibration."""
    os.environ["ILANG_EQ_DATABASE"] = "off"
    cache: pytest.Cache | None = getattr(config, "cache", None)
    if cache is None:
        return
    if "ILANG_EQ_CACHE" not in os.environ:
        os.environ["ILANG_EQ_CACHE"] = str(cache.mkdir("kernels"))
    os.environ["XDG_CONFIG_HOME"] = str(cache.mkdir("config"))
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(cache.mkdir("zig")))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with files under ``golden/`` beside the test."""
    return Golden(Path(request.path).parent / "golden", update=bool(request.config.getoption("--update-golden")))
