"""ONNX Runtime: the formula as a model, weights as its initializers."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.contest import Prepared
from benchmarks.peers import onnx_ops
from benchmarks.workloads import Workload

onnx: Any = importlib.import_module("onnx")
onnxruntime: Any = importlib.import_module("onnxruntime")

_OPSET = 18
_IR_VERSION = 10


def prepare(
    mode: str, workload: Workload, arrays: Sequence[np.ndarray], threads: int, schedule: str | None
) -> Prepared:
    """``warm`` binds the output to memory used before."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(_model(workload, arrays), options, providers=["CPUExecutionProvider"])
    given = {f"x{n}": a for n, (a, x) in enumerate(zip(arrays, workload.inputs, strict=True)) if not x.constant}
    out: np.ndarray = np.asarray(session.run(None, given)[0])
    binding = session.io_binding()
    for name, array in given.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)

    def warm() -> Any:
        session.run_with_iobinding(binding)
        return out

    return Prepared(lambda: session.run(None, given)[0], warm, np.asarray)


def _model(workload: Workload, arrays: Sequence[np.ndarray]) -> bytes:
    graph = onnx_ops.Graph()
    inputs, operands = [], []
    for n, (array, argument) in enumerate(zip(arrays, workload.inputs, strict=True)):
        if argument.constant:
            operands.append(graph.constant(array))
        else:
            inputs.append(onnx.helper.make_tensor_value_info(f"x{n}", onnx.TensorProto.FLOAT, array.shape))
            operands.append(onnx_ops.Node(graph, f"x{n}", array.ndim))
    result = workload.formula(onnx_ops, *operands)
    graph.nodes[-1].output[0] = "y"
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None] * result.rank)]
    body = onnx.helper.make_graph(graph.nodes, workload.component, inputs, outputs, graph.constants)
    opsets = [onnx.helper.make_opsetid("", _OPSET)]
    return onnx.helper.make_model(body, opset_imports=opsets, ir_version=_IR_VERSION).SerializeToString()
