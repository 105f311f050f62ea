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

SKIP_NAN = frozenset(
    f"aten.{name}"
    for name in (
        *("amax.default", "amin.default", "max.default", "max.dim", "min.default", "min.dim"),
        *("maximum.default", "minimum.default", "relu.default", "hardtanh.default", "where.self"),
        *("clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_max.default"),
        *("elu.default", "celu.default", "selu.default", "leaky_relu.default", "prelu.default"),
    )
)
"""Ops that PyTorch makes NaN of NaN, and that skip it here, as 𝚒's maximum and minimum do."""

__all__ = ["COMPARISONS", "COMPUTED", "CONTRACTIONS", "NUMBERS", "POINTWISE", "SKIP_NAN", "VIEWS"]
