"""What an exported library looks like to C: functions ``name_…``, arrays that the caller owns, and their extents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ilang_eq.errors import OptionError

ABI_VERSION = 1
"""Of the functions and error codes below; it grows when a caller would have to change."""

ERRORS = (
    ("OK", "done"),
    ("BAD_THREADS", "fewer than one thread"),
    ("BAD_EXTENT", "an extent below zero"),
    ("TOO_LARGE", "extents whose workspace cannot be addressed"),
    ("NULL_POINTER", "an array with elements, or a workspace that is needed, is NULL"),
    ("SMALL_WORKSPACE", "less workspace than {name}_workspace_size says"),
)
"""Error codes in the order of their numbers, from 0, and what each means where ``name`` is that of the library."""


WEIGHTS = "weights"
"""The array of all weights of a model, whose contents are in the file ``name.weights``."""


@dataclass(frozen=True, slots=True)
class Array:
    """A row-major float32 array. ``dims`` are C expressions of the extents."""

    name: str
    dims: tuple[str, ...]

    @property
    def declared(self) -> str:
        """The array as a reader writes it: ``in0[in0_0][in0_1]``."""
        return self.name + "".join(f"[{dim}]" for dim in self.dims)

    @property
    def floats(self) -> str:
        """How many elements it has, in C."""
        return " * ".join(self.dims) or "1"


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameters of a library's functions. ``extents`` are the names of its parameters for sizes."""

    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    extents: tuple[str, ...]

    @property
    def macro(self) -> str:
        """What the names of its constants begin with."""
        return self.name.upper()

    @property
    def workspace_size(self) -> str:
        """The prototype of the function that says how large a workspace has to be."""
        extents = "".join(f"int64_t {name}, " for name in self.extents)
        return f"int64_t {self.name}_workspace_size({extents}int threads)"

    @property
    def run(self) -> str:
        """The prototype of the function that computes."""
        inputs = [f"const float *{array.name}" for array in self.inputs]
        outputs = [f"float *{array.name}" for array in self.outputs]
        extents = [f"int64_t {name}" for name in self.extents]
        memory = ["void *workspace", "int64_t workspace_size", "int threads"]
        return f"int {self.name}_run({', '.join([*inputs, *outputs, *extents, *memory])})"

    @property
    def abi_version(self) -> str:
        """The prototype of the function that says which interface a library was built with."""
        return f"int {self.name}_abi_version(void)"

    def called(self, function: str, before: Sequence[str], after: Sequence[str]) -> str:
        """A call of a function, the extents under their own names between the other arguments."""
        return f"{self.name}_{function}({', '.join([*before, *self.extents, *after])})"


def checked_name(name: str) -> str:
    """``name`` if C identifiers and files can begin with it. Raises OptionError."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name.lower() == "main":
        raise OptionError(
            f"the name {name!r}", expected="a C identifier that begins with a letter, other than main, which main.c has"
        )
    return name
