"""How many threads run a parallel loop: they are woken for much work, and share less of it once they are awake."""

from __future__ import annotations

import re

from ilang_eq.c.emit import emit
from ilang_eq.lang.component import Component, I, i
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests.c import programs

PACKED = (I | i("+kj~kj|j:32|jkj'")) >> i("ik*kj~kij|i:6,j:32|j1iki'j'") >> i("+kij~ij|i:6,j:32|jiki'j'0")


def teams(component: Component) -> dict[str, list[str]]:
    """How each kernel function decides on its threads."""
    source = emit(lower(wire(component)))
    functions = re.findall(r"^static void (kernel_\w+)\(.*\n\{\n((?:.*\n)*?)^\}", source, re.M)
    return {name: re.findall(r"const int (?:awake|team) = .*;", body) for name, body in functions}


def test_a_loop_by_itself_wakes_threads_for_what_it_computes() -> None:
    assert teams(i("^ij~ij")) == {"kernel_pow0": ["const int team = team_for(20.0 * in0_0_1, threads);"]}


def test_those_that_are_awake_share_what_is_less() -> None:
    """A panel is packed and multiplied block by block: what all blocks take decides who is awake."""
    found = teams(PACKED)
    assert len(found["kernel_add2"]) == 1, "its blocks are tasks"
    awake, packing, multiplying = found["kernel_add2_shared_tiles"]
    assert awake.startswith("const int awake = team_for(")
    assert "in1_1" in awake
    assert packing == "const int team = part_of_team(16.0 * 32 * in0_1, awake);"
    assert multiplying.startswith("const int team = part_of_team(")
    assert "in0_0 * in0_1" in multiplying


def test_who_is_alone_needs_no_team() -> None:
    """OpenMP is left out where all tasks are one share, which has the first slice of what each thread keeps."""
    source = emit(programs.softmax())
    branches = re.findall(r"if \(share < tasks\) \{\n((?:.*\n)*?) *\} else if \(tasks > 0\) \{\n(.*);\n", source)
    assert len(branches) == source.count("#pragma omp parallel") > 0
    for shared, alone in branches:
        assert "#pragma omp parallel" in shared
        assert re.match(r" +tasks_\w+\(0, tasks, ", alone)
    assert any("scratch + thread_number()" in shared and alone.endswith(", scratch)") for shared, alone in branches)
