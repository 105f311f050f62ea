"""𝚒, a tiny tensor language whose schedules live in its text, and an optimiser that finds them."""

from ilang_eq.batch.many import optimize_many
from ilang_eq.bench import compare
from ilang_eq.errors import ILangError
from ilang_eq.lang.component import Component, I, i
from ilang_eq.optimizer import optimize
from ilang_eq.tracing import trace

__all__ = ["Component", "I", "ILangError", "compare", "i", "optimize", "optimize_many", "trace"]
