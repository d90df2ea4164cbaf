"""The loop over slices of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import SymDim, TensorType, TupleType, Type, join_dim, normalize_axis
from serde.relay.ir.bodies import Apply, Blank, Kernel, instantiate
from serde.relay.ir.builders import wrap_tuple
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var, const
from serde.relay.ir.registry import Array, builder, call, relay_op, sample
from serde.relay.lowering.lengths import length_of
from serde.relay.op.control import body as bodies, samples


@dataclass(frozen=True)
class _Walk:
    """Axes and directions, one for each tensor."""

    axes: tuple[int, ...]
    reverse: tuple[bool, ...]
    out_axes: tuple[int, ...]
    out_reverse: tuple[bool, ...]


def _walk(
    ranks: Sequence[int],
    out_ranks: Sequence[int],
    axes: tuple[int, ...],
    reverse: tuple[bool, ...],
    out_axes: tuple[int, ...],
    out_reverse: tuple[bool, ...],
) -> _Walk:
    """Return the attributes in full, axes counted from the front."""
    given = {"axes": axes, "reverse": reverse, "out_axes": out_axes, "out_reverse": out_reverse}
    for name, items in given.items():
        count = len(out_ranks if name.startswith("out") else ranks)
        if len(items) not in (0, count):
            raise TypeInferenceError(f"{name}: expected {count} items or none, found {len(items)}")
    pairs = zip(axes or (0,) * len(ranks), ranks, strict=True)
    out_pairs = zip(out_axes or (0,) * len(out_ranks), out_ranks, strict=True)
    return _Walk(
        tuple(normalize_axis(axis, rank) for axis, rank in pairs),
        reverse or (False,) * len(ranks),
        tuple(normalize_axis(axis, rank + 1) for axis, rank in out_pairs),
        out_reverse or (False,) * len(out_ranks),
    )


def _tensors(name: str, types: Sequence[Type]) -> list[TensorType]:
    found = [type_ for type_ in types if isinstance(type_, TensorType)]
    if len(found) != len(types):
        raise TypeInferenceError(f"operand {name}: expected tensors, found {list(types)!r}")
    return found


def _scan_type(
    state: Sequence[Type],
    scanned: Sequence[Type],
    captures: Sequence[Type],
    *,
    body: Function,
    **directions: AnyValue,
) -> tuple[TensorType, ...] | None:
    """All tensors must be equally long along the axis that is scanned."""
    if body.type is None:
        return None
    if not scanned:
        raise TypeInferenceError("a scan needs a tensor to walk along")
    first, walked = _tensors("state", state), _tensors("scanned", scanned)
    yielded = bodies.tensors("body", bodies.results(body))
    if len(yielded) < len(first):
        raise TypeInferenceError(
            f"body: expected {len(first)} states and what is stacked, found {TupleType(yielded)!r}"
        )
    ranks = [type_.rank for type_ in walked]
    walk = _walk(ranks, [each.rank for each in yielded[len(first) :]], **directions)
    length = walked[0].shape[walk.axes[0]]
    for type_, axis in zip(walked, walk.axes, strict=True):
        length = join_dim(length, type_.shape[axis])
    given: list[tuple[str, Type]] = [(f"state {index}", t) for index, t in enumerate(first)]
    given += [
        (f"slice {index}", TensorType((*type_.shape[:axis], *type_.shape[axis + 1 :]), type_.dtype))
        for index, (type_, axis) in enumerate(zip(walked, walk.axes, strict=True))
    ]
    given += [(f"capture {index}", type_) for index, type_ in enumerate(captures)]
    values = bodies.enter(body, given)
    for index in range(len(first)):
        bodies.leave(body.params[index].checked_type, yielded[index], index)
    later = bodies.tensors("body", bodies.substitute_results(yielded, values))
    finals = bodies.tensors(
        "state", [bodies.join(a, b) for a, b in zip(first, later, strict=False)]
    )
    stacked = [
        TensorType((*each.shape[:axis], length, *each.shape[axis:]), each.dtype)
        for each, axis in zip(later[len(first) :], walk.out_axes, strict=True)
    ]
    return (*finals, *stacked)


def _decompose_scan(
    state: Sequence[Expr],
    scanned: Sequence[Expr],
    captures: Sequence[Expr],
    *,
    body: Function,
    **directions: AnyValue,
) -> Expr:
    """A loop takes one slice of each tensor in turn, and stacks along axis 0."""
    walked = _tensors("scanned", [each.checked_type for each in scanned])
    ranks = [each.rank for each in bodies.tensors("body", bodies.results(body))[len(state) :]]
    walk = _walk([type_.rank for type_ in walked], ranks, **directions)
    limit = length_of(scanned[0], walk.axes[0])
    number = Var("i", bodies.SCALAR_INT)
    states = body.params[: len(state)]
    inner = [Var(param.name_hint, param.type) for param in states]
    whole = [Var(f"scanned{i}", type_) for i, type_ in enumerate(walked)]
    kept = [
        Var(param.name_hint, each.type)
        for param, each in zip(body.params[len(state) + len(scanned) :], captures, strict=True)
    ]
    last = [Var("last", bodies.SCALAR_INT)] if any(walk.reverse) else []
    backwards = call("subtract", last[0], number) if last else number
    slices = [
        call("take", each, backwards if reverse else number, axis=axis, mode="clip")
        for each, axis, reverse in zip(whole, walk.axes, walk.reverse, strict=True)
    ]
    result = bodies.with_results(
        instantiate(body, [*inner, *slices, *kept]),
        len(bodies.results(body)),
        lambda fields: Tuple([const(True, "bool"), *fields]),
    )
    function = Function([number, *inner, *whole, *kept, *last], result)
    taken = [*scanned, *captures, *[call("subtract", limit, const(1, "int64")) for _ in last]]
    looped = call("serde.loop", limit, None, tuple(state), tuple(taken), body=function)
    fields: list[Expr] = [TupleGetItem(looped, index) for index in range(len(state) + len(ranks))]
    stacked = fields[len(state) :]
    if isinstance(walked[0].shape[walk.axes[0]], SymDim):
        # A loop forgets the name of its length.
        axis = walk.axes[0]
        stacked = [
            call("reshape_like", x, scanned[0], lhs_end=1, rhs_begin=axis, rhs_end=axis + 1)
            for x in stacked
        ]
    stacks = zip(stacked, ranks, walk.out_axes, walk.out_reverse, strict=True)
    return Tuple([*fields[: len(state)], *(_move_stack_axis(*stack) for stack in stacks)])


def _move_stack_axis(stack: Expr, rank: int, axis: int, reverse: bool) -> Expr:
    """Return a stack along axis 0 as one along `axis`, backwards if asked."""
    if reverse:
        stack = call("reverse", stack, axis=0)
    if axis:
        order = [*range(1, rank + 1)]
        order.insert(axis, 0)
        stack = call("transpose", stack, axes=tuple(order))
    return stack


@relay_op(
    "serde.scan",
    infer=_scan_type,
    decompose=_decompose_scan,
    samples=[
        sample([(3,)], [(4, 3)], [()], body=samples.running_sum()),
        sample(
            [(3,)],
            [(3, 4)],
            [()],
            body=samples.running_sum(),
            axes=(1,),
            reverse=(True,),
            out_axes=(0, 1),
            out_reverse=(True, False),
        ),
        sample(
            [],
            [(4, 2), (2, 4, 3)],
            [],
            body=samples.product(),
            axes=(0, -2),
            reverse=(False, True),
            out_axes=(-1,),
        ),
        sample([(3,)], [(0, 3)], [()], body=samples.running_sum()),
    ],
)
def scan(
    state: tuple[Array, ...], scanned: tuple[Array, ...], captures: tuple[Array | list[Array], ...],
    *, body: Function, axes: tuple[int, ...] = (), reverse: tuple[bool, ...] = (),
    out_axes: tuple[int, ...] = (), out_reverse: tuple[bool, ...] = (),
) -> Kernel[tuple[Array, ...]]:  # fmt: skip
    """Call `body` for each slice of some tensors in turn, as a Scan of ONNX does.

    Args:
        state: What goes into the first iteration, and from each into the next.
        scanned: The tensors, equally long along the axis that each is walked along.
        captures: What every iteration gets alike: tensors and sequences.
        body: A function without free variables of the states, a slice of each tensor (without
            the axis walked along) and the captures. It yields the next states, and what is
            stacked. A length of a state that changes is anonymous.
        axes: The axis of each tensor to walk along; 0 for all if empty.
        reverse: Whether to begin at its end; False for all if empty.
        out_axes: The new axis of each result to stack along; 0 for all if empty.
        out_reverse: Whether the first value comes last; False for all if empty.

    Returns:
        The last states, then the stacks.
    """
    count = len(state)
    ranks = [each.ndim for each in scanned]
    stacked = bodies.tensors("body", bodies.results(body)[count:])
    stacked_ranks = [each.rank for each in stacked]
    walk = _walk(ranks, stacked_ranks, axes, reverse, out_axes, out_reverse)
    rows = [
        np.flip(np.moveaxis(each, axis, 0), 0) if backwards else np.moveaxis(each, axis, 0)
        for each, axis, backwards in zip(scanned, walk.axes, walk.reverse, strict=True)
    ]
    lengths = {len(each) for each in rows}
    if len(lengths) != 1:
        raise ValueError(f"tensors of {sorted(lengths)} slices cannot be walked together")
    values = tuple(state)
    stacks: list[list[Array]] = [[] for _ in stacked_ranks]
    for slices in zip(*rows, strict=True):
        results = yield Apply(body, (*values, *slices, *captures))
        values = tuple(results[:count])
        for stack, item in zip(stacks, results[count:], strict=True):
            stack.append(item)
    if not lengths.pop():
        absent = [np.zeros(each.shape[1:], each.dtype) for each in rows]
        blank = yield Blank(body, (*values, *absent, *captures))
        arrays = [np.zeros((0, *item.shape), item.dtype) for item in blank[count:]]
    else:
        arrays = [np.stack(stack) for stack in stacks]
    placed = zip(arrays, walk.out_axes, walk.out_reverse, strict=True)
    return (
        *values,
        *(np.moveaxis(np.flip(a, 0) if backwards else a, 0, axis) for a, axis, backwards in placed),
    )


@builder("serde.scan")
def build_scan(
    state: Sequence[Expr], scanned: Sequence[Expr], captures: Sequence[Expr] = (),
    *, body: Function, axes: Sequence[int] = (), reverse: Sequence[bool] = (),
    out_axes: Sequence[int] = (), out_reverse: Sequence[bool] = (),
) -> AnyValue:  # fmt: skip
    """Return a call of ``serde.scan``, whose results index and unpack."""
    return wrap_tuple(
        call(
            "serde.scan",
            tuple(state),
            tuple(scanned),
            tuple(captures),
            body=body,
            axes=tuple(axes),
            reverse=tuple(reverse),
            out_axes=tuple(out_axes),
            out_reverse=tuple(out_reverse),
        )
    )
