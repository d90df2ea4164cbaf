"""What every command has besides its flags: examples in its help, and the names that flags take."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import click

from serde.command.flag import FORMAT_THEME

__all__ = ["WHOLE_HELP", "Command", "help_all_option"]

_MARGIN = 4
_NAMED = 2
"""Flags of a theme that the short help names."""
_HELP_ALL = "--help-all"
WHOLE_HELP = "serde.whole-help"
"""What in a context's ``meta`` asks for the help with all flags."""


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; of a mistyped flag, tell the one that is most like it."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            near = get_close_matches(error.option_name, error.possibilities or (), 1)
            raise click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags: those without a theme, then, if all are asked for, each theme's."""
        params = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        has_themes = any(_HELP_ALL in each.opts for each in params)
        themes: dict[str, list[tuple[str, str]]] = {}
        for param in params:
            theme = getattr(param, "theme", "") if has_themes else ""
            if (record := param.get_help_record(ctx)) is not None:
                themes.setdefault(theme or "Options", []).append(record)
        if has_themes and not ctx.meta.get(WHOLE_HELP):
            own = themes.pop("Options")
            themes = {"Options": own, "More, which --help-all tells of": _in_short(themes)}
        for title, records in themes.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lossy steps, where the command takes their names, and the examples."""
        if ctx.meta.get(WHOLE_HELP) and any(param.name == "allow" for param in self.params):
            from serde.core.lossy import lossy_steps

            with formatter.section("Lossy steps that --allow takes"):
                formatter.write_dl([(name, step.loses) for name, step in lossy_steps().items()])
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(_indented(line, formatter.width))


def help_all_option() -> click.Option:
    """Return the flag that prints the help of a command with all flags."""

    def show(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
        if asked and not ctx.resilient_parsing:
            ctx.meta[WHOLE_HELP] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return click.Option(
        [_HELP_ALL], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Show all options, by what they are for, and exit.",
    )  # fmt: skip


def _in_short(themes: Mapping[str, Sequence[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Return each theme with the names of some flags; formats together."""
    formats = [title for title in themes if title.startswith(FORMAT_THEME)]
    named = [(each, _first_names(themes[each])) for each in themes if each not in formats]
    if formats:
        named.insert(0, ("Formats", ", ".join(each[len(FORMAT_THEME) :] for each in formats)))
    return named


def _first_names(records: Sequence[tuple[str, str]]) -> str:
    names = [record[0].split()[0].rstrip(",") for record in records]
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


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
