"""``python -m ilang_eq``, which is ``ilang-eq``."""

from __future__ import annotations

import sys

from ilang_eq.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
