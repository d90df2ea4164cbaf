"""``serde completion``."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import get_completion_class

from serde.command.base import Command
from serde.command.invocation import Invocation
from serde.command.parameters import printing_flags

__all__ = ["command"]


def _properties() -> dict[str, Any]:
    return {"shell": {"type": "string"}, "script": {"type": "string"}}


@click.command(
    "completion",
    cls=Command,
    result=_properties,
    examples=[
        "serde completion bash > ~/.local/share/bash-completion/completions/serde",
        "serde completion zsh > ~/.zfunc/_serde",
        "serde completion fish > ~/.config/fish/completions/serde.fish",
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@printing_flags
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print the script that lets a shell complete commands, flags and their values."""
    run: Invocation = ctx.obj
    run.configure(options)
    found = get_completion_class(options["shell"])
    if found is None:
        raise click.UsageError(f"click completes nothing in {options['shell']}")
    script = found(ctx.find_root().command, {}, "serde", "_SERDE_COMPLETE").source()
    if run.as_json:
        run.print_result({"shell": options["shell"], "script": script})
        return
    run.terminal.raw(script.strip("\n"))
