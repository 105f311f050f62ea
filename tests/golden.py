"""Golden files: text that must not change unnoticed. ``pytest --update-golden`` rewrites them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Golden:
    """The golden files of one test folder."""

    folder: Path
    update: bool

    def check(self, name: str, text: str) -> None:
        """Compare ``text`` with file ``name``, or write it there if that is asked for."""
        path = self.folder / name
        if self.update:
            self.folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path}; write it with pytest --update-golden"
        assert text == path.read_text(encoding="utf-8"), f"{name} has changed; if it should, pytest --update-golden"
