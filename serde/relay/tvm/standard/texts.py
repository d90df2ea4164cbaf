"""The texts of this package, and modules that get what they define."""

from __future__ import annotations

from importlib import resources
from typing import Final

from serde.errors import RelayError
from serde.relay.ir import IRModule
from serde.relay.text.parser import fromtext

__all__ = ["import_into"]

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
