"""Calls of scripts with tensors by the names that inputs have in serde."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from serde.core.optional import require
from serde.errors import CheckError

__all__ = ["call_script"]

_NUMBERS = {"IntType": int, "FloatType": float, "BoolType": bool, "NumberType": float}


def call_script(
    script: AnyValue, constants: Mapping[str, AnyValue]
) -> Callable[[Mapping[str, AnyValue]], AnyValue]:
    """Return what calls a script module or function with tensors by name.

    What is inside a list, tuple or dict has the name of that and its place or key: ``xs.0``.

    Args:
        script: The module or function.
        constants: Arguments that are no tensors, by name.
    """
    function = isinstance(script, require("torch").jit.ScriptFunction)
    schema = script.schema if function else script.forward.schema
    parameters = list(schema.arguments)[0 if function else 1 :]
    declared = [each.name for each in parameters]
    names = [
        f"{name}_{place}" if declared.count(name) > 1 else name
        for place, name in enumerate(declared)
    ]

    def call(tensors: Mapping[str, AnyValue]) -> AnyValue:
        given = {**constants, **tensors}
        arguments: list[AnyValue] = []
        named: dict[str, AnyValue] = {}
        for place, (each, name) in enumerate(zip(parameters, names, strict=True)):
            if name not in given and not _entries(given, name):
                continue
            value = _build(each.type, name, given)
            if len(arguments) == place:
                arguments.append(value)
            else:
                named[each.name] = value
        return script(*arguments, **named)

    return call


def _entries(given: Mapping[str, AnyValue], name: str) -> list[str]:
    """Return what is in a list, tuple or dict of a name, in order."""
    found = [each[len(name) + 1 :] for each in given if each.startswith(f"{name}.")]
    return list(dict.fromkeys(each.partition(".")[0] for each in found))


def _build(type_: AnyValue, name: str, given: Mapping[str, AnyValue]) -> AnyValue:
    """Return an argument of a type.

    Raises:
        CheckError: It is no tensor, number, or structure of these.
    """
    kind = type_.kind()
    if name in given and not isinstance(given[name], require("torch").Tensor):
        return given[name]
    if kind == "OptionalType":
        return _build(type_.getElementType(), name, given)
    if kind == "TensorType":
        return given[name]
    if kind in _NUMBERS:
        return _NUMBERS[kind](given[name].item())
    entries = _entries(given, name)
    if kind != "DictType":
        entries.sort(key=int)
    if kind == "TupleType":
        parts = zip(type_.elements(), entries, strict=True)
        return tuple(_build(part, f"{name}.{entry}", given) for part, entry in parts)
    if kind == "ListType":
        return [_build(type_.getElementType(), f"{name}.{entry}", given) for entry in entries]
    if kind == "DictType":
        number = type_.getKeyType().kind() == "IntType"
        return {
            int(entry) if number else entry: _build(type_.getValueType(), f"{name}.{entry}", given)
            for entry in entries
        }
    raise CheckError(f"input {name}: a {type_} cannot be made")
