"""Conversion between layouts such as NCHW, NHWC and NCHW16c."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim
from serde.relay.ir.registry import Array, relay_op, sample
from serde.relay.ir.traits import Moves
from serde.relay.ir.types import TensorType
from serde.relay.op.shape.reshape import lengths

__all__ = ["LayoutPlan"]

Axis = tuple[str, int | None]


def _parse(layout: str) -> list[Axis]:
    """Return the axes of a layout: a capital letter, or a small one with its block length."""
    axes: list[Axis] = []
    digits = ""
    for letter in layout:
        if letter.isdigit():
            digits += letter
            continue
        if not letter.isalpha() or letter.isupper() == bool(digits):
            raise TypeInferenceError(f"{layout!r} is no layout")
        axes.append((letter.upper(), int(digits) if digits else None))
        digits = ""
    whole = [letter for letter, block in axes if block is None]
    blocks = {letter for letter, block in axes if block is not None}
    zero = any(block == 0 for _, block in axes)
    if digits or zero or len(set(whole)) != len(whole) or not blocks <= set(whole):
        raise TypeInferenceError(f"{layout!r} is no layout")
    return axes


class LayoutPlan:
    """The steps from one layout to another.

    Attributes:
        gather: Order of the axes that brings the pieces of each letter together.
        merged: Length of each letter, its pieces as one axis.
        parts: Lengths of the new pieces, letter by letter.
        spread: Order of the new pieces.
        shape: Lengths in the new layout.
    """

    def __init__(self, shape: Sequence[Dim], src_layout: str, dst_layout: str) -> None:
        source, target = _parse(src_layout), _parse(dst_layout)
        letters = sorted({letter for letter, _ in source})
        if letters != sorted({letter for letter, _ in target}):
            raise TypeInferenceError(f"{src_layout!r} and {dst_layout!r} name different axes")
        if len(shape) != len(source):
            raise TypeInferenceError(f"layout {src_layout!r} does not name {len(shape)} axes")
        self.gather: list[int] = []
        self.merged: list[Dim] = []
        self.parts: list[Dim] = []
        placed: list[int] = []
        for letter in letters:
            own = _axes_of(source, letter)
            self.gather += own
            total: Dim = 1
            for index in own:
                block = source[index][1]
                if block is not None and isinstance(shape[index], int) and shape[index] != block:
                    raise TypeInferenceError(f"axis {index} is not the block of {src_layout!r}")
                total = total * (shape[index] if block is None else block)
            self.merged.append(total)
            wanted = _axes_of(target, letter)
            blocks = [target[index][1] or 1 for index in wanted]
            size = int(np.prod(blocks))
            if isinstance(total, int) and total % size:
                raise TypeInferenceError(f"axis {letter} of {total} has no blocks of {size}")
            self.parts += [total // size, *blocks[1:]]
            placed += wanted
        self.spread = [placed.index(i) for i in range(len(target))]
        self.shape = [self.parts[i] for i in self.spread]


def _axes_of(axes: Sequence[Axis], letter: str) -> list[int]:
    """Return where the pieces of one letter are, the outermost first."""
    own = [i for i, (name, _) in enumerate(axes) if name == letter]
    return sorted(own, key=lambda i: (axes[i][1] is not None, i))


def _layout_type(data: TensorType, *, src_layout: str, dst_layout: str) -> TensorType:
    return TensorType(LayoutPlan(data.shape, src_layout, dst_layout).shape, data.dtype)


@relay_op(
    "layout_transform",
    traits=(Moves(all=True),),
    infer=_layout_type,
    samples=[
        sample((1, 4, 2, 3), src_layout="NCHW", dst_layout="NHWC"),
        sample((1, 4, 2, 3), src_layout="NCHW", dst_layout="NCHW2c"),
        sample((1, 2, 2, 3, 2), src_layout="NCHW2c", dst_layout="NHWC"),
        sample((4, 8, 1, 1), src_layout="OIHW", dst_layout="OIHW2i4o2i"),
    ],
)
def layout_transform(data: Array, *, src_layout: str, dst_layout: str) -> Array:
    """The axes of `src_layout` in the order and the blocks of `dst_layout`."""
    plan = LayoutPlan(data.shape, src_layout, dst_layout)
    whole = data.transpose(plan.gather).reshape(lengths(plan.merged))
    pieces = whole.reshape(lengths(plan.parts))
    return np.ascontiguousarray(pieces.transpose(plan.spread))
