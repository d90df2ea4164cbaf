"""The texts of this package, and modules that get what they define."""

from __future__ import annotations

from importlib import resources
from typing import Final

from serde.errors import RelayError
from serde.relay.ir import IRModule, infer_module
from serde.relay.text.parser import fromtext, parse_definitions

__all__ = ["define", "import_into"]

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
