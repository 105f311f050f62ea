"""𝚒, a tiny tensor language whose schedules live in its text, and an optimiser that finds them."""

from importlib import import_module
from typing import TYPE_CHECKING

from ilang_eq.errors import ILangError
from ilang_eq.lang.component import Component, I, i
from ilang_eq.optimizer import optimize

if TYPE_CHECKING:
    from ilang_eq.batch.many import optimize_many
    from ilang_eq.bench import compare
    from ilang_eq.tracing import trace

__all__ = ["Component", "I", "ILangError", "compare", "i", "optimize", "optimize_many", "trace"]

_ON_DEMAND = {"compare": "bench", "optimize_many": "batch.many", "trace": "tracing"}
"""What no single search needs, with the module that it is imported from when it is asked for."""


def __getattr__(name: str) -> object:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    return found
