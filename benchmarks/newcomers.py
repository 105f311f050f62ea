"""Still more workloads without targets, written down later than ``unseen.py``, again before anybody had run them.

python -m benchmarks.cpu --breadth [--threads N] [NAME ...]
"""

from __future__ import annotations

from typing import Any

from benchmarks.breadth import LOG_SUM, PRODUCT, SEEN, SIGMOID, SOFTMAX, attention, product, row, total
from benchmarks.formulas import EPSILON
from benchmarks.resized import RESIZED
from benchmarks.strangers import STRANGERS
from benchmarks.unseen import UNSEEN, gelu, normalised
from benchmarks.workloads import Workload

_N = 4096
_SCORES = 'i("ik*jk~ijk") >> i("+ijk~ij")'
_SQUARE = '(I & I) >> i("{0}*{0}~{0}")'
_CUBE = f'(I & ({_SQUARE})) >> i("{{0}}*{{0}}~{{0}}")'
_CENTRED = '(I & (i("+{0}~{1}") >> i("{1}/{2}~{1}"))) >> i("{0}-{1}~{0}")'
_DEVIATION = (
    f'{_SQUARE} >> i("+{{0}}~{{1}}") >> i("{{1}}/{{2}}~{{1}}") >> i("{{1}}+0.00001~{{1}}") >> i("{{1}}^0.5~{{1}}")'
)
_NORMAL = f'{_CENTRED} >> (I & ({_DEVIATION})) >> i("{{0}}/{{1}}~{{0}}")'


def _rows(ops: Any, x: Any) -> Any:
    return ops.sum(x, axis=-1, keepdims=False)


def _squared_distances(ops: Any, x: Any, y: Any) -> Any:
    products = ops.matmul(x, ops.transposed(y)) * 2.0
    return ops.expand(_rows(ops, x * x), 1) + ops.expand(_rows(ops, y * y), 0) - products


def _polynomial(ops: Any, x: Any, y: Any, v: Any) -> Any:
    scores = ops.matmul(x, ops.transposed(y)) + 1.0
    return ops.einsum("ij,j->i", scores * scores * scores, v)


def _laplace(ops: Any, x: Any, y: Any, v: Any) -> Any:
    d = ops.expand(x, 1) - ops.expand(y, 0)
    return ops.einsum("ij,j->i", ops.exp(-_rows(ops, ops.relu(d) + ops.relu(-d))), v)


def _mahalanobis(ops: Any, x: Any, y: Any, m: Any) -> Any:
    d = x - y
    return _rows(ops, ops.matmul(d, m) * d)


def _logistic_gradient(ops: Any, x: Any, w: Any, y: Any) -> Any:
    return ops.einsum("bi,b->i", x, ops.sigmoid(ops.einsum("bi,i->b", x, w)) - y)


def _layers(ops: Any, x: Any, first: Any, second: Any, third: Any) -> Any:
    return ops.matmul(ops.relu(ops.matmul(ops.relu(ops.matmul(x, first)), second)), third)


def _soft_labels(ops: Any, x: Any, y: Any) -> Any:
    return -_rows(ops, (x - ops.expand(ops.logsumexp(x), 1)) * y)


def _attention_biased(ops: Any, q: Any, k: Any, bias: Any, v: Any) -> Any:
    weights = ops.softmax(ops.einsum("hik,hjk->hij", q, k) * 0.125 + bias)
    return ops.einsum("hij,hjk->hik", weights, v)


def _deviation_of_columns(ops: Any, x: Any) -> Any:
    centred = x - ops.mean(x, axis=0, keepdims=True)
    return ops.sqrt(ops.mean(centred * centred, axis=0, keepdims=False) + EPSILON)


def _pooled(ops: Any, x: Any) -> Any:
    mean = ops.mean(x, axis=1, keepdims=False)
    return mean / ops.sqrt(ops.sum(mean * mean, axis=-1, keepdims=True))


