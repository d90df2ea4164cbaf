"""Lengths of dynamic dimensions at which models are checked.

A dimension is called by its symbol, one without a name by its input and axis,
as ``data[2]``. Where the model declares lengths (facts ``<symbol>.range`` and
``<input>.shapes``, as :mod:`serde.coreml` gives them), the check is made at
all corners of what it declares. Elsewhere a usual length is taken, and where
the source does not run at that, others are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from numbers import Integral

from serde.bridge.ranges import declared_ranges, integers_of, lengths_of
from serde.errors import CheckError, OptionError, RelayError
from serde.relay.ir import Any, RelayModel, SymDim, TensorType, rewrite, set_type, substitute
from serde.relay.ir.expr import Attrs, Call, Expr, Op, Var
from serde.relay.transform.input_types import resolve_attribute

__all__ = [
    "declared_sizes", "further_sizes", "input_type", "lengths_of_shape", "opened_sizes",
    "resolve_dims", "shape_at", "size_text",
]  # fmt: skip

BATCH_LENGTH = 2
"""Length of a dynamic first axis: the least at which mixed-up batch entries show."""

OTHER_LENGTH = 64
"""Length of other dynamic axes: enough for the windows and strides of usual nets."""

_BATCH_LENGTHS = (BATCH_LENGTH, 1)
_OTHER_LENGTHS = (OTHER_LENGTH, 224, 128, 256, 32, 299, 512, 227, 320, 384, 416, 448, 640, 16, 8, 1)
"""Lengths that are tried in turn: those for which nets are made, small ones before large ones."""

_MOST_CORNERS = 3
"""Up to how many ranges all their corners are taken; of more, the least and greatest lengths."""

_MOST_ELEMENTS = 2**26
"""How many elements an input may have at a declared size that is checked."""

Sizes = dict[str, int]


def input_type(variable: Var) -> TensorType:
    """Return the type of an input.

    Raises:
        CheckError: It is no tensor.
    """
    if isinstance(variable.type, TensorType):
        return variable.type
    raise CheckError(f"input {variable.name_hint}: expected a tensor, found {variable.type!r}")


def shape_at(variable: Var, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an input for lengths of its dynamic dimensions."""
    found = []
    for axis, dim in enumerate(input_type(variable).shape):
        known = substitute(dim, lengths)
        usual = lengths.get(_dimension_name(variable, axis), _default_length(axis))
        found.append(known if isinstance(known, int) else usual)
    return tuple(found)


def _dimension_name(variable: Var, axis: int) -> str:
    return f"{variable.name_hint}[{axis}]"


def _default_length(axis: int) -> int:
    return BATCH_LENGTH if axis == 0 else OTHER_LENGTH


def _axes(model: RelayModel) -> dict[str, int]:
    """Return, by name, the first axis at which each dynamic dimension stands."""
    found: dict[str, int] = {}
    for variable in model.inputs():
        for axis, dim in enumerate(input_type(variable).shape):
            if isinstance(dim, Any):
                found.setdefault(_dimension_name(variable, axis), axis)
            for name in sorted(dim.symbols()) if isinstance(dim, SymDim) else ():
                found.setdefault(name, axis)
    return found


def resolve_dims(model: RelayModel, dims: Mapping[str, int] | None = None) -> Sizes:
    """Return a length for every dynamic dimension in the shapes of the inputs.

    One that is not given is twice what the source has, if it was opened; else it is 2 where it is
    the first axis of an input and 64 elsewhere.

    Raises:
        OptionError: `dims` names no dimension of the model, or a length is below 1.
    """
    given = dict(dims or {})
    usual = {name: _default_length(axis) for name, axis in _axes(model).items()}
    usual |= {name: length for name, length in opened_sizes(model, 2).items() if name in usual}
    lengths = {name: given.get(name, length) for name, length in usual.items()}
    unknown = sorted(set(given) - set(lengths))
    if unknown:
        known = ", ".join(lengths) or "none"
        raise OptionError(f"no dynamic dimension is called {unknown[0]} (there are: {known})")
    for name, length in lengths.items():
        if not isinstance(length, Integral) or length < 1:
            raise OptionError(f"dynamic dimension {name}: expected 1 or more, found {length!r}")
    return lengths


def opened_sizes(model: RelayModel, times: int) -> Sizes:
    """Return the lengths that were opened, each so many times as long as in the source."""
    opened = model.meta.opened
    return {} if opened is None else {name: times * n for name, n in opened.lengths.items()}


def size_text(lengths: Mapping[str, int]) -> str:
    """Return lengths as ``N=2, H=224``."""
    return ", ".join(f"{name}={length}" for name, length in lengths.items())


