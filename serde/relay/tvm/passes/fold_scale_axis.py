"""Scales of channels folded into the weights of the layer before or after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from serde.core.records import dataclass, replace
from serde.relay.ir import Call, Expr, Function, call, is_float
from serde.relay.ir.visit import children, post_order, rebuild, use_counts
from serde.relay.transform.base import Sequential
from serde.relay.tvm.passes.fold_constant import FoldConstant
from serde.relay.tvm.passes.scale_messages import (
    Message,
    are_known,
    broadcasts_along,
    is_rectifier,
    is_scaled_layer,
    layer_axes,
    scale_weight,
    spread,
    squeezed_along,
    tensor_type,
)
from serde.relay.tvm.passes.typed import TypedPass, is_call, operator_of

__all__ = ["BackwardFoldScaleAxis", "FoldScaleAxis", "ForwardFoldScaleAxis"]


class ForwardFoldScaleAxis(TypedPass):
    """Fold ``multiply`` by a scale of channels into the layers that it feeds.

    The layers are ``nn.conv2d``, ``nn.conv3d`` (of one group, or depthwise; channels in blocks or
    not) and ``nn.dense``. Between may stand ``nn.relu`` and ``nn.leaky_relu``, through which only
    constants without negative elements go, and ``add`` and ``subtract`` of something that is
    divided by the scale, which is no constant with zeros then. Every use of the product must come
    to such a layer. Products are rounded in another place.
    """

    name: ClassVar[str] = "ForwardFoldScaleAxis"
    opt_level: ClassVar[int] = 3

    def transform(self, function: Function) -> Function:
        """Ask the layers what they take, from the result down; then fold, upwards."""
        order = post_order(function)
        messages = _ask_downwards(order)
        if not any(messages.values()):
            return function
        result = _Forward(messages).run(order)
        return result if isinstance(result, Function) else function


class BackwardFoldScaleAxis(TypedPass):
    """Fold ``multiply`` by a scale of channels into the layer that feeds it alone.

    As :class:`ForwardFoldScaleAxis`, the other way; ``nn.bias_add`` may stand between too, and
    what is added is multiplied by the scale.
    """

    name: ClassVar[str] = "BackwardFoldScaleAxis"
    opt_level: ClassVar[int] = 3

    def transform(self, function: Function) -> Function:
        """Ask the layers what they take, upwards; hand scales down; then fold, upwards."""
        order = post_order(function)
        messages = _ask_upwards(function, order)
        if not messages:
            return function
        result = _Backward(messages).run(order)
        return result if isinstance(result, Function) else function


class FoldScaleAxis(Sequential):
    """Fold scales backward, then forward, then what has become constant.

    Each of the three is enabled by the current :class:`PassContext` at its own level.
    """

    name: ClassVar[str] = "FoldScaleAxis"

    def __init__(self) -> None:
        passes = [BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant()]
        super().__init__(passes, name=self.name)


# Forward.


def _ask_downwards(order: list[Expr]) -> dict[Expr, Message | None]:
    """Return along which axes all that use a node can take a scale of it."""
    messages: dict[Expr, Message | None] = {}

    def tell(node: Expr, message: Message | None) -> None:
        known = messages.get(node, message)
        messages[node] = None if known is None else known.meet(message)

    for node in reversed(order):
        wanted = _forward_wishes(node, messages.get(node))
        for index, child in enumerate(children(node)):
            tell(child, wanted.get(index))
    return messages


def _forward_wishes(node: Expr, message: Message | None) -> dict[int, Message]:
    """Return what a node can take of its operands, by their place, if it takes anything.

    Args:
        node: The node.
        message: What its users can take of it.
    """
    if not isinstance(node, Call):
        return {}
    if is_scaled_layer(node):
        axes = layer_axes(node, of_result=False)
        return {} if axes is None else {0: Message(axes)}
    if message is None:
        return {}
    if is_rectifier(node):
        return {0: replace(message, positive=True)}
    if is_call(node, "add", "subtract"):
        left, right = (tensor_type(each) for each in node.args)
        if not is_float(left.dtype):
            return {}  # A quotient of integers is rounded.
        divided = replace(message, divides=True)
        if broadcasts_along(left, right, message.axes) and are_known(left, message.axes):
            return {0: divided}
        if broadcasts_along(right, left, message.axes) and are_known(right, message.axes):
            return {1: divided}
    return {}


@dataclass(frozen=True)
class _Scaled:
    """A value that is still to be multiplied by a scale of some axes."""

    value: Expr
    scale: Expr
    axes: tuple[int, ...]


class _Forward:
    def __init__(self, messages: Mapping[Expr, Message | None]) -> None:
        self._messages = messages
        self._done: dict[Expr, Expr] = {}
        self._scaled: dict[Expr, _Scaled] = {}

    def run(self, order: list[Expr]) -> Expr:
        """Return what the last node has become."""
        for node in order:
            scaled = self._scale(node) if isinstance(node, Call) else None
            if scaled is not None:
                self._scaled[node] = scaled
                continue
            below = children(node)
            self._done[node] = self._fold(node) or (
                rebuild(node, [self._done[child] for child in below]) if below else node
            )
        return self._done[order[-1]]

    def _fold(self, node: Expr) -> Expr | None:
        """Return a layer with the scale of its data in its weight; None without one."""
        if not isinstance(node, Call) or not is_scaled_layer(node):
            return None
        scaled = self._scaled.get(node.args[0])
        if scaled is None:
            return None
        weight = scale_weight(node, self._done[node.args[1]], scaled.scale, of_result=False)
        return call(operator_of(node), scaled.value, weight, span=node.span, **node.attrs)

    def _scale(self, node: Call) -> _Scaled | None:
        """Return a node without the scale that it makes or hands on; None without one."""
        if is_call(node, "multiply"):
            message = self._messages.get(node)
            return None if message is None else self._begin(node, message)
        if is_rectifier(node) and node.args[0] in self._scaled:
            scaled = self._scaled[node.args[0]]
            value = call(operator_of(node), scaled.value, span=node.span, **node.attrs)
            return _Scaled(value, scaled.scale, scaled.axes)
        if is_call(node, "add", "subtract"):
            for place in (0, 1):
                if node.args[place] in self._scaled:
                    return self._divide(node, place)
        return None

    def _begin(self, node: Call, message: Message) -> _Scaled | None:
        for place in (1, 0):
            data, factor = node.args[1 - place], node.args[place]
            types = tensor_type(data), tensor_type(factor)
            done = self._done[factor]
            scale = squeezed_along(types[0], done, types[1], message.axes)
            if scale is not None and message.takes(scale):
                return _Scaled(self._done[data], scale, message.axes)
        return None

    def _divide(self, node: Call, index: int) -> _Scaled:
        scaled = self._scaled[node.args[index]]
        factor = spread(scaled.scale, tensor_type(node.args[index]), scaled.axes)
        other = call("divide", self._done[node.args[1 - index]], factor)
        args = (scaled.value, other) if index == 0 else (other, scaled.value)
        value = call(operator_of(node), *args, span=node.span)
        return _Scaled(value, scaled.scale, scaled.axes)


# Backward.


def _ask_upwards(function: Function, order: list[Expr]) -> dict[Expr, Message]:
    """Return along which axes the layers below a node can scale it."""
    uses = use_counts(function)
    messages: dict[Expr, Message] = {}
    for node in order:
        if isinstance(node, Call) and uses[node] == 1:
            message = _backward_offer(node, messages)
            if message is not None:
                messages[node] = message
    return messages


def _backward_offer(node: Call, messages: Mapping[Expr, Message]) -> Message | None:
    if is_scaled_layer(node):
        axes = layer_axes(node, of_result=True)
        return None if axes is None else Message(axes)
    if not node.args:
        return None
    first = messages.get(node.args[0])
    if is_rectifier(node):
        return None if first is None else replace(first, positive=True)
    if is_call(node, "nn.bias_add"):
        rank = tensor_type(node.args[0]).rank
        same = first is not None and first.axes == (node.attrs["axis"] % rank,)
        return first if same else None
    if not is_call(node, "add", "subtract"):
        return None
    return _offer_of_sum(node, first, messages.get(node.args[1]))


def _offer_of_sum(node: Call, first: Message | None, second: Message | None) -> Message | None:
    left, right = (tensor_type(each) for each in node.args)
    if first is not None and second is not None:
        if first.axes != second.axes or left.shape != right.shape:
            return None
        return first.meet(second)
    if first is not None:
        fits = broadcasts_along(left, right, first.axes) and are_known(left, first.axes)
        return first if fits else None
    if second is not None:
        fits = broadcasts_along(right, left, second.axes) and are_known(right, second.axes)
        return second if fits else None
    return None


class _Backward:
    def __init__(self, messages: Mapping[Expr, Message]) -> None:
        self._messages = messages
        self._scales: dict[Expr, Expr] = {}
        self._products: dict[Expr, Expr] = {}
        self._done: dict[Expr, Expr] = {}

    def run(self, order: list[Expr]) -> Expr:
        """Return what the last node has become."""
        for node in reversed(order):
            if isinstance(node, Call):
                self._hand_down(node)
        for node in order:
            if node in self._products:
                self._done[node] = self._done[self._products[node]]
                continue
            below = children(node)
            new = rebuild(node, [self._done[child] for child in below]) if below else node
            if node in self._scales and isinstance(node, Call) and isinstance(new, Call):
                new = self._fold(node, new, self._scales[node])
            self._done[node] = new
        return self._done[order[-1]]

    def _hand_down(self, node: Call) -> None:
        """Note by what the operands of a node are multiplied."""
        if is_call(node, "multiply"):
            self._begin(node)
        elif node in self._scales and not is_scaled_layer(node):
            for child in node.args:
                if child in self._messages:
                    self._scales[child] = self._scales[node]

    def _begin(self, node: Call) -> None:
        for place in (0, 1):
            data, factor = node.args[place], node.args[1 - place]
            message = self._messages.get(data)
            if message is None:
                continue
            types = tensor_type(data), tensor_type(factor)
            scale = squeezed_along(types[0], factor, types[1], message.axes)
            if scale is not None and message.takes(scale):
                self._scales[data] = scale
                self._products[node] = data
            return

    def _fold(self, old: Call, new: Call, scale: Expr) -> Expr:
        """Return a node times a scale, its operands being scaled already where they can be."""
        name, args = operator_of(old), list(new.args)
        if is_scaled_layer(old):
            args[1] = scale_weight(old, args[1], scale, of_result=True)
        elif name == "nn.bias_add":
            args[1] = call("multiply", args[1], scale)
        elif name in ("add", "subtract"):
            axes = self._messages[old].axes
            for index, argument in enumerate(old.args):
                if argument not in self._messages:
                    data = tensor_type(old.args[1 - index])
                    args[index] = call("multiply", args[index], spread(scale, data, axes))
        return call(name, *args, span=old.span, **old.attrs)
