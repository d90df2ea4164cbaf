"""A flag with other spellings and a default of its own, and what a shell completes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import click
from click.shell_completion import CompletionItem

__all__ = [
    "FORMAT_THEME", "READING_THEME", "Flag", "complete_formats", "complete_limits",
    "complete_lossy_steps", "complete_paths",
]  # fmt: skip

READING_THEME = "Reading any format"
FORMAT_THEME = "Format "
"""What is in front of the name of a format where the options are its own."""


class Flag(click.Option):
    """A flag with other spellings, such as the keyword's, which its help does not show.

    A flag that is made of an option has no default, so that what is given can be told from what
    is not; its help tells the option's.

    Attributes:
        theme: What it is for, by which the help groups it; empty for what everyone needs.
    """

    theme = ""

    def __init__(self, *args: Any, aliases: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.aliases = [each for each in aliases if each not in self.opts]
        self._defaults: dict[str, str] = {}

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser know all spellings."""
        shown = self.opts
        self.opts = [*shown, *self.aliases]
        super().add_to_parser(parser, ctx)
        self.opts = shown

    def show_default_of(self, owner: str, value: Any) -> None:
        """Tell in the help what an option is where it is left out.

        Args:
            owner: The format whose option it is, empty for none.
            value: Its default; nothing is told of one that stands for none.
        """
        if isinstance(value, (int, float, str)) and not isinstance(value, bool) and value != "":
            self._defaults[owner] = str(value)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the spellings and the help, with the default."""
        record = super().get_help_record(ctx)
        if record is None or not self._defaults:
            return record
        told = {str(value) for value in self._defaults.values()}
        named = [f"{value} ({who})" for who, value in self._defaults.items()]
        return record[0], f"{record[1]}  [default: {', '.join(told if len(told) == 1 else named)}]"


Items = list[CompletionItem[str]]


def _starting(pairs: Iterable[tuple[str, str]], incomplete: str) -> Items:
    return [CompletionItem(each, help=text) for each, text in pairs if each.startswith(incomplete)]


def complete_paths(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Leave a path to the shell."""
    return [CompletionItem(incomplete, type="file")]


def complete_formats(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return the names of formats."""
    from serde.bridge.formats import format_names

    return _starting(((name, "") for name in format_names()), incomplete)


def complete_lossy_steps(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return the names of lossy steps, with what they lose."""
    from serde.core.lossy import lossy_steps

    return _starting(((step.name, step.loses) for step in lossy_steps().values()), incomplete)


def complete_limits(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return the limits with what they are at first."""
    from serde.core.limits import Limits

    first = Limits()
    pairs = ((f"{item.name}={getattr(first, item.name)}", "") for item in fields(Limits))
    return _starting(pairs, incomplete)
