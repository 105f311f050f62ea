"""Requests and replies as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ilang_eq import errors
from ilang_eq.errors import ILangError
from ilang_eq.lang.reading import read_component
from ilang_eq.request import Request, checked_request
from ilang_eq.rewrites.rules import Rule, RuleSet


def request_as_json(request: Request) -> dict[str, Any]:
    """``request`` as plain lists, dicts, strings and numbers."""
    return {
        "component": str(request.given),
        "shapes": request.shapes,
        "target": request.target,
        "threads": request.threads,
        "effort": request.effort,
        "budget_s": request.budget_s,
        "rules": asdict(request.rules),
        "seed": request.seed,
        "constants": [f"in{k}" for k in request.constants],
        "precision": request.precision,
    }


def read_request(data: dict[str, Any]) -> Request:
    """The request that ``request_as_json`` made ``data`` of."""
    rules = RuleSet(data["rules"]["name"], tuple(Rule(**rule) for rule in data["rules"]["rules"]))
    names = ("target", "threads", "effort", "budget_s", "seed", "constants", "precision")
    options = {name: data[name] for name in names}
    return checked_request(read_component(data["component"]), data["shapes"], rules=rules, **options)


def error_as_json(error: BaseException) -> dict[str, Any]:
    """``error`` by the name of its class, and what it says."""
    said = str(error) if isinstance(error, ILangError) else f"{type(error).__name__}: {error}"
    return {"kind": type(error).__name__, "message": said}


def read_error(data: dict[str, Any]) -> ILangError:
    """The error that ``error_as_json`` made ``data`` of; one that is not of this package as an ``ILangError``."""
    kind = getattr(errors, data["kind"], ILangError)
    return kind(data["message"])
