"""Literals of operators that may hold lengths of an input, and what they are at other lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product as cartesian
from typing import Final

from serde.core import dataclass, field
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim, SymDim, product, substitute, symbol
from serde.relay.ir.expr import Attrs, Expr
from serde.relay.op.index.slicing import FAR
from serde.relay.op.shape.reshape import new_shape

__all__ = ["FOLLOWING", "REFUSING", "Place", "Reader", "Rule"]

_MOST_TRIES: Final = 60
"""How many ways of splitting an axis are tried."""

Place = tuple[Expr, str, int]
"""A node, its attribute and the index in that where a literal stands."""


@dataclass(slots=True)
class Reader:
    """What literals stand for: lengths that other tensors have, or multiples of them.

    Attributes:
        lengths: The length in the source by symbol.
        usual: Which of several readings is taken.
        chosen: Which is taken at some places instead.
        several: What the literals may stand for that have several readings.
        known: Lengths of tensors that are no longer those of the source, with those, by rank and
            axis.
        windows: Poolings of what is longer than their windows.
        node: The node that is looked at.
    """

    lengths: Mapping[str, int]
    usual: int = 0
    chosen: Mapping[Place, int] = field(default_factory=dict)
    several: dict[Place, list[Dim]] = field(default_factory=dict)
    known: dict[tuple[int, int], dict[SymDim, int]] = field(default_factory=dict)
    windows: set[tuple[object, ...]] = field(default_factory=set)
    node: Expr | None = None

    def note(self, shape: Sequence[Dim]) -> None:
        """Note the lengths of a tensor."""
        for axis, dim in enumerate(shape):
            if isinstance(dim, SymDim) and (length := self.source_length(dim)) > 1:
                self.known.setdefault((len(shape), axis), {}).setdefault(dim, length)

    def source_length(self, dim: Dim) -> int:
        """Return the length that the source has where a tensor has another; else 0."""
        length = substitute(dim, self.lengths) if isinstance(dim, SymDim) else 0
        return length if isinstance(length, int) else 0

    def is_longer(self, dim: Dim) -> bool:
        """Whether a length comes of lengths above one entry alone."""
        symbols = dim.symbols() if isinstance(dim, SymDim) else set()
        return self.source_length(dim) > 1 and all(self.lengths.get(n) != 1 for n in symbols)

    def source_lengths(self, shape: Sequence[Dim]) -> dict[int, int]:
        """Return what axes have in the source that have another length now, but for one entry."""
        found = {axis: self.source_length(dim) for axis, dim in enumerate(shape)}
        return {axis: length for axis, length in found.items() if length > 1}

    def alike(self, length: Dim, rank: int, axis: int, dim: Dim = 0) -> list[Dim]:
        """Return what has a length in the source, and bears on the symbols of `dim`, if any."""
        wanted = dim.symbols() if isinstance(dim, SymDim) else None
        found = self.known.get((rank, axis), {}).items()
        return [e for e, n in found if n == length and (not wanted or wanted & e.symbols())]

    def choose(self, name: str, index: int, readings: Sequence[Dim]) -> Dim:
        """Return one of the readings of a literal, of which the likeliest come first."""
        options = list(dict.fromkeys(readings))
        if len(options) == 1 or self.node is None:
            return options[0]
        place = self.node, name, index
        self.several[place] = options
        return options[min(self.chosen.get(place, self.usual), len(options) - 1)]


Rule = Callable[[Attrs, Sequence[Dim], Reader], Mapping[str, object]]
"""What returns the attributes that change, by those there are and the shape of the operand."""


def _opened(shape: Sequence[Dim], lengths: Mapping[str, int]) -> Iterator[tuple[int, str, Dim]]:
    """Yield the axes that are a multiple of an opened length, its symbol and the multiple."""
    for axis, dim in enumerate(shape):
        for name in sorted(dim.symbols() & lengths.keys()) if isinstance(dim, SymDim) else ():
            times = dim // symbol(name)
            if times * symbol(name) == dim:
                yield axis, name, substitute(times, lengths)


def _reshape(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """Opened axes of the operand go to the literals that stand where they end up, row by row."""
    lengths = reader.lengths
    before = tuple(substitute(dim, lengths) for dim in shape)
    allowzero = attrs["allowzero"]
    codes = list(attrs["newshape"])
    if any(isinstance(code, int) and code < -1 for code in codes):
        codes = list(new_shape(shape, codes, allowzero))
    after = new_shape(before, [substitute(code, lengths) for code in codes], allowzero)
    merged, done = _merged(shape, before, after, codes, reader)
    new = list(codes)
    for axis, name, times in _opened(shape, lengths):
        rows = product(before[:axis])
        found = _holders(new, after, lengths[name], (rows, rows * times), allowzero)
        if not found or axis in done:
            continue
        place = axis if axis in found else found[0]
        behind = len(shape) - axis - (1 if times == 1 else 0)
        if place and new[place] != lengths[name] and len(after) - place <= behind:
            place -= 1  # What follows the axis is not split: it joins what comes before.
        new[place] = new[place] // lengths[name] * symbol(name)
    for place, dim in merged.items():
        new[place] = new[place] // after[place] * dim
    return {} if new == codes else {"newshape": tuple(new)}


def _merged(
    shape: Sequence[Dim],
    before: Sequence[Dim],
    after: Sequence[Dim],
    codes: Sequence[Dim],
    reader: Reader,
) -> tuple[dict[int, Dim], set[int]]:
    """Return the literals of axes that are joined, or only moved, and the axes that are done.

    Opened axes of more than one entry are looked at, among those axes that become others. What
    lies before and behind them may be split.
    """
    found: dict[int, Dim] = {}
    done: set[int] = set()
    for axes, places in _groups(before, after):
        opened = [axis for axis in axes if reader.is_longer(shape[axis])]
        if not opened:
            continue
        first, last = axes.index(opened[0]), axes.index(opened[-1]) + 1
        lead = product(before[axis] for axis in axes[:first])
        trail = product(before[axis] for axis in axes[last:])
        for index, place in enumerate(places):
            head = product(after[each] for each in places[:index])
            tail = product(after[each] for each in places[index + 1 :])
            if lead // head * head == lead and trail // tail * tail == trail:
                whole = product(shape[axis] for axis in axes[first:last])
                if isinstance(code := codes[place], int) and code > 0:
                    found[place] = lead // head * whole * (trail // tail)
                done.update(opened)
                break
        else:
            alike = [[*reader.alike(after[at], len(after), at), after[at]] for at in places]
            whole = product(shape[axis] for axis in axes)
            exact = (dims for dims in islice(cartesian(*alike), _MOST_TRIES))
            split = next((dims for dims in exact if product(dims) == whole), None)
            if split is not None:
                pairs = zip(places, split, strict=True)
                found |= {at: dim for at, dim in pairs if isinstance(codes[at], int) and codes[at]}
                done.update(opened)
            elif any(codes[place] == -1 for place in places):
                raise TypeInferenceError(
                    f"reshape: -1 in {list(codes)} takes what another number there may stand for"
                )
    return found, done


def _groups(
    before: Sequence[Dim], after: Sequence[Dim]
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield the axes, and those that they become, which together have as many elements."""
    left = [axis for axis, dim in enumerate(before) if dim != 1]
    right = [axis for axis, dim in enumerate(after) if dim != 1]
    if 0 in before or not all(isinstance(dim, int) for dim in (*before, *after)):
        return
    while left and right:
        i = j = 1
        while (a := product(before[x] for x in left[:i])) != (
            b := product(after[x] for x in right[:j])
        ):
            if a < b and i < len(left):  # type: ignore[operator]
                i += 1
            elif j < len(right):
                j += 1
            else:
                return
        yield left[:i], right[:j]
        left, right = left[i:], right[j:]


