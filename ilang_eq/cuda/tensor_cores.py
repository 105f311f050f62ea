"""CUDA C of contracts: a warp's part of a tile on tensor cores, 16 rows by 8 columns by 8 products at a time.

Lane 4·r + c of a warp has of the sums rows r and r + 8, columns 2·c and 2·c + 1; of the left factor the same rows and
depths c and c + 4; of the right one column r, depths c and c + 4 (PTX ISA, "Matrix Fragments for mma.m16n8k8"). Which
rows, columns and depths of a tile these are is free, as long as both factors agree: rows r and r + 8 are those that the
thread has anyway, a step of its y apart; and sums become a left factor as they are, if depths c and c + 4 of the
instruction are depths 2·c and 2·c + 1 of the tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from ilang_eq.cuda.context import At, end_of, indented
from ilang_eq.cuda.contractions import DEPTH
from ilang_eq.cuda.nodes import Contract, part_of
from ilang_eq.cuda.text import Places
from ilang_eq.cuda.warpgroups import products_name
from ilang_eq.lower.ir import For, Load, Precision

LANE = "const int lane = threadIdx.x % 32;"
UNROLLED = {1: 64, 2: 8}
"""Pieces of a tile that the loop over the depth is unrolled to, by the parts of factors."""

CORE_FUNCTIONS: dict[str, str] = {
    "load_matrices": """\
// Of four matrices in shared memory, of 8 rows and 4 columns, lane l gets row l / 4, column l % 4. Rows are aligned to
// 16 bytes; lane 8 m + r gives row r of matrix m.
__device__ __forceinline__ void load_matrices(float &first, float &second, float &third, float &fourth,
                                              const float *row)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=f"(first), "=f"(second), "=f"(third), "=f"(fourth) : "r"(shared));
}""",
    "tf32_of": """\
// The nearest number that tensor cores take: 10 bits after the point.
__device__ __forceinline__ float tf32_of(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}""",
    "to_tf32": """\
template <int N> __device__ __forceinline__ void to_tf32(float (&part)[N])
{
    #pragma unroll
    for (int n = 0; n < N; n++)
        part[n] = tf32_of(part[n]);
}""",
    "multiply": """\
// Sums of a warp's 16 x 8 tile += left * right, 8 products each; who has which element: see PTX, mma.m16n8k8.
__device__ __forceinline__ void multiply(float &upper, float &upper_next, float &lower, float &lower_next,
                                         const float (&left)[4], const float (&right)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(upper), "+f"(upper_next), "+f"(lower), "+f"(lower_next)
                 : "r"(__float_as_uint(left[0])), "r"(__float_as_uint(left[1])), "r"(__float_as_uint(left[2])),
                   "r"(__float_as_uint(left[3])), "r"(__float_as_uint(right[0])), "r"(__float_as_uint(right[1])));
}""",
    "split": """\
// What is left of each element after rounding, rounded as well: their sum has 21 bits after the point.
template <int N> __device__ __forceinline__ void split(float (&part)[N], float (&rest)[N])
{
    #pragma unroll
    for (int n = 0; n < N; n++) {
        const float whole = part[n];
        part[n] = tf32_of(whole);
        rest[n] = fabsf(part[n]) < INFINITY ? tf32_of(whole - part[n]) : 0.0f;
    }
}""",
    "multiply_split": """\
