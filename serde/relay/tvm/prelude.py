"""TVM's Prelude: standard functions and data types."""

from __future__ import annotations

from functools import cache
from typing import Final

from serde.relay.ir import GlobalVar, IRModule

__all__ = ["Prelude"]

_GLOBALS: Final = (
    "id", "compose", "flip", "hd", "tl", "nth", "update", "map", "foldl", "foldr", "foldr1",
    "concat", "filter", "zip", "rev", "map_accuml", "map_accumr", "unfoldl", "unfoldr", "sum",
    "length", "tmap", "size", "iterate",
)  # fmt: skip
_TEXT: Final = "prelude.rly"


@cache
def _standard() -> IRModule:
    """Return the module of all that a Prelude adds to an empty one."""
    mod = IRModule()
    mod.import_from_std(_TEXT)
    return mod


class Prelude:
    """The standard definitions in a module; each function is an attribute, as ``prelude.map``.

    Args:
        mod: The module that gets them; a new one by default.

    Raises:
        RelayError: A name is taken in the module.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = mod if mod is not None else IRModule()
        known = {header.name_hint for header in self.mod.type_definitions}
        if "List" in known:
            self.mod.import_from_std(_TEXT)
        else:
            self.mod.update_standard(_standard(), _TEXT)

    def __getattr__(self, name: str) -> GlobalVar:
        if name in _GLOBALS:
            return self.mod.get_global_var(name)
        raise AttributeError(f"a Prelude has no function {name}")
