"""ONNX models in text: ONNX's own syntax, protobuf's text form and JSON.

The suffix tells them apart, as in the onnx package, whose parsers read them. Before these see
a text its length and the depth of its brackets are bounded, since they call themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import onnx
import onnx.parser
from google.protobuf import json_format, text_format

from serde.core.limits import MAX_ONNX_TEXT_BYTES
from serde.errors import FormatError
from serde.io.contained import read_small

__all__ = ["SUFFIXES", "detect_text", "is_text", "read_text"]

_DEPTH: Final = 100
"""Deepest nesting of brackets, which is that of messages that protobuf reads."""

_SYNTAX: Final = frozenset({".onnxtxt", ".onnxtext"})
_PROTOBUF: Final = frozenset({".textproto", ".txtpb", ".prototxt", ".pbtxt"})
_JSON: Final = frozenset({".json", ".onnxjson"})

SUFFIXES: Final = _SYNTAX | _PROTOBUF | _JSON
"""Suffixes of files that hold text."""

_MARKS = {
    **dict.fromkeys(_PROTOBUF, (re.compile(rb"^[^\S\n]*ir_version[^\S\n]*:", re.MULTILINE),)),
    **dict.fromkeys(
        _JSON, (re.compile(rb'"(irVersion|ir_version)"\s*:'), re.compile(rb'"graph"\s*:\s*\{'))
    ),
}
"""What tells a model in files that may as well hold something else, such as a report."""

_TOKEN = re.compile(r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|#[^\n]*|[\[{(]|[\]})]""")


def is_text(path: str) -> bool:
    """Whether a file holds text, judged by its suffix."""
    return Path(path).suffix.lower() in SUFFIXES


def detect_text(path: Path) -> bool:
    """Whether a file holds a model in text, where its suffix is one of `SUFFIXES`."""
    suffix = path.suffix.lower()
    if suffix in _SYNTAX or suffix == ".onnxjson":
        return True
    try:
        content = _content(str(path))
        return all(mark.search(content) for mark in _MARKS[suffix])
    except FormatError:
        return False


def read_text(path: str) -> onnx.ModelProto:
    """Return the model in a file of text.

    Raises:
        FormatError: It is too long or nested too deeply, or not what its suffix says.
    """
    try:
        text = _content(path).decode()
    except UnicodeDecodeError as error:
        raise FormatError("expected UTF-8", path=path, offset=error.start) from None
    _check_depth(text, path)
    parse = _PARSERS[Path(path).suffix.lower()]
    try:
        return parse(text)
    except (
        onnx.parser.ParseError,
        text_format.ParseError,
        json_format.ParseError,
        IndexError,
        OverflowError,
        ValueError,
    ) as error:
        reason = " ".join(str(error).split())[:300]
        raise FormatError(f"expected an ONNX model in text: {reason}", path=path) from None


def _content(path: str) -> bytes:
    expected = f"at most {MAX_ONNX_TEXT_BYTES} bytes of text"
    return read_small(path, MAX_ONNX_TEXT_BYTES, expected)


def _check_depth(text: str, path: str) -> None:
    """Refuse brackets that are nested too deeply; those in strings and comments do not count."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "[{(":
            depth += 1
        elif first in "]})":
            depth -= 1
        if depth > _DEPTH:
            raise FormatError(
                f"brackets are nested more than {_DEPTH} deep", path=path, offset=token.start()
            )


def _parse_protobuf(text: str) -> onnx.ModelProto:
    return text_format.Parse(text, onnx.ModelProto())


def _parse_json(text: str) -> onnx.ModelProto:
    return json_format.Parse(text, onnx.ModelProto())


_PARSERS: dict[str, Callable[[str], onnx.ModelProto]] = {
    **dict.fromkeys(_SYNTAX, onnx.parser.parse_model),
    **dict.fromkeys(_PROTOBUF, _parse_protobuf),
    **dict.fromkeys(_JSON, _parse_json),
}
