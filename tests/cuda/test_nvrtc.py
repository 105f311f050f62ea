"""Every kernel compiles for every architecture with a machine file; what is bound to registers stays there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ilang_eq.cuda.build import build, compiled, nvrtc
from ilang_eq.cuda.emit import bound, emit
from ilang_eq.cuda.storage import most_registers, needed_registers
from ilang_eq.errors import BuildError
from ilang_eq.lang.component import Component
from ilang_eq.lower.ir import Precision
from tests.cuda.assembly import assembly, busiest_block
from tests.cuda.schedules import LARGE, NAMED, attention, matmul, program
from tests.random_programs import random_case
from tests.test_random_programs import lowered


def _missing() -> bool:
    try:
        nvrtc()
    except BuildError:
        return True
    return False


pytestmark = pytest.mark.skipif(_missing(), reason="needs NVRTC: pip install nvidia-cuda-nvrtc")

CASES = {**NAMED, "matmul 64": matmul(64, 16), "matmul 128": matmul(128, 32)}


@pytest.mark.parametrize("arch", [80, 89, 90])
@pytest.mark.parametrize("name", ["attention", "softmax", "matmul 64", "matmul 128"])
def test_compiles_without_spills(name: str, arch: int) -> None:
    """But for a few addresses of 64 sums in 128 registers, by the compilers for older architectures."""
    module = emit(program(CASES[name]))
    code, usage = compiled(module.source, arch)
    assert code[:4] == b"\x7fELF"
    assert usage.keys() == {entry.name for entry in module.entries}
    most = 48 if name == "matmul 128" and arch < 90 else 0
    assert all(kernel.spilled <= most for kernel in usage.values())
    for entry in module.entries:
        assert usage[entry.name].registers * entry.block.threads <= 65536


CORES: dict[str, tuple[Component, Precision]] = {
    "product": (matmul(128, 32), "tf32"),
    "large product": (LARGE, "tf32"),
    "product in two parts": (matmul(128, 16), "tf32x3"),
    "weighted sums": (attention(64, 32, 64, 32), "tf32"),
}


@pytest.mark.parametrize("arch", [80, 89, 90])
@pytest.mark.parametrize("name", CORES)
def test_tensor_cores_without_spills(name: str, arch: int) -> None:
    """What the model takes for granted of launches that it does not refuse for their registers."""
    component, precision = CORES[name]
    granted = replace(program(component), precision=precision)
    ((launch, homes),) = bound(granted)
    _, usage = compiled(emit(granted).source, arch)
    assert needed_registers(launch, homes) <= most_registers(launch)
    assert all(kernel.spilled == 0 for kernel in usage.values()), usage


@pytest.mark.parametrize("name", ["product", "weighted sums"])
def test_matrices_are_loaded_whole(name: str) -> None:
    component, precision = CORES[name]
    text = assembly(emit(replace(program(component), precision=precision)).source, 80)
    loop = busiest_block(text, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    assert "ldmatrix.sync.aligned.m8n8.x4" in text
    assert loop.count("mma.sync") >= 32


def test_a_product_reads_shared_memory_in_runs() -> None:
    """The loop with the products takes four floats at once from both copies."""
    loop = busiest_block(assembly(emit(program(matmul(128, 16))).source, 90), "fma.rn.f32")
    assert loop.count("fma.rn.f32") == 1024, "all sixteen depths"
    assert loop.count("ld.shared.v4.f32") == 64
    assert "ld.shared.f32" not in loop


def test_tiles_go_past_the_registers_in_16_bytes() -> None:
    text = assembly(emit(program(matmul(128, 16))).source, 80)
    assert text.count("cp.async.cg.shared.global") == 8, "two runs a thread of each tile, before the loop and in it"
    assert text.count("cp.async.wait_all") == 2, (
        "for full tiles, and for any: three places would leave room for one block"
    )
    assert assembly(emit(program(matmul(64, 16))).source, 80).count("cp.async.wait_group 2") == 2, "of four places"


@pytest.mark.parametrize("name", sorted(NAMED.keys() - {"attention", "softmax"}))
def test_the_other_components(name: str) -> None:
    _, usage = compiled(emit(program(NAMED[name])).source, 90)
    assert all(kernel.spilled == 0 for kernel in usage.values())


def test_random_programs_compile() -> None:
    sources = [emit(found).source for seed in range(12) if (found := lowered(random_case(seed))) is not None]
    assert len(sources) > 3
    for source in sources:
        assert compiled(source, 89)[0]


def test_machine_code_is_kept_by_content_and_architecture() -> None:
    source = emit(program(NAMED["sum"])).source
    assert build(source, 90) == build(source, 90)
    assert len({build(source, 80), build(source, 90), build(source + "\n", 90)}) == 3


def test_a_refusal_shows_what_the_compiler_said() -> None:
    with pytest.raises(BuildError, match=r'(?s)sm_90:.*"missing_thing" is undefined'):
        compiled("__device__ int f() { return missing_thing; }", 90)


def test_too_old_a_device() -> None:
    with pytest.raises(BuildError, match=r"capability 7.5\nexpected: at least 8.0"):
        build("", 75)


def test_too_new_a_device() -> None:
    with pytest.raises(
        BuildError, match=r"(?s)NVRTC \d+\.\d+ does not know the device, which is sm_999.*legal: sm_80, .*sm_90"
    ):
        build("", 999)
