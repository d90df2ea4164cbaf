"""Tensors of PyTorch as weights."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.core import ArrayWeight, Weight, require

__all__ = ["tensor_weight"]


def tensor_weight(tensor: AnyValue) -> Weight:
    """Return a tensor as a weight that shares its memory."""
    torch = require("torch")
    found = tensor.detach().cpu()
    if found.dtype == torch.bfloat16:
        import ml_dtypes

        return ArrayWeight(found.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return ArrayWeight(found.contiguous().numpy())
