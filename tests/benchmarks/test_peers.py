from __future__ import annotations

import numpy as np
import pytest

from benchmarks.contest import PEERS, Contestant
from benchmarks.newcomers import BREADTH
from benchmarks.peers import numpy_ops
from benchmarks.workloads import WORKLOADS, Workload

COMPILED = ("torch.compile", "torch max-autotune", "jax", "tinygrad")
"""Seconds for every workload."""
QUICK = [c for c in PEERS if c.name not in COMPILED]
KINDS = {workload.component: workload for workload in WORKLOADS}
COMPILED_BEST = "attention_softcap"
"""Its best call in PyTorch is compiled too."""


def _check(contestant: Contestant, workload: Workload) -> None:
    for library in (contestant.library, "onnx") if contestant.library == "onnxruntime" else (contestant.library,):
        pytest.importorskip(library)
    arrays = workload.arrays(workload.small)
    prepared = contestant.prepare()(contestant.mode, workload, arrays, 1, None)
    if prepared is None:
        pytest.skip("no way of its own")
    right = workload.formula(numpy_ops, *(a.astype(np.float64) for a in arrays))
    for call in filter(None, (prepared.cold, prepared.warm)):
        result = prepared.as_numpy(call())
        assert result.shape == right.shape
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5 * np.abs(right).max())


@pytest.mark.parametrize("workload", BREADTH, ids=lambda w: w.name)
@pytest.mark.parametrize("name", ["numpy", "torch eager", "onnxruntime"])
def test_peers_compute_what_has_no_target(name: str, workload: Workload) -> None:
    _check(next(c for c in PEERS if c.name == name), workload)


@pytest.mark.parametrize("workload", KINDS.values(), ids=lambda w: w.component)
@pytest.mark.parametrize("contestant", QUICK, ids=lambda c: c.name)
def test_peers_compute_what_we_do(contestant: Contestant, workload: Workload) -> None:
    if contestant.name == "torch best" and workload.component == COMPILED_BEST:
        pytest.skip("compiled, in the long tests")
    _check(contestant, workload)


@pytest.mark.long
@pytest.mark.parametrize("workload", KINDS.values(), ids=lambda w: w.component)
@pytest.mark.parametrize("name", ["torch best", *COMPILED])
def test_compiled_peers_compute_what_we_do(name: str, workload: Workload) -> None:
    _check(next(c for c in PEERS if c.name == name), workload)
