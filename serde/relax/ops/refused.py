"""Operators of Relax that Relay cannot say, and why."""

from __future__ import annotations

from typing import Final

from serde.relax.ops.table import OPS

_LOWERED: Final = "give the module as it is before it was lowered (relax.transform.LegalizeOps)"

OPS.refuses(
    "relax.vm.call_tir_dyn", "relax.dist.call_tir_local_view",
    reason="a function of TIR, which only TVM can run", hint=_LOWERED,
)  # fmt: skip

OPS.refuses(
    "relax.call_builtin_with_ctx", "relax.call_dps_packed", "relax.call_inplace_packed",
    "relax.call_pure_packed", "relax.call_py_func",
    reason="a packed function, which only TVM can run", hint=_LOWERED,
)  # fmt: skip

OPS.refuses(
    "relax.builtin.alloc_tensor", "relax.memory.alloc_storage", "relax.memory.alloc_tensor",
    "relax.memory.kill_storage", "relax.memory.kill_tensor", "relax.vm.alloc_storage",
    "relax.vm.alloc_tensor", "relax.vm.kill_object",
    reason="memory of TVM's virtual machine", hint=_LOWERED,
)  # fmt: skip

OPS.refuses(
    "relax.ccl.allgather", "relax.ccl.allreduce", "relax.ccl.broadcast_from_worker0",
    "relax.ccl.scatter_from_worker0", "relax.dist.annotate_sharding", "relax.dist.redistribute",
    "relax.dist.redistribute_replica_to_shard",
    reason="a step between several devices has no counterpart",
    hint="give the module for one device",
)  # fmt: skip

OPS.refuses(
    "relax.grad.avg_pool2d_backward", "relax.grad.max_pool2d_backward",
    "relax.grad.nll_loss_backward", "relax.grad.take_backward",
    reason="a gradient, which Relay lacks", hint="give the function that is differentiated",
)  # fmt: skip

OPS.refuses(
    "relax.inspect.tensor_byte_offset", "relax.inspect.tensor_dtype_bits",
    "relax.inspect.tensor_dtype_code", "relax.inspect.tensor_dtype_lanes",
    "relax.inspect.tensor_elem_offset", "relax.inspect.tensor_ndim",
    "relax.inspect.tensor_shape_i", "relax.inspect.tensor_stride_i",
    reason="where a tensor is in memory has no counterpart", hint=_LOWERED,
)  # fmt: skip

OPS.refuses(
    "relax.invoke_closure", "relax.invoke_pure_closure", "relax.make_closure",
    reason="a closure made when the model runs has no counterpart",
    hint="give the module as it is before relax.transform.LambdaLift",
)  # fmt: skip

OPS.refuses(
    "relax.nn.attention_var_len", reason="attention over packed sequences has no counterpart"
)
