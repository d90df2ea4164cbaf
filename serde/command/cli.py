"""The command line: ``serde convert``, ``inspect``, ``check``, ``partition`` and others.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 the
model is refused (of ``diff``, as of diff(1): the models differ; of ``partition``: some of
it stays on the host), 2 usage, 3 malformed input, 4 the check failed, 5 it could not be
made or says nothing, 6 a package is missing, 70 a defect of serde, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from serde._version import __version__
from serde.command.console import LiveReport, Terminal
from serde.command.parameters import (
    FormatCommand,
    checking_flags,
    checking_options,
    custom_flag,
    flag,
    given_options,
    printing_flags,
    reading_flags,
    reading_options,
    report_flag,
    source_and_target,
    writing_flag,
)
from serde.command.render import as_json, as_markdown, size_text, tables, verdict_line
from serde.command.streams import usable_streams
from serde.command.written import check_apart, check_written
from serde.errors import (
    CheckError,
    ConversionError,
    ConverterBug,
    FormatError,
    MissingDependency,
    OptionError,
    ParseError,
    SerdeError,
    UnsupportedModelError,
)

__all__ = ["exit_code", "main"]

_OUTCOMES = {
    0: "done",
    1: "refused",
    2: "usage",
    3: "malformed",
    4: "check failed",
    5: "not checked",
    6: "package missing",
    70: "internal error",
    130: "interrupted",
}
_EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (ConverterBug, 70),
    (ConversionError, 1),
    (OptionError, 2),
    (FormatError, 3),
    (ParseError, 3),
    (MissingDependency, 6),
    (OSError, 2),
    (KeyboardInterrupt, 130),
    (click.Abort, 130),
)
"""The exit code of each kind of error, the first that fits."""

_NETRON = "view it at https://netron.app"


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error that ended a command."""
    if isinstance(error, CheckError):
        report = error.report
        return 4 if report is not None and report.verdicts and not report.says_nothing else 5
    for kind, code in _EXIT_CODES:
        if isinstance(error, kind):
            return code
    return 70


