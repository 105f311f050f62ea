"""What the search finds without being told, and that it says so in 𝚒 text."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ilang_eq
from ilang_eq import Component, I, i, optimize
from ilang_eq.extract.full_model import Cost
from ilang_eq.extract.models import MODELS
from ilang_eq.lang.graph import Graph, Value
from ilang_eq.lang.wiring import wire
from ilang_eq.optimized import Optimized, Schedule
from ilang_eq.optimizer import AS_LITTLE, DOUBTFUL, _ranked
from ilang_eq.rewrites import default, rule_set

SCORES = i("ik*jk~ijk") >> i("+ijk~ij")
SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
ATTENTION = SCORES >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")
MATMUL = i("ik*kj~ijk") >> i("+ijk~ij")
SQUARES = i("ij*ij~ij") >> i("+ij~i")


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that has 1 MiB: where whole rows of scores stay in a cache, they need no repairs to be fused."""
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_avx512")


@pytest.fixture(scope="module")
def attention() -> Optimized:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_avx512")
        return optimize(ATTENTION, [(2048, 64)] * 3, threads=2)


def agrees(best: Optimized, component: Component, *shapes: tuple[int, ...]) -> None:
    """The found kernel computes the component, at shapes other than those it was found for."""
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(shape), np.float32) for shape in shapes]
    right = component.interpret(*arrays)
    np.testing.assert_allclose(best(*arrays), right, rtol=1e-4, atol=1e-4 * float(np.abs(right).max()))


def reads(graph: Graph, node: int) -> set[int]:
    """Everything ``node`` depends on."""
    direct = {s.node for s in graph.nodes[node].operands if isinstance(s, Value)}
    return direct | {deep for n in direct for deep in reads(graph, n)}


def test_attention_becomes_flash_attention(attention: Optimized) -> None:
    plan = attention.plan([(2048, 64), (1024, 64), (1024, 32)])
    assert plan.kernels == 1
    assert not any({2048, 1024} <= set(dims) for dims in plan.buffers)
    assert any(c.kind == "max-shift" for c in plan.corrections)
    agrees(attention, ATTENTION, (37, 9), (41, 9), (41, 5))


def test_attention_divides_after_the_second_product(attention: Optimized) -> None:
    graph = wire(attention.component)
    divisions = [n for n, node in enumerate(graph.nodes) if node.expr.op == "div"]
    assert len(divisions) == 1
    assert graph.outputs == (Value(divisions[0]),)


def test_without_the_deferral_rule_the_division_stays_inside() -> None:
    best = optimize(ATTENTION, [(2048, 64)] * 3, threads=2, rules=default - "defer-division")
    graph = wire(best.component)
    assert any(
        graph.nodes[n].expr.op == "div"
        for out in graph.outputs
        if isinstance(out, Value)
        for n in reads(graph, out.node)
    )
    agrees(best, ATTENTION, (37, 9), (41, 9), (41, 5))


def test_the_text_alone_reproduces_the_kernel(attention: Optimized) -> None:
    again = i(str(attention))
    assert again == attention.component
    assert again.compile().source == attention.source


def test_renaming_axes_changes_nothing() -> None:
    renamed = (i("qd*sd~qsd") >> i("+abc~ab") >> SOFTMAX >> i("xy*yz~xzy")) >> i("+ikj~ik")
    first, second = (optimize(c, [(512, 64)] * 3, threads=2) for c in (ATTENTION, renamed))
    assert str(first) == str(second)
    assert (first.report.nodes, first.report.facts) == (second.report.nodes, second.report.facts)


@pytest.mark.usefixtures("small_caches")
def test_the_same_inputs_give_the_same_result(attention: Optimized) -> None:
    again = optimize(ATTENTION, [(2048, 64)] * 3, threads=2)
    assert [str(s) for s in again.schedules] == [str(s) for s in attention.schedules]


def test_candidates_are_distinct_and_sorted(attention: Optimized) -> None:
    found = attention.candidates(5)
    assert len({str(s) for s in found}) == len(found) >= 3
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(found[1:]))
    assert found[0].seconds <= DOUBTFUL * found[1].seconds
    assert found[0].component == attention.component


def test_a_users_schedule_competes() -> None:
    scheduled = i("ik*kj~ijk|i:4|iki'j") >> i("+ijk~ij|i:4|iki'j0")
    best = optimize(scheduled, [(64, 64)] * 2, threads=1)
    assert any(s.component == scheduled for s in best.schedules)
    assert best.cost <= best.baseline_cost


def test_fused_mlp_layer() -> None:
    layer = MATMUL >> i("ij+j~ij") >> i("0>ij~ij")
    best = optimize(layer, [(256, 1024), (1024, 1024), (1024,)], threads=2)
    assert best.plan().kernels == 1
    agrees(best, layer, (7, 9), (9, 11), (11,))


