"""``serde formats``."""

from __future__ import annotations

from typing import Any

import click

from serde.command.base import Command
from serde.command.invocation import Invocation
from serde.command.parameters import printing_flags
from serde.command.render import as_json

__all__ = ["command"]


@click.command(
    "formats",
    cls=Command,
    examples=[
        "serde formats",
        "serde formats --json",
    ],
)
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List the formats that can be read and written."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.inspection import format_table, list_formats

    rows = list_formats()
    if run.as_json:
        run.terminal.raw(as_json({"formats": rows}))
        return
    run.terminal.table(format_table(rows))
