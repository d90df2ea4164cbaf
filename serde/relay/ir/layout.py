"""Layouts of tensors such as ``NCHW16c``: which axis is which, and how axes are cut into blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from serde.core import Array, dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim
from serde.relay.ir.shapes import layout_axes

__all__ = [
    "SCALAR", "Axis", "LayoutPlan", "TensorLayout", "change_layout", "change_layout_of_shape",
    "is_blocked", "layout_rank",
    "parse_layout", "spatial_axes",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a layout.

    Attributes:
        letter: A capital for an axis, or for what is left of it where it is cut; a small letter
            for the places inside a block.
        factor: Length of the blocks of a small letter, else None.
    """

    letter: str
    factor: int | None = None

    @property
    def whole(self) -> bool:
        """Whether it is an axis, not the places inside its blocks."""
        return self.letter.isupper()

    def __str__(self) -> str:
        return self.letter if self.factor is None else f"{self.factor}{self.letter}"


class TensorLayout:
    """The axes of a tensor in order, as TVM's layouts name them.

    ``NCHW16c`` is a tensor of five axes: the channels are cut into blocks of 16, `c` counts the
    places inside a block and `C` the blocks. Layouts of one name are equal. A layout that is
    not known is None, not a layout.

    Args:
        axes: The axes, or their text.

    Raises:
        TypeInferenceError: The text is no layout.
    """

    __slots__ = ("axes", "name")

    def __init__(self, axes: str | Sequence[Axis]) -> None:
        self.axes = _read_axes(axes) if isinstance(axes, str) else tuple(axes)
        self.name = "".join(map(str, self.axes))

    def __len__(self) -> int:
        return len(self.axes)

    def __contains__(self, axis: object) -> bool:
        return any(each.letter == axis for each in self.axes)

    def __getitem__(self, index: int) -> str:
        return self.axes[index].letter

    def __iter__(self) -> Iterator[str]:
        return (axis.letter for axis in self.axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorLayout) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"TensorLayout({self.name!r})"

    @property
    def rank(self) -> int:
        """Number of axes, blocks not counted."""
        return sum(axis.whole for axis in self.axes)

    def index_of(self, letter: str) -> int:
        """Return where an axis is, or -1."""
        return next((i for i, axis in enumerate(self.axes) if axis.letter == letter), -1)

    def factor_of(self, letter: str) -> int:
        """Return how many elements a block of an axis has, or -1 where it is not cut."""
        small = letter.lower()
        factors = [axis.factor or 1 for axis in self.axes if axis.letter == small]
        return math.prod(factors) if factors else -1

    def part(self, start: int, count: int) -> TensorLayout | None:
        """Return the layout of `count` axes from `start` on; None where it is beyond the end."""
        if start > len(self.axes) or start < 0:
            return None
        return TensorLayout(self.axes[start : start + count])

    def expand(self, target: TensorLayout) -> TensorLayout:
        """Return a layout that begins with the whole axes of `target` that are missing here."""
        missing = [axis for axis in target.axes if axis.whole and axis.letter not in self]
        return TensorLayout((*missing, *self.axes))

    def converts_to(self, target: TensorLayout) -> bool:
        """Whether the axes of `target` are those of this layout, in some order and blocks."""
        own = {axis.letter.upper() for axis in self.axes}
        return bool(own) and own == {axis.letter.upper() for axis in target.axes}


SCALAR = TensorLayout(())
"""The layout of a tensor of no axes."""


def parse_layout(name: str) -> TensorLayout | None:
    """Return the layout called `name`; None, as for a layout that is not known, where it is empty.

    Raises:
        TypeInferenceError: It is no layout.
    """
    return TensorLayout(name) if name else None


def is_blocked(layout: str) -> bool:
    """Whether the text of a layout cuts an axis into blocks."""
    return not layout.isalpha()


def _read_axes(text: str) -> tuple[Axis, ...]:
    axes: list[Axis] = []
    digits = ""
    for letter in text:
        if letter.isdigit():
            digits += letter
            continue
        if not (letter.isascii() and letter.isalpha()) or letter.isupper() == bool(digits):
            raise TypeInferenceError(f"{text!r} is no layout")
        axes.append(Axis(letter, int(digits) if digits else None))
        digits = ""
    whole = [axis.letter for axis in axes if axis.whole]
    blocks = {axis.letter.upper() for axis in axes if not axis.whole}
    zero = any(axis.factor == 0 for axis in axes)
    if digits or zero or len(set(whole)) != len(whole) or not blocks <= set(whole):
        raise TypeInferenceError(f"{text!r} is no layout")
    return tuple(axes)