def test_rms_norm_can_be_folded_into_the_product() -> None:
    """Dividing after the product is next to as good as before it; both are among the best."""
    norm = (I & ((I & I) >> SQUARES >> i("i*0.001~i") >> i("i^0.5~i"))) >> i("ij/i~ij") >> MATMUL
    best = optimize(norm, [(1024, 1024), (1024, 1024)], threads=2)
    assert {_divides_before_a_product(wire(s.component)) for s in best.candidates(8)} == {True, False}
    agrees(best, norm, (7, 9), (9, 11))


def _divides_before_a_product(graph: Graph) -> bool:
    products = [n for n, node in enumerate(graph.nodes) if len(node.expr.axes) == 3]
    assert products
    return any(graph.nodes[d].expr.op == "div" for n in products for d in reads(graph, n))


def test_layer_norm_in_one_pass_over_memory() -> None:
    mean = i("+ij~i") >> i("i*0.000244140625~i")
    centred = (I & mean) >> i("ij-i~ij")
    deviation = (I & I) >> SQUARES >> i("i*0.000244140625~i") >> i("i+1e-5~i") >> i("i^0.5~i")
    norm = centred >> (I & deviation) >> i("ij/i~ij")
    best = optimize(norm, [(4096, 4096)], threads=2)
    plan = best.plan([(512, 256)])
    assert plan.kernels == 1
    assert not any({512, 256} <= set(dims) for dims in plan.buffers)
    agrees(best, norm, (7, 33))


def test_a_matrix_chain_in_the_cheaper_order() -> None:
    chain = MATMUL >> MATMUL >> MATMUL
    shapes = [(8, 512), (512, 8), (8, 512), (512, 8)]
    best = optimize(chain, shapes, threads=1)
    assert max(int(np.prod(dims)) for dims in best.plan(shapes).buffers) <= 8 * 512
    agrees(best, chain, (3, 17), (17, 3), (3, 17), (17, 3))


def test_a_mean_of_everything_is_searched_as_well() -> None:
    """What reads a number goes along an axis that the number does not have, and the number along none."""
    centred = (I & (i("+ij~.") >> i("./4194304~."))) >> i("ij-.~ij")
    best = optimize(centred, [(4096, 1024)], threads=1, database=False)
    x = np.random.default_rng(0).standard_normal((7, 40), dtype=np.float32)
    np.testing.assert_allclose(best.component.interpret(x), x - x.sum(dtype=np.float64) / 4194304, rtol=1e-6)


def test_products_with_a_vector_go_right_to_left() -> None:
    chain = MATMUL >> MATMUL >> MATMUL >> i("ij*j~ij") >> i("+ij~i")
    shapes = [(512, 512)] * 4 + [(512,)]
    best = optimize(chain, shapes, threads=1)
    assert max((int(np.prod(dims)) for dims in best.plan(shapes).buffers), default=0) <= 512
    agrees(best, chain, (5, 7), (7, 6), (6, 4), (4, 3), (3,))


def test_squared_distances_become_a_product_where_that_risk_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here adders have no ports of their own, in which differences would cost little."""
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_avx512")
    distances = i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij")
    component = distances >> i("-ij~ij") >> i("^ij~ij") >> i("ij*j~ij") >> i("+ij~i")
    shapes = [(4096, 64), (4096, 64), (4096,)]
    risky = optimize(component, shapes, threads=1, rules=default + rule_set("expand-square"))
    careful = optimize(component, shapes, threads=1)
    assert not any("-" in str(node.expr) and len(node.expr.output) == 3 for node in wire(risky.component).nodes)
    assert risky.cost < 0.8 * careful.cost
    assert all(dims.count(4096) < 2 for dims in risky.plan(shapes).buffers), "no matrix is stored"
    agrees(risky, component, (9, 5), (21, 5), (21,))


@pytest.mark.usefixtures("small_caches")
def test_softmax_of_long_rows_is_one_online_pass_and_a_write() -> None:
    best = optimize(SOFTMAX, [(64, 1 << 22)], threads=2)
    plan = best.plan([(64, 1 << 22)])
    assert plan.kernels == 1
    assert [c.kind for c in plan.corrections] == ["max-shift"]
    assert not any(1 << 22 in dims for dims in plan.buffers)
    agrees(best, SOFTMAX, (7, 33))


@pytest.mark.usefixtures("small_caches")
def test_log_sum_exp_is_online() -> None:
    weights = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij")
    log_sum_exp = ((weights >> i("+ij~i") >> i("$i~i")) & i(">ij~i")) >> i("i+i~i")
    best = optimize(log_sum_exp, [(64, 1 << 22)], threads=2)
    plan = best.plan([(64, 1 << 22)])
    assert plan.kernels == 1
    assert [c.kind for c in plan.corrections] == ["max-shift"]
    assert not any(1 << 22 in dims for dims in plan.buffers)
    agrees(best, log_sum_exp, (7, 33))


def test_what_is_said_twice_is_computed_once() -> None:
    """So that the product is of a matrix with itself, of which half is computed."""
    centred = (I & i("+ij~j")) >> i("ij-j~ij")
    best = optimize((centred & centred) >> i("ij*ik~jki") >> i("+jki~jk"), [(600, 96)], threads=1)
    assert len(wire(best.component).nodes) == len(wire(centred).nodes) + 2
    assert "mirror(" in best.source


@pytest.mark.parametrize("component", [I, I & I, I | I], ids=str)
def test_inputs_that_are_passed_on(component: Component) -> None:
    best = optimize(component, [(3, 5)] * component.inputs)
    assert str(best) == str(component)
    assert best.report.stop_reason == "saturated"
    arrays = [np.full((3, 5), n, np.float32) for n in range(component.inputs)]
    np.testing.assert_array_equal(best(*arrays), component.interpret(*arrays))


def test_without_shapes_nominal_extents_serve() -> None:
    best = optimize(MATMUL, threads=1)
    agrees(best, MATMUL, (5, 7), (7, 3))


def test_limits_are_reported() -> None:
    assert optimize(MATMUL, threads=1).report.stop_reason == "saturated"


def test_importing_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    heavy = "egglog", "torch", "cupy", "networkx", "matplotlib"
    code = f"""import sys, ilang_eq
