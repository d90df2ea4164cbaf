"""``serde ops``."""

from __future__ import annotations

from typing import Any

import click

from serde.command.base import Command
from serde.command.flag import complete_formats
from serde.command.invocation import Invocation
from serde.command.parameters import printing_flags

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    from serde.command.schemas import schema_of

    return {"operators": schema_of(dict[str, list[tuple[str, str]]])}


@click.command(
    "ops",
    cls=Command,
    result=_properties,
    examples=["serde ops --format onnx", "serde ops serde.attention", "serde ops --markdown"],
)
@click.argument("operator", required=False, metavar="[OPERATOR]")
@click.option(
    "--format", "format_name", metavar="NAME", shell_complete=complete_formats,
    help="One format, or relay.",
)  # fmt: skip
@click.option("--markdown", is_flag=True, help="Print Markdown tables.")
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List the operators that are converted, or what each format takes of one."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.inspection import list_operators, operator_tables
    from serde.command.render import markdown_document

    found = list_operators(options["format_name"], options["operator"])
    if run.as_json:
        run.print_result({"operators": found})
        return
    if options["markdown"]:
        run.terminal.raw(markdown_document("Operators", operator_tables(found)))
        return
    for table in operator_tables(found):
        run.terminal.table(table)
