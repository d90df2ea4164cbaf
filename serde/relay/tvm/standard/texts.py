"""The texts of this package, and modules that get what they define."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from string import Template
from typing import Final

from serde.errors import RelayError
from serde.relay.ir import IRModule, infer_module
from serde.relay.text.parser import fromtext, parse_definitions

__all__ = ["define", "fill", "import_into"]

_TEXTS: Final = ("core.rly", "gradient.rly", "nat.rly", "prelude.rly")


def import_into(mod: IRModule, file_name: str) -> None:
    """Add what a text of this package defines to a module; its functions are typed then.

    Raises:
        RelayError: There is no such text, or it names what the module lacks or has already.
    """
    if file_name not in _TEXTS:
        raise RelayError(f"no text is called {file_name} (there are: {', '.join(_TEXTS)})")
    text = resources.files(__package__).joinpath(file_name).read_text(encoding="utf-8")
    whole = fromtext(text, file_name, mod)
    mod.update(whole)
    mod.checked = whole.checked


class _Names(dict[str, str]):
    """What names in a text stand for, as a function has it."""

    def __init__(self, find: Callable[[str], str]) -> None:
        self._find = find

    def __missing__(self, name: str) -> str:
        return self._find(name)


class _Text(Template):
    idpattern = r"(?a:[a-z_]+(?:\.[a-z_]+)?)"


def fill(file_name: str, find: Callable[[str], str], part: str = "") -> str:
    """Return a text of this package, or a part of it, with what ``$name`` stands for.

    Args:
        file_name: The text.
        find: Returns what a name stands for.
        part: What stands on the line before the part, behind ``//``; all of it if empty.
    """
    text = resources.files(__package__).joinpath(file_name).read_text(encoding="utf-8")
    if part:
        text = text.partition(f"// {part}\n")[2].partition("\n// ")[0]
    return _Text(text).substitute(_Names(find))


def define(mod: IRModule, text: str, *, infer: bool = False) -> None:
    """Add definitions to a module.

    Args:
        mod: The module.
        text: Relay text without a header; what it defines again is replaced.
        infer: Whether all of the module is typed then.

    Raises:
        RelayError: It names what the module lacks.
    """
    whole = parse_definitions(f'#[version = "0.0.5"]\n{text}', "definitions", mod)
    mod.update(infer_module(whole)[0] if infer else whole)
    mod.checked = infer