def _holders(
    codes: Sequence[Dim], after: Sequence[Dim], length: int, rows: Sequence[Dim], allowzero: bool
) -> list[int] | None:
    """Return which literals may hold an opened axis, the best first; None if -1 follows it.

    Args:
        codes: The codes of the reshape.
        after: What they make in the source.
        length: The opened length.
        rows: How many rows come before the axis, and how many before what it is made of.
        allowzero: Whether 0 is a length.
    """
    fitting: list[int] = []
    exact: list[int] = []
    free = False
    count: Dim = 1
    for index, (code, dim) in enumerate(zip(codes, after, strict=True)):
        is_literal = isinstance(code, int) and (code > 0 or (code == 0 and allowzero))
        free = free or not is_literal
        if count in rows:
            if not is_literal and dim == length and not exact:
                return None
            if is_literal and code == length:
                exact.append(index)
            elif isinstance(code, int) and not free and count == rows[0] and code % length == 0:
                fitting.append(index)
        count = count * dim
    return exact or (fitting if -1 not in codes else [])


def _broadcast(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """Opened axes stay as long as they are; single entries may be repeated as often as others."""
    new = list(attrs["shape"])
    for axis, _, _ in _opened(shape, reader.lengths):
        place = len(new) - len(shape) + axis
        if isinstance(new[place], int) and new[place] == substitute(shape[axis], reader.lengths):
            new[place] = shape[axis]
    for place, length in enumerate(new):
        axis = place - len(new) + len(shape)
        if isinstance(length, int) and length > 1 and (axis < 0 or shape[axis] == 1):
            alike = reader.alike(length, len(new), place)
            new[place] = reader.choose("shape", place, [*alike, length])
        elif axis >= 0 and reader.source_length(shape[axis]) == length:
            new[place] = shape[axis]
    return {} if tuple(new) == tuple(attrs["shape"]) else {"shape": tuple(new)}


def _resize(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """A size is that of another tensor, or a multiple of the operand's."""
    layout, axes = attrs.get("layout", ""), attrs.get("axes", ())
    axes = [axis for axis, letter in enumerate(layout) if letter in "DHW"] or axes
    new = list(attrs["size"] or ())
    for index, (axis, size) in enumerate(zip(axes or range(len(shape)), new, strict=False)):
        dim = shape[axis]
        length = reader.source_length(dim)
        if not isinstance(size, int) or (length < 1 and dim != 1):
            continue
        readings = reader.alike(size, len(shape), axis, dim)
        if size == length:
            readings.insert(0, dim)
        elif length > 1 and size % length == 0:
            readings.append(dim * (size // length))
        elif length > 1 and length % size == 0 and size > 1:
            readings.append(dim // (length // size))
        new[index] = reader.choose("size", index, [*readings, size])
    return {} if tuple(new) == tuple(attrs["size"] or ()) else {"size": tuple(new)}


def _slice(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """What is the whole of an opened axis in the source is all of it; an end may be one, too."""
    strides = attrs["strides"] or ()
    over = [axis % len(shape) for axis in attrs["axes"] or range(len(attrs["end"] or ()))]
    begin, end = list(attrs["begin"] or ()), list(attrs["end"] or ())
    by_size = attrs["slice_mode"] == "size"
    for index, axis in enumerate(over):
        stride = strides[index] if index < len(strides) and not by_size else 1
        length = reader.source_length(shape[axis])
        if length < 1 or stride < 0 or (length == 1 and (begin[index] or stride != 1)):
            continue
        stop = begin[index] + end[index] if by_size and end[index] >= 0 else end[index]
        if length > 1 and not by_size:
            begin[index] = _end_of(begin[index], "begin", index, shape, axis, reader)
        if length <= stop < FAR:
            end[index] = -1 if by_size else FAR
        elif length > 1 and by_size and stop > 0:
            _end_of(stop, "end", index, shape, axis, reader)
        elif length > 1:
            end[index] = _end_of(stop, "end", index, shape, axis, reader)
    old = {"begin": tuple(attrs["begin"] or ()), "end": tuple(attrs["end"] or ())}
    new = {"begin": tuple(begin), "end": tuple(end)}
    return {name: value for name, value in new.items() if value != old[name]}


def _end_of(
    bound: int, name: str, index: int, shape: Sequence[Dim], axis: int, reader: Reader
) -> int:
    """Return a bound inside of an axis: as it stands, or counted from the end.

    Raises:
        TypeInferenceError: It may be a length that is no such number.
    """
    dim, length = shape[axis], reader.source_length(shape[axis])
    if not 0 < bound < length:
        return bound
    alike = [each for each in reader.alike(bound, len(shape), axis, dim) if bound > 1]
    if 2 * bound == length or any(each - dim != bound - length for each in alike):
        raise TypeInferenceError(f"{name} {bound} may be a part of a length of {length}")
    if not alike and length - bound >= bound:
        return bound
    chosen = reader.choose(name, index, [bound - length, bound])
    return chosen if isinstance(chosen, int) else bound


def _split(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """Equal parts stay equal."""
    cuts, axis = attrs["indices_or_sections"], attrs["axis"]
    length = reader.source_length(shape[axis])
    if length < 2 or isinstance(cuts, int):
        return {}
    count = len(cuts) + 1
    if list(cuts) != [length * (part + 1) // count for part in range(len(cuts))] or length % count:
        raise TypeInferenceError(f"parts of an axis of {length} that end at {list(cuts)}")
    return {"indices_or_sections": count}


# What cannot follow.


def _refuse_window(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """A window as long as what it is of may be meant as all of it."""
    axes = [axis for axis, letter in enumerate(attrs["layout"]) if letter in "DHW"]
    sizes = attrs["pool_size"]
    kind = (reader.node and getattr(reader.node, "op", None), sizes, attrs["strides"])
    pairs = [(reader.source_length(shape[a]), n) for a, n in zip(axes, sizes, strict=False)]
    if any(length > size for length, size in pairs):
        reader.windows.add(kind)
    elif any(length == size > 1 for length, size in pairs) and kind not in reader.windows:
        raise TypeInferenceError(
            f"a window of {list(sizes)} is all of the map in the source, and may be meant so"
        )
    return {}


def _refuse_all(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """The first of as many elements as there are may be meant as all of them."""
    if attrs["k"] is not None and attrs["k"] == reader.source_length(shape[attrs["axis"]]) > 1:
        raise TypeInferenceError(f"the first {attrs['k']} are all in the source")
    return {}


def _refuse_repeated(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """A single entry that is repeated as often as others are long."""
    reps = attrs["reps"]
    for axis, (dim, count) in enumerate(zip(shape[-len(reps) :], reps, strict=False)):
        if dim == 1 and count > 1 and reader.alike(count, len(shape), axis):
            raise TypeInferenceError(f"{count} repetitions may be a length")
    return {}


def _refuse_depth(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> Mapping[str, object]:
    """A new axis that is as long as one of which the length is another now."""
    if any(attrs["depth"] in each.values() for each in reader.known.values()):
        raise TypeInferenceError(f"a depth of {attrs['depth']} may be a length")
    return {}


FOLLOWING: Final[Mapping[str, Rule]] = {
    "broadcast_to": _broadcast,
    "reshape": _reshape,
    "serde.resize": _resize,
    "split": _split,
    "strided_slice": _slice,
    **{f"image.resize{rank}d": _resize for rank in (1, 2, 3)},
}
"""By operator what returns the literals that follow."""

REFUSING: Final[Mapping[str, Rule]] = {
    "one_hot": _refuse_depth,
    "serde.one_hot": _refuse_depth,
    "tile": _refuse_repeated,
    "topk": _refuse_all,
    **{f"nn.{kind}_pool{rank}d": _refuse_window for kind in ("avg", "max") for rank in (1, 2, 3)},
}
"""By operator what refuses literals that may be lengths, and cannot follow."""
