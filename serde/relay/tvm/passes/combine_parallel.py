"""Layers side by side on the same data become one layer with all their weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import ClassVar

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Call, Expr, Function, TensorType, Tuple, TupleGetItem, call
from serde.relay.transform.compose import replace_nodes
from serde.relay.transform.merge_equal_nodes import exact_key
from serde.relay.tvm.passes.parallel_branches import Branch, Branches
from serde.relay.tvm.passes.typed import TypedPass, operator_of

__all__ = ["CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense"]


def _shape(node: Expr) -> tuple[int, ...]:
    """Return the shape of a tensor; empty where it is not known."""
    known = node.type.concrete_shape if isinstance(node.type, TensorType) else None
    return () if known is None else known


def _dtype(node: Expr) -> str:
    return node.type.dtype if isinstance(node.type, TensorType) else ""


def _rank(node: Expr) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else -1


def _attrs_key(layer: Call, *ignored: str) -> Hashable:
    return tuple((k, exact_key(v)) for k, v in layer.attrs.items() if k not in ignored)


@dataclass(frozen=True)
class _Combine(TypedPass):
    """What the passes have in common.

    Branches start with the layer and go on with elementwise and broadcasting operators, as long
    as all have the same one, with operands that can be joined, and no other call uses a value.
    """

    opt_level: ClassVar[int] = 4
    op: ClassVar[str]

    min_num_branches: int = 3

    def transform(self, function: Function) -> Function:
        """Find the branches, then replace the end of each."""
        branches = Branches(function, self.op)
        replacements: dict[Expr, Expr] = {}
        for group in branches.groups(self._key):
            if len(group) >= self.min_num_branches:
                replacements |= self._combine(branches, group)
        return replace_nodes(function, replacements) if replacements else function

    def _combine(self, branches: Branches, group: list[Branch]) -> dict[Expr, Expr]:
        value = self._join_layers([branch[0] for branch in group])
        depth = 0
        while all(len(branch) > depth + 1 for branch in group):
            place = branches.same_step(group, depth + 1)
            grown = None if place is None else self._follow(value, group, depth + 1, place)
            if grown is None:
                break
            value, depth = grown, depth + 1
        parts = self._parts(value, group, depth)
        return dict(zip([branch[depth] for branch in group], parts, strict=True))

    def _follow(self, value: Expr, group: list[Branch], depth: int, place: int) -> Expr | None:
        """Return one call for the same operator in all branches; None where it does not fit."""
        args: list[Expr] = []
        for index in range(len(group[0][depth].args)):
            if index == place:
                args.append(value)
                continue
            joined = self._join(group, depth, index)
            if joined is None:
                return None
            args.append(joined)
        first = group[0][depth]
        try:
            grown = call(operator_of(first), *args, span=first.span, **first.attrs)
        except TypeInferenceError:
            return None
        return grown if self._fits(grown, group, depth) else None

    def _join(self, group: list[Branch], depth: int, index: int) -> Expr | None:
        """Return one operand for those that the users have beside their branch, or None."""
        operands = [branch[depth].args[index] for branch in group]
        first = operands[0]
        for each in operands[1:]:
            if _dtype(each) != _dtype(first) or _rank(each) != _rank(first):
                return None
        try:
            return self._operand(group, depth, operands)
        except TypeInferenceError:
            return None

    @abstractmethod
    def _key(self, layer: Call) -> Hashable | None:
        """Return what layers must share to be combined, or None if one cannot be."""

    @abstractmethod
    def _join_layers(self, layers: list[Call]) -> Expr:
        """Return the combined layer."""

    @abstractmethod
    def _operand(self, group: list[Branch], depth: int, operands: list[Expr]) -> Expr | None:
        """Return one operand for operands of one rank and dtype."""

    @abstractmethod
    def _fits(self, value: Expr, group: list[Branch], depth: int) -> bool:
        """Whether a combined value has the results of all branches so far in it."""

    @abstractmethod
    def _parts(self, value: Expr, group: list[Branch], depth: int) -> list[Expr]:
        """Return the results of the branches out of the combined one."""


@dataclass(frozen=True)
class _Concatenated(_Combine):
    """Weights are concatenated along the axis that counts outputs, results are slices."""

    @abstractmethod
    def _out_axis(self, layer: Call) -> int:
        """Return the axis of the weight that counts outputs."""

    @abstractmethod
    def _axis(self, branch: Branch, depth: int) -> int:
        """Return the axis that counts outputs, so far up a branch."""

    @abstractmethod
    def _attrs(self, layer: Call, outputs: int) -> dict[str, object]:
        """Return the attributes of a layer with so many outputs."""

    def _size(self, layer: Call) -> int:
        return _shape(layer.args[1])[self._out_axis(layer)]

    def _join_layers(self, layers: list[Call]) -> Expr:
        first = layers[0]
        weights = Tuple([layer.args[1] for layer in layers])
        weight = call("concatenate", weights, axis=self._out_axis(first), span=first.span)
        attrs = self._attrs(first, sum(map(self._size, layers)))
        return call(self.op, first.args[0], weight, span=first.span, **attrs)

    def _fits(self, value: Expr, group: list[Branch], depth: int) -> bool:
        axis, found = self._axis(group[0], depth), list(_shape(value))
        shapes = [list(_shape(branch[depth])) for branch in group]
        if any(len(shape) != len(found) for shape in shapes):
            return False
        wanted = list(shapes[0])
        wanted[axis] = sum(shape[axis] for shape in shapes)
        rest = [shape[:axis] + shape[axis + 1 :] for shape in shapes]
        return wanted == found and all(each == rest[0] for each in rest)

    def _parts(self, value: Expr, group: list[Branch], depth: int) -> list[Expr]:
        found: list[Expr] = []
        start = 0
        for branch in group:
            axis = self._axis(branch, depth)
            length = _shape(branch[depth])[axis]
            count = self._axes_named(_rank(value), axis)
            begin, size, steps = [0] * count, [-1] * count, [1] * count
            begin[axis], size[axis] = start, length
            where = {"begin": begin, "end": size, "strides": steps, "axes": None}
            found.append(call("strided_slice", value, slice_mode="size", span=value.span, **where))
            start += length
        return found

    def _axes_named(self, rank: int, axis: int) -> int:
        """Return how many axes the slices name: as TVM, those up to the one that is cut."""
        return axis + 1


@dataclass(frozen=True)
class CombineParallelConv2D(_Concatenated):
    """Combine convolutions of one group that differ in nothing but their filters.

    Operators that follow are combined with them where their operands have a channel for each
    filter, and ``strided_slice`` takes the branches apart. Layouts may have blocks of channels.

    Args:
        min_num_branches: Fewer convolutions on the same data are left alone.
    """

    name: ClassVar[str] = "CombineParallelConv2d"
    op: ClassVar[str] = "nn.conv2d"

    def _key(self, layer: Call) -> Hashable | None:
        shape = _shape(layer.args[1])
        if layer.attrs["groups"] != 1 or not shape or not _shape(layer):
            return None
        axis = self._out_axis(layer)
        weight = (*shape[:axis], *shape[axis + 1 :], _dtype(layer.args[1]))
        return (weight, _attrs_key(layer, "channels", "kernel_size"))

    def _out_axis(self, layer: Call) -> int:
        return _letters(layer.attrs["kernel_layout"]).index("O")

    def _axis(self, branch: Branch, depth: int) -> int:
        attrs = branch[0].attrs
        return _letters(attrs["out_layout"] or attrs["data_layout"]).index("C")

    def _attrs(self, layer: Call, outputs: int) -> dict[str, object]:
        kernel = _letters(layer.attrs["kernel_layout"])
        block = _shape(layer.args[1])[kernel.index("o")] if "o" in kernel else 1
        return {**dict(layer.attrs.items()), "channels": outputs * block}

    def _operand(self, group: list[Branch], depth: int, operands: list[Expr]) -> Expr | None:
        users = [branch[depth] for branch in group]
        channel = self._axis(group[0], depth)
        axis = channel - _rank(users[0]) + _rank(operands[0])
        if axis < 0 or not _shape(operands[0]):
            return None
        for user, operand in zip(users, operands, strict=True):
            if not _shape(operand) or _shape(operand)[axis] != _shape(user)[channel]:
                return None
        return call("concatenate", Tuple(operands), axis=axis)


def _letters(layout: str) -> list[str]:
    return [letter for letter in layout if letter.isalpha()]


@dataclass(frozen=True)
class CombineParallelBatchMatmul(_Concatenated):
    """Combine products of one batch of matrices with several others.

    Operators that follow are combined with them, their operands joined along the last axis.

    Args:
        min_num_branches: Fewer products of the same data are left alone.
    """

    name: ClassVar[str] = "CombineParallelBatchMatmul"
    op: ClassVar[str] = "nn.batch_matmul"

    def _key(self, layer: Call) -> Hashable | None:
        shape = _shape(layer.args[1])
        if layer.attrs["transpose_a"] or not layer.attrs["transpose_b"] or not _shape(layer):
            return None
        if len(shape) != 3:
            return None
        return (shape[0], _dtype(layer.args[1]), _dtype(layer))

    def _out_axis(self, layer: Call) -> int:
        return 1

    def _axis(self, branch: Branch, depth: int) -> int:
        return _rank(branch[depth]) - 1

    def _attrs(self, layer: Call, outputs: int) -> dict[str, object]:
        return dict(layer.attrs.items())

    def _operand(self, group: list[Branch], depth: int, operands: list[Expr]) -> Expr | None:
        return call("concatenate", Tuple(operands), axis=-1) if _rank(operands[0]) else None


@dataclass(frozen=True)
class _ConcatenatedDense(_Concatenated):
    """Dense layers as one with all their rows of weights."""

    name: ClassVar[str] = "CombineParallelDense"
    op: ClassVar[str] = "nn.dense"

    def _key(self, layer: Call) -> Hashable | None:
        shape = _shape(layer.args[1])
        if not shape or not _shape(layer):
            return None
        return (shape[1], exact_key(layer.attrs["out_dtype"]), _dtype(layer.args[1]))

    def _out_axis(self, layer: Call) -> int:
        return 0

    def _axis(self, branch: Branch, depth: int) -> int:
        """Return the last axis, less those that were put behind it since."""
        return _rank(branch[depth]) - 1 - branch.behind[depth]

    def _attrs(self, layer: Call, outputs: int) -> dict[str, object]:
        return {**dict(layer.attrs.items()), "units": outputs}

    def _axes_named(self, rank: int, axis: int) -> int:
        return rank

    def _operand(self, group: list[Branch], depth: int, operands: list[Expr]) -> Expr | None:
        """Operands are joined along the last axis, what is one for all outputs repeated first."""
        last = _rank(group[0][depth]) - 1
        if self._axis(group[0], depth) != last or _rank(operands[0]) > last + 1:
            return None
        joined: list[Expr] = []
        axis = max(0, _rank(operands[0]) - 1)
        for operand, branch in zip(operands, group, strict=True):
            outputs, grown = _shape(branch[depth - 1])[-1], operand
            if _rank(operand) == 0:
                grown = call("expand_dims", operand, axis=-1, num_newaxis=1)
            if _rank(operand) == 0 or (outputs > 1 and _shape(operand)[-1] == 1):
                grown = call("repeat", grown, repeats=outputs, axis=axis)
            joined.append(grown)
        return call("concatenate", Tuple(joined), axis=axis)


@dataclass(frozen=True)
class _BatchedDense(_Combine):
    """Dense layers of one shape as a product of batches, a layer to each matrix."""

    name: ClassVar[str] = "CombineParallelDense"
    op: ClassVar[str] = "nn.dense"

    def _key(self, layer: Call) -> Hashable | None:
        shape = _shape(layer.args[1])
        if not shape or _rank(layer.args[0]) != 2 or not _shape(layer):
            return None
        return (shape, exact_key(layer.attrs["out_dtype"]), _dtype(layer.args[1]))

    def _join_layers(self, layers: list[Call]) -> Expr:
        first = layers[0]
        data = call("stack", Tuple([layer.args[0] for layer in layers]), axis=0, span=first.span)
        weight = call("stack", Tuple([layer.args[1] for layer in layers]), axis=0, span=first.span)
        out_dtype = first.attrs["out_dtype"]
        given = {} if out_dtype is None else {"out_dtype": out_dtype}
        return call("nn.batch_matmul", data, weight, transpose_b=True, span=first.span, **given)

    def _operand(self, group: list[Branch], depth: int, operands: list[Expr]) -> Expr | None:
        """Operands get an axis in front that counts layers."""
        rank = _rank(operands[0])
        if rank not in (1, 2) or any(_shape(each) != _shape(operands[0]) for each in operands):
            return None
        rows = [
            call("expand_dims", each, axis=0, num_newaxis=1) if rank == 1 else each
            for each in operands
        ]
        return call("stack", Tuple(rows), axis=0)

    def _fits(self, value: Expr, group: list[Branch], depth: int) -> bool:
        return _shape(value) == (len(group), *_shape(group[0][depth]))

    def _parts(self, value: Expr, group: list[Branch], depth: int) -> list[Expr]:
        parts = call("split", value, indices_or_sections=len(group), axis=0)
        fields = (TupleGetItem(parts, index) for index in range(len(group)))
        return [call("squeeze", field, axis=[0]) for field in fields]


@dataclass(frozen=True)
class CombineParallelDense(TypedPass):
    """Combine dense layers on the same data that differ in nothing but their weights.

    Operators that follow are combined with them.

    Args:
        min_num_branches: Fewer layers on the same data are left alone.
        to_batch: Whether layers of equal size become one ``nn.batch_matmul`` of stacked
            matrices, as TVM's default is; otherwise layers of any size become one ``nn.dense``
            with concatenated weights.
    """

    name: ClassVar[str] = "CombineParallelDense"
    opt_level: ClassVar[int] = 4

    min_num_branches: int = 3
    to_batch: bool = True

    def transform(self, function: Function) -> Function:
        """Combine in the way asked for."""
        way: type[_Combine] = _BatchedDense if self.to_batch else _ConcatenatedDense
        return way(self.min_num_branches).transform(function)