class LayoutPlan:
    """The steps from one layout to another.

    Args:
        shape: Lengths in the old layout.
        src_layout: The old layout.
        dst_layout: The new layout.
        filled: Whether zeros fill the last block of an axis that does not divide into blocks.

    Attributes:
        gather: Order of the axes that brings the pieces of each letter together.
        merged: Length of each letter, its pieces as one axis.
        padding: Zeros behind each letter, so that it divides into blocks.
        parts: Lengths of the new pieces, letter by letter.
        spread: Order of the new pieces.
        shape: Lengths in the new layout.

    Raises:
        TypeInferenceError: The layouts have other axes, or do not fit the lengths.
    """

    def __init__(
        self, shape: Sequence[Dim], src_layout: str, dst_layout: str, *, filled: bool = False
    ) -> None:
        source, target = TensorLayout(src_layout).axes, TensorLayout(dst_layout).axes
        letters = sorted({axis.letter.upper() for axis in source})
        if letters != sorted({axis.letter.upper() for axis in target}):
            raise TypeInferenceError(f"{src_layout!r} and {dst_layout!r} name different axes")
        if len(shape) != len(source):
            raise TypeInferenceError(f"layout {src_layout!r} does not name {len(shape)} axes")
        self.gather: list[int] = []
        self.merged: list[Dim] = []
        self.padding: list[Dim] = []
        self.parts: list[Dim] = []
        placed: list[int] = []
        for letter in letters:
            own = _pieces(source, letter)
            total = _join_pieces(shape, source, own, src_layout)
            wanted = _pieces(target, letter)
            blocks = [target[index].factor or 1 for index in wanted]
            size = math.prod(blocks)
            if type(total) is int and total % size and not filled:
                raise TypeInferenceError(f"axis {letter} of {total} has no blocks of {size}")
            count: Dim = total if size == 1 else (total + (size - 1)) // size
            self.gather += own
            self.merged.append(total)
            self.padding.append(0 if size == 1 else count * size - total)
            self.parts += [count, *blocks[1:]]
            placed += wanted
        self.spread = [placed.index(i) for i in range(len(target))]
        self.shape = [self.parts[i] for i in self.spread]


def _join_pieces(
    shape: Sequence[Dim], axes: Sequence[Axis], own: Sequence[int], layout: str
) -> Dim:
    """Return the length of a letter, its pieces as one axis."""
    total: Dim = 1
    for index in own:
        block = axes[index].factor
        if block is not None and isinstance(shape[index], int) and shape[index] != block:
            raise TypeInferenceError(f"axis {index} is not the block of {layout!r}")
        total = total * (shape[index] if block is None else block)
    return total


def _pieces(axes: Sequence[Axis], letter: str) -> list[int]:
    """Return where the pieces of one letter are, the outermost first."""
    own = [i for i, axis in enumerate(axes) if axis.letter.upper() == letter]
    return sorted(own, key=lambda i: (not axes[i].whole, i))


def change_layout(data: Array, src_layout: str, dst_layout: str) -> Array:
    """Return `data` with its axes in the order and the blocks of another layout.

    Zeros fill the last block of an axis that does not divide into blocks.

    Raises:
        TypeInferenceError: The layouts have other axes, or do not fit the data.
    """
    plan = LayoutPlan(data.shape, src_layout, dst_layout, filled=True)
    whole = data.transpose(plan.gather).reshape(_integers(plan.merged))
    extra = _integers(plan.padding)
    if any(extra):
        whole = np.pad(whole, [(0, count) for count in extra])
    pieces = whole.reshape(_integers(plan.parts))
    return np.ascontiguousarray(pieces.transpose(plan.spread))


def _integers(dims: Sequence[Dim]) -> tuple[int, ...]:
    """Return the lengths of an array, which are integers."""
    return tuple(dim for dim in dims if isinstance(dim, int))


def spatial_axes(layout: str, wanted: str) -> tuple[int, ...]:
    """Return where the axes behind the first two of `wanted` are; those two may be in blocks.

    Raises:
        TypeInferenceError: The layout has other axes, or cuts one of those returned.
    """
    if not is_blocked(layout):
        return layout_axes(layout, wanted)[2:]
    axes = TensorLayout(layout)
    if sorted(axis.letter for axis in axes.axes if axis.whole) != sorted(wanted):
        raise TypeInferenceError(f"expected a layout of the axes {wanted}, found {layout!r}")
    cut = [letter for letter in wanted[2:] if axes.factor_of(letter) > 0]
    if cut:
        raise TypeInferenceError(f"layout {layout!r} cuts the axis {cut[0]} into blocks")
    return tuple(axes.index_of(letter) for letter in wanted[2:])


def layout_rank(layout: str) -> int:
    """Return the rank of a tensor of a layout."""
    return sum(letter.isalpha() for letter in layout)


def change_layout_of_shape(
    shape: Sequence[Dim], src_layout: str, dst_layout: str
) -> tuple[Dim, ...]:
    """Return a shape in another layout.

    Raises:
        TypeInferenceError: The layouts have other axes, or do not fit the shape.
    """
    return tuple(LayoutPlan(shape, src_layout, dst_layout, filled=True).shape)
