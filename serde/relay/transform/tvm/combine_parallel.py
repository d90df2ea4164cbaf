"""Layers side by side on the same data become one layer with all their weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Tuple, TupleGetItem
from serde.relay.ir.op_pattern import pattern_of
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.traits import FusionPattern
from serde.relay.ir.types import TensorType, accepts
from serde.relay.ir.visit import children, post_order
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.compose import replace_nodes
from serde.relay.transform.merge_equal_nodes import exact_key

__all__ = ["CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense"]

_Branches = list[Call]


@dataclass(frozen=True)
class _Outputs:
    """The axis of the branches that counts outputs, and how many each branch has."""

    channel: int
    sizes: list[int]


@dataclass(frozen=True)
class _CombineParallel(FunctionPass):
    """What the three passes have in common.

    Branches start with the layer and go on with elementwise operators as long as all have the
    same one, with operands that can be joined in the same way, and nothing else uses a value.
    """

    op: ClassVar[str]

    min_num_branches: int = 3

    def transform(self, function: Function) -> Function:
        """Find the branches, then replace their ends."""
        graph = _Graph(function, self.op)
        replacements: dict[Expr, Expr] = {}
        for layers in graph.layers(self._key):
            if len(layers) >= self.min_num_branches:
                replacements |= self._combine_branches(graph, layers)
        return replace_nodes(function, replacements) if replacements else function

    def _combine_branches(self, graph: _Graph, layers: _Branches) -> dict[Expr, Expr]:
        """Return what stands for the end of each branch."""
        value, ends = self._join_layers(layers), layers
        outputs = _Outputs(self._channel(layers[0]), [self._size(layer) for layer in layers])
        while True:
            users = graph.following(ends)
            if users is None:
                break
            try:
                grown = self._follow(value, users, users[0].args.index(ends[0]), outputs)
            except TypeInferenceError:
                break
            if grown is None:
                break
            value, ends = grown, users
        found = self._parts(value, outputs)
        fits = all(
            end.type is not None and part.type is not None and accepts(end.type, part.type)
            for end, part in zip(ends, found, strict=True)
        )
        return dict(zip(ends, found, strict=True)) if fits else {}

    def _follow(self, value: Expr, users: _Branches, index: int, outputs: _Outputs) -> Expr | None:
        """Return one call for the same operator in all branches, or None."""
        first = users[0]
        if not isinstance(first.op, OpDef):
            return None
        args: list[Expr] = []
        for place in range(len(first.args)):
            if place == index:
                args.append(value)
                continue
            joined = self._operand(first, [user.args[place] for user in users], outputs)
            if joined is None:
                return None
            args.append(joined)
        return call(first.op.name, *args, span=first.span, **first.attrs)

    @abstractmethod
    def _key(self, layer: Call) -> Hashable | None:
        """Return what layers must share to be combined, or None if one cannot be."""

    @abstractmethod
    def _size(self, layer: Call) -> int:
        """Return how many outputs a layer has."""

    @abstractmethod
    def _channel(self, layer: Call) -> int:
        """Return the axis of a layer's result that counts outputs."""

    @abstractmethod
    def _join_layers(self, layers: _Branches) -> Expr:
        """Return the combined layer."""

    @abstractmethod
    def _operand(self, user: Call, operands: list[Expr], outputs: _Outputs) -> Expr | None:
        """Return one operand for those that `user` and its like have beside their branch."""

    @abstractmethod
    def _parts(self, value: Expr, outputs: _Outputs) -> list[Expr]:
        """Return the results of the branches out of the combined one."""


class _Graph:
    """Who uses what in a function, and what depends on the layers looked for."""

    def __init__(self, function: Function, op: str) -> None:
        self._op = op
        self._always = _unconditional(function)
        self._users: dict[Expr, list[Expr]] = {}
        self._layers: list[Call] = []
        self._dependent: set[Expr] = set()
        for node in post_order(function):
            below = children(node)
            for child in below:
                self._users.setdefault(child, []).append(node)
            is_layer = isinstance(node, Call) and _name(node) == op
            if is_layer or any(child in self._dependent for child in below):
                self._dependent.add(node)
            if is_layer and isinstance(node, Call) and node in self._always:
                self._layers.append(node)

    def layers(self, key_of: Callable[[Call], Hashable | None]) -> list[_Branches]:
        """Return the layers that share data and key, weights apart from all layers."""
        found: dict[Hashable, _Branches] = {}
        for layer in self._layers:
            key = None if layer.args[1] in self._dependent else key_of(layer)
            if key is not None:
                found.setdefault((layer.args[0], key), []).append(layer)
        return list(found.values())

    def following(self, ends: Sequence[Call]) -> _Branches | None:
        """Return the next operator of each branch if it is the same in all, else None."""
        users: _Branches = []
        for end in ends:
            each = self._users.get(end, [])
            if len(each) != 1 or not isinstance(each[0], Call) or each[0] not in self._always:
                return None
            users.append(each[0])
        kinds = {_kind(user, end) for user, end in zip(users, ends, strict=True)}
        if len(kinds) != 1 or None in kinds or len(set(users)) != len(users):
            return None
        for user, end in zip(users, ends, strict=True):
            if any(each is not end and each in self._dependent for each in user.args):
                return None
        return users


