"""``serde diff``."""

from __future__ import annotations

from typing import Any

import click

from serde.command.flag import complete_formats, complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import FormatCommand, flag, printing_flags, reading, reading_flags
from serde.errors import CheckError, ConversionError, ConverterBug

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    from serde.checking.difference import ModelDiff
    from serde.command.schemas import properties_of, schema_of

    return {"equal": schema_of(bool), **properties_of(ModelDiff)}


@click.command(
    "diff",
    cls=FormatCommand,
    result=_properties,
    reads=True,
    writes=False,
    examples=[
        "serde diff old.onnx new.onnx",
        "serde diff net.onnx net.mlpackage --no-weights",
        "serde diff net-symbol.json net.onnx --input-shape data:1,3,224,224 --json",
    ],
)
@click.argument("left", metavar="LEFT", shell_complete=complete_paths)
@click.argument("right", metavar="RIGHT", shell_complete=complete_paths)
@reading_flags("left_format")
@flag(
    "--to", "target_format", also=["--right-format"], metavar="FORMAT",
    shell_complete=complete_formats, help="Format of the right one.",
)  # fmt: skip
@click.option("--weights/--no-weights", default=True, help="Compare the values of weights.")
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Show what differs between two models; exit with 1 if anything does."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.checking.difference import diff as diff_models
    from serde.command.render import difference_lines, difference_tables

    try:
        found = diff_models(
            options["left"], options["right"], left_format=options["source_format"],
            right_format=options["target_format"], weights=options["weights"],
            **reading(ctx, options),
        )  # fmt: skip
    except ConversionError as error:
        raise _as_check_error(error) from error
    if run.as_json:
        outcome = "equal" if found.equal else "different"
        run.print_result(found.as_dict(), code=int(not found.equal), outcome=outcome)
    else:
        for table in difference_tables(found):
            run.terminal.table(table)
        for line in difference_lines(found):
            run.terminal.line(line)
    if not found.equal:
        ctx.exit(1)


def _as_check_error(error: ConversionError) -> Exception:
    """Return what a model that cannot be read ends a diff with: not the code of a difference."""
    return error if isinstance(error, ConverterBug) else CheckError(f"not compared: {error}")
