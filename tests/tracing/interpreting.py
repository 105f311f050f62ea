"""Tracing with the float64 interpreter in place of kernels: no search, no compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from ilang_eq.c.arrays import Floats
from ilang_eq.lang.component import Component
from ilang_eq.tracing.capture import capture
from ilang_eq.tracing.kernels import Kernels
from ilang_eq.tracing.region import Region
from ilang_eq.tracing.traced import Traced


class Interpreted:
    """A component as a kernel would be."""

    def __init__(self, component: Component) -> None:
        self.component = component

    def __call__(self, *arrays: Floats, out: Floats) -> None:
        for array in arrays:
            assert isinstance(array, np.ndarray)
            assert array.dtype == np.float32
            assert array.flags.c_contiguous
        result = self.component.interpret(*arrays)
        assert isinstance(result, np.ndarray)
        assert result.shape == out.shape
        out[...] = result

    def prepare(self, **constants: Floats) -> Callable[..., None]:
        """With some inputs given."""

        def run(*arrays: Floats, out: Floats) -> None:
            others = iter(arrays)
            names = [f"in{k}" for k in range(self.component.inputs)]
            self(*(constants[name] if name in constants else next(others) for name in names), out=out)

        return run


class Interpreting(Kernels):
    """Remembers what was asked for, with the reason, and solves nothing."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked: list[tuple[int, str]] = []
        self.made: dict[Component, Interpreted] = {}

    def solve(self, regions: Iterable[Region], sizes: Mapping[str, int], why: str) -> None:
        self.asked.append((len(list(regions)), why))

    def kernel(self, region: Region, sizes: Mapping[str, int]) -> Any:
        return self.made.setdefault(region.component, Interpreted(region.component))


def interpreted(function: Callable[..., Any], *args: Any) -> Traced:
    """``function`` traced for inputs like ``args``."""
    return Traced(capture(function, args, {}), Interpreting())


def assert_close(found: Any, right: Any, *, rtol: float = 1e-5, atol: float = 1e-5, equal_nan: bool = False) -> None:
    """As PyTorch's, but ``atol`` is of the largest magnitude, because that is what is lost where sums cancel."""
    leaves = (leaf.detach() for leaf in tree_leaves(right) if isinstance(leaf, torch.Tensor))
    floats = [leaf for leaf in leaves if leaf.is_floating_point() and leaf.numel()]
    scale = max([1.0, *(float(leaf.nan_to_num(0, 0, 0).abs().max()) for leaf in floats)])
    torch.testing.assert_close(found, right, rtol=rtol, atol=atol * scale, equal_nan=equal_nan)


def agrees(function: Callable[..., Any], *args: Any, regions: int | None = 1, tolerance: float = 1e-5) -> Traced:
    """Traced, ``function`` gives the same result; with nothing but views outside of so many regions."""
    traced = interpreted(function, *args)
    with torch.no_grad():
        assert_close(traced(*args), function(*args), rtol=tolerance, atol=tolerance)
    if regions is not None:
        assert not traced.coverage.rows, str(traced.coverage)
        assert len(traced.regions) == regions
    return traced
