"""Waiting for moments in which nobody else uses the core.

Who shares a machine shares its cores: for milliseconds or minutes, products take up to twice as long, and contestants
do not suffer alike, as the neighbour takes caches as well as time. A probe, a product that stays in the caches, tells
such moments from calm ones; how fast it can be is learnt as one goes. It takes as many threads as what is timed: two
processors of a virtual machine may be one core for a while, which a single thread does not see.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from ilang_eq.lang.component import Component, I, i

NEAR = 1.15
"""A probe that takes this many times as long as the fastest was calm."""
_CALLS = 8

_PRODUCT: Component = (I | i("+kj~kj|j:16|jkj'")) >> i("ik*kj~kij|i:6,j:16|jiki'j'") >> i("+kij~ij|i:6,j:16|jiki'j'0")


@cache
def _product(threads: int) -> Callable[[], object]:
    kernel = _PRODUCT.compile("c", threads=threads)
    extent = 192 if threads == 1 else 384
    a = np.ones((extent, extent), np.float32)
    out = np.empty_like(a)
    return lambda: kernel(a, a, out=out)


def product_seconds(threads: int = 1) -> float:
    """Of the fastest of a few products of 192³, or of 384³ by several threads."""
    product, times = _product(threads), list[float]()
    for _ in range(_CALLS):
        start = time.perf_counter()
        product()
        times.append(time.perf_counter() - start)
    return min(times)


@dataclass(slots=True)
class Calm:
    """Waits until a probe is as fast as it has been.

    Args:
        patience_s: seconds after which it waits no more.
        probe: seconds that something takes whose time is nobody's but the core's.
        fastest: the least that it has taken yet.
    """

    patience_s: float
    probe: Callable[[], float] = product_seconds
    fastest: float = float("inf")

    def now(self) -> bool:
        """Whether this moment is calm."""
        seconds = self.probe()
        self.fastest = min(self.fastest, seconds)
        return seconds <= NEAR * self.fastest

    def wait(self) -> bool:
        """Whether a calm moment came in time; if so, it is now."""
        end = time.monotonic() + self.patience_s
        while not (calm := self.now()) and time.monotonic() < end:
            pass
        return calm