def _unconditional(function: Function) -> set[Expr]:
    """Return the nodes that are evaluated whenever the function is."""
    seen: set[Expr] = set()
    pending: list[Expr] = [function.body]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, If):
            pending.append(node.cond)
        elif not isinstance(node, Function):
            pending.extend(children(node))
    return seen


def _name(node: Expr) -> str:
    return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""


def _kind(user: Call, end: Expr) -> Hashable | None:
    if not isinstance(user.op, OpDef) or _rank(user) != _rank(end):
        return None
    if pattern_of(user.op) > FusionPattern.BROADCAST:
        return None
    attrs = tuple((key, exact_key(value)) for key, value in user.attrs.items())
    return (user.op.name, user.args.index(end), attrs)


def _rank(node: Expr) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else -1


def _shape(node: Expr) -> tuple[int, ...] | None:
    return node.type.concrete_shape if isinstance(node.type, TensorType) else None


def _dtype(node: Expr) -> str:
    return node.type.dtype if isinstance(node.type, TensorType) else ""


def _are_one(operands: Sequence[Expr]) -> bool:
    """Whether operands are one node, or constants of one value."""
    first = operands[0]
    for each in operands[1:]:
        if each is first:
            continue
        if not isinstance(first, Constant) or not isinstance(each, Constant):
            return False
        if first.type != each.type or first.data.tobytes() != each.data.tobytes():
            return False
    return True


def _attrs_key(layer: Call, *ignored: str) -> Hashable:
    return tuple((k, exact_key(v)) for k, v in layer.attrs.items() if k not in ignored)


@dataclass(frozen=True)
class _Concatenated(_CombineParallel):
    """Weights are concatenated along the axis that counts outputs, results are slices."""

    @abstractmethod
    def _out_axis(self, layer: Call) -> int:
        """Return the axis of the weight that counts outputs."""

    def _size(self, layer: Call) -> int:
        shape = _shape(layer.args[1])
        return 0 if shape is None else shape[self._out_axis(layer)]

    def _weight_key(self, layer: Call) -> Hashable | None:
        shape = _shape(layer.args[1])
        if shape is None:
            return None
        axis = self._out_axis(layer)
        return (*shape[:axis], *shape[axis + 1 :], _dtype(layer.args[1]))

    def _join_layers(self, layers: _Branches) -> Expr:
        first = layers[0]
        weights = Tuple([layer.args[1] for layer in layers])
        weight = call("concatenate", weights, axis=self._out_axis(first), span=first.span)
        attrs = {**first.attrs, **self._total(sum(map(self._size, layers)))}
        return call(self.op, first.args[0], weight, span=first.span, **attrs)

    @abstractmethod
    def _total(self, outputs: int) -> dict[str, int]:
        """Return the attribute that says how many outputs there are."""

    def _operand(self, user: Call, operands: list[Expr], outputs: _Outputs) -> Expr | None:
        """Operands with one entry for each output are concatenated, others must be the same."""
        rank, channel = _rank(user), outputs.channel
        axis = channel - (rank - _rank(operands[0]))
        if _name(user) in ("nn.bias_add", "nn.prelu"):
            if user.attrs["axis"] % rank != channel:
                return None
            axis = 0
        elif _are_one(operands):
            shape = _shape(operands[0])
            if axis < 0 or (shape is not None and shape[axis] == 1):
                return operands[0]
        for operand, size in zip(operands, outputs.sizes, strict=True):
            shape = _shape(operand)
            same = _rank(operand) == _rank(operands[0])
            if shape is None or not same or axis < 0 or shape[axis] != size:
                return None
        return call("concatenate", Tuple(operands), axis=axis)

    def _parts(self, value: Expr, outputs: _Outputs) -> list[Expr]:
        found: list[Expr] = []
        start = 0
        for size in outputs.sizes:
            place = {"begin": [start], "end": [start + size], "axes": [outputs.channel]}
            found.append(call("strided_slice", value, strides=[1], span=value.span, **place))
            start += size
        return found


@dataclass(frozen=True)
class CombineParallelConv2D(_Concatenated):
    """Combine convolutions of one group that differ in nothing but their filters.

    The elementwise operators after them are combined too, and ``strided_slice`` takes the
    branches apart. :func:`fold_weights` makes one weight of the concatenated ones.

    Args:
        min_num_branches: Fewer convolutions on the same data are left alone.
    """

    name: ClassVar[str] = "CombineParallelConv2D"
    op: ClassVar[str] = "nn.conv2d"

    def _key(self, layer: Call) -> Hashable | None:
        plain = sorted(layer.attrs["kernel_layout"]) == sorted("OIHW")
        if layer.attrs["groups"] != 1 or not plain:
            return None
        weight = self._weight_key(layer)
        return None if weight is None else (weight, _attrs_key(layer, "channels"))

    def _out_axis(self, layer: Call) -> int:
        return str(layer.attrs["kernel_layout"]).index("O")

    def _channel(self, layer: Call) -> int:
        return str(layer.attrs["out_layout"] or layer.attrs["data_layout"]).index("C")

    def _total(self, outputs: int) -> dict[str, int]:
        return {"channels": outputs}


