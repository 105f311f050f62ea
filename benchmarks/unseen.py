"""More workloads without targets, written down before they were run: what a new component may expect.

python -m benchmarks.cpu --breadth [--threads N] [NAME ...]
"""

from __future__ import annotations

from typing import Any

from benchmarks.breadth import LOG_SUM, SOFTMAX, over, product, row
from benchmarks.formulas import EPSILON
from benchmarks.workloads import Workload

_N = 4096
_ALL = float(_N * _N)
_SIGMOID = 'i("-ij~ij") >> i("^ij~ij") >> i("ij+1~ij") >> i("1/ij~ij")'


def gelu(ops: Any, x: Any) -> Any:
    return x * 0.5 * (ops.tanh((x * x * x * 0.044715 + x) * 0.7978845608) + 1.0)


def normalised(ops: Any, x: Any) -> Any:
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    return centred / ops.sqrt(ops.mean(centred * centred, axis=-1, keepdims=True) + EPSILON)


def _min_max(ops: Any, x: Any) -> Any:
    low, high = (f(x, axis=0, keepdims=True) for f in (ops.min, ops.max))
    return (x - low) / (high - low)


def _hinge(ops: Any, x: Any, w: Any, y: Any) -> Any:
    return ops.sum(ops.relu(-(y * ops.einsum("ij,j->i", x, w)) + 1.0), axis=-1, keepdims=False)


def _chebyshev(ops: Any, x: Any, y: Any) -> Any:
    d = ops.expand(x, 1) - ops.expand(y, 0)
    return ops.max(ops.relu(d) + ops.relu(-d), axis=-1, keepdims=False)


UNSEEN: tuple[Workload, ...] = (
    product("outer", "outer product, 4096²", 'i("i*j~ij")', "i,j->ij", (_N,), (_N,)),
    product("matvec-tall", "65536×64 times a vector", 'i("ij*j~ij") >> i("+ij~i")', "ij,j->i", (65536, 64), (64,)),
    product("matvec-wide", "64×65536 times a vector", 'i("ij*j~ij") >> i("+ij~i")', "ij,j->i", (64, 65536), (65536,)),
    product(
        "matvecs",
        "256 matrices 128² times vectors",
        'i("bij*bj~bij") >> i("+bij~bi")',
        "bij,bj->bi",
        (256, 128, 128),
        (256, 128),
    ),
    product(
        "bilinear-form",
        "x·A·y of 4096 pairs, 128",
        'i("bi*ij~bij") >> i("+bij~bj") >> i("bj*bj~bj") >> i("+bj~b")',
        "bi,ij,bj->b",
        (_N, 128),
        (128, 128),
        (_N, 128),
        fma=_N * 128 * 129.0,
    ),
    product(
        "tucker",
        "i j k in three bases, 64³ to 32³",
        'i("ijk*il~jkil") >> i("+jkil~jkl") >> i("jkl*jm~klmj") >> i("+klmj~klm")'
        ' >> i("klm*kn~lmnk") >> i("+lmnk~lmn")',
        "ijk,il,jm,kn->lmn",
        (64, 64, 64),
        (64, 32),
        (64, 32),
        (64, 32),
        fma=32.0 * (64**3 + 64**2 * 32 + 64 * 32**2),
    ),
    row(
        "rank-one",
        "A + x·yᵀ, 4096²",
        '(I | i("i*j~ij")) >> i("ij+ij~ij")',
        ((_N, _N), (_N,), (_N,)),
        lambda ops, a, x, y: a + ops.einsum("i,j->ij", x, y),
        {"fma": _ALL},
    ),
    row(
        "gelu",
        "GELU of 16 M",
        'cube = (I & ((I & I) >> i("ij*ij~ij"))) >> i("ij*ij~ij")\n'
        'inner = (cube >> i("ij*0.044715~ij") & I) >> i("ij+ij~ij") >> i("ij*1.5957691216~ij")\n'
        f'(I & (inner >> {_SIGMOID})) >> i("ij*ij~ij")',
        ((_N, _N),),
        gelu,
        {"exp": _ALL, "div": _ALL, "mul": 4 * _ALL},
    ),
    row(
        "gate",
        "x·sigmoid(y) of 16 M",
        f'(I | ({_SIGMOID})) >> i("ij*ij~ij")',
        ((_N, _N), (_N, _N)),
        lambda ops, x, y: x * ops.sigmoid(y),
        {"exp": _ALL, "div": _ALL, "mul": _ALL},
    ),
    row(
        "instance-norm",
        "instance norm, 64×256 of 28²",
        '(I & (i("+bcs~bc") >> i("bc/784~bc"))) >> i("bcs-bc~bcs") >> (I & ((I & I) >> i("bcs*bcs~bcs")'
        ' >> i("+bcs~bc") >> i("bc/784~bc") >> i("bc+0.00001~bc") >> i("bc^0.5~bc"))) >> i("bcs/bc~bcs")',
        ((64, 256, 784),),
        normalised,
        {"add": 2.0 * 64 * 256 * 784, "fma": 64.0 * 256 * 784, "mul": 64.0 * 256 * 784},
        keep=(784,),
    ),
    row(
        "min-max",
        "columns to 0 … 1, 8192×1024",
        '(I & i("<ij~j")) >> i("ij-j~ij") >> (I & i(">ij~j")) >> i("ij/j~ij")',
        ((8192, 1024),),
        _min_max,
        {"max": 2.0 * 8192 * 1024, "add": 8192.0 * 1024, "mul": 8192.0 * 1024},
    ),
    row(
        "pooling",
        "rows weighed by softmax, 256×512×64",
        f'{SOFTMAX.format("bj", "b")} >> i("bj*bjk~bkj") >> i("+bkj~bk")',
        ((256, 512), (256, 512, 64)),
        lambda ops, s, x: ops.einsum("bj,bjk->bk", ops.softmax(s), x),
        {"fma": 256.0 * 512 * 64, "exp": 256.0 * 512},
    ),
    row(
        "log-softmax",
        "log-softmax of rows, 8192×1000",
        f'(I & (({LOG_SUM.format("ij", "i")} & i(">ij~i")) >> i("i+i~i"))) >> i("ij-i~ij")',
        ((8192, 1000),),
        lambda ops, x: x - ops.expand(ops.logsumexp(x), 1),
        {"exp": 8192.0 * 1000, "add": 3 * 8192.0 * 1000},
    ),
    row(
        "hinge",
        "Σ max(0, 1 − y·X·w), 65536×256",
        'i("ij*j~ij") >> i("+ij~i") >> i("i*i~i") >> i("1-i~i") >> i("0>i~i") >> i("+i~.")',
        ((65536, 256), (256,), (65536,)),
        _hinge,
        {"fma": 65536.0 * 256},
    ),
    row(
        "max-short",
        "maxima of 1 M rows of 16",
        'i(">ij~i")',
        ((1 << 20, 16),),
        over("max", 1),
        {"max": 16.0 * (1 << 20)},
    ),
    row(
        "chebyshev",
        "max_k |x − y|, 2048², 16-d",
        'i("ik-jk~ijk") >> (I & i("-ijk~ijk")) >> i("ijk>ijk~ijk") >> i(">ijk~ij")',
        ((2048, 16), (2048, 16)),
        _chebyshev,
        {"add": 2048.0 * 2048 * 16, "max": 2 * 2048.0 * 2048 * 16},
    ),
)
