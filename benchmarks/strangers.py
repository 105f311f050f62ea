"""Workloads without targets that came last, again written down before anybody had run them.

python -m benchmarks.cpu --breadth [--threads N] [NAME ...]
"""

from __future__ import annotations

from typing import Any

from benchmarks.breadth import LOG_SUM, PRODUCT, SIGMOID, SOFTMAX, product, row
from benchmarks.formulas import squared_distances
from benchmarks.workloads import Workload

_TANH = 'i("{0}*2~{0}") >> i("^{0}~{0}") >> i("{0}+1~{0}") >> i("2/{0}~{0}") >> i("1-{0}~{0}")'
_SQUARED_DISTANCE = 'i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij")'


def _sigmoid_attention(ops: Any, q: Any, k: Any, v: Any) -> Any:
    return ops.einsum("hij,hjk->hik", ops.sigmoid(ops.einsum("hik,hjk->hij", q, k) * 0.125), v)


def _kernel_regression(ops: Any, x: Any, y: Any, v: Any) -> Any:
    return ops.matmul(ops.softmax(-squared_distances(ops, x, y)), v)


def _student(ops: Any, x: Any, y: Any, v: Any) -> Any:
    return ops.matmul(1.0 / (squared_distances(ops, x, y) + 1.0), v)


def _pooled_attention(ops: Any, x: Any, w: Any) -> Any:
    return ops.einsum("bt,btc->bc", ops.softmax(ops.einsum("btc,c->bt", x, w)), x)


def _squeeze_excite(ops: Any, x: Any, first: Any, second: Any) -> Any:
    means = ops.mean(x, axis=2, keepdims=False)
    return x * ops.expand(ops.sigmoid(ops.matmul(ops.relu(ops.matmul(means, first)), second)), 2)


def _double_centred(ops: Any, x: Any) -> Any:
    rows, columns = (ops.mean(x, axis=axis, keepdims=True) for axis in (1, 0))
    return x - rows - columns + ops.mean(rows, axis=0, keepdims=True)


def _chi_squared(ops: Any, x: Any, y: Any) -> Any:
    a, b = ops.expand(x, 1), ops.expand(y, 0)
    return ops.sum((a - b) * (a - b) / (a + b), axis=-1, keepdims=False)


def _max_plus(ops: Any, x: Any, y: Any) -> Any:
    return ops.max(ops.expand(x, 1) + ops.expand(y, 0), axis=-1, keepdims=False)


