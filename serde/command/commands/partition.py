"""``serde partition``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from serde.command.flag import complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import (
    FormatCommand,
    check_flag,
    flag,
    printing_flags,
    reading,
    reading_flags,
    report_flag,
    source_and_target,
)
from serde.command.written import check_written

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    from serde.command.partition import partition_properties
    from serde.command.schemas import report_properties

    return {**partition_properties(), **report_properties()}


@click.command(
    "partition",
    cls=FormatCommand,
    result=_properties,
    reads=True,
    writes=False,
    examples=[
        "serde partition net.onnx net_split --supported chip.toml --check",
        "serde partition net.onnx net_split --supported chip.toml --svg graph.svg",
        "serde partition net.onnx net_split --for webnn",
    ],
)
@click.argument("paths", nargs=-1, metavar="SOURCE... FOLDER", shell_complete=complete_paths)
@reading_flags("source_format")
@flag(
    "--supported", also=["--for"], metavar="NAME|FILE",
    help="What the toolchain takes: the name of a runtime that serde knows, or a file as TOML or "
    "JSON; all that can be written if left out.",
)  # fmt: skip
@click.option("--opset", type=int, help="Version of the operator set of the regions; 17.")
@click.option(
    "--min-nodes", type=click.IntRange(min=1), default=1, help="Least number of nodes in a region."
)
@check_flag("the folder", "split model")
@click.option("--runner", default="onnxruntime", help="What runs the regions in a check.")
@click.option(
    "--host", type=click.Choice(["relay", "tvm"]), default="relay",
    help="What runs the rest in a check: Relay's interpreter, or code that TVM compiles.",
)  # fmt: skip
@click.option(
    "--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Draw the graph, coloured by region.",
)  # fmt: skip
@report_flag
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Split a model for an ONNX toolchain; exit with 1 if some of it stays on the host."""
    run: Invocation = ctx.obj
    run.configure(options)
    source, target = source_and_target(options["paths"])
    if options["svg"] is not None:
        check_written(options["svg"], options["paths"], "--svg", (".svg",))
    from serde.command.partition import partition_dict, partition_line, partition_tables
    from serde.target.splitting import split

    found = split(
        source,
        target,
        format=options["source_format"],
        supported=options["supported"],
        **({} if options["opset"] is None else {"opset": options["opset"]}),
        min_nodes=options["min_nodes"],
        runs=options["check"] or 0,
        runner=options["runner"],
        host=options["host"],
        **reading(ctx, options),
    ).partition
    if options["svg"] is not None:
        from serde.io.atomic import write_text
        from serde.target.drawing import draw

        write_text(options["svg"], draw(found))
    code = 0 if found.is_whole else 1
    run.report.facts.setdefault("path", target)
    run.findings = partition_dict(found)
    for table in partition_tables(found, run.report):
        run.terminal.table(table)
    run.terminal.line(partition_line(found), "green" if found.is_whole else "yellow")
    run.close(code)
    ctx.exit(code)
