"""Rewrites of casts, clips, and of the order of quantised numbers."""

from __future__ import annotations

import math

from serde.core.weights import numpy_dtype
from serde.relay.ir import Call, Expr, TensorType, call, limits
from serde.relay.tvm.dataflow_pattern.language import is_op, wildcard
from serde.relay.tvm.dataflow_pattern.rewriting import DFPatternCallback, NodeMap
from serde.relay.tvm.passes.simplify_shapes import any_of
from serde.relay.tvm.passes.typed import is_call, operator_of

__all__ = [
    "SimplifyClip", "SimplifyClipAndConsecutiveCast", "SimplifyConsecutiveCast",
    "SimplifyDequantizedOrder", "SimplifySameCast",
]  # fmt: skip


def _dtype(node: Expr) -> str:
    return node.type.dtype if isinstance(node.type, TensorType) else ""


def _operand(node: Expr) -> Expr:
    return node.args[0] if isinstance(node, Call) else node


class SimplifySameCast(DFPatternCallback):
    """A cast to the dtype that a tensor has goes."""

    def __init__(self) -> None:
        super().__init__()
        self._data = wildcard()
        like = is_op("cast_like")(self._data, wildcard())
        self.pattern = like | is_op("cast")(self._data)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the operand."""
        same = _dtype(pre) == _dtype(_operand(pre))
        return node_map[self._data][0] if same else post


class SimplifyConsecutiveCast(DFPatternCallback):
    """Of two casts in a row, the first goes if it loses nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._data = wildcard()
        first = is_op("cast_like")(self._data, wildcard()) | is_op("cast")(self._data)
        self.pattern = is_op("cast_like")(first, wildcard()) | is_op("cast")(first)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return one cast."""
        data, between = node_map[self._data][0], _operand(post)
        if not _widens(_dtype(data), _dtype(between)):
            return post
        return call("cast", data, dtype=_dtype(post), span=post.span)


def _widens(source: str, target: str) -> bool:
    """Whether a cast loses nothing: to more bits of one kind, or of integers to wide floats."""
    if source == target:
        return True
    one, other = numpy_dtype(source), numpy_dtype(target)
    if one.kind == "b":
        return other.kind in "iuf"
    if one.kind == other.kind and one.kind in "iuf":
        return one.itemsize <= other.itemsize
    if one.kind in "iu" and other.kind == "f":
        return _is_exact(target, *_bounds(source))
    return False


def _is_exact(dtype: str, low: float, high: float) -> bool:
    """Whether a dtype of floats has all integers from `low` to `high`."""
    most = 2.0 / float(limits(dtype).eps)
    return -most <= low and high <= most


class SimplifyClipAndConsecutiveCast(DFPatternCallback):
    """Casts after a clip go where their dtype holds all that the clip lets through."""

    def __init__(self) -> None:
        super().__init__()
        self._clip = is_op("clip")(wildcard())
        below = wildcard()
        self.pattern = is_op("cast")(below)
        below.redirect_to(self.pattern | self._clip)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the clip, after it the casts that lose something, and one for the dtype."""
        casts: list[str] = []
        clip = post
        while is_call(clip, "cast"):
            casts.insert(0, _dtype(clip))
            clip = _operand(clip)
        if not isinstance(clip, Call):
            return post
        low, high = clip.attrs["a_min"], clip.attrs["a_max"]
        kept: list[str] = []
        for dtype, following in zip(casts, [*casts[1:], None], strict=True):
            if kept:
                needless = _widens(kept[-1], dtype)
            else:
                needless = _is_needless(_dtype(clip), dtype, following, low, high)
            kept += [] if needless else [dtype]
        if (kept or [_dtype(clip)])[-1] != casts[-1]:
            kept.append(casts[-1])
        if kept == casts:
            return post
        result: Expr = clip
        for dtype in kept:
            result = call("cast", result, dtype=dtype, span=post.span)
        return result


def _bounds(dtype: str) -> tuple[float, float]:
    if dtype == "bool":
        return 0.0, 1.0
    found = limits(dtype)
    return float(found.min), float(found.max)


def _is_needless(source: str, dtype: str, following: str | None, low: float, high: float) -> bool:
    """Whether a cast between a clip and another cast, if any, changes no number."""
    if _holds(source, dtype, low, high):
        return True
    # Fractions are cut off by the next cast too.
    later = [dtype, following or source]
    integers = all(numpy_dtype(each).kind in "iu" for each in later)
    return integers and all(_holds("int64", each, low, high) for each in later)


def _holds(source: str, dtype: str, low: float, high: float) -> bool:
    """Whether a dtype has all numbers of `source` from `low` to `high`."""
    if numpy_dtype(source).kind not in "iu":
        return _widens(source, dtype)
    if numpy_dtype(dtype).kind not in "biu":
        return _is_exact(dtype, low, high)
    least, greatest = _bounds(dtype)
    return least <= low and high <= greatest


class SimplifyClip(DFPatternCallback):
    """A clip that lets all numbers of its dtype through goes; a second one joins the first.

    After ``qnn.requantize`` and ``qnn.add`` it stays: targets look for it there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._data = wildcard()
        self.pattern = is_op("clip")(self._data)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the operand, or the cast of one clip."""
        data = node_map[self._data][0]
        if not isinstance(post, Call) or is_call(data, "qnn.requantize", "qnn.add"):
            return post
        first = _operand(data)
        if is_call(data, "cast") and isinstance(first, Call) and is_call(first, "clip"):
            return _join_clips(first, data, post)
        least, greatest = _bounds(_dtype(pre))
        if numpy_dtype(_dtype(pre)).kind not in "biu":
            least, greatest = -math.inf, math.inf  # A clip has an effect on infinities too.
        all_through = post.attrs["a_min"] <= least and greatest <= post.attrs["a_max"]
        return data if all_through else post


def _join_clips(first: Call, cast: Expr, second: Call) -> Expr:
    """Return one clip and the cast behind it, where the cast has all that `first` lets through."""
    low, high = first.attrs["a_min"], first.attrs["a_max"]
    least, most = max(low, second.attrs["a_min"]), min(high, second.attrs["a_max"])
    integers = all(numpy_dtype(_dtype(each)).kind in "iu" for each in (first, cast))
    whole = least <= most and float(least).is_integer() and float(most).is_integer()
    if not (integers and whole and _holds(_dtype(first), _dtype(cast), low, high)):
        return second
    one = call("clip", _operand(first), a_min=least, a_max=most, span=second.span)
    return call("cast", one, dtype=_dtype(cast), span=second.span)


class SimplifyDequantizedOrder(DFPatternCallback):
    """What only asks for the order of numbers asks the quantised ones."""

    def __init__(self) -> None:
        super().__init__()
        numbers = is_op("qnn.dequantize")(wildcard(), wildcard(), wildcard())
        names = ("argmax", "argmin", "argsort")
        self.pattern = any_of(*(is_op(name)(numbers) for name in names))

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the operator on what was dequantised."""
        if not isinstance(post, Call):
            return post
        quantised = _operand(_operand(post))
        return call(operator_of(post), quantised, span=post.span, **post.attrs)
