"""Every ATen op that 𝚒 expresses. To add one, add a row to the table of its kind."""

from __future__ import annotations

from ilang_eq.tracing.call import Build
from ilang_eq.tracing.pointwise import POINTWISE
from ilang_eq.tracing.reductions import CONTRACTIONS, REDUCTIONS
from ilang_eq.tracing.views import NUMBERS, VIEWS

COMPUTED: dict[str, Build] = {**POINTWISE, **REDUCTIONS, **CONTRACTIONS}
"""Ops that take expressions, by name."""

__all__ = ["COMPUTED", "CONTRACTIONS", "NUMBERS", "POINTWISE", "VIEWS"]
