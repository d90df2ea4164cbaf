"""Quantisation by other names as TFLite has it, before layouts and operators are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np

from serde.core import CHUNK_BYTES, Array, Weight, dataclass, dtype_name
from serde.relay import transform
from serde.relay.ir import Quantized, RelayModel, Reshape, TensorType, rebuild, rewrite_function
from serde.relay.ir.bodies import all_nodes
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from serde.relay.ir.registry import call, called_name, has_trait
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.purity import closed_nodes

__all__ = ["as_pairs"]

_TARGETS: Final = ("int8", "uint8", "int16")
_WHOLE: Final = ("serde.qlinear_conv2d", "serde.qlinear_matmul")


def as_pairs(model: RelayModel) -> RelayModel:
    """Return the model with quantised operators as operators on numbers between pairs.

    These are of ``qnn``, which move with layouts, but for weights, which are stored as codes.
    Codes of uint8 become int8, unless weights are such: these may have zero points, which LiteRT
    takes with data of uint8 alone.
    """
    functions = model.mod.functions.values()
    if not any(has_trait(each, Quantized) for each in all_nodes(*functions)):
        return model
    whole = transform.Decompose(lambda node: called_name(node) not in _WHOLE, usual_layouts=False)
    passes = [whole, transform.QuantizedAsFloat()]
    mod, _ = transform.Sequential(passes).run(model.mod)
    constants = (x for x in all_nodes(*functions) if isinstance(x, Constant))
    stored = [(each.dtype, len(each.shape)) for each in model.params.values()]
    stored += [(each.data.dtype.name, each.data.ndim) for each in constants]
    keeps = any(dtype == "uint8" and rank > 1 for dtype, rank in stored)
    mod, _ = _AsPairs(model.params, keeps).run(mod)
    return model.evolve(mod=mod)


def _type(node: Expr) -> TensorType:
    return node.type if isinstance(node.type, TensorType) else TensorType(())


@dataclass(frozen=True, eq=False)
class _AsPairs(FunctionPass):
    """The pass, which knows the weights by their names, and whether uint8 stays."""

    name: ClassVar[str] = "AsPairs"
    params: Mapping[str, Weight]
    keeps: bool

    def transform(self, function: Function) -> Function:
        """Rewrite bottom-up."""
        closed = closed_nodes(function, self.params)

        def replace(old: Expr, new: Expr) -> Expr:
            name = called_name(new)
            if not isinstance(new, Call) or not isinstance(old, Call):
                return new
            if name in ("serde.quantize_linear", "qnn.quantize"):
                return self._quantize(new)
            if name in ("serde.dequantize_linear", "qnn.dequantize"):
                return self._dequantize(new, is_stored=old.args[0] in closed)
            return _as_dense(new) if name in ("nn.matmul", "serde.matmul") else new

        return rewrite_function(function, replace)

    def _parameters(self, node: Call) -> tuple[Array, Array, int] | None:
        """Return scales, zero points and their axis, where a runtime knows them beforehand."""
        scale, zero = (self._known(each) for each in node.args[1:])
        if scale is None or zero is None or scale.dtype != np.float32 or scale.ndim > 1:
            return None
        if node.attrs.get("block_size") or node.attrs.get("precision") is not None:
            return None
        if zero.size > scale.size:
            return None
        if scale.size == zero.size == 1:
            return scale.reshape(()), zero.reshape(()).astype(np.int32), -1
        return scale, zero.astype(np.int32), node.attrs["axis"]

    def _known(self, x: Expr) -> Array | None:
        if isinstance(x, (Constant, Tuple)):
            return x.data if isinstance(x, Constant) else np.array(0)
        weight = self.params.get(x.name_hint) if isinstance(x, Var) else None
        return weight.array() if weight is not None and weight.nbytes <= CHUNK_BYTES else None

    def _quantize(self, node: Call) -> Expr:
        """Return codes of numbers; those of uint8 are made of such of int8."""
        data, found, dtype = (
            node.args[0],
            self._parameters(node),
            dtype_name(node.attrs["out_dtype"]),
        )
        if found is None or _type(data).dtype != "float32" or dtype not in _TARGETS:
            return node
        if dtype == "uint8" and not self.keeps:
            signed = _signed(*found)
            data = _dequantized(_quantized(data, *signed, "int8", node), *signed, node)
        return _quantized(data, *found, dtype, node)

    def _dequantize(self, node: Call, *, is_stored: bool) -> Expr:
        data, found, dtype = node.args[0], self._parameters(node), _type(node.args[0]).dtype
        if found is None or _type(node).dtype != "float32" or dtype not in _TARGETS:
            return node
        scale, zero, axis = found
        if is_stored and np.array_equal(zero, zero.astype(dtype)):
            spread = np.array(np.broadcast_to(zero, scale.shape), dtype)
            given = data, Constant(scale), Constant(spread)
            place = axis % max(_type(data).rank, 1)
            return call("serde.dequantize_linear", *given, axis=place, span=node.span)
        if dtype != "uint8" or self.keeps:
            return _dequantized(data, *found, node)
        if isinstance(data, Call) and _is_pair(data, "qnn.quantize", scale, zero):
            return data.args[0]
        signed = _signed(*found)
        codes = _quantized(_dequantized(data, *found, node), *signed, "int8", node)
        return _dequantized(codes, *signed, node)


def _signed(scale: Array, zero: Array, axis: int) -> tuple[Array, Array, int]:
    """Return with what codes of int8 stand for the numbers that such of uint8 do."""
    return scale, np.array(zero - 128, np.int32), axis


def _is_pair(node: Call, name: str, scale: Array, zero: Array) -> bool:
    """Whether a call is one of an operator, with a scale and a zero point."""
    given = [each.data for each in node.args[1:] if isinstance(each, Constant)]
    return called_name(node) == name and all(map(np.array_equal, given, (scale, zero)))


def _quantized(data: Expr, scale: Array, zero: Array, axis: int, dtype: str, node: Call) -> Expr:
    """Return the codes of numbers, of what gets another shape before it does.

    If these are of such codes, they are those again.
    """
    moves = has_trait(data, Reshape) or called_name(data) == "transpose"
    if isinstance(data, Call) and moves and axis < 0:
        inner = _quantized(data.args[0], scale, zero, axis, dtype, node)
        return rebuild(data, [inner, *data.args[1:]])
    again = isinstance(data, Call) and _is_pair(data, "qnn.dequantize", scale, zero)
    if isinstance(data, Call) and again and _type(data.args[0]).dtype == dtype:
        return data.args[0]
    given = data, Constant(scale), Constant(zero)
    return call("qnn.quantize", *given, axis=axis, out_dtype=dtype, span=node.span)


def _dequantized(data: Expr, scale: Array, zero: Array, axis: int, node: Call) -> Expr:
    given = data, Constant(scale), Constant(zero)
    return call("qnn.dequantize", *given, axis=axis, out_dtype="float32", span=node.span)


def _as_dense(node: Call) -> Expr:
    """Return a product with a matrix of weights as the layer that has them."""
    x, w = node.args
    if called_name(w) != "serde.dequantize_linear" or _type(w).rank != 2 or _type(x).rank < 2:
        return node
    if node.attrs.get("transpose_a"):
        return node
    rows = w if node.attrs.get("transpose_b") else call("transpose", w, axes=(1, 0))
    return call("nn.dense", x, rows, units=None, span=node.span)
