"""Arguments of nodes as ``.pt2`` archives write them: each says of which kind it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from serde.torch.model import Argument, Ref
from serde.torch.pt2.document import Document
from serde.torch.pt2.versions import DTYPES, LAYOUTS, MEMORY_FORMATS

__all__ = ["CONSTANTS", "Decoder", "decode"]

Decoder = Callable[[Document], Argument]

CONSTANTS: Final = frozenset({"as_none", "as_int", "as_float", "as_bool", "as_string"})
"""Kinds of inputs that had one value when the program was exported, and keep it."""


def decode(document: Document, graph: Decoder) -> Argument:
    """Return an argument.

    Args:
        document: The argument, an object of one key.
        graph: Reads a graph inside.

    Raises:
        FormatError: It is malformed, of an unknown kind, or an object of a class of C++.
    """
    kind, value = document.choice()
    if kind == "as_graph":
        return graph(value.field("graph"))
    if kind == "as_string_to_argument":
        return {name: decode(each, graph) for name, each in value.entries()}
    if kind == "as_custom_obj":
        name, class_ = value.field("name").text(), value.field("class_fqn").text()
        raise document.fault(f"{name[:100]!r} is an object of {class_[:100]}, which is not read")
    one = _KINDS.get(kind)
    if one is not None:
        return one(value)
    several = _LISTS.get(kind)
    if several is None:
        raise document.fault(f"an argument of the unknown kind {kind[:100]!r}")
    return [several(each) for each in value.items()]


def _tensor(document: Document) -> Argument:
    return Ref(document.field("name").text())


def _symbolic(document: Document) -> Argument:
    """Return a number that is a value of the graph, or is known."""
    kind, value = document.choice()
    if kind == "as_name":
        return Ref(value.text())
    if kind not in CONSTANTS:
        raise document.fault(f"a number of the unknown kind {kind[:100]!r}")
    return _KINDS[kind](value)


def _optional(document: Document) -> Argument:
    kind, value = document.choice()
    if kind not in ("as_tensor", "as_none"):
        raise document.fault(f"a tensor of the unknown kind {kind[:100]!r}")
    return _KINDS[kind](value)


def _complex(document: Document) -> Argument:
    return complex(document.field("real").number(), document.field("imag").number())


def _device(document: Document) -> Argument:
    index = document.optional("index")
    kind = document.field("type").text()
    return kind if index is None else f"{kind}:{index.integer()}"


def _read_named(document: Document, *, names: Mapping[int, str]) -> Argument:
    """Return the name of what a number stands for."""
    found = names.get(document.integer())
    if found is None:
        raise document.fault(f"the unknown number {document.value}")
    return found


def _list_of(one: Decoder) -> Decoder:
    return lambda document: [one(each) for each in document.items()]


_KINDS: Final[dict[str, Decoder]] = {
    "as_none": lambda _document: None,
    "as_tensor": _tensor,
    "as_int": Document.integer,
    "as_float": Document.number,
    "as_string": Document.text,
    "as_bool": Document.boolean,
    "as_sym_int": _symbolic,
    "as_sym_float": _symbolic,
    "as_sym_bool": _symbolic,
    "as_scalar_type": partial(_read_named, names=DTYPES),
    "as_memory_format": partial(_read_named, names=MEMORY_FORMATS),
    "as_layout": partial(_read_named, names=LAYOUTS),
    "as_device": _device,
    "as_operator": Document.text,
    "as_optional_tensor": _optional,
    "as_complex": _complex,
}

_LISTS: Final[dict[str, Decoder]] = {
    "as_tensors": _tensor,
    "as_ints": Document.integer,
    "as_floats": Document.number,
    "as_strings": Document.text,
    "as_bools": Document.boolean,
    "as_sym_ints": _symbolic,
    "as_sym_floats": _symbolic,
    "as_sym_bools": _symbolic,
    "as_optional_tensors": _optional,
    "as_nested_tensors": _list_of(_tensor),
    "as_int_lists": _list_of(Document.integer),
    "as_float_lists": _list_of(Document.number),
}
