from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "papers_notes").glob("*.md"))
DOCUMENTS = [*PAGES, ROOT / "CONTRIBUTING.md"]
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
    "extract": {"errors", "lang", "rewrites", "lower"},
    "c": {"errors", "lang", "lower"},
}
"""The arrows of CONTRIBUTING.md: what each folder may import when it is imported."""


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_point_one_way(folder: str) -> None:
    for module in sorted((ROOT / "ilang_eq" / folder).rglob("*.py")):
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ilang_eq."):
                assert node.module.split(".")[1] in ALLOWED[folder] | {folder}, f"{module.name}: {node.module}"
