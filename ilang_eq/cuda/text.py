"""CUDA C text of places: each kind of home has its own way to spell an element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from ilang_eq.cuda.nodes import RUN, SWIZZLED, WARP, Block, Dim
from ilang_eq.cuda.storage import Home
from ilang_eq.lower.addresses import flat_index, index_text, size_text
from ilang_eq.lower.ir import Index, Load, Size

THREAD: dict[Dim, str] = {"x": "tx", "y": "ty"}
"""The position of a thread along each direction."""


def text_of(thread: str, block: Block) -> tuple[str, str]:
    """The position of number ``thread`` of a block along x and along y."""
    if block.warps_across == 1:
        return f"{thread} % {block.x}", f"{thread} / {block.x}"
    warp, lanes, down = f"{thread} / {WARP}", block.lanes, WARP // block.lanes
    x = f"{warp} % {block.warps_across} * {lanes} + {thread} % {lanes}"
    first = f"{warp} / {block.warps_across}"
    return x, f"{first} * {down} + {thread} % {WARP} / {lanes}" if down > 1 else first


@dataclass(slots=True)
class Places:
    """Spells places.

    ``trips`` are, of the loops shared out around a place, the counters of each thread's own part; ``runs`` are the
    names of places in memory that have been moved together with their neighbours; ``stages`` says which of its places a
    tile that is copied ahead has.
    """

    homes: Mapping[str, Home]
    block: Block
    trips: dict[str, str] = field(default_factory=dict)
    runs: Mapping[Load, str] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)

    def element(self, load: Load) -> str:
        """``load`` as an lvalue."""
        if load in self.runs:
            return self.runs[load]
        home = self.homes[load.buffer]
        match home.where:
            case "registers":
                kept = zip(load.indices, home.owned, home.dims, strict=True)
                inside = [self._position(index, dim) for index, dim, size in kept if dim is None or size > 1]
                return load.buffer + "".join(f"[{text}]" for text in inside)
            case "shared":
                stage = [self.stages[load.buffer]] if home.stages > 1 else []
                places = list(map(index_text, load.indices))
                places = _swizzled(*places) if home.swizzled else places
                inside = [*stage, *(THREAD[dim] for dim in home.slots), *places]
                return load.buffer + "".join(f"[{text}]" for text in inside or ["0"])
            case "memory" | "scratch":
                return f"{load.buffer}[{self._offset(load)}]"
            case other:
                assert_never(other)

    def array(self, buffer: str) -> str:
        """The tile ``buffer`` in shared memory, as it is in this iteration."""
        return buffer + (f"[{self.stages[buffer]}]" if self.homes[buffer].stages > 1 else "")

    def address(self, load: Load) -> str:
        """Where ``load`` lies in memory, as a pointer."""
        return f"{load.buffer} + {self._offset(load)}"

    def _offset(self, load: Load) -> str:
        home = self.homes[load.buffer]
        slots = [THREAD[dim] for dim in home.slots]
        sizes: list[Size] = [self.block.along(dim) for dim in home.slots]
        return flat_index([*slots, *map(index_text, load.indices)], (*sizes, *home.buffer.dims))

    def _position(self, index: Index, dim: Dim | None) -> str:
        return index_text(index) if dim is None else self.trips[index.variables[0]]

    def declaration(self, home: Home, at: int | None = None) -> str:
        """The declaration of a buffer in registers or in shared memory: ``at`` a float of what the launch asks for."""
        name = home.buffer.name
        if home.where == "registers":
            kept = [size for dim, size in zip(home.owned, home.dims, strict=True) if dim is None or size > 1]
            return f"float {name}" + "".join(f"[{size}]" for size in kept) + ";"
        first, *rest = home.sizes(self.block)
        if at is not None:
            inside = "".join(f"[{size}]" for size in rest)
            return f"auto &{name} = *reinterpret_cast<float (*)[{first}]{inside}>(shared_memory + {at});"
        align = f" __align__({home.alignment})" if home.aligned > 1 else ""
        return f"__shared__{align} float {name}[{first}]" + "".join(f"[{size}]" for size in rest) + ";"

    def floats(self, home: Home) -> str:
        """How many floats of scratch one block takes."""
        sizes = [str(self.block.along(dim)) for dim in home.slots] + [size_text(size) for size in home.buffer.dims]
        return " * ".join(sizes) or "1"


def _swizzled(row: str, column: str) -> list[str]:
    """The place of an element whose row changes the order of its runs of ``RUN``."""
    r, c = (text if text.isidentifier() else f"({text})" for text in (row, column))
    return [row, f"({c} / {RUN} ^ {r} % {SWIZZLED // RUN}) * {RUN} + {c} % {RUN}"]
