"""Lanes that lie apart in memory are loaded one after another: a loop that stores each takes 4 to 12 times as long."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ilang_eq import i
from ilang_eq.c.preamble import HEADERS, preamble
from ilang_eq.c.vectors import Used

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

BRANCH = re.compile(r"^\s+(j\w+|b\.\w+|cbn?z)\s", re.MULTILINE)
WIDTHS = (4, 8, 16)


@needs_compiler
@pytest.mark.parametrize("step", ["24", "step"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_loop_over_lanes(width: int, step: str, tmp_path: Path) -> None:
    used = Used()
    used.widths.add(width)
    used.helpers.add(("gather", width))
    call = f"void gathered(const float *p, float *q, int64_t step) {{ V{width}(*q) = gather{width}(p, {step}); }}\n"
    (tmp_path / "gather.c").write_text(HEADERS + preamble(used, "") + call)
    command = ["cc", "-O3", "-march=native", "-fopenmp-simd", "-S", "gather.c", "-o", "gather.s"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert not BRANCH.search((tmp_path / "gather.s").read_text())


@needs_compiler
@pytest.mark.parametrize("rows", [4, 8, 12, 16, 20])
def test_tiles_read_across_their_rows(rows: int) -> None:
    tiles = f"i:{rows},j:16"
    product = i(f"ik*kj~kij|{tiles}|ijki'j'") >> i(f"+kij~ij|{tiles}|ijki'j'0")
    component = product >> i(f"ij*2~ji|{tiles}|ij0j'i'") >> i(f"+ji~i|{tiles}|ijj'i'0")
    rng = np.random.default_rng(rows)
    x, y = (rng.standard_normal(shape, dtype=np.float32) for shape in ((50, 9), (9, 37)))
    kernel = component.compile("c", threads=1)
    assert "gather" in kernel.source
    np.testing.assert_allclose(kernel(x, y), 2.0 * (x.astype(np.float64) @ y).sum(1), rtol=1e-4, atol=1e-4)
