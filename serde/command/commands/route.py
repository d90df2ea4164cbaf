"""``serde route``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from serde.command.flag import complete_formats, complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import (
    FormatCommand,
    flag,
    one_source,
    printing_flags,
    reading,
    reading_flags,
)

if TYPE_CHECKING:
    from serde.conversion.routing import Route
    from serde.core.report import Table

__all__ = ["command"]

_SHOWN_ROWS = 20


def _properties() -> dict[str, Any]:
    from serde.command.schemas import schema_of
    from serde.conversion.routing import Route

    return {"routes": schema_of(list[Route])}


@click.command(
    "route",
    cls=FormatCommand,
    result=_properties,
    reads=True,
    writes=False,
    examples=[
        "serde route net.onnx",
        "serde route net-symbol.json --input-shape data:1,3,224,224 --to coreml --to tflite",
        "serde route net.onnx --for webnn --for tensorrt",
    ],
)
@click.argument(
    "paths", nargs=-1, required=True, metavar="SOURCE...", shell_complete=complete_paths
)
@reading_flags("format")
@flag(
    "--to", also=["--targets"], multiple=True, metavar="FORMAT", shell_complete=complete_formats,
    help="A format to look at; all, if this and --for are left out.",
)  # fmt: skip
@flag(
    "--for", "profiles", also=["--profiles"], multiple=True, metavar="NAME|FILE",
    help="A runtime to look at, as --for of convert takes it.",
)  # fmt: skip
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Tell what targets would keep, say otherwise, lose or refuse; exit with 1 if one refuses."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.conversion.routing import route

    found = route(
        one_source(options["paths"]), format=options["source_format"],
        targets=options["to"] or None, profiles=options["profiles"] or None,
        **reading(ctx, options),
    )  # fmt: skip
    asked = bool(options["to"] or options["profiles"])
    code = int(asked and not all(each.is_open for each in found))
    if run.as_json:
        rows = [asdict(each) for each in found]
        outcome = "some is refused" if code else "done"
        run.print_result({"routes": rows}, code=code, outcome=outcome)
    else:
        for table in _tables(found):
            run.terminal.table(table)
    ctx.exit(code)


def _tables(found: Sequence[Route]) -> list[Table]:
    """Return what each target makes of the model, and why some of it is refused or lost."""
    from serde.core.report import Table

    rows = tuple((each.name, str(each.nodes or ""), each.sentence) for each in found)
    reasons = tuple(
        (each.name, op, str(count), reason)
        for each in found
        for (op, reason), count in Counter(
            (issue.op, issue.reason) for issue in (*each.refused, *each.lost)
        ).most_common(_SHOWN_ROWS)
    )
    tables = [Table(("target", "nodes", "what it makes of the model"), rows, frozenset({1}))]
    if reasons:
        tables.append(Table(("target", "operator", "nodes", "why"), reasons, frozenset({2})))
    return tables
