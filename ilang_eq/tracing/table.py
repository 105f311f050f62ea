"""Every ATen op that 𝚒 expresses. To add one, add a row to the table of its kind."""

from __future__ import annotations

from ilang_eq.tracing.call import Build
from ilang_eq.tracing.piecewise import COMPARISONS, PIECEWISE
from ilang_eq.tracing.pointwise import POINTWISE as SMOOTH
from ilang_eq.tracing.reductions import CONTRACTIONS, REDUCTIONS
from ilang_eq.tracing.views import NUMBERS, VIEWS

POINTWISE: dict[str, Build] = {**SMOOTH, **PIECEWISE, **COMPARISONS}
"""Elementwise ops, by name."""

COMPUTED: dict[str, Build] = {**POINTWISE, **REDUCTIONS, **CONTRACTIONS}
"""Ops that take expressions, by name."""

__all__ = ["COMPARISONS", "COMPUTED", "CONTRACTIONS", "NUMBERS", "POINTWISE", "VIEWS"]
