"""Texts of NNEF: graphs and what they say of quantisation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.parsing import parse_json
from serde.nnef.fragments import FRAGMENTS, REQUIRED
from serde.nnef.model import Definition, NnefModel, Operation, Ref

__all__ = ["graph_text", "metadata_of", "quantization_text"]

_INDENT: Final = "    "
_MOST_COLUMNS: Final = 100
_MOST_METADATA: Final = 2**23
"""Characters in which metadata is looked for; each may be an escape of several."""


_METADATA: Final = "# metadata "


def metadata_of(text: str) -> dict[str, str]:
    """Return what comments above the graph say as :func:`graph_text` writes it."""
    found: dict[str, str] = {}
    head = text[:_MOST_METADATA].partition("\ngraph ")[0]
    for line in head.splitlines():
        if line.startswith(_METADATA):
            with suppress(ValueError):
                found |= parse_json(f"{{{line.removeprefix(_METADATA)}}}", parse_constant=str)
    return {name: text for name, text in found.items() if isinstance(text, str)}


def graph_text(model: NnefModel) -> str:
    """Return the text of ``graph.nnef``."""
    return "".join(f"{line}\n" for line in _graph_lines(model))


def _graph_lines(model: NnefModel) -> Iterator[str]:
    yield "version 1.0;"
    for name, text in model.metadata.items():
        yield f"{_METADATA}{json.dumps(name)}: {json.dumps(text)}"
    if model.definitions:
        yield "extension KHR_enable_fragment_definitions;"
    for definition in model.definitions:
        yield ""
        yield from _definition_lines(definition)
    yield ""
    yield f"graph {model.name}({', '.join(model.inputs)}) -> ({', '.join(model.outputs)})"
    yield "{"
    for operation in model.operations:
        comment = _comment(operation, model.names)
        yield f"{_INDENT}{_assignment(operation)};{comment}"
    yield "}"


def _definition_lines(definition: Definition) -> Iterator[str]:
    if not definition.operations:
        yield _declaration(definition)
        return
    inputs = [f"{name}: tensor<{kind}>" for name, kind in definition.inputs.items()]
    results = ", ".join(f"{name}: tensor<{kind}>" for name, kind in definition.results.items())
    line = f"fragment {definition.name}({', '.join(inputs)}) -> ({results})"
    if len(line) <= _MOST_COLUMNS:
        yield line
    else:
        yield f"fragment {definition.name}("
        yield ",\n".join(f"{_INDENT}{each}" for each in inputs) + ")"
        yield f"-> ({results})"
    yield "{"
    for operation in definition.operations:
        yield f"{_INDENT}{_assignment(operation)};"
    yield "}"


def _declaration(definition: Definition) -> str:
    """Return the declaration of a fragment without a body."""
    parameters = {**definition.inputs, **definition.attributes}
    inputs = ", ".join(f"{name}: {kind}" for name, kind in parameters.items())
    results = ", ".join(f"{name}: {kind}" for name, kind in definition.results.items())
    kind = "<?>" if definition.generic else ""
    return f"fragment {definition.name}{kind}({inputs}) -> ({results});"


def _comment(operation: Operation, names: Mapping[str, str]) -> str:
    """Return the names for which identifiers of inputs, outputs and variables stand.

    They are told where neither the identifier nor the label is the name.
    """
    known = (*operation.results(), operation.attributes.get("label"))
    told = [
        "".join(sign if sign.isprintable() else "\ufffd" for sign in names[each])
        for each in operation.results()
        if names.get(each, each) not in known
    ]
    return f"  # {', '.join(told)}" if told else ""


def _assignment(operation: Operation) -> str:
    left = ", ".join(_result(each) for each in operation.outputs)
    kind = "" if operation.dtype in (None, _default_type(operation.op)) else f"<{operation.dtype}>"
    return f"{left} = {operation.op}{kind}({', '.join(_arguments(operation))})"


def _default_type(op: str) -> str | None:
    return "scalar" if op in ("external", "variable", "constant") else None


def _result(given: str | tuple[str, ...]) -> str:
    return given if isinstance(given, str) else f"[{', '.join(given)}]"


def _arguments(operation: Operation) -> Iterator[str]:
    """Yield what an invocation gives, without what are defaults."""
    signature = FRAGMENTS.get(operation.op)
    defaults = {} if signature is None else dict(signature.attributes)
    operands = {} if signature is None else {x.name: x.default for x in signature.inputs}
    for name, given in operation.inputs.items():
        if not _is_default(given, operands.get(name, REQUIRED)):
            yield literal(given)
    for name, given in operation.attributes.items():
        if not _is_default(given, defaults.get(name, REQUIRED)):
            yield f"{name} = {literal(given)}"


def _is_default(given: AnyValue, default: AnyValue) -> bool:
    """Whether the text says the same: -0.0 is not 0.0, and 1.0 is not 1."""
    if default is REQUIRED:
        return False
    return literal(list(given) if isinstance(given, tuple) else given) == literal(default)


def literal(value: AnyValue) -> str:
    """Return an argument as the text has it; what lies in a list is no list, but a tuple."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_item, value))}]"
    return _item(value)


def _item(value: AnyValue) -> str:
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return _fraction(float(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, str):
        quote = '"' if "'" in value else "'"
        return f"{quote}{value}{quote}"
    return f"({', '.join(map(_item, value))})"


def _fraction(value: float) -> str:
    """Return the shortest decimal that Khronos' parser, which reads float32, reads as `value`."""
    text = str(np.float32(value))
    return text if "." in text or "e" in text else f"{text}.0"


def quantization_text(model: NnefModel) -> str:
    """Return the text of ``graph.quant``."""
    lines = []
    for name, entry in model.quantization.items():
        given = ", ".join(f"{key} = {literal(each)}" for key, each in entry.attributes.items())
        lines.append(f'"{name}": {entry.op}({given});\n')
    return "".join(lines)
