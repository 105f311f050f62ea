"""What a traced model is called with: the example's structure, and tensors like the example's. Loads torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ilang_eq.errors import ArrayError
from ilang_eq.tracing.extents import solve
from ilang_eq.tracing.nodes import Argument


class Expected:
    """What a program was traced for, and what is said of a call that is unlike it.

    Args:
        arguments: the inputs.
        example: how they are passed.
    """

    def __init__(self, arguments: Sequence[Argument], example: pytree.TreeSpec) -> None:
        self._arguments, self._example = arguments, example
        types = [argument.type for argument in arguments]
        by_position = example == pytree.tree_structure(((None,) * len(types), {}))
        simple = by_position and all(found.is_tensor and not found.is_symbolic for found in types)
        self._simple = [(getattr(torch, found.dtype), found.shape) for found in types] if simple else None

    def inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
        """The inputs of a call, in order. Raises ArrayError for one that the program does not hold for."""
        simple = self._simple
        if simple is not None and not kwargs and len(args) == len(simple) and all(map(_is_plain, args, simple)):
            return args
        found = flattened(args, kwargs, self._example)
        check_inputs(self._arguments, found)
        return found


def _is_plain(value: Any, wanted: tuple[torch.dtype, tuple[int | str, ...]]) -> bool:
    """Whether nothing has to be said of a tensor; called often."""
    if type(value) is not torch.Tensor or value.is_nested:
        return False
    dtype, shape = wanted
    return value.dtype is dtype and value.layout is torch.strided and value.is_cpu and value.shape == shape


def flattened(args: tuple[Any, ...], kwargs: dict[str, Any], example: pytree.TreeSpec) -> list[Any]:
    """The leaves of a call in the order of the example's, whatever the order of keys. Raises ArrayError."""
    try:
        return example.flatten_up_to((args, kwargs))
    except ValueError:
        raise ArrayError("arguments unlike the example's", expected=_call(example)) from None


def _call(example: pytree.TreeSpec) -> str:
    """How the example was called: ``(*, {'a': *}, mask=*)``."""
    args, kwargs = pytree.tree_unflatten([_Leaf()] * example.num_leaves, example)
    return f"({', '.join([*map(repr, args), *(f'{name}={value!r}' for name, value in kwargs.items())])})"


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def check_inputs(arguments: Sequence[Argument], values: Sequence[Any]) -> None:
    """Raise ArrayError unless ``values`` are what a program was traced for.

    Tensors have the types and extents of the arguments, equal symbols standing for equal extents; everything else is
    what it was in the example, because the program holds for that value alone.
    """
    for argument, value in zip(arguments, values, strict=True):
        if argument.type.is_tensor:
            _check_tensor(argument, value)
        elif type(value) is not type(argument.value) or value != argument.value:
            raise ArrayError(
                f"input {argument.name} is {_shown(value)}, and {argument.value!r} in the example",
                expected="the same again, or another trace",
            )
    pairs = [
        (extent, size)
        for argument, value in zip(arguments, values, strict=True)
        if argument.type.is_symbolic
        for extent, size in zip(argument.type.extents, value.shape, strict=True)
    ]
    sizes = solve(pairs)
    for extent, size in pairs:
        if sizes.keys() >= set(extent.symbols) and extent.value(sizes) != size:
            raise ArrayError(f"an extent {extent} is {size}, where {sizes}", expected=f"{extent.value(sizes)}")


def _check_tensor(argument: Argument, value: Any) -> None:
    wanted = argument.type
    if not isinstance(value, torch.Tensor):
        raise ArrayError(f"input {argument.name} is {_shown(value)}", expected=f"{wanted.dtype} of {wanted.shape}")
    if value.is_nested or value.layout is not torch.strided or not value.is_cpu:
        kind = "a nested tensor" if value.is_nested else f"{value.layout} on device {value.device}"
        raise ArrayError(f"input {argument.name} is {kind}", expected="a dense tensor on the CPU")
    fits = len(value.shape) == len(wanted.shape) and all(
        isinstance(size, str) or size == given for size, given in zip(wanted.shape, value.shape, strict=True)
    )
    if not fits or str(value.dtype) != f"torch.{wanted.dtype}":
        raise ArrayError(
            f"input {argument.name} is {value.dtype} of shape {tuple(value.shape)}",
            expected=f"{wanted.dtype} of {wanted.shape}",
        )


def _shown(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else f"a {type(value).__name__}"
