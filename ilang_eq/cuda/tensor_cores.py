"""CUDA C of contracts: a warp's part of a tile on tensor cores, 16 rows by 8 columns by 8 products at a time.

Lane 4·r + c of a warp has of the sums rows r and r + 8, columns 2·c and 2·c + 1; of the left factor the same rows and
depths c and c + 4; of the right one column r, depths c and c + 4 (PTX ISA, "Matrix Fragments for mma.m16n8k8"). Which
rows, columns and depths of a tile these are is free, as long as both factors agree: rows r and r + 8 are those that the
thread has anyway, a step of its y apart; and sums become a left factor as they are, if depths c and c + 4 of the
instruction are depths 2·c and 2·c + 1 of the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilang_eq.cuda.context import At, end_of, indented
from ilang_eq.cuda.contractions import COLUMNS, DEPTH, PAIR
from ilang_eq.cuda.nodes import SWIZZLED, Contract, part_of
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
    "truncate": """\
// Without what tf32 has not.
__device__ __forceinline__ float truncated(float x) { return __uint_as_float(__float_as_uint(x) & ~0u << 13); }
template <int N> __device__ __forceinline__ void truncate(float (&part)[N])
{
    #pragma unroll
    for (int n = 0; n < N; n++)
        part[n] = truncated(part[n]);
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
// What is left of each element after rounding, truncated: their sum has 21 bits after the point. Of infinities, what is
// left is all, so that no product of two of three parts is of an infinity and what should not be zero.
template <int N> __device__ __forceinline__ void split(float (&part)[N], float (&rest)[N])
{
    const float most = __uint_as_float(0x7f7fe000u);
    #pragma unroll
    for (int n = 0; n < N; n++) {
        const float whole = part[n], near = fminf(fmaxf(whole, -most), most);
        part[n] = truncated(__uint_as_float(__float_as_uint(near) + 0x1000u));
        rest[n] = truncated(whole - part[n]);
    }
}""",
    "multiply_split": """\
// The same of factors in two parts each, all but the product of what is small. Cores truncate what they add up, so long
// sums would lose what the second parts are for: what they make is added here.
__device__ __forceinline__ void multiply_split(float &upper, float &upper_next, float &lower, float &lower_next,
                                               const float (&left)[4], const float (&left_rest)[4],
                                               const float (&right)[2], const float (&right_rest)[2])
{
    float fresh[4] = {};
    multiply(fresh[0], fresh[1], fresh[2], fresh[3], left_rest, right);
    multiply(fresh[0], fresh[1], fresh[2], fresh[3], left, right_rest);
    multiply(fresh[0], fresh[1], fresh[2], fresh[3], left, right);
    upper += fresh[0];
    upper_next += fresh[1];
    lower += fresh[2];
    lower_next += fresh[3];
}""",
}
"""CUDA C that contracts call, in the order of their dependence; each emitted only where it is used."""

PARTS: dict[Precision, int] = {"float32": 0, "tf32": 1, "tf32x3": 2}
"""By precision: how many tf32 numbers a factor is taken as; none where tensor cores do not take it."""
USED: dict[int, tuple[str, ...]] = {
    1: ("tf32_of", "to_tf32", "multiply"),
    2: ("truncate", "split", "multiply", "multiply_split"),
}
"""By parts: the functions that every contract calls."""
BY_GROUPS = (
    "truncate", "load_matrices", "tf32_of", "to_tf32", "multiply", "split", "publish", "begin_products",
    "finish_products", "settle", "descriptor",
)  # fmt: skip
"""The same of contracts of four warps, beside what prepares the right factor and the products themselves."""


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
            turns = "turn_tile" if self.contract.turned else "split_tile"
            return (*BY_GROUPS, *([] if self.contract.prepared is None else [turns]), self._group_function)
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
        body = [f"float {', '.join(names)};", *self._left(self._left_names), *self._right(), *self._products()]
        return [unroll, head, *indented(body), "}"]

    def _by_group(self) -> list[str]:
        """Products that four warps begin together and wait for, of the left factor's parts for all depths."""
        one, step, names = self.contract, f"{self.contract.depth.variable}_step", self._left_names
        if one.in_chunks:
            return ["{", *indented([*self._prepared(), *self._in_chunks()]), "}"]
        depth, parts = one.depth.limit or 0, [f"{name}[{step} / {DEPTH}]" for name in names]
        body = [
            f"float {names[0]}[{depth // DEPTH}][{self._pairs}][4];",
            *self._steps(depth, self._left(parts)),
            "begin_products();",
            *self._steps(depth, [self._group_product(one.target.buffer, parts[0], 0, step, "0", "true")]),
            "finish_products();",
        ]
        return ["{", *indented(body), "}"]

    def _in_chunks(self) -> list[str]:
        """The same of factors in two parts: a pair of rows and some columns at a time, whose sums are then added up.

        Why, ``multiply_split`` says.
        """
        one, names = self.contract, self._left_names
        i, j, k = (loop.variable for loop in one.loops)
        pair, step, first, chunk, some = f"{i}_pair", f"{k}_step", f"{j}_first", f"{k}_chunk", one.fresh_columns
        parts = [f"{name}[({step} - {chunk}) / {DEPTH}]" for name in names]
        kept = PAIR * some // COLUMNS
        begun = f"{step} > {chunk}"
        terms = ((parts[1], 0, begun), (parts[0], 1, "true"), (parts[0], 0, "true"))
        added: list[str] = []
        for row in range(2):
            self.places.trips |= {i: f"{pair} * 2{_plus(row)}", j: f"{first} / {COLUMNS // PAIR} + n"}
            added.append(f"{self.places.element(one.target)} += fresh[{row}][n];")
        columns = [
            f"float fresh[2][{kept}];",
            "begin_products();",
            *self._steps(
                SWIZZLED, [self._group_product("fresh", x, y, step, first, add) for x, y, add in terms], chunk
            ),
            "finish_products();",
            "settle(fresh);",
            *_times("n", kept, added),
        ]
        rows = [
            f"float {', '.join(f'{name}[{SWIZZLED // DEPTH}][1][4]' for name in names)};",
            *self._steps(SWIZZLED, self._left_of_pair([f"{part}[0]" for part in parts]), chunk),
            *_unrolled(first, one.columns.limit or 0, some, columns),
        ]
        return _unrolled(chunk, one.depth.limit or 0, SWIZZLED, _times(pair, self._pairs, rows))

    def _prepared(self) -> list[str]:
        """What threads do for the cores to find the right factor."""
        one, threads = self.contract, self.places.block.threads
        if one.prepared is None:
            return []
        right, tiles = self.places.array(one.right.buffer), self.places.array(one.prepared.buffer)
        made = f"split_tile<{threads}>({right}, {tiles}[0]);"
        if one.turned:
            made = f"turn_tile<{threads}, {'true' if self._handed else 'false'}>({right}, {tiles});"
        return [made, "publish();", "__syncthreads();"]

    def _group_product(self, sums: str, left: str, part: int, step: str, first: str, add: str) -> str:
        """The call for 8 depths, of the right factor's first or second ``part`` and columns from ``first`` on.

        Without ``add``, sums begin with it.
        """
        one, depth = self.contract, self.contract.depth.limit or 0
        rounded = "false" if one.in_chunks else "true"
        right, place = self.places.array(one.right.buffer), step if depth == SWIZZLED else f"{step} % {SWIZZLED}"
        if one.prepared is not None and (one.turned or part):
            number = part * (depth // SWIZZLED) if one.turned else 0
            chunk = "" if depth == SWIZZLED else f"{step} / {SWIZZLED}"
            tile = " + ".join(text for text in (chunk, str(number) if number or not chunk else "") if text)
            right = f"{self.places.array(one.prepared.buffer)}[{tile}]"
        return f"{self._group_function}<{rounded}>({sums}, {left}, {right}, {first}, {place}, {add});"

    @property
    def _group_function(self) -> str:
        """What multiplies: into sums of these products alone, where they come in chunks."""
        one = self.contract
        if one.in_chunks:
            return products_name(one.fresh_columns, rows_first=True)
        return products_name(one.columns.limit or 0, one.rows.variable in one.target.indices[0].variables)

    def _steps(self, depth: int, body: list[str], begin: str = "0") -> list[str]:
        """``body`` for every 8 of ``depth`` depths from ``begin`` on, unrolled."""
        return _unrolled(f"{self.contract.depth.variable}_step", depth, DEPTH, body, begin)

    @property
    def _left_names(self) -> list[str]:
        return [self._names[0], f"{self._names[0]}_rest"][: self.contract.parts]

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

    def _rounded(self, parts: Sequence[str]) -> str:
        """The first of ``parts`` rounded, and what is left of it in the second, where there are two."""
        return f"{'split' if self.contract.parts == 2 else 'to_tf32'}({', '.join(parts)});"

    def _left(self, parts: Sequence[str]) -> list[str]:
        pair = f"{self.contract.rows.variable}_pair"
        return _times(pair, self._pairs, self._left_of_pair([f"{part}[{pair}]" for part in parts]))

    def _left_of_pair(self, parts: Sequence[str]) -> list[str]:
        one, block, part = self.contract, self.places.block, parts[0]
        i, k = one.rows.variable, one.depth.variable
        pair = f"{i}_pair"
        if self._left_in_matrices:
            row = f"({pair} * 2 + lane / 8 % 2) * {block.y} + ty - lane / 4 + lane % 8"
            elements = ", ".join(f"{part}[{n}]" for n in range(4))
            body = [
                f"const int {i} = {row};",
                f"const int {k} = {k}_step + lane / 16 * 4;",
                f"load_matrices({elements}, &{self.places.element(one.left)});",
            ]
        else:
            body = self._each(4, part, one.left, one.rows, f"({pair} * 2 + n % 2) * {block.y} + ty", "n / 2")
        return [*body, self._rounded(parts)]

    def _right(self) -> list[str]:
        one, block, (_, part) = self.contract, self.places.block, self._names
        j, k = one.columns.variable, one.depth.variable
        trip, first, parts = f"{j}_trip", "(tx - lane % 4) * 2", (part, f"{part}_rest")[: one.parts]
        if self._right_in_matrices:
            elements = ", ".join(f"{part}[{trip} * 2 + {n // 2}][{n % 2}]" for n in range(4))
            body = [
                f"const int {j} = ({trip} * 2 + lane / 16) * {2 * block.x} + {first} + lane % 8;",
                f"const int {k} = {k}_step + lane / 8 % 2 * 4;",
                f"load_matrices({elements}, &{self.places.element(one.right)});",
            ]
            rounded = [self._rounded([f"{name}[{n}]" for name in parts]) for n in (f"{trip} * 2", f"{trip} * 2 + 1")]
            return _times(trip, self._trips // 2, [*body, *rounded])
        column = f"{trip} * {2 * block.x} + {first} + lane / 4"
        body = self._each(2, f"{part}[{trip}]", one.right, one.columns, column, "n")
        return _times(trip, self._trips, [*body, self._rounded([f"{name}[{trip}]" for name in parts])])

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


def _unrolled(variable: str, length: int, step: int, body: list[str], begin: str = "0") -> list[str]:
    """``body`` in steps along ``length`` from ``begin`` on, unrolled."""
    end = str(length) if begin == "0" else f"{begin} + {length}"
    head = f"for (int {variable} = {begin}; {variable} < {end}; {variable} += {step}) {{"
    return ["#pragma unroll", head, *indented(body), "}"]
