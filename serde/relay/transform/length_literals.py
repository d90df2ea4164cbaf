"""Literals of operators that may hold lengths of an input, and what they are at other lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice, pairwise, product as cartesian
from typing import Any as AnyValue, Final

from serde.core import dataclass, field
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Any, Dim, SymDim, product, substitute, symbol
from serde.relay.ir.expr import Attrs, Call, Constant, Expr
from serde.relay.op.index.slicing import FAR
from serde.relay.op.shape.reshape import new_shape

__all__ = ["LITERALS", "Place", "Reader"]

_MOST_TRIES: Final = 5000
"""How many ways of splitting an axis are tried."""

_MOST_DOWN: Final = 3
"""Means over parts of up to so many elements a side make images smaller."""

Place = tuple[Expr, str, int]
"""A node, its attribute and the index in that where a literal stands."""


@dataclass(slots=True)
class Reader:
    """What literals stand for: lengths that other tensors have, or multiples of them.

    Attributes:
        lengths: The length in the source by symbol.
        usual: Which of several readings is taken.
        chosen: Which is taken at some places instead.
        several: The readings of literals that have several.
        known: Lengths that are no longer those of the source, with those, by rank and axis, and
            all of them under None.
        ordered: Two of them that stand one behind the other in a shape.
        inner: Multiples of the entries of a batch in which the entries come behind the multiple.
        node: The node that is looked at.
    """

    lengths: Mapping[str, int]
    usual: int = 0
    chosen: Mapping[Place, int] = field(default_factory=dict)
    several: dict[Place, list[Dim]] = field(default_factory=dict)
    known: dict[tuple[int, int] | None, dict[Dim, int]] = field(default_factory=dict)
    ordered: set[tuple[Dim, Dim]] = field(default_factory=set)
    inner: set[Dim] = field(default_factory=set)
    node: Expr = field(default_factory=Expr)

    def source_length(self, dim: Dim) -> int:
        """Return the length that the source has where a tensor has another; else 0."""
        length = substitute(dim, self.lengths) if isinstance(dim, SymDim) else 0
        return length if isinstance(length, int) else 0

    def longer(self, shape: Sequence[Dim]) -> dict[int, int]:
        """Return what axes have in the source that have another length now, but for one entry."""
        found = {axis: self.source_length(dim) for axis, dim in enumerate(shape)}
        return {axis: length for axis, length in found.items() if length > 1}

    def note(self, shape: Sequence[Dim]) -> None:
        """Note the lengths of a tensor."""
        for axis, length in self.longer(shape).items():
            self.known.setdefault((len(shape), axis), {}).setdefault(shape[axis], length)
            self.known.setdefault(None, {}).setdefault(shape[axis], length)
        self.ordered.update(pairwise(shape[axis] for axis in self.longer(shape)))

    def alike(self, length: Dim, rank: int, axis: int, new: Sequence[Dim] = ()) -> list[Dim]:
        """Return what has a length in the source, those first that `new` does not have."""
        found = [e for e, n in self.known.get((rank, axis), {}).items() if n == length]
        return sorted(found, key=new.__contains__)

    def choose(self, name: str, index: int, readings: Sequence[Dim]) -> Dim:
        """Return one of the readings of a literal, of which the likeliest come first."""
        options = list(dict.fromkeys(readings))
        place = self.node, name, index
        if len(options) > 1:
            self.several[place] = options
        return options[min(self.chosen.get(place, self.usual), len(options) - 1)]


Rule = Callable[[Attrs, Sequence[Dim], Reader], dict[str, AnyValue]]
"""What returns the attributes that change, by those there are and the shape of the operand."""


def _symbols(dim: Dim) -> set[str]:
    return dim.symbols() if isinstance(dim, SymDim) else set()


def _reshape(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """Opened axes of the operand go to the literals that stand where they end up, row by row."""
    before = [substitute(dim, reader.lengths) for dim in shape]
    codes, allowzero = list(attrs["newshape"]), attrs["allowzero"]
    if any(isinstance(code, int) and code < -1 for code in codes):
        codes = list(new_shape(shape, codes, allowzero))
    after = new_shape(before, [substitute(code, reader.lengths) for code in codes], allowzero)
    whole, opened = (
        product(shape),
        [at for at, dim in enumerate(shape) if reader.source_length(dim)],
    )
    if not opened or isinstance(whole, Any) or 0 in after:
        return {}
    found = _splits(shape, after, codes, opened, reader)
    best = max((rank for rank, _ in found), default=None)
    fitting = [new for rank, new in found if rank == best]
    is_longer = any(reader.lengths.get(name, 1) > 1 for name in _symbols(whole))
    if is_longer and (any(new != fitting[0] for new in fitting) or (not found and -1 in codes)):
        raise TypeInferenceError(f"reshape: several numbers in {list(codes)} may follow")
    for _, name, rows in _entries(shape, reader):
        for at, dim in enumerate(fitting[0] if fitting else ()):
            if name in _symbols(dim) and product(fitting[0][:at]) != rows:
                reader.inner.add(dim)
    new = [
        c if c in (0, -1) else dim for c, dim in zip(codes, (fitting or [codes])[0], strict=True)
    ]
    return {} if new == codes else {"newshape": tuple(new)}


def _splits(
    shape: Sequence[Dim], after: Sequence[Dim], codes: Sequence[Dim], opened: Sequence[int],
    reader: Reader,
) -> list[tuple[tuple[int, ...], list[Dim]]]:  # fmt: skip
    """Return shapes that are those of the source there, with how well the opened axes keep places.

    First comes that what comes before an axis has as many elements as in the operand, then that
    axes of one entry stay such, then that lengths follow each other as in other tensors.
    """
    whole, every = product(shape), reader.known.get(None, {})
    ends = combinations(range(len(opened) + 1), 2)
    runs = [product(shape[axis] for axis in opened[i:j]) for i, j in ends]
    runs += [symbol(name) for name in sorted(_symbols(whole)) if reader.lengths.get(name) == 1]
    options: list[Sequence[Dim]] = []
    for at, (code, length) in enumerate(zip(codes, after, strict=True)):
        parts = [(run, length // n) for run in runs if (n := reader.source_length(run))]
        multiples = [run * n for run, n in parts if substitute(run * n, reader.lengths) == length]
        alike = [e for e, n in every.items() if n == length and _symbols(e) <= _symbols(whole)]
        held = list(dict.fromkeys([length, *alike, *multiples]))
        options.append([1] if code == -1 else [shape[at % len(shape)]] if code == 0 else held)
    # Most choices are told to be none by other lengths, faster than by symbols.
    probe: dict[str, Dim] = {name: 1_000_003 + 30 * at for at, name in enumerate(reader.lengths)}
    count, found = substitute(whole, probe), []
    numbers = ([(dim, substitute(dim, probe)) for dim in each] for each in options)
    for pairs in islice(cartesian(*numbers), _MOST_TRIES):
        held_at = product(length for _, length in pairs)
        if held_at != 0 and count // held_at * held_at == count:
            rest = whole // product(dim for dim, _ in pairs)
            new = [rest if code == -1 else dim for code, (dim, _) in zip(codes, pairs, strict=True)]
            if product(new) == whole:
                found.append((_rank(shape, new, reader), new))
    return found


def _entries(shape: Sequence[Dim], reader: Reader) -> Iterator[tuple[int, str, Dim]]:
    """Yield where entries of a batch are, their symbol, and how many elements come before them."""
    for axis, dim in enumerate(shape):
        for name in sorted(_symbols(dim)):
            if reader.lengths.get(name) == 1:
                inner = dim // symbol(name) if dim in reader.inner else 1
                yield axis, name, product(shape[:axis]) * inner


def _rank(shape: Sequence[Dim], new: Sequence[Dim], reader: Reader) -> tuple[int, ...]:
    """Return how well the opened axes of a shape keep their places in another."""
    befores = [product(shape[:axis]) for axis in range(len(shape))]
    single = [at for at, dim in enumerate(new) if reader.source_length(dim) == 1]
    same = kept = 0
    for axis, name, rows in _entries(shape, reader):
        befores += [rows, rows * symbol(name)]
        for at in (at for at, other in enumerate(new) if name in _symbols(other)):
            before = product(new[:at])
            same += rows in (before, before * (new[at] // symbol(name)))
            kept += at == axis if at in single else len(new) - at == len(shape) - axis
    aligned = sum(product(new[:at]) in befores for at in range(len(new)))
    ordered = {*pairwise(dim for dim in new if reader.source_length(dim) > 1)}
    return aligned, len(single), len(ordered & reader.ordered), same, kept


def _broadcast(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """Opened axes stay as long as they are; single entries may be repeated as often as others."""
    new = list(attrs["shape"])
    for place, length in enumerate(new):
        dim = (*[1] * (len(new) - len(shape)), *shape)[place]
        if isinstance(length, int) and reader.source_length(dim) == length:
            new[place] = dim
        elif isinstance(length, int) and length > 1 and dim == 1:
            alike = reader.alike(length, len(new), place, new)
            new[place] = reader.choose("shape", place, [*alike, length])
    return {} if tuple(new) == tuple(attrs["shape"]) else {"shape": tuple(new)}


def _resize(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """A size is that of another tensor, or a multiple of the operand's."""
    layout, axes = attrs.get("layout", ""), attrs.get("axes", ())
    axes = [axis for axis, letter in enumerate(layout) if letter in "DHW"] or axes
    new = list(attrs["size"] or ())
    for index, (axis, size) in enumerate(zip(axes or range(len(shape)), new, strict=False)):
        dim, name = shape[axis], "size"
        length = reader.source_length(dim)
        if not isinstance(size, int) or (length < 1 and dim != 1):
            continue
        readings = reader.alike(size, len(shape), axis, new)
        readings = [e for e in readings if dim == 1 or _symbols(dim) & _symbols(e)]
        if size == length:
            readings.insert(0, dim)
        elif length > 1 and size % length == 0:
            readings.append(dim * (size // length))
        elif length > 1 and not readings and length % size == 0 and size > 1:
            readings, name = [dim // (length // size)], "lesser size"
        new[index] = reader.choose(name, index, [*readings, size])
    return {} if tuple(new) == tuple(attrs["size"] or ()) else {"size": tuple(new)}


def _slice(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """What is the whole of an opened axis in the source is all of it; an end may be one, too."""
    strides, by_size = attrs["strides"] or (), attrs["slice_mode"] == "size"
    over = [axis % len(shape) for axis in attrs["axes"] or range(len(attrs["end"] or ()))]
    begin, end = list(attrs["begin"] or ()), list(attrs["end"] or ())
    for index, axis in enumerate(over):
        stride = strides[index] if index < len(strides) and not by_size else 1
        length = reader.source_length(shape[axis])
        if length < 1 or stride < 0 or (length == 1 and (begin[index] or stride != 1)):
            continue
        stop = begin[index] + end[index] if by_size and end[index] >= 0 else end[index]
        found = _bound(stop, "end", index, shape, axis, reader)
        if length <= stop < FAR:
            found = FAR
        if not by_size:
            begin[index] = _bound(begin[index], "begin", index, shape, axis, reader)
            end[index] = found
        elif found == FAR:
            end[index] = -1
    new = {"begin": tuple(begin), "end": tuple(end)}
    return {name: value for name, value in new.items() if value != tuple(attrs[name] or ())}


def _bound(
    bound: int, name: str, index: int, shape: Sequence[Dim], axis: int, reader: Reader
) -> int:
    """Return a bound inside of an axis: as it stands, or counted from the end."""
    dim, length = shape[axis], reader.source_length(shape[axis])
    alike = reader.alike(bound, len(shape), axis) if bound > 1 else []
    if not 0 < bound < length or (not alike and length - bound > bound):
        return bound
    if 2 * bound == length or any(each - dim != bound - length for each in alike):
        raise TypeInferenceError(f"{name} {bound} may be a part of a length of {length}")
    chosen = reader.choose(name, index, [bound - length, bound])
    return chosen if isinstance(chosen, int) else bound


def _split(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """Equal parts stay equal."""
    cuts, length = attrs["indices_or_sections"], reader.source_length(shape[attrs["axis"]])
    if length < 2 or isinstance(cuts, int):
        return {}
    count = len(cuts) + 1
    if [cut * count for cut in cuts] != [length * part for part in range(1, count)]:
        raise TypeInferenceError(f"parts of an axis of {length} that end at {list(cuts)}")
    return {"indices_or_sections": count}


def _refuse_window(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """A window over all of a map, or a mean over equal parts of it, may be meant as such."""
    sizes, strides, is_mean = attrs["pool_size"], attrs["strides"], "count_include_pad" in attrs
    axes = [axis for axis, letter in enumerate(attrs["layout"]) if letter in "DHW"]
    for axis, size, stride in zip(axes, sizes, strides, strict=False):
        length = reader.source_length(shape[axis])
        is_part = is_mean and stride == size > _MOST_DOWN and length % size == 0
        if length > 0 and (is_part or length == size > (1 if is_mean else _MOST_DOWN)):
            raise TypeInferenceError(f"windows of {list(sizes)} may be meant as parts of {length}")
    return {}


def _refuse_equal(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """A number that is a length in the source may be one, or not."""
    given = next(attrs[name] for name in ("depth", "k", "reps") if name in attrs)
    numbers = {*(given if isinstance(given, tuple) else (given,))}
    if any(not numbers.isdisjoint(each.values()) for each in reader.known.values()):
        raise TypeInferenceError(f"{given} may hold a length")
    return {}


def _refuse_last(attrs: Attrs, shape: Sequence[Dim], reader: Reader) -> dict[str, AnyValue]:
    """The index of the last may be meant as such."""
    indices = reader.node.args[1] if isinstance(reader.node, Call) else reader.node
    length = 0 if attrs["axis"] is None else reader.source_length(shape[attrs["axis"]])
    if length > 1 and isinstance(indices, Constant) and (indices.data == length - 1).any():
        raise TypeInferenceError(f"index {length - 1} is that of the last in the source")
    return {}


LITERALS: Final[Mapping[str, Rule]] = {
    "broadcast_to": _broadcast,
    "reshape": _reshape,
    "serde.resize": _resize,
    "split": _split,
    "strided_slice": _slice,
    **{f"image.resize{rank}d": _resize for rank in (1, 2, 3)},
    **{f"nn.{kind}_pool{rank}d": _refuse_window for kind in ("avg", "max") for rank in (1, 2, 3)},
    **dict.fromkeys(("serde.take", "take"), _refuse_last),
    **dict.fromkeys(("one_hot", "serde.one_hot", "tile", "topk"), _refuse_equal),
}
"""By operator what its literals become, or refuses those that may be lengths."""
