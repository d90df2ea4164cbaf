"""``serde view``."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from serde.command.flag import complete_paths
from serde.command.invocation import Invocation
from serde.command.parameters import (
    FormatCommand,
    flag,
    printing_flags,
    reading,
    reading_flags,
    writing_flag,
)
from serde.command.written import check_written
from serde.core.texts import size_text

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    from serde.command.schemas import schema_of
    from serde.viewing.page import ShownModel

    return {
        "path": {"description": "The page.", **schema_of(str)},
        "bytes": {"description": "Its size.", **schema_of(int)},
        "models": schema_of(list[ShownModel]),
    }


@click.command(
    "view",
    cls=FormatCommand,
    result=_properties,
    reads=True,
    writes=False,
    examples=[
        "serde view resnet50.onnx -o resnet50.html",
        "serde view net-symbol.json --input-shape data:1,3,224,224 --open",
        "serde view net-symbol.json net.onnx --input-shape data:1,3,224,224 -o compared.html",
    ],
)
@click.argument("model", metavar="MODEL", shell_complete=complete_paths)
@click.argument("other", required=False, metavar="[OTHER]", shell_complete=complete_paths)
@flag(
    "-o", "--output", also=["--path"], type=click.Path(dir_okay=False, path_type=Path),
    metavar="PAGE", help="The page; MODEL.html beside the model if left out.",
)  # fmt: skip
@click.option("--params", type=click.Path(), metavar="FILE", help="Weights that lie elsewhere.")
@reading_flags("source_format")
@writing_flag
@click.option("--weights/--no-weights", default=True, help="Read weights: figures, histograms.")
@flag(
    "--weights-seconds", also=["--seconds"], type=click.FloatRange(min=0), default=20.0,
    show_default=True, metavar="SECONDS",
    help="Time for them; of what is left then, samples are read.",
)  # fmt: skip
@click.option(
    "--values/--no-values", default=True, help="With two models, run both to compare values inside."
)
@click.option("--routes", is_flag=True, help="Tell what each format and runtime would make of it.")
@flag(
    "--check-dim", also=["--dims"], multiple=True, metavar="NAME=LENGTH",
    help="Length of a dynamic dimension.",
)  # fmt: skip
@click.option(
    "--check-data", type=click.Path(path_type=Path), metavar="FILE|DIR",
    help="Inputs to run with instead of seeded ones.",
)  # fmt: skip
@click.option("--open", "shown", is_flag=True, help="Open the page in the browser.")
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Show a model as a page of HTML, or what differs between two."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.flags import parse_lengths
    from serde.viewing.viewer import view

    named = [options["model"], *([] if options["other"] is None else [options["other"]])]
    path = _page_path(options["model"]) if options["output"] is None else options["output"]
    check_written(path, named, "--output", (".html", ".htm"))
    page = view(
        options["model"], options["other"], path=path, params=options["params"],
        source_format=options["source_format"], target_format=options["target_format"],
        weights=options["weights"],
        seconds=options["weights_seconds"], values=options["values"], routes=options["routes"],
        dims=parse_lengths(options["check_dim"]), check_data=options["check_data"],
        **reading(ctx, options),
    )  # fmt: skip
    size = len(page.html.encode())
    if run.as_json:
        models = [asdict(model) for model in page.models]
        run.print_result({"path": str(path), "bytes": size, "models": models})
    else:
        run.terminal.line(f"{path}  ({size_text(size)})")
    if options["shown"]:
        click.launch(path.absolute().as_uri())


def _page_path(model: str) -> Path:
    """Return where the page goes if nothing is said: beside the model, of a URL here."""
    from serde.fleet.stores.urls import Address

    address = Address.of(model)
    path = Path(address.name if address.protocol else os.path.normpath(address.path))
    return path.with_name(f"{path.name}.html")
