"""Masks in front of a softmax whose numbers float16 does not hold, as numbers that it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core import Array, ArrayWeight
from serde.core.limits import current_limits
from serde.relay.ir import Call, Constant, Expr, Moves, RelayModel, call, trait_of
from serde.relay.ir.expr import Var
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import children, post_order, rewrite_function

__all__ = ["saturate_masks"]

_END = float(np.finfo(np.float16).max)
_HIDDEN, _HIDES, _ABSORBS = -_END - 104, -3 * _END - 104, -(2.0**41)
"""From where down a number has no weight beside one of float16 (exp(-104) is 0 in float32), its sum
with one none beside such a sum, and from where down such a sum is the number itself, in float32."""


def saturate_masks(
    model: RelayModel, keep: frozenset[str] = frozenset()
) -> tuple[RelayModel, frozenset[str]]:
    """Give masks in front of a softmax numbers of float16, where its results stay the same.

    Scores are numbers of float16; what stays float32 as a whole is left alone. The forms are:

    - ``softmax(where(hidden, C, scores))`` with one number C: it becomes the least of float16.
      A row that is hidden wholly is uniform before and after. In another, hidden scores have no
      weight before; afterwards neither, if its greatest score is 104 or more above that number.
      Only rows within the last 0.2% of float16's range are not so, where steps are 32.
    - ``softmax(scores + where(hidden, C, rest))``: in float32 such a sum is C itself if C is -2**41
      or less, so it is ``where(hidden, C, scores + rest)``, the first form.
    - ``softmax(scores + mask)`` with a mask of known numbers, of which each row has one of float16:
      the others become negative infinity. Some sum of the row is finite, and no hidden one counts.

    Of any other, such as ``(1 - mask) * C``, a row may be hidden wholly, whose scores would be told
    apart that float32 makes equal: it is left, and refused or kept in float32. Returned besides are
    the names to `keep`, with those of masks that are added to scores in float32.
    """
    users: dict[Expr, list[Expr]] = {}
    for node in post_order(model.main):
        for child in children(node):
            users.setdefault(child, []).append(node)
    stored: dict[Var, list[Array]] = {}
    masks: set[str] = set()

    def change(node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not _is(node, "where", "add"):
            return new
        axes, way = _readers(node, users)
        kept = all(_is(x, *keep) or _name(x) in keep for x in way)
        if not axes or not isinstance(node.type, TensorType) or node.type.dtype != "float32":
            return new
        found = _chosen(new, new, None, _HIDDEN) if _is(node, "where") else None
        for scores, mask in (new.args, new.args[::-1]) if _is(node, "add") else ():
            if isinstance(mask, Call) and _is(mask, "where"):
                found = found or _chosen(new, mask, scores, _ABSORBS)
                masks.update([_name(mask)] if found and kept else [])
            hidden = None if kept else _infinite(mask, model, axes, len(node.type.shape))
            if hidden is not None and isinstance(mask, Var):
                stored.setdefault(mask, []).append(hidden)
            elif hidden is not None:
                found = call("add", scores, Constant(hidden, mask.span), span=new.span)
        return new if kept or found is None or found.type != node.type else found

    main = rewrite_function(model.main, change)
    params = dict(model.params)
    for var, found in stored.items():  # A weight changes where all that read it are such sums.
        if len(found) == sum(isinstance(each, Call) for each in users[var]):
            params[var.name_hint] = ArrayWeight(found[0])
    return model.evolve(mod=model.mod.with_main(main), params=params), keep | masks


def _name(node: Expr) -> str:
    return "where" if node.span is None else node.span.source_name


def _is(node: AnyValue, *names: str) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", None) in names


def _readers(
    node: Expr, users: Mapping[Expr, Sequence[AnyValue]]
) -> tuple[set[int | None], list[Expr]]:
    """Return axes of the softmaxes that a value goes to alone, None of moved ones, and the way."""
    axes, way, waiting = set[int | None](), list[Expr](), [(node, False)]
    for value, moved in waiting:
        way.append(value)
        for user in users.get(value, ()):
            if _is(user, "max") and all(map(_asks_for_infinity, users.get(user, ()))):
                axes |= {None} if moved else {*(user.attrs["axis"] or [None])}
            elif _is(user, "nn.softmax"):
                axes.add(None if moved else user.attrs["axis"])
                way.append(user)
            elif _is(user, "where") and user.type == value.type and user.args[0] is not value:
                waiting.append((user, moved))
            elif trait_of(user, Moves) and user.args[0] is value:
                waiting.append((user, True))
            else:
                return set(), []
    return axes, way


def _asks_for_infinity(node: Expr) -> bool:
    ends = (isinstance(each, Constant) and (each.data == -np.inf).all() for each in children(node))
    return _is(node, "equal") and any(ends)


def _chosen(node: Call, mask: Call, scores: Expr | None, most: float) -> Call | None:
    """Return a choice with one number, up to `most`, as float16's least; scores join the other."""
    sides = list(mask.args[1:])
    numbers = [x.data if isinstance(x, Constant) and x.data.size else np.ones(1) for x in sides]
    hides = [bool(-np.inf < x.min() == x.max() <= most) for x in numbers]
    if sum(hides) != 1:
        return None
    at = hides.index(True)
    if scores is not None:
        plain = numbers[1 - at].any() or not isinstance(sides[1 - at], Constant)
        sides[1 - at] = call("add", scores, sides[1 - at], span=node.span) if plain else scores
    sides[at] = Constant(np.full(numbers[at].shape, -_END, np.float32), sides[at].span)
    return call("where", mask.args[0], *sides, span=node.span)


def _infinite(mask: Expr, model: RelayModel, axes: set[int | None], rank: int) -> Array | None:
    """Return a known mask with negative infinities, if it hides something and no row wholly."""
    data: Array | None = mask.data if isinstance(mask, Constant) else None
    weight = model.params.get(mask.name_hint) if isinstance(mask, Var) else None
    if weight is not None and weight.nbytes <= current_limits().values:
        data = weight.array()
    if data is None or None in axes or data.dtype != np.float32:
        return None
    hidden, held = (data <= _HIDES) & np.isfinite(data), np.abs(data) <= _END
    whole = held.reshape((1,) * (rank - data.ndim) + data.shape)
    rows = all(whole.any(axis).all() for axis in axes if axis is not None)
    if not hidden.any() or not (hidden | held).all() or not rows:
        return None
    return np.where(hidden, np.float32(-np.inf), data)
