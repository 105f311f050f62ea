"""The CUDA C source of the microbenchmarks of a GPU, for NVRTC: no headers.

Each kernel does what it is named for, ``times`` over where it takes that. Rates are of independent chains, more of them
than latencies need; what is computed is stored, so that no compiler leaves it out. Kernels with ``cycles`` write, for
every block, how many cycles of its multiprocessor's clock it took.
"""

from __future__ import annotations

THREADS = 256
CHAINS = 8
"""Independent operations of a thread."""
STEPS = 32
"""Operations of each chain in a round."""
WORDS = 1024
"""The 16-byte words of shared memory that are read in turn."""
READS = 8
"""Reads of shared memory in a round, and shuffles and barriers."""

_CHAINED = """\
extern "C" __global__ void __launch_bounds__({threads})
probe_{name}(const float *__restrict__ given, float *__restrict__ out, long long *__restrict__ cycles, long long times)
{{
    float chain[{chains}];
    for (int k = 0; k < {chains}; k++)
        chain[k] = given[(threadIdx.x + k) % 32];
    const float b = given[32], c = given[33];
    const long long begun = clock64();
    for (long long t = 0; t < times; t++) {{
#pragma unroll
        for (int s = 0; s < {steps}; s++) {{
#pragma unroll
            for (int k = 0; k < {chains}; k++)
                chain[k] = {step};
        }}
    }}
    // the first warp is not the last to end
    __syncthreads();
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = clock64() - begun;
    float total = b + c;
    for (int k = 0; k < {chains}; k++)
        total += chain[k];
    out[(long long)blockIdx.x * {threads} + threadIdx.x] = total;
}}
"""

_TENSOR = """\
// Products of 16 x 8 x 8 factors of tf32, which a warp's tensor core adds up.
extern "C" __global__ void __launch_bounds__({threads})
probe_tensor(const float *__restrict__ given, float *__restrict__ out, long long *__restrict__ cycles, long long times)
{{
    float sums[{chains}][4];
    for (int k = 0; k < {chains}; k++)
        for (int n = 0; n < 4; n++)
            sums[k][n] = given[(threadIdx.x + k + n) % 32];
    const unsigned b = __float_as_uint(given[32]), c = __float_as_uint(given[33]);
    const long long begun = clock64();
    for (long long t = 0; t < times; t++) {{
#pragma unroll
        for (int s = 0; s < {steps}; s++) {{
#pragma unroll
            for (int k = 0; k < {chains}; k++)
                asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                             "{{%0, %1, %2, %3}}, {{%4, %5, %4, %5}}, {{%5, %4}}, {{%0, %1, %2, %3}};"
                             : "+f"(sums[k][0]), "+f"(sums[k][1]), "+f"(sums[k][2]), "+f"(sums[k][3])
                             : "r"(b), "r"(c));
        }}
    }}
    // the first warp is not the last to end
    __syncthreads();
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = clock64() - begun;
    float total = 0.0f;
    for (int k = 0; k < {chains}; k++)
        for (int n = 0; n < 4; n++)
            total += sums[k][n];
    out[(long long)blockIdx.x * {threads} + threadIdx.x] = total;
}}
"""
TENSOR_SHARE = 16 * 8 * 8 / 32
"""Multiply-adds of a thread in one operation of ``probe_tensor``."""