def declared_sizes(model: RelayModel, dims: Mapping[str, int] | None = None) -> list[Sizes]:
    """Return the sizes that the model declares: the default first, then corners, each once.

    There are none where it declares nothing. Dimensions that it says nothing of have their
    usual length, and those that are given have that.

    Raises:
        OptionError: As :func:`resolve_dims`.
    """
    given = dict(dims or {})
    usual = resolve_dims(model, given)
    listed = _enumerated_sizes(model)
    declared = declared_ranges(model.meta.extra)
    ranges = {
        name: (declared[name][2], declared[name][0], declared[name][1] or declared[name][2])
        for name in usual
        if name not in given and name in declared and declared[name][2]
    }
    if not listed and not ranges:
        return []
    found: dict[tuple[int, ...], Sizes] = {}
    for shape in listed or [{}]:
        free = {name: ends for name, ends in ranges.items() if name not in shape}
        for corner in _corners(free):
            lengths = {**usual, **corner, **shape, **given}
            found.setdefault(tuple(lengths.values()), lengths)
    return [sizes for sizes in found.values() if _is_small_enough(model, sizes)]


def _is_small_enough(model: RelayModel, lengths: Mapping[str, int]) -> bool:
    for variable in model.inputs():
        count = 1
        for length in shape_at(variable, lengths):
            count *= length
        if count > _MOST_ELEMENTS:
            return False
    return True


def _enumerated_sizes(model: RelayModel) -> list[Sizes]:
    """Return the lengths that each of the enumerated shapes gives, those of several inputs paired.

    Shapes that do not fit the input, or contradict each other, are left out.
    """
    columns: list[list[Sizes]] = []
    for variable in model.inputs():
        text = model.meta.extra.get(f"{variable.name_hint}.shapes")
        if text is None:
            continue
        shapes = [integers_of(each, ",") for each in text.split(";")]
        lengths = [lengths_of_shape(variable, shape) for shape in shapes if shape]
        columns.append([each for each in lengths if each is not None])
    found = []
    for index in range(max(map(len, columns), default=0)):
        row: Sizes = {}
        sides = [column[min(index, len(column) - 1)] for column in columns if column]
        agree = all(row.setdefault(n, length) == length for s in sides for n, length in s.items())
        if agree and row:
            found.append(row)
    return found


def lengths_of_shape(variable: Var, shape: Sequence[int]) -> Sizes | None:
    """Return the lengths that a shape gives the dimensions of an input; None if it does not fit."""
    return lengths_of(variable.name_hint, input_type(variable), shape)


def _corners(ranges: Mapping[str, tuple[int, int, int]]) -> Iterator[Sizes]:
    """Yield the default, then the corners of ranges."""
    names = list(ranges)
    yield {name: ranges[name][0] for name in names}
    ends = [ranges[name][1:] for name in names]
    mixed: Iterator[tuple[int, ...]] = product(*ends) if len(names) <= _MOST_CORNERS else iter(())
    for corner in chain(zip(*ends, strict=True), mixed):
        yield dict(zip(names, corner, strict=True))


def further_sizes(
    model: RelayModel, usual: Mapping[str, int], given: Mapping[str, int]
) -> Iterator[Sizes]:
    """Yield other lengths to try than the usual ones, those first at which the types agree.

    Args:
        model: The model.
        usual: Lengths at which it does not run.
        given: Lengths that are not to change.
    """
    axes = _axes(model)
    tried = {tuple(usual.values())}
    doubtful = []
    own = {**usual, **opened_sizes(model, 1), **given}
    if own != dict(usual):
        tried.add(tuple(own.values()))
        yield own
    for other, batch in product(_OTHER_LENGTHS, _BATCH_LENGTHS):
        lengths = {name: other if axis else batch for name, axis in axes.items()} | dict(given)
        if tuple(lengths.values()) in tried:
            continue
        tried.add(tuple(lengths.values()))
        if _types_agree(model, lengths):
            yield lengths
        else:
            doubtful.append(lengths)
    yield from doubtful


def _types_agree(model: RelayModel, lengths: Mapping[str, int]) -> bool:
    """Whether the types of ``main`` can be inferred for lengths of its inputs."""
    memo: dict[Expr, Expr] = {}
    for variable in model.inputs():
        type_ = TensorType(shape_at(variable, lengths), input_type(variable).dtype)
        memo[variable] = Var(variable.name_hint, type_)

    def replace(_node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op):
            return new
        attrs = {name: resolve_attribute(value, lengths) for name, value in new.attrs.items()}
        if attrs == dict(new.attrs):
            return new
        return set_type(Call(new.op, new.args, Attrs(attrs), span=new.span))

    try:
        rewrite(model.main.body, replace, memo)
    except RelayError:
        return False
    return True
