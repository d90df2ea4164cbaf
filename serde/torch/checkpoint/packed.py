"""Linear layers that GPTQ and AWQ have quantised, as expressions over the words that hold them.

Both keep levels of a layer in words of 32 bits, with a scale and a zero point for each group of
inputs. Levels are moved, and never computed with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import Array, FileWeight, Weight, dataclass, require
from serde.errors import FormatError, TypeInferenceError
from serde.io.packed import PackedWeight
from serde.relay.ir import Expr, call, tensor_type
from serde.relay.ir.expr import Constant, const
from serde.relay.run.computed import computed

__all__ = ["Packing", "dequantized", "read_packing", "unpack_weights"]

_FORMS: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[int, ...]]]] = {
    "gptq": ("checkpoint_format", ("gptq", "gptq_v2"), (4, 8)),
    "awq": ("version", ("gemm",), (4,)),
}
"""For each method what names the form of its words; forms that are read, the usual first; bits."""

_PARTS: Final = ("qweight", "scales", "qzeros")


@dataclass(frozen=True)
class Packing:
    """How layers are packed: a form, bits of a level, inputs of a group or 0 for all of a layer."""

    form: str
    bits: int
    group: int


def read_packing(document: AnyValue, path: Path) -> Packing:
    """Return how layers are packed, by the config's ``quantization_config``.

    Raises:
        FormatError: In a way that is not read.
    """
    known = document if isinstance(document, dict) else {}
    method, bits, group = (known.get(key) for key in ("quant_method", "bits", "group_size"))
    key, forms, widths = _FORMS.get(str(method), ("", ("",), ()))
    form = str(known.get(key, forms[0])).lower()
    checks = (
        ("quant_method", method, tuple(_FORMS)),
        ("bits", bits, widths),
        (key, form, forms),
        ("group_size", group, (group,) if type(group) is int and group > 0 else (-1, "more")),
    )
    for name, found, expected in checks:
        if found not in expected:
            told = f"{name}: expected {' or '.join(map(str, expected))}, found {found!r}"
            raise FormatError(f"config.json: quantization_config: {told}"[:300], path=path)
    return Packing(form, int(bits or 0), max(int(group or 0), 0))


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
    inputs_first = require("transformers").pytorch_utils.Conv1D
    named = [name for name, each in module.named_modules() if isinstance(each, inputs_first)]
    turned = tuple(f".{name.removeprefix(f'{module.base_model_prefix}.')}." for name in named)
    layers = [name.removesuffix("qweight") for name in weights if name.endswith(".qweight")]
    used = {f"{layer}{part}" for layer in layers for part in (*_PARTS, "g_idx")}
    found: dict[str, Weight] = {name: each for name, each in weights.items() if name not in used}
    for layer in layers:
        try:
            found[f"{layer}weight"] = _unpack(
                [weights[f"{layer}{part}"] for part in _PARTS], weights.get(f"{layer}g_idx"),
                packing, dtype, turns=f".{layer}".endswith(turned),
            )  # fmt: skip
        except KeyError as error:
            raise FormatError(f"{layer}qweight is without {error}"[:300], path=path) from None
        except (ValueError, TypeInferenceError) as error:
            raise FormatError(f"{layer[:200]}{error}", path=path) from None
    return found


def _unpack(
    parts: list[FileWeight],
    g_idx: FileWeight | None,
    packing: Packing,
    dtype: str | None,
    *,
    turns: bool,
) -> Weight:
    """Return the weight of a layer, outputs first unless it `turns`."""
    inputs, outputs, groups = _measure(parts, packing)
    group = packing.group or inputs
    order = None if g_idx is None else _order(g_idx, inputs, group)
    words, scales, zeros = parts
    if packing.form == "gptq":
        _refuse_greatest(_values(zeros, packing.bits), packing.bits)

    def build(first: Expr, factors: Expr, second: Expr) -> Expr:
        if packing.form == "gemm":
            first, second = _interleaved(first), _interleaved(second)
        else:  # A word has several inputs of one output, but zero points of several outputs.
            first = call("transpose", first, axes=(1, 0, 2))
            second = call("transpose", second, axes=(1, 2, 0))
        levels = call("reshape", first, newshape=(outputs, inputs))
        points = call("reshape", second, newshape=(outputs, groups))
        if packing.form == "gptq":
            more = call("add", call("cast", points, dtype="uint8"), const(1, "uint8"))
            points = call("cast", more, dtype=tensor_type(points).dtype)
        if order is not None:
            levels = call("take", levels, Constant(order), axis=1)
        factors = call("transpose", factors, axes=(1, 0))
        weight = dequantized(levels, factors, points, group, dtype)
        if order is not None:
            weight = call("take", weight, const(np.argsort(order).astype(np.int32)), axis=1)
        return call("transpose", weight, axes=(1, 0)) if turns else weight

    first, second = (_values(each, packing.bits) for each in (words, zeros))
    return computed(build, first, scales, second)


def dequantized(
    levels: Expr, scales: Expr, points: Expr | None, block: int, dtype: str | None
) -> Expr:
    """Return rows of levels as floats of a dtype, or of that of their scales."""
    if dtype in ("float32", "float64"):
        scales = call("cast", scales, dtype=dtype)
    return call(
        "serde.dequantize_linear", levels, scales, points, axis=1, block_size=block, out_dtype=dtype
    )


def _measure(parts: list[FileWeight], packing: Packing) -> tuple[int, int, int]:
    """Return the numbers of inputs, outputs and groups of a layer, if its parts agree."""
    words, _, zeros = parts
    each = 32 // packing.bits
    down, across = (1, each) if packing.form == "gemm" else (each, 1)
    found = [part.shape for part in parts]
    if {words.dtype, zeros.dtype} != {"int32"} or {*map(len, found)} != {2} or 0 in words.shape:
        raise ValueError(f"qweight: expected matrices, of int32 with int32, found {found}")
    inputs, outputs = words.shape[0] * down, words.shape[1] * across
    groups = -(-inputs // (packing.group or inputs))
    if found[1:] != [(groups, outputs), (groups, outputs // each)] or outputs % each:
        told = f"expected {groups} groups of {outputs} outputs of {packing.bits} bits"
        raise ValueError(f"scales and qzeros: {told}, found {found[1:]}")
    return inputs, outputs, groups


def _values(words: FileWeight, bits: int) -> Weight:
    """Return the integers in words, those in the lowest bits first, along an axis more."""
    shape = (*words.shape, 32 // bits)
    if bits == 8:
        return FileWeight(words.source, shape, "uint8")
    return PackedWeight(FileWeight(words.source, (words.nbytes,), "uint8"), shape, "uint4", bits)


def _interleaved(values: Expr) -> Expr:
    """Return AWQ's integers in order, outputs first: a word has columns 0 2 4 6 1 3 5 7."""
    rows, words, each = tensor_type(values).shape
    halves = call("reshape", values, newshape=(rows, words, 2, each // 2))
    return call("transpose", halves, axes=(1, 3, 2, 0))


def _refuse_greatest(points: Weight, bits: int) -> None:
    """Refuse what is read in several ways where zero points are stored less one."""
    most = (1 << bits) - 1
    if (points.array().astype(np.uint8) == most).any():
        told = f"{most} stands for {most + 1} or 0, as zero points are stored less one"
        raise ValueError(f"qzeros: {told}; checkpoint_format gptq_v2 tells them as they are")


def _order(g_idx: FileWeight, inputs: int, group: int) -> Array | None:
    """Return in which order inputs are those of one group after the other; None as they are."""
    groups, usual = g_idx.array(), np.arange(inputs) // group
    order = np.argsort(groups, kind="stable").astype(np.int32)
    if groups.shape != usual.shape or not np.array_equal(groups[order], usual):
        raise ValueError(f"g_idx: expected groups of {group} of {inputs} inputs")
    return None if np.array_equal(groups, usual) else order
