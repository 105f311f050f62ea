"""A traced model as programs that feed each other, at the shapes of its example. Loads torch.

Calls that PyTorch runs are replayed on tensors without data: what they return is a part of a value's memory, which a
kernel that reads it gets as a copy unless it is all of it in order; or values beside each other, which are copied; or
cannot be exported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ilang_eq.c.arrays import Floats
from ilang_eq.errors import TraceError
from ilang_eq.export.model import Copy, Model, Part, Shape, Step, row_major
from ilang_eq.tracing.kernels import problem
from ilang_eq.tracing.nodes import Node, Ref, Type
from ilang_eq.tracing.run import Runner, is_random
from ilang_eq.tracing.run import Step as Call
from ilang_eq.tracing.steps import RegionCall, Values, as_input

COPIES = (
    "aten.reshape.default",
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.contiguous.default",
    "aten.clone.default",
)
"""Calls that may return their argument's elements, in order, in memory of their own."""

JOINS = ("aten.cat.default", "aten.stack.default")
"""Calls that return their arguments' elements beside each other."""


def model_of(runner: Runner, parameters: Mapping[str, torch.Tensor] | None = None) -> Model:
    """What ``runner`` does at each call, its parameters as they are now; finds the kernels.

    Args:
        runner: the program.
        parameters: tensors by argument name in place of the runner's.

    Raises:
        TraceError: a call that stays with PyTorch and computes from inputs, or an input or output that is not float32.
    """
    with torch.no_grad():
        return _Deployment(runner, parameters or {}).model()


