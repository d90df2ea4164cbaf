"""Images sampled at the places of a grid, and blocks of pixels moved between space and channels."""

from __future__ import annotations

from typing import Final, Literal

from serde.relay.ir import Call, Expr, call, tensor_type
from serde.relay.op.image.grid import GridSample
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value

_METHODS: Final = ("linear", "nearest", "cubic")
_PADDING: Final = ("zeros", "border", "reflection")


@OPS.imports(
    "aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d",
    "aten::_grid_sampler_2d_cpu_fallback",
)  # fmt: skip
def import_grid_sampler(
    ctx: Import,
    input: Expr,
    grid: Expr,
    *,
    interpolation_mode: Literal[0, 1, 2],
    padding_mode: Literal[0, 1, 2],
    align_corners: bool,
) -> Expr:
    return call(
        "serde.grid_sample",
        input,
        grid,
        method=_METHODS[interpolation_mode],
        padding_mode=_PADDING[padding_mode],
        align_corners=align_corners,
    )


@OPS.imports("aten::affine_grid_generator")
def import_affine_grid(
    ctx: Import, theta: Expr, *, size: tuple[SymInt, ...], align_corners: bool
) -> Expr:
    """The first two lengths are those of the batch and of the channels."""
    lengths = [ctx.dim(each) for each in size[2:]]
    fixed = [each for each in lengths if isinstance(each, int)]
    if len(fixed) == len(lengths):
        return call(
            "serde.affine_grid", theta, None, size=tuple(fixed), align_corners=align_corners
        )
    shape = ctx.shape_vector(size)
    return call("serde.affine_grid", theta, shape, align_corners=align_corners)


Pairs = tuple[tuple[int, int], ...]


def _is_sampled_alike(call: Call) -> bool:
    """Whether PyTorch reads the same; it rounds halves to even numbers where it rounds."""
    method, rank = call.attrs["method"], tensor_type(call.args[0]).rank
    return method == "bilinear" or (method == "bicubic" and rank == 4)


def _sample(
    ctx: Export, x: Value, grid: Value, method: str, padding_mode: str, align_corners: bool
) -> Value:
    options: dict[str, object] = {} if method == "bilinear" else {"mode": method}
    if padding_mode != "zeros":
        options["padding_mode"] = padding_mode
    return ctx.call("F.grid_sample", x, grid, **options, align_corners=align_corners)


@OPS.exports("image.grid_sample", when=_is_sampled_alike)
def export_grid_sample(ctx: Export, data: Value, grid: Value, *, sampling: GridSample) -> Value:
    places = ctx.method(grid, "movedim", 1, -1)
    return _sample(
        ctx, data, places, sampling.method, sampling.padding_mode, sampling.align_corners
    )


def _has_mode(call: Call) -> bool:
    return call.attrs["method"] != "cubic" or tensor_type(call.args[0]).rank == 4


@OPS.exports("serde.grid_sample", when=_has_mode)
def export_serde_grid_sample(
    ctx: Export, data: Value, grid: Value, *, method: str, padding_mode: str, align_corners: bool
) -> Value:
    mode = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}[method]
    return _sample(ctx, data, grid, mode, padding_mode, align_corners)


@OPS.exports("image.affine_grid")
def export_affine_grid(ctx: Export, data: Value, *, target_shape: tuple[int, ...]) -> Value:
    size = [ctx.size(data, 0), 1, *target_shape]
    found = ctx.call("F.affine_grid", data, size, align_corners=True)
    return ctx.method(found, "permute", 0, 3, 1, 2)


@OPS.exports("serde.affine_grid")
def export_serde_affine_grid(
    ctx: Export,
    theta: Value,
    shape: Value | None,
    *,
    size: tuple[int, ...] | None,
    align_corners: bool,
) -> Value:
    lengths: object = [ctx.size(theta, 0), 1, *(size or ())]
    if shape is not None:
        lengths = ctx.call(ctx.helper("integers"), shape)
    return ctx.call("F.affine_grid", theta, lengths, align_corners=align_corners)


@OPS.exports("nn.depth_to_space")
def export_depth_to_space(ctx: Export, data: Value, *, block_size: int, mode: str) -> Value:
    """PyTorch's order is CRD; in the other the channels of a block are first split off."""
    if mode != "CRD":
        data = ctx.method(data, "unflatten", 1, (block_size * block_size, -1))
        data = ctx.method(ctx.method(data, "transpose", 1, 2), "flatten", 1, 2)
    return ctx.call("F.pixel_shuffle", data, block_size)


@OPS.exports("nn.space_to_depth")
def export_space_to_depth(ctx: Export, data: Value, *, block_size: int, mode: str) -> Value:
    found = ctx.call("F.pixel_unshuffle", data, block_size)
    found = ctx.method(found, "unflatten", 1, (-1, block_size * block_size))
    return ctx.method(ctx.method(found, "transpose", 1, 2), "flatten", 1, 2)
