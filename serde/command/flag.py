"""A flag of the command line that has other spellings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

__all__ = ["Flag"]


class Flag(click.Option):
    """A flag with other spellings, such as the keyword's, which its help does not show."""

    def __init__(self, *args: Any, aliases: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._aliases = [each for each in aliases if each not in self.opts]

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser know all spellings."""
        shown = self.opts
        self.opts = [*shown, *self._aliases]
        super().add_to_parser(parser, ctx)
        self.opts = shown