// The same of factors in two parts each, all but the product of what is small: that of infinities is in the first.
__device__ __forceinline__ void multiply_split(float &upper, float &upper_next, float &lower, float &lower_next,
                                               const float (&left)[4], const float (&left_rest)[4],
                                               const float (&right)[2], const float (&right_rest)[2])
{
    float left_finite[4], right_finite[2];
    #pragma unroll
    for (int n = 0; n < 4; n++)
        left_finite[n] = fabsf(left[n]) < INFINITY ? left[n] : 0.0f;
    #pragma unroll
    for (int n = 0; n < 2; n++)
        right_finite[n] = fabsf(right[n]) < INFINITY ? right[n] : 0.0f;
    multiply(upper, upper_next, lower, lower_next, left_rest, right_finite);
    multiply(upper, upper_next, lower, lower_next, left_finite, right_rest);
    multiply(upper, upper_next, lower, lower_next, left, right);
}""",
}
"""CUDA C that contracts call, in the order of their dependence; each emitted only where it is used."""

PARTS: dict[Precision, int] = {"float32": 0, "tf32": 1, "tf32x3": 2}
"""By precision: how many tf32 numbers a factor is taken as; none where tensor cores do not take it."""
USED: dict[int, tuple[str, ...]] = {
    1: ("tf32_of", "to_tf32", "multiply"),
    2: ("tf32_of", "split", "multiply", "multiply_split"),
}
"""By parts: the functions that every contract calls."""
USED_BY_GROUPS = ("load_matrices", "begin_products", "finish_products", "descriptor")
"""What contracts of four warps call beside."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The text of one contract. ``places`` spells elements; ``at`` says where it stands."""

    contract: Contract
    places: Places
    at: At

    @property
    def functions(self) -> tuple[str, ...]:
        """What the text calls."""
        if self.contract.grouped:
            return (*USED[1], *USED_BY_GROUPS, self._products_name)
        loading = ("load_matrices",) if self._left_in_matrices or self._right_in_matrices else ()
        return (*loading, *USED[self.contract.parts])

    @property
    def lines(self) -> list[str]:
        """Both factors' parts for 8 depths, and what they are to the sums; then for the next ones."""
        if self.contract.grouped:
            return self._by_group()
        one, k = self.contract, self.contract.depth.variable
        names = [f"{part}[{count}][{size}]" for part, count, size in self._parts]
        steps = (one.depth.limit or 0) // DEPTH
        times = max(1, UNROLLED[one.parts] // (self._pairs * self._trips))
        unroll = "#pragma unroll" if times >= steps or self._handed else f"#pragma unroll {times}"
        head = f"for (int {k}_step = 0; {k}_step < {one.depth.limit}; {k}_step += {DEPTH}) {{"
        body = [f"float {', '.join(names)};", *self._left(self._names[0]), *self._right(), *self._products()]
        return [unroll, head, *indented(body), "}"]

    def _by_group(self) -> list[str]:
        """The left factor's parts for all depths, and all products, which four warps begin together and wait for."""
        one, (part, _) = self.contract, self._names
        step, depth = f"{one.depth.variable}_step", one.depth.limit or 0
        mine = f"{part}[{step} / {DEPTH}]"
        head = ["#pragma unroll", f"for (int {step} = 0; {step} < {depth}; {step} += {DEPTH}) {{"]
        right = self.places.array(one.right.buffer)
        body = [
            f"float {part}[{depth // DEPTH}][{self._pairs}][4];",
            *[*head, *indented(self._left(mine)), "}"],
            "begin_products();",
            *[*head, f"    {self._products_name}({one.target.buffer}, {mine}, {right}, {step});", "}"],
            "finish_products();",
        ]
        return ["{", *indented(body), "}"]

    @property
    def _products_name(self) -> str:
        one = self.contract
        return products_name(one.columns.limit or 0, one.rows.variable in one.target.indices[0].variables)

    @property
    def _handed(self) -> bool:
        return self.places.homes[self.contract.left.buffer].where == "registers"

    @property
    def _pairs(self) -> int:
        return self.contract.pairs(self.places.block)

    @property
    def _trips(self) -> int:
        return self.contract.trips(self.places.block)

    @property
    def _names(self) -> tuple[str, str]:
        left, right = self.contract.left.buffer, self.contract.right.buffer
        return f"{left}_part", f"{right}_part" if left != right else f"{right}_other"

    @property
    def _parts(self) -> list[tuple[str, int, int]]:
        """The fragments: names, how many, and the elements of each; with what is left of them, where they are split."""
        left, right = self._names
        parts = [(left, self._pairs, 4), (right, self._trips, 2)]
        rests = [(f"{name}_rest", count, size) for name, count, size in parts]
        return [*parts, *rests] if self.contract.parts == 2 else parts

    def _in_matrices(self, place: Load) -> bool:
        """Whether four neighbours along the depth lie in one aligned row of shared memory."""
        last, home = place.indices[-1].variables, self.places.homes[place.buffer]
        return home.where == "shared" and home.aligned == 4 and last == (self.contract.depth.variable,)

    @property
    def _left_in_matrices(self) -> bool:
        return self._in_matrices(self.contract.left) and not self._handed

    @property
    def _right_in_matrices(self) -> bool:
        return self._in_matrices(self.contract.right) and not self._handed and self._trips % 2 == 0

    def _rounded(self, part: str, position: str) -> str:
        if self.contract.parts == 2:
            return f"split({part}[{position}], {part}_rest[{position}]);"
        return f"to_tf32({part}[{position}]);"

    def _left(self, part: str) -> list[str]:
        one, block = self.contract, self.places.block
        i, k = one.rows.variable, one.depth.variable
        pair = f"{i}_pair"
        if self._left_in_matrices:
            row = f"({pair} * 2 + lane / 8 % 2) * {block.y} + ty - lane / 4 + lane % 8"
            elements = ", ".join(f"{part}[{pair}][{n}]" for n in range(4))
            body = [
                f"const int {i} = {row};",
                f"const int {k} = {k}_step + lane / 16 * 4;",
                f"load_matrices({elements}, &{self.places.element(one.left)});",
            ]
        else:
            body = self._each(
                4, f"{part}[{pair}]", one.left, one.rows, f"({pair} * 2 + n % 2) * {block.y} + ty", "n / 2"
            )
        return _times(pair, self._pairs, [*body, self._rounded(part, pair)])

    def _right(self) -> list[str]:
        one, block, (_, part) = self.contract, self.places.block, self._names
        j, k = one.columns.variable, one.depth.variable
        trip, first = f"{j}_trip", "(tx - lane % 4) * 2"
        if self._right_in_matrices:
            elements = ", ".join(f"{part}[{trip} * 2 + {n // 2}][{n % 2}]" for n in range(4))
            body = [
                f"const int {j} = ({trip} * 2 + lane / 16) * {2 * block.x} + {first} + lane % 8;",
                f"const int {k} = {k}_step + lane / 8 % 2 * 4;",
                f"load_matrices({elements}, &{self.places.element(one.right)});",
            ]
            rounded = [self._rounded(part, f"{trip} * 2"), self._rounded(part, f"{trip} * 2 + 1")]
            return _times(trip, self._trips // 2, [*body, *rounded])
        column = f"{trip} * {2 * block.x} + {first} + lane / 4"
        body = self._each(2, f"{part}[{trip}]", one.right, one.columns, column, "n")
        return _times(trip, self._trips, [*body, self._rounded(part, trip)])

    def _each(self, count: int, part: str, place: Load, loop: For, position: str, half: str) -> list[str]:
        """Each element of a fragment alone: ``half`` is whether it is of the first or of the last four depths."""
        one, k = self.contract, self.contract.depth.variable
        depth = f"lane % 4 * 2 + {half}" if self._handed else f"{half} * 4 + lane % 4"
        if self._handed and place == one.left:
            # the thread has them
            self.places.trips |= {loop.variable: f"{loop.variable}_pair * 2 + n % 2", k: f"{k}_step / 4 + {half}"}
            value = self.places.element(place)
            if part_of(one.depth) not in self.at.full:
                end = end_of(one.depth, False, one.depth.outer)
                value = f"{k}_step + {depth} < {end} ? {value} : 0.0f"
            return _times("n", count, [f"{part}[n] = {value};"])
        return _times(
            "n",
            count,
            [
                f"const int {loop.variable} = {position};",
                f"const int {k} = {k}_step + {depth};",
                f"{part}[n] = {self.places.element(place)};",
            ],
        )

    def _products(self) -> list[str]:
        one, (left, right) = self.contract, self._names
        i, j = one.rows.variable, one.columns.variable
        sums: list[str] = []
        for row in range(2):
            for column in range(2):
                self.places.trips |= {i: f"{i}_pair * 2{_plus(row)}", j: f"{j}_trip * 2{_plus(column)}"}
                sums.append(self.places.element(one.target))
        if self.contract.parts == 2:
            factors = f"{left}[{i}_pair], {left}_rest[{i}_pair], {right}[{j}_trip], {right}_rest[{j}_trip]"
            call = f"multiply_split({', '.join(sums)}, {factors});"
        else:
            call = f"multiply({', '.join(sums)}, {left}[{i}_pair], {right}[{j}_trip]);"
        return _times(f"{i}_pair", self._pairs, _times(f"{j}_trip", self._trips, [call]))


def _plus(n: int) -> str:
    return f" + {n}" if n else ""


def _times(variable: str, count: int, body: list[str]) -> list[str]:
    """``body`` so many times, unrolled."""
    head = f"for (int {variable} = 0; {variable} < {count}; {variable}++) {{"
    return ["#pragma unroll", head, *indented(body), "}"]
