"""Node lists as JSON, for front ends other than PyTorch's, and as a record of what was traced.

    {"format": "ilang_eq.trace", "version": 1,
     "sizes": {"s0": 16},
     "arguments": [{"name": "x", "kind": "input", "dtype": "float32", "shape": ["s0", 64]},
                   {"name": "w", "kind": "parameter", "target": "layer.weight", "dtype": "float32", "shape": [32, 64]}],
     "nodes": [{"name": "y", "op": "aten.linear.default", "args": [{"ref": "x"}, {"ref": "w"}], "kwargs": {},
                "dtype": "float32", "shape": ["s0", 32], "line": "model.py:12"}],
     "outputs": [{"ref": "y"}]}

An op is ``aten.name.overload``; ``getitem`` takes an element of a tuple, ``operator.mul`` and the like compute sizes.
An argument is a number, a string, true, false, null, a list, ``{"ref": name}``, ``{"float": "-inf"}`` (or "inf", "nan")
or a constant such as ``{"dtype": "float32"}``. An extent is a whole number, or a name in ``sizes``, which holds its
value in the example, or a product of those, such as "4*s0". ``dtype`` is "int", "tuple" or "none" for what is no
tensor. ``kind`` is "input", "parameter" or "constant"; ``target`` is the name under which the tensor is given. An input
that is no tensor has the ``value`` that it had in the example, and no other will do; null if there is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ilang_eq.errors import TraceError
from ilang_eq.tracing.nodes import SPECIAL, Argument, Node, NodeList, Ref, Special, Type, Value, checked

FORMAT = "ilang_eq.trace"
VERSION = 1

_KINDS = ("input", "parameter", "constant")
_Made = TypeVar("_Made")


def to_json(program: NodeList) -> str:
    """The text of a program, one node a line. Its parameters' values are not in it."""
    arguments = [
        {
            "name": a.name,
            "kind": a.kind,
            **({"target": a.target} if a.target else {}),
            **_type_data(a.type),
            **({} if a.value is None else {"value": _data(a.value)}),
        }
        for a in program.arguments
    ]
    nodes = [
        {
            "name": node.name,
            "op": node.op,
            "args": [_data(value) for value in node.args],
            "kwargs": {name: _data(value) for name, value in node.kwargs},
            **_type_data(node.type),
            **({"line": node.line} if node.line else {}),
        }
        for node in program.nodes
    ]
    parts = [
        f'"format": {json.dumps(FORMAT)}, "version": {VERSION}',
        f'"sizes": {json.dumps(dict(program.sizes))}',
        f'"arguments": {_lines(arguments)}',
        f'"nodes": {_lines(nodes)}',
        f'"outputs": {json.dumps([_data(value) for value in program.outputs])}',
    ]
    return "{" + ",\n ".join(parts) + "}\n"


def from_json(text: str) -> NodeList:
    """The program that ``text`` spells. Raises TraceError, which says where, for anything else."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise TraceError(f"a node list is no JSON: {error}") from None
    whole = _mapping(data, "the node list", ("format", "version", "arguments", "nodes", "outputs"))
    if (whole["format"], whole["version"]) != (FORMAT, VERSION):
        raise TraceError(f"format {whole['format']!r}, version {whole['version']!r}", expected=f"{FORMAT}, {VERSION}")
    sizes = _mapping(whole.get("sizes", {}), "sizes", ())
    for symbol, size in sizes.items():
        if type(size) is not int or size < 1:
            raise TraceError(f"sizes[{symbol!r}] is {size!r}", expected="a whole number from 1")
    return checked(
        NodeList(
            tuple(_each(whole["arguments"], "arguments", _argument)),
            tuple(_each(whole["nodes"], "nodes", _node)),
            tuple(_each(whole["outputs"], "outputs", _value)),
            sizes,
        )
    )


def _lines(items: Sequence[Any]) -> str:
    return "[" + ",\n  ".join(json.dumps(item) for item in items) + "]"


def _type_data(of: Type) -> dict[str, Any]:
    return {"dtype": of.dtype, "shape": list(of.shape)}


def _data(value: Value) -> Any:
    match value:
        case Ref(name):
            return {"ref": name}
        case Special(kind, name):
            return {kind: name}
        case tuple():
            return [_data(item) for item in value]
        case float() if not math.isfinite(value):
            return {"float": str(value)}
        case _:
            return value


def _argument(data: object, place: str) -> Argument:
    found = _mapping(data, place, ("name", "kind", "dtype", "shape"))
    if found["kind"] not in _KINDS:
        raise TraceError(f"{place} has the kind {found['kind']!r}", legal=_KINDS)
    value = _value(found.get("value"), f"{place}.value")
    if not (value is None or isinstance(value, bool | int | float | str)):
        raise TraceError(f"{place}.value is {found['value']!r}", expected="a number, text or null")
    target = str(found.get("target", ""))
    return Argument(_text(found, "name", place), found["kind"], _type(found, place), target, value)


def _node(data: object, place: str) -> Node:
    found = _mapping(data, place, ("name", "op", "args", "dtype", "shape"))
    kwargs = _mapping(found.get("kwargs", {}), f"{place}.kwargs", ())
    return Node(
        _text(found, "name", place),
        _text(found, "op", place),
        tuple(_each(found["args"], f"{place}.args", _value)),
        tuple((name, _value(value, f"{place}.kwargs[{name!r}]")) for name, value in kwargs.items()),
        _type(found, place),
        str(found.get("line", "")),
    )


def _type(found: Mapping[str, Any], place: str) -> Type:
    return Type(_text(found, "dtype", place), tuple(_each(found["shape"], f"{place}.shape", _size)))


def _size(data: object, place: str) -> int | str:
    if isinstance(data, str) or (type(data) is int and data >= 0):
        return data
    raise TraceError(f"{place} is {data!r}", expected="a whole number from 0, or text such as s0")


def _value(data: object, place: str) -> Value:
    match data:
        case None | bool() | int() | float() | str():
            return data
        case list():
            return tuple(_each(data, place, _value))
        case {"ref": str(name), **rest} if not rest:
            return Ref(name)
        case {"float": "inf" | "-inf" | "nan" as number, **rest} if not rest:
            return float(number)
        case dict() if len(data) == 1 and set(data) <= set(SPECIAL) and all(isinstance(v, str) for v in data.values()):
            ((kind, name),) = data.items()
            return Special(kind, name)
        case _:
            legal = ('{"ref": name}', '{"float": "inf"}', *(f'{{"{kind}": name}}' for kind in SPECIAL))
            raise TraceError(f"{place} is {data!r}", expected="a number, text, a list or one of these", legal=legal)


def _each(data: object, place: str, read: Callable[[object, str], _Made]) -> list[_Made]:
    if not isinstance(data, list):
        raise TraceError(f"{place} is {data!r}", expected="a list")
    return [read(item, f"{place}[{n}]") for n, item in enumerate(data)]


def _mapping(data: object, place: str, needed: Sequence[str]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TraceError(f"{place} is {data!r}", expected="an object")
    for name in needed:
        if name not in data:
            raise TraceError(f"{place} has no {name!r}", expected="an object with " + ", ".join(needed))
    return data


def _text(found: Mapping[str, Any], name: str, place: str) -> str:
    if not isinstance(found[name], str) or not found[name]:
        raise TraceError(f"{place}.{name} is {found[name]!r}", expected="text")
    return found[name]
