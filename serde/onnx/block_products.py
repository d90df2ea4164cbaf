"""Products with weights of 4 and 8 bits in blocks, as ONNX Runtime's own operator has them.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#commicrosoftmatmulnbits
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Final

from serde.core import ArrayWeight, Weight, dtype_name
from serde.io.packed import PackedBytes
from serde.relay.ir import Foreign, RelayModel, TensorType, call, called_name, tensor_type
from serde.relay.ir.expr import Call, Constant, Expr, Span, Tuple, Var, const
from serde.relay.ir.unique_names import UniqueNames
from serde.relay.ir.visit import post_order
from serde.relay.run.computed import ComputedWeight, computed
from serde.relay.transform.compose import replace_nodes

__all__ = ["fuse_block_products"]

_BITS: Final = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}


def fuse_block_products(model: RelayModel) -> RelayModel:
    """Return the model with products of dequantised blocks as one operator each."""
    before = model.main
    names = UniqueNames(each.name_hint for each in before.params)
    added: dict[Var, Weight] = {}
    replacements: dict[Expr, Expr] = {}
    for node in post_order(before):
        found = _blocks(node) if isinstance(node, Call) else None
        parts = None if found is None else _stored(*found, model.params)
        if found is None or parts is None or not isinstance(node, Call):
            continue
        (rows, length), block = parts[0].shape, found[0].attrs["block_size"]
        label = found[0].args[0]
        variables = []
        for weight in _operands(parts, block):
            name = names.reserve(label.name_hint if isinstance(label, Var) else "blocks")
            variables.append(Var(name, TensorType(weight.shape, weight.dtype), Span(name)))
            added[variables[-1]] = weight
        bits = _BITS[parts[0].dtype]
        operator = Foreign(
            framework="onnx", name="MatMulNBits", version=1, domain="com.microsoft",
            attributes={"K": length, "N": rows, "bits": bits, "block_size": block},
            results=(tensor_type(node),),
        )  # fmt: skip
        replacements[node] = operator.build([node.args[0], *variables], node.span)
    if not replacements:
        return model
    main = replace_nodes(before, replacements)
    main = main.evolve(params=[*main.params, *added])
    functions = {v: main if f is before else f for v, f in model.mod.functions.items()}
    params = {**model.params, **{each.name_hint: weight for each, weight in added.items()}}
    return model.evolve(mod=model.mod.with_functions(functions), params=params)


def _blocks(node: Call) -> tuple[Call, bool] | None:
    """Return what dequantises the weight of a product, and whether inputs are its first axis."""
    name = called_name(node)
    if name not in ("nn.dense", "nn.matmul", "serde.matmul") or node.attrs.get("transpose_a"):
        return None
    data, weight = node.args
    turned = name == "serde.matmul" or (name == "nn.matmul" and not node.attrs["transpose_b"])
    while isinstance(weight, Call) and called_name(weight) == "transpose":
        if weight.attrs["axes"] not in ((1, 0), None):
            return None
        weight, turned = weight.args[0], not turned
    if not isinstance(weight, Call) or called_name(weight) != "serde.dequantize_linear":
        return None
    block, axis, wanted = (weight.attrs[each] for each in ("block_size", "axis", "out_dtype"))
    levels, scales = (tensor_type(each) for each in weight.args[:2])
    dtypes = {tensor_type(data).dtype, scales.dtype, dtype_name(wanted or scales.dtype)}
    fits = block >= 16 and not block & (block - 1) and axis % 2 == (0 if turned else 1)
    known = levels.dtype in _BITS and levels.rank == 2 and len(dtypes) == 1
    return (weight, turned) if fits and known and dtypes <= {"float32", "float16"} else None


def _stored(node: Call, turned: bool, weights: Mapping[str, Weight]) -> list[Weight] | None:
    """Return levels, scales and zero points with outputs first, if all of them are weights."""
    found: list[Weight] = []
    for each in (each for each in node.args if not isinstance(each, Tuple)):
        weight = weights.get(each.name_hint) if isinstance(each, Var) else None
        weight = ArrayWeight(each.data) if isinstance(each, Constant) else weight
        if weight is None:
            return None
        turn = partial(call, "transpose", axes=(1, 0))
        found.append(computed(turn, weight) if turned else weight)
    return found


def _operands(parts: list[Weight], block: int) -> list[Weight]:
    """Return levels and scales as the operator takes them, and zero points that tell more.

    Its levels have no sign; without zero points they are around the middle.
    """
    levels, scales, *points = parts
    bits, (rows, blocks) = _BITS[levels.dtype], scales.shape
    middle = 1 << bits - 1 if levels.dtype.startswith("u") else 0
    made = [_packed(levels, block, (rows, blocks)), scales]
    if not points and middle:
        zero = call("broadcast_to", const(0, levels.dtype), shape=(rows, blocks))
        points = [ComputedWeight(zero, {})]
    if not points or (points[0].array().astype("int16") == middle).all():
        return made
    return [*made, _packed(points[0], 8 // bits, (rows,))]


def _packed(weight: Weight, multiple: int, shape: tuple[int, ...]) -> Weight:
    """Return the bytes of levels without a sign; rows are as long as the next multiple."""
    rows, length = weight.shape
    bits, dtype = _BITS[weight.dtype], weight.dtype
    missing = -length % multiple
    if missing:
        blank = call("broadcast_to", const(0, dtype), shape=(rows, missing))
        weight = computed(lambda x: call("concatenate", Tuple([x, blank]), axis=1), weight)
    if not dtype.startswith("u"):
        half = const(1 << bits - 1, "int16")
        weight = computed(lambda x: call("add", call("cast", x, dtype="int16"), half), weight)
        weight = computed(lambda x: call("cast", x, dtype=f"u{dtype}"), weight)
    packed = PackedBytes(weight, bits)
    return packed.reshaped((*shape, packed.size // prod(shape)))
