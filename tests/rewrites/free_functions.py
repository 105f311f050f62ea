"""Components of free functions: what a law must hold for. Written apart from ``lang/wiring.py``, from its prose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Term = object


@dataclass(frozen=True, slots=True)
class Free:
    """A function from ``inputs`` terms to ``outputs`` terms."""

    inputs: int
    outputs: int
    apply: Callable[[list[Term]], list[Term]]

    def __rshift__(self, other: Free) -> Free:
        fed = min(self.outputs, other.inputs)

        def apply(xs: list[Term]) -> list[Term]:
            made = self.apply(xs[: self.inputs])
            return made[fed:] + other.apply(made[:fed] + xs[self.inputs :])

        return Free(self.inputs + other.inputs - fed, self.outputs - fed + other.outputs, apply)

    def __lshift__(self, other: Free) -> Free:
        fed = min(other.outputs, self.inputs)

        def apply(xs: list[Term]) -> list[Term]:
            made = other.apply(xs[: other.inputs])
            return self.apply(made[:fed] + xs[other.inputs :]) + made[fed:]

        return Free(other.inputs + self.inputs - fed, self.outputs + other.outputs - fed, apply)

    def __and__(self, other: Free) -> Free:
        return Free(
            max(self.inputs, other.inputs),
            self.outputs + other.outputs,
            lambda xs: self.apply(xs[: self.inputs]) + other.apply(xs[: other.inputs]),
        )

    def __or__(self, other: Free) -> Free:
        return Free(
            self.inputs + other.inputs,
            self.outputs + other.outputs,
            lambda xs: self.apply(xs[: self.inputs]) + other.apply(xs[self.inputs :]),
        )

    def __invert__(self) -> Free:
        return Free(self.inputs, self.outputs, lambda xs: self.apply(xs[:2][::-1] + xs[2:]))

    def results(self) -> list[Term]:
        """What it returns for inputs that are all different."""
        return self.apply(list(range(self.inputs)))


def free(name: str, inputs: int, outputs: int) -> Free:
    """A function nothing is known of but its arity."""
    return Free(inputs, outputs, lambda xs: [(name, k, *xs) for k in range(outputs)])


IDENTITY = Free(1, 1, lambda xs: xs)


def alike(a: Free, b: Free) -> bool:
    """Are two functions equal whatever the free functions in them are?"""
    return (a.inputs, a.outputs) == (b.inputs, b.outputs) and a.results() == b.results()
