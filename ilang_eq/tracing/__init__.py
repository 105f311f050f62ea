"""PyTorch models as components: regions of supported calls, optimised once each, and the rest as PyTorch runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ilang_eq.errors import TraceError

if TYPE_CHECKING:
    from ilang_eq.tracing.traced import Traced

__all__ = ["from_json", "trace"]


def trace(
    module: Callable[..., Any],
    example_inputs: Sequence[Any] | Mapping[str, Any],
    strict: bool = False,
    *,
    threads: int | None = None,
    effort: str = "model",
    dynamic_shapes: Any = None,
) -> Traced:
    """Trace a PyTorch module or function, and cut it into regions that are components.

    Args:
        module: what to trace, in evaluation mode; no gradients are recorded.
        example_inputs: arguments to trace it with, by position, or by name if it is a mapping. Their shapes are kept.
        strict: refuse a model of which a call is left to PyTorch, but for those that make or read whole numbers or
            truth values, such as embeddings: they are PyTorch's by design.
        threads: how many threads a kernel may use; all cores if None.
        effort: "model", or "measure" to time the best few schedules of every region, one region after another.
        dynamic_shapes: which extents may be others in later calls, as ``torch.export`` takes it; of a function, a tuple
            with an entry for each input: ``({1: torch.export.Dim("length")},)``.

    Returns:
        A function like ``module``, with ``regions``, ``coverage`` and ``to_json()``.

    Raises:
        TraceError: PyTorch is missing or cannot export the model; if ``strict``, a call that stays with PyTorch.
        OptionError: another effort.
    """
    _require_torch()
    from ilang_eq.tracing.capture import capture
    from ilang_eq.tracing.kernels import Kernels
    from ilang_eq.tracing.traced import Traced

    named = isinstance(example_inputs, Mapping)
    args, kwargs = ((), example_inputs) if named else (tuple(example_inputs), {})
    traced = Traced(capture(module, args, kwargs, dynamic_shapes), Kernels(threads, effort))
    if strict and traced.coverage.refused:
        raise TraceError(f"strict, and these calls stay with PyTorch:\n{traced.coverage}")
    return traced


def from_json(text: str, tensors: Mapping[str, Any] | None = None, *, threads: int | None = None) -> Traced:
    """A model from a node list as JSON, which any front end may write (``json_text.py`` has the schema).

    Args:
        text: the node list.
        tensors: torch tensors for its parameters and constants, by ``target``: a module's ``state_dict()`` will do.
        threads: how many threads a kernel may use; all cores if None.

    Raises:
        TraceError: PyTorch is missing, the text is no node list, or a tensor is missing or of the wrong type.
    """
    _require_torch()
    from ilang_eq.tracing.traced import traced_from_json

    return traced_from_json(text, tensors or {}, threads)


def _require_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise TraceError("tracing needs PyTorch", expected="pip install 'ilang-eq[torch]'")
