"""Quantised weights of PyTorch, unpacked into integers, scales and zero points."""

from __future__ import annotations

from typing import Any as AnyValue, Final

from serde.core.optional import require

__all__ = ["unpack_params", "unpack_tensor"]

_KINDS: Final = {
    "LinearPackedParamsBase": ("linear", "linear"),
    "Conv2dPackedParamsBase": ("conv2d", "conv2d"),
    "Conv3dPackedParamsBase": ("conv3d", "conv3d"),
    "EmbeddingPackedParamsBase": ("embedding", "embedding_bag"),
}
"""What packed parameters are of, and how their operators are named."""

_GEOMETRY: Final = ("stride", "padding", "output_padding", "dilation", "groups", "transpose")


def unpack_params(value: AnyValue) -> dict[str, AnyValue] | None:
    """Return packed parameters by the names of :class:`PackedParams`; None if none are known."""
    operators = require("torch").ops.quantized
    name = value._type().qualified_name().rpartition(".")[2]
    if name == "CellParamsBase":
        return _unpack_cell(value)
    if name not in _KINDS:
        return None
    kind, prefix = _KINDS[name]
    found = getattr(operators, f"{prefix}_unpack")(value)
    weight, bias = (found, None) if kind == "embedding" else found
    parts = {"kind": kind, **unpack_tensor(weight)}
    if bias is not None:
        parts["bias"] = bias
    if kind.startswith("conv"):
        for each in _GEOMETRY:
            item = getattr(operators, f"{prefix}_{each}")(value)
            parts[each] = tuple(item) if isinstance(item, (list, tuple)) else item
    return parts


def _unpack_cell(value: AnyValue) -> dict[str, AnyValue] | None:
    """Return the parameters of one direction of a recurrent layer that is quantised dynamically.

    Its state says what it is, biases, nothing, whether the range is reduced, and two layers.
    """
    (kind, tensors, _, numbers, layers), _ = value.__getstate__()
    if kind != "quantized_dynamic" or len(layers) != 2:
        return None
    return {
        "layers": list(layers),
        "biases": list(tensors),
        "reduce_range": bool(numbers and numbers[0]),
    }


def unpack_tensor(tensor: AnyValue) -> dict[str, AnyValue]:
    """Return a tensor as `weight` with `scale`, `zero_point` and `axis` where it is quantised."""
    torch = require("torch")
    if not tensor.is_quantized:
        return {"weight": tensor}
    parts: dict[str, AnyValue] = {"weight": tensor.int_repr()}
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return {**parts, "scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    return {
        **parts,
        "scale": tensor.q_per_channel_scales(),
        "zero_point": tensor.q_per_channel_zero_points(),
        "axis": tensor.q_per_channel_axis(),
    }