class Invocation:
    """One command while it runs: where it prints, and what it has to report.

    Attributes:
        terminal: Where it prints.
        report: What the public functions fill.
        as_json: Whether stdout gets one JSON object and nothing else.
        report_path: Where the report is written, or None.
        findings: What a command has found besides, for the JSON object and a report in JSON.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.report = LiveReport(terminal)
        self.as_json = False
        self.report_path: Path | None = None
        self.findings: dict[str, Any] = {}

    def configure(self, options: dict[str, Any]) -> None:
        """Take the flags that all commands have out of `options`."""
        self.terminal.quiet = options.pop("quiet")
        self.terminal.verbose = options.pop("verbose")
        self.terminal.color &= not options.pop("no_color")
        self.as_json = options.pop("json")
        self.terminal.results = not self.as_json
        path = options.pop("report", None)
        if path is not None:
            check_written(path, options["paths"], "--report", (".json", ".md"))
        self.report_path = path

    def close(self, code: int, error: str | None = None) -> None:
        """Write the report file and the JSON object."""
        data = {"outcome": _OUTCOMES[code], "exit_code": code, "error": error, **self.findings}
        path, self.report_path = self.report_path, None
        if path is not None:
            if path.suffix == ".json":
                text = as_json({**data, **self.report.as_dict()}) + "\n"
            else:
                text = as_markdown(self.report, outcome=_OUTCOMES[code], error=error)
            from serde.io.atomic import write_text

            write_text(path, text)
        if self.as_json:
            self.terminal.raw(as_json({**data, **self.report.as_dict()}))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="serde %(version)s")
def cli() -> None:
    """Converts trained models between formats, through Relay."""


@cli.command(cls=FormatCommand, reads=True, writes=True)
@click.argument("paths", nargs=-1, metavar="SOURCE... TARGET")
@reading_flags("source_format")
@writing_flag
@custom_flag
@click.option(
    "--check",
    type=click.IntRange(min=1),
    metavar="[N]",
    help="Run source and target on N seeded inputs (1) before the target is put in place.",
)
@checking_flags
@click.option(
    "--tensor-mapping",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what tensors and nodes of the source are called in the target, as JSON.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace an MXNet pair, or Relay's parameters, that serde did not write.",
)
@report_flag
@printing_flags
@click.pass_context
def convert(ctx: click.Context, /, **options: Any) -> None:
    """Convert a model and write it."""
    run: Invocation = ctx.obj
    run.configure(options)
    source, target = source_and_target(options["paths"])
    if options["tensor_mapping"] is not None:
        check_written(options["tensor_mapping"], options["paths"], "--tensor-mapping", (".json",))
        check_apart(options["tensor_mapping"], run.report_path)
    from serde.api import convert as convert_model

    checking = checking_options(options)
    try:
        convert_model(
            source,
            target,
            source_format=options["source_format"],
            target_format=options["target_format"],
            check=options["check"] or False,
            tensor_mapping=options["tensor_mapping"],
            overwrite=options["overwrite"],
            report=run.report,
            **checking,
            **reading_options(options),
            **given_options(ctx, options),
        )
    except CheckError:
        _show_report(run, aside=True)
        raise
    _show_report(run, aside=True)
    facts = run.report.facts
    run.terminal.line(facts["path"], aside=f"{size_text(facts['bytes'])}  ({_NETRON})")
    run.close(0)


@cli.command(cls=FormatCommand, reads=True, writes=False)
@click.argument("paths", nargs=-1, metavar="SOURCE... TARGET")
@reading_flags("source_format")
@writing_flag
@click.option("--runs", type=click.IntRange(min=1), default=1, help="Number of sets of inputs.")
@flag(
    "--float16",
    also=["--fp16"],
    is_flag=True,
    help="The target computes in float16: judge it by that.",
)
@flag(
    "--image", "check_images", also=["--check-images"], multiple=True, metavar="NAME[:LAYOUT]",
    help="Input that images of --check-data are for, and its channels: RGB, BGR or GRAYSCALE.",
)  # fmt: skip
@checking_flags
@report_flag
@printing_flags
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> None:
    """Run two models on the same seeded inputs and compare their outputs."""
    run: Invocation = ctx.obj
    run.configure(options)
    source, target = source_and_target(options["paths"])
    from serde.checking.checks import check as check_model
    from serde.checking.verdict import raise_if_differs
    from serde.command.flags import parse_images

    check_model(
        source,
        target,
        source_format=options["source_format"],
        target_format=options["target_format"],
        runs=options["runs"],
        float16=options["float16"],
        check_images=parse_images(options["check_images"]),
        report=run.report,
        **checking_options(options),
        **reading_options(options),
        **given_options(ctx, options),
    )
    run.report.before.clear()
    _show_report(run)
    raise_if_differs(run.report, target, source)
    run.close(0)


@cli.command(cls=FormatCommand, reads=True, writes=False)
@click.argument("paths", nargs=-1, metavar="SOURCE... TARGET")
@reading_flags("source_format")
@writing_flag
@flag(
    "--check-dim",
    also=["--dims"],
    multiple=True,
    metavar="NAME=LENGTH",
    help="Length of a dynamic dimension.",
)
@click.option(
    "--check-data",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="Inputs to run with instead of seeded ones.",
)
@printing_flags
@click.pass_context
def bisect(ctx: click.Context, /, **options: Any) -> None:
    """Show where two models begin to differ, by the values inside that both have by name."""
    run: Invocation = ctx.obj
    run.configure(options)
    source, target = source_and_target(options["paths"])
    from serde.checking.checks import bisect as bisect_models
    from serde.command.flags import parse_lengths
    from serde.command.render import bisection_table

    found = bisect_models(
        source,
        target,
        source_format=options["source_format"],
        target_format=options["target_format"],
        dims=parse_lengths(options["check_dim"]),
        check_data=options["check_data"],
        report=run.report,
        **reading_options(options),
        **given_options(ctx, options),
    )
    if run.as_json:
        values = [asdict(value) for value in found.values]
        run.terminal.raw(as_json({"sentence": found.sentence, "values": values}))
    else:
        run.terminal.table(bisection_table(found, run.terminal.ticks()))
        run.terminal.line(found.sentence)
    if not all(value.agrees for value in found.values):
        ctx.exit(4)


@cli.command(cls=FormatCommand, reads=True, writes=False)
@click.argument("paths", nargs=-1, required=True, metavar="SOURCE...")
@reading_flags("format")
@click.option("--relay", is_flag=True, help="Also print the model as Relay text.")
@printing_flags
@click.pass_context
def inspect(ctx: click.Context, /, **options: Any) -> None:
    """Show what a model file holds."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.inspection import inspect_model

    paths = options["paths"]
    found = inspect_model(
        paths[0] if len(paths) == 1 else list(paths),
        format=options["source_format"],
        relay=options["relay"],
        report=run.report,
        **reading_options(options),
        **given_options(ctx, options),
    )
    if run.as_json:
        run.terminal.raw(as_json(found.as_dict()))
        return
    for table in found.tables():
        run.terminal.table(table)
    if found.relay_text is not None:
        run.terminal.line(found.relay_text)


