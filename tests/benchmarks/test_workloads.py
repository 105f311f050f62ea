from __future__ import annotations

import numpy as np
import pytest

from benchmarks.newcomers import BREADTH
from benchmarks.peers import numpy_ops
from benchmarks.workloads import HELD_OUT, WORKLOADS, Workload, chosen
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shapes import infer
from ilang_eq.lang.wiring import wire

KINDS = {workload.component: workload for workload in WORKLOADS}
EACH = [*KINDS.values(), *BREADTH]


@pytest.mark.parametrize("workload", EACH, ids=lambda w: w.component or w.name)
def test_component_and_formula_agree(workload: Workload) -> None:
    arrays = [a.astype(np.float64) for a in workload.arrays(workload.small)]
    component = read_component(workload.text)
    computed = np.asarray(component.interpret(*arrays))
    right = workload.formula(numpy_ops, *arrays)
    assert computed.shape == right.shape
    np.testing.assert_allclose(computed, right, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("workload", [*WORKLOADS, *BREADTH], ids=lambda w: w.name)
def test_shapes_fit_the_component(workload: Workload) -> None:
    inferred = infer(wire(read_component(workload.text)))
    for shapes in (workload.shapes, workload.small, workload.ranking_shapes):
        inferred.bind(shapes)


def test_components_are_not_scheduled() -> None:
    for workload in EACH:
        assert "|" not in workload.text.replace(" | ", "")


def test_names_choose_workloads() -> None:
    assert [w.name for w in chosen(["w14"])] == ["w14-variance", "w14-logsumexp"]
    assert len({w.name for w in WORKLOADS}) == len(WORKLOADS)
    assert len(chosen(["w1-"])) == 21
    assert {w.name for w in chosen(HELD_OUT)} == set(HELD_OUT)
    assert len({w.name for w in (*WORKLOADS, *BREADTH)}) == len(WORKLOADS) + len(BREADTH)
    assert [w.name for w in chosen(["b-gram"], BREADTH)] == ["b-gram"]
    with pytest.raises(SystemExit, match="no workload 'w99'"):
        chosen(["w99"])
