"""Where the database is: ``$ILANG_EQ_DATABASE``, or a file under the user's data directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SWITCHED_OFF = "off"
"""The value of ``$ILANG_EQ_DATABASE`` that stands for none."""

_FILE = Path("ilang_eq") / "results.sqlite"


def default_path() -> Path | None:
    """The file of ``$ILANG_EQ_DATABASE``, or the user's; None if it is switched off."""
    given = os.environ.get("ILANG_EQ_DATABASE")
    if given == SWITCHED_OFF:
        return None
    return Path(given) if given else _user_data() / _FILE


def _user_data() -> Path:
    match sys.platform:
        case "darwin":
            return Path.home() / "Library" / "Application Support"
        case "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        case _:
            return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
