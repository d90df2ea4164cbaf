"""``serde inspect``."""

from __future__ import annotations

from typing import Any

import click

from serde.command.completion import complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import (
    FormatCommand,
    given_options,
    printing_flags,
    reading_flags,
    reading_options,
)
from serde.command.render import as_json

__all__ = ["command"]


@click.command(
    "inspect",
    cls=FormatCommand,
    reads=True,
    writes=False,
    examples=[
        "serde inspect resnet50.onnx",
        "serde inspect resnet50-symbol.json --input-shape data:1,3,224,224 --relay",
        "serde inspect Resnet50.mlpackage --json",
    ],
)
@click.argument(
    "paths", nargs=-1, required=True, metavar="SOURCE...", shell_complete=complete_paths
)
@reading_flags("format")
@click.option("--relay", is_flag=True, help="Also print the model as Relay text.")
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Show what a model file holds."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.inspection import inspect_model

    paths = options["paths"]
    found = inspect_model(
        paths[0] if len(paths) == 1 else list(paths),
        format=options["source_format"],
        relay=options["relay"],
        report=run.report,
        **reading_options(options),
        **given_options(ctx, options),
    )
    if run.as_json:
        run.terminal.raw(as_json(found.as_dict()))
        return
    for table in found.tables():
        run.terminal.table(table)
    if found.relay_text is not None:
        run.terminal.line(found.relay_text)
