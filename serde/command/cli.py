"""The command line: ``serde convert``, ``inspect``, ``check``, ``partition`` and others.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 the
model is refused (of ``diff``, as of diff(1): the models differ; of ``partition``: some of
it stays on the host; of ``route``: so it would with a target that is asked for), 2 usage,
3 malformed input, 4 the check failed, 5 it could not be made or says nothing, 6 a package is
missing, 7 a store fails, 70 a defect of serde, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

import click

from serde._version import __version__
from serde.command.console import Terminal
from serde.command.invocation import Invocation
from serde.command.streams import usable_streams
from serde.core import error_message, exit_code, near_names
from serde.errors import SerdeError, UnsupportedModelError

__all__ = ["cli", "find_command", "main"]

COMMANDS = (
    "batch", "bisect", "check", "completion", "convert", "diff", "edit", "formats", "inspect",
    "ops", "partition", "route", "view", "schema",
)  # fmt: skip
"""Names of the commands; each is ``command`` in the module of its name."""


_BEGIN = """\
serde converts trained models between formats. To begin, with a model of yours:

  serde inspect net.onnx                       what it holds
  serde convert net.onnx --to coreml --check   the same for Core ML, compared with it
  serde view net.onnx                          its graph, as a page for a browser

serde --help lists the commands, serde formats what is read and written."""
"""What is printed where nothing is asked for."""


class _Commands(click.Group):
    """A group whose commands are loaded when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is asked for; tell those that are like a mistyped one."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {name!r}.{near_names(name, COMMANDS)}", ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where more is told."""
        with formatter.section("Help for a command, with examples"):
            formatter.write("  serde convert --help\n")
        with formatter.section("Completion in bash; zsh and fish likewise"):
            formatter.write('  eval "$(serde completion bash)"\n')


def find_command(name: str) -> click.Command:
    """Return a command by its name."""
    return import_module(f"serde.command.commands.{name}").command


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, message="serde %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Converts trained models between formats, through Relay."""
    if ctx.invoked_subcommand is None:
        click.echo(_BEGIN)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments without the program's name; those of the process if left out.

    Returns:
        The exit code.
    """
    with usable_streams():
        if _package_is_a_mere_folder():
            from serde.core.installation import LOST

            sys.stderr.write(f"serde: {LOST}\n")
            return 6
        return _run(list(sys.argv[1:] if argv is None else argv))


def _package_is_a_mere_folder() -> bool:
    """Whether ``serde/__init__.py`` is gone, as uninstalling pyserde leaves it."""
    return getattr(sys.modules["serde"], "__file__", None) is None


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
        run.as_json |= "--json" in args
        run.close(error.exit_code, error.format_message())
        return error.exit_code
    except (Exception, KeyboardInterrupt) as error:
        return _fail(run, error)
    finally:
        run.finish()


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


def _fail(run: Invocation, error: BaseException) -> int:
    """Say why a command failed and return its exit code."""
    code = 130 if isinstance(error, click.Abort) else exit_code(error)
    message = "interrupted" if code == 130 else error_message(error)
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
        run.terminal.error(f"serde: the report could not be written: {error_message(failure)}")
    return code
