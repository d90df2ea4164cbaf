"""What TorchScript asks of tensors and devices beside their elements, and of its own state."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.host.lists import draw_entries, new_list
from serde.torch.host.numbers import item
from serde.torch.host.registry import evaluates
from serde.torch.import_context import ImportContext, Scalar, SymInt
from serde.torch.ops.table import DTYPE_CODES
from serde.torch.promotion import promote_types


@evaluates("prim::dtype")
def dtype(ctx: ImportContext, a: Expr) -> int | str:
    """The code that TorchScript has for a dtype, or the name of one that it has not."""
    name = ctx.dtype(a)
    return DTYPE_CODES.index(name) if name in DTYPE_CODES else name


@evaluates("aten::promote_types")
def promote_dtypes(ctx: ImportContext, type1: int | str, type2: int | str) -> int | str:
    """A code where dtypes are codes, as in TorchScript, else a name."""
    if isinstance(type1, int) and isinstance(type2, int):
        return DTYPE_CODES.index(promote_types(DTYPE_CODES[type1], DTYPE_CODES[type2]))
    return promote_types(str(type1), str(type2))


@evaluates("prim::device")
def device(ctx: ImportContext, a: Expr) -> str:
    return "cpu"


@evaluates("prim::layout")
def layout(ctx: ImportContext, a: Expr) -> int:
    """Strided, as all tensors are here."""
    return 0


@evaluates("prim::is_cpu", "aten::is_contiguous")
def is_contiguous(ctx: ImportContext, self: Expr, memory_format: AnyValue = None) -> bool:
    """Memory has no layout in Relay: what a program makes of it must not bear on its result."""
    return True


@evaluates(
    *(
        f"prim::is_{kind}"
        for kind in (
            "cuda", "ipu", "maia", "meta", "mkldnn", "mps", "mtia", "nested", 
            "sparse", "sparse_csr", "vulkan", "xla", "xpu",
        )
    ),
    "prim::requires_grad",
    "aten::is_sparse",
)  # fmt: skip
def is_not(ctx: ImportContext, a: Expr) -> bool:
    """What no tensor is while a model is read."""
    return False


@evaluates("aten::is_floating_point")
def is_floating_point(ctx: ImportContext, self: Expr) -> bool:
    return ctx.dtype(self).startswith(("float", "bfloat"))


@evaluates("aten::is_complex")
def is_complex(ctx: ImportContext, self: Expr) -> bool:
    return ctx.dtype(self).startswith("complex")


@evaluates("prim::itemsize", "aten::element_size")
def element_size(ctx: ImportContext, self: Expr) -> int:
    return numpy_dtype(ctx.dtype(self)).itemsize


@evaluates("aten::len.Tensor")
def length_of_tensor(ctx: ImportContext, t: Expr) -> SymInt:
    return ctx.size(t, 0)


@evaluates("aten::get_device")
def get_device(ctx: ImportContext, self: Expr) -> int:
    return -1


@evaluates("prim::type")
def device_type(ctx: ImportContext, self: str) -> str:
    return self.partition(":")[0]


@evaluates("prim::index")
def device_index(ctx: ImportContext, self: str) -> int | None:
    number = self.partition(":")[2]
    return int(number) if number else None


@evaluates("aten::device", "aten::device.with_index")
def make_device(ctx: ImportContext, name: str, index: int | None = None) -> str:
    return name if index is None else f"{name}:{index}"


@evaluates("aten::is_scripting")
def is_scripting(ctx: ImportContext) -> bool:
    return True


@evaluates(
    "aten::is_grad_enabled",
    "aten::is_autocast_enabled",
    "aten::is_autocast_cpu_enabled",
    "aten::_get_tracing_state",
    "aten::has_torch_function",
    "aten::_use_cudnn_rnn_flatten_weight",
    "prim::AutogradAnyNonZero",
)
def is_never(ctx: ImportContext, *values: AnyValue) -> bool:
    """What is not so while a model is used."""
    return False


@evaluates("aten::warn", "prim::Print", "aten::manual_seed", "aten::set_grad_enabled", moves=True)
def do_nothing(ctx: ImportContext, *values: AnyValue) -> None:
    """What says something to users, and computes nothing."""


@evaluates("prim::tolist")
def to_list(ctx: ImportContext, data: Expr, *_type: int) -> list[Scalar]:
    """The elements of a vector, of which it is known how many there are."""
    shape = ctx.type(data).concrete_shape
    if shape is None or len(shape) != 1:
        raise Unsupported("a tensor as a list of numbers that is no vector of a known length")
    draw_entries(shape[0])
    rows = (relay.take(data, relay.const(place, "int64"), axis=0) for place in range(shape[0]))
    return new_list(ctx, [item(ctx, ctx.fold(each)) for each in rows])


@evaluates("aten::q_scale")
def q_scale(ctx: ImportContext, self: Expr) -> float | Expr:
    return ctx.quantization(self).scale


@evaluates("aten::q_zero_point")
def q_zero_point(ctx: ImportContext, self: Expr) -> int | Expr:
    return ctx.quantization(self).zero_point


@evaluates("aten::q_per_channel_axis")
def q_per_channel_axis(ctx: ImportContext, self: Expr) -> int | None:
    return ctx.quantization(self).axis


@evaluates("prim::is_quantized")
def is_quantized(ctx: ImportContext, a: Expr) -> bool:
    return ctx.is_quantized(a)
