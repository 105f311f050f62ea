"""The cost model judges the launches that are made: grid, threads, shared memory, registers, as the text has them."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilang_eq.cuda.emit import bound, emit
from ilang_eq.cuda.steps import BLOCKS_WITH_SCRATCH, steps
from ilang_eq.cuda.storage import blocks_of, exchange_bytes, registers_of, shared_bytes
from ilang_eq.extract.footprint import Extents
from ilang_eq.extract.gpu_machine import gpu_names, load_gpu
from ilang_eq.extract.gpu_model import resident, tasks_of
from ilang_eq.lower.interface import Shapes
from ilang_eq.lower.ir import Precision, Program
from tests.cuda.schedules import LARGE, NAMED, attention, dots, matmul, program
from tests.random_programs import random_case
from tests.test_random_programs import lowered

CASES = {**NAMED, "large": LARGE, "dots": dots(64, 64, 16), "weighted sums": attention(64, 32, 64, 16)} | {
    f"matmul {tile} {depth}": matmul(tile, depth) for tile in (32, 64, 128) for depth in (8, 16, 32)
}
_KERNEL = re.compile(r'extern "C" .*?__launch_bounds__\((\d+), (\d+)\) (\w+)\(.*?\n\}\n', re.DOTALL)
_DECLARED = re.compile(r"__shared__ (?:__align__\(\d+\) )?float (\w+)((?:\[\d+\])+);")
_ASKED = re.compile(r"auto &(\w+) = \*reinterpret_cast<float \(\*\)((?:\[\d+\])+)>\(shared_memory")


def floats(dims: str) -> int:
    return prod(map(int, re.findall(r"\d+", dims)))


def rounded(count: int) -> int:
    """Bytes of so many floats, in whole runs."""
    return -(-4 * count // 16) * 16


def check(made: Program, shapes: Shapes) -> None:
    module = emit(made)
    extents: Extents = {(k, d): n for k, shape in enumerate(shapes) for d, n in enumerate(shape)}
    texts = {found[3]: found for found in _KERNEL.finditer(module.source)}
    launched = {step.entry.name: step for step in steps(module, shapes)}
    seen = bound(made)
    assert [f"ilang_{launch.name}" for launch, _ in seen] == list(texts) == [entry.name for entry in module.entries]
    for (launch, homes), entry in zip(seen, module.entries, strict=True):
        text = texts[entry.name]
        assert int(text[1]) == launch.block.threads == entry.block.threads
        assert int(text[2]) == blocks_of(launch, homes)
        assert registers_of(launch, homes) * launch.block.threads * int(text[2]) <= 65536
        declared = {name: rounded(floats(dims)) for name, dims in _DECLARED.findall(text[0])}
        asked = {name: rounded(floats(dims)) for name, dims in _ASKED.findall(text[0])}
        exchanged = declared.pop("exchange", 0)
        assert exchanged == exchange_bytes(launch)
        shared = {name: home.bytes(launch.block) for name, home in homes.items() if home.where == "shared"}
        assert declared | asked == shared
        assert exchanged + sum(declared.values()) + entry.shared == shared_bytes(launch, homes)
        assert sum(asked.values()) == entry.shared
        assert exchanged + sum(declared.values()) <= 48 * 1024
        for name, home in homes.items():
            sizes = set(re.findall(rf"\bfloat {name}((?:\[\d+\])*)(?:;| =)", text[0]))
            if home.where == "registers":
                assert {floats(one) for one in sizes} <= {prod(home.dims)}
        tasks = tasks_of(launch, extents)
        blocks = min(tasks, BLOCKS_WITH_SCRATCH) if entry.scratch else tasks
        assert (launched[entry.name].blocks if entry.name in launched else 0) == blocks
        assert all(resident(launch, homes, load_gpu(name)) > 0 for name in gpu_names())


@pytest.mark.parametrize("precision", ["float32", "tf32", "tf32x3"])
@pytest.mark.parametrize("name", CASES)
def test_schedules(name: str, precision: Precision) -> None:
    made = replace(program(CASES[name]), precision=precision)
    shapes = [[100 + 7 * k + 30 * d for d in range(rank or 0)] for k, rank in enumerate(made.ranks)]
    for (k, d), *others in made.ties:
        for other, dim in others:
            shapes[other][dim] = shapes[k][d]
    check(made, tuple(map(tuple, shapes)))


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_random_programs(seed: int) -> None:
    case = random_case(seed)
    made = lowered(case)
    if made is not None:
        check(made, tuple(array.shape for array in case.arrays))
