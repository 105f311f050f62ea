"""The targets, by name: what turns loop IR into something to call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ilang_eq.errors import OptionError
from ilang_eq.lang.component import Component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.empty import where_empty
from ilang_eq.lower.ir import Precision, Program

if TYPE_CHECKING:
    from ilang_eq.c.kernel import CKernel
    from ilang_eq.cuda.kernel import CudaKernel

Kernel: TypeAlias = "CKernel | CudaKernel"
"""What a component compiles to: called with arrays, it has its ``source`` without being built."""


@dataclass(frozen=True, slots=True)
class Target:
    """A backend.

    Args:
        name: what users call it.
        make: a kernel of a program, for so many threads (None for all; a device uses what it has), and of the program
            for axes without elements, if that is another one.
        place: NumPy arrays as the kernel takes them: on the device.
        fetch: what a kernel returned, as NumPy arrays.
        seconds: how long a call of it takes.
    """

    name: str
    make: Callable[[Program, int | None, Callable[[], Program | None]], Kernel]
    place: Callable[[Sequence[np.ndarray]], list[Any]]
    fetch: Callable[[Sequence[Any]], list[np.ndarray]]
    seconds: Callable[[Callable[[], object]], float]


def _arrays(results: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(result) for result in results]


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _c() -> Target:
    from ilang_eq.c.kernel import CKernel

    return Target("c", CKernel, list, _arrays, _seconds)


def _cuda() -> Target:
    from ilang_eq.cuda import device
    from ilang_eq.cuda.kernel import CudaKernel

    return Target("cuda", CudaKernel, device.place, device.fetch, device.seconds)


TARGETS: dict[str, Callable[[], Target]] = {"c": _c, "cuda": _cuda}
"""By name; a backend is imported when its kernels are first asked for, which a search never does."""

PRECISIONS: dict[str, tuple[Precision, ...]] = {"c": ("float32",), "cuda": ("float32", "tf32", "tf32x3")}
"""By target: how the factors of summed products may be rounded."""


def compile_component(
    component: Component,
    target: str = "c",
    threads: int | None = None,
    precision: str = "float32",
    meaning: Component | None = None,
) -> Kernel:
    """Lower ``component`` as it is scheduled and make a kernel of it; it serves any shapes.

    Args:
        component: what is lowered.
        target: what for.
        threads: how many a call may use.
        precision: how the factors of summed products may be rounded.
        meaning: what ``component`` was rewritten from; None if it was not. It is what runs where an axis is empty.

    Raises:
        OptionError: an unknown target, a precision that it does not have, or fewer than one thread.
        ScheduleError, ShapeError: a component that cannot be lowered.
    """
    granted = checked_precision(target, precision)
    program = replace(lower(wire(component)), precision=granted)

    return TARGETS[target]().make(program, threads, lambda: where_empty(program, component, meaning))


def checked_target(target: str) -> str:
    """``target`` if there is one. Raises OptionError."""
    if target not in TARGETS:
        raise OptionError(f"no target {target!r}", legal=tuple(TARGETS))
    return target


def checked_precision(target: str, precision: str) -> Precision:
    """``precision`` if ``target``, which is checked too, has it. Raises OptionError."""
    legal = PRECISIONS[checked_target(target)]
    for one in legal:
        if one == precision:
            return one
    raise OptionError(f"no precision {precision!r} for the target {target!r}", legal=legal)
