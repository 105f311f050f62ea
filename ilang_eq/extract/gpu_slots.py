"""What the cost model of GPUs counts for the arithmetic of a statement."""

from __future__ import annotations

from ilang_eq.cuda.nodes import Leaf, Node
from ilang_eq.lower.ir import Accumulate, Apply, Assign, Constant, Load, Scalar

SLOTS: dict[str, tuple[float, float]] = {
    "add": (1, 0), "sub": (1, 0), "mul": (1, 0), "div": (8, 1), "max": (2, 0), "min": (2, 0), "exp": (8, 1),
    "ln": (14, 1), "log": (30, 3), "pow": (50, 2), "shift_factor": (14, 1), "finite_or": (3, 0), "abs": (1, 0),
}  # fmt: skip
"""Instructions and special functions that an op takes; one not here takes ``OTHER``."""
OTHER = (3.0, 0.0)


def arithmetic(value: Scalar) -> tuple[float, float]:
    """Instructions and special functions of a scalar."""
    match value:
        case Load() | Constant():
            return 0.0, 0.0
        case Apply(op, arguments):
            slots, special = SLOTS.get(op, OTHER)
            for argument in arguments:
                more, extra = arithmetic(argument)
                slots, special = slots + more, special + extra
            return slots, special


def absorbed(leaf: Leaf, following: Node | None) -> bool:
    """Whether a product is added at once: one instruction does both."""
    if not isinstance(leaf, Assign) or not isinstance(following, Accumulate) or following.op != "add":
        return False
    product = isinstance(leaf.value, Apply) and leaf.value.op == "mul"
    return product and following.value == leaf.target
