"""Windows as NNEF has them: zeros before one as its padding, means made sums as poolings.

Zeros alone: readers are known that take another border for zeros, without a word.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from serde.nnef.model import Argument, NnefModel, Operation, Ref

__all__ = ["join_padding", "join_pools"]

_ALL_AXES: Final = frozenset(("max_pool", "max_pool_with_index", "avg_pool", "box"))
"""Windows that have padding for each axis; a convolution has it for those behind the second."""


def join_padding(model: NnefModel) -> NnefModel:
    """Return the graph with windows that pad what was padded for them alone.

    The assignments that padded stay, and nothing reads them.
    """
    kept = {*model.outputs, *model.quantization}
    uses = Counter(_references(model.operations))
    pads = {
        name: each
        for each in model.operations
        for name in each.results()
        if each.op == "pad" and _is_zeros(each) and uses[name] == 1 and name not in kept
    }
    operations = [_join(each, pads) or each for each in model.operations] if pads else None
    return model if operations is None else replace(model, operations=operations)


def _references(operations: Sequence[Operation]) -> Iterator[str]:
    for operation in operations:
        for operand in operation.operands():
            if isinstance(operand, Ref):
                yield operand.name


def _is_zeros(pad: Operation) -> bool:
    """Whether it adds zeros and cuts nothing off."""
    given = pad.attributes
    fills = given.get("border", "constant") == "constant" and given.get("value", 0.0) == 0
    return fills and all(min(pair) >= 0 for pair in given["padding"])


def _join(window: Operation, pads: Mapping[str, Operation]) -> Operation | None:
    """Return the window with the padding before it, if there is one and it can have that."""
    read = window.inputs.get("input")
    pad = pads.get(read.name) if isinstance(read, Ref) else None
    if pad is None:
        return None
    outer, given = list(pad.attributes["padding"]), window.attributes
    inner = list(given.get("padding", ()))
    if window.op == "conv":
        if any(map(any, outer[:2])) or given.get("border", "constant") != "constant":
            return None
        outer = outer[2:]
    elif window.op not in _ALL_AXES:
        return None
    plain = given.get("border", "constant") == "constant" or not any(map(any, inner))
    if not inner or not plain or any(min(pair) < 0 for pair in inner):
        return None
    sums = [(a + c, b + d) for (a, b), (c, d) in zip(inner, outer, strict=True)]
    attributes = {**given, "border": "constant", "padding": sums}
    return replace(
        window, inputs={**window.inputs, "input": pad.inputs["input"]}, attributes=attributes
    )


def join_pools(model: NnefModel) -> NnefModel:
    """Return the graph with ``box`` and ``rms_pool`` where means are multiplied or rooted.

    The assignments of the means stay, and nothing reads them.
    """
    kept = {*model.outputs, *model.quantization}
    uses = Counter(
        each.name
        for operation in model.operations
        for each in operation.operands()
        if isinstance(each, Ref)
    )
    made = {
        each.results()[0]: each
        for each in model.operations
        if len(each.results()) == 1 and each.results()[0] not in kept
    }
    means = {name: each for name, each in made.items() if each.op == "avg_pool" and uses[name] == 1}
    if not means:
        return model
    operations = [
        _as_sum(each, means) or _as_root(each, means, made) or each for each in model.operations
    ]
    return replace(model, operations=operations)


def _find(given: Argument | None, made: Mapping[str, Operation]) -> Operation | None:
    return made.get(given.name) if isinstance(given, Ref) else None


def _as_sum(product: Operation, means: Mapping[str, Operation]) -> Operation | None:
    """Return the sum that a mean of whole windows times their volume is."""
    if product.op != "mul":
        return None
    for given, number in ("xy", "yx"):
        mean = _find(product.inputs[given], means)
        volume = product.inputs[number]
        if mean is None or isinstance(volume, (Ref, tuple)):
            continue
        whole = mean.attributes.get("border", "constant") != "ignore"
        if whole and volume == math.prod(mean.attributes["size"]):
            return replace(product, op="box", inputs=mean.inputs, attributes=mean.attributes)
    return None


def _as_root(
    root: Operation, means: Mapping[str, Operation], made: Mapping[str, Operation]
) -> Operation | None:
    """Return the pooling that the root of a mean of squares is."""
    mean = _find(root.inputs.get("x"), means) if root.op == "sqrt" else None
    square = None if mean is None else _find(mean.inputs["input"], made)
    if mean is None or square is None:
        return None
    factors = list(square.inputs.values())
    is_square = square.op == "sqr" or (square.op == "mul" and factors[0] == factors[1])
    if not is_square or not isinstance(factors[0], Ref):
        return None
    return replace(root, op="rms_pool", inputs={"input": factors[0]}, attributes=mean.attributes)
