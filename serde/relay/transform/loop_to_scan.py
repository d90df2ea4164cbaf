"""Loops that take one slice after another, as scans."""

from __future__ import annotations

from collections.abc import Mapping

from serde.relay.ir import Any, Dim, TensorType, TupleType, call, free_vars, is_call, post_order
from serde.relay.ir.bodies import substitute
from serde.relay.ir.expr import Call, Constant, Expr, Function, Let, Tuple, Var
from serde.relay.transform.fold_shape import shape_value

__all__ = ["as_scan"]

_Slice = tuple[Var, int, bool]
"""A capture, the axis a slice is taken along, and whether from its end."""


def as_scan(loop: Call) -> Call | None:
    """Return the ``serde.scan`` that a ``serde.loop`` is, or None.

    It is one if it has a limit and nothing else to end it, no state changes its shape, the number
    of the iteration does nothing but take slices of captures, and these are as long as the limit.
    """
    limit, going, state, captures = loop.args
    body = loop.attrs["body"]
    if not isinstance(state, Tuple) or not isinstance(captures, Tuple):
        return None
    lets, yielded = _peel_lets(body.body)
    if going.type != TupleType(()) or not isinstance(yielded, Tuple):
        return None
    first = yielded.fields[0]
    if not isinstance(first, Constant) or not first.data.all():
        return None
    finals = loop.type.fields[: len(state)] if isinstance(loop.type, TupleType) else ()
    if any(old.type != new or _is_open(new) for old, new in zip(state.fields, finals, strict=True)):
        return None
    length = (shape_value(limit) or (Any(),))[0]
    if isinstance(length, Any) or limit.type != TensorType((), "int64"):
        return None
    slices = _slices(body, len(state), length)
    if not slices:
        return None
    outer = dict(zip(body.params[1 + len(state) :], captures.fields, strict=True))
    states = {param: _fresh(param) for param in body.params[1 : 1 + len(state)]}
    kept = {param: _fresh(param) for param in outer}
    rows = {found: Var(found[0].name_hint, node.type) for node, found in slices.items()}
    values: dict[Expr, Expr] = {node: rows[found] for node, found in slices.items()}
    result: Expr = Tuple(yielded.fields[1:])
    for let in reversed(lets):
        result = Let(let.var, let.value, result, let.span)
    result = substitute(result, {**states, **kept, **values})
    unbound = set(free_vars(result))
    if body.params[0] in unbound:
        return None
    used = [param for param, inner in kept.items() if inner in unbound]
    params = [*states.values(), *rows.values(), *(kept[param] for param in used)]
    return call(
        "serde.scan",
        state.fields,
        tuple(outer[param] for param, _, _ in rows),
        tuple(outer[param] for param in used),
        body=Function(params, result),
        axes=_unless_all(tuple(axis for _, axis, _ in rows)),
        reverse=_unless_all(tuple(backwards for _, _, backwards in rows)),
    )


def _peel_lets(body: Expr) -> tuple[list[Let], Expr]:
    lets = []
    while isinstance(body, Let):
        lets.append(body)
        body = body.body
    return lets, body


def _is_open(type_: object) -> bool:
    return not isinstance(type_, TensorType) or any(isinstance(d, Any) for d in type_.shape)


def _fresh(variable: Var) -> Var:
    return Var(variable.name_hint, variable.type, variable.span)


def _unless_all(items: tuple[int, ...]) -> tuple[int, ...]:
    """Return `items`, or none where all are the default, 0 or False."""
    return items if any(items) else ()


def _slices(body: Function, states: int, length: Dim) -> Mapping[Expr, _Slice]:
    """Return the calls that take the slice of an iteration out of a capture."""
    captures = set(body.params[1 + states :])
    found: dict[Expr, _Slice] = {}
    for node in post_order(body.body):
        if not is_call(node, "take"):
            continue
        source, place = node.args
        axis = node.attrs["axis"]
        if source not in captures or not isinstance(source, Var) or axis is None:
            continue
        backwards = _counts_down(place, body.params[0], length)
        if not isinstance(source.type, TensorType) or node.attrs["batch_dims"]:
            continue
        axis %= source.type.rank
        if source.type.shape[axis] == length and (backwards or place is body.params[0]):
            found[node] = (source, axis, backwards)
    return found


def _counts_down(place: Expr, number: Var, length: Dim) -> bool:
    """Whether `place` is the last one less the number of the iteration."""
    if not is_call(place, "subtract") or place.args[1] is not number:
        return False
    last = shape_value(place.args[0])
    return last is not None and last[0] == length - 1
