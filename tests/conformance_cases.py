"""The conformance cases: read from beside the repository where they are, else from the copy in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ilang_eq.lang.component import Component, I, i

HERE = Path(__file__).parent
BESIDE = HERE.parent.parent / "shared" / "conformance"
FOLDER = BESIDE if BESIDE.is_dir() else HERE / "conformance"


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of one file; a missing file is an error, never a skip."""
    return json.loads((FOLDER / name).read_text())["cases"]


def component(tree: dict[str, Any]) -> Component:
    """The component a tree stands for."""
    if "expr" in tree:
        return i(tree["expr"])
    if "id" in tree:
        return I
    if tree["op"] == "swap":
        return ~component(tree["x"])
    left, right = component(tree["l"]), component(tree["r"])
    match tree["op"]:
        case "chain":
            return left >> right
        case "compose":
            return left << right
        case "fanout":
            return left & right
        case "pair":
            return left | right
        case other:
            raise AssertionError(f"unknown combinator {other}")


def array(data: dict[str, Any]) -> np.ndarray:
    """An array in float64; "inf", "-inf" and "nan" are strings."""
    return np.array([float(x) for x in data["data"]]).reshape(data["shape"])


def inputs(case: dict[str, Any]) -> list[np.ndarray]:
    """A case's inputs, given or seeded, in float32."""
    if "inputs" in case:
        return [np.asarray(array(a), np.float32) for a in case["inputs"]]
    rng = np.random.default_rng(case["seed"])
    drawn = [np.asarray(rng.standard_normal(shape, dtype=np.float32)) for shape in case["shapes"]]
    return [(np.abs(a) + np.float32(0.5)).astype(np.float32) for a in drawn] if case.get("positive") else drawn