class _Deployment:
    """A model while its steps are gathered.

    Values that depend on no input but its shape are ``fixed``, and ``known`` once they are computed; all others are in
    ``views``, without data. ``owners`` has the value that each of their storages was made for, ``copies`` the source of
    each value that PyTorch would copy.
    """

    def __init__(self, runner: Runner, parameters: Mapping[str, torch.Tensor]) -> None:
        self.runner = runner
        self.types = runner.program.types()
        self.nodes = {node.name: node for node in runner.program.nodes}
        held = {**runner.tensors, **parameters}
        self.known: Values = {**held, **runner.folded(held)}
        self.fixed = set(self.known)
        self.views: Values = {}
        self.owners: dict[int, str] = {}
        self.copies: dict[str, str] = {}
        self.weights: dict[str, Floats] = {}
        self.steps: list[Step | Copy] = []

    def model(self) -> Model:
        """The model; kernels that are missing are found."""
        inputs = {argument.name: self._shape(argument.name, argument.type) for argument in self.runner.inputs}
        for name, shape in inputs.items():
            self._own(name, shape)
        left = [f"{call.name} ({self.nodes[call.name].op})" for call in self.runner.steps if not self._replayed(call)]
        if left:
            raise TraceError(
                f"{', '.join(left)} stay with PyTorch, so that the model cannot be exported",
                expected="regions alone: export the part of the model that `coverage` does not list",
            )
        regions = [call.run.region for call in self.runner.steps if isinstance(call.run, RegionCall)]
        self.runner.kernels.solve(regions, self.runner.program.sizes, "export")
        for call in self.runner.steps:
            self._take(call)
        outputs = tuple(self._output(value) for value in self.runner.program.outputs)
        return Model(inputs, self.weights, tuple(self.steps), outputs)

    def _replayed(self, call: Call) -> bool:
        """Follow what ``call`` returns, without data; False if that takes computing."""
        # attention may drop out at random, but no region does
        if not isinstance(call.run, RegionCall) and is_random(self.nodes[call.name].op):
            return False
        if self.fixed >= set(call.reads):
            self.fixed.add(call.name)
            if self.known.keys() >= set(call.reads) and not isinstance(call.run, RegionCall):
                self.known[call.name] = call.run(self.known)
            return True
        if isinstance(call.run, RegionCall):
            self._own(call.name, self._shape(call.name, call.run.region.type))
            return True
        if self.nodes[call.name].op in JOINS and self._joins(self.nodes[call.name]):
            self._own(call.name, self._shape(call.name, self.types[call.name]))
            return True
        try:
            result = call.run({**self.known, **self.views})
        # what PyTorch raises for a call that needs data, or a view that is not known
        except (KeyError, RuntimeError, NotImplementedError, TypeError):
            return False
        leaves = pytree.tree_leaves(result)
        if not any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in leaves):
            # sizes, and what is made of them alone
            self.fixed.add(call.name)
            self.known[call.name] = result
        elif all(_storage(leaf) in self.owners for leaf in leaves):
            self.views[call.name] = result
        elif self.nodes[call.name].op in COPIES:
            self.copies[call.name] = call.reads[0]
            self._own(call.name, tuple(result.shape))
        else:
            return False
        return True

    def _own(self, name: str, shape: Shape) -> None:
        """A value in memory of its own."""
        self.views[name] = torch.empty(shape, device="meta")
        self.owners[_storage(self.views[name])] = name

    def _take(self, call: Call) -> None:
        """Add what ``call`` does to the steps, unless it depends on no input."""
        if call.name in self.fixed:
            if call.name not in self.known:
                self.known[call.name] = call.run(self.known)
        elif isinstance(call.run, RegionCall):
            region, sizes = call.run.region, self.runner.program.sizes
            best = self.runner.kernels.found[problem(region, sizes)]
            shapes = region.shapes(sizes)
            reads = tuple(self._read(name, shape) for name, shape in zip(region.inputs, shapes, strict=True))
            self.steps.append(Step(best.kernel.serving(shapes).program, reads, shapes, (region.name,), str(best)))
        elif call.name in self.copies:
            self._copy(self.copies[call.name], call.name)
        elif self.nodes[call.name].op in JOINS:
            self._join(self.nodes[call.name])

    def _read(self, name: str, shape: Shape) -> str:
        """The value that holds all of ``name``, in order; one is made if there is none."""
        if name in self.known:
            if name not in self.weights:
                self.weights[name] = as_input(self.known[name], shape)
            return name
        view = self.views[name]
        owner = self.owners[_storage(view)]
        if view.is_contiguous() and view.numel() == self.views[owner].numel():
            return owner
        if all(name not in step.makes for step in self.steps):
            self._copy(name, name)
        return name

    def _copy(self, source: str, name: str) -> None:
        owner, offset, shape, strides = self._place(source)
        self.steps.append(Copy((owner,), (Part.whole(shape, offset, strides),), shape, (name,)))

    def _join(self, node: Node) -> None:
        joined, dim = node.value(0, "tensors"), node.value(1, "dim", 0)
        assert isinstance(joined, tuple), "as ATen's schema has it"
        assert isinstance(dim, int), "as ATen's schema has it"
        made = self._shape(node.name, node.type)
        along, stacked = dim % len(made), node.op == "aten.stack.default"
        steps = row_major(made)
        reads: list[str] = []
        parts: list[Part] = []
        at = 0
        for name in (value.name for value in joined if isinstance(value, Ref)):
            owner, offset, shape, strides = self._place(name)
            kept = (*steps[:along], *steps[along + 1 :]) if stacked else steps
            reads.append(owner)
            parts.append(Part(shape, offset, strides, at * steps[along], kept))
            at += 1 if stacked else shape[along]
        self.steps.append(Copy(tuple(reads), tuple(parts), made, (node.name,)))

    def _place(self, name: str) -> tuple[str, int, Shape, tuple[int, ...]]:
        """The value whose memory ``name`` is in; the offset of its first element, its shape and strides."""
        if name in self.known:
            shape = self._shape(name, self.types[name])
            return self._read(name, shape), 0, shape, row_major(shape)
        view = self.views[name]
        return self.owners[_storage(view)], view.storage_offset(), tuple(view.shape), view.stride()

    def _output(self, value: object) -> tuple[str, Shape]:
        if not isinstance(value, Ref):
            raise TraceError(f"the model returns {value!r}, so that it cannot be exported", expected="tensors")
        shape = self._shape(value.name, self.types[value.name])
        return self._read(value.name, shape), shape

    def _joins(self, node: Node) -> bool:
        """Whether all that ``node`` puts side by side is known, and float32 of one rank, which ``cat`` does not ask."""
        rank = len(node.type.shape) - (node.op == "aten.stack.default")
        return all(
            (name in self.fixed or name in self.views)
            and self.types[name].dtype == "float32"
            and len(self.types[name].shape) == rank
            for name in node.reads
        )

    def _shape(self, name: str, of: Type) -> Shape:
        if of.dtype != "float32":
            raise TraceError(f"{name} is {of.dtype}, so that the model cannot be exported", expected="float32")
        return tuple(extent.value(self.runner.program.sizes) for extent in of.extents)


def _storage(tensor: Any) -> int:
    """Which memory a tensor is in; 0 for anything else."""
    return tensor.untyped_storage()._cdata if isinstance(tensor, torch.Tensor) else 0
