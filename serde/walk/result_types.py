"""Types of results that users tell, where neither the file nor a framework does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core import dtype_name, shown
from serde.errors import OptionError, RelayError
from serde.relay.ir import Any, Dim, TensorType, symbol

__all__ = ["parse_result_types", "read_result_types", "read_types"]

_TYPE: Final = re.compile(r"\s*(?P<dtype>\w+)\s*\[(?P<shape>[^\[\]]*)\]\s*(?P<next>,|;|\Z)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*\Z")


def read_result_types(given: AnyValue) -> dict[str, tuple[TensorType, ...]]:
    """Return the types that an option tells, by the names of nodes.

    Raises:
        OptionError: It is no such dict.
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise OptionError(
            f"result_types: expected types by the names of nodes, found {shown(given)}"
        )
    return {name: tuple(read_types(value, name)) for name, value in given.items()}


def parse_result_types(texts: Sequence[str]) -> dict[str, tuple[TensorType, ...]]:
    """Return the types of texts such as ``node=float32[1,10],int64[N]``.

    Raises:
        OptionError: A text is none of these, or names a node again.
    """
    found: dict[str, tuple[TensorType, ...]] = {}
    for text in texts:
        name, equals, types = text.rpartition("=")
        if not equals or not name:
            raise OptionError(f"--result-types: expected NODE=float32[1,10], found {shown(text)}")
        if name in found:
            raise OptionError(f"--result-types: {name} is given twice")
        found[name] = tuple(read_types(types, name))
    return found


def read_types(given: AnyValue, name: str) -> Iterator[TensorType]:
    """Yield the types that a text, a type, or a list of these says.

    Raises:
        OptionError: It says none.
    """
    if isinstance(given, TensorType):
        yield given
    elif isinstance(given, str):
        yield from _types_of_text(given, name)
    elif isinstance(given, Sequence) and given:
        for each in given:
            yield from read_types(each, name)
    else:
        raise _fault(given, name)


def _types_of_text(text: str, name: str) -> Iterator[TensorType]:
    place = 0
    while True:
        found = _TYPE.match(text, place)
        if found is None:
            raise _fault(text, name)
        dims = (
            [each.strip() for each in found["shape"].split(",")] if found["shape"].strip() else []
        )
        try:
            shape = [_dim(each) for each in dims]
            yield TensorType(shape, dtype_name(found["dtype"]))
        except (TypeError, ValueError, RelayError):
            raise _fault(text, name) from None
        place = found.end()
        if not found["next"]:
            return


def _dim(text: str) -> Dim:
    if text.isdecimal():
        return int(text)
    if text in ("?", "-1"):
        return Any()
    if not _NAME.match(text):
        raise ValueError(text)
    return symbol(text)


def _fault(given: AnyValue, name: str) -> OptionError:
    return OptionError(
        f"result_types: {name}: expected a type such as float32[1,10], found {shown(given)}"
    )
