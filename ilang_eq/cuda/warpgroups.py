"""CUDA C of contracts that four warps take together: 64 rows by up to 256 columns by 8 products at a time.

Sums, and the left factor, are with the threads as they are where each warp works alone (``tensor_cores.py``): of the 64
rows, a warp has sixteen, laid out as those of its own instruction (PTX ISA, "Register Fragments for wgmma.mma_async").
The right factor is read from shared memory, where a row is its depths at one column, swizzled. The cores leave out what
tf32 has not of it: they truncate. Where factors have two parts, threads put what they leave out of it beside it.
Devices that have no such instruction do the same by those of single warps.
"""

from __future__ import annotations

from ilang_eq.cuda.contractions import COLUMNS, GROUP, MOST_COLUMNS, PAIR, ROWS
from ilang_eq.cuda.nodes import RUN, SWIZZLED

HOPPER = "__CUDA_ARCH_FEAT_SM90_ALL"
"""What is defined where the target has the instructions: sm_90a."""


def _on_hopper(head: str, *body: str) -> str:
    lines = [f"#if defined({HOPPER})", *("    " + line for line in body), "#endif"]
    return "\n".join([head, "{", *lines, "}"])


GROUP_FUNCTIONS: dict[str, str] = {
    "publish": _on_hopper(
        """\
// What this thread has written to shared memory or copied there is, a barrier later, there for products of groups.
__device__ __forceinline__ void publish()""",
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
    ),
    "begin_products": _on_hopper(
        """\
// From here until they are finished, sums belong to the products of groups.
__device__ __forceinline__ void begin_products()""",
        'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
    ),
    "finish_products": _on_hopper(
        "__device__ __forceinline__ void finish_products()",
        'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");',
        'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");',
    ),
    "settle": _on_hopper(
        """\
// The compiler is not to move what uses ``sums`` from behind here, where they would need registers for longer.
template <int ROWS, int COLUMNS> __device__ __forceinline__ void settle(float (&sums)[ROWS][COLUMNS])""",
        "#pragma unroll",
        "for (int row = 0; row < ROWS; row++)",
        "    #pragma unroll",
        "    for (int column = 0; column < COLUMNS; column++)",
        '        asm volatile("" : "+f"(sums[row][column]) :: "memory");',
    ),
    "descriptor": f"""\
// A matrix in shared memory, of 8 depths from here on: eight rows are 1024 bytes, swizzled by 128.
__device__ __forceinline__ unsigned long long descriptor(const float *first)
{{
    const unsigned long long shared = (unsigned long long)__cvta_generic_to_shared(first) % (1 << 18);
    return shared / 16 | {4 * SWIZZLED // 16 * 8}ull << 32 | 1ull << 62;
}}""",
    "split_tile": f"""\
// What tensor cores leave out of each element of a right factor, rounded; of infinities, all but the sign is left out.
template <int THREADS, int COLUMNS> __device__ __forceinline__ void
split_tile(float (&tile)[COLUMNS][{SWIZZLED}], float (&rest)[COLUMNS][{SWIZZLED}])
{{
    constexpr int ALL = COLUMNS * {SWIZZLED}, TURN = THREADS * {RUN};
    #pragma unroll 2
    for (int turn = 0; turn < ALL; turn += TURN) {{
        const int n = turn + threadIdx.x * {RUN}, column = n / {SWIZZLED}, first = n % {SWIZZLED};
        if (ALL % TURN != 0 && n >= ALL)
            break;
        float part[{RUN}], left[{RUN}], all = 0.0f;
        #pragma unroll
        for (int m = 0; m < {RUN}; m++) {{
            part[m] = tile[column][first + m];
            left[m] = part[m] - truncated(part[m]);
            all += left[m];
        }}
        #pragma unroll
        for (int m = 0; m < {RUN}; m++)
            rest[column][first + m] = __uint_as_float(__float_as_uint(left[m]) + 0x1000u);
        if (all != all) {{
            // infinities or NaN
            #pragma unroll
            for (int m = 0; m < {RUN}; m++) {{
                const bool finite = fabsf(part[m]) < INFINITY;
                tile[column][first + m] = finite ? part[m] : copysignf(1.0f, part[m]);
                rest[column][first + m] = finite ? left[m] : part[m];
            }}
        }}
    }}
}}""",
    "turn_tile": f"""\
// Rows of {SWIZZLED} depths of each column, swizzled and rounded, out of rows of columns; behind them, what is left of
// them. HANDED depths are in the order that threads have those of a left factor in: of eight, even ones come first.
template <int THREADS, bool HANDED, int DEPTH, int ROW, int TILES, int COLUMNS>
__device__ __forceinline__ void turn_tile(const float (&right)[DEPTH][ROW], float (&tiles)[TILES][COLUMNS][{SWIZZLED}])
{{
    constexpr int ALL = COLUMNS * DEPTH / {RUN}, RUNS = {SWIZZLED // RUN};
    #pragma unroll 2
    for (int turn = 0; turn < ALL; turn += THREADS) {{
        const int n = turn + threadIdx.x, column = n % COLUMNS, run = n / COLUMNS;
        if (ALL % THREADS != 0 && n >= ALL)
            break;
        float part[{RUN}], rest[{RUN}];
        #pragma unroll
        for (int m = 0; m < {RUN}; m++)
            part[m] = right[HANDED ? run / 2 * {2 * RUN} + m * 2 + run % 2 : run * {RUN} + m][column];
        split(part, rest);
        const int tile = run / RUNS, first = (run % RUNS ^ column % RUNS) * {RUN};
        #pragma unroll
        for (int m = 0; m < {RUN}; m++) {{
            tiles[tile][column][first + m] = part[m];
            tiles[TILES / 2 + tile][column][first + m] = rest[m];
        }}
    }}
}}""",
}
"""CUDA C that they call, in the order of their dependence, also by ``products_name``; each emitted where it is used."""


