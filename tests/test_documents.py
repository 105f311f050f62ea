from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "papers_notes").glob("*.md"))
DOCUMENTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
MENTIONED = re.compile(r"`((?:ilang_eq|tests|benchmarks|papers_notes)/[\w./]*)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_named_in_a_document_exists(document: Path) -> None:
    missing = [path for path in MENTIONED.findall(document.read_text()) if not (ROOT / path).exists()]
    assert missing == []


def test_every_page_is_listed_and_says_where() -> None:
    index = (ROOT / "papers_notes" / "README.md").read_text()
    for page in PAGES:
        if page.name != "README.md":
            assert f"({page.name})" in index
            assert "**Where.**" in page.read_text()


ALLOWED = {
    "lang": {"errors"},
    "rewrites": {"errors", "lang"},
    "lower": {"errors", "lang"},
    "extract": {"errors", "lang", "rewrites", "lower", "cuda"},
    "c": {"cache", "errors", "host", "lang", "lower"},
    "cuda": {"cache", "errors", "lang", "lower"},
    "database": {"errors", "lang"},
    "export": {"c", "database", "errors", "host", "lang", "lower"},
    "calibrate": {"extract", "c", "cuda", "errors"},
}
"""The arrows of CONTRIBUTING.md: what each folder may import when it is imported."""


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_point_one_way(folder: str) -> None:
    for module in sorted((ROOT / "ilang_eq" / folder).rglob("*.py")):
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ilang_eq."):
                assert node.module.split(".")[1] in ALLOWED[folder] | {folder}, f"{module.name}: {node.module}"


def test_the_readme_runs() -> None:
    """The Python blocks of the README, one after the other, on arrays smaller than they optimise for."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    rng = np.random.default_rng(0)
    names: dict[str, Any] = {name: rng.standard_normal((48, 8), dtype=np.float32) for name in "qkv"}
    exec("\n".join(blocks), names)
    q, k, v = names["q"], names["k"], names["v"]
    weights = np.exp(q @ k.T)
    np.testing.assert_allclose(names["out"], weights / weights.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
