"""What operators over windows share. PyTorch keeps channels behind the batch axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr
from serde.relay.op.conv.windows import Convolution
from serde.torch.ops.table import Export, Import, SymInt, Value

__all__ = [
    "SPATIAL", "ConvAttributes", "RelayConv", "Sizes", "kernel_size", "over_batch", "per_axis",
    "require_real", "write_conv",
]  # fmt: skip

SPATIAL: Final = {1: "W", 2: "HW", 3: "DHW"}

Sizes: TypeAlias = SymInt | tuple[SymInt, ...]
"""A number for each spatial axis, or one for all of them."""

ResultT = TypeVar("ResultT", Expr, tuple[Expr, ...])


def per_axis(ctx: Import, given: Sizes, ndim: int, name: str) -> tuple[int, ...]:
    """Return one number for each spatial axis."""
    values = given if isinstance(given, tuple) else (given,)
    if len(values) not in (1, ndim):
        raise Unsupported(f"{name}: expected {ndim} numbers, found {len(values)}")
    fixed = tuple(ctx.fixed(each) for each in values)
    return fixed if len(fixed) == ndim else fixed * ndim


def over_batch(ctx: Import, x: Expr, ndim: int, build: Callable[[Expr], ResultT]) -> ResultT:
    """Return what is built of data with a batch axis; without one it is a batch of one."""
    rank = ctx.type(x).rank
    if rank == ndim + 2:
        return build(x)
    if rank != ndim + 1 or ndim not in SPATIAL:
        raise Unsupported(f"a tensor of rank {rank} for {ndim} spatial axes")
    found = build(relay.expand_dims(x, axis=0))
    if isinstance(found, tuple):
        return tuple(relay.squeeze(each, axis=[0]) for each in found)
    return relay.squeeze(found, axis=[0])


@dataclass(frozen=True, kw_only=True)
class ConvAttributes:
    """Attributes that the convolutions of PyTorch share."""

    stride: Sizes = 1
    padding: Sizes | str = 0
    dilation: Sizes = 1
    groups: SymInt = 1

    def pads(
        self, ctx: Import, kernel: tuple[int, ...], dilation: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Return pads, all before the axes first; of an odd number more is behind."""
        ndim = len(kernel)
        if not isinstance(self.padding, str):
            return per_axis(ctx, self.padding, ndim, "padding") * 2
        if self.padding == "valid":
            return (0,) * (2 * ndim)
        if self.padding != "same":
            raise Unsupported(f"padding {self.padding!r} is unknown")
        totals = [(size - 1) * gap for size, gap in zip(kernel, dilation, strict=True)]
        return (*(each // 2 for each in totals), *(each - each // 2 for each in totals))


def kernel_size(ctx: Import, weight: Expr) -> tuple[int, ...]:
    """Return the spatial lengths of a weight."""
    ndim = ctx.type(weight).rank - 2
    if ndim not in SPATIAL:
        raise Unsupported(f"a convolution over {ndim} axes")
    return ctx.static_lengths(weight, range(2, ndim + 2))


def require_real(ctx: Import, x: Expr) -> None:
    """Refuse complex numbers, which Relay does not convolve."""
    if ctx.dtype(x).startswith("complex"):
        raise Unsupported("a convolution of complex numbers")


class RelayConv(Convolution):
    """Attributes of Relay's convolutions."""

    def options(self) -> dict[str, object]:
        """Return what differs from PyTorch's defaults, padding left out."""
        found: dict[str, object] = {}
        if set(self.strides) != {1}:
            found["stride"] = tuple(self.strides)
        if set(self.dilation) != {1}:
            found["dilation"] = tuple(self.dilation)
        if self.groups != 1:
            found["groups"] = self.groups
        return found


def write_conv(
    ctx: Export, name: str, x: Value, w: Value, bias: Value | None, inputs: Dim,
    options: dict[str, object],
) -> Value:  # fmt: skip
    """Write a layer where its weights are weights, a function elsewhere.

    Args:
        ctx: What is written.
        name: Of the layer.
        x: The data.
        w: The weight.
        bias: The bias, if there is one.
        inputs: Channels of the data.
        options: What differs from PyTorch's defaults.
    """
    shape = ctx.type(w).shape
    fixed = [each for each in shape if isinstance(each, int)]
    groups, transposed = options.get("groups", 1), "Transpose" in name
    vector = bias is None or ctx.type(bias).rank == 1
    if not (ctx.is_weight(w, bias) and len(fixed) == len(shape) and vector):
        given = [] if bias is None else [bias]
        function = name.lower().replace("transpose", "_transpose")
        return ctx.call(f"F.{function}", x, w, *given, **options)
    if not isinstance(inputs, int):
        inputs = fixed[0] if transposed else fixed[1] * int(str(groups))
    weights, made = {"weight": w}, dict(options)
    if bias is None:
        made["bias"] = False
    else:
        weights["bias"] = bias
    return ctx.layer(
        f"nn.{name}",
        (x,),
        weights,
        in_channels=inputs,
        out_channels=fixed[1] * int(str(groups)) if transposed else fixed[0],
        kernel_size=tuple(fixed[2:]),
        **made,
    )
