"""What a component has to do at least: operations and bytes, and how long a machine needs for them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ilang_eq.extract.gpu_machine import Gpu
from ilang_eq.extract.machine import Machine
from ilang_eq.lang.expr import Expr
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.ops import OPS
from ilang_eq.lang.shapes import Dimension, infer
from ilang_eq.lower.ir import Precision

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Work:
    """Operations, an exponential counting as much as an addition; and bytes of all inputs and outputs, once each."""

    operations: int
    bytes: int

    def least_seconds(self, machine: Machine, threads: int) -> float:
        """The longer of the operations at the rate of fused multiply-adds, two each, and the bytes at the bandwidth of
        the first level of memory that holds them all."""
        used = min(threads, machine.cores)
        level = next(level for level in machine.levels if self.bytes <= level.bytes)
        bandwidth = min(used * level.bandwidth, level.bandwidth_all)
        return max(self.operations / (2 * machine.vector.fma * used), self.bytes / bandwidth) * 1e-9

    def least_seconds_of_gpu(self, gpu: Gpu, precision: Precision = "float32") -> float:
        """The longer of the operations at the rate of fused multiply-adds, two each, and the bytes at the bandwidth of
        the cache if it holds them all, else of a copy. Tensor cores count where ``precision`` grants them."""
        cores = {"float32": 0.0, "tf32": gpu.warpgroup, "tf32x3": gpu.tensor / 3}[precision]
        rate = 2 * max(gpu.fma, cores) * gpu.sms * gpu.clock_ghz
        bandwidth = gpu.l2_gbs if self.bytes <= gpu.l2_bytes else gpu.dram_gbs
        return max(self.operations / rate, self.bytes / bandwidth) * 1e-9


def work_of(graph: Graph, extents: dict[Dimension, int]) -> Work:
    """The work of ``graph`` as it is written, where dimension d of input k has ``extents[k, d]`` elements."""
    shapes = infer(graph)
    operations = 0
    for n, node in enumerate(graph.nodes):
        if _operates(node.expr):
            operations += prod(extents[shapes.extent(n, axis)] for axis in node.expr.axes)
    inputs = sum(prod(n for (k, _), n in extents.items() if k == index) for index in range(graph.inputs))
    made = [wire for wire in graph.outputs if isinstance(wire, Value)]
    outputs = sum(prod(extents[d] for d in shapes.value_dims(wire)) for wire in made)
    return Work(operations, _FLOAT_BYTES * (inputs + outputs))


def _operates(expr: Expr) -> bool:
    """Whether an expression computes anything, rather than copy."""
    return bool(expr.reduced) or len(expr.operands) > 1 or OPS[expr.op].unary_form != "copy"
