"""Khronos' parser: texts of NNEF as native models.

What has expressions or uses extensions of the language is parsed in a process of its own
(:mod:`serde.nnef.text.apart`); flat texts, which are all that tools write, are parsed here.
"""

from __future__ import annotations

import locale
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, Final

from serde.core import budget, require
from serde.errors import FormatError
from serde.nnef.graphs import check_model, model_of_graph
from serde.nnef.model import NnefModel
from serde.nnef.text.apart import parse_apart
from serde.nnef.text.scan import EXPANSION, check_expansion, scan_quantization, scan_text
from serde.nnef.text.signs import SignedText, bracket_signs
from serde.nnef.text.tokens import place_of, text_fault

__all__ = ["parse", "place_of_name"]

_PLACE: Final = re.compile(r"^Parse error in '([^']*)' \[(\d+):(\d+)\] (.*)$", re.DOTALL)
_ORIGIN: Final = "\n... evaluated from"
_MAX_MESSAGE: Final = 500


def parse(
    text: str,
    quantization: str | None,
    path: str | os.PathLike[str] | None,
    *,
    quantization_path: str | os.PathLike[str] | None = None,
    whole: Collection[str] = (),
) -> NnefModel:
    """Return the graph of a text, without the data of its variables.

    Fragments that the text defines are expanded, however deep they lie in each other.

    Args:
        text: Of ``graph.nnef``.
        quantization: Text of ``graph.quant``, if there is one.
        path: The file, for messages.
        quantization_path: The file of `quantization`, for messages.
        whole: Names of fragments of the text's own that are not expanded.

    Raises:
        FormatError: The text is malformed; the message tells line and column.
        LimitError: Its fragments and lists expand to more operations than may be made.
        MissingDependency: The parser is not installed.
    """
    nnef = require("nnef")
    found = scan_text(text, path)
    lowered = sorted(found.fragments - set(whole))
    check_expansion(text, found, lowered, path)
    quantized: Mapping[str, int] = {}
    computed = None
    if quantization is not None:
        quantized, computed = scan_quantization(quantization, quantization_path)
    flat = found.expression is None
    signed = SignedText(text, ()) if flat else bracket_signs(text, path)
    fault = None
    if found.expression is not None:
        suspect = min(found.recursions.values(), default=found.expression)
        fault = partial(text_fault, text, suspect, path)
    elif quantization is not None and computed is not None:
        fault = partial(text_fault, quantization, computed, quantization_path)
    elif locale.localeconv()["decimal_point"] != ".":
        # The parser reads numbers as the locale writes them.
        fault = partial(text_fault, text, 0, path)
    try:
        graph = _parse(nnef, signed.text, quantization, lowered, fault)
    except nnef.Error as error:
        raise _fault(str(error), path, quantization_path, signed) from None
    expanded = found.count_expanded(len(graph.operations))
    budget().draw("nodes", expanded, EXPANSION)
    for name, start in quantized.items():
        if name not in graph.tensors:
            message = f"no tensor is called {name!r}"
            raise text_fault(str(quantization), start, quantization_path, message)
    model = model_of_graph(graph, path)
    check_model(model, path, place=lambda name: place_of_name(text, name))
    return model


def _parse(
    nnef: AnyValue,
    text: str,
    quantization: str | None,
    lowered: Sequence[str],
    fault: Callable[[str], FormatError] | None,
) -> AnyValue:
    """Return what the parser makes of a text; where errors have a maker, in another process."""
    if fault is not None:
        return parse_apart(text, quantization, lowered, nnef, fault)
    try:
        return nnef.parse_string(text, quantization, stdlib="", lowered=lowered)
    except ValueError as error:
        raise FormatError(f"the parser failed: {error}") from None


def place_of_name(text: str, name: str) -> str:
    """Return where a text speaks of a name first, to begin a message with."""
    match = re.search(rf"\b{re.escape(name)}\b", text)
    return "" if match is None else f"{place_of(text, match.start())}: "


def _fault(
    message: str,
    path: str | os.PathLike[str] | None,
    quantization_path: str | os.PathLike[str] | None,
    signed: SignedText,
) -> FormatError:
    """Return an error of the parser as one of ours."""
    message = message.partition(_ORIGIN)[0]
    match = _PLACE.match(message)
    if match is None:
        return FormatError(message[:_MAX_MESSAGE], path=path)
    source, line, column, what = match.groups()
    if source == "quantization":
        path = quantization_path
    else:
        column = signed.column(int(line), int(column))
    return FormatError(f"line {line}, column {column}: {what[:_MAX_MESSAGE]}", path=path)
