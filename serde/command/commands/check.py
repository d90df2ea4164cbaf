"""``serde check``."""

from __future__ import annotations

from typing import Any

import click

from serde.command.flag import complete_paths
from serde.command.invocation import Invocation, show_report
from serde.command.parameters import (
    FormatCommand,
    checking_flags,
    checking_options,
    flag,
    printing_flags,
    reading,
    reading_flags,
    report_flag,
    source_and_target,
    writing_flag,
)

__all__ = ["command"]


@click.command(
    "check",
    cls=FormatCommand,
    reads=True,
    writes=False,
    examples=[
        "serde check net-symbol.json net.onnx --input-shape data:1,3,224,224",
        "serde check net.onnx net.mlpackage --check-data photos --image data:BGR",
        "serde check old.onnx new.onnx --runs 3 --atol 1e-4 --json",
    ],
)
@click.argument("paths", nargs=-1, metavar="SOURCE... TARGET", shell_complete=complete_paths)
@reading_flags("source_format")
@writing_flag
@click.option("--runs", type=click.IntRange(min=1), default=1, help="Number of sets of inputs.")
@flag(
    "--float16", also=["--fp16"], is_flag=True,
    help="The target computes in float16: judge it by that.",
)  # fmt: skip
@flag(
    "--image", "check_images", also=["--check-images"], multiple=True, metavar="NAME[:LAYOUT]",
    help="Input that images of --check-data are for, and its channels: RGB, BGR or GRAYSCALE.",
)  # fmt: skip
@checking_flags
@report_flag
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run two models on the same seeded inputs and compare their outputs."""
    run: Invocation = ctx.obj
    run.configure(options)
    source, target = source_and_target(options["paths"])
    from serde.checking.checks import check as check_model
    from serde.checking.verdict import raise_if_differs
    from serde.command.flags import parse_images

    check_model(
        source, target, source_format=options["source_format"],
        target_format=options["target_format"], runs=options["runs"], float16=options["float16"],
        check_images=parse_images(options["check_images"]),
        **checking_options(options), **reading(ctx, options),
    )  # fmt: skip
    run.report.before.clear()
    show_report(run)
    raise_if_differs(run.report, target, source)
    run.close(0)
