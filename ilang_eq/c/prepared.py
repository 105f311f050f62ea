"""Kernels some of whose inputs stay the same, such as weights: what depends on those alone has been computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ilang_eq.c.arrays import Array, contiguous, uses_torch
from ilang_eq.c.kernel import CKernel
from ilang_eq.c.memory import aligned
from ilang_eq.errors import ArrayError, OptionError
from ilang_eq.lower.interface import output_shapes, summed_extents
from ilang_eq.lower.preparation import Preparation, merged, prepare


@dataclass(frozen=True, slots=True)
class Prepared:
    """A function of the inputs that were not constant, in their order.

    Attributes:
        kernel: what runs at each call: a function of those inputs, then ``fixed``.
        fixed: the constants that are still read, and what was computed from constants.
        whole: what was prepared, which runs where an axis has no elements; None where nothing is left to compute then.
        constants: of ``whole``, by number.
    """

    kernel: CKernel
    fixed: tuple[Array, ...]
    whole: CKernel | None
    constants: Mapping[int, Array]

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run on the other inputs. Takes, returns and raises what ``CKernel.__call__`` does."""
        wanted = len(self.kernel.program.inputs) - len(self.fixed)
        if len(arrays) != wanted:
            raise ArrayError(f"{len(arrays)} arrays for a kernel of {wanted} inputs that are not constant")
        given = (*arrays, *self.fixed)
        result = self.kernel.quickly(given, out)
        return self._carefully(arrays, out) if result is None else result

    def _carefully(self, arrays: Sequence[Any], out: Any) -> Any:
        if self.whole is not None and any(0 in getattr(array, "shape", ()) for array in arrays):
            return self.whole.carefully(merged(arrays, self.constants), out)
        return self.kernel.carefully((*arrays, *self.fixed), out)


def prepared_kernel(kernel: CKernel, constants: Mapping[str, Any]) -> Prepared:
    """``kernel`` for the ``constants``, by the names of its program's inputs."""
    program = kernel.program
    for name in constants:
        if name not in program.inputs:
            raise OptionError(f"no input {name!r}", legal=program.inputs)
    arrays = {
        k: contiguous(constants[name], name, program.ranks[k])
        for k, name in enumerate(program.inputs)
        if name in constants
    }
    kernel = kernel.serving([tuple(array.shape) for array in arrays.values()])
    split, first, rest = halves(kernel, frozenset(arrays))
    made = _made(first, [arrays[k] for k in split.constants]) if split.first.outputs else ()
    whole = kernel if summed_extents(program, arrays) else None
    return Prepared(rest, (*(arrays[k] for k in split.fixed), *made), whole, arrays if whole else {})


def _made(kernel: CKernel, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """All results of ``kernel``; torch aligns tensors by itself."""
    shapes = output_shapes(kernel.program, tuple(tuple(array.shape) for array in arrays))
    out = None if uses_torch(arrays) else tuple(map(aligned, shapes))
    results = kernel(*arrays, out=out[0] if out is not None and len(out) == 1 else out)
    return results if len(shapes) > 1 else (results,)


_HALVES: WeakKeyDictionary[CKernel, dict[frozenset[int], tuple[Preparation, CKernel, CKernel]]] = WeakKeyDictionary()
"""Kernels that were split before, by which inputs were constant: the layers of a model share them."""


def halves(kernel: CKernel, constants: frozenset[int]) -> tuple[Preparation, CKernel, CKernel]:
    """``kernel`` split for inputs that are constant: how, what runs once, and what runs at each call."""
    known = _HALVES.setdefault(kernel, {})
    if constants not in known:
        split = prepare(kernel.program, constants)
        known[constants] = split, CKernel(split.first, kernel.threads), CKernel(split.rest, kernel.threads)
    return known[constants]
