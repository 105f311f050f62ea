"""A traced model as programs that feed each other, at the shapes of its example. Loads torch."""

from __future__ import annotations

import torch

from ilang_eq.c.arrays import Floats
from ilang_eq.errors import TraceError
from ilang_eq.export.model import Model, Shape, Step
from ilang_eq.tracing.kernels import problem
from ilang_eq.tracing.nodes import Ref, Type
from ilang_eq.tracing.run import Runner
from ilang_eq.tracing.steps import RegionCall, Values, as_input

RESHAPES = (
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.reshape.default",
    "aten.unsqueeze.default",
    "aten.squeeze.dim",
    "aten.flatten.using_ints",
    "aten.contiguous.default",
    "aten.clone.default",
    "aten.alias.default",
    "aten.detach.default",
)
"""Calls whose result has the elements of their argument, in their order."""


def model_of(runner: Runner) -> Model:
    """What ``runner`` does at each call, its parameters as they are now; finds the kernels.

    Raises:
        TraceError: a call that stays with PyTorch and depends on the inputs, or an input or output that is not float32.
    """
    with torch.no_grad():
        return _Deployment(runner).model()


class _Deployment:
    """A model while its steps are gathered: what depends on no input is ``known``; ``same`` says what is a reshape."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.types = runner.program.types()
        self.ops = {node.name: node.op for node in runner.program.nodes}
        self.known: Values = {**runner.tensors, **runner.folded()}
        self.same: dict[str, str] = {}
        self.weights: dict[str, Floats] = {}

    def model(self) -> Model:
        """The model; kernels that are missing are found."""
        self._check()
        regions = [step.run.region for step in self.runner.steps if isinstance(step.run, RegionCall)]
        self.runner.kernels.solve(regions, self.runner.program.sizes, "export")
        steps: list[Step] = []
        for step in self.runner.steps:
            if self.known.keys() >= set(step.reads):
                self.known[step.name] = step.run(self.known)
            elif isinstance(step.run, RegionCall):
                steps.append(self._step(step.run))
            else:
                self.same[step.name] = self._source(step.reads[0])
        inputs = {argument.name: self._shape(argument.name, argument.type) for argument in self.runner.inputs}
        outputs = tuple(self._output(value) for value in self.runner.program.outputs)
        return Model(inputs, self.weights, tuple(steps), outputs)

    def _check(self) -> None:
        """Raise TraceError where PyTorch would have to compute."""
        for argument in self.runner.inputs:
            self._shape(argument.name, argument.type)
        known = set(self.known)
        left: list[str] = []
        for step in self.runner.steps:
            if known >= set(step.reads):
                known.add(step.name)
            elif not isinstance(step.run, RegionCall) and self.ops[step.name] not in RESHAPES:
                left.append(f"{step.name} ({self.ops[step.name]})")
        if left:
            raise TraceError(
                f"{', '.join(left)} stay with PyTorch, so that the model cannot be exported",
                expected="regions alone: export the part of the model that `coverage` does not list",
            )

    def _step(self, call: RegionCall) -> Step:
        region, sizes = call.region, self.runner.program.sizes
        shapes = region.shapes(sizes)
        for name, shape in zip(region.inputs, shapes, strict=True):
            self._keep(name, shape)
        best = self.runner.kernels.found[problem(region, sizes)]
        reads = tuple(map(self._source, region.inputs))
        return Step(best.kernel.program, reads, shapes, (region.name,), str(best))

    def _keep(self, name: str, shape: Shape) -> None:
        """Make a weight of what depends on no input."""
        if name in self.known and name not in self.weights:
            self.weights[name] = as_input(self.known[name], shape).numpy()

    def _output(self, value: object) -> tuple[str, Shape]:
        if not isinstance(value, Ref):
            raise TraceError(f"the model returns {value!r}, so that it cannot be exported", expected="tensors")
        shape = self._shape(value.name, self.types[value.name])
        self._keep(value.name, shape)
        return self._source(value.name), shape

    def _source(self, name: str) -> str:
        return self.same.get(name, name)

    def _shape(self, name: str, of: Type) -> Shape:
        if of.dtype != "float32":
            raise TraceError(f"{name} is {of.dtype}, so that the model cannot be exported", expected="float32")
        return tuple(extent.value(self.runner.program.sizes) for extent in of.extents)
