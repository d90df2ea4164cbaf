"""``serde formats``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from serde.command.base import Command
from serde.command.invocation import Invocation
from serde.command.parameters import printing_flags
from serde.core.report import Table
from serde.errors import OptionError

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
    "formats", cls=Command, result=_properties, examples=["serde formats", "serde formats --json"]
)
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List the formats that can be read and written."""
    run: Invocation = ctx.obj
    run.configure(options)
    rows = _list_formats()
    if run.as_json:
        run.print_result({"formats": rows})
        return
    run.terminal.table(_format_table(rows))


def _list_formats() -> list[dict[str, Any]]:
    """Return name, title, directions and suffixes of each format; a broken one has an error."""
    from serde.bridge.formats import format_facts, format_names

    rows: list[dict[str, Any]] = []
    for name in format_names():
        try:
            facts = format_facts(name)
        except OptionError as error:
            rows.append({"name": name, "error": str(error)})
            continue
        shown = ("title", "reads", "writes", "suffixes")
        rows.append({"name": name, **{key: facts[key] for key in shown}})
    return rows


def _format_table(rows: list[dict[str, Any]]) -> Table:
    """Return the rows of :func:`_list_formats` as a table."""
    return Table(
        ("format", "title", "reads", "writes", "suffixes"), tuple(_format_row(row) for row in rows)
    )


def _format_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    if "error" in row:
        return (row["name"], row["error"], "no", "no", "")
    answers = ["yes" if row[key] else "no" for key in ("reads", "writes")]
    return (row["name"], row["title"], *answers, " ".join(row["suffixes"]))
