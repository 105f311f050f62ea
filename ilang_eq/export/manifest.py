"""``name.json``: what a library is, for programs that load it, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ilang_eq.c.build import standalone_flags
from ilang_eq.database.version import package_version
from ilang_eq.export.interface import ABI_VERSION, ERRORS, Array, Interface
from ilang_eq.host import processor_name


def manifest(interface: Interface, computes: Mapping[str, object], provenance: Mapping[str, object]) -> str:
    """The text of the manifest.

    Args:
        interface: the functions.
        computes: entries on what the library computes.
        provenance: entries on how it was made, beside the package's version and the machine.
    """
    entries = {
        "name": interface.name,
        "abi_version": ABI_VERSION,
        "functions": {
            "abi_version": interface.abi_version,
            "workspace_size": interface.workspace_size,
            "run": interface.run,
        },
        "inputs": _arrays(interface.inputs),
        "outputs": _arrays(interface.outputs),
        "extents": list(interface.extents),
        "workspace": {
            "bytes": f"{interface.name}_workspace_size",
            "alignment": {"least": 4, "best": 64},
            "contents": "undefined before and after a call",
        },
        "errors": {f"{interface.macro}_{error}": code for code, (error, _) in enumerate(ERRORS)},
        **computes,
        "target": {
            "language": "C11 with GNU vector extensions; OpenMP where there is one",
            "flags": list(standalone_flags()),
            "libraries": ["m"],
        },
        "provenance": {"ilang_eq": package_version(), "machine": processor_name(), **provenance},
    }
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def _arrays(arrays: Sequence[Array]) -> list[dict[str, object]]:
    return [{"name": a.name, "dtype": "float32", "order": "row-major", "dims": list(a.dims)} for a in arrays]
