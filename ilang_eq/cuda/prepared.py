"""Kernels some of whose inputs stay the same, such as weights: what depends on those alone has been computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ilang_eq.cuda.graphs import Captured
from ilang_eq.cuda.kernel import CudaKernel
from ilang_eq.errors import ArrayError, OptionError
from ilang_eq.lower.preparation import prepare


@dataclass(frozen=True, slots=True)
class CudaPrepared:
    """A function of the inputs that were not constant, in their order.

    Attributes:
        kernel: what runs at each call: a function of those inputs, then ``fixed``.
        fixed: the constants that are still read, and what was computed from constants; arrays on the device.
    """

    kernel: CudaKernel
    fixed: tuple[Any, ...]

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run on the other inputs. Takes, returns and raises what ``CudaKernel.__call__`` does."""
        self._check(arrays)
        return self.kernel(*arrays, *self.fixed, out=out)

    def capture(self, *arrays: Any, out: Any = None) -> Captured:
        """A call as a CUDA graph. Takes, returns and raises what ``CudaKernel.capture`` does."""
        self._check(arrays)
        return self.kernel.capture(*arrays, *self.fixed, out=out)

    def _check(self, arrays: Sequence[Any]) -> None:
        wanted = len(self.kernel.program.inputs) - len(self.fixed)
        if len(arrays) != wanted:
            raise ArrayError(f"{len(arrays)} arrays for a kernel of {wanted} inputs that are not constant")


def prepared_kernel(kernel: CudaKernel, constants: Mapping[str, Any]) -> CudaPrepared:
    """``kernel`` for the ``constants``, by the names of its program's inputs."""
    program = kernel.program
    for name in constants:
        if name not in program.inputs:
            raise OptionError(f"no input {name!r}", legal=program.inputs)
    arrays = {k: constants[name] for k, name in enumerate(program.inputs) if name in constants}
    split = prepare(program, arrays.keys())
    made: tuple[Any, ...] = ()
    if split.first.outputs:
        results = CudaKernel(split.first)(*(arrays[k] for k in split.constants))
        made = results if len(split.first.outputs) > 1 else (results,)
    return CudaPrepared(CudaKernel(split.rest), (*(arrays[k] for k in split.fixed), *made))
