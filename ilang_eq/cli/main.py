"""``ilang-eq``, which is ``python -m ilang_eq``: finds schedules for components of 𝚒, runs, times and keeps them."""

from __future__ import annotations

import argparse
import difflib
import io
import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ilang_eq.cli import batch, database, kernels, machine
from ilang_eq.cli.command import Answer, Command
from ilang_eq.database.version import package_version
from ilang_eq.errors import ILangError

COMMANDS: tuple[Command, ...] = (*kernels.COMMANDS, *batch.COMMANDS, *database.COMMANDS, *machine.COMMANDS)

_FAULT = 2
_INTERRUPTED = 130
_MANY = 8
"""Legal values beyond this number are not listed where one is close to what was written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 1 for a finding, 2 for a mistake, 130 for Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal without 𝚒 and µ is told all the rest
            stream.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    try:
        return _said(options.run(options), options.json)
    except ILangError as error:
        return _failed(error, options.json)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # whoever reads has seen enough; what is left must not fail again when Python flushes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _said(answer: Answer, as_json: bool) -> int:
    print(_json(answer.data) if as_json else answer.text, flush=True)
    return answer.status


def _json(data: Any) -> str:
    return json.dumps(_finite(data), indent=1, ensure_ascii=False, allow_nan=False)


def _finite(data: Any) -> Any:
    """``data`` with null for numbers that JSON does not have."""
    match data:
        case Mapping():
            return {name: _finite(value) for name, value in data.items()}
        case list() | tuple():
            return [_finite(value) for value in data]
        case float() if not math.isfinite(data):
            return None
        case _:
            return data


def _failed(error: ILangError, as_json: bool) -> int:
    near = _meant(error)
    if as_json:
        told = ("message", "source", "position", "expected", "legal")
        data = {"kind": type(error).__name__} | {name: getattr(error, name) for name in told} | {"near": near}
        print(_json({"error": data}))
        return _FAULT
    if near and len(error.legal) > _MANY:
        error = type(error)(
            error.message, source=error.source, position=error.position, expected=error.expected, legal=tuple(near)
        )
    print(error, file=sys.stderr)
    if near:
        print(f"did you mean {' or '.join(near)}?", file=sys.stderr)
    return _FAULT


def _meant(error: ILangError) -> list[str]:
    """The legal names that are close to the one at fault, which the message quotes."""
    quoted = re.search(r"'([^']+)'", error.message)
    return difflib.get_close_matches(quoted[1], error.legal, n=2) if quoted else []


class _Parser(argparse.ArgumentParser):
    """argparse, with a suggestion where a name is misspelt. ``options`` are those of all commands."""

    options: frozenset[str] = frozenset()

    def error(self, message: str) -> NoReturn:
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            legal = re.findall(r"[\w-]+", found[2])
            near = difflib.get_close_matches(found[1], legal, n=1)
            message += f"\ndid you mean {near[0]}?" if near else ""
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        if unknown:
            near = difflib.get_close_matches(unknown[1], sorted(self.options), n=1)
            message += f"\ndid you mean {near[0]}?" if near else ""
        if re.search("unrecognized arguments: [^-]|is no shape|arguments are required", message):
            message += "\nfiles and components come before options"
        super().error(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ilang-eq", description=__doc__)
    parser.add_argument("--version", action="version", version=f"%(prog)s {package_version()}")
    commands = parser.add_subparsers(required=True, metavar="command", parser_class=_Parser)
    for command in COMMANDS:
        own = commands.add_parser(command.name, help=command.help, description=command.help)
        command.arguments(own)
        own.add_argument("--json", action="store_true", help="print JSON")
        own.set_defaults(run=command.run)
        parser.options |= _names(own)
    return parser


def _names(parser: argparse.ArgumentParser) -> frozenset[str]:
    """The long options of ``parser``, as its help shows them."""
    return frozenset(re.findall(r"--[a-z][\w-]*", parser.format_help()))
