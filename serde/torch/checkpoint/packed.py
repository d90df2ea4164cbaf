"""Linear layers that GPTQ and AWQ have quantised, as expressions over the words that hold them.

Both keep integers of a layer in words of 32 bits, with a scale and a zero point for each group of
inputs. What comes out is a weight of (outputs, inputs) that is unpacked of levels with blocks along
axis 1, as Relay has it; levels are moved and never computed with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Array, FileWeight, Weight, dataclass, require
from serde.errors import FormatError
from serde.io.packed import PackedWeight
from serde.relay.ir import Expr, TensorType, call, tensor_type
from serde.relay.ir.expr import Var, const
from serde.relay.run.computed import ComputedWeight

__all__ = ["Packing", "dequantized", "read_packing", "unpack_weights"]

_PARTS: Final = ("qweight", "scales", "qzeros")
_WORD: Final = 32


@dataclass(frozen=True)
class Packing:
    """How the layers of a checkpoint are packed.

    Attributes:
        method: ``gptq`` or ``awq``.
        bits: Bits of a level.
        group: Inputs that share a scale; 0 for all of a layer.
        minus_one: Whether zero points are stored less one.
    """

    method: str
    bits: int
    group: int
    minus_one: bool = False


def read_packing(document: AnyValue, path: Path) -> Packing:
    """Return how layers are packed, by the config's ``quantization_config``.

    Raises:
        FormatError: In a way that is not read.
    """

    def refuse(what: str) -> FormatError:
        return FormatError(f"config.json: quantization_config: {what}", path=path)

    if not isinstance(document, dict):
        raise refuse("expected an object")
    method = document.get("quant_method")
    bits: AnyValue = document.get("bits", document.get("w_bit"))
    group = document.get("group_size", document.get("q_group_size"))
    form = document.get("checkpoint_format", "gptq") if method == "gptq" else None
    version = str(document.get("version", "gemm")).lower() if method == "awq" else None
    if method not in ("gptq", "awq"):
        raise refuse(f"expected quant_method gptq or awq, found {method!r}")
    if bits not in ((4, 8) if method == "gptq" else (4,)):
        raise refuse(f"{method}: expected bits {'4 or 8' if form else '4'}, found {bits!r}")
    if not isinstance(group, int) or isinstance(group, bool) or not (group == -1 or group > 0):
        raise refuse(f"expected a group_size above 0, or -1, found {group!r}")
    if form not in (None, "gptq", "gptq_v2"):
        raise refuse(f"expected checkpoint_format gptq or gptq_v2, found {form!r}")
    if version not in (None, "gemm"):
        raise refuse(f"expected version gemm, found {version!r}")
    return Packing(method, bits, max(group, 0), form == "gptq")


def unpack_weights(
    weights: Mapping[str, FileWeight],
    packing: Packing,
    path: Path,
    module: AnyValue,
    dtype: str | None,
) -> dict[str, Weight]:
    """Return weights of which those of quantised layers are called as in a module of floats.

    Args:
        weights: All tensors by their names on disk.
        packing: How layers are packed.
        path: Where they are, for messages.
        module: The module, which needs no values.
        dtype: What layers compute in; None for the dtype of their scales.

    Raises:
        FormatError: Parts of a layer are missing or do not fit together.
    """
    turning = require("transformers").pytorch_utils.Conv1D
    prefix = f"{module.base_model_prefix}."
    turned = tuple(
        f".{name.removeprefix(prefix)}."
        for name, each in module.named_modules()
        if isinstance(each, turning)
    )
    layers = [name.removesuffix("qweight") for name in weights if name.endswith(".qweight")]
    used = {f"{layer}{part}" for layer in layers for part in (*_PARTS, "g_idx")}
    found: dict[str, Weight] = {name: each for name, each in weights.items() if name not in used}
    for layer in layers:
        parts = {part: weights.get(f"{layer}{part}") for part in _PARTS}
        missing = next((part for part, each in parts.items() if each is None), None)
        if missing is not None:
            raise FormatError(f"{layer}qweight is without {layer}{missing}"[:300], path=path)
        known = {part: each for part, each in parts.items() if each is not None}
        turns = f".{layer}".endswith(turned)
        try:
            found[f"{layer}weight"] = _unpack(
                known, weights.get(f"{layer}g_idx"), packing, dtype, turns=turns
            )
        except ValueError as error:
            raise FormatError(f"{layer[:200]}{error}", path=path) from None
    return found


def _unpack(
    parts: Mapping[str, FileWeight],
    g_idx: FileWeight | None,
    packing: Packing,
    dtype: str | None,
    *,
    turns: bool,
) -> Weight:
    """Return the weight of a layer, outputs first unless it `turns`.

    Raises:
        ValueError: Its parts do not fit together.
    """
    inputs, outputs, groups = _measure(parts, packing)
    packed = [_values(parts[part], packing.bits) for part in ("qweight", "qzeros")]
    first, second = (Var("", TensorType(each.shape, each.dtype)) for each in packed)
    scales = Var("", TensorType(parts["scales"].shape, parts["scales"].dtype))
    if packing.method == "awq":
        moved = _interleaved(first), _interleaved(second)
    else:
        # A word has several inputs of one output, but zero points of several outputs.
        moved = (
            call("transpose", first, axes=(1, 0, 2)),
            call("transpose", second, axes=(1, 2, 0)),
        )
    levels = call("reshape", moved[0], newshape=(outputs, inputs))
    points: Expr = call("reshape", moved[1], newshape=(outputs, groups))
    if packing.minus_one:
        points = _one_more(points, packed[1], packing.bits)
    order = None if g_idx is None else _order(g_idx, inputs, packing.group or inputs)
    if order is not None:
        levels = call("take", levels, const(order), axis=1)
    factors = call("transpose", scales, axes=(1, 0))
    weight = dequantized(levels, factors, points, packing.group or inputs, dtype)
    if order is not None:
        weight = call("take", weight, const(np.argsort(order).astype(np.int32)), axis=1)
    if turns:
        weight = call("transpose", weight, axes=(1, 0))
    return ComputedWeight(weight, {first: packed[0], second: packed[1], scales: parts["scales"]})


def dequantized(
    levels: Expr, scales: Expr, points: Expr | None, block: int, dtype: str | None
) -> Expr:
    """Return rows of levels as floats of a dtype, or of that of their scales."""
    if dtype in ("float32", "float64"):
        scales = call("cast", scales, dtype=dtype)
    return call(
        "serde.dequantize_linear", levels, scales, points, axis=1, block_size=block, out_dtype=dtype
    )


def _measure(parts: Mapping[str, FileWeight], packing: Packing) -> tuple[int, int, int]:
    """Return the numbers of inputs, outputs and groups of a layer.

    Raises:
        ValueError: Its parts tell different ones, or have other types.
    """
    shapes = {part: each.shape for part, each in parts.items()}
    dtypes = {part: each.dtype for part, each in parts.items()}
    whole = dtypes["qweight"] == dtypes["qzeros"] == "int32"
    if not whole or dtypes["scales"] not in ("float16", "bfloat16", "float32"):
        raise ValueError(f"qweight: expected int32 beside scales of floats, found {dtypes}")
    if any(len(shape) != 2 or 0 in shape for shape in shapes.values()):
        raise ValueError(f"qweight: expected matrices, found {shapes}")
    each = _WORD // packing.bits
    down, across = (each, 1) if packing.method == "gptq" else (1, each)
    inputs, outputs = shapes["qweight"][0] * down, shapes["qweight"][1] * across
    groups = -(-inputs // (packing.group or inputs))
    wanted = {"scales": (groups, outputs), "qzeros": (groups, outputs // each)}
    for part, shape in wanted.items():
        if shapes[part] != shape or outputs % each:
            raise ValueError(
                f"{part}: expected {list(shape)} for {inputs} inputs and {outputs} outputs of "
                f"{packing.bits} bits in groups of {packing.group or inputs}, "
                f"found {list(shapes[part])}"
            )
    return inputs, outputs, groups


def _values(words: FileWeight, bits: int) -> Weight:
    """Return the integers in words, those in the lowest bits first, along an axis more."""
    shape = (*words.shape, _WORD // bits)
    if bits == 8:
        return FileWeight(words.source, shape, "uint8")
    return PackedWeight(FileWeight(words.source, (words.nbytes,), "uint8"), shape, "uint4", bits)


def _interleaved(values: Expr) -> Expr:
    """Return AWQ's integers in order, outputs first: a word has columns 0 2 4 6 1 3 5 7."""
    rows, words, each = tensor_type(values).shape
    halves = call("reshape", values, newshape=(rows, words, 2, each // 2))
    return call("transpose", halves, axes=(1, 3, 2, 0))


def _one_more(points: Expr, stored: Weight, bits: int) -> Expr:
    """Return zero points that are stored less one.

    Raises:
        ValueError: One is the greatest number, which is read in several ways.
    """
    most = (1 << bits) - 1
    for start, stop in stored.row_ranges():
        if (stored.rows(start, stop).astype(np.uint8) == most).any():
            raise ValueError(
                f"qzeros: {most} stands for {most + 1} or 0 where zero points are stored less "
                "one; checkpoint_format gptq_v2 tells them as they are"
            )
    wide = call("add", call("cast", points, dtype="uint8"), const(1, "uint8"))
    return call("cast", wide, dtype=stored.dtype)


def _order(g_idx: FileWeight, inputs: int, group: int) -> Array | None:
    """Return in which order inputs are those of one group after the other; None as they are.

    Raises:
        ValueError: Groups are not of the size that the config tells.
    """
    groups = g_idx.array()
    usual = np.arange(inputs) // group
    if groups.shape != (inputs,) or groups.dtype != np.int32:
        raise ValueError(
            f"g_idx: expected int32 [{inputs}], found {g_idx.dtype}{list(groups.shape)}"
        )
    order = np.argsort(groups, kind="stable").astype(np.int32)
    if not np.array_equal(groups[order], usual):
        raise ValueError(f"g_idx: expected groups of {group} inputs")
    return None if np.array_equal(groups, usual) else order