STRANGERS: tuple[Workload, ...] = (
    row(
        "sigmoid-attention",
        "attention by sigmoids, 8 heads of 1024×64",
        'scores = i("hik*hjk~hijk") >> i("+hijk~hij") >> i("hij*0.125~hij")\n'
        f'(scores >> {SIGMOID.format("hij")} | I) >> i("hij*hjk~hikj") >> i("+hikj~hik")',
        ((8, 1024, 64),) * 3,
        _sigmoid_attention,
        {"fma": 2.0 * 8 * 1024 * 1024 * 64, "exp": 8.0 * 1024 * 1024, "div": 8.0 * 1024 * 1024},
        0.3,
    ),
    row(
        "kernel-regression",
        "Gaussian kernel regression, 4096 by 4096, 16-d",
        f'weights = {_SQUARED_DISTANCE} >> i("-ij~ij") >> {SOFTMAX.format("ij", "i")}\n'
        '(weights | I) >> i("ij*jk~ikj") >> i("+ikj~ik")',
        ((4096, 16), (4096, 16), (4096, 8)),
        _kernel_regression,
        {"fma": 4096.0 * 4096 * 24, "exp": 4096.0 * 4096},
        0.3,
    ),
    row(
        "student-kernel",
        "Σ_j v / (1 + ‖x − y‖²), 8192 points, 2-d",
        f'({_SQUARED_DISTANCE} >> i("ij+1~ij") >> i("1/ij~ij") | I) >> i("ij*jk~ikj") >> i("+ikj~ik")',
        ((8192, 2), (8192, 2), (8192, 2)),
        _student,
        {"fma": 8192.0 * 8192 * 4, "div": 8192.0 * 8192},
    ),
    row(
        "pooled-attention",
        "attention of one query over 64×512 rows of 384",
        f'weights = i("btc*c~btc") >> i("+btc~bt") >> {SOFTMAX.format("bt", "b")}\n'
        '((I & I) | I) >> (I | weights) >> i("btc*bt~bct") >> i("+bct~bc")',
        ((64, 512, 384), (384,)),
        _pooled_attention,
        {"fma": 2.0 * 64 * 512 * 384},
        0.3,
    ),
    row(
        "squeeze-excite",
        "squeeze and excite, 16×256×784",
        'means = i("+bcs~bc") >> i("bc/784~bc")\n'
        'first = i("bc*cd~bcd") >> i("+bcd~bd") >> i("0>bd~bd")\n'
        f'second = i("bd*dc~bdc") >> i("+bdc~bc") >> {SIGMOID.format("bc")}\n'
        '((I & means) | I | I) >> (I | ((first | I) >> second)) >> i("bcs*bc~bcs")',
        ((16, 256, 784), (256, 64), (64, 256)),
        _squeeze_excite,
        {"add": 16.0 * 256 * 784, "mul": 16.0 * 256 * 784},
        keep=(784,),
    ),
    row(
        "low-rank",
        "x·w + (y·a)·b, 512×1024→1024, rank 16",
        f'adapted = ({PRODUCT} | I) >> {PRODUCT}\n({PRODUCT} | adapted) >> i("ij+ij~ij")',
        ((512, 1024), (1024, 1024), (512, 1024), (1024, 16), (16, 1024)),
        lambda ops, x, w, y, a, b: ops.matmul(x, w) + ops.matmul(ops.matmul(y, a), b),
        {"fma": 512.0 * 1024 * (1024 + 32)},
        0.1,
    ),
    product(
        "triangle",
        "i k c by j k c, 128²×64",
        'i("ikc*jkc~ijkc") >> i("+ijkc~ijc")',
        "ikc,jkc->ijc",
        (128, 128, 64),
        (128, 128, 64),
    ),
    product(
        "outer-product-mean",
        "s i c by s j d, 128×64×16",
        'i("sic*sjd~sicjd") >> i("+sicjd~ijcd")',
        "sic,sjd->ijcd",
        (128, 64, 16),
        (128, 64, 16),
    ),
    row(
        "double-centred",
        "x less means of rows and columns, 4096²",
        'rows = i("+ij~i") >> i("i/4096~i")\ncolumns = i("+ij~j") >> i("j/4096~j")\n'
        'whole = i("+ij~i") >> i("+i~.") >> i("./16777216~.")\n'
        '(((I & rows) >> i("ij-i~ij") & columns) >> i("ij-j~ij") & whole) >> i("ij+.~ij")',
        ((4096, 4096),),
        _double_centred,
        {"add": 5.0 * 4096 * 4096},
        keep=(4096,),
    ),
    row(
        "chi-squared",
        "Σ_k (x − y)² / (x + y), 1024², 64-d",
        '(i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") & i("ik+jk~ijk")) >> i("ijk/ijk~ijk") >> i("+ijk~ij")',
        ((1024, 64), (1024, 64)),
        _chi_squared,
        {"add": 3.0 * 1024 * 1024 * 64, "div": 1024.0 * 1024 * 64},
        positive=True,
    ),
    row(
        "max-plus",
        "max_k x + y, 512³",
        'i("ik+jk~ijk") >> i(">ijk~ij")',
        ((512, 512), (512, 512)),
        _max_plus,
        {"add": 2.0 * 512**3},
    ),
    row(
        "softmax-gradient",
        "softmax less labels, 8192×1000",
        f'({SOFTMAX.format("ij", "i")} | I) >> i("ij-ij~ij")',
        ((8192, 1000), (8192, 1000)),
        lambda ops, x, y: ops.softmax(x) - y,
        {"exp": 8192.0 * 1000, "div": 8192.0 * 1000, "add": 3.0 * 8192 * 1000},
    ),
    row(
        "sinkhorn",
        "ln Σ_j exp(f − c), 4096²",
        f'i("j-ij~ij") >> ({LOG_SUM.format("ij", "i")} & i(">ij~i")) >> i("i+i~i")',
        ((4096,), (4096, 4096)),
        lambda ops, f, c: ops.logsumexp(ops.expand(f, 0) - c),
        {"exp": 4096.0 * 4096, "add": 3.0 * 4096 * 4096},
    ),
    row(
        "momentum-step",
        "p − m / (√v + 1e-8), 4 M elements",
        '(I | (I | i("ij^0.5~ij") >> i("ij+0.00000001~ij")) >> i("ij/ij~ij")) >> i("ij-ij~ij")',
        ((2048, 2048),) * 3,
        lambda ops, p, m, v: p - m / (ops.sqrt(v) + 1e-8),
        {"div": 2.0 * 2048 * 2048, "add": 2.0 * 2048 * 2048},
        positive=True,
    ),
    row(
        "projection",
        "x − (y·q)·pᵀ, 8192×512, rank 16",
        'inner = i("ik*kr~irk") >> i("+irk~ir")\n'
        '(I | ((inner | I) >> i("ir*kr~ikr") >> i("+ikr~ik"))) >> i("ik-ik~ik")',
        ((8192, 512), (8192, 512), (512, 16), (512, 16)),
        lambda ops, x, y, q, p: x - ops.matmul(ops.matmul(y, q), ops.transposed(p)),
        {"fma": 2.0 * 8192 * 512 * 16},
        0.3,
    ),
    row(
        "gated-unit",
        "sigmoid(x·w) ⊙ tanh(y·u), 512×512→1024",
        f'({PRODUCT} >> {SIGMOID.format("ij")} | {PRODUCT} >> {_TANH.format("ij")}) >> i("ij*ij~ij")',
        ((512, 512), (512, 1024), (512, 512), (512, 1024)),
        lambda ops, x, w, y, u: ops.sigmoid(ops.matmul(x, w)) * ops.tanh(ops.matmul(y, u)),
        {"fma": 2.0 * 512 * 512 * 1024, "exp": 2.0 * 512 * 1024},
        0.2,
    ),
)
