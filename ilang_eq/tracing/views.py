"""ATen calls that move nothing: other patterns over the same values. An entry builds the view of the call's result."""

from __future__ import annotations

from ilang_eq.tracing.build import Builder, Inexpressible, View
from ilang_eq.tracing.call import Build, Call


def _same(_: Builder, call: Call) -> View:
    return call.view(0, "self")


def _cast(_: Builder, call: Call) -> View:
    """A conversion to float32, of float32 or of truth values, which are read as 1 and 0."""
    view = call.view(0, "self")
    if call.node.type.dtype not in (call.type(0, "self").dtype, "float32"):
        raise Inexpressible(f"a conversion to {call.node.type.dtype}")
    return view


def _dropout(_: Builder, call: Call) -> View:
    if call.flag(2, "train") and call.number(1, "p") > 0:
        raise Inexpressible("dropout while training")
    return call.view(0, "input")


def _first(_: Builder, call: Call) -> View:
    """The first result of a call that has several; the tables compute no other."""
    if call.integer(1, "index") != 0:
        raise Inexpressible("not the first of several results")
    return call.view(0, "self")


def _reshape(b: Builder, call: Call) -> View:
    return b.reshape(call.view(0, "self"), call.extents)


def _permute(b: Builder, call: Call) -> View:
    view = call.view(0, "self")
    return b.permute(view, [d % len(view.dims) for d in call.dims(1, "dims")])


def _swapped(b: Builder, view: View, first: int, second: int) -> View:
    order = list(range(len(view.dims)))
    if order:
        order[first], order[second] = order[second], order[first]
    return b.permute(view, order)


def _transpose(b: Builder, call: Call) -> View:
    return _swapped(b, call.view(0, "self"), call.integer(1, "dim0"), call.integer(2, "dim1"))


def _t(b: Builder, call: Call) -> View:
    view = call.view(0, "self")
    return _swapped(b, view, 0, 1) if len(view.dims) == 2 else view


def _unsqueeze(b: Builder, call: Call) -> View:
    return b.unsqueeze(call.view(0, "self"), call.integer(1, "dim"))


def _squeeze(b: Builder, call: Call) -> View:
    view = call.view(0, "self")
    rank = len(view.dims)
    chosen = {d % rank for d in call.dims(1, "dim")} if rank else set[int]()
    return View(view.source, view.axes, tuple(dim for d, dim in enumerate(view.dims) if dim or d not in chosen))


def _expand(b: Builder, call: Call) -> View:
    return b.expand(call.view(0, "self"), call.extents)


VIEWS: dict[str, Build] = {
    "getitem": _first,
    "aten.alias.default": _same,
    "aten.clone.default": _same,
    "aten.contiguous.default": _same,
    "aten.detach.default": _same,
    "aten.lift_fresh_copy.default": _same,
    "aten._to_copy.default": _cast,
    "aten.to.dtype": _cast,
    "aten.to.dtype_layout": _cast,
    "aten.dropout.default": _dropout,
    "aten.view.default": _reshape,
    "aten._unsafe_view.default": _reshape,
    "aten.reshape.default": _reshape,
    "aten.flatten.using_ints": _reshape,
    "aten.unflatten.int": _reshape,
    "aten.permute.default": _permute,
    "aten.transpose.int": _transpose,
    "aten.t.default": _t,
    "aten.unsqueeze.default": _unsqueeze,
    "aten.squeeze.default": _squeeze,
    "aten.squeeze.dim": _squeeze,
    "aten.squeeze.dims": _squeeze,
    "aten.expand.default": _expand,
}
"""ATen ops that are patterns, by name."""


def _filled(value: float) -> Build:
    return lambda b, call: b.number(value, call.extents)


NUMBERS: dict[str, Build] = {
    "aten.full.default": lambda b, call: b.number(call.number(1, "fill_value"), call.extents),
    "aten.full_like.default": lambda b, call: b.number(call.number(1, "fill_value"), call.extents),
    "aten.scalar_tensor.default": lambda b, call: b.number(call.number(0, "s"), call.extents),
    "aten.zeros.default": _filled(0.0),
    "aten.zeros_like.default": _filled(0.0),
    "aten.ones.default": _filled(1.0),
    "aten.ones_like.default": _filled(1.0),
}
"""ATen ops that make a tensor of one number, by name: literals, where they are read."""
