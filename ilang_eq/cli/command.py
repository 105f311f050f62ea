"""What a command is: its name, its arguments, and a function from these to an answer."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say: ``text`` for people, ``data`` for programs, and the exit status."""

    text: str
    data: Mapping[str, Any]
    status: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """One word after ``ilang-eq``."""

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Answer]
