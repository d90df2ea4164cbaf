"""Images read at places that are computed, in scalars: NNEF has no arithmetic of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.schema import gather
from serde.walk.expansion.resizing import image_expansion
from serde.walk.expansion.sampling import expand_crop_and_resize, expand_grid_sample
from serde.walk.expansion.tensors import tensor_type

__all__: list[str] = []


def _in_one_dtype(expand: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return an expansion that computes places in the dtype of the images, if that is wide."""
    expand = gather(expand)

    def expand_places(data: Expr, *places: Expr, **attrs: AnyValue) -> Expr:
        wide = "float64" if tensor_type(data).dtype == "float64" else "float32"
        return expand(wide, wide, data, *places, **attrs)

    return expand_places


OPS.expands("image.grid_sample")(_in_one_dtype(expand_grid_sample))
OPS.expands("image.crop_and_resize")(_in_one_dtype(expand_crop_and_resize))
for _ndim in (1, 2, 3):
    OPS.expands(f"image.resize{_ndim}d")(image_expansion(_ndim))
