"""``serde bisect``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from serde.command.flag import complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import (
    FormatCommand,
    flag,
    one_source,
    printing_flags,
    reading,
    reading_flags,
    reading_options,
    source_and_target,
    writing_flag,
)

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    from serde.checking.bisection import InnerValue
    from serde.command.schemas import schema_of

    return {"sentence": schema_of(str), "values": schema_of(list[InnerValue])}


@click.command(
    "bisect",
    cls=FormatCommand,
    result=_properties,
    reads=True,
    writes=False,
    examples=[
        "serde bisect net-symbol.json net.onnx --input-shape data:1,3,224,224",
        "serde bisect net.onnx net.mlpackage --check-data cat.png",
        "serde bisect net.onnx --runtime --shrink bug.onnx",
    ],
)
@click.argument("paths", nargs=-1, metavar="SOURCE... [TARGET]", shell_complete=complete_paths)
@reading_flags("source_format")
@writing_flag
@flag(
    "--check-dim", also=["--dims"], multiple=True, metavar="NAME=LENGTH",
    help="Length of a dynamic dimension.",
)  # fmt: skip
@click.option(
    "--check-data", type=click.Path(path_type=Path), metavar="FILE|DIR",
    help="Inputs to run with instead of seeded ones.",
)  # fmt: skip
@click.option(
    "--runtime", is_flag=True,
    help="Show where what runs one model departs from its exact result.",
)  # fmt: skip
@click.option("--engine", metavar="NAME", help="With --runtime, what runs it: openvino.")
@click.option(
    "--shrink", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the part that departs as a model, and its inputs beside it as .npz.",
)  # fmt: skip
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Show where two models begin to differ, by the values inside that both have by name."""
    run: Invocation = ctx.obj
    run.configure(options)
    runtime, shrink = options["runtime"], options["shrink"]
    for name in ("shrink", "engine"):
        if options[name] is not None and not runtime:
            raise click.UsageError(f"--{name} goes with --runtime")
    paths = options["paths"]
    if runtime and not paths:
        raise click.UsageError("expected a model")
    source, target = (one_source(paths), None) if runtime else source_and_target(paths)
    from serde.checking.checks import bisect as bisect_models
    from serde.command.flags import parse_lengths
    from serde.command.render import bisection_table

    found = bisect_models(
        source, target, runtime=runtime, engine=options["engine"],
        source_format=options["source_format"],
        target_format=options["target_format"], dims=parse_lengths(options["check_dim"]),
        check_data=options["check_data"], **reading(ctx, options),
    )  # fmt: skip
    if shrink is not None and found.first is not None:
        _write_part(source, shrink, found, options)
    code, outcome = (0, "done") if found.agrees else (4, "different")
    if run.as_json:
        values = [asdict(value) for value in found.values]
        run.print_result({"sentence": found.sentence, "values": values}, code=code, outcome=outcome)
    else:
        run.terminal.table(bisection_table(found, run.terminal.ticks()))
        run.terminal.line(found.sentence)
    ctx.exit(code)


def _write_part(source: Any, path: Path, found: Any, options: dict[str, Any]) -> None:
    """Write what departs as a model of its own, with what it was given."""
    import numpy as np

    from serde.api import convert

    read = {"source_format": options["source_format"], **reading_options(options)}
    convert(source, path, inputs=list(found.given), outputs=[found.first.name], **read)
    np.savez(path.with_suffix(".npz"), **found.given)
