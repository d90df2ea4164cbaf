"""Shapes and dtypes that the caller gives for inputs of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from serde.errors import FormatError, OptionError
from serde.relay.ir.dims import DimLike

__all__ = ["bind_inputs", "check_names", "check_rank", "missing_shapes_text"]

T = TypeVar("T")
Shapes = Mapping[str, Sequence[DimLike]]


def bind_inputs(
    names: Sequence[str],
    shapes: Shapes,
    dtypes: Mapping[str, str],
    *,
    weights: Collection[str] = (),
    unused: Collection[str] = (),
) -> tuple[Shapes, Mapping[str, str]]:
    """Return the shapes and dtypes by input, those without a name for the only one.

    Args:
        names: The inputs.
        shapes: The shapes given.
        dtypes: The dtypes given.
        weights: Names that are weights.
        unused: Names of what would be inputs if a result depended on them.

    Raises:
        OptionError: There is no such input, or not only one.
    """
    found = _by_name(names, shapes, "shape"), _by_name(names, dtypes, "dtype")
    unknown = sorted({*found[0], *found[1]}.difference(names, unused))
    if unknown and unknown[0] in weights:
        raise OptionError(f"{unknown[0]} is a weight of the model, not an input")
    if unknown:
        raise OptionError(f"no input is called {unknown[0]}; inputs: {', '.join(names)}")
    return found


def _by_name(names: Sequence[str], given: Mapping[str, T], what: str) -> dict[str, T]:
    if "" in given and len(names) != 1:
        raise OptionError(f"a {what} without a name, but the inputs are {', '.join(names)}")
    return {name or names[0]: each for name, each in given.items()}


def check_names(names: Sequence[str], source: str | None) -> None:
    """Refuse inputs of a model of which two have one name, or one has none."""
    if "" in names:
        raise FormatError("an input without a name", path=source)
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise FormatError(f"a second input is called {twice!r}", path=source)


def check_rank(name: str, given: Sequence[DimLike], declared: Sequence[DimLike]) -> None:
    """Refuse a shape for an input that the model declares with another number of axes."""
    if len(given) != len(declared):
        raise OptionError(
            f"input_shapes: {name}: expected {len(declared)} axes, found {len(given)}"
        )


def missing_shapes_text(names: Sequence[str]) -> str:
    """Return what to say of inputs that have no shape."""
    shapes: Shapes = {names[0]: (1, 3, 224, 224)}
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return (
        f"the {'shape' if len(names) == 1 else 'shapes'} of {shown} "
        f"{'is' if len(names) == 1 else 'are'} missing; "
        f"give --input-shape {names[0]}:1,3,224,224 or input_shapes={dict(shapes)}"
    )
