"""The metadata of a text: constants and texts that TVMScript cannot spell."""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final, TypeAlias

from serde.core import Array, budget, parse_json
from serde.errors import FormatError
from serde.relay.text.containers import DLPACK_CODES, array_from_bytes

__all__ = ["Metadata", "read_metadata", "split_metadata"]

Metadata: TypeAlias = Mapping[tuple[str, int], Array | str]
"""What stands at a place of the metadata: key and number."""

_LITERAL: Final = re.compile(
    r'(?:[ \t]*(?:#[^\n]*)?\n)*metadata = tvm\.ir\.load_json\("""(.*?)"""\)[ \t]*\n', re.DOTALL
)
_CONSTANTS: Final = {"ir.GenericConst": "value", "relax.expr.Constant": "data"}
"""The field with the values, for each name that releases have for a constant."""


def split_metadata(text: str) -> tuple[str | None, str]:
    """Return the JSON that a text begins with, if any, and the text without it.

    The lines of the rest keep their numbers.

    Raises:
        FormatError: The JSON is not spelled as a text of Python.
    """
    found = _LITERAL.match(text)
    if found is None:
        return None, text
    try:
        literal = ast.literal_eval(f'"""{found[1]}"""')
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise FormatError(f"metadata: {error}") from None
    return literal, "\n" * found[0].count("\n") + text[found.end() :]


def read_metadata(document: str) -> Metadata:
    """Return what metadata holds.

    Args:
        document: A graph of objects as ``tvm.ir.save_json`` writes it.

    Raises:
        FormatError: It is no such graph, or holds other objects than arrays and texts.
    """
    try:
        root = parse_json(document)
    except ValueError as error:
        raise FormatError(f"metadata: {error}") from None
    nodes = root.get("nodes") if isinstance(root, dict) else None
    if not isinstance(nodes, list):
        raise FormatError("metadata: expected a list of nodes")
    pairs = _data(nodes, root.get("root_index"), "ffi.Map")
    if not isinstance(pairs, list) or len(pairs) % 2:
        raise FormatError("metadata: expected a map")
    found: dict[tuple[str, int], Array | str] = {}
    known: dict[tuple[str, int], Array | str] = {}
    for key, items in zip(pairs[::2], pairs[1::2], strict=True):
        name = _data(nodes, key, "ffi.String")
        values = _data(nodes, items, "ffi.Array")
        if not isinstance(name, str) or not isinstance(values, list):
            raise FormatError("metadata: expected texts, each with a list")
        for number, each in enumerate(values):
            if type(each) is int and (name, each) in known:
                value = known[name, each]
                nbytes = len(value) if isinstance(value, str) else value.nbytes
                budget().draw("constants", nbytes, "a constant that is there again")
                found[name, number] = value
            else:
                found[name, number] = known[name, each] = _value(nodes, each, name)
    return found


def _node(nodes: Sequence[AnyValue], index: AnyValue) -> Mapping[str, AnyValue]:
    if type(index) is not int or not 0 <= index < len(nodes) or not isinstance(nodes[index], dict):
        raise FormatError(f"metadata: no node {index!r} among {len(nodes)}")
    return nodes[index]


def _data(nodes: Sequence[AnyValue], index: AnyValue, kind: str) -> AnyValue:
    node = _node(nodes, index)
    if node.get("type") != kind:
        raise FormatError(f"metadata: expected {kind} at {index}, found {node.get('type')!r}")
    return node.get("data")


def _value(nodes: Sequence[AnyValue], index: AnyValue, kind: str) -> Array | str:
    if kind == "ffi.String":
        text = _data(nodes, index, kind)
        if not isinstance(text, str):
            raise FormatError(f"metadata: expected a text at {index}")
        return text
    if kind not in _CONSTANTS:
        raise FormatError(f"metadata: an object of the kind {kind!r} is not known")
    fields = _data(nodes, index, kind)
    values = fields.get(_CONSTANTS[kind]) if isinstance(fields, dict) else None
    encoded = _data(nodes, values, "ffi.Tensor")
    try:
        return array_from_bytes(base64.b64decode(encoded, validate=True), DLPACK_CODES)
    except (TypeError, ValueError, binascii.Error) as error:
        raise FormatError(f"metadata: node {values}: {error}") from None
