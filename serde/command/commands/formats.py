"""``serde formats``."""

from __future__ import annotations

from typing import Any

import click

from serde.command.base import Command
from serde.command.invocation import Invocation
from serde.command.parameters import printing_flags

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    from serde.command.schemas import object_of, schema_of

    row = {
        "name": schema_of(str),
        "title": schema_of(str),
        "reads": schema_of(bool),
        "writes": schema_of(bool),
        "suffixes": schema_of(list[str]),
        "error": {"description": "Why the format of a package does not load.", "type": "string"},
    }
    rows = object_of(row, optional=[name for name in row if name != "name"])
    return {"formats": {"type": "array", "items": rows}}


@click.command(
    "formats",
    cls=Command,
    result=_properties,
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
        run.print_result({"formats": rows})
        return
    run.terminal.table(format_table(rows))
