"""Custom layers of Core ML, and operators of MIL that are not known, as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from typing import Any as AnyValue

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir.foreign import ARGUMENTS, Empty, Foreign, Input

if TYPE_CHECKING:
    from serde.coreml.value import Builder, Value

__all__ = ["DESCRIPTION", "IS_MIL", "ORDER", "write_foreign"]

IS_MIL: Final = "$mil"
"""Attribute that tells that an operator is one of MIL."""

ORDER: Final = "$order"
"""Attribute with the names of inputs in the order in which a custom layer lists them."""

DESCRIPTION: Final = "$description"
"""Attribute with what a custom layer is, for people."""


def write_foreign(
    builder: Builder, source: str, node: Foreign, operands: Sequence[Value | None]
) -> AnyValue:
    """Write a custom layer, or an operator of MIL as it was.

    Raises:
        Unsupported: A layer cannot have such parameters, or the target has no such operators.
    """
    if any(each is None for each in operands):
        raise Unsupported(f"{node.full_name} leaves out an input, which layers do not")
    own = node.framework == "coreml"
    pairs: Sequence[tuple[str, AnyValue]] = [
        (f"x{place}", Input(place)) for place in range(len(operands))
    ]
    if own:
        pairs = node.attributes.get(ARGUMENTS, pairs)
    inputs = {key: _placed(held, operands) for key, held in pairs}
    attributes = {key: _literal(key, each) for key, each in node.plain_attributes.items()}
    if own and node.attributes.get(IS_MIL):
        found = builder.add_unknown(node.name, {**inputs, **attributes}, node.results, source)
    else:
        order = node.attributes.get(ORDER, tuple(inputs)) if own else tuple(inputs)
        description = str(node.attributes.get(DESCRIPTION, "")) if own else ""
        found = builder.add_custom(
            node.name, inputs, attributes, node.results, source, list(order), description
        )
    return found if len(found) > 1 else found[0]


def _placed(held: AnyValue, given: Sequence[AnyValue]) -> AnyValue:
    if isinstance(held, tuple):
        return [_placed(each, given) for each in held]
    return given[held.index] if isinstance(held, Input) else held


def _literal(name: str, value: AnyValue) -> AnyValue:
    if isinstance(value, (tuple, list)) and value and not isinstance(value, Empty):
        if all(isinstance(each, (bool, int, float)) for each in value):
            return np.array(value, None if isinstance(value[0], bool) else _dtype(value))
        if all(isinstance(each, str) for each in value):
            return list(value)
    if not isinstance(value, (bool, int, float, str)):
        raise Unsupported(f"no parameter of a layer can be {name}={value!r:.100}")
    return value


def _dtype(values: Sequence[AnyValue]) -> str:
    return "float32" if any(isinstance(each, float) for each in values) else "int32"
