"""Records: frozen, slotted dataclasses that are made quickly.

before →  @dataclass(frozen=True, slots=True)      six methods, each compiled by itself: half a millisecond a class
after  →  @record                                  three methods compiled at once, the others shared by all records

A search imports 150 of them. To everybody they are dataclasses: to ``fields``, ``replace``, ``asdict``, patterns,
pickle and type checkers. What a record need not have is left to ``dataclass``: an order, ``__post_init__``, fields that
are no arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

_T = TypeVar("_T")
_MADE = object()
"""The default of an argument whose value a factory makes."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """``cls`` with what ``dataclass(frozen=True, slots=True)`` gives it.

    Raises:
        TypeError: it has ``__post_init__``, or a field that is no argument.
    """
    cls.__doc__ = cls.__doc__ or cls.__name__  # else ``dataclass`` spells the signature, which takes long
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    found: Sequence[Field[Any]] = fields(made)  # pyright: ignore[reportArgumentType]
    if hasattr(cls, "__post_init__") or not all(f.init for f in found):
        raise TypeError(f"{cls.__name__} is more than a record")
    for name, method in {**_SHARED, **_compiled(made, found)}.items():
        if cls.__dict__.get(name) is None:
            setattr(made, name, method)
    return made


def _compiled(cls: type, found: Iterable[Field[Any]]) -> dict[str, Any]:
    """The methods that depend on the fields."""
    names: dict[str, Any] = {"MADE": _MADE}
    arguments, body = [], []
    for f in found:
        names[f"set_{f.name}"] = getattr(cls, f.name).__set__
        value = f.name
        if f.default_factory is not MISSING:
            names[f"make_{f.name}"] = f.default_factory
            value = f"make_{f.name}() if {f.name} is MADE else {f.name}"
        elif f.default is not MISSING:
            names[f"default_{f.name}"] = f.default
        arguments.append(f.name + _default(f))
        body.append(f" set_{f.name}(self, {value})")
    mine, others = (f"({''.join(f'{of}.{f.name}, ' for f in found if f.compare)})" for of in ("self", "other"))
    text = f"""
def __init__({", ".join(["self", *arguments])}):
{chr(10).join(body) or " pass"}
def __eq__(self, other):
 return {mine} == {others} if other.__class__ is self.__class__ else NotImplemented
def __hash__(self):
 return hash({mine})
"""
    exec(text, names)
    methods = {name: names[name] for name in ("__init__", "__eq__", "__hash__")}
    for name, method in methods.items():
        method.__qualname__ = f"{cls.__qualname__}.{name}"
    return methods


def _default(f: Field[Any]) -> str:
    if f.default_factory is not MISSING:
        return "=MADE"
    return "" if f.default is MISSING else f"=default_{f.name}"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _set(self: object, name: str, _: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: Sequence[object]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


_SHARED = {
    "__repr__": _repr,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
