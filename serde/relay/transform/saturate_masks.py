"""Masks in front of a softmax whose numbers float16 does not hold, as numbers that it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from serde.core import Array, dataclass
from serde.relay.ir import Call, Constant, Expr, Function, Moves, call, trait_of
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import children, post_order, rewrite_function
from serde.relay.transform.base import FunctionPass

__all__ = ["SaturateMasks"]

_END: Final = float(np.finfo(np.float16).max)
_HIDDEN, _HIDES, _ABSORBS = -_END - 104, -2 * _END - 104, -(2.0**41)
"""From where down a number has no weight beside one of float16 (exp(-104) is 0 in float32), its sum
with one neither, and such a sum is the number itself, in float32."""


@dataclass(frozen=True)
class SaturateMasks(FunctionPass):
    """Give masks in front of a softmax numbers of float16, where its results stay the same.

    Scores are numbers of float16, as what stays in float32 is left alone. Three forms are known:

    - ``softmax(where(hidden, C, scores))`` with one number C: it becomes the least of float16.
      A row that is hidden wholly is uniform before and after. In another one, hidden scores get
      no weight before; afterwards neither, if its greatest score is 104 or more above that
      number. Only rows within the last 0.2% of float16's range are not so, whose scores are
      multiples of 32 there.
    - ``softmax(scores + where(hidden, C, rest))``: in float32 such a sum is C itself if C is -2**41
      or less, so it is ``where(hidden, C, scores + rest)``, the first form.
    - ``softmax(scores + mask)`` with a constant mask of which each row has a zero: its numbers
      become negative infinity. The row's maximum is finite, and what is hidden has no weight.

    Any other, such as ``(1 - mask) * C``, of which a row may be hidden wholly, would tell scores
    of such a row apart that float32 makes equal: it is left, and refused or kept in float32.

    Args:
        keep: Names of operators or nodes that stay float32.
    """

    name: ClassVar[str] = "SaturateMasks"

    keep: frozenset[str] = frozenset()

    def transform(self, function: Function) -> Function:
        """Change the masks of one function."""
        users: dict[Expr, list[Expr]] = {}
        for node in post_order(function):
            for child in children(node):
                users.setdefault(child, []).append(node)

        def change(node: Expr, new: Expr) -> Expr:
            if not (_is(node, "where", "add") and isinstance(new, Call)) or self._stays(node):
                return new
            if not isinstance(node.type, TensorType) or node.type.dtype != "float32":
                return new
            axes = _softmax_axes(node, users)
            changed = _changed(new, axes) if axes else None
            return new if changed is None or changed.type != node.type else changed

        return rewrite_function(function, change)

    def _stays(self, node: Expr) -> bool:
        names = {"" if node.span is None else node.span.source_name}
        return bool(self.keep & names) or _is(node, *self.keep)


def _is(node: Expr, *names: str) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", None) in names


def _softmax_axes(node: Expr, users: Mapping[Expr, Sequence[Expr]]) -> set[int | None]:
    """Return the axes of the softmaxes, all that a value is for; None of one behind a movement."""
    found, waiting = set[int | None](), [(node, False)]
    while waiting:
        value, moved = waiting.pop()
        for user in users.get(value, ()):
            if _is(user, "nn.softmax") and isinstance(user, Call):
                found.add(None if moved else user.attrs["axis"])
            elif isinstance(user, Call) and trait_of(user, Moves) and user.args[0] is value:
                waiting.append((user, True))
            else:
                return set()
    return found


def _changed(node: Call, axes: set[int | None]) -> Expr | None:
    """Return a mask's operator with other numbers, None where it is not known."""
    if _is(node, "where"):
        found = [_saturated(each, _HIDDEN) for each in node.args[1:]]
        if found.count(None) != 1:
            return None
        branches = [new or old for new, old in zip(found, node.args[1:], strict=True)]
        return call("where", node.args[0], *branches, span=node.span)
    for scores, mask in (node.args, node.args[::-1]):
        if isinstance(mask, Constant):
            hidden = _infinite(mask.data, axes, node)
            if hidden is not None:
                return call("add", scores, Constant(hidden, mask.span), span=node.span)
        elif _is(mask, "where") and isinstance(mask, Call):
            found = [_saturated(each, _ABSORBS) for each in mask.args[1:]]
            if found.count(None) == 1:
                sums = [
                    each or _sum(scores, rest, node)
                    for each, rest in zip(found, mask.args[1:], strict=True)
                ]
                return call("where", mask.args[0], *sums, span=node.span)
    return None


def _sum(scores: Expr, rest: Expr, node: Call) -> Expr:
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


def _infinite(mask: Array, axes: set[int | None], node: Call) -> Array | None:
    """Return a constant mask with negative infinities, if it hides something and no row wholly."""
    hidden = (mask <= _HIDES) & np.isfinite(mask)
    rank = len(getattr(node.type, "shape", ()))
    if None in axes or not hidden.any():
        return None
    whole = mask.reshape((1,) * (rank - mask.ndim) + mask.shape)
    if not all((whole == 0).any(axis).all() for axis in axes if axis is not None):
        return None
    return np.where(hidden, -np.inf, mask).astype(mask.dtype)
