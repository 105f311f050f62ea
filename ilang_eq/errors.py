"""Every error this package raises on purpose.

    ILangError                    anything wrong with a program, its schedule, its data or its machine
    ├── ParseError                the text is not a sentence of 𝚒
    ├── CheckError                a sentence, but not a well-formed expression
    ├── WiringError               components whose wires cannot be joined
    ├── ShapeError                ranks or extents that contradict each other
    ├── ScheduleError             a legal expression with a schedule that cannot be lowered
    ├── ArrayError                arrays a kernel cannot be called with
    ├── RuleError                 an unknown rule or rule set, or nothing to run rules with
    ├── OptionError               an option of optimize() or compile() outside its range
    ├── DatabaseError             results that cannot be read, kept or imported
    ├── TraceError                a model that cannot be traced, or a node list that is none
    ├── DeviceError               no device to run a kernel on, or not a fit one, or its memory is full
    └── BuildError                a compiler is missing or refused a kernel

An error about text carries the source, the offset of the offending character, what was expected there and
the legal alternatives; its message shows them with a caret.
"""

from __future__ import annotations


class ILangError(Exception):
    """Base of the hierarchy.

    Args:
        message: what is wrong, in one sentence.
        source: the 𝚒 text at fault, if there is one.
        position: zero-based offset into ``source`` of the offending character.
        expected: what would have been right there.
        legal: the legal alternatives, each as text a user can paste.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        position: int | None = None,
        expected: str | None = None,
        legal: tuple[str, ...] = (),
    ) -> None:
        self.message = message
        self.source = source
        self.position = position
        self.expected = expected
        self.legal = legal
        super().__init__(self._render())

    def _render(self) -> str:
        lines = [self.message]
        if self.source is not None:
            lines.append("  " + _one_line(self.source))
            if self.position is not None:
                lines.append("  " + " " * self.position + "^")
        if self.expected:
            lines.append(f"expected: {self.expected}")
        if self.legal:
            lines.append("legal: " + ", ".join(self.legal))
        return "\n".join(lines)


def _one_line(source: str) -> str:
    """White space as single blanks, so that the caret stays under its character."""
    return "".join(" " if c.isspace() else c for c in source)


class ParseError(ILangError):
    """The text is not a sentence of 𝚒."""


class CheckError(ILangError):
    """A sentence, but not a well-formed expression."""


class WiringError(ILangError):
    """Components whose wires cannot be joined."""


class ShapeError(ILangError):
    """Ranks or extents that contradict each other."""


class ScheduleError(ILangError):
    """A legal expression with a schedule that cannot be lowered; ``legal`` lists the sites that can."""


class ArrayError(ILangError):
    """Arrays a kernel cannot be called with."""


class RuleError(ILangError):
    """An unknown rule or rule set."""


class OptionError(ILangError):
    """An option outside its range."""


class DatabaseError(ILangError):
    """Results that cannot be read, kept or imported."""


class TraceError(ILangError):
    """A model that cannot be traced, or not as strictly as asked; or a node list that breaks its invariants."""


class DeviceError(ILangError):
    """There is no device to run a kernel on, or it is not fit for it, or its memory is full."""


class BuildError(ILangError):
    """A compiler (of C, or NVRTC) is missing or refused a kernel."""
