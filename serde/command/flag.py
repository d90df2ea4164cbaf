"""A flag of the command line that has other spellings, and a default of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

__all__ = ["FORMAT_THEME", "READING_THEME", "Flag"]

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
