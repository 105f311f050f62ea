from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "papers_notes").glob("*.md"))
GUIDES = sorted((ROOT / "docs").glob("*.md"))
NAMED = ("CONTRIBUTING.md", "README.md", "benchmarks/README.md", "benchmarks/findings.md")
DOCUMENTS = [*PAGES, *GUIDES, *(ROOT / name for name in NAMED)]
MENTIONED = re.compile(r"`((?:ilang_eq|tests|benchmarks|papers_notes)/[\w./]*)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_named_in_a_document_exists(document: Path) -> None:
    missing = [path for path in MENTIONED.findall(document.read_text()) if not (ROOT / path).exists()]
    assert missing == []


LINK = re.compile(r"\]\(([\w./-]+)\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    assert [link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()] == []


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


def _run(*names: str) -> dict[str, Any]:
    """The names that the Python blocks of some documents leave, run one after the other."""
    text = "".join((ROOT / name).read_text() for name in names)
    found: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), found)
    return found


def test_the_readme_and_the_guide_run() -> None:
    names = _run("README.md", "docs/guide.md")
    q, k, v = (names[name].astype(np.float64) for name in "qkv")
    weights = np.exp(q @ k.T)
    np.testing.assert_allclose(names["out"], weights / weights.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


def test_the_language_page_runs() -> None:
    assert _run("docs/language.md")["fused"].plan().kernels == 1
