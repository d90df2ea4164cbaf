"""How operators that take parts of axes follow layouts."""

from __future__ import annotations

from serde.relay.ir import Attrs, TensorType, normalize_axis
from serde.relay.ir.layout import TensorLayout
from serde.relay.tvm.passes.layout.inference import (
    Layouts,
    New,
    Output,
    Types,
    changed,
    new_axes,
    target_of,
    unknown,
)

__all__ = ["infer_slice_like", "infer_split", "infer_squeeze", "infer_strided_slice"]


def infer_slice_like(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Both operands come in the same layout, or both go back into the old one."""
    places = new_axes(attrs["axes"] or (), new, old, types[0])
    if new is not None and places and new[0] == new[1] and old[0] == old[1]:
        return Output((new[0], new[0]), (new[0],), changed(attrs, axes=places))
    return Output((old[0], old[1]), (old[0],), attrs)


def infer_squeeze(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """The layout of what is left."""
    layout, data = old[0], types[0]
    if layout is None or not isinstance(data, TensorType) or data.rank != len(layout):
        return unknown(attrs, 1)
    given = attrs["axis"]
    if given is None:
        axes = tuple(axis for axis, length in enumerate(data.shape) if length == 1)
    else:
        axes = tuple(normalize_axis(axis, data.rank) for axis in given)
    target, places = target_of(new), new_axes(axes, new, old, data)
    if target is not None and places is not None:
        attrs, layout, axes = changed(attrs, axis=places), target, places
    left = TensorLayout([each for axis, each in enumerate(layout.axes) if axis not in axes])
    return Output((layout,), (left,), attrs)


def infer_split(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Parts that are whole blocks are counted in blocks; others keep the old layout."""
    sections = attrs["indices_or_sections"]
    count = sections if isinstance(sections, int) else len(sections) + 1
    layout, data = old[0], types[0]
    if layout is None or not isinstance(data, TensorType) or data.rank != len(layout):
        return unknown(attrs, 1, count)
    axis = normalize_axis(attrs["axis"], data.rank)
    target = target_of(new)
    place = -1 if target is None else target.index_of(layout[axis])
    if target is not None and place >= 0:
        factor = max(target.factor_of(layout[axis]), 1)
        length = data.shape[axis]
        if isinstance(sections, int):
            fits = factor == 1 or (type(length) is int and length // sections % factor == 0)
            found = changed(attrs, axis=place)
        else:
            fits = not any(index % factor for index in sections)
            inner = tuple(index // factor for index in sections)
            found = changed(attrs, axis=place, indices_or_sections=inner)
        if fits:
            attrs, layout = found, target
    return Output((layout,), (layout,) * count, attrs)


def infer_strided_slice(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Bounds go with their axes; those of an axis in blocks must be whole blocks."""
    layout, data = old[0], types[0]
    target = target_of(new)
    if layout is None or target is None or target == layout:
        return Output((layout,), (layout,), attrs)
    given = attrs["begin"] is not None and attrs["end"] is not None
    if not given or not isinstance(data, TensorType) or data.rank != len(layout):
        return unknown(attrs, 1)
    if target.name.startswith(layout.name):
        found = _in_blocks(attrs, layout, target, data)
    elif not layout.name.startswith(target.name) and len(layout.name) == len(target.name):
        found = _in_order(attrs, layout, target, data)
    elif layout.name.startswith(target.name):
        return Output((layout,), (layout,), attrs)
    else:
        found = None
    if found is None:
        return unknown(attrs, 1)
    return Output((target,), (target,), found)


def _steps(attrs: Attrs) -> list[int]:
    """Return a stride for each bound; in the mode of sizes strides do not count."""
    count = max(len(attrs["begin"]), len(attrs["end"]))
    strides = [] if attrs["slice_mode"] == "size" else list(attrs["strides"] or ())[:count]
    return strides + [1] * (count - len(strides))


def _in_order(
    attrs: Attrs, layout: TensorLayout, target: TensorLayout, data: TensorType
) -> Attrs | None:
    """Return the attributes for the axes in another order, or None."""
    begin, end, steps = attrs["begin"], attrs["end"], _steps(attrs)
    if attrs["axes"] is not None:
        axes = [normalize_axis(axis, len(layout)) for axis in attrs["axes"]]
        places = tuple(target.index_of(layout[axis]) for axis in axes)
        return None if -1 in places else changed(attrs, axes=places, strides=tuple(steps))
    whole: list[tuple[int, int, int]] = []
    for letter in target:
        place = layout.index_of(letter)
        if place < 0:
            return None
        length = data.shape[place]
        first = begin[place] if place < len(begin) else 0
        last = end[place] if place < len(end) else length
        step = steps[place] if place < len(steps) else 1
        if type(last) is not int or (step < 0 and place >= min(len(begin), len(end))):
            return None
        whole.append((first, last, step))
    begins, ends, strides = zip(*whole, strict=True)
    return changed(attrs, begin=begins, end=ends, strides=strides)


def _in_blocks(
    attrs: Attrs, layout: TensorLayout, target: TensorLayout, data: TensorType
) -> Attrs | None:
    """Return the attributes for axes in blocks, which follow the old ones; None if none fit."""
    begins, ends, steps = list(attrs["begin"]), list(attrs["end"]), _steps(attrs)
    if len(begins) != len(ends):
        return None
    axes = attrs["axes"]
    over = range(len(begins)) if axes is None else [normalize_axis(a, len(layout)) for a in axes]
    for index, axis in enumerate(over):
        factor = target.factor_of(layout[axis])
        if factor < 0:
            continue
        first, last, length = begins[index], ends[index], data.shape[axis]
        if attrs["slice_mode"] == "size":
            if type(length) is not int and last < 0:
                return None
            last = length if last < 0 else first + last
        if steps[index] != 1 or first % factor or last % factor:
            return None
        begins[index] = first // factor
        ends[index] = last // factor
        if attrs["slice_mode"] == "size":
            ends[index] -= begins[index]
    values = {"begin": tuple(begins), "end": tuple(ends)}
    if axes is not None:
        values["axes"] = tuple(target.index_of(layout[axis]) for axis in over)
    return changed(attrs, **values)
