"""What the folding of scales knows of operators: along which axes they take a scale."""

from __future__ import annotations

from collections.abc import Sequence

from serde.core.records import dataclass
from serde.relay.ir import Call, Constant, Expr, TensorType, call, is_float
from serde.relay.tvm.passes.typed import is_call

__all__ = [
    "Message", "are_known", "broadcasts_along", "expand_to_axes", "is_rectifier",
    "is_scaled_layer", "layer_axes", "scale_weight", "spread", "squeezed_along", "tensor_type",
]  # fmt: skip


def expand_to_axes(vector: Expr, rank: int, axes: Sequence[int]) -> Expr:
    """Return a tensor with the axes `axes` of a larger one, with axes of length 1 between.

    Axes in front are left to broadcasting.
    """
    after = rank
    for index in reversed(range(len(axes))):
        missing = after - axes[index] - 1
        if missing > 0:
            vector = call("expand_dims", vector, axis=index + 1, num_newaxis=missing)
        after = axes[index]
    return vector


def _reshape_to_axes(scale: Expr, data: TensorType, axes: Sequence[int]) -> Expr | None:
    """Return a scale of several axes in the rank of `data`; None where a length is not known."""
    lengths = [data.shape[index] if index in axes else 1 for index in range(data.rank)]
    if any(type(length) is not int for length in lengths):
        return None
    return call("reshape", scale, newshape=tuple(lengths))


def broadcasts_along(data: TensorType, other: TensorType, axes: Sequence[int]) -> bool:
    """Whether `other`, broadcast to `data`, has all of these axes and varies along them alone."""
    return _unit_axes(data, other, axes) is not None


def _unit_axes(data: TensorType, other: TensorType, axes: Sequence[int]) -> list[int] | None:
    """Return the axes of `other` that have length 1, or None where it varies along others."""
    base = data.rank - other.rank
    if base < 0:
        return None
    units = []
    for index, length in enumerate(data.shape):
        if index in axes:
            if index < base or other.shape[index - base] != length:
                return None
        elif index >= base:
            if other.shape[index - base] != 1:
                return None
            units.append(index - base)
    return units


def squeezed_along(
    data: TensorType, value: Expr, other: TensorType, axes: Sequence[int]
) -> Expr | None:
    """Return a factor with nothing but `axes` of `data`, or None where it varies otherwise.

    Args:
        data: What is multiplied.
        value: The factor; a scalar is repeated along the axes.
        other: Type of the factor.
        axes: The axes.
    """
    if other.rank == 0 and axes:
        lengths = [data.shape[axis] for axis in axes]
        value = call("expand_dims", value, axis=0, num_newaxis=len(axes))
        for index, length in enumerate(lengths):
            if type(length) is not int:
                return None
            value = call("repeat", value, repeats=length, axis=index)
        return value
    units = _unit_axes(data, other, axes)
    if units is None:
        return None
    return call("squeeze", value, axis=tuple(units)) if units else value


_CONVOLUTIONS = ("nn.conv2d", "nn.conv3d")


@dataclass(frozen=True)
class Message:
    """Axes along which a value may be scaled.

    Attributes:
        axes: The axes, in order.
        positive: Whether factors must not be negative.
        divides: Whether something is divided by the factors, which must not be zero then.
    """

    axes: tuple[int, ...]
    positive: bool = False
    divides: bool = False

    def meet(self, other: Message | None) -> Message | None:
        """Return what both allow."""
        if other is None:
            return None
        axes = tuple(axis for axis in self.axes if axis in other.axes)
        positive, divides = self.positive or other.positive, self.divides or other.divides
        return Message(axes, positive, divides) if axes else None

    def takes(self, scale: Expr) -> bool:
        """Whether a factor, in whatever shape, is as it must be."""
        if self.divides and _has_zero(scale):
            return False
        return not self.positive or _is_positive(scale)


def tensor_type(node: Expr) -> TensorType:
    """Return the type of a typed tensor."""
    if not isinstance(node.type, TensorType):
        raise TypeError(f"expected a tensor, found {node!r}")
    return node.type


def is_rectifier(node: Expr) -> bool:
    """Whether a factor that is not negative may go through."""
    return is_call(node, "nn.relu", "nn.leaky_relu")


def is_scaled_layer(node: Expr) -> bool:
    """Whether a node calls a layer whose weight may take a scale."""
    return is_call(node, "nn.dense", *_CONVOLUTIONS)


def _letters(layout: str) -> list[str]:
    return [letter for letter in layout if letter.isalpha()]


