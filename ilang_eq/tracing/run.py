"""Running a traced program: regions by their kernels, everything else by PyTorch. Loads torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ilang_eq.c.arrays import Floats
from ilang_eq.tracing.extents import solve
from ilang_eq.tracing.kernels import Kernels, bucket
from ilang_eq.tracing.lifetimes import Memory, Step, released
from ilang_eq.tracing.nodes import references
from ilang_eq.tracing.partition import Partition
from ilang_eq.tracing.region import Region
from ilang_eq.tracing.steps import SIZES, RegionCall, Values, Versions, function_of, resolved, torch_call


class Runner:
    """A partitioned program, ready to run.

    What depends on parameters and constants alone is computed at the first call and kept. Kernels are found at the
    first call for each bucket of extents.

    ``steps`` is what each call does, ``once`` what depends on parameters and constants alone.

    Args:
        partition: the program and its regions.
        tensors: parameters and constants, by argument name; all of the constants. Changes of parameters are seen.
        kernels: where to get kernels; may be shared between programs.
    """

    def __init__(self, partition: Partition, tensors: Mapping[str, torch.Tensor], kernels: Kernels) -> None:
        self.program = partition.support.program
        self.tensors = tensors
        self.kernels = kernels
        self.inputs = tuple(a for a in self.program.arguments if a.kind == "input")
        held = {a.name for a in self.program.arguments if a.kind != "input"}
        steps, folded = _steps(partition, held, kernels)
        self.regions = tuple(step.run.region for step in steps if isinstance(step.run, RegionCall))
        self._folding = tuple(step for step in steps if step.name in folded)
        self.once = folded
        self.steps = released([step for step in steps if step.name not in folded], self.program.outputs)
        self._needed = {name for step in self.steps for name in step.reads} | set(references(self.program.outputs))
        self._sources = sorted({name for step in self._folding for name in step.reads} & held)
        self._folded: tuple[Versions, Values] | None = None
        self._buckets: set[tuple[int, ...]] = set()
        self._is_symbolic = any(argument.type.is_symbolic for argument in self.inputs)
        self._memory = Memory()

    def __call__(self, inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor] | None = None) -> list[Any]:
        """Run on the caller's inputs, in order; returns the outputs in order.

        Args:
            inputs: the values of ``self.inputs``.
            parameters: tensors by argument name that are not in ``tensors``, or replace those there.
        """
        with torch.no_grad():
            sizes = self.solve(inputs)
            given = {argument.name: value for argument, value in zip(self.inputs, inputs, strict=True)}
            held = {**self.tensors, **parameters} if parameters else self.tensors
            values: Values = {**held, **self.folded(held), **given, SIZES: sizes}
            kept: dict[str, Floats] = {}
            for step in self.steps:
                if step.kept and isinstance(step.run, RegionCall):
                    made, kept[step.name] = step.run.into(values, self._memory)
                    values[step.name] = step.run.shown(made) if step.shown else made
                else:
                    values[step.name] = step.run(values)
                for name in step.dropped:
                    del values[name]
                for name in step.freed:
                    self._memory.give(kept.pop(name))
            return [resolved(output, values) for output in self.program.outputs]

    def solve(self, inputs: Sequence[Any]) -> Mapping[str, int]:
        """Find the kernels of all regions, where the inputs' extents fall into buckets not seen before.

        Returns the sizes of the symbols.
        """
        if self._buckets and not self._is_symbolic:
            return {}
        sizes = solve(
            pair
            for argument, value in zip(self.inputs, inputs, strict=True)
            if isinstance(value, torch.Tensor)
            for pair in zip(argument.type.extents, value.shape, strict=True)
        )
        key = tuple(bucket(size) for size in sizes.values())
        if key not in self._buckets:
            known = [region for region in self.regions if _symbols(region) <= sizes.keys()]
            self.kernels.solve(known, sizes, _reason(sizes, bool(self._buckets)))
            self._memory.clear()
            self._buckets.add(key)
        return sizes

    def refresh(self) -> None:
        """Forget what was made of parameters."""
        self._folded = None
        for step in (*self._folding, *self.steps):
            if isinstance(step.run, RegionCall):
                step.run.refresh()

    def folded(self, tensors: Mapping[str, Any]) -> Values:
        """What depends on parameters and constants alone, by name; computed again if one of ``tensors`` has changed."""
        sources = [tensors[name] for name in self._sources]
        if self._folded is None or not self._folded[0].still(sources):
            versions, values = Versions.of(sources), dict(tensors)
            for step in self._folding:
                values[step.name] = step.run(values)
            made = {step.name: values[step.name] for step in self._folding if step.name in self._needed}
            self._folded = versions, made
        return self._folded[1]


def _steps(partition: Partition, held: set[str], kernels: Kernels) -> tuple[list[Step], frozenset[str]]:
    """What has to be done, in order, and which of it depends on parameters and constants alone."""
    found = partition.support
    regions = {region.members[-1]: region for region in partition.regions}
    results = {region.name for region in partition.regions}
    fixed = set(held)
    steps: list[Step] = []
    for node in found.program.nodes:
        if node.name in regions:
            region = regions[node.name]
            constants = tuple(k for k, name in enumerate(region.inputs) if name in fixed)
            run = RegionCall(replace(region, constants=constants), found.values.types, kernels)
            steps.append(Step(region.name, region.inputs, run))
        elif node.name not in found.computed and node.name not in results:
            steps.append(Step(node.name, node.reads, torch_call(node)))
        else:
            continue
        if fixed.issuperset(steps[-1].reads) and not is_random(node.op):
            fixed.add(steps[-1].name)
    needed = set(references(found.program.outputs))
    kept: list[Step] = []
    for step in reversed(steps):
        if step.name in needed:
            kept.append(step)
            needed.update(step.reads)
    return kept[::-1], frozenset(fixed)


def is_random(op: str) -> bool:
    """Whether two calls with the same arguments may differ."""
    return torch.Tag.nondeterministic_seeded in getattr(function_of(op), "tags", ())


def _symbols(region: Region) -> set[str]:
    return {s for extents in region.input_extents for extent in extents for s in extent.symbols}


def _reason(sizes: Mapping[str, int], again: bool) -> str:
    if not sizes:
        return "first call"
    buckets = ", ".join(f"{name} = {size} (bucket {bucket(size)})" for name, size in sizes.items())
    return f"{'a new bucket of extents' if again else 'first call'}: {buckets}"
