"""Loops of fixed length, one iteration after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.limits import budget
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS
from serde.relay.ir import Constant, Expr, Function, TensorType, Tuple, TupleGetItem, instantiate
from serde.relay.ir.shapes import normalize_axis
from serde.relay.op.control.body import goes_on, results
from serde.walk.expansion.tensors import fixed_shape


def _check(steps: int) -> None:
    budget().check("turns", steps, "a loop, of which NNEF has none, iteration by iteration")


def _fields(body: Function, args: Sequence[Expr]) -> list[Expr]:
    """Return what a body, which has no variables of its own, yields of arguments."""
    value = instantiate(body, list(args))
    if isinstance(value, Tuple):
        return list(value.fields)
    return [TupleGetItem(value, index) for index in range(len(results(body)))]


@OPS.expands("serde.scan")
def expand_scan(
    state: Sequence[Expr], scanned: Sequence[Expr], captures: Sequence[Expr],
    *, body: Function, axes: tuple[int, ...], reverse: tuple[bool, ...], out_axes: tuple[int, ...],
    out_reverse: tuple[bool, ...],
) -> Expr:  # fmt: skip
    """Slices are taken one by one, and what is stacked is joined behind the last."""
    places = axes or (0,) * len(scanned)
    places = tuple(
        normalize_axis(axis, len(fixed_shape(x))) for x, axis in zip(scanned, places, strict=True)
    )
    length = fixed_shape(scanned[0])[places[0]]
    _check(length)
    backwards = reverse or (False,) * len(scanned)
    values, rows = list(state), []
    for step in range(length):
        slices = [
            _slice(x, axis, length - 1 - step if back else step)
            for x, axis, back in zip(scanned, places, backwards, strict=True)
        ]
        fields = _fields(body, [*values, *slices, *captures])
        values = fields[: len(state)]
        rows.append(fields[len(state) :])
    given = results(body)[len(state) :]
    out_places = out_axes or (0,) * len(given)
    out_backwards = out_reverse or (False,) * len(given)
    stacks = [
        _stack([row[i] for row in rows], type_, axis, back)
        for i, (type_, axis, back) in enumerate(zip(given, out_places, out_backwards, strict=True))
    ]
    return Tuple([*values, *stacks])


def _slice(x: Expr, axis: int, index: int) -> Expr:
    part = relay.strided_slice(x, [index], [index + 1], axes=[axis])
    return relay.squeeze(part, axis=[axis])


def _stack(rows: Sequence[Expr], type_: AnyValue, axis: int, backwards: bool) -> Expr:
    if rows:
        return relay.stack(list(reversed(rows)) if backwards else list(rows), axis=axis)
    shape = type_.concrete_shape if isinstance(type_, TensorType) else None
    if shape is None:
        raise Unsupported("a stack of nothing whose lengths are open")
    whole = list(shape)
    whole.insert(normalize_axis(axis, len(shape) + 1), 0)
    return relay.zeros(whole, type_.dtype)


@OPS.expands("serde.loop")
def expand_loop(
    limit: Expr | None,
    going: Expr | None,
    state: Sequence[Expr],
    captures: Sequence[Expr],
    *,
    body: Function,
) -> Expr:
    """A loop with a constant count that nothing else ends."""
    always = going is None or (isinstance(going, Constant) and bool(going.data.reshape(())))
    if not (isinstance(limit, Constant) and always and goes_on(body)):
        raise Unsupported(
            "NNEF has no loops; this one ends when the model runs",
            hint="a loop of a constant number of iterations is written out",
        )
    count = max(int(limit.data.reshape(())), 0)
    _check(count)
    values, rows = list(state), []
    for number in range(count):
        step = relay.const(number, "int64")
        _going, *fields = _fields(body, [step, *values, *captures])
        values = fields[: len(state)]
        rows.append(fields[len(state) :])
    given = results(body)[1 + len(state) :]
    stacks = [_stack([row[i] for row in rows], type_, 0, False) for i, type_ in enumerate(given)]
    return Tuple([*values, *stacks])