_MEMORY = """\
extern "C" __global__ void __launch_bounds__({threads})
probe_copy(const float4 *__restrict__ from, float4 *__restrict__ to, long long count)
{{
    const long long step = (long long)gridDim.x * {threads};
#pragma unroll 4
    for (long long n = (long long)blockIdx.x * {threads} + threadIdx.x; n < count; n += step)
        to[n] = from[n];
}}

// Every block reads all of it, each from another place on: nothing that one of them needs again is still close.
extern "C" __global__ void __launch_bounds__({threads})
probe_read_all(const float4 *__restrict__ from, float *__restrict__ out, long long count, long long times)
{{
    const long long start = count / gridDim.x * blockIdx.x;
    float total = 0.0f;
    for (long long t = 0; t < times; t++) {{
#pragma unroll 8
        for (long long n = threadIdx.x; n < count; n += {threads}) {{
            const float4 found = from[n + start < count ? n + start : n + start - count];
            total += found.x + found.y + found.z + found.w;
        }}
    }}
    out[(long long)blockIdx.x * {threads} + threadIdx.x] = total;
}}

// Follows a cycle of positions, from where it was left.
extern "C" __global__ void __launch_bounds__(32)
probe_chase(const int *__restrict__ next, int *__restrict__ last, long long *__restrict__ cycles, long long times)
{{
    int at = last[0];
    const long long begun = clock64();
    for (long long t = 0; t < times; t++)
        at = next[at];
    last[0] = at;
    cycles[0] = clock64() - begun;
}}
"""

_BLOCK = """\
extern "C" __global__ void __launch_bounds__({threads})
probe_read_shared(
    const float *__restrict__ given, float *__restrict__ out, long long *__restrict__ cycles, long long times)
{{
    __shared__ float4 words[{words}];
    for (int n = threadIdx.x; n < {words}; n += {threads})
        words[n] = make_float4(given[n % 32], given[(n + 1) % 32], given[(n + 2) % 32], given[(n + 3) % 32]);
    __syncthreads();
    float x = 0.0f, y = 0.0f, z = 0.0f, w = 0.0f;
    int at = threadIdx.x;
    const long long begun = clock64();
    for (long long t = 0; t < times; t++) {{
#pragma unroll
        for (int k = 0; k < {reads}; k++) {{
            const float4 found = words[at];
            x += found.x, y += found.y, z += found.z, w += found.w;
            at = (at + 32) % {words};
        }}
    }}
    // the first warp is not the last to end
    __syncthreads();
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = clock64() - begun;
    out[(long long)blockIdx.x * {threads} + threadIdx.x] = x + y + z + w;
}}

extern "C" __global__ void __launch_bounds__(1024)
probe_wait(long long *__restrict__ cycles, long long times)
{{
    const long long begun = clock64();
    for (long long t = 0; t < times; t++) {{
#pragma unroll
        for (int k = 0; k < {reads}; k++)
            __syncthreads();
    }}
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = clock64() - begun;
}}

extern "C" __global__ void __launch_bounds__(32)
probe_shuffle(float *__restrict__ out, long long *__restrict__ cycles, long long times)
{{
    float x = (float)threadIdx.x;
    const long long begun = clock64();
    for (long long t = 0; t < times; t++) {{
#pragma unroll
        for (int k = 0; k < {reads}; k++)
            x = __shfl_xor_sync(0xffffffffu, x, 1);
    }}
    out[threadIdx.x] = x;
    if (threadIdx.x == 0)
        cycles[0] = clock64() - begun;
}}

extern "C" __global__ void __launch_bounds__(32)
probe_nothing(long long *__restrict__ cycles)
{{
    if (cycles[0] < 0)
        cycles[0] = 0;
}}
"""

KERNELS = ("fma", "special", "tensor", "copy", "read_all", "chase", "read_shared", "wait", "shuffle", "nothing")
"""Each is called ``probe_`` and this in the source."""


def gpu_probe_source() -> str:
    """All probes, as one source."""
    sizes = {"threads": THREADS, "chains": CHAINS, "steps": STEPS, "words": WORDS, "reads": READS}
    chained = {"fma": "chain[k] * b + c", "special": "__expf(-chain[k])"}
    rates = [_CHAINED.format(name=name, step=step, **sizes) for name, step in chained.items()]
    return "\n".join([*rates, _TENSOR.format(**sizes), _MEMORY.format(**sizes), _BLOCK.format(**sizes)])
