"""Loop IR written by hand: the shapes of nest that the C backend is made for, without the lowering."""

from __future__ import annotations

from ilang_eq.lower.ir import (
    Accumulate,
    Apply,
    Assign,
    Buffer,
    Comment,
    Constant,
    Declare,
    Extent,
    For,
    Index,
    Kernel,
    Load,
    Program,
    Scalar,
    Size,
    Statement,
)

M, K, N = Extent(0, 0), Extent(0, 1), Extent(1, 1)


def at(buffer: str, *indices: str) -> Load:
    """``at("a", "i+i1", "k")``: the place a[i + i1][k]."""
    return Load(buffer, tuple(Index(tuple(index.split("+"))) for index in indices))


def apply(op: str, *arguments: Scalar | float) -> Apply:
    return Apply(op, tuple(a if isinstance(a, (Load, Constant, Apply)) else Constant(a) for a in arguments))


def loop(
    variable: str,
    extent: Extent,
    *body: Statement,
    step: int = 1,
    limit: int | None = None,
    outer: tuple[str, ...] = (),
    parallel: bool = False,
    reduces: bool = False,
) -> For:
    return For(variable, extent, step, limit, outer, body, parallel, reduces)


def program(
    ranks: tuple[int | None, ...],
    buffers: list[Buffer],
    *kernels: Kernel,
    outputs: tuple[str, ...] = ("out0",),
    ties: tuple[tuple[tuple[int, int], ...], ...] = (),
) -> Program:
    inputs = tuple(f"in{k}" for k in range(len(ranks)))
    return Program(ranks, ties, tuple(buffers), inputs, outputs, kernels, ())


def tensor(name: str, *dims: Size) -> Buffer:
    role = "input" if name.startswith("in") else "output" if name.startswith("out") else "workspace"
    return Buffer(name, dims, role)


def local(name: str, *dims: Size) -> Buffer:
    return Buffer(name, dims, "local")


def matmul(rows: int, columns: int, block: int | None = None) -> Program:
    """C = A·B in register tiles of ``rows`` × ``columns``, the reduction in blocks if ``block`` is given."""
    k = "k" if block is None else "k+k1"
    product = apply("mul", at("in0", "i+i1", k), at("in1", k, "j+j1"))
    body: tuple[Statement, ...] = (
        Declare("mul0"),
        Assign(at("mul0"), product),
        Accumulate(at("out0", "i+i1", "j+j1"), "add", at("mul0")),
    )

    def tile(*inside: Statement) -> For:
        columns_loop = loop("j1", N, *inside, limit=columns, outer=("j",))
        return loop("i1", M, columns_loop, limit=rows, outer=("i",))

    start = tile(Assign(at("out0", "i+i1", "j+j1"), Constant(0.0)))
    if block is None:
        reduction = loop("k", K, tile(*body), reduces=True)
        nest = loop("j", N, start, reduction, step=columns)
        kernel = (loop("i", M, nest, step=rows, parallel=True),)
    else:
        reduction = loop("k1", K, tile(*body), limit=block, outer=("k",), reduces=True)
        nest = loop("j", N, loop("i", M, reduction, step=rows), step=columns)
        whole = loop("i", M, loop("j", N, Assign(at("out0", "i", "j"), Constant(0.0))))
        kernel = (whole, loop("k", K, nest, step=block, reduces=True))
    buffers = [tensor("in0", M, K), tensor("in1", K, N), tensor("out0", M, N), local("mul0")]
    return program((2, 2), buffers, Kernel("add1", kernel), ties=(((0, 1), (1, 0)),))


def dot_products(rows: int, columns: int, lanes: int) -> Program:
    """C = A·Bᵀ with the lanes along the reduced axis."""
    product = apply("mul", at("in0", "i+i1", "k+k1"), at("in1", "j+j1", "k+k1"))
    lane = loop(
        "k1", K, Accumulate(at("out0", "i+i1", "j+j1"), "add", product), limit=lanes, outer=("k",), reduces=True
    )
    columns_of_b = Extent(1, 0)
    nest = loop("i1", M, loop("j1", columns_of_b, lane, limit=columns, outer=("j",)), limit=rows, outer=("i",))
    start = loop(
        "i1",
        M,
        loop("j1", columns_of_b, Assign(at("out0", "i+i1", "j+j1"), Constant(0.0)), limit=columns, outer=("j",)),
        limit=rows,
        outer=("i",),
    )
    body = loop("j", columns_of_b, start, loop("k", K, nest, step=lanes, reduces=True), step=columns)
    buffers = [tensor("in0", M, K), tensor("in1", columns_of_b, K), tensor("out0", M, columns_of_b)]
    kernel = Kernel("add1", (loop("i", M, body, step=rows, parallel=True),))
    return program((2, 2), buffers, kernel, ties=(((0, 1), (1, 1)),))


