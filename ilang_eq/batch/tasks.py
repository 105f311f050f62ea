"""What is to be optimised: components with shapes and weights, from Python, from files, or from a traced model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from ilang_eq.errors import ILangError, OptionError, ShapeError
from ilang_eq.lang.component import Component
from ilang_eq.lang.reading import read_component
from ilang_eq.lang.shape_text import read_shape

Shapes: TypeAlias = Sequence[Sequence[int]]


@runtime_checkable
class HasTasks(Protocol):
    """Anything that lists what it is made of, such as a traced model."""

    def tasks(self) -> Iterable[Task]:
        """What there is to optimise."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """A component to optimise for ``shapes``.

    Args:
        weight: how often it runs: heavier ones are searched first.
        name: for messages.
        constants: inputs that stay the same from call to call, by name.
    """

    component: Component
    shapes: tuple[tuple[int, ...], ...]
    weight: float = 1.0
    name: str = ""
    constants: tuple[str, ...] = ()


Source: TypeAlias = Task | tuple[Component, Shapes] | tuple[Component, Shapes, float] | HasTasks | str | Path


def collected(sources: Iterable[Source]) -> list[Task]:
    """The tasks of all ``sources``, in order.

    Raises:
        OptionError: something that is no task, or a file that cannot be read; the message says which.
        ParseError: a file whose text is not that of components.
    """
    return [task for number, source in enumerate(sources) for task in _tasks(source, f"task {number}")]


def _tasks(source: Source, name: str) -> Iterator[Task]:
    match source:
        case Task():
            yield source
        case str() | Path():
            yield from read_tasks(Path(source))
        case (Component() as component, shapes):
            yield _task(component, shapes, 1.0, name)
        case (Component() as component, shapes, int() | float() as weight):
            yield _task(component, shapes, weight, name)
        case HasTasks():
            for number, task in enumerate(source.tasks()):
                yield replace(task, name=task.name or f"{name}, region {number}")
        case _:
            raise OptionError(
                f"{name} is a {type(source).__name__}",
                expected="(component, shapes), (component, shapes, weight), a traced model, or a path",
            )


def _task(component: Component, shapes: Shapes, weight: float, name: str) -> Task:
    return Task(component, tuple(tuple(int(n) for n in shape) for shape in shapes), float(weight), name)


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a file.

    A ``.jsonl`` file has one object a line: ``{"component": text, "shapes": [[2048, 64], …]}``, and optionally
    ``"weight"``, ``"name"`` and ``"constants": ["in1", …]``.
    Any other file is component text, its shapes in a comment: ``# shapes: 2048x64 64x64``.

    Raises:
        OptionError: no such file, or one without shapes.
        ParseError: a line that is malformed; the message names it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} cannot be read: {error}", expected="a file of tasks") from error
    if path.suffix == ".jsonl":
        lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        return [_line(line, f"{path}, line {n}") for n, line in lines]
    return [_commented(text, path)]


def _line(line: str, place: str) -> Task:
    try:
        data = json.loads(line)
        known = {**_OPTIONAL, "name": place, **data} if isinstance(data, dict) else {}
        if known.keys() != {"component", "shapes", "name", *_OPTIONAL} or not _fits(known):
            expected = '{"component": text, "shapes": [[extent, …], …]}; also "weight": number, "name": text, '
            raise OptionError(f"{place} is no task", expected=expected + '"constants": ["in1", …]')
        task = _task(read_component(known["component"]), known["shapes"], known["weight"], known["name"])
        return replace(task, constants=tuple(known["constants"]))
    except (json.JSONDecodeError, RecursionError) as error:
        raise OptionError(f"{place} is not JSON: {error}", expected="one JSON object a line") from None
    except ILangError as error:
        raise type(error)(f"{place}: {error}") from None


_OPTIONAL: dict[str, Any] = {"weight": 1.0, "constants": []}
"""What a line may leave out."""


def _fits(data: dict[str, Any]) -> bool:
    shapes = data["shapes"]
    return (
        isinstance(data["component"], str)
        and isinstance(data["name"], str)
        and isinstance(data["weight"], int | float)
        and isinstance(data["constants"], list)
        and all(isinstance(name, str) for name in data["constants"])
        and isinstance(shapes, list)
        and all(isinstance(shape, list) and all(type(n) is int for n in shape) for shape in shapes)
    )


def shapes_comment(text: str) -> list[tuple[int, ...]] | None:
    """The shapes that a line such as ``# shapes: 2048x64 64x64`` of component text gives. Raises ParseError."""
    comment = next((line for line in text.splitlines() if line.startswith(_SHAPES)), None)
    return None if comment is None else [read_shape(word) for word in comment.removeprefix(_SHAPES).split()]


def _commented(text: str, path: Path) -> Task:
    shapes = shapes_comment(text)
    if shapes is None:
        raise OptionError(f"{path} has no line that gives shapes", expected=f"`{_SHAPES} 2048x64 64x64`")
    component = read_component(text)
    if len(shapes) != component.inputs:
        raise ShapeError(f"{path} gives {len(shapes)} shapes", expected=f"{component.inputs}, one an input")
    return _task(component, shapes, 1.0, str(path))


_SHAPES = "# shapes:"
