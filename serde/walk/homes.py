"""Where the names are that converters of every format use."""

from __future__ import annotations

from typing import Final

__all__ = ["HOMES"]

HOMES: Final = {
    "holes": "Hole Incomplete Placeholder",
    "pairs": "one_of pair reads writes",
    "scope": "Scope",
    "takes": "AXES CONSTANT FLOATS SIGNED Takes at dtypes like ranks",
}
"""Public names by the module of this package that has them."""
