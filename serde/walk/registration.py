"""What a table of converters checks when it is told of one: that it can be true.

Refused by name are operators that the format or Relay does not have, versions at which nothing
changed, parameters that are no attributes of the operator, and operands that it does not have.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir.registry import OpDef, Signature, op_signature
from serde.relay.ir.schema import innermost, is_shared
from serde.walk.converter import parameters_of
from serde.walk.takes import RESULT, Takes

__all__ = ["check_change", "check_expansion", "check_exporter"]


Changes = Mapping[str, Sequence[int]]


def check_change(format_name: str, changes: Changes, name: str, version: int | None) -> None:
    """Refuse an operator that the format does not have, or a version at which it did not change.

    Raises:
        RelayError: It is so.
    """
    if name not in changes:
        raise RelayError(f"{format_name} has no operator {name}")
    if version is not None and version not in changes[name]:
        known = ", ".join(map(str, changes[name]))
        raise RelayError(
            f"{format_name}: {name} did not change at version {version} (it did at {known})"
        )


def check_exporter(
    format_name: str,
    operator: str | OpDef,
    function: Callable[..., AnyValue],
    ignored: tuple[str, ...] = (),
    takes: Takes | None = None,
) -> None:
    """Refuse an exporter whose parameters are not those of the Relay operator.

    It may take more operands than the operator has, such as a bias that was taken in, if it can
    do without, and fewer attributes, for those that it does not take must hold their default.

    Raises:
        RelayError: It is so.
    """
    name = operator if isinstance(operator, str) else operator.name
    signature = op_signature(name) if isinstance(operator, str) else Signature.of(operator)
    where = f"{format_name}: {innermost(function).__name__}"
    if signature is None:
        raise RelayError(f"{where}: no Relay operator is called {name}")
    _taken_attributes(where, signature, name, function, ignored)
    known = {*signature.operands, *signature.attributes, RESULT}
    foreign = [each for each in (takes.names if takes else ()) if each not in known]
    if foreign:
        raise RelayError(f"{where}: {name} has no operand or attribute {foreign[0]}")
    _check_operands(where, signature, name, parameters_of(function)[1:])


def check_expansion(
    format_name: str, name: str, function: Callable[..., AnyValue]
) -> tuple[str, ...]:
    """Refuse an expansion that does not take exactly what the Relay operator has.

    Returns:
        The names of the operator's attributes.

    Raises:
        RelayError: It is so.
    """
    operator = op_signature(name)
    where = f"{format_name}: {innermost(function).__name__}"
    if operator is None:
        raise RelayError(f"{where}: no Relay operator is called {name}")
    parameters = parameters_of(function)
    taken = _taken_attributes(where, operator, name, function)
    missing = [each for each in operator.attributes if each not in taken]
    if missing and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise RelayError(f"{where}: {name} has the attribute {', '.join(missing)}, too")
    _check_operands(where, operator, name, parameters)
    return operator.attributes


def _taken_attributes(
    where: str,
    operator: Signature,
    name: str,
    function: Callable[..., AnyValue],
    ignored: tuple[str, ...] = (),
) -> list[str]:
    taken = [*_attributes(function, operator.attributes), *ignored]
    unknown = [each for each in taken if each not in operator.attributes]
    if unknown:
        raise RelayError(f"{where}: {name} has no attribute {', '.join(unknown)}")
    return taken


def _check_operands(
    where: str, operator: Signature, name: str, parameters: Sequence[inspect.Parameter]
) -> None:
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    required = sum(p.default is p.empty for p in positional)
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    has = len(operator.operands)
    if required > has or (has > len(positional) and not many):
        takes = f"at least {required}" if many else str(len(positional))
        raise RelayError(f"{where}: {name} has {has} operands, the function takes {takes}")


def _attributes(function: Callable[..., AnyValue], known: Collection[str]) -> Iterator[str]:
    """Yield the names of the attributes that a converter takes, fields of shared ones too.

    Hints are costly to resolve, and shared attributes are never called as an attribute is.
    """
    for parameter in parameters_of(function):
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        kind = None
        if parameter.name not in known:
            kind = typing.get_type_hints(innermost(function)).get(parameter.name)
        if is_shared(kind):
            yield from (field.name for field in fields(kind))
        else:
            yield parameter.name
