"""``serde convert``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from serde.command.flag import complete_paths
from serde.command.invocation import Invocation, show_report
from serde.command.parameters import (
    FormatCommand,
    check_flag,
    checking_flags,
    checking_options,
    custom_flag,
    given_options,
    printing_flags,
    quantizing_flags,
    reading_flags,
    reading_options,
    report_flag,
    source_and_target,
    storage_options,
    themed,
    writing_flag,
)
from serde.command.serving import asks_for_server, serving_flags, write_served
from serde.core.texts import size_text
from serde.errors import CheckError

__all__ = ["OTHER_OPTIONS", "command"]

OTHER_OPTIONS = "serde.other-options"
"""What in a context's ``meta`` are options of the conversion that have no flag here."""


@click.command(
    "convert",
    cls=FormatCommand,
    reads=True,
    writes=True,
    examples=[
        "serde convert resnet50-symbol.json resnet50.onnx --input-shape data:1,3,224,224 --check",
        "serde convert resnet50.onnx --to coreml --image data --class-labels synset.txt",
        "serde convert resnet50.onnx --triton models --class-labels synset.txt --check",
        "serde convert resnet50.onnx resnet50-int8.onnx --int8 --calibration photos",
    ],
)
@click.argument("paths", nargs=-1, metavar="SOURCE... [TARGET]", shell_complete=complete_paths)
@reading_flags("source_format")
@writing_flag
@custom_flag
@check_flag("the target", "target")
@checking_flags
@quantizing_flags
@click.option(
    "--overwrite", is_flag=True,
    help="Replace what serde did not write or you did not name: an MXNet pair, Relay's parameters.",
)  # fmt: skip
@themed(
    "Printing",
    click.option(
        "--tensor-mapping", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Write what tensors and nodes of the source are called in the target, as JSON.",
    ),
)  # fmt: skip
@serving_flags
@report_flag
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Convert a model and write it.

    With --to alone, the target is named after the source, in the working directory.
    """
    run: Invocation = ctx.obj
    run.configure(options)
    served = asks_for_server(options)
    if options["tensor_mapping"] is not None:
        from serde.command.written import check_apart, check_written

        check_written(options["tensor_mapping"], options["paths"], "--tensor-mapping", (".json",))
        check_apart(options["tensor_mapping"], run.report_path)
    given = {
        "check": options["check"] or False,
        "tensor_mapping": options["tensor_mapping"],
        "storage_options": storage_options(options),
        **checking_options(options),
        **reading_options(options),
        **given_options(ctx, options),
        **ctx.meta.get(OTHER_OPTIONS, {}),
    }
    try:
        if served:
            write_served(options, given, run.report)
        else:
            _convert(options, given, run)
    except CheckError:
        show_report(run, aside=True)
        raise
    show_report(run, aside=True)
    facts = run.report.facts
    run.terminal.line(facts["path"], aside=size_text(facts["bytes"]) + _view_hint(facts))
    run.close(0)


def _view_hint(facts: Mapping[str, Any]) -> str:
    """Return how to look at what was written; nothing where it cannot be read."""
    from serde.bridge.formats import get_bridge

    if get_bridge(facts["target"]).import_options is None:
        return ""
    path = os.path.join(facts["path"], *facts.get("parts", [])[:1])
    return f"  (look at it: serde view {shlex.quote(path)})"


def _convert(options: Mapping[str, Any], given: Mapping[str, Any], run: Invocation) -> None:
    from serde.api import convert as convert_model

    paths = options["paths"]
    if len(paths) == 1 and options["target_format"] is not None:
        from serde.fleet.batching.sources import own_target

        to, overwrite = options["target_format"], options["overwrite"]
        paths = [*paths, own_target(paths[0], to, given, overwrite=overwrite)]
    elif len(paths) == 1:
        raise click.UsageError("expected a source and a target, or --to FORMAT")
    source, target = source_and_target(paths)
    convert_model(
        source,
        target,
        source_format=options["source_format"],
        target_format=options["target_format"],
        overwrite=options["overwrite"],
        report=run.report,
        **given,
    )
