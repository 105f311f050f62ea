"""Workloads without targets: what the search and the kernels were not made for one by one.

Reductions along rows, columns and everything, products in every layout and with more axes, normalisations, losses,
distances, attention at odd shapes. They were looked into where they were slow when first tried; those of ``unseen.py``
were not.

    python -m benchmarks.cpu --breadth [--threads N] [NAME ...]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from benchmarks.formulas import EPSILON
from benchmarks.workloads import Formula, Input, Shape, Workload

SOFTMAX = '(I & i(">{0}~{1}")) >> i("{0}-{1}~{0}") >> i("^{0}~{0}") >> (I & i("+{0}~{1}")) >> i("{0}/{1}~{0}")'
PRODUCT = 'i("ik*kj~ijk") >> i("+ijk~ij")'
SIGMOID = 'i("-{0}~{0}") >> i("^{0}~{0}") >> i("{0}+1~{0}") >> i("1/{0}~{0}")'


def row(
    name: str,
    title: str,
    source: str,
    shapes: tuple[Shape, ...],
    formula: Formula,
    work: Mapping[str, float],
    deviation: float = 1.0,
    positive: bool = False,
    keep: tuple[int, ...] = (),
) -> Workload:
    """``deviation`` and ``positive`` are those of all inputs; a check of the result leaves the extents ``keep``."""
    inputs = tuple(Input(shape, deviation, positive) for shape in shapes)
    small = tuple(tuple(n if n in keep else 3 + n % 11 for n in shape) for shape in shapes)
    return Workload(f"b-{name}", "", inputs, formula, work, (1.0, 1.0), small, title=title, source=source)


def product(name: str, title: str, source: str, pattern: str, *shapes: Shape, fma: float | None = None) -> Workload:
    """A sum of products, which libraries call ``einsum``; ``fma`` multiply-adds, or one for all indices at once."""
    extents = {
        axis: n
        for axes, shape in zip(pattern.partition("->")[0].split(","), shapes, strict=True)
        for axis, n in zip(axes, shape, strict=True)
    }
    work = {"fma": prod(extents.values()) if fma is None else fma}
    return row(name, title, source, shapes, lambda ops, *x: ops.einsum(pattern, *x), work, 0.1)


def attention(name: str, title: str, batch: str, q: Shape, k: Shape, kv: str | None = None) -> Workload:
    """Of queries (batch, i, k), and keys and values (kv, j, k); ``kv`` is ``batch`` if None."""
    kv = batch if kv is None else kv
    s, t = f"{batch}ij", f"{batch}i"
    source = (
        f'scores = i("{t}k*{kv}jk~{s}k") >> i("+{s}k~{s}")\n'
        f"softmax = {SOFTMAX.format(s, t)}\n"
        f'scores >> softmax >> i("{s}*{kv}jk~{t}kj") >> i("+{t}kj~{t}k")'
    )

    def formula(ops: Any, q: Any, k: Any, v: Any) -> Any:
        weights = ops.softmax(ops.einsum(f"{t}k,{kv}jk->{s}", q, k))
        return ops.einsum(f"{s},{kv}jk->{t}k", weights, v)

    pairs = prod(q[:-1]) * k[-2]
    return row(name, title, source, (q, k, k), formula, {"fma": 2 * pairs * q[-1], "exp": pairs}, 0.3)


def over(op: str, axis: int) -> Formula:
    return lambda ops, x: getattr(ops, op)(x, axis=axis, keepdims=False)


def _normalised(ops: Any, x: Any) -> Any:
    return x / ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True))


def _batch_norm(ops: Any, x: Any) -> Any:
    centred = x - ops.mean(x, axis=0, keepdims=True)
    return centred / ops.sqrt(ops.mean(centred * centred, axis=0, keepdims=True) + EPSILON)


def _covariance(ops: Any, x: Any) -> Any:
    centred = x - ops.mean(x, axis=0, keepdims=True)
    return ops.matmul(ops.transposed(centred), centred)


def _rms_norm(ops: Any, x: Any, gain: Any) -> Any:
    return x / ops.sqrt(ops.mean(x * x, axis=-1, keepdims=True) + EPSILON) * gain


def _entropy(ops: Any, x: Any) -> Any:
    p = ops.softmax(x)
    return -ops.sum(p * ops.log(p), axis=-1, keepdims=False)


def _sum_of_squares(ops: Any, x: Any) -> Any:
    return ops.sum(x * x, axis=-1, keepdims=False)


def _nearest_centre(ops: Any, x: Any, y: Any) -> Any:
    products = ops.matmul(x, ops.transposed(y)) * 2.0
    distances = ops.expand(_sum_of_squares(ops, x), 1) + ops.expand(_sum_of_squares(ops, y), 0) - products
    return ops.min(distances, axis=-1, keepdims=False)


def _differences(ops: Any, x: Any, y: Any) -> Any:
    d = ops.expand(x, 1) - ops.expand(y, 0)
    return ops.relu(d) + ops.relu(-d)


def total(f: Callable[..., Any]) -> Formula:
    return lambda ops, *x: ops.sum(ops.sum(f(ops, *x), axis=-1, keepdims=False), axis=-1, keepdims=False)


_N = 4096
_ALL = float(_N * _N)
_ROW_NORM = '(I & ((I & I) >> i("ij*ij~ij") >> i("+ij~i") >> i("i^0.5~i"))) >> i("ij/i~ij")'
_CENTRED_COLUMNS = '(I & (i("+ij~j") >> i("j/8192~j"))) >> i("ij-j~ij")'
LOG_SUM = '(I & i(">{0}~{1}")) >> i("{0}-{1}~{0}") >> i("^{0}~{0}") >> i("+{0}~{1}") >> i("${1}~{1}")'

SEEN: tuple[Workload, ...] = (
    product("matvec", "matrix times vector, 4096²", 'i("ij*j~ij") >> i("+ij~i")', "ij,j->i", (_N, _N), (_N,)),
    product("vecmat", "vector times matrix, 4096²", 'i("ij*i~ij") >> i("+ij~j")', "ij,i->j", (_N, _N), (_N,)),
    row("sum-rows", "sums of rows, 4096²", 'i("+ij~i")', ((_N, _N),), over("sum", 1), {"add": _ALL}),
    row("sum-columns", "sums of columns, 4096²", 'i("+ij~j")', ((_N, _N),), over("sum", 0), {"add": _ALL}),
    row("sum-short-rows", "sums of columns, 65536×256", 'i("+ij~j")', ((65536, 256),), over("sum", 0), {"add": _ALL}),
    row("max-columns", "maxima of columns, 4096²", 'i(">ij~j")', ((_N, _N),), over("max", 0), {"max": _ALL}),
    row("total", "sum of everything, 4096²", 'i("+ij~.")', ((_N, _N),), total(lambda ops, x: x), {"add": _ALL}),
    row(
        "softmax-columns",
        "softmax of columns, 4096²",
        SOFTMAX.format("ij", "j"),
        ((_N, _N),),
        lambda ops, x: ops.softmax(x, 0),
        {"exp": _ALL, "div": _ALL, "add": 2 * _ALL},
    ),
    row(
        "batch-norm",
        "batch norm, 8192×1024",
        f"centred = {_CENTRED_COLUMNS}\n"
        'centred >> (I & ((I & I) >> i("ij*ij~ij") >> i("+ij~j") >> i("j/8192~j") >> i("j+0.00001~j") >> i("j^0.5~j")))'
        ' >> i("ij/j~ij")',
        ((8192, 1024),),
        _batch_norm,
        {"add": 2.0 * 8192 * 1024, "fma": 8192 * 1024, "div": 8192 * 1024},
        keep=(8192,),
    ),
    product("product-nt", "x·yᵀ, 1024³", 'i("ik*jk~ijk") >> i("+ijk~ij")', "ik,jk->ij", (1024, 1024), (1024, 1024)),
    product("product-tn", "xᵀ·y, 1024³", 'i("ki*kj~ijk") >> i("+ijk~ij")', "ki,kj->ij", (1024, 1024), (1024, 1024)),
    product("product-tt", "xᵀ·yᵀ, 1024³", 'i("ki*jk~ijk") >> i("+ijk~ij")', "ki,jk->ij", (1024, 1024), (1024, 1024)),
    row(
        "gram",
        "xᵀ·x, 4096×256",
        '(I & I) >> i("ki*kj~ijk") >> i("+ijk~ij")',
        ((_N, 256),),
        lambda ops, x: ops.matmul(ops.transposed(x), x),
        {"fma": 4096 * 256 * 256},
    ),
    product(
        "heads-in",
        "projection to 12 heads, 512×768",
        'i("is*hsk~hiks") >> i("+hiks~hik")',
        "is,hsk->hik",
        (512, 768),
        (12, 768, 64),
    ),
    product(
        "heads-out",
        "projection from 12 heads, 512×768",
        'i("hik*hks~ihks") >> i("+ihks~is")',
        "hik,hks->is",
        (12, 512, 64),
        (12, 64, 768),
    ),
    product(
        "products",
        "64 products of 128×64×128",
        'i("bik*bkj~bijk") >> i("+bijk~bij")',
        "bik,bkj->bij",
        (64, 128, 64),
        (64, 64, 128),
    ),
    product(
        "tensor-times-matrix",
        "i j k by j r, 128³",
        'i("ijk*jr~ikrj") >> i("+ikrj~irk")',
        "ijk,jr->irk",
        (128, 128, 128),
        (128, 64),
    ),
    product(
        "khatri-rao",
        "i j k by j r and k r, 128³",
        'i("ijk*jr~ijkr") >> i("ijkr*kr~ijkr") >> i("+ijkr~ir")',
        "ijk,jr,kr->ir",
        (128, 128, 128),
        (128, 32),
        (128, 32),
    ),
    row(
        "cosine",
        "cosines of 1024², 256-d",
        f'unit = {_ROW_NORM}\n(unit | unit) >> i("ik*jk~ijk") >> i("+ijk~ij")',
        ((1024, 256), (1024, 256)),
        lambda ops, x, y: ops.matmul(_normalised(ops, x), ops.transposed(_normalised(ops, y))),
        {"fma": 1024 * 1024 * 256},
    ),
    row(
        "entropy",
        "entropy of softmax, 4096×1024",
        f"softmax = {SOFTMAX.format('ij', 'i')}\n"
        'softmax >> (I & i("$ij~ij")) >> i("ij*ij~ij") >> i("+ij~i") >> i("-i~i")',
        ((_N, 1024),),
        _entropy,
        {"exp": _N * 1024, "add": 3 * _N * 1024},
    ),
    row(
        "manhattan",
        "sums of |x−y|, 1024², 64-d",
        'i("ik-jk~ijk") >> (I & i("-ijk~ijk")) >> i("ijk>ijk~ijk") >> i("+ijk~ij")',
        ((1024, 64), (1024, 64)),
        lambda ops, x, y: ops.sum(_differences(ops, x, y), axis=-1, keepdims=False),
        {"add": 2.0 * 1024 * 1024 * 64},
    ),
    row(
        "nearest-centre",
        "nearest of 64 centres, 65536, 8-d",
        'i("ik-jk~ijk") >> (I & I) >> i("ijk*ijk~ijk") >> i("+ijk~ij") >> i("<ij~i")',
        ((65536, 8), (64, 8)),
        _nearest_centre,
        {"fma": 65536 * 64 * 8},
    ),
    attention("attention-wide", "attention 1024×128", "", (1024, 128), (1024, 128)),
    attention("attention-odd", "attention 1537 by 777, 80-d", "", (1537, 80), (777, 80)),
    attention("attention-shared", "attention, 2×4 heads of 512, 2 of keys", "gh", (2, 4, 512, 64), (2, 512, 64), "g"),
    row(
        "transposed-sum",
        "x + yᵀ, 4096²",
        'i("ij+ji~ij")',
        ((_N, _N), (_N, _N)),
        lambda ops, x, y: x + ops.transposed(y),
        {"add": _ALL},
    ),
    product(
        "products-nt",
        "32 products x·yᵀ of 256×64×256",
        'i("bik*bjk~bijk") >> i("+bijk~bij")',
        "bik,bjk->bij",
        (32, 256, 64),
        (32, 256, 64),
    ),
    product(
        "products-shared",
        "a weight for 16×128 rows, 512×384",
        'i("bik*kj~bijk") >> i("+bijk~bij")',
        "bik,kj->bij",
        (16, 128, 512),
        (512, 384),
    ),
    product(
        "tensor-product",
        "i j k by k j r, 96³×64",
        'i("ijk*kjr~irjk") >> i("+irjk~ir")',
        "ijk,kjr->ir",
        (96, 96, 96),
        (96, 96, 64),
    ),
    product(
        "chain-of-batches",
        "b i j by b j k by k l, 16×128",
        'i("bij*bjk~bikj") >> i("+bikj~bik") >> i("bik*kl~bilk") >> i("+bilk~bil")',
        "bij,bjk,kl->bil",
        (16, 128, 128),
        (16, 128, 128),
        (128, 128),
        fma=2.0 * 16 * 128**3,
    ),
    product(
        "weighted-gram",
        "xᵀ·diag(w)·y, 8192×192",
        'i("ki*k~ki") >> i("ki*kj~ijk") >> i("+ijk~ij")',
        "ki,k,kj->ij",
        (8192, 192),
        (8192,),
        (8192, 192),
    ),
    row(
        "bilinear-units",
        "x·w ⊙ y·v, 512×512×1024",
        'product = i("ik*kj~ijk") >> i("+ijk~ij")\n(product | product) >> i("ij*ij~ij")',
        ((512, 512), (512, 1024), (512, 512), (512, 1024)),
        lambda ops, x, w, y, v: ops.matmul(x, w) * ops.matmul(y, v),
        {"fma": 2.0 * 512 * 512 * 1024},
        0.1,
    ),
    row(
        "covariance",
        "covariances, 8192×128",
        f'{_CENTRED_COLUMNS} >> (I & I) >> i("ki*kj~ijk") >> i("+ijk~ij")',
        ((8192, 128),),
        _covariance,
        {"fma": 8192 * 128 * 128},
        keep=(8192,),
    ),
    row(
        "rms-norm",
        "RMS norm, 8192×1024",
        '(I & ((I & I) >> i("ij*ij~ij") >> i("+ij~i") >> i("i/1024~i") >> i("i+0.00001~i") >> i("i^0.5~i")))'
        ' >> i("ij/i~ij") >> i("ij*j~ij")',
        ((8192, 1024), (1024,)),
        _rms_norm,
        {"fma": 8192 * 1024, "div": 8192 * 1024, "mul": 8192 * 1024},
        keep=(1024,),
    ),
    row(
        "squared-error",
        "mean squared error of 16 M",
        'i("ij-ij~ij") >> (I & I) >> i("ij*ij~ij") >> i("+ij~.")',
        ((_N, _N), (_N, _N)),
        total(lambda ops, x, y: (x - y) * (x - y)),
        {"add": _ALL, "fma": _ALL},
    ),
    row(
        "logsumexp-columns",
        "log-sum-exp of columns, 4096²",
        f'({LOG_SUM.format("ij", "j")} & i(">ij~j")) >> i("j+j~j")',
        ((_N, _N),),
        lambda ops, x: ops.logsumexp(x, 0),
        {"exp": _ALL, "add": 2 * _ALL},
    ),
    row(
        "softmax-middle",
        "softmax of the middle axis, 64×512×128",
        SOFTMAX.format("bij", "bj"),
        ((64, 512, 128),),
        lambda ops, x: ops.softmax(x, 1),
        {"exp": 64.0 * 512 * 128, "div": 64.0 * 512 * 128, "add": 128.0 * 512 * 128},
    ),
    row(
        "sum-middle",
        "sums of the middle axis, 64×512×512",
        'i("+bij~bj")',
        ((64, 512, 512),),
        over("sum", 1),
        {"add": 64.0 * 512 * 512},
    ),
    row(
        "scaled-difference",
        "Σ w·(x − y)² of rows, 4096²",
        'i("ij-j~ij") >> (I & I) >> i("ij*ij~ij") >> i("ij*j~ij") >> i("+ij~i")',
        ((_N, _N), (_N,), (_N,)),
        lambda ops, x, y, w: ops.sum((x - y) * (x - y) * w, axis=-1, keepdims=False),
        {"add": _ALL, "mul": _ALL, "fma": _ALL},
    ),
    row(
        "features",
        "Σ_j relu(x·yᵀ), 4096², 32-d",
        'i("ik*jk~ijk") >> i("+ijk~ij") >> i("0>ij~ij") >> i("+ij~i")',
        ((_N, 32), (_N, 32)),
        lambda ops, x, y: ops.sum(ops.relu(ops.matmul(x, ops.transposed(y))), axis=-1, keepdims=False),
        {"fma": _ALL * 32},
    ),
    attention("attention-few", "attention, 16 heads of 64 by 1024, 64-d", "h", (16, 64, 64), (16, 1024, 64)),
    attention("attention-narrow", "attention, 8 heads of 512, 32-d", "h", (8, 512, 32), (8, 512, 32)),
)
"""Looked into where they were slow."""
