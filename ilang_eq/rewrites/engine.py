"""The one module that knows egglog: run program text, run rules within limits, read tables back.

egglog loads when the first ``Engine`` is made, and only its extension module. One rayon thread keeps results the same
byte for byte between runs. A command that egglog refuses may leave its e-graph half changed: the
engine then raises ``RuleError`` and must be dropped.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, Literal

from ilang_eq.errors import RuleError
from ilang_eq.rewrites.rules import Rule

StopReason = Literal["saturated", "nodes", "time", "iterations"]

Cell = Any
"""A table cell read back: int, float, str, bool, a frozenset or tuple of those, or an e-class (hashable, ordered)."""

Row = tuple[Cell, ...]

_BINDINGS = "egglog.bindings"
_LOGGERS = ("egglog", "egglog_bridge", "egglog_core_relations")

_REPORTED_SECOND = 1000.0
"""egglog 13.2 hands its milliseconds over as if they were microseconds; so rule times have a grain of 1 ms."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop a run: rows in the watched tables, seconds of wall clock, iterations."""

    nodes: int = 20_000
    seconds: float = 10.0
    iterations: int = 1_000


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did. ``matches`` and ``rule_seconds`` are by rule name, in order of the rules."""

    stop_reason: StopReason
    iterations: int
    seconds: float
    matches: dict[str, int]
    rule_seconds: dict[str, float]


@dataclass(slots=True)
class _Tally:
    matches: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Engine:
    """One e-graph. Not to be shared between threads.

    Args:
        watched: the tables whose rows count against ``Limits.nodes``.
    """

    def __init__(self, watched: Iterable[str] = ()) -> None:
        self._egglog = load_egglog()
        self._egraph = self._egglog.EGraph()
        self._watched = frozenset(watched)
        self._containers: dict[str, tuple[str, str]] = {}
        self._rules: list[str] = []

    def execute(self, text: str) -> list[Any]:
        """Run every command of ``text``, each parsed on its own (parsing is quadratic in the length of a text).

        Raises:
            RuleError: egglog refuses a command, or a merge or an action panics.
        """
        return [output for command in split_commands(text) for output in self._run(command, "program")]

    def add_rules(self, rules: Iterable[Rule]) -> None:
        """Declare each rule in the ruleset of its phase, which must exist.

        Raises:
            RuleError: egglog refuses a rule; the message names it.
        """
        for rule in rules:
            self._rules.append(rule.name)
            for number, text in enumerate(split_commands(rule.text)):
                for command in self._parse(text, f"rule {rule.name!r}"):
                    self._submit([self._filed(command, rule.phase, f"{rule.name}#{number}")], f"rule {rule.name!r}")

    def ruleset(self, name: str) -> None:
        """Declare an empty ruleset."""
        self.execute(f"(ruleset {name})")

    def run(self, ruleset: str, limits: Limits, analysis: str | None = None) -> Run:
        """Run ``ruleset`` one iteration at a time, at least once, until nothing changes or a limit is passed.

        Args:
            analysis: a ruleset to saturate before the first iteration and after each.

        Raises:
            RuleError: a merge or an action panics.
        """
        start = time.perf_counter()
        tally = _Tally()
        stop: StopReason | None = None
        done = 0
        self.saturate(analysis)
        while stop is None:
            changed = self._step(f"(run-schedule (run {ruleset}))", tally)
            self.saturate(analysis)
            done += 1
            if not changed:
                stop = "saturated"
            elif self.size() > limits.nodes:
                stop = "nodes"
            elif time.perf_counter() - start > limits.seconds:
                stop = "time"
            elif done >= limits.iterations:
                stop = "iterations"
        matches = {name: tally.matches[name] for name in self._rules if name in tally.matches}
        spent = {name: tally.seconds[name] for name in self._rules if name in tally.seconds}
        return Run(stop, done, time.perf_counter() - start, matches, spent)

    def saturate(self, ruleset: str | None) -> None:
        """Run ``ruleset`` until nothing changes, without limits: for analyses, which what follows needs complete."""
        if ruleset is not None:
            self._run(f"(run-schedule (saturate (run {ruleset})))", "run")

    def sizes(self) -> dict[str, int]:
        """Rows in each table."""
        (report,) = self.execute("(print-size)")
        return dict(report.sizes)

    def size(self) -> int:
        """Rows in the watched tables."""
        return sum(rows for name, rows in self.sizes().items() if name in self._watched)

    def tables(self, names: Iterable[str]) -> dict[str, list[Row]]:
        """The rows of some tables, inputs first, then the output (relations have none); subsumed rows are left out."""
        frozen = self._egraph.freeze().functions
        return {name: list(self._rows(frozen[name])) for name in names}

    def _step(self, schedule: str, tally: _Tally) -> bool:
        (output,) = self._run(schedule, "run")
        report = output.report
        for name, count in report.num_matches_per_rule.items():
            rule = name.partition("#")[0]
            tally.matches[rule] = tally.matches.get(rule, 0) + count
        for name, spent in report.search_and_apply_time_per_rule.items():
            rule = name.partition("#")[0]
            tally.seconds[rule] = tally.seconds.get(rule, 0.0) + _REPORTED_SECOND * spent.total_seconds()
        return report.updated

    def _run(self, text: str, what: str) -> list[Any]:
        return self._submit(self._parse(text, what), what)

    def _parse(self, text: str, what: str) -> list[Any]:
        try:
            commands = self._egraph.parse_program(text)
        except self._egglog.EggSmolError as error:
            raise RuleError(f"egglog cannot parse {what}: {error}") from error
        for command in commands:
            if isinstance(command, self._egglog.Sort) and command.presort_and_args is not None:
                kind, (element,) = command.presort_and_args
                self._containers[command.name] = (kind, element.name)
        return commands

    def _submit(self, commands: list[Any], what: str) -> list[Any]:
        try:
            return self._egraph.run_program(*commands)
        except self._egglog.EggSmolError as error:
            raise RuleError(f"egglog refused {what}: {error}") from error

    def _filed(self, command: Any, ruleset: str, name: str) -> Any:
        """``command`` under ``ruleset`` and ``name`` if it is a rule, else as it is."""
        egglog = self._egglog
        match command:
            case egglog.RuleCommand():
                rule = command.rule
                return egglog.RuleCommand(egglog.Rule(rule.span, rule.head, rule.body, name, ruleset))
            case egglog.RewriteCommand():
                return egglog.RewriteCommand(ruleset, self._renamed(command.rewrite, name), command.subsume)
            case egglog.BiRewriteCommand():
                return egglog.BiRewriteCommand(ruleset, self._renamed(command.rewrite, name))
            case _:
                return command

    def _renamed(self, rewrite: Any, name: str) -> Any:
        return self._egglog.Rewrite(rewrite.span, rewrite.lhs, rewrite.rhs, rewrite.conditions, name)

    def _rows(self, function: Any) -> Iterator[Row]:
        relation = function.output_sort.startswith("@")
        sorts = function.input_sorts if relation else (*function.input_sorts, function.output_sort)
        readers = [self._reader(sort) for sort in sorts]
        for row in function.rows:
            if not row.subsumed:
                values = row.inputs if relation else (*row.inputs, row.output)
                yield tuple(read(value) for read, value in zip(readers, values, strict=True))

    def _reader(self, sort: str) -> Callable[[Any], Cell]:
        """What turns a value of ``sort`` into Python; an e-class stays as it is. Containers repeat: keep them."""
        simple: dict[str, Callable[[Any], Cell]] = {
            "i64": self._egraph.value_to_i64,
            "f64": self._egraph.value_to_f64,
            "String": self._egraph.value_to_string,
            "bool": self._egraph.value_to_bool,
        }
        if sort not in self._containers:
            return simple.get(sort, lambda value: value)
        kind, element = self._containers[sort]
        read = self._reader(element)
        if kind == "Set":
            return lru_cache(maxsize=None)(lambda value: frozenset(map(read, self._egraph.value_to_set(value))))
        return lru_cache(maxsize=None)(lambda value: tuple(map(read, self._egraph.value_to_vec(value))))


@lru_cache(maxsize=1)
def load_egglog() -> ModuleType:
    """The extension module ``egglog.bindings`` by itself: its package takes ten times as long to import.

    It is not left in ``sys.modules``, so that ``import egglog`` still does all it should; the two share one extension.
    Reports of every command, which egglog logs as INFO, are left out unless someone sets the level of its loggers.

    Raises:
        RuleError: egglog cannot be imported.
    """
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    for logger in map(logging.getLogger, _LOGGERS):
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)
    package = importlib.util.find_spec("egglog")
    places = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec(_BINDINGS, places)
    if _BINDINGS in sys.modules or spec is None or spec.loader is None:
        try:
            return importlib.import_module(_BINDINGS)
        except ImportError as error:
            raise RuleError(f"the search needs egglog: {error}", expected="pip install 'egglog~=13.2'") from None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(_BINDINGS, None)
    return module


_TOKEN = re.compile(r'"[^"]*"|;[^\n]*|[()]|[^\s()";]+|"')


def split_commands(text: str) -> list[str]:
    """The top-level s-expressions of an egglog text, comments between them left out.

    Raises:
        RuleError: parentheses or quotes do not match, or something stands outside them.
    """
    commands: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "(":
                start = token.start() if depth == 0 else start
                depth += 1
            case ")" if depth == 1:
                commands.append(text[start : token.end()])
                depth = 0
            case ")" if depth > 1:
                depth -= 1
            case symbol if symbol in (")", '"') or (depth == 0 and not symbol.startswith(";")):
                raise RuleError(f"egglog text has a stray {symbol} at offset {token.start()}")
            case _:
                pass
    if depth:
        raise RuleError(f"egglog text ends inside the command at offset {start}")
    return commands
