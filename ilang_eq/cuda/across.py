"""CUDA C of functions that combine what the threads of a block hold: by shuffles in a warp, then in shared memory.

Every thread gets the result. The order of combination is fixed, so that it is the same bits each time.
"""

from __future__ import annotations

from ilang_eq.cuda.nodes import WARP, Block, Dim
from ilang_eq.cuda.storage import within_warp
from ilang_eq.cuda.text import text_of
from ilang_eq.lower.scalar import update_text


def across_name(op: str, dim: Dim, block: Block) -> str:
    """The function that combines along ``dim``."""
    return f"{op}_across_{block.x}" if within_warp(dim, block) else f"{op}_across_{dim}_of_{block.x}x{block.y}"


def across(op: str, dim: Dim, block: Block) -> str:
    """Its source."""
    name = across_name(op, dim, block)
    if within_warp(dim, block):
        return "\n".join(
            [
                f"// The {_WHAT[op]} over {block.x} neighbouring threads, in each of them.",
                f"__device__ __forceinline__ float {name}(float share)",
                "{",
                *_shuffled(op, block.x),
                "    return share;",
                "}",
            ]
        )
    lines = _rows(op, block) if dim == "x" else _columns(op, block)
    return "\n".join(
        [
            f"// The {_WHAT[op]} over the threads along {dim} of {block.x} x {block.y}, in each of them.",
            f"__device__ __forceinline__ float {name}(float share, float *exchange)",
            "{",
            *lines,
            "    return share;",
            "}",
        ]
    )


_WHAT = {"add": "sum", "mul": "product", "max": "largest", "min": "smallest"}


def _shuffled(op: str, threads: int) -> list[str]:
    step = update_text("share", op, "__shfl_xor_sync(0xffffffffu, share, step)", set())
    return ["    #pragma unroll", f"    for (int step = {threads // 2}; step > 0; step /= 2)", f"        {step}"]


def _rows(op: str, block: Block) -> list[str]:
    """Shuffles in each warp, then one share a warp and row through shared memory."""
    warps, down = block.warps_across, WARP // block.lanes

    def place(warp: str) -> str:
        return f"exchange[{warp}]" if down == 1 else f"exchange[({warp}) * {down} + row]"

    row = [f"    const int row = threadIdx.x % {WARP} / {block.lanes};"] if down > 1 else []
    return [
        f"    const int warp = threadIdx.x / {WARP}, first = warp / {warps} * {warps};",
        *row,
        *_shuffled(op, block.lanes),
        "    __syncthreads();",
        f"    if (threadIdx.x % {block.lanes} == 0)",
        f"        {place('warp')} = share;",
        "    __syncthreads();",
        f"    share = {place('first')};",
        f"    for (int n = 1; n < {warps}; n++)",
        f"        {update_text('share', op, place('first + n'), set())}",
    ]


def _columns(op: str, block: Block) -> list[str]:
    x, y = text_of("threadIdx.x", block)
    mine = "threadIdx.x" if block.warps_across == 1 else f"({y}) * {block.x} + column"
    return [
        f"    const int column = {x};",
        "    __syncthreads();",
        f"    exchange[{mine}] = share;",
        "    __syncthreads();",
        "    share = exchange[column];",
        f"    for (int n = 1; n < {block.y}; n++)",
        f"        {update_text('share', op, f'exchange[n * {block.x} + column]', set())}",
    ]
