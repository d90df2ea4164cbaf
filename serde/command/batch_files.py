"""The files that tell of a batch: JSON, Markdown, one HTML page, Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from serde.command.batch_tables import batch_line, batch_tables, failure_text
from serde.command.batch_view import json_parts
from serde.command.render import markdown_table

if TYPE_CHECKING:
    from serde.fleet.batching.report import BatchReport

__all__ = ["write_batch_report"]


def write_batch_report(path: Path, report: BatchReport) -> None:
    """Write a report, of the kind that its suffix says.

    Raises:
        MissingDependency: pyarrow is not installed.
        OptionError: `path` cannot be a new file.
    """
    if path.suffix == ".parquet":
        from serde.fleet.batching.parquet import write_parquet

        write_parquet(path, report)
    elif path.suffix == ".html":
        from serde.fleet.batching.html import write_html

        write_html(path, report, settings=report.settings)
    else:
        from serde.io.atomic import atomic_write

        parts = json_parts(report) if path.suffix == ".json" else _markdown(report)
        with atomic_write(path) as file:
            for text in parts:
                file.write(text.encode(errors="backslashreplace"))
            file.write(b"\n")


def _markdown(report: BatchReport) -> list[str]:
    parts = [f"# serde batch to {report.settings.to}", batch_line(report, len(report))]
    parts += [markdown_table(table) for table in batch_tables(report)]
    failures = [f"- {failure_text(each)}" for each in report if not each.is_done]
    if failures:
        parts += ["## Failures", "\n".join(failures)]
    return ["\n\n".join(parts)]
