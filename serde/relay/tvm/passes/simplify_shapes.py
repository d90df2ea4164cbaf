"""Rewrites of what moves elements: operators of a like shape, reshapes, transposes."""

from __future__ import annotations

from collections.abc import Sequence

from serde.relay.ir import Call, Expr, TensorType, call, const
from serde.relay.tvm.dataflow_pattern.language import is_op, wildcard
from serde.relay.tvm.dataflow_pattern.patterns import DFPattern
from serde.relay.tvm.dataflow_pattern.rewriting import DFPatternCallback, NodeMap
from serde.relay.tvm.passes.typed import is_call, operator_of

__all__ = [
    "ConcretizeLike", "SimplifyNoOpTranspose", "SimplifyReshape", "SimplifyTranspose", "any_of",
    "calls_of", "concrete",
]  # fmt: skip


def any_of(*patterns: DFPattern) -> DFPattern:
    """Return the pattern of what matches one of `patterns`, tried in order.

    Halves are nested, so that the pattern is as flat as can be.
    """
    if len(patterns) == 1:
        return patterns[0]
    half = len(patterns) // 2
    return any_of(*patterns[:half]) | any_of(*patterns[half:])


def calls_of(names: Sequence[str], *args: DFPattern) -> DFPattern:
    """Return the pattern of a call of one of these operators."""
    return any_of(*(is_op(name)(*args) for name in names))


def concrete(node: Expr) -> tuple[int, ...] | None:
    """Return the shape of a tensor all of whose lengths are known."""
    return node.type.concrete_shape if isinstance(node.type, TensorType) else None


class ConcretizeLike(DFPatternCallback):
    """Operators with the shape or the dtype of another tensor name it, if it is known."""

    def __init__(self) -> None:
        super().__init__()
        one = [is_op(name)(wildcard()) for name in ("zeros_like", "ones_like")]
        names = ("full_like", "reshape_like", "collapse_sum_like", "broadcast_to_like", "cast_like")
        self.pattern = any_of(*one, *(is_op(name)(wildcard(), wildcard()) for name in names))

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the call that says it all."""
        type_, name = pre.type, operator_of(post)
        if not isinstance(type_, TensorType) or not isinstance(post, Call):
            return post
        data, dtype = post.args[0], type_.dtype
        if name == "cast_like":
            return call("cast", data, dtype=dtype, span=post.span)
        shape = type_.concrete_shape
        if shape is None:
            return post
        if name in ("zeros_like", "ones_like"):
            return call(name.removesuffix("_like"), shape=shape, dtype=dtype, span=post.span)
        if name == "full_like":
            return call("full", post.args[1], shape=shape, dtype=dtype, span=post.span)
        if name == "reshape_like":
            return call("reshape", data, newshape=shape, span=post.span)
        if name == "broadcast_to_like":
            return call("broadcast_to", data, shape=shape, span=post.span)
        return call("collapse_sum_to", data, const(list(shape), "int32"), span=post.span)


class SimplifyReshape(DFPatternCallback):
    """Two reshapes in a row become one, if the shape of the result is known."""

    def __init__(self) -> None:
        super().__init__()
        self._data = wildcard()
        names = ("reshape", "contrib_reverse_reshape")
        self.pattern = calls_of(names, calls_of(names, self._data))

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return one reshape."""
        shape = concrete(pre)
        if shape is None:
            return post
        return call("reshape", node_map[self._data][0], newshape=shape, span=post.span)


class SimplifyTranspose(DFPatternCallback):
    """Two transposes in a row become one; so do those that ``layout_transform`` is."""

    def __init__(self) -> None:
        super().__init__()
        self._data = wildcard()
        names = ("transpose", "layout_transform")
        self.pattern = calls_of(names, calls_of(names, self._data))

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return one call."""
        data, below = node_map[self._data][0], post.args[0] if isinstance(post, Call) else post
        if not isinstance(post, Call) or not isinstance(below, Call):
            return post
        if _changes_rank(post) or _changes_rank(below):
            return _join_layouts(data, below, post)
        rank = pre.type.rank if isinstance(pre.type, TensorType) else 0
        inner, outer = _axes_of(below, rank), _axes_of(post, rank)
        axes = tuple(inner[axis] for axis in outer)
        return call("transpose", data, axes=axes, span=post.span)


class SimplifyNoOpTranspose(DFPatternCallback):
    """A transpose that keeps the order of axes goes, and a layout that becomes itself."""

    def __init__(self) -> None:
        super().__init__()
        self._data = wildcard()
        self.pattern = is_op("transpose")(self._data) | is_op("layout_transform")(self._data)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the operand."""
        data = node_map[self._data][0]
        if not isinstance(post, Call) or not isinstance(pre.type, TensorType):
            return post
        if is_call(post, "layout_transform"):
            return data if post.attrs["src_layout"] == post.attrs["dst_layout"] else post
        rank = pre.type.rank
        return data if _axes_of(post, rank) == tuple(range(rank)) else post


def _axes(layout: str) -> list[str]:
    """Return the axes that a layout names: letters, small ones with the length of their blocks."""
    found: list[str] = []
    digits = ""
    for letter in layout:
        if letter.isdigit():
            digits += letter
        else:
            found.append(digits + letter)
            digits = ""
    return found


def _letters(layout: str) -> list[str]:
    return [axis[-1] for axis in _axes(layout)]


def _changes_rank(node: Call) -> bool:
    """Whether a node transforms a layout into one of another length, as texts have one."""
    if not is_call(node, "layout_transform"):
        return False
    return len(node.attrs["src_layout"]) != len(node.attrs["dst_layout"]) or any(
        map(str.islower, node.attrs["src_layout"] + node.attrs["dst_layout"])
    )


def _axes_of(node: Call, rank: int) -> tuple[int, ...]:
    """Return where each axis of a result comes from."""
    if is_call(node, "layout_transform"):
        source, target = _letters(node.attrs["src_layout"]), _letters(node.attrs["dst_layout"])
        return tuple(source.index(letter) for letter in target)
    axes = node.attrs["axes"]
    if not axes:
        return tuple(reversed(range(rank)))
    return tuple(axis % rank for axis in axes)


def _join_layouts(data: Expr, below: Call, above: Call) -> Expr:
    """Return one ``layout_transform`` for two nodes one of which at least splits axes."""
    if is_call(below, "layout_transform") and is_call(above, "layout_transform"):
        if below.attrs["dst_layout"] != above.attrs["src_layout"]:
            return above
        source, target = below.attrs["src_layout"], above.attrs["dst_layout"]
    elif is_call(below, "transpose"):
        target, whole = above.attrs["dst_layout"], _axes(above.attrs["src_layout"])
        source = _undo_order(whole, _axes_of(below, len(whole)))
    else:
        source, whole = below.attrs["src_layout"], _axes(below.attrs["dst_layout"])
        target = "".join(whole[axis] for axis in _axes_of(above, len(whole)))
    if source == target:
        return data
    return call("layout_transform", data, src_layout=source, dst_layout=target, span=above.span)


def _undo_order(axes: Sequence[str], order: Sequence[int]) -> str:
    """Return the layout that has the axes `axes` once it is transposed by `order`."""
    found = [""] * len(axes)
    for index, axis in enumerate(order):
        found[axis] = axes[index]
    return "".join(found)