from ilang_eq.rewrites.engine import load_egglog
print([m for m in {heavy} if m in sys.modules], load_egglog.cache_info().misses)"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[] 0"
    assert ilang_eq.__doc__


def test_an_absurd_way_does_not_keep_a_product_from_its_accumulators() -> None:
    """x / (1 + exp(-x)) of a product: dividing inside the sum reads its terms too, which nobody would choose."""
    silu = (I & i("-ij~ij") >> i("^ij~ij") >> i("1+ij~ij")) >> i("ij/ij~ij")
    plain, bent = (optimize(c, [(128, 768), (768, 3072)], threads=1, database=False) for c in (MATMUL, MATMUL >> silu))
    assert bent.cost < 1.5 * plain.cost
    agrees(bent, MATMUL >> silu, (9, 17), (17, 70))


def test_a_schedule_that_stores_little_is_taken_where_costs_are_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a core with 2 MiB whole rows of scores would do as well, by the model, as long as they stay in its cache."""
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_sapphire_rapids")
    best = optimize(ATTENTION, [(2048, 64)] * 3, threads=1)
    rows = [s for s in best.schedules if not s.plan().corrections and s.cost.kernels == 1]
    assert best.plan().corrections
    assert all(s.stored > AS_LITTLE * best.best.stored for s in rows if s.cost.seconds < best.best.cost.seconds)


def test_what_is_stored_is_counted_where_two_sites_compute_it_once() -> None:
    rows = (I & i(">ij~i")) >> i("ij-i~ij||i1j") >> i("^ij~ij||ij0")
    apart, fused = (rows >> (I & i(f"+ij~i||{order}")) >> i("ij/i~ij||i10j") for order in ("i0j", "ij0"))
    for component in (apart, fused):
        found = optimize(component, [(64, 256)], threads=1).schedules
        (written,) = [schedule for schedule in found if str(schedule.component) == str(component)]
        assert written.stored > 1000, "a row"


def test_of_schedules_that_cost_next_to_the_same_the_one_with_the_fewest_kernels_is_taken() -> None:
    def costing(seconds: float, kernels: int, stored: float) -> Schedule:
        terms = tuple((f"{n}: issue", seconds / kernels) for n in range(kernels))
        return Schedule(i(f"i+{seconds}~i"), Cost(seconds, terms), stored=stored)

    cheapest, fewer, lean, slow = (
        costing(1.0, 2, 8.0),
        costing(1.01, 1, 9.0),
        costing(1.07, 1, 1.0),
        costing(2.0, 1, 0.0),
    )

    def ranked(*schedules: Schedule, kept: float = 10.0, near: float = 0.0) -> tuple[Schedule, ...]:
        return _ranked(schedules, MODELS["c"](1, "float32")._replace(kept=kept, near=near, shared=0.0))

    assert ranked(slow, fewer, cheapest) == (fewer, cheapest, slow)
    assert ranked(slow, lean, fewer, cheapest) == (lean, cheapest, fewer, slow)
    assert ranked(slow, lean, fewer, cheapest, kept=7.0) == (fewer, cheapest, lean, slow), "no cache of a core has it"
    assert ranked(slow, lean, fewer, cheapest, near=9.0) == (fewer, cheapest, lean, slow), "the nearest cache has it"


def test_of_schedules_that_cost_the_same_the_simplest_is_taken() -> None:
    models = MODELS["c"](1, "float32")
    schedules = [
        Schedule(i(text), Cost(seconds, (("0: issue", seconds),)))
        for text, seconds in (("+ij~i|i:4,j:8|iji'j'", 1.0), ("+ij~i|j:8|ijj'", 1.001), ("+ij~i", 1.01))
    ]
    assert [schedules.index(one) for one in _ranked(schedules, models)] == [1, 0, 2]


def test_what_results_look_like_where_they_are_shown() -> None:
    best = optimize(i("ij*ij~ij") >> i("+ij~i"), [(64, 64)] * 2, threads=1)
    assert str(best) in repr(best)
    assert len(repr(best)) < len(str(best)) + 200
