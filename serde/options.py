"""What every format takes when it is read or written, and how arguments become options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any as AnyValue
from typing import SupportsIndex

from serde.errors import OptionError
from serde.relay.ir.dims import Any, DimLike, SymDim
from serde.weights import dtype_name

__all__ = ["ExportOptions", "ImportOptions", "bind_options"]


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options that every format takes when it is read.

    Attributes:
        input_shapes: Shape of each input: integers, names of dynamic dimensions, ``"?"`` (also
            -1 or None) for one without a name; a bare shape if there is one input.
        input_dtypes: dtype of each input that is not what the format says or implies; a bare
            dtype if there is one input.
        allow: Names of lossy steps that may be taken.
    """

    input_shapes: Mapping[str, Sequence[DimLike]] = field(default_factory=dict)
    input_dtypes: Mapping[str, str] = field(default_factory=dict)
    allow: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        shapes: AnyValue = self.input_shapes
        dtypes: AnyValue = self.input_dtypes
        named_shapes = shapes if isinstance(shapes, Mapping) else {"": shapes}
        named_dtypes = dtypes if isinstance(dtypes, Mapping) else {"": dtypes}
        checked = {name: _shape(name, shape) for name, shape in named_shapes.items()}
        object.__setattr__(self, "input_shapes", checked)
        names = {name: _dtype(name, dtype) for name, dtype in named_dtypes.items()}
        object.__setattr__(self, "input_dtypes", names)


def _shape(name: str, shape: AnyValue) -> tuple[DimLike, ...]:
    """Return a shape that a caller gave, unnamed dynamic dimensions as ``"?"``."""
    where = f"input_shapes: {name or 'the input'}"
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise OptionError(f"{where}: expected a shape such as (1, 3, 224, 224), found {shape!r}")
    dims: list[DimLike] = []
    for dim in shape:
        if isinstance(dim, (str, SymDim, Any)):
            dims.append(dim)
        elif dim is None or (isinstance(dim, SupportsIndex) and index(dim) == -1):
            dims.append("?")
        elif isinstance(dim, SupportsIndex) and index(dim) >= 0:
            dims.append(index(dim))
        else:
            raise OptionError(
                f"{where}: expected a length, a name such as 'N', or '?', found {dim!r} in {shape}"
            )
    return tuple(dims)


def _dtype(name: str, dtype: AnyValue) -> str:
    try:
        if dtype is None:
            raise TypeError
        return dtype_name(dtype)
    except TypeError:
        where = f"input_dtypes: {name or 'the input'}"
        raise OptionError(f"{where}: expected a dtype such as 'int32', found {dtype!r}") from None


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options that every format takes when it is written.

    Attributes:
        allow: Names of lossy steps that may be taken.
    """

    allow: frozenset[str] = frozenset()

    @property
    def keeps_functions(self) -> bool:
        """Whether global functions are to stay whole until the bridge sees them."""
        return False

    @property
    def computes_float16(self) -> bool:
        """Whether what is written computes in float16 whatever the model does."""
        return False


def bind_options(
    cls: type[AnyValue], given: Mapping[str, AnyValue]
) -> tuple[AnyValue, dict[str, AnyValue]]:
    """Return an options object made of the entries of `given` that it has, and the rest."""
    names = {item.name for item in dataclasses.fields(cls)}
    own = {name: value for name, value in given.items() if name in names}
    rest = {name: value for name, value in given.items() if name not in names}
    return cls(**own), rest
