"""Hypothesis: no deadlines, because machines differ; the same examples every time where CI is set."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ilang_eq", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("ilang_eq")