def products_name(columns: int, rows_first: bool) -> str:
    """The function for so many columns; ``rows_first`` is whether rows are the first index of sums."""
    return f"multiply_{columns}" + ("" if rows_first else "_turned")


def _sum(row: str, column: int | str, rows_first: bool) -> str:
    return f"sums[{row}][{column}]" if rows_first else f"sums[{column}][{row}]"


def _wrapped(items: list[str], each: int, between: str = "\n" + " " * 23) -> str:
    """``items`` with commas after all but the last, ``each`` of them in a line, and ``between`` lines what is there."""
    return f",{between}".join(", ".join(items[n : n + each]) for n in range(0, len(items), each))


def _products(columns: int, rows_first: bool) -> str:
    """The text of a function of ``GROUP_FUNCTIONS``."""
    name = products_name(columns, rows_first)
    kept = PAIR * columns // COLUMNS
    shape = f"[2 * PAIRS][{kept}]" if rows_first else f"[{kept}][2 * PAIRS]"
    sums = [
        _sum(f"2 * pair{half}", column + second, rows_first)
        for column in range(0, kept, PAIR)
        for half in ("", " + 1")
        for second in range(PAIR)
    ]
    count = len(sums)
    numbers = [f"%{n}" for n in range(count + RUN + 2)]
    instruction = f"wgmma.mma_async.sync.aligned.m{GROUP * ROWS}n{columns}k8.f32.tf32.tf32"
    targets = _wrapped(numbers[:count], 16, ' "\n' + " " * 21 + '"')
    given = _wrapped([f'"+f"({place})' for place in sums], 4)
    factors = _wrapped([f'"r"(__float_as_uint(left[pair][{n}]))' for n in range(RUN)], 2)
    here = f"column / {COLUMNS // PAIR} + {PAIR} * n"
    own = ", ".join(
        _sum(f"2 * pair{half}", f"{here}{second}", rows_first) for half in ("", " + 1") for second in ("", " + 1")
    )
    zero = _sum("n % (2 * PAIRS)", "n / (2 * PAIRS)", rows_first)
    run = f"(depth / {RUN} + lane / 8 % 2) ^ (lane % 8)"
    return f"""\
// Sums of four warps, of {GROUP * ROWS} x {columns} tiles each += left * right, from column ``first`` on, of 8 products
// from ``depth`` on; without ``add``, sums begin here. ROUNDED is whether other cores than Hopper's round ``right``.
template <bool ROUNDED, int PAIRS, int COLUMNS> __device__ __forceinline__ void
{name}(float (&sums){shape}, const float (&left)[PAIRS][{RUN}],
{" " * len(name)} const float (&right)[COLUMNS][{SWIZZLED}], int first, int depth, bool add)
{{
#if defined({HOPPER})
    #pragma unroll
    for (int pair = 0; pair < PAIRS; pair++)
        asm volatile("{{.reg .pred add; setp.ne.b32 add, {numbers[-1]}, 0; {instruction} {{"
                     "{targets}}}, "
                     "{{{", ".join(numbers[count:-2])}}}, {numbers[-2]}, add, 1, 1;}}"
                     : {given}
                     : {factors},
                       "l"(descriptor(&right[first][depth])), "r"((int)add));
#else
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int n = 0; n < 2 * PAIRS * {kept}; n++)
        if (!add)
            {zero} = 0.0f;
    #pragma unroll
    for (int column = 0; column < {columns}; column += {2 * COLUMNS}) {{
        float part[2][2];
        load_matrices(part[0][0], part[0][1], part[1][0], part[1][1],
                      &right[first + column + lane / 16 * 8 + lane % 8][({run}) * {RUN}]);
        #pragma unroll
        for (int n = 0; n < 2; n++) {{
            if (ROUNDED)
                to_tf32(part[n]);
            else
                truncate(part[n]);
            #pragma unroll
            for (int pair = 0; pair < PAIRS; pair++)
                multiply({own}, left[pair], part[n]);
        }}
    }}
#endif
}}"""


GROUP_FUNCTIONS |= {
    products_name(columns, rows_first): _products(columns, rows_first)
    for columns in range(2 * COLUMNS, MOST_COLUMNS + 1, 2 * COLUMNS)
    for rows_first in (True, False)
}