def transposed(rows: int, columns: int) -> Program:
    """C = A·Bᵀ with the lanes along the rows of B: they are far apart in memory."""
    n = Extent(1, 0)
    product = apply("mul", at("in0", "i+i1", "k"), at("in1", "j+j1", "k"))

    def tile(*inside: Statement) -> For:
        return loop("i1", M, loop("j1", n, *inside, limit=columns, outer=("j",)), limit=rows, outer=("i",))

    start = tile(Assign(at("out0", "i+i1", "j+j1"), Constant(0.0)))
    reduction = loop("k", K, tile(Accumulate(at("out0", "i+i1", "j+j1"), "add", product)), reduces=True)
    nest = loop("i", M, loop("j", n, start, reduction, step=columns), step=rows, parallel=True)
    buffers = [tensor("in0", M, K), tensor("in1", n, K), tensor("out0", M, n)]
    return program((2, 2), buffers, Kernel("add1", (nest,)), ties=(((0, 1), (1, 1)),))


def softmax() -> Program:
    """exp(x − max) / sum by rows, with scalar locals and one row of scratch per thread."""
    shifted = apply("exp", apply("sub", at("in0", "i", "j"), at("max0")))
    body = (
        Comment(">ij~i"),
        Declare("max0"),
        Assign(at("max0"), Constant(float("-inf"))),
        loop("j", K, Accumulate(at("max0"), "max", at("in0", "i", "j")), reduces=True),
        Comment("^ij~ij"),
        Declare("pow1"),
        Declare("add2"),
        Assign(at("add2"), Constant(0.0)),
        loop("j", K, Assign(at("pow1", "j"), shifted)),
        loop("j", K, Accumulate(at("add2"), "add", at("pow1", "j")), reduces=True),
        loop("j", K, Assign(at("out0", "i", "j"), apply("div", at("pow1", "j"), at("add2")))),
    )
    buffers = [tensor("in0", M, K), tensor("out0", M, K), local("max0"), local("pow1", K), local("add2")]
    return program((2,), buffers, Kernel("div3", (loop("i", M, *body, parallel=True),)))


def batched_sums() -> Program:
    """Sums over the last of four dimensions: three loops of tasks, one of them in tiles."""
    b, i, j, k = (Extent(0, d) for d in range(4))
    total = at("out0", "b", "i+i1", "j")
    row = loop(
        "i1",
        i,
        Assign(total, Constant(0.0)),
        loop("k", k, Accumulate(total, "add", at("in0", "b", "i+i1", "j", "k")), reduces=True),
        limit=4,
        outer=("i",),
    )
    nest = loop("b", b, loop("i", i, loop("j", j, row), step=4), parallel=True)
    return program((4,), [tensor("in0", b, i, j, k), tensor("out0", b, i, j)], Kernel("add0", (nest,)))


def reduction(op: str, start: float) -> Program:
    """One number from a vector."""
    body = (Assign(at("out0"), Constant(start)), loop("i", M, Accumulate(at("out0"), op, at("in0", "i")), reduces=True))
    return program((1,), [tensor("in0", M), tensor("out0")], Kernel(f"{op}0", body))


def elementwise(value: Scalar, inputs: int = 1) -> Program:
    """``value`` over i, in parallel."""
    names = [f"in{k}" for k in range(inputs)]
    ties = ((tuple((k, 0) for k in range(inputs))),) if inputs > 1 else ()
    buffers = [*(tensor(name, M) for name in names), tensor("out0", M)]
    body = (loop("i", M, Assign(at("out0", "i"), value), parallel=True),)
    return program((1,) * inputs, buffers, Kernel("map0", body), ties=ties)


def two_kernels() -> Program:
    """Row sums of squares through a workspace, and an input passed through."""
    squares = loop("i", M, loop("j", K, Assign(at("mul0_all", "i", "j"), apply("mul", *[at("in0", "i", "j")] * 2))))
    sums = loop(
        "i",
        M,
        Assign(at("out0", "i"), Constant(0.0)),
        loop("j", K, Accumulate(at("out0", "i"), "add", at("mul0_all", "i", "j")), reduces=True),
        parallel=True,
    )
    buffers = [tensor("in0", M, K), tensor("in1"), tensor("mul0_all", M, K), tensor("out0", M)]
    kernels = (Kernel("mul0", (squares,)), Kernel("add1", (sums,)))
    return program((2, None), buffers, *kernels, outputs=("out0", "in1", "out0"))
