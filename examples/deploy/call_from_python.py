"""Calls an exported attention through ctypes, with nothing but the standard library: no compiler, no NumPy."""

from __future__ import annotations

import ctypes
import sys

ROWS, WIDTH = 40, 24


def made_up(floats: int, which: int) -> ctypes.Array[ctypes.c_float]:
    """Numbers between -0.375 and 0.375."""
    return (ctypes.c_float * floats)(*(((n * 7 + which * 3) % 13) / 16 - 0.375 for n in range(floats)))


def main() -> None:
    """Run the library that the command line names, and print the sum of what comes out."""
    library = ctypes.CDLL(sys.argv[1])
    library.attention_workspace_size.restype = ctypes.c_int64
    library.attention_workspace_size.argtypes = [ctypes.c_int64] * 4 + [ctypes.c_int]
    floats = ctypes.POINTER(ctypes.c_float)
    library.attention_run.argtypes = (
        [floats] * 4 + [ctypes.c_int64] * 4 + [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    )
    assert library.attention_abi_version() == 1

    q, k, v, out = (made_up(ROWS * WIDTH, which) for which in range(4))
    extents, threads = (ROWS, WIDTH, ROWS, WIDTH), 1
    size = library.attention_workspace_size(*extents, threads)
    if size < 0:
        sys.exit(f"attention_workspace_size: error {-size}")
    workspace = ctypes.create_string_buffer(max(size, 1))
    code = library.attention_run(q, k, v, out, *extents, workspace, size, threads)
    if code != 0:
        sys.exit(f"attention_run: error {code}")
    print(f"out0 {sum(out):.5f}")


if __name__ == "__main__":
    main()
