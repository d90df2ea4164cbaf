"""``serde batch``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serde.command.amounts import read_count, read_duration, read_size
from serde.command.flag import complete_paths
from serde.command.invocation import Invocation
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
    themed,
    writing_flag,
)
from serde.errors import OptionError

if TYPE_CHECKING:
    from serde.fleet.batching.records import Settings
    from serde.fleet.batching.run import BatchRun

__all__ = ["command"]

_REPORTS = (".json", ".md", ".html", ".parquet")


def _properties() -> Mapping[str, Any]:
    from serde.command.batch_schema import batch_properties

    return batch_properties()


@click.command(
    "batch",
    cls=FormatCommand,
    result=_properties,
    codes=range(101, 121),
    reads=True,
    writes=True,
    examples=[
        "serde batch models/ --to onnx --out converted --check",
        "serde batch models.jsonl --to onnx --out s3://bucket/onnx --report report.html",
        "serde batch 's3://bucket/nets/**/model.tar.gz' --to onnx --out onnx --time-limit 5m",
        "serde batch models/ --to onnx --out converted --scheduler tcp://10.0.0.5:8786",
    ],
)
@click.argument("paths", nargs=-1, metavar="SOURCE...", shell_complete=complete_paths)
@click.option("--out", required=True, metavar="DIR|URL", help="Where the targets are written to.")
@reading_flags("source_format", stores=False)
@writing_flag
@custom_flag
@check_flag("a target", "target")
@checking_flags
@quantizing_flags
@click.option(
    "--workers", "-j", type=click.IntRange(min=1), metavar="N",
    help="Models that are converted at the same time; as there are cores if left out.",
)  # fmt: skip
@click.option(
    "--time-limit", type=read_duration, metavar="TIME",
    help="How long the process of one model may run: 90, 90s, 5m or 2h.",
)  # fmt: skip
@click.option("--retry-failed", is_flag=True, help="Try again what failed in an earlier run.")
@themed(
    "How it runs",
    click.option(
        "--scheduler", metavar="ADDRESS",
        help="Run the models on the Dask cluster with this scheduler: tcp://10.0.0.5:8786.",
    ),
    click.option("--dask", is_flag=True, help="Run the models on a Dask cluster of this machine."),
    click.option(
        "--memory-limit", type=read_size, metavar="SIZE",
        help="What the process of one model may allocate: 500M or 2Gi; on Linux only.",
    ),
    click.option(
        "--name-limit", type=read_count, metavar="N",
        help="How many names of files and folders may be looked at for one glob or folder: 500k or "
        "5M; a million if left out.",
    ),
    click.option(
        "--manifest-code", is_flag=True,
        help="Let lines of manifests name what is run: files of converters, and the compiler (cc).",
    ),
    click.option(
        "--manifest-targets", is_flag=True,
        help="Let lines of manifests name targets outside --out: absolute paths, URLs and '..'.",
    ),
    click.option(
        "--sandbox/--no-sandbox", default=None,
        help="Keep the process of one model to its sources and its target: reading and writing "
        "nothing else, and off the network; where the kernel has Landlock if left out.",
    ),
    click.option(
        "--retries", type=click.IntRange(min=0), default=1, show_default=True,
        help="How often a model is tried again whose process somebody else killed.",
    ),
    click.option(
        "--ledger", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Where it is kept what is done; .serde/ledger.sqlite in a local --out if left out.",
    ),
    click.option(
        "--scratch", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
        help="Where lies meanwhile what is fetched from stores; where temporary files do if left "
        "out.",
    ),
    click.option(
        "--storage-option", multiple=True, metavar="KEY=VALUE",
        help="What fsspec gives to file systems: s3.endpoint_url=http://localhost:9000.",
    ),
)  # fmt: skip
@click.option(
    "--overwrite", is_flag=True,
    help="Replace MXNet pairs, or Relay's parameters, that serde did not write.",
)  # fmt: skip
@click.option(
    "--report", "reports", type=click.Path(dir_okay=False, path_type=Path), multiple=True,
    metavar="FILE",
    help="Write a report by the suffix: .json, .md, .html (one page) or .parquet (a row a model).",
)  # fmt: skip
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Convert many models in processes of their own; go on where an earlier run ended.

    SOURCE is a path, glob, folder or URL of models, or a manifest of these (.jsonl, .csv, .txt, or
    - for the standard input). The exit code is 0, or 100 and how many models failed (120: 20 or
    more).
    """
    run: Invocation = ctx.obj
    run.configure(options)
    if not options["paths"]:
        raise click.UsageError("expected a source")
    if options["target_format"] is None:
        raise click.UsageError("expected --to FORMAT")
    _check_reports(options["reports"])
    batch = _prepared(ctx, options)
    from serde.command.batch_view import BatchView

    view = BatchView(run.terminal, batch.total)
    try:
        with view:
            for outcome in batch:
                view.show(outcome)
    finally:
        view.tell(batch.report)
    _write_reports(options["reports"], batch)
    if run.as_json:
        view.print_json(batch.report)
    return batch.report.exit_code


def _prepared(ctx: click.Context, options: dict[str, Any]) -> BatchRun:
    from serde.fleet.batching.api import DASK, prepare_batch
    from serde.fleet.batching.manifest import Trust

    if options["dask"] and options["scheduler"] is not None:
        raise click.UsageError("--dask starts a cluster, --scheduler names one: only one of them")
    return prepare_batch(
        list(options["paths"]),
        _settings(ctx, options),
        workers=options["workers"],
        scheduler=DASK if options["dask"] else options["scheduler"],
        **({} if options["name_limit"] is None else {"name_limit": options["name_limit"]}),
        trust=Trust(options["manifest_code"], options["manifest_targets"]),
        ledger=options["ledger"],
        retry_failed=options["retry_failed"],
    )


def _settings(ctx: click.Context, options: dict[str, Any]) -> Settings:
    from serde.fleet.batching.records import Settings
    from serde.fleet.stores.store import parse_storage_options

    checking = {name: value for name, value in checking_options(options).items() if value}
    if options["yardstick"] == "off":
        checking["yardstick"] = False
    else:
        checking.pop("yardstick", None)
    # Each process reads the files of converters itself.
    given = {
        "source_format": options["source_format"],
        "converters": list(options["converters"]),
        **checking,
        **reading_options({**options, "converters": ()}),
        **given_options(ctx, options),
    }
    return Settings(
        to=options["target_format"],
        out=options["out"],
        options={name: value for name, value in given.items() if value not in (None, [])},
        check=options["check"] or 0,
        seconds=options["time_limit"],
        memory=options["memory_limit"],
        retries=options["retries"],
        scratch="" if options["scratch"] is None else str(options["scratch"]),
        overwrite=options["overwrite"],
        sandbox=options["sandbox"],
        storage=parse_storage_options(options["storage_option"]),
    )


def _check_reports(paths: Sequence[Path]) -> None:
    """Refuse, before anything is done, reports that could not be written."""
    from serde.fleet.batching.parquet import schema
    from serde.io.atomic import check_files

    for path in paths:
        if path.suffix not in _REPORTS:
            raise OptionError(f"--report {path}: expected a name ending in {' or '.join(_REPORTS)}")
        if path.suffix == ".parquet":
            schema()
        check_files([path])


def _write_reports(paths: Sequence[Path], batch: BatchRun) -> None:
    from serde.command.batch_view import write_batch_report

    for path in paths:
        write_batch_report(path, batch.report)