@cli.command(cls=FormatCommand, reads=True, writes=False)
@click.argument("left", metavar="LEFT")
@click.argument("right", metavar="RIGHT")
@reading_flags("left_format")
@flag(
    "--to",
    "target_format",
    also=["--right-format"],
    metavar="FORMAT",
    help="Format of the right one.",
)
@click.option("--weights/--no-weights", default=True, help="Compare the values of weights.")
@printing_flags
@click.pass_context
def diff(ctx: click.Context, /, **options: Any) -> None:
    """Show what differs between two models; exit with 1 if anything does."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.checking.difference import diff as diff_models
    from serde.command.render import difference_lines, difference_tables

    try:
        found = diff_models(
            options["left"],
            options["right"],
            left_format=options["source_format"],
            right_format=options["target_format"],
            weights=options["weights"],
            report=run.report,
            **reading_options(options),
            **given_options(ctx, options),
        )
    except ConversionError as error:
        raise _as_check_error(error) from error
    if run.as_json:
        run.terminal.raw(as_json({"exit_code": int(not found.equal), **found.as_dict()}))
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


@cli.command(cls=FormatCommand, reads=True, writes=False)
@click.argument("paths", nargs=-1, metavar="SOURCE... FOLDER")
@reading_flags("source_format")
@click.option(
    "--supported",
    type=click.Path(),
    metavar="FILE",
    help="What the toolchain takes, as TOML or JSON; all that can be written if left out.",
)
@click.option("--opset", type=int, help="Version of the operator set of the regions; 17.")
@click.option(
    "--min-nodes", type=click.IntRange(min=1), default=1, help="Least number of nodes in a region."
)
@click.option(
    "--check",
    type=click.IntRange(min=1),
    metavar="[N]",
    help="Run source and split model on N seeded inputs (1) before the folder is put in place.",
)
@click.option("--runner", default="onnxruntime", help="What runs the regions in a check.")
@click.option(
    "--host",
    type=click.Choice(["relay", "tvm"]),
    default="relay",
    help="What runs the rest in a check: Relay's interpreter, or code that TVM compiles.",
)
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the graph, coloured by region.",
)
@report_flag
@printing_flags
@click.pass_context
def partition(ctx: click.Context, /, **options: Any) -> None:
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
        report=run.report,
        **reading_options(options),
        **given_options(ctx, options),
    ).partition
    if options["svg"] is not None:
        from serde.io.atomic import write_text
        from serde.target.drawing import draw

        write_text(options["svg"], draw(found))
    code = 0 if found.is_whole else 1
    run.report.facts["path"] = target
    run.findings = partition_dict(found)
    for table in partition_tables(found, run.report):
        run.terminal.table(table)
    run.terminal.line(partition_line(found), "green" if found.is_whole else "yellow")
    run.close(code)
    ctx.exit(code)


@cli.command()
@printing_flags
@click.pass_context
def formats(ctx: click.Context, /, **options: Any) -> None:
    """List the formats that can be read and written."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.inspection import format_table, list_formats

    rows = list_formats()
    if run.as_json:
        run.terminal.raw(as_json({"formats": rows}))
        return
    run.terminal.table(format_table(rows))


@cli.command()
@click.option("--format", "format_name", metavar="NAME", help="One format, or relay.")
@click.option("--markdown", is_flag=True, help="Print Markdown tables.")
@printing_flags
@click.pass_context
def ops(ctx: click.Context, /, **options: Any) -> None:
    """List the operators that are converted."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.inspection import list_operators, operator_tables
    from serde.command.render import markdown_document

    found = list_operators(options["format_name"])
    if run.as_json:
        run.terminal.raw(as_json(found))
        return
    if options["markdown"]:
        run.terminal.raw(markdown_document("Operators", operator_tables(found)))
        return
    for table in operator_tables(found):
        run.terminal.table(table)


def _show_report(run: Invocation, *, aside: bool = False) -> None:
    """Print the tables of the report; `aside` on stderr, where they are not the result."""
    if aside and not run.as_json:
        run.terminal.progress("")
    for table in tables(run.report, ticks=run.terminal.ticks()):
        run.terminal.table(table, aside=aside)
    line = verdict_line(run.report)
    style = "green" if run.report.passed else "yellow" if run.report.says_nothing else "red"
    if line and aside and not run.as_json:
        run.terminal.progress(line, style)
    elif line and not aside:
        run.terminal.line(line, style)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments without the program's name; those of the process if left out.

    Returns:
        The exit code.
    """
    with usable_streams():
        return _run(list(sys.argv[1:] if argv is None else argv))


def _run(args: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    run = Invocation(Terminal())
    try:
        with _termination_interrupts():
            result = cli.main(args, prog_name="serde", standalone_mode=False, obj=run)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (Exception, KeyboardInterrupt) as error:
        return _fail(run, error)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that nothing half-written stays behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _message(error: BaseException) -> str:
    """Return what an error says; of one by the operating system, the file and the cause."""
    if isinstance(error, SerdeError) or not isinstance(error, OSError) or not error.strerror:
        return str(error)
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return where + error.strerror


def _fail(run: Invocation, error: BaseException) -> int:
    """Say why a command failed and return its exit code."""
    code = exit_code(error)
    message = "interrupted" if code == 130 else _message(error)
    if code == 70:
        message = f"internal error: {type(error).__name__}: {error}"
        if not run.terminal.verbose:
            message += "\nThis is a defect of serde; -v shows the traceback to report."
    if run.terminal.verbose:
        import traceback

        run.terminal.error("".join(traceback.format_exception(error)).rstrip())
    run.terminal.error(message if code == 1 else f"serde: {message}")
    if isinstance(error, UnsupportedModelError):
        run.terminal.error(error.report.coverage)
    try:
        run.close(code, message)
    except (OSError, SerdeError) as failure:
        run.terminal.error(f"serde: the report could not be written: {_message(failure)}")
    return code