NEWCOMERS: tuple[Workload, ...] = (
    product(
        "weight-gradient",
        "xᵀ·y, 32768 rows, 64×48",
        'i("bi*bj~bij") >> i("+bij~ij")',
        "bi,bj->ij",
        (32768, 64),
        (32768, 48),
    ),
    row(
        "logistic-gradient",
        "Xᵀ·(sigmoid(X·w) − y), 16384×512",
        f'fitted = i("bi*i~bi") >> i("+bi~b") >> {SIGMOID.format("b")}\n'
        '((I & I) | I | I) >> (I | ((fitted | I) >> i("b-b~b"))) >> i("bi*b~ib") >> i("+ib~i")',
        ((16384, 512), (512,), (16384,)),
        _logistic_gradient,
        {"fma": 2.0 * 16384 * 512},
        0.1,
    ),
    product(
        "linear-attention",
        "(q·kᵀ)·v without softmax, 8 heads of 2048×64",
        'i("hik*hjk~hijk") >> i("+hijk~hij") >> i("hij*hjl~hilj") >> i("+hilj~hil")',
        "hik,hjk,hjl->hil",
        (8, 2048, 64),
        (8, 2048, 64),
        (8, 2048, 64),
        fma=2.0 * 8 * 2048 * 64 * 64,
    ),
    row(
        "gelu-layer",
        "GELU(x·w + b), 512×768→3072",
        f"cube = {_CUBE.format('ij')}\n"
        'inner = ((cube >> i("ij*0.044715~ij")) & I) >> i("ij+ij~ij") >> i("ij*1.5957691216~ij")\n'
        f'gelu = (I & (inner >> {SIGMOID.format("ij")})) >> i("ij*ij~ij")\n'
        f'({PRODUCT} | I) >> i("ij+j~ij") >> gelu',
        ((512, 768), (768, 3072), (3072,)),
        lambda ops, x, w, b: gelu(ops, ops.matmul(x, w) + b),
        {"fma": 512.0 * 768 * 3072, "exp": 512.0 * 3072},
        0.2,
    ),
    row(
        "polynomial-kernel",
        "Σ_j (x·y + 1)³ v, 4096², 32-d",
        f'({_SCORES} >> i("ij+1~ij") >> {_CUBE.format("ij")} | I) >> i("ij*j~ij") >> i("+ij~i")',
        ((_N, 32), (_N, 32), (_N,)),
        _polynomial,
        {"fma": _N * _N * 33.0, "mul": 2.0 * _N * _N},
        0.3,
    ),
    row(
        "laplace-kernel",
        "Σ_j exp(−|x − y|) v, 2048², 8-d",
        'distance = i("ik-jk~ijk") >> (I & i("-ijk~ijk")) >> i("ijk>ijk~ijk") >> i("+ijk~ij")\n'
        '(distance >> i("-ij~ij") >> i("^ij~ij") | I) >> i("ij*j~ij") >> i("+ij~i")',
        ((2048, 8), (2048, 8), (2048,)),
        _laplace,
        {"add": 2048.0 * 2048 * 16, "exp": 2048.0 * 2048},
        0.3,
    ),
    row(
        "mahalanobis",
        "(x − y)·M·(x − y) of 8192 pairs, 64-d",
        '((i("bi-bi~bi") >> (I & I)) | I) >> (I | (i("bi*ij~bij") >> i("+bij~bj"))) >> i("bj*bj~bj") >> i("+bj~b")',
        ((8192, 64), (8192, 64), (64, 64)),
        _mahalanobis,
        {"fma": 8192.0 * 64 * 65},
        0.3,
    ),
    row(
        "divergence",
        "Σ_j p (ln p − ln q) of rows, 4096×1024",
        '((I & i("$ij~ij")) | i("$ij~ij")) >> (I | i("ij-ij~ij")) >> i("ij*ij~ij") >> i("+ij~i")',
        ((_N, 1024), (_N, 1024)),
        lambda ops, p, q: _rows(ops, p * (ops.log(p) - ops.log(q))),
        {"ln": 2.0 * _N * 1024, "fma": _N * 1024.0},
        positive=True,
    ),
    row(
        "layer-norm-residual",
        "layer norm of x + r, 8192×1024",
        f"normal = {_NORMAL.format('ij', 'i', '1024')}\n"
        '((i("ij+ij~ij") >> normal | I) >> i("ij*j~ij") | I) >> i("ij+j~ij")',
        ((8192, 1024), (8192, 1024), (1024,), (1024,)),
        lambda ops, x, r, gain, shift: ops.layer_norm(x + r, gain, shift, EPSILON),
        {"add": 3.0 * 8192 * 1024, "fma": 2.0 * 8192 * 1024},
        keep=(1024,),
    ),
    row(
        "squared-distances",
        "‖x − y‖², 2048², 64-d",
        f'i("ik-jk~ijk") >> {_SQUARE.format("ijk")} >> i("+ijk~ij")',
        ((2048, 64), (2048, 64)),
        _squared_distances,
        {"fma": 2048.0 * 2048 * 64},
    ),
    row(
        "normal-equations",
        "Aᵀ·(A·x), 4096²",
        '((I & I) | I) >> (I | (i("ij*j~ij") >> i("+ij~i"))) >> i("ij*i~ji") >> i("+ji~j")',
        ((_N, _N), (_N,)),
        lambda ops, a, x: ops.einsum("ij,i->j", a, ops.einsum("ij,j->i", a, x)),
        {"fma": 2.0 * _N * _N},
        0.1,
    ),
    row(
        "trace-of-product",
        "Σ_ij A_ij B_ji, 4096²",
        'i("ij*ji~ij") >> i("+ij~.")',
        ((_N, _N), (_N, _N)),
        total(lambda ops, a, b: a * ops.transposed(b)),
        {"fma": float(_N * _N)},
    ),
    row(
        "norm-of-product",
        "Σ (A·B)², 1024³",
        f'{PRODUCT} >> {_SQUARE.format("ij")} >> i("+ij~.")',
        ((1024, 1024), (1024, 1024)),
        total(lambda ops, a, b: ops.matmul(a, b) * ops.matmul(a, b)),
        {"fma": 1024.0**3},
        0.1,
    ),
    row(
        "three-layers",
        "64→128→128→16 with ReLU, 16384 rows",
        f'layer = {PRODUCT} >> i("0>ij~ij")\n((layer | I) >> layer | I) >> {PRODUCT}',
        ((16384, 64), (64, 128), (128, 128), (128, 16)),
        _layers,
        {"fma": 16384.0 * (64 * 128 + 128 * 128 + 128 * 16)},
        0.2,
    ),
    row(
        "soft-labels",
        "−Σ_j y ln softmax(x) of rows, 8192×1000",
        f'total = ({LOG_SUM.format("ij", "i")} & i(">ij~i")) >> i("i+i~i")\n'
        '((I & total) >> i("ij-i~ij") | I) >> i("ij*ij~ij") >> i("+ij~i") >> i("-i~i")',
        ((8192, 1000), (8192, 1000)),
        _soft_labels,
        {"exp": 8192.0 * 1000, "add": 3.0 * 8192 * 1000},
    ),
    row(
        "group-norm-silu",
        "group norm and SiLU, 64×32 of 3136",
        f"normal = {_NORMAL.format('bgs', 'bg', '3136')}\n"
        f'normal >> (I & ({SIGMOID.format("bgs")})) >> i("bgs*bgs~bgs")',
        ((64, 32, 3136),),
        lambda ops, x: ops.silu(normalised(ops, x)),
        {"add": 2.0 * 64 * 32 * 3136, "exp": 64.0 * 32 * 3136},
        keep=(3136,),
    ),
    row(
        "best-match",
        "max_j x·y, 8192 by 2048, 64-d",
        f'{_SCORES} >> i(">ij~i")',
        ((8192, 64), (2048, 64)),
        lambda ops, x, y: ops.max(ops.matmul(x, ops.transposed(y)), axis=-1, keepdims=False),
        {"fma": 8192.0 * 2048 * 64},
        0.3,
    ),
    row(
        "attention-biased",
        "attention with one bias, 8 heads of 512×64",
        'scores = i("hik*hjk~hijk") >> i("+hijk~hij") >> i("hij*0.125~hij")\n'
        f"softmax = {SOFTMAX.format('hij', 'hi')}\n"
        '((scores | I) >> i("hij+ij~hij") >> softmax | I) >> i("hij*hjk~hikj") >> i("+hikj~hik")',
        ((8, 512, 64), (8, 512, 64), (512, 512), (8, 512, 64)),
        _attention_biased,
        {"fma": 2.0 * 8 * 512 * 512 * 64, "exp": 8.0 * 512 * 512},
    ),
    attention("attention-decode", "attention, 16 queries, 8192 keys, 64-d", "", (16, 64), (8192, 64)),
    row(
        "deviation-of-columns",
        "deviations of columns, 65536×64",
        f"{_CENTRED.format('ij', 'j', '65536')} >> {_DEVIATION.format('ij', 'j', '65536')}",
        ((65536, 64),),
        _deviation_of_columns,
        {"add": 65536.0 * 64, "fma": 65536.0 * 64},
        keep=(65536,),
    ),
    row(
        "pooled-unit",
        "unit vectors along means, 64×512×384",
        'i("+bij~bj") >> i("bj/512~bj") >> (I & ('
        f'{_SQUARE.format("bj")} >> i("+bj~b") >> i("b^0.5~b"))) >> i("bj/b~bj")',
        ((64, 512, 384),),
        _pooled,
        {"add": 64.0 * 512 * 384},
        keep=(512,),
    ),
    product(
        "four-axes",
        "a b c d by c d e f, 32³×16",
        'i("abcd*cdef~abefcd") >> i("+abefcd~abef")',
        "abcd,cdef->abef",
        (32, 32, 32, 16),
        (32, 16, 32, 32),
    ),
)

BREADTH = (*SEEN, *UNSEEN, *NEWCOMERS, *STRANGERS, *RESIZED)
"""All that ``--breadth`` runs."""
