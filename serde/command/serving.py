"""The flags of ``serde convert`` by which a model goes to an inference server, and what they do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serde.command.parameters import one_source, themed

if TYPE_CHECKING:
    from serde.core.report import Report

__all__ = ["asks_for_server", "serving_flags", "write_served"]

serving_flags = themed(
    "An inference server",
    click.option(
        "--triton", type=click.Path(file_okay=False, path_type=Path), metavar="REPOSITORY",
        help="Write the model into a repository of Triton's, instead of a target.",
    ),
    click.option(
        "--torchserve", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
        help="Write an archive for TorchServe into a model store, instead of a target.",
    ),
    click.option(
        "--model-name", metavar="NAME",
        help="With these, what the server calls the model; as the source's file if left out.",
    ),
    click.option(
        "--max-batch-size", type=click.IntRange(min=0),
        help="With --triton, most rows of a batch; 8 if left out, 0 leaves batches to requests.",
    ),
    click.option(
        "--dynamic-batching", is_flag=True,
        help="With --triton, let the server gather requests to batches.",
    ),
)  # fmt: skip


def asks_for_server(options: Mapping[str, Any]) -> bool:
    """Whether a model goes to a server instead of a target.

    Raises:
        click.UsageError: Flags contradict each other, or need one that is missing.
    """
    triton, torchserve = options["triton"] is not None, options["torchserve"] is not None
    if triton and torchserve:
        raise click.UsageError("--triton and --torchserve are two targets; give one")
    if torchserve and options["target_format"] is not None:
        raise click.UsageError("--torchserve takes no --to: an archive holds PyTorch source")
    if not triton and (options["max_batch_size"] is not None or options["dynamic_batching"]):
        raise click.UsageError("--max-batch-size and --dynamic-batching belong to --triton")
    if not (triton or torchserve) and options["model_name"] is not None:
        raise click.UsageError("--model-name belongs to --triton or --torchserve")
    if (triton or torchserve) and not options["paths"]:
        raise click.UsageError("expected a source")
    return triton or torchserve


def write_served(options: Mapping[str, Any], given: Mapping[str, Any], report: Report) -> None:
    """Convert a model and put it where its server looks.

    Args:
        options: What the command line says.
        given: What the conversion takes.
        report: Filled with all of it.
    """
    common = {
        "source_format": options["source_format"],
        "model_name": options["model_name"],
        "report": report,
        **given,
    }
    source = one_source(options["paths"])
    if options["torchserve"] is not None:
        from serde.fleet.serving.torchserve import write_torchserve

        write_torchserve(source, options["torchserve"], overwrite=options["overwrite"], **common)
        return
    from serde.fleet.serving.triton import write_triton

    if options["max_batch_size"] is not None:
        common["max_batch_size"] = options["max_batch_size"]
    write_triton(
        source,
        options["triton"],
        target_format=options["target_format"],
        dynamic_batching=options["dynamic_batching"],
        **common,
    )
