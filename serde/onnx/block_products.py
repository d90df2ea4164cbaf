"""Products with weights of 4 and 8 bits in blocks, as ONNX Runtime's own operator has them.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#commicrosoftmatmulnbits
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np

from serde.core import ArrayWeight, Weight, dataclass, dtype_name
from serde.io.packed import PackedBytes
from serde.relay.ir import Foreign, RelayModel, TensorType, call, called_name, tensor_type
from serde.relay.ir.expr import Call, Constant, Expr, Span, Tuple, Var, const
from serde.relay.ir.unique_names import UniqueNames
from serde.relay.ir.visit import free_vars, post_order
from serde.relay.run.computed import ComputedWeight
from serde.relay.transform.compose import replace_nodes

__all__ = ["fuse_block_products"]

Weights: TypeAlias = Mapping[str, Weight]

_BITS: Final = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}
_DTYPES: Final = ("float32", "float16")
_LEAST_BLOCK: Final = 16


def fuse_block_products(model: RelayModel) -> RelayModel:
    """Return the model with products of dequantised blocks as one operator each."""
    names = UniqueNames(each.name_hint for each in model.main.params)
    added: dict[Var, Weight] = {}
    replacements: dict[Expr, Expr] = {}
    for node in post_order(model.main):
        found = _read(node, model.params) if isinstance(node, Call) else None
        if found is None:
            continue
        variables = []
        for weight in found.operands():
            name = names.reserve(found.name)
            type_ = TensorType(weight.shape, weight.dtype)
            variables.append(Var(name, type_, Span(name)))
            added[variables[-1]] = weight
        rows, length = found.levels.shape
        operator = Foreign(
            framework="onnx", name="MatMulNBits", version=1, domain="com.microsoft",
            results=(tensor_type(node),),
            attributes={
                "K": length, "N": rows, "bits": _BITS[found.levels.dtype],
                "block_size": found.block,
            },
        )  # fmt: skip
        replacements[node] = operator.build([found.data, *variables], node.span)
    if not replacements:
        return model
    before = model.main
    main = replace_nodes(before, replacements)
    main = main.evolve(params=[*main.params, *added])
    functions = {v: main if f is before else f for v, f in model.mod.functions.items()}
    params = {**model.params, **{each.name_hint: weight for each, weight in added.items()}}
    return model.evolve(mod=model.mod.with_functions(functions), params=params)


@dataclass(frozen=True)
class _Product:
    """Data, and rows of levels with a scale and perhaps a zero point for each block."""

    data: Expr
    levels: Weight
    scales: Weight
    points: Weight | None
    block: int
    name: str

    def operands(self) -> list[Weight]:
        """Return levels and scales as the operator takes them, and zero points that tell more.

        Its levels have no sign; without zero points they are around the middle.
        """
        bits, dtype = _BITS[self.levels.dtype], self.levels.dtype
        rows, blocks = self.scales.shape
        made = [_packed(_padded(self.levels, self.block), (rows, blocks, -1)), self.scales]
        middle = 1 << bits - 1 if dtype.startswith("u") else 0
        points = self.points
        if points is None:
            if not middle:
                return made
            zero = call("broadcast_to", const(0, dtype), shape=(rows, blocks))
            points = ComputedWeight(zero, {})
        if (points.array() == np.array(middle).astype(points.array().dtype)).all():
            return made
        return [*made, _packed(_padded(points, 8 // bits), (rows, -1))]


def _padded(weight: Weight, multiple: int) -> Weight:
    """Return rows that are as long as the next multiple."""
    rows, length = weight.shape
    missing = -length % multiple
    if not missing:
        return weight
    blank = call("broadcast_to", const(0, weight.dtype), shape=(rows, missing))
    return _computed(weight, lambda x: call("concatenate", Tuple([x, blank]), axis=1))


def _packed(weight: Weight, shape: tuple[int, ...]) -> Weight:
    """Return the bytes of levels, as numbers without a sign."""
    bits = _BITS[weight.dtype]
    if not weight.dtype.startswith("u"):
        half = const(1 << bits - 1, "int16")

        def shift(x: Expr) -> Expr:
            wide = call("add", call("cast", x, dtype="int16"), half)
            return call("cast", wide, dtype=f"uint{bits}")

        weight = _computed(weight, shift)
    packed = PackedBytes(weight, bits)
    last = packed.size // int(np.prod(shape[:-1]))
    return packed.reshaped((*shape[:-1], last))


def _computed(weight: Weight, make: AnyValue) -> Weight:
    variable = Var("x", TensorType(weight.shape, weight.dtype))
    return ComputedWeight(make(variable), {variable: weight})


def _stored(x: Expr, weights: Weights, turned: bool) -> Weight | None:
    """Return the weight that an expression is, transposed or not; None where it is none."""
    if isinstance(x, Constant):
        found: Weight = ArrayWeight(x.data)
    elif isinstance(x, Var) and x.name_hint in weights:
        found = weights[x.name_hint]
    else:
        sources = {each: weights.get(each.name_hint) for each in free_vars(x)}
        known = {each: weight for each, weight in sources.items() if weight is not None}
        if len(known) < len(sources) or not known:
            return None
        found = ComputedWeight(x, known)
    if len(found.shape) != 2:
        return None
    return _computed(found, lambda each: call("transpose", each, axes=(1, 0))) if turned else found


def _read(node: Call, weights: Weights) -> _Product | None:
    """Return what a product is made of, if its weight is dequantised block by block."""
    name = called_name(node)
    if name not in ("nn.dense", "nn.matmul", "serde.matmul"):
        return None
    data, weight = node.args
    if node.attrs.get("transpose_a"):
        return None
    turned = name == "serde.matmul" or (name == "nn.matmul" and not node.attrs["transpose_b"])
    while isinstance(weight, Call) and called_name(weight) == "transpose":
        if weight.attrs["axes"] not in ((1, 0), None):
            return None
        weight, turned = weight.args[0], not turned
    if not isinstance(weight, Call) or called_name(weight) != "serde.dequantize_linear":
        return None
    block, axis, wanted = (weight.attrs[each] for each in ("block_size", "axis", "out_dtype"))
    levels, scales, points = weight.args
    dtypes = [tensor_type(data).dtype, tensor_type(scales).dtype]
    dtypes += [] if wanted is None else [dtype_name(wanted)]
    if block < _LEAST_BLOCK or block & (block - 1) or axis % 2 != (0 if turned else 1):
        return None
    if tensor_type(levels).dtype not in _BITS or {*dtypes} - {dtypes[0]}:
        return None
    stored = [
        None if isinstance(each, Tuple) else _stored(each, weights, turned)
        for each in (levels, scales, points)
    ]
    if dtypes[0] not in _DTYPES or stored[0] is None or stored[1] is None:
        return None
    if stored[2] is None and not isinstance(points, Tuple):
        return None
    label = levels.name_hint if isinstance(levels, Var) else "blocks"
    return _Product(data, stored[0], stored[1], stored[2], block, label)
