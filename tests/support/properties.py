"""Properties of kernels by which traits are defined: on one sample each, true, false, or unknown.

A property is None where a sample cannot show it, such as one with a single element.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from support.samples import Array, BuiltSample, as_arrays, build

from serde.errors import RelayError
from serde.relay.ir.bodies import carried
from serde.relay.ir.expr import Tuple
from serde.relay.ir.leaves import leaf_types
from serde.relay.ir.registry import OpDef
from serde.relay.ir.shapes import layout_axes
from serde.relay.ir.traits import Layout, SameAxes
from serde.relay.run.interpreter import apply_kernel
from serde.relay.run.rows import row_rule

Property = Callable[[BuiltSample], "bool | None"]

ERRORS = (ArithmeticError, AttributeError, IndexError, RelayError, TypeError, ValueError)
"""What a kernel raises on operands that it is not made for."""


class Token:
    """An element that can only be moved."""


@cache
def built_samples(definition: OpDef) -> tuple[BuiltSample, ...]:
    """Return the samples of an operator, built."""
    return tuple(build(definition, given) for given in definition.samples)


def holds(definition: OpDef, shown: Property) -> bool:
    """Whether a property holds on all samples that can show it, and on one at least."""
    found = [shown(built) for built in built_samples(definition)]
    return False not in found and True in found


def shows(definition: OpDef, shown: Property) -> bool:
    """Whether a property holds on some sample."""
    return any(shown(built) for built in built_samples(definition))


def op_of(built: BuiltSample) -> OpDef:
    """Return the operator of a sample."""
    assert isinstance(built.call.op, OpDef)
    return built.call.op


def generator(built: BuiltSample) -> np.random.Generator:
    """Return random numbers that depend on the operator alone."""
    return np.random.default_rng(zlib.crc32(op_of(built).name.encode()))


def evaluate(
    built: BuiltSample, operands: Sequence[Any], attrs: Mapping[str, Any] | None = None
) -> tuple[Any, ...]:
    """Return what the kernel makes of other operands and attributes."""
    given = [() if value is None else value for value in operands]
    with np.errstate(all="ignore"):
        return as_arrays(apply_kernel(op_of(built), given, attrs or built.call.attrs))


def agree(found: Any, wanted: Any, rtol: float = 1e-5) -> bool:
    """Whether values agree but for rounding: sums in another order, loops of another length."""
    if isinstance(wanted, (tuple, list)):
        pairs = zip(found, wanted, strict=True)
        return len(found) == len(wanted) and all(agree(a, b, rtol) for a, b in pairs)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if wanted.dtype.kind not in "fV":
        return bool(np.array_equal(found, wanted))
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    wide = max(rtol, 4e-3) if wanted.dtype.itemsize < 4 else rtol
    return bool(np.allclose(a, b, wide, wide, equal_nan=True))


def _arrays(built: BuiltSample) -> list[Array] | None:
    """Return the operands where each is an array and so is the result."""
    if carried(built.call) or not built.operands:
        return None
    given = list(built.operands)
    return given if all(isinstance(each, np.ndarray) for each in given) else None


def is_elementwise(built: BuiltSample) -> bool | None:
    """Permuting the elements, broadcast operands alike, permutes the result."""
    operands, results = _arrays(built), built.run()
    if operands is None or len(results) != 1 or not isinstance(results[0], np.ndarray):
        return False
    result = results[0]
    try:
        if np.broadcast_shapes(*(each.shape for each in operands)) != result.shape:
            return False
    except ValueError:
        return False
    if result.size < 2:
        return None
    random = generator(built)
    return all(
        _permutes(built, operands, result, random.permutation(result.size)) for _ in range(4)
    )


def _permutes(built: BuiltSample, operands: Sequence[Array], result: Array, order: Array) -> bool:
    def permuted(value: Array) -> Array:
        if not value.ndim:
            return value
        spread = np.broadcast_to(value, result.shape)
        return spread.reshape(-1)[order].reshape(result.shape)

    try:
        found = evaluate(built, [permuted(each) for each in operands])
    except ERRORS:
        return False
    return agree(found[0], permuted(result))


def keeps_type(built: BuiltSample) -> bool | None:
    """The result has the type of the one operand."""
    call = built.call
    return len(call.args) == 1 and call.type == call.args[0].type


def is_commutative(built: BuiltSample) -> bool | None:
    """Exchanging the operands changes nothing."""
    operands = _arrays(built)
    if operands is None or len(operands) != 2:
        return False
    if operands[0].dtype != operands[1].dtype:
        return False
    try:
        return agree(evaluate(built, operands[::-1]), built.run(), 1e-7)
    except ERRORS:
        return False


def is_random(built: BuiltSample) -> bool | None:
    """Of several evaluations without a seed, some give something else."""
    attrs = dict(built.call.attrs)
    if "seed" in attrs:
        attrs["seed"] = None
    first, *others = (evaluate(built, built.operands, attrs) for _ in range(16))
    return not all(agree(each, first, 0.0) for each in others)


def _tokens(built: BuiltSample) -> tuple[Any, list[Token]] | None:
    """Return operand 0 with tokens for elements, and these in order."""
    if carried(built.call) or not built.operands:
        return None
    tokens: list[Token] = []

    def replaced(value: Array) -> Array:
        made = np.empty(value.size, object)
        made[:] = [Token() for _ in range(value.size)]
        tokens.extend(made)
        return made.reshape(value.shape)

    first = built.operands[0]
    if isinstance(first, np.ndarray):
        return replaced(first), tokens
    if isinstance(first, tuple) and all(isinstance(each, np.ndarray) for each in first):
        return tuple(map(replaced, first)), tokens
    return None


Moved = tuple[list[Token], list[Any]]


def _shows_moves(shown: Callable[[Moved], bool]) -> Property:
    """Return a property of the tokens given and those of the one result; false if looked at."""

    def of_sample(built: BuiltSample) -> bool | None:
        given = _tokens(built)
        if given is None:
            return False
        if len(given[1]) < 2:
            return None
        moved = _moved(built, *given)
        return moved is not None and shown(moved)

    return of_sample


def _moved(built: BuiltSample, *given: Any) -> Moved | None:
    try:
        found = evaluate(built, [given[0], *built.operands[1:]])
        numbers = evaluate(built, [_numbered(given[0], given[1]), *built.operands[1:]])
    except ERRORS:
        return None
    if len(found) != 1 or not isinstance(found[0], np.ndarray) or found[0].dtype != object:
        return None
    places = {token: place for place, token in enumerate(given[1])}
    if not set(found[0].reshape(-1)) <= places.keys() or numbers[0].shape != found[0].shape:
        return None
    wanted = [places[token] + 0.25 for token in found[0].reshape(-1)]
    alike = np.array_equal(np.ravel(numbers[0]).astype(np.float64), wanted)
    return (given[1], list(found[0].reshape(-1))) if alike else None


def _numbered(value: Any, tokens: Sequence[Token]) -> Any:
    """Return an operand with a number for each token, none of them whole."""
    if isinstance(value, tuple):
        return tuple(_numbered(each, tokens) for each in value)
    places = {token: place + 0.25 for place, token in enumerate(tokens)}
    made = [places[token] for token in value.reshape(-1)]
    return np.array(made, np.float64).reshape(value.shape)


is_move = _shows_moves(lambda moved: True)
"""Elements that can only be moved are."""

moves_all = _shows_moves(lambda moved: set(moved[0]) == set(moved[1]))
"""Each element of the operand is in the result."""

is_reshape = _shows_moves(lambda moved: moved[0] == moved[1])
"""Elements stay in their order."""


def is_value_of(operands: Sequence[int], near: float = 1.0) -> Property:
    """Return the property: elements are less than `near` from some of `operands`, or one filler.

    The operands get multiples of 5, so that nothing computed of them is likely to be near one.
    """

    def shown(built: BuiltSample) -> bool | None:
        if any(index >= len(built.operands) for index in operands) or carried(built.call):
            return False
        random, known = generator(built), []
        given = list(built.operands)

        def drawn(value: Any) -> Any:
            if isinstance(value, (tuple, list)):
                return type(value)(map(drawn, value))
            if value is None or value.dtype.kind not in "iuf":
                raise TypeError("no numbers")
            low = 0 if value.dtype.kind == "u" else -20
            made = (5 * random.integers(low, 20, value.shape)).astype(value.dtype)
            known.extend(np.ravel(made).astype(np.float64))
            return made

        try:
            for index in operands:
                given[index] = drawn(given[index])
            first = evaluate(built, given)[0]
        except ERRORS:
            return None
        found = np.concatenate([np.ravel(e) for e in first]) if isinstance(first, list) else first
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "iuf":
            return False
        if found.size < 2 or not known:
            return None
        apart = np.abs(np.ravel(found).astype(np.float64)[:, None] - np.array(known)).min(1)
        others = np.ravel(found)[~(apart < near)]
        if len(others) > 0.7 * found.size:
            return None if not np.any(others != others[0]) else False
        return len(np.unique(others)) <= 1

    return shown


def is_type_only(operand: int) -> Property:
    """Return the property: other values of an operand give the same."""

    def shown(built: BuiltSample) -> bool | None:
        if operand >= len(built.operands) or carried(built.call):
            return False
        value = built.operands[operand]
        if not isinstance(value, np.ndarray) or not value.size:
            return None if value is None else False
        other = generator(built).permutation(np.ravel(value)).reshape(value.shape)
        changed = ~other if value.dtype == bool else (other * 3 + 1).astype(value.dtype)
        operands = list(built.operands)
        operands[operand] = changed
        try:
            return agree(evaluate(built, operands), built.run(), 0.0)
        except ERRORS:
            return False

    return shown


def is_truth(built: BuiltSample) -> bool | None:
    """The result is made of zeros and ones, of both of them in some sample."""
    results = built.run()
    if len(results) != 1 or not isinstance(results[0], np.ndarray) or not results[0].size:
        return False
    return bool(np.isin(results[0].astype(np.float64), (0.0, 1.0)).all())


def is_selection(built: BuiltSample) -> bool | None:
    """Some length is open though the operands are fixed, and the first bounds it."""
    if all(each.concrete_shape for each in leaf_types(built.call.checked_type)):
        return False
    data = np.asarray(built.operands[0])
    return all(each.nbytes <= 8 * (data.ndim + 4) * data.size for each in built.run())


def _cut(value: Any, start: int, stop: int, rows: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_cut(each, start, stop, rows) for each in value)
    fits = isinstance(value, np.ndarray) and value.ndim and value.shape[0] == rows
    return value[start:stop] if fits else value


def comes_in_pieces(built: BuiltSample) -> bool | None:
    """Rows of operands as long as the result give its rows."""
    results = built.run()
    if carried(built.call) or len(results) != 1 or not isinstance(results[0], np.ndarray):
        return False
    whole = results[0]
    if not whole.ndim or not whole.size:
        return None
    if not built.operands:
        return False
    rows = len(whole)
    ranges = [(0, 1), (1, rows)] if rows > 1 else []
    if not ranges:
        return None
    try:
        parts = [
            evaluate(built, [_cut(each, *cut, rows) for each in built.operands])[0]
            for cut in ranges
        ]
        return agree(np.concatenate(parts), whole)
    except ERRORS:
        return False


def follows_row_rule(built: BuiltSample) -> bool | None:
    """The rule by which weights are computed gives the rows; None where there is none."""
    types: list[Any] = []
    values: list[Any] = []
    for argument, value in zip(built.call.args, built.operands, strict=True):
        several = isinstance(argument, Tuple)
        types += [each.type for each in argument.fields] if several else [argument.type]
        values += list(value or ()) if several else [value]
    rule = row_rule(built.call, types)
    whole = built.run()[0]
    if rule is None:
        return None
    parts = []
    for start, stop in ((0, 1), (1, len(whole))) if len(whole) > 1 else ((0, len(whole)),):
        wanted = rule.wanted(start, stop)
        given = [
            value if rows is None else value[rows[0] : rows[1]]
            for value, rows in zip(values, wanted, strict=True)
        ]
        with np.errstate(all="ignore"):
            parts.append(rule.compute(given, start, stop))
    return agree(np.concatenate(parts), whole)


def _order(rank: int, *, batch: bool) -> tuple[int, ...]:
    """Return another order of axes: the last in front, or behind the batch."""
    axes = list(range(rank))
    axes.insert(int(batch), axes.pop())
    return tuple(axes)


def has_same_axes(trait: SameAxes) -> Property:
    """Return the property: transposing before with attributes changed is transposing after."""

    def shown(built: BuiltSample) -> bool | None:
        given = list(built.operands)
        first = given[: trait.operands]
        if not first or not all(isinstance(each, np.ndarray) for each in first):
            return False
        rank = first[0].ndim
        if any(each.ndim != rank for each in first) or carried(built.call):
            return None
        if rank < 2 + trait.batch:
            return None
        order = _order(rank, batch=trait.batch)
        attrs = dict(built.call.attrs)
        if any(not isinstance(attrs.get(key), (int, tuple)) for key in trait.axes):
            return None
        for key in trait.axes:
            axis = attrs[key]
            several = isinstance(axis, tuple)
            moved = [order.index(each % rank) for each in (axis if several else (axis,))]
            attrs[key] = tuple(moved) if several else moved[0]
        for key in trait.per_axis:
            attrs[key] = tuple(attrs[key][axis] for axis in order)
        given[: trait.operands] = [each.transpose(order) for each in first]
        results = built.run()
        followers = 1 if trait.axes else len(results)
        if any(getattr(each, "ndim", -1) != rank for each in results[:followers]):
            return False
        wanted = [each.transpose(order) for each in results[:followers]] + [*results[followers:]]
        try:
            return agree(evaluate(built, given, attrs), tuple(wanted))
        except ERRORS:
            return False

    return shown


def is_reduction(built: BuiltSample) -> bool | None:
    """Reducing the same axes in another order leaves the others in that order."""
    data, attrs = built.operands[0], dict(built.call.attrs)
    order = _order(data.ndim, batch=False)
    several = isinstance(attrs["axis"], tuple)
    axes = set(range(data.ndim))
    if attrs["axis"] is not None:
        axes = {axis % data.ndim for axis in (attrs["axis"] if several else (attrs["axis"],))}
        axes = set(range(data.ndim)) - axes if attrs["exclude"] else axes
    if "select_last_index" in attrs and len(axes) > 1:
        return None
    attrs |= {"axis": tuple(sorted(order.index(axis) for axis in axes)), "exclude": False}
    left = [axis for axis in order if axis not in axes]
    after = order if attrs["keepdims"] else tuple(sorted(left).index(axis) for axis in left)
    given = [each.transpose(order) for each in built.operands]
    return agree(evaluate(built, given, attrs)[0], built.run()[0].transpose(after))


def has_layout(trait: Layout) -> Property:
    """Return the property: data in another layout gives the result in it."""

    def shown(built: BuiltSample) -> bool | None:
        attrs, given = dict(built.call.attrs), list(built.operands)
        old = attrs[trait.attribute]
        if not isinstance(old, str) or attrs.get("out_layout", "") not in ("", old):
            return None
        new = old[-1] + old[:-1]
        order = layout_axes(old, new)
        attrs[trait.attribute] = new
        if attrs.get("out_layout"):
            attrs["out_layout"] = new
        first = given[: trait.operands]
        if any(getattr(each, "ndim", -1) != len(old) for each in first):
            return False
        given[: trait.operands] = [each.transpose(order) for each in first]
        try:
            return agree(evaluate(built, given, attrs)[0], built.run()[0].transpose(order), 1e-4)
        except ERRORS:
            return False

    return shown


def is_linear(built: BuiltSample) -> bool | None:
    """Of the first two operands, each times 2 or a sum is so in the result."""
    given, whole = list(built.operands), built.run()[0]
    if len(given) < 2 or carried(built.call) or not isinstance(whole, np.ndarray):
        return False
    if not all(isinstance(each, np.ndarray) for each in given[:2]):
        return False
    if any(each.dtype.kind != "f" or not np.any(each) for each in (*given[:2], whole)):
        return None
    random = generator(built)
    for place in (0, 1):
        other = random.uniform(-1, 1, given[place].shape).astype(given[place].dtype)
        mixed = [*given[:place], other, *given[place + 1 :]]
        both = [*given[:place], given[place] * 2 + other, *given[place + 1 :]]
        try:
            wanted = np.asarray(2 * whole + evaluate(built, mixed)[0], whole.dtype)
            if not agree(evaluate(built, both)[0], wanted, 1e-3):
                return False
        except ERRORS:
            return False
    return True
