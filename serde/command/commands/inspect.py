"""``serde inspect``."""

from __future__ import annotations

from typing import Any

import click

from serde.command.flag import complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import (
    FormatCommand,
    one_source,
    printing_flags,
    reading,
    reading_flags,
)

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    from collections import Counter

    from serde.bridge.summary import ModelSummary
    from serde.command.inspection import ListedValue
    from serde.command.schemas import properties_of, schema_of

    return {
        "format": schema_of(str),
        "title": schema_of(str),
        **properties_of(ModelSummary),
        "nodes": schema_of(int),
        "operators": schema_of(Counter[str]),
        "relay": {"description": "The model as Relay text, if asked for.", **schema_of(str | None)},
        "values": {
            "description": "What --inputs and --outputs take, if asked for.",
            **schema_of(list[ListedValue] | None),
        },
        "notes": schema_of(list[str]),
    }


@click.command(
    "inspect",
    cls=FormatCommand,
    result=_properties,
    reads=True,
    writes=False,
    examples=[
        "serde inspect resnet50.onnx",
        "serde inspect resnet50-symbol.json --input-shape data:1,3,224,224 --relay",
        "serde inspect resnet50.onnx --nodes",
        "serde inspect Resnet50.mlpackage --json",
    ],
)
@click.argument(
    "paths", nargs=-1, required=True, metavar="SOURCE...", shell_complete=complete_paths
)
@reading_flags("format")
@click.option("--relay", is_flag=True, help="Also print the model as Relay text.")
@click.option(
    "--nodes", is_flag=True, help="Also list the names that --inputs and --outputs of convert take."
)
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Show what a model file holds."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.inspection import inspect_model

    found = inspect_model(
        one_source(options["paths"]), format=options["source_format"],
        relay=options["relay"], nodes=options["nodes"], **reading(ctx, options),
    )  # fmt: skip
    if run.as_json:
        run.print_result(found.as_dict())
        return
    for table in found.tables():
        run.terminal.table(table)
    if found.relay_text is not None:
        run.terminal.line(found.relay_text)