@dataclass(frozen=True)
class CombineParallelBatchMatmul(_Concatenated):
    """Combine products of one batch of matrices with several others.

    As :class:`CombineParallelConv2D`, along the last axis of the products.

    Args:
        min_num_branches: Fewer products of the same data are left alone.
    """

    name: ClassVar[str] = "CombineParallelBatchMatmul"
    op: ClassVar[str] = "nn.batch_matmul"

    def _key(self, layer: Call) -> Hashable | None:
        weight = self._weight_key(layer)
        return None if weight is None else (weight, _attrs_key(layer))

    def _out_axis(self, layer: Call) -> int:
        return 1 if layer.attrs["transpose_b"] else 2

    def _channel(self, layer: Call) -> int:
        return 2

    def _total(self, outputs: int) -> dict[str, int]:
        return {}


@dataclass(frozen=True)
class _ConcatenatedDense(_Concatenated):
    """Dense layers as one with all their rows of weights."""

    name: ClassVar[str] = "CombineParallelDense"
    op: ClassVar[str] = "nn.dense"

    def _key(self, layer: Call) -> Hashable | None:
        weight = self._weight_key(layer)
        return None if weight is None else (weight, _attrs_key(layer, "units"))

    def _out_axis(self, layer: Call) -> int:
        return 0

    def _channel(self, layer: Call) -> int:
        return _rank(layer) - 1

    def _total(self, outputs: int) -> dict[str, int]:
        return {"units": outputs}


@dataclass(frozen=True)
class _BatchedDense(_CombineParallel):
    """Dense layers of one shape as a product of batches, a layer to each matrix."""

    name: ClassVar[str] = "CombineParallelDense"
    op: ClassVar[str] = "nn.dense"

    def _key(self, layer: Call) -> Hashable | None:
        shape = _shape(layer.args[1])
        if shape is None or _rank(layer.args[0]) != 2:
            return None
        return (shape, _dtype(layer.args[1]), _attrs_key(layer, "units"))

    def _size(self, layer: Call) -> int:
        shape = _shape(layer.args[1])
        return 0 if shape is None else shape[0]

    def _channel(self, layer: Call) -> int:
        return 1

    def _join_layers(self, layers: _Branches) -> Expr:
        first = layers[0]
        data = call("stack", Tuple([layer.args[0] for layer in layers]), axis=0, span=first.span)
        weight = call("stack", Tuple([layer.args[1] for layer in layers]), axis=0, span=first.span)
        out_dtype = first.attrs["out_dtype"]
        given = {} if out_dtype is None else {"out_dtype": out_dtype}
        return call("nn.batch_matmul", data, weight, transpose_b=True, span=first.span, **given)

    def _operand(self, user: Call, operands: list[Expr], outputs: _Outputs) -> Expr | None:
        """Operands get an axis in front that counts layers; a scalar for all stays."""
        if "axis" in user.attrs:
            return None
        shape = _shape(operands[0])
        same = _are_one(operands)
        if same and shape is not None and all(length == 1 for length in shape):
            return operands[0]
        if any(_shape(operand) != shape or _rank(operand) > 2 for operand in operands):
            return None
        stacked = call("stack", Tuple(operands), axis=0)
        missing = 2 - _rank(operands[0])
        return call("expand_dims", stacked, axis=1, num_newaxis=missing) if missing else stacked

    def _parts(self, value: Expr, outputs: _Outputs) -> list[Expr]:
        parts = call("split", value, indices_or_sections=len(outputs.sizes), axis=0)
        fields = (TupleGetItem(parts, index) for index in range(len(outputs.sizes)))
        return [call("squeeze", field, axis=[0]) for field in fields]


@dataclass(frozen=True)
class CombineParallelDense(FunctionPass):
    """Combine dense layers on the same data that differ in nothing but their weights.

    The elementwise operators after them are combined too.

    Args:
        min_num_branches: Fewer layers on the same data are left alone.
        to_batch: Whether layers of equal size become one ``nn.batch_matmul`` of stacked
            matrices, as TVM's default is; otherwise layers of any size become one ``nn.dense``
            with concatenated weights.
    """

    name: ClassVar[str] = "CombineParallelDense"

    min_num_branches: int = 3
    to_batch: bool = True

    def transform(self, function: Function) -> Function:
        """Combine in the way asked for."""
        way = _BatchedDense if self.to_batch else _ConcatenatedDense
        return way(self.min_num_branches).transform(function)
