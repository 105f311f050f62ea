"""Loop IR and how components get there: staging → one merged nest per kernel → repairs → statements."""

from ilang_eq.lower.lowering import lower

__all__ = ["lower"]
