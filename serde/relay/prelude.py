"""TVM's Prelude, where ``tvm.relay.prelude`` has it."""

from __future__ import annotations

from serde.relay.tvm.prelude import (
    Prelude,
    StaticTensorArrayOps,
    TensorArrayOps,
    get_tensor_array_shape,
)

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape"]
