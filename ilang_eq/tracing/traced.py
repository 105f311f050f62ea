"""A traced model: callable, readable, and saying what it left to PyTorch. Loads torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ilang_eq.batch.tasks import Task
from ilang_eq.errors import TraceError
from ilang_eq.tracing.capture import Captured
from ilang_eq.tracing.coverage import Coverage, coverage
from ilang_eq.tracing.inputs import Expected
from ilang_eq.tracing.kernels import Kernels, Problem, problem
from ilang_eq.tracing.nodes import NodeList
from ilang_eq.tracing.partition import Partition, partition
from ilang_eq.tracing.prepare import prepared
from ilang_eq.tracing.region import Region
from ilang_eq.tracing.run import Runner


class Traced:
    """A model as regions, which kernels compute, and the calls that are left to PyTorch.

    Call it as the model was called; nothing is optimised or compiled before the first call, or ``optimize``. It
    computes no gradients.

    Args:
        captured: the program and what it owns.
        kernels: where to get kernels.
    """

    def __init__(self, captured: Captured, kernels: Kernels) -> None:
        self.captured = captured
        self.partition: Partition = partition(prepared(captured.program))
        self.runner = Runner(self.partition, captured.tensors, kernels)
        self._expected = Expected(self.runner.inputs, captured.arguments)

    @property
    def program(self) -> NodeList:
        """The calls that were traced."""
        return self.captured.program

    @property
    def regions(self) -> tuple[Region, ...]:
        """What kernels compute, in order; ``region.component`` is 𝚒 text."""
        return self.partition.regions

    @cached_property
    def coverage(self) -> Coverage:
        """What stays with PyTorch, line by line, and how much of the work that is."""
        return coverage(self.partition, self.runner.once)

    @property
    def problems(self) -> Mapping[Problem, int]:
        """What there is to optimise at the example's shapes, and how many regions it is."""
        return Counter(problem(region, self.runner.program.sizes) for region in self.runner.regions)

    def tasks(self) -> Iterable[Task]:
        """The same as ``optimize_many`` takes it."""
        return [each.task(count) for each, count in self.problems.items()]

    def optimize(self) -> Traced:
        """Find and build all kernels for the example's shapes now, rather than at the first call. Returns itself."""
        self.runner.kernels.solve(self.runner.regions, self.runner.program.sizes, "asked for")
        return self

    def refresh(self) -> Traced:
        """Read all parameters again at the next call. Returns itself.

        Calls see by themselves that a parameter was replaced, loaded or written to by PyTorch, but not what is written
        through ``parameter.data`` or through NumPy, of which PyTorch keeps no count.
        """
        self.runner.refresh()
        return self

    def export(self, directory: str | Path, *, name: str = "model", overwrite: bool = False) -> Path:
        """Write the model, for the shapes of its example, as a C library that needs no Python; its weights beside it.

        Args:
            directory: where to; it is made if it does not exist.
            name: what the files and functions are called: ``name.c``, ``name.h``, ``name.json``, ``name.weights``.
            overwrite: whether files that exist are replaced.

        Returns:
            The directory.

        Raises:
            TraceError: a call stays with PyTorch, or an input or output is not float32.
            OptionError: what ``ilang_eq.export.export_model`` raises.
        """
        from ilang_eq.export import export_model
        from ilang_eq.tracing.deploy import model_of

        sizes = dict(self.partition.support.program.sizes)
        return export_model(
            model_of(self.runner, self.captured.replaced()),
            directory,
            name=name,
            overwrite=overwrite,
            provenance={"sizes": sizes},
        )

    def to_json(self) -> str:
        """The program as JSON (``json_text.py`` has the schema), without the values of parameters."""
        from ilang_eq.tracing.json_text import to_json

        return to_json(self.program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on tensors like the example's; in the dimensions that were traced as numbers, of the same extents.

        Raises:
            ArrayError: inputs of another structure, type or shape than the example's, or other numbers or text.
        """
        results = self.runner(self._expected.inputs(args, kwargs), self.captured.replaced())
        return results[0] if self.captured.results.is_leaf() else pytree.tree_unflatten(results, self.captured.results)

    def __str__(self) -> str:
        return "\n".join(f"{region.name}: {region.component}" for region in self.regions)


def traced_from_json(text: str, tensors: Mapping[str, torch.Tensor], threads: int | None = None) -> Traced:
    """A program from JSON, with ``tensors`` for its parameters and constants by ``target``; it returns a tuple.

    Raises:
        TraceError: text that is no node list, or a tensor that is missing or of the wrong type.
    """
    from ilang_eq.tracing.json_text import from_json

    program = from_json(text)
    held: dict[str, torch.Tensor] = {}
    for argument in program.arguments:
        if argument.kind == "input":
            continue
        tensor = tensors.get(argument.target)
        if tensor is None:
            raise TraceError(f"no tensor is given for {argument.target!r}", legal=tuple(tensors))
        if tuple(tensor.shape) != argument.type.shape or str(tensor.dtype) != f"torch.{argument.type.dtype}":
            raise TraceError(
                f"{argument.target!r} is {tensor.dtype} of {tuple(tensor.shape)}", expected=str(argument.type)
            )
        held[argument.name] = tensor
    inputs = sum(a.kind == "input" for a in program.arguments)
    arguments = pytree.tree_structure(((None,) * inputs, {}))
    results = pytree.tree_structure((0,) * len(program.outputs))
    return Traced(Captured(program, held, arguments, results), Kernels(threads))
