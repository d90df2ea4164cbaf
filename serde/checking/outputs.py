"""Which output of the target stands for which of the source, and why shapes may differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from serde.relay.ir import Call, RelayModel, TensorType, post_order, trait_of
from serde.relay.ir.traits import RoundsLengths

__all__ = ["match_outputs", "other_shape"]


def match_outputs(
    names: Sequence[str], others: Sequence[str], recorded: Sequence[str] | None = None
) -> list[int | None]:
    """Return where among the target's outputs each one of the source's stands, None for nowhere.

    A name that the conversion recorded counts, else the source's own. Where the target has
    exactly these names, they decide, several of one name by their order. Otherwise exporters
    have renamed them (MXNet's makes ``out_output`` of ``out``), and their places decide, as
    long as both models have as many. Where they do not, names are all there is.

    Args:
        names: Names of the source's outputs, in order.
        others: Names of the target's outputs, in order.
        recorded: What the conversion called them, in the order of `names`, where that is known.
    """
    wanted = names if recorded is None or len(recorded) != len(names) else recorded
    if Counter(wanted) != Counter(others) and len(names) == len(others):
        return list(range(len(others)))
    left: dict[str, list[int]] = {}
    for index, name in enumerate(others):
        left.setdefault(name, []).append(index)
    return [left[name].pop(0) if left.get(name) else None for name in wanted]


def other_shape(
    model: RelayModel, engine: str, found: tuple[int, ...], said: tuple[int, ...]
) -> str:
    """Return what is to be said of an engine that yields another shape than its model says."""
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in (found, said)]
    reasons = list(_rounded_otherwise(model))
    text = f"{engine} gives {shapes[0]} where the model as read says {shapes[1]}"
    return f"{text}: {'; '.join(reasons[:3])}" if reasons else text


def _rounded_otherwise(model: RelayModel) -> Iterator[str]:
    """Yield the nodes whose lengths come out otherwise where products are rounded to float32."""
    for node in post_order(model.main.body):
        said = trait_of(node, RoundsLengths)
        if said is None or not isinstance(node, Call):
            continue
        factors, type_ = node.attrs[said.factors] or (), node.args[0].type
        shape = type_.shape if isinstance(type_, TensorType) else ()
        axes = node.attrs[said.axes] or range(len(shape))
        for axis, factor in zip(axes, factors, strict=False):
            length = shape[axis]
            if not isinstance(length, int):
                continue
            exact = math.floor(length * factor)
            rounded = math.floor(np.float32(length) * np.float32(factor))
            if exact != rounded:
                name = "an operator" if node.span is None else node.span.source_name
                yield (
                    f"{name} resizes {length} by {factor:.6g} to {exact}, "
                    f"and to {rounded} where that is rounded to float32"
                )
