"""Samples of operators with one length or one attribute changed, as random graphs draw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from support.random_graphs import Maker, Operand, Rejected, _flat, _map

from serde.errors import TypeInferenceError
from serde.relay import Function
from serde.relay.ir.registry import OpDef, Sample, SequenceSpec, TensorSpec, call
from serde.relay.ir.traits import InRange

__all__ = ["is_plain", "require_in_range", "with_other_attribute", "with_other_lengths"]

PLAIN = frozenset(
    ["bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
     "uint32", "uint64"]
)  # fmt: skip
"""Dtypes that NumPy has."""


def is_plain(given: Sample) -> bool:
    """Whether all operands are tensors of dtypes that NumPy has."""
    pending = list(given.operands)
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, SequenceSpec):
            return False
        elif isinstance(each, TensorSpec):
            if each.dtype not in PLAIN:
                return False
        elif each is not None and np.asarray(each).dtype.name not in PLAIN:
            return False
    return True


def with_other_lengths(maker: Maker, given: Sample) -> Sample:
    """Return a sample with one length replaced by another wherever operands have it."""
    lengths = {n for spec in _specs(given.operands) for n in spec.shape if n > 0}
    if not lengths:
        return given
    old, new = maker.one_of(sorted(lengths)), maker.integer(1, 7)

    def changed(operand: Any) -> Any:
        if isinstance(operand, list):
            return [changed(each) for each in operand]
        if not isinstance(operand, TensorSpec):
            return operand
        return replace(operand, shape=tuple(new if n == old else n for n in operand.shape))

    return Sample(tuple(map(changed, given.operands)), given.attrs)


def require_in_range(
    definition: OpDef, operands: Sequence[Operand], attrs: Mapping[str, Any]
) -> None:
    """Reject a call with integers that its operator must not have: indices beyond a table, say.

    Those of a sample as it is may have more, as that says what becomes of them.

    Raises:
        Rejected: There are some.
    """
    trait = definition.trait(InRange)
    if trait is None:
        return
    items = {id(item.expr): item for item in _flat(operands)}
    try:
        node = call(
            definition.name, *[_map(each, lambda item: item.expr) for each in operands], **attrs
        )
        bounds = trait.rule(node, {})
    except (TypeInferenceError, IndexError, KeyError):
        raise Rejected from None
    for expr, (low, high) in bounds:
        item = items.get(id(expr))
        if item is None or item.is_float or item.value.dtype == bool or not item.value.size:
            continue
        if item.value.min() < low or item.value.max() > high:
            raise Rejected


def _specs(operands: Iterable[Any]) -> list[TensorSpec]:
    found: list[TensorSpec] = []
    for each in operands:
        found += _specs(each) if isinstance(each, list) else []
        found += [each] if isinstance(each, TensorSpec) else []
    return found


def with_other_attribute(
    maker: Maker, definition: OpDef, attrs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return attributes of which one has another value of its kind."""
    bound = dict(definition.bind(attrs))
    names = [name for name, value in bound.items() if not isinstance(value, (Function, np.dtype))]
    if not names:
        return dict(attrs)
    name = maker.one_of(names)
    value = _other(maker, definition.attributes[name].annotation, bound[name])
    return {**attrs, name: value}


def _other(maker: Maker, annotation: str, value: Any) -> Any:
    if "Literal[" in annotation:
        words = annotation[annotation.index("[") + 1 : annotation.index("]")].split(", ")
        if isinstance(value, int):
            return int(maker.one_of(words))
        return maker.one_of([word.strip("'\"") for word in words])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + maker.one_of([-1, 1, 2, -2])
    if isinstance(value, float):
        return value * maker.one_of([0.5, 2.0, 1.25])
    if isinstance(value, tuple) and value:
        at = maker.integer(0, len(value) - 1)
        return (*value[:at], _other(maker, "", value[at]), *value[at + 1 :])
    return value
