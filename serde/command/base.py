"""What every command has besides its flags: examples in its help, and the names that flags take."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

__all__ = ["Command"]

_MARGIN = 4


class Command(click.Command):
    """A command whose help ends with examples, and which says what it prints as JSON.

    Args:
        examples: Whole command lines, as somebody would type them.
        result: What its JSON object holds besides the outcome, as a function that returns schemas
            of properties; the report if left out. See :mod:`serde.command.schemas`.
        codes: Exit codes that no other command has.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        result: Callable[[], Mapping[str, dict[str, Any]]] | None = None,
        codes: Iterable[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.result = result
        self.codes = tuple(codes)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lossy steps, where the command takes their names, and the examples."""
        if any(param.name == "allow" for param in self.params):
            from serde.lossy import lossy_steps

            with formatter.section("Lossy steps that --allow takes"):
                formatter.write_dl([(name, step.loses) for name, step in lossy_steps().items()])
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(_indented(line, formatter.width))


def _indented(line: str, width: int) -> str:
    """Return a command line as lines of help that a shell takes as they are."""
    lines = [""]
    for word in _words(line):
        if lines[-1] and len(lines[-1]) + len(word) + 3 > width - _MARGIN:
            lines.append("  ")
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return "  " + " \\\n  ".join(lines) + "\n"


def _words(line: str) -> Iterator[str]:
    """Yield the parts of a command line between which it may be broken: flags with their values."""
    parts = shlex.split(line, posix=False)
    while parts:
        word = parts.pop(0)
        while word.startswith("-") and parts and not parts[0].startswith("-"):
            word += f" {parts.pop(0)}"
        yield word