def layer_axes(layer: Call, *, of_result: bool) -> tuple[int, ...] | None:
    """Return the axes of channels that a layer's weight can scale, or None.

    Convolutions are those of one group, or of one channel in each; with whole axes, or with
    blocks of the channels in data, kernel inputs and kernel outputs.

    Args:
        layer: The layer.
        of_result: Whether its result is scaled, not its data.
    """
    weight = layer.args[1].type
    data = layer if of_result else layer.args[0]
    if not isinstance(weight, TensorType) or not isinstance(data.type, TensorType):
        return None
    if not _is_of_one_dtype(weight, data.type, tensor_type(layer)):
        return None
    if is_call(layer, "nn.dense"):
        return (1,) if data.type.rank == 2 and weight.rank == 2 else None
    attrs = layer.attrs
    layout = attrs["data_layout"]
    if of_result and attrs["out_layout"]:
        layout = attrs["out_layout"]
    axes, kernel = _letters(layout), _letters(attrs["kernel_layout"])
    if attrs["groups"] != 1 and not _is_depthwise(layer):
        return None
    blocked = "c" in axes
    if {"o" in kernel, "i" in kernel} != {blocked} or "I" not in kernel:
        return None
    if blocked and not are_known(weight, [kernel.index(letter) for letter in "OIoi"]):
        return None
    return (axes.index("C"), axes.index("c")) if blocked else (axes.index("C"),)


def _is_of_one_dtype(weight: TensorType, scaled: TensorType, result: TensorType) -> bool:
    """Whether a weight times a scale is computed as what is scaled.

    Narrow integers would overflow elsewhere, where the result has wider ones.
    """
    if weight.dtype != scaled.dtype:
        return False
    return is_float(weight.dtype) or weight.dtype == result.dtype


def _is_depthwise(layer: Call) -> bool:
    """Whether each group has one channel and one filter."""
    weight, kernel = tensor_type(layer.args[1]), _letters(layer.attrs["kernel_layout"])
    totals = {"O": 1, "I": 1}
    for letter, length in zip(kernel, weight.shape, strict=True):
        if letter.upper() in totals:
            if type(length) is not int:
                return False
            totals[letter.upper()] *= length
    return totals == {"O": layer.attrs["groups"], "I": 1}


def scale_weight(layer: Call, weight: Expr, scale: Expr, *, of_result: bool) -> Expr:
    """Return the weight of a layer times a scale of its channels.

    Args:
        layer: The layer as it was; see :func:`layer_axes`.
        weight: Its weight as it is.
        scale: The factor, with nothing but the axes of channels.
        of_result: Whether its result is scaled, not its data.
    """
    if is_call(layer, "nn.dense"):
        factor = expand_to_axes(scale, 2, [0]) if of_result else scale
        return call("multiply", weight, factor)
    kernel = _letters(layer.attrs["kernel_layout"])
    outputs = of_result or _is_depthwise(layer)
    places = [kernel.index(letter) for letter in ("Oo" if outputs else "Ii") if letter in kernel]
    factor = spread(scale, tensor_type(layer.args[1]), tuple(places))
    return call("multiply", weight, factor)


def spread(scale: Expr, data: TensorType, axes: tuple[int, ...]) -> Expr:
    """Return a scale of some axes so that it broadcasts to `data`, their lengths being known."""
    if len(axes) == 1:
        return expand_to_axes(scale, data.rank, axes)
    return _reshape_to_axes(scale, data, axes) or scale


def are_known(data: TensorType, axes: tuple[int, ...] | list[int]) -> bool:
    """Whether the lengths of some axes are integers, if there are several."""
    return len(axes) == 1 or all(type(data.shape[axis]) is int for axis in axes)


_PEELED = ("expand_dims", "reshape", "transpose", "squeeze", "repeat")
_SIGNED = ("float32", "float64", "int8", "int32", "uint8", "uint32")


def _constant(node: Expr) -> Constant | None:
    """Return the constant that a node is, in whatever shape."""
    while isinstance(node, Call) and is_call(node, *_PEELED):
        node = node.args[0]
    return node if isinstance(node, Constant) else None


def _is_positive(node: Expr) -> bool:
    """Whether a node is a constant without negative elements."""
    found = _constant(node)
    if found is None or str(found.data.dtype) not in _SIGNED:
        return False
    return not bool((found.data < 0).any())


def _has_zero(node: Expr) -> bool:
    """Whether a node is a constant with an element that is zero."""
    found = _constant(node)
    return found is not None and bool((found.data == 0).any())
