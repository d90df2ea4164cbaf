"""Boxes that the shape of an image alone tells."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.allocation as allocation
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.registry import get
from serde.relay.run.interpreter import apply_kernel
from serde.walk.expansion.tensors import fixed_shape, tensor_type
from serde.weights import numpy_dtype

__all__: list[str] = []


@OPS.expands("vision.multibox_prior")
def expand_multibox_prior(data: Expr, **attributes: AnyValue) -> Expr:
    """What the kernel makes of any image of that shape."""
    height, width = fixed_shape(data)[2:]
    allocation.allow((height, width, len(attributes["sizes"]) + len(attributes["ratios"]) - 1, 4))
    image = allocation.zeros(fixed_shape(data), numpy_dtype(tensor_type(data).dtype))
    return Constant(apply_kernel(get("vision.multibox_prior"), [image], attributes))
