"""The cost model of the CUDA binding: that it sees what it claims to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.gpu import RESULTS
from benchmarks.workloads import COMPONENTS
from ilang_eq import Component, i, optimize
from ilang_eq.cuda.emit import bound
from ilang_eq.cuda.walks import contracts_of
from ilang_eq.errors import OptionError
from ilang_eq.extract.gpu_machine import as_processor, chosen_gpu, gpu_names, load_gpu
from ilang_eq.extract.gpu_model import GROUPS, gpu_cost, resident
from ilang_eq.extract.gpu_staging import variants
from ilang_eq.extract.gpu_volumes import Cache, Run, Use, volume
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from ilang_eq.lower.ir import Index, Load, Precision
from tests.cuda.schedules import ATTENTION, LARGE, SOFTMAX, attention, dots, matmul, program

H200 = load_gpu("sm_90")
SCHEDULES = RESULTS / "gpu_schedules"


def terms(
    component: Component, shapes: Sequence[tuple[int, ...]], gpu: str = "sm_90", precision: Precision = "float32"
) -> dict[str, float]:
    """Seconds of each part, over all launches; "all" is the sum that counts."""
    extents = {(k, d): n for k, shape in enumerate(shapes) for d, n in enumerate(shape)}
    cost = gpu_cost(replace(program(component), precision=precision), extents, load_gpu(gpu))
    found: dict[str, float] = {"all": cost.seconds}
    for name, seconds in cost.terms:
        part = name.partition(": ")[2]
        found[part] = found.get(part, 0.0) + seconds
    return found


SQUARE = [(4096, 4096)] * 2


def test_memory_bound_kernels_take_as_long_as_a_copy() -> None:
    for component, shapes in ((i("^i~i"), [(2**28,)]), (SOFTMAX, [(2**16, 2**12)])):
        seconds = terms(component, shapes)["memory"]
        assert seconds == pytest.approx(2 * 4 * 2**28 / (H200.dram_gbs * 1e9), rel=0.15)


def test_few_threads_reach_the_bandwidth_if_they_read_runs() -> None:
    text = (SCHEDULES / "softmax-16384.i").read_text(encoding="utf-8")
    seconds = terms(read_component(text), [(2**14, 2**14)])["memory"]
    assert seconds == pytest.approx(2 * 4 * 2**28 / (H200.dram_gbs * 1e9), rel=0.01)


def test_a_sum_of_everything_is_memory_bound() -> None:
    seconds = terms(i("+i~."), [(2**28,)])["all"]
    assert seconds == pytest.approx(4 * 2**28 / (H200.dram_gbs * 1e9), rel=0.3)


def test_larger_tiles_make_a_product_faster_and_near_the_peak() -> None:
    small, large = (terms(matmul(tile, 16), SQUARE)["all"] for tile in (32, 128))
    least = 4096**3 / (H200.fma * H200.sms * H200.clock_ghz * 1e9)
    assert large < small / 2
    assert least < large < 2.4 * least


@pytest.mark.parametrize(("gpu", "tflops"), [("sm_80", 156), ("sm_89", 82.6), ("sm_90", 0.63 * 494)])
def test_tensor_cores_run_at_published_rates(gpu: str, tflops: float) -> None:
    found = terms(LARGE, [(8192, 8192)] * 2, gpu, "tf32")
    assert found["tensor cores"] == pytest.approx(2 * 8192**3 / (tflops * 1e12), rel=0.06)
    assert terms(LARGE, [(8192, 8192)] * 2, gpu)["tensor cores"] == 0


@pytest.mark.parametrize(("gpu", "tflops"), [("sm_80", 156), ("sm_90", 0.88 * 494)])
def test_four_warps_together_run_at_published_rates(gpu: str, tflops: float) -> None:
    """By one part of the model or the other, as a device has instructions."""
    found = terms(matmul(128, 32), SQUARE, gpu, "tf32")
    own, other = (GROUPS, "tensor cores") if gpu == "sm_90" else ("tensor cores", GROUPS)
    assert found[own] == pytest.approx(2 * 4096**3 / (tflops * 1e12), rel=0.06)
    assert found[other] == 0


def test_groups_of_two_blocks_fill_gaps() -> None:
    """As on an H200: 128 × 128 tiles and two blocks before larger ones and one, and both before single warps."""
    small, large = (terms(matmul(tile, 32), SQUARE, precision="tf32")["all"] for tile in (128, 256))
    single = terms(matmul(128, 16), SQUARE, precision="tf32")["all"]
    assert small < large
    assert small < 0.8 * single


def test_three_products_take_three_times_as_long() -> None:
    rough, fine = (terms(matmul(128, 16), SQUARE, precision=p) for p in ("tf32", "tf32x3"))
    assert fine["tensor cores"] == pytest.approx(3 * rough["tensor cores"])
    assert rough["all"] < fine["all"] < 3 * rough["all"]


def test_two_parts_by_four_warps_are_as_on_an_h200() -> None:
    """Milliseconds of products that were measured there, the quickest first; single warps are slower than all."""
    tiles = {(128, 128): 1.543, (64, 128): 1.628, (64, 256): 1.964}
    found = {
        (rows, columns): terms(dots(rows, columns, 32), SQUARE, precision="tf32x3")["all"] * 1e3
        for rows, columns in tiles
    }
    assert [*found] == sorted(found, key=lambda tile: found[tile])
    for tile, measured in tiles.items():
        assert found[tile] == pytest.approx(measured, rel=0.3), tile
    assert terms(matmul(128, 16), SQUARE, precision="tf32x3")["all"] > 1.2 * found[128, 128] * 1e-3


def test_without_hopper_products_in_chunks_read_a_factor_again() -> None:
    """For each of three products, and sixteen rows of a warp: more than single warps do, which take it apart once."""
    together, single = (terms(matmul(128, depth), SQUARE, "sm_80", "tf32x3") for depth in (32, 16))
    assert together["tensor cores"] == pytest.approx(single["tensor cores"])
    assert together["shared memory"] > 1.5 * single["shared memory"]


def test_sums_that_do_not_fit_registers_cost() -> None:
    """Weights of 64 keys beside sums of 64 values: the compiler spills, and the model is told to keep off."""
    shapes = [(4096, 64)] * 3
    fits, spills = (terms(attention(64, keys, 64, 32), shapes, precision="tf32")["all"] for keys in (32, 64))
    assert spills > 1.25 * fits


def test_a_search_finds_tiles_for_tensor_cores() -> None:
    """A product three times as fast as without, as on an H200; attention that keeps weights in registers."""
    product = i("ik*kj~ijk") >> i("+ijk~ij")
    plain, fast = (optimize(product, SQUARE, target="cuda", precision=p, database=False) for p in ("float32", "tf32"))
    assert fast.cost < plain.cost / 3
    ((launch, _),) = bound(replace(program(fast.component), precision="tf32"))
    assert [one.grouped for one in contracts_of(launch.body)] == [True]
    naive = read_component((COMPONENTS / "attention_heads.i").read_text(encoding="utf-8"))
    found = optimize(naive, [(16, 4096, 64)] * 3, target="cuda", precision="tf32", database=False)
    ((launch, homes),) = bound(replace(program(found.component), precision="tf32"))
    assert [one.handed for one in contracts_of(launch.body)].count(True) == 1
    assert not any(home.where == "scratch" for home in homes.values())
    assert found.source.count("multiply(") > 2


def test_rows_that_share_a_bank_cost() -> None:
    """A copy of 16 × 64 read along its columns: both orders do, but copies that turn write by elements."""
    source = "i:64,j:64,k:16|ijk01k'i'j'"
    for output in ("kj", "jk"):
        copies = i("+ik~ki|i:64,k:16|iki'k'") | i(f"+kj~{output}|j:64,k:16|jkj'k'")
        product = copies >> i(f"ki*{output}~ijk|{source}") >> i("+ijk~ij|i:64,j:64,k:16|ijkk'i'j'0")
        assert terms(product, SQUARE)["shared memory"] < 1.6 * terms(matmul(64, 16), SQUARE)["shared memory"]


def test_a_product_copies_both_operands_rather_than_read_memory_in_its_innermost_loop() -> None:
    copies = i("+ik~ki|i:128,k:16|ikk'i'"), i("+kj~kj|j:128,k:16|jkj'k'")
    product, total = "ki*kj~ijk|i:128,j:128,k:16|ij", i("+ijk~ij|i:128,j:128,k:16|ijkk'i'j'0")
    both = (copies[0] | copies[1]) >> i(f"{product}k10k'i'j'") >> total
    one = copies[0] >> i(f"{product}k0k'i'j'") >> total
    assert terms(both, SQUARE)["all"] < 0.98 * terms(one, SQUARE)["all"]


def test_rows_that_do_not_stay_in_the_cache_are_fetched_again() -> None:
    """The same floats, in rows that all blocks together have no room for while they go through theirs twice."""
    short, long = (terms(SOFTMAX, [shape])["memory"] for shape in ((2**16, 2**12), (2**10, 2**18)))
    assert long > 1.4 * short


def test_what_neighbouring_tasks_need_is_fetched_once_for_all_that_run() -> None:
    place = Load("b", (Index(("k",)), Index(("j",))))
    grid = (Run("i", 32.0), Run("j", 32.0))
    use = Use(place, (*grid, Run("k", 1000.0)), 32_000.0)
    alone, together = (volume([use], Cache(1_000.0, tasks, grid)) for tasks in (1, 128))
    assert alone == 4 * together, "128 tasks are four rows of the grid"


def test_lanes_that_share_a_run_still_take_it_one_by_one() -> None:
    """A product of 4 x 4 sums a thread asks shared memory for eight words per sixteen products, whoever shares them."""
    assert terms(matmul(64, 16), SQUARE)["shared memory"] > 1.3 * terms(matmul(128, 16), SQUARE)["shared memory"]


def test_few_blocks_wait_for_memory() -> None:
    rows = i("+ij~i|i:4|ii'j")
    few, many = terms(rows, [(8, 2**20)]), terms(rows, [(2**13, 2**10)])
    assert few["memory"] > 3 * many["memory"], "the same bytes, too few in flight"


def test_special_functions_have_a_rate_of_their_own() -> None:
    shape = [(2**26,)]
    assert terms(i("i+i~i"), shape * 2)["special functions"] == 0
    expected = 2**26 / (H200.special * H200.sms * H200.clock_ghz * 1e9)
    assert terms(i("^i~i"), shape)["special functions"] == pytest.approx(expected, rel=0.05)


def test_launches_cost() -> None:
    assert terms(i("^i~i") >> i("-i~i"), [(10,)])["all"] > 2 * H200.launch_us * 1e-6


def test_what_an_sm_holds() -> None:
    ((launch, homes),) = bound(program(matmul(64, 16)))
    assert resident(launch, homes, H200) == 3, "registers decide: 80 of 256 threads"
    assert resident(launch, homes, load_gpu("sm_89")) <= resident(launch, homes, H200)


def test_a_place_is_fetched_anew_only_where_it_does_not_stay() -> None:
    place = Load("b", (Index(("k",)), Index(("j",))))
    loops = (Run("i", 10.0), Run("k", 100.0), Run("j", 100.0))
    use = Use(place, loops, 10_000.0)
    assert volume([use], Cache(50_000.0, 1, ())) == 40_000
    assert volume([use], Cache(30_000.0, 1, ())) == 400_000


@pytest.mark.parametrize("name", gpu_names())
def test_descriptions(name: str) -> None:
    gpu = load_gpu(name)
    assert gpu.name == name
    assert gpu.l2_latency < gpu.dram_latency
    assert gpu.dram_gbs < gpu.l2_gbs
    assert as_processor(gpu).cores == gpu.sms


def test_the_gpu_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert chosen_gpu().name == "sm_90"
    monkeypatch.setenv("ILANG_EQ_GPU", "sm_80")
    assert chosen_gpu().name == "sm_80"
    with pytest.raises(OptionError, match="no GPU description 'sm_1'"):
        load_gpu("sm_1")
    (tmp_path / "x.toml").write_text('name = "x"\nsms = -1\nteeth = 3\n')
    with pytest.raises(OptionError, match=r"clock_ghz is missing.*teeth is unknown.*sms is -1"):
        load_gpu(tmp_path / "x.toml")


def test_a_description_from_before_products_of_groups_has_none_that_are_faster(tmp_path: Path) -> None:
    text = "\n".join(f"{name} = {value!r}" for name, value in asdict(H200).items() if name not in ("name", "warpgroup"))
    (tmp_path / "gpu.toml").write_text(f'name = "older"\n{text}\n')
    assert load_gpu(tmp_path / "gpu.toml").warpgroup == H200.tensor


def test_operands_in_memory_are_copied_tile_by_tile() -> None:
    found = {str(lower(graph, alternatives=False).buffers) for graph in variants(wire(ATTENTION))}
    assert len(found) > 1
    costs = []
    for graph in variants(wire(i("ik*kj~ijk") >> i("+ijk~ij"))):
        lowered = lower(graph, alternatives=False)
        costs.append(gpu_cost(lowered, {(0, 0): 4096, (0, 1): 4096, (1, 0): 4096, (1, 1): 4096}, H200).seconds)
    assert min(costs) < costs[0] / 20


@pytest.mark.parametrize("product", ["i*i~i", "i*ij~ij", "ij*ij~ij", "ijk*kl~ijlk", "i*j~ij", "i*.~i"])
@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_products_with_results_of_any_rank_have_variants(product: str, kept: int) -> None:
    axes = product.partition("~")[2]
    for graph in variants(wire(i(product) >> i(f"+{axes}~{axes[:kept] or '.'}"))):
        lower(graph, alternatives=False)


def test_optimize_for_a_gpu_needs_no_device() -> None:
    best = optimize(i("ik*kj~ijk") >> i("+ijk~ij"), SQUARE, target="cuda", database=False)
    assert "__global__" in best.source
    assert best.cost < best.baseline_cost / 20
    assert "shared memory" in best.explain()
