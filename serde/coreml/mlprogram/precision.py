"""What a program that computes in float16 leaves in float32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from serde.core import ArrayWeight, Report
from serde.core.lossy import FLOAT16_OVERFLOW
from serde.errors import OptionError, raise_if_refused
from serde.relay import transform
from serde.relay.ir import Call, Constant, Float32, RelayModel, Var, called_name, post_order
from serde.relay.ir.expr import tensor_type
from serde.relay.ir.registry import OpDef, all_ops, op_names
from serde.relay.ir.shapes import is_float
from serde.relay.transform.to_float16 import INFINITE

__all__ = ["to_float16", "wide_names"]

_NEEDED = frozenset({"range"})
"""Groups of operators that stay in float32 whatever is asked.

A sum or product of many elements is beyond the range of float16 where none of them is, and so
is a sum of squares: of 256 elements of 16 already. Numbers, places and lengths of an axis, corners
of boxes and grids need more than its eleven bits beyond 2048.

A mean lies within the range of what it is taken of; the norms of MIL and its resizing are
operators that sum and count inside as wide as they need, and give what float16 holds. Core ML's
own converter computes them in float16, too, and so does this one, unless asked otherwise.
"""

_GROUPS = frozenset({"norms", "reductions", "resizing"})
"""Groups of operators that the careful may leave in float32, too."""

_HALF = np.finfo(np.float16)


def to_float16(
    model: RelayModel, wide: frozenset[str], allow: frozenset[str], report: Report
) -> RelayModel:
    """Return the model computing in float16, its ends as they were; what overflows is refused.

    Args:
        model: The model.
        wide: Names of operators and nodes that stay float32 besides those that need to.
        allow: Steps that are allowed.
        report: Gets what overflows.
    """
    keep = wide.union(_faint(model), _small_factors(model), _angles(model))
    overflows = partial(transform.float16_overflows, model, keep=keep, groups=_NEEDED)
    masks, params = overflows(), dict(model.params)
    lost = masks and overflows(below=INFINITE)
    for what in lost:
        why = "has values beyond the range of float16, which become infinite"
        FLOAT16_OVERFLOW.record(report, allow, op="cast", node=what, reason=why)
    raise_if_refused(report)
    for what in [each for each in masks if each not in lost]:
        report.notes.append(f"{what} is like infinity, and is that or the end of float16")
        name = what.removeprefix("weight ")
        if name in params:
            params[name] = ArrayWeight(params[name].array().clip(_HALF.min, _HALF.max))
    narrow = transform.ToFloat16(keep, True, frozenset(model.params), _NEEDED)
    model = model.evolve(mod=narrow(model.mod), params=params)
    return transform.fold_weights(model, report=report, share=False)


def _small_factors(model: RelayModel) -> Iterator[str]:
    """Yield the products of constants that float16 has nothing for."""
    for node in post_order(model.main):
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            continue
        factors = [each.data for each in node.args if isinstance(each, Constant)]
        sizes = [np.abs(each).max(initial=0) for each in factors if each.dtype == np.float32]
        if node.op.name == "multiply" and any(0 < x < _HALF.smallest_subnormal / 2 for x in sizes):
            yield node.op.name if node.span is None else node.span.source_name


def _angles(model: RelayModel) -> Iterator[str]:
    """Yield what is computed of whole numbers up to their sines: float16 counts to 2048 alone."""
    for node in post_order(model.main):
        if called_name(node) not in ("sin", "cos"):
            continue
        calls = [each for each in post_order(node) if isinstance(each, Call)]
        casts = [each.args[0] for each in calls if called_name(each) == "cast"]
        weights = [x for x in post_order(node) if getattr(x, "name_hint", "") in model.params]
        factors = all(sum(dim != 1 for dim in tensor_type(x).shape) < 2 for x in weights)
        if factors and any(not is_float(tensor_type(each).dtype) for each in casts):
            yield from (each.span.source_name for each in calls if each.span is not None)


def wide_names(model: RelayModel, wide: frozenset[str]) -> frozenset[str]:
    """Return names of operators and nodes that stay float32.

    Args:
        model: The model with the nodes that its source has.
        wide: Operators, groups of them (norms, reductions, resizing) and nodes.

    Raises:
        OptionError: Nothing is called as something in `wide`.
    """
    plain = wide - _GROUPS
    nodes = {node.span.source_name for node in post_order(model.main) if node.span is not None}
    unknown = sorted(plain - nodes - set(op_names()))
    if unknown:
        raise OptionError(
            f"float32_ops: {unknown[0]} is no operator of Relay, no node, and none of "
            f"{', '.join(sorted(_GROUPS))}"
        )
    asked = wide & _GROUPS
    return plain.union(_members(asked)) if asked else plain


def _members(groups: frozenset[str]) -> Iterator[str]:
    """Yield the names of the operators of some groups."""
    for name, definition in all_ops().items():
        wide = definition.trait(Float32)
        if wide is not None and wide.group in groups:
            yield name


def _faint(model: RelayModel) -> Iterator[str]:
    """Yield the batch norms with variances that float16 does not hold with all its bits."""
    for node in post_order(model.main):
        if not isinstance(node, Call) or called_name(node) != "nn.batch_norm" or node.span is None:
            continue
        variance = node.args[4]
        weight = model.params.get(variance.name_hint) if isinstance(variance, Var) else None
        if weight is not None:
            values = weight.array().astype(np.float64) + node.attrs["epsilon"]
            if values.min() < _HALF.smallest_normal or values.max() > _HALF.max:
                yield node.span.source_name
