"""Large components in pieces: that they compute the whole."""

from __future__ import annotations

import numpy as np
import pytest

from ilang_eq import Component, I, i, optimize

SCORES = i("ik*jk~ijk") >> i("+ijk~ij")
SOFTMAX = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij") >> (I & i("+ij~i")) >> i("ij/i~ij")
ATTENTION = SCORES >> SOFTMAX >> i("ij*jk~ikj") >> i("+ikj~ik")


@pytest.mark.parametrize(("blocks", "threads"), [(2, 2), (3, 4)])
def test_stacked_attention_stores_no_scores_and_is_right(
    blocks: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what pays depends on the machine: with 16 vector registers, or on few threads, stored scores are
    # expected to cost next to the same
    monkeypatch.setenv("ILANG_EQ_MACHINE", "x86_64_avx512")
    component: Component = ATTENTION
    for _ in range(blocks - 1):
        component = component >> ATTENTION
    shapes = [(2048, 64)] * (1 + 2 * blocks)
    best = optimize(component, shapes, threads=threads)
    assert not any(dims.count(2048) > 1 for dims in best.plan(shapes).buffers)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((n, 8), dtype=np.float32) for n in (5, *[7] * 2 * blocks)]
    np.testing.assert_allclose(best(*arrays), component.interpret(*arrays), rtol=1e-3, atol=1e-4)


def test_a_long_chain_of_pointwise_expressions() -> None:
    chain: Component = i("0.5*ij~ij")
    for n in range(39):
        chain = chain >> (i("ij+0.25~ij") if n % 2 else i("ij*0.75~ij"))
    best = optimize(chain, [(512, 512)], threads=1)
    assert best.plan().kernels <= 4
    x = np.random.default_rng(0).standard_normal((9, 17), dtype=np.float32)
    np.testing.assert_allclose(best(x), chain.interpret(x), rtol=1e-4, atol=1e-5)
