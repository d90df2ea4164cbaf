"""Where the models of a public function may lie."""

from __future__ import annotations

from collections.abc import Mapping

from serde.core.records import dataclass

__all__ = ["Locations"]


@dataclass(frozen=True, slots=True)
class Locations:
    """Which parameters of a function name models that may lie in a store or an archive.

    Weights that it takes as ``params`` may lie in a store, too.

    Attributes:
        reads: Parameters of models that are read, each with the one that names its format.
        writes: The parameter of the model or folder that is written, empty if none is.
        shared: Whether the function's options are those of all models, or of the first alone.
        keeps: Attribute of the result that reads the files later, empty if none does.
    """

    reads: Mapping[str, str]
    writes: str = ""
    shared: bool = False
    keeps: str = ""
