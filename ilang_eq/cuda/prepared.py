"""Kernels some of whose inputs stay the same, such as weights: what depends on those alone has been computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ilang_eq.cuda.graphs import Captured
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.errors import ArrayError, OptionError
from ilang_eq.lower.interface import summed_extents
from ilang_eq.lower.preparation import merged, prepare


@dataclass(frozen=True, slots=True)
class CudaPrepared:
    """A function of the inputs that were not constant, in their order.

    Attributes:
        kernel: what runs at each call: a function of those inputs, then ``fixed``.
        fixed: the constants that are still read, and what was computed from constants; arrays on the device.
        whole: what was prepared, which runs where an axis has no elements; None where nothing is left to compute then.
        constants: of ``whole``, by number.
    """

    kernel: CudaKernel
    fixed: tuple[Any, ...]
    whole: CudaKernel | None
    constants: Mapping[int, Any]

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run on the other inputs. Takes, returns and raises what ``CudaKernel.__call__`` does."""
        kernel, given = self._serving(arrays)
        return kernel(*given, out=out)

    def capture(self, *arrays: Any, out: Any = None) -> Captured:
        """A call as a CUDA graph. Takes, returns and raises what ``CudaKernel.capture`` does."""
        kernel, given = self._serving(arrays)
        return kernel.capture(*given, out=out)

    def _serving(self, arrays: Sequence[Any]) -> tuple[CudaKernel, Sequence[Any]]:
        """What runs for the other inputs, and on what."""
        wanted = len(self.kernel.program.inputs) - len(self.fixed)
        if len(arrays) != wanted:
            raise ArrayError(f"{len(arrays)} arrays for a kernel of {wanted} inputs that are not constant")
        if self.whole is not None and any(0 in getattr(array, "shape", ()) for array in arrays):
            return self.whole, merged(arrays, self.constants)
        return self.kernel, (*arrays, *self.fixed)


def prepared_kernel(kernel: CudaKernel, constants: Mapping[str, Any]) -> CudaPrepared:
    """``kernel`` for the ``constants``, by the names of its program's inputs."""
    program = kernel.program
    for name in constants:
        if name not in program.inputs:
            raise OptionError(f"no input {name!r}", legal=program.inputs)
    arrays = {k: constants[name] for k, name in enumerate(program.inputs) if name in constants}
    kernel = kernel.serving([tuple(getattr(array, "shape", ())) for array in arrays.values()])
    split = prepare(kernel.program, arrays.keys())
    made: tuple[Any, ...] = ()
    if split.first.outputs:
        results = CudaKernel(split.first)(*(arrays[k] for k in split.constants))
        made = results if len(split.first.outputs) > 1 else (results,)
    whole = kernel if summed_extents(program, arrays) else None
    return CudaPrepared(
        CudaKernel(split.rest), (*(arrays[k] for k in split.fixed), *made), whole, arrays if whole else {}
    )
