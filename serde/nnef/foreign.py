"""Fragments of NNEF that Relay does not know: those of a model's own without a body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.errors import Unsupported
from serde.nnef.fragments import FRAGMENTS
from serde.nnef.model import Operation, Ref
from serde.nnef.names import Identifiers, is_identifier
from serde.relay.ir import ARGUMENTS, Empty, Expr, Foreign, Input

if TYPE_CHECKING:
    from serde.nnef.export_context import ExportContext, Value

__all__ = ["foreign_node", "write_foreign"]

_ELEMENT: Final = "$element"
"""Attribute that tells the type of elements, where the invocation of a generic fragment does."""


def foreign_node(operation: Operation, operands: Mapping[str, Expr]) -> tuple[Foreign, list[Expr]]:
    """Return what an operation is, and the tensors that it reads.

    Args:
        operation: The operation.
        operands: Values of tensors by name.
    """
    inputs: list[Expr] = []

    def held(given: AnyValue) -> AnyValue:
        if isinstance(given, Ref):
            inputs.append(operands[given.name])
            return Input(len(inputs) - 1)
        return tuple(map(held, given)) if isinstance(given, tuple) else given

    places = tuple((name, held(each)) for name, each in operation.inputs.items())
    attributes = {name: _plain(each) for name, each in operation.attributes.items()}
    attributes[ARGUMENTS] = places
    if operation.dtype is not None:
        attributes[_ELEMENT] = operation.dtype
    lists = [each for each in operation.outputs if not isinstance(each, str)]
    if lists:
        raise Unsupported("a list of tensors as a result is not kept")
    return Foreign(framework="nnef", name=operation.op, attributes=attributes), inputs


def _plain(value: AnyValue) -> AnyValue:
    return tuple(map(_plain, value)) if isinstance(value, (tuple, list)) else value


def write_foreign(ctx: ExportContext, node: Foreign, operands: Sequence[Value | None]) -> AnyValue:
    """Write the invocation of a fragment without a body, which the text declares.

    Raises:
        Unsupported: A name is none of NNEF's, or an attribute no literal.
    """
    name = node.name
    if not is_identifier(name) or name in FRAGMENTS:
        raise Unsupported(f"{name} is no name of a fragment of a model's own")
    if any(each is None for each in operands):
        raise Unsupported(f"{name} leaves out an input, which fragments do not")
    given = list(operands)
    attributes = {key: _literal(key, each) for key, each in node.plain_attributes.items()}
    names = Identifiers(attributes)
    pairs: Sequence[tuple[str, AnyValue]] = [
        (names.claim(f"x{index}"), Input(index)) for index in range(len(given))
    ]
    if node.framework == "nnef":
        pairs = node.attributes.get(ARGUMENTS, pairs)
    inputs = {key: _placed(each, given) for key, each in pairs}
    element = node.attributes.get(_ELEMENT) if node.framework == "nnef" else None
    found = ctx.emit_own(name, inputs, attributes, node.results, element)
    return found if len(found) > 1 else found[0]


def _placed(held: AnyValue, given: Sequence[AnyValue]) -> AnyValue:
    if isinstance(held, tuple):
        return tuple(_placed(each, given) for each in held)
    return given[held.index] if isinstance(held, Input) else held


def _literal(name: str, value: AnyValue) -> AnyValue:
    """Return an attribute as the text has it."""
    if not is_identifier(name):
        raise Unsupported(f"{name} is no name of an attribute in NNEF")
    if isinstance(value, Empty):
        return []
    if isinstance(value, (tuple, list)):
        return [_literal(name, each) for each in value]
    if isinstance(value, str) and not set("\"'\\\n").isdisjoint(value):
        raise Unsupported(f"no text of NNEF says {name}={value!r:.100}")
    if not isinstance(value, (bool, int, float, str)):
        raise Unsupported(f"no literal of NNEF says {name}={value!r:.100}")
    return value
