"""Masks in front of a softmax whose numbers float16 does not hold, as numbers that it does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from serde.core import Array, ArrayWeight, Weight
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


def saturate_masks(model: RelayModel, keep: frozenset[str] = frozenset()) -> RelayModel:
    """Give masks in front of a softmax numbers of float16, where its results stay the same.

    Scores are numbers of float16, as what stays in float32 is left alone. Three forms are known:

    - ``softmax(where(hidden, C, scores))`` with one number C: it becomes the least of float16.
      A row that is hidden wholly is uniform before and after. In another one, hidden scores get
      no weight before; afterwards neither, if its greatest score is 104 or more above that
      number. Only rows within the last 0.2% of float16's range are not so, whose scores are
      multiples of 32 there.
    - ``softmax(scores + where(hidden, C, rest))``: in float32 such a sum is C itself if C is -2**41
      or less, so it is ``where(hidden, C, scores + rest)``, the first form.
    - ``softmax(scores + mask)`` with a mask of known numbers, of which each row has one of float16:
      the others become negative infinity. The row's maximum is finite, if no such sum leaves
      float16, and what is hidden has no weight.

    Any other, such as ``(1 - mask) * C``, of which a row may be hidden wholly, would tell scores
    of such a row apart that float32 makes equal: it is left, and refused or kept in float32.

    Args:
        model: A model with inferred types that becomes float16.
        keep: Names of operators or nodes that stay float32.
    """
    masks = _Masks(model, keep)
    main = rewrite_function(model.main, masks.change)
    if main is model.main and not masks.weights():
        return model
    functions = {name: main if f is model.main else f for name, f in model.mod.functions.items()}
    params = {**model.params, **masks.weights()}
    return model.evolve(mod=model.mod.with_functions(functions), params=params)


class _Masks:
    def __init__(self, model: RelayModel, keep: frozenset[str]) -> None:
        self._params, self._keep = model.params, keep
        self._hidden: dict[Var, list[Array]] = {}
        self._users: dict[Expr, list[Expr]] = {}
        for node in post_order(model.main):
            for child in children(node):
                self._users.setdefault(child, []).append(node)

    def weights(self) -> dict[str, Weight]:
        """Return masks that are weights, each where all that read it are such sums."""
        uses = {var: sum(isinstance(x, Call) for x in self._users[var]) for var in self._hidden}
        found = {var: each for var, each in self._hidden.items() if len(each) == uses[var]}
        return {var.name_hint: ArrayWeight(each[0]) for var, each in found.items()}

    def change(self, node: Expr, new: Expr) -> Expr:
        """Return what an operator becomes, by what it is in the model and with new operands."""
        if not _is(node, "where", "add") or not isinstance(new, Call) or _is(node, *self._keep):
            return new
        if node.span is not None and node.span.source_name in self._keep:
            return new
        if not isinstance(node.type, TensorType) or node.type.dtype != "float32":
            return new
        axes = self._softmax_axes(node)
        changed = self._changed(new, axes) if axes else None
        return new if changed is None or changed.type != node.type else changed

    def _softmax_axes(self, node: Expr) -> set[int | None]:
        """Return the axes of the softmaxes, all that a value is for; None of one behind a movement.

        Whether the greatest score is negative infinity may be asked, too.
        """
        found, waiting = set[int | None](), [(node, False)]
        while waiting:
            value, moved = waiting.pop()
            for user in self._users.get(value, ()):
                if not isinstance(user, Call):
                    return set()
                if _is(user, "nn.softmax"):
                    found.add(None if moved else user.attrs["axis"])
                elif _is(user, "max") and all(map(_asks_for_infinity, self._users.get(user, ()))):
                    found |= {None} if moved else {*(user.attrs["axis"] or [None])}
                elif _is(user, "where") and user.type == value.type and user.args[0] is not value:
                    waiting.append((user, moved))
                elif trait_of(user, Moves) and user.args[0] is value:
                    waiting.append((user, True))
                else:
                    return set()
        return found

    def _changed(self, node: Call, axes: set[int | None]) -> Expr | None:
        """Return a mask's operator with other numbers, None where it is not known."""
        if _is(node, "where"):
            return _with_one(node, node, _HIDDEN, lambda other: other)
        for scores, mask in (node.args, node.args[::-1]):
            if isinstance(mask, Call) and _is(mask, "where"):
                found = _with_one(node, mask, _ABSORBS, partial(_sum, node, scores))
                if found is not None:
                    return found
            hidden = _infinite(self._numbers(mask), axes, node)
            if hidden is not None and isinstance(mask, Constant):
                return call("add", scores, Constant(hidden, mask.span), span=node.span)
            if hidden is not None and isinstance(mask, Var):
                self._hidden.setdefault(mask, []).append(hidden)
        return None

    def _numbers(self, mask: Expr) -> Array | None:
        if isinstance(mask, Constant):
            return mask.data
        weight = self._params.get(mask.name_hint) if isinstance(mask, Var) else None
        if weight is None or weight.nbytes > current_limits().values:
            return None
        return weight.array()


def _is(node: Expr, *names: str) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", None) in names


def _asks_for_infinity(node: Expr) -> bool:
    if not isinstance(node, Call) or not _is(node, "equal"):
        return False
    return any(isinstance(x, Constant) and bool((x.data == -np.inf).all()) for x in node.args)


def _with_one(node: Call, mask: Call, most: float, other: Callable[[Expr], Expr]) -> Expr | None:
    """Return a choice with one of its numbers, up to `most`, as the least one of float16."""
    found = [_saturated(each, most) for each in mask.args[1:]]
    if found.count(None) != 1:
        return None
    sides = [new or other(old) for new, old in zip(found, mask.args[1:], strict=True)]
    return call("where", mask.args[0], *sides, span=node.span)


def _sum(node: Call, scores: Expr, rest: Expr) -> Expr:
    if isinstance(rest, Constant) and not rest.data.any():
        return scores
    return call("add", scores, rest, span=node.span)


def _saturated(branch: Expr, most: float) -> Constant | None:
    """Return a constant of one number up to `most` as the least one of float16."""
    if not isinstance(branch, Constant) or not branch.data.size:
        return None
    least, greatest = branch.data.min(), branch.data.max()
    if not (least == greatest <= most and np.isfinite(least)):
        return None
    return Constant(np.full_like(branch.data, -_END), branch.span)


def _infinite(mask: Array | None, axes: set[int | None], node: Call) -> Array | None:
    """Return a mask with negative infinities, if it hides something and no row wholly."""
    rank = len(getattr(node.type, "shape", ()))
    if mask is None or None in axes or mask.dtype != np.float32:
        return None
    hidden, held = (mask <= _HIDES) & np.isfinite(mask), np.abs(mask) <= _END
    whole = held.reshape((1,) * (rank - mask.ndim) + mask.shape)
    if not hidden.any() or not (hidden | held).all():
        return None
    if not all(whole.any(axis).all() for axis in axes if axis is not None):
        return None
    return np.where(hidden, np.float32(-np.inf), mask)
