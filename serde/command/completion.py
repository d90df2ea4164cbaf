"""What a shell completes: values of flags that have a known few, and paths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import click
from click.shell_completion import CompletionItem

__all__ = ["complete_formats", "complete_limits", "complete_lossy_steps", "complete_paths"]

Items = list[CompletionItem[str]]


def _starting(pairs: Iterable[tuple[str, str]], incomplete: str) -> Items:
    return [CompletionItem(each, help=text) for each, text in pairs if each.startswith(incomplete)]


def complete_paths(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Leave a path to the shell."""
    return [CompletionItem(incomplete, type="file")]


def complete_formats(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return the names of formats."""
    from serde.bridge.formats import format_names

    return _starting(((name, "") for name in format_names()), incomplete)


def complete_lossy_steps(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return the names of lossy steps, with what they lose."""
    from serde.core.lossy import lossy_steps

    return _starting(((step.name, step.loses) for step in lossy_steps().values()), incomplete)


def complete_limits(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Return the limits with what they are at first."""
    from serde.core.limits import Limits

    first = Limits()
    pairs = ((f"{item.name}={getattr(first, item.name)}", "") for item in fields(Limits))
    return _starting(pairs, incomplete)
