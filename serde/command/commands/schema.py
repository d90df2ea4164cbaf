"""``serde schema``."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from serde.command.base import Command
from serde.command.invocation import Invocation
from serde.command.parameters import printing_flags
from serde.command.render import as_json
from serde.core.texts import near_names

__all__ = ["command"]


def _complete_commands(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    group = ctx.find_root().command
    names = group.list_commands(ctx) if isinstance(group, click.Group) else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _properties() -> dict[str, Any]:
    return {"schema": {"description": "The schema.", "type": "object"}}


@click.command(
    "schema",
    cls=Command,
    result=_properties,
    examples=["serde schema convert", "serde schema inspect > inspect.schema.json"],
)
@click.argument("name", metavar="COMMAND", shell_complete=_complete_commands)
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print the JSON Schema of what a command prints with --json."""
    run: Invocation = ctx.obj
    run.configure(options)
    from serde.command.cli import COMMANDS, find_command
    from serde.command.schemas import command_schema

    name = options["name"]
    if name not in COMMANDS:
        raise click.UsageError(f"No such command {name!r}.{near_names(name, COMMANDS)}", ctx)
    found = find_command(name)
    own = (found.result, found.codes) if isinstance(found, Command) else (None,)
    schema = command_schema(name, *own)
    if run.as_json:
        run.print_result({"schema": schema})
        return
    run.terminal.raw(as_json(schema))
