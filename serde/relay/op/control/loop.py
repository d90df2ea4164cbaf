"""The loop with a count, a condition, states and stacked results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, Function, If, InRange, Let, Tuple, Var, const, ranges
from serde.relay.ir.bodies import Apply, Blank, Kernel, instantiate
from serde.relay.ir.builders import wrap_tuple
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, sequence, tensor
from serde.relay.ir.types import FuncType, SequenceType, TensorType, TupleType, Type
from serde.relay.op.control import body as bodies, samples


def _loop_type(
    limit: TensorType | Array | None,
    going: TensorType | Array | None,
    state: Sequence[Type],
    captures: Sequence[Type],
    *,
    body: Function,
) -> tuple[TensorType | SequenceType, ...] | None:
    """Stacks are as long as `limit` where that is known and the body always goes on."""
    if body.type is None:
        return None
    _require_scalar("limit", limit, bodies.SCALAR_INT)
    _require_scalar("going", going, bodies.SCALAR_BOOL)
    given: list[tuple[str, Type]] = [("iteration", bodies.SCALAR_INT)]
    given += [(f"state {index}", type_) for index, type_ in enumerate(state)]
    given += [(f"capture {index}", type_) for index, type_ in enumerate(captures)]
    values = bodies.enter(body, given)
    yielded = bodies.results(body)
    if len(yielded) < 1 + len(state) or yielded[0] != bodies.SCALAR_BOOL:
        raise TypeInferenceError(
            f"body: expected a scalar bool, {len(state)} states and what is stacked, "
            f"found {TupleType(yielded)!r}"
        )
    for index in range(len(state)):
        bodies.leave(body.params[1 + index].checked_type, yielded[1 + index], index)
    _, *later = bodies.substitute_results(yielded, values)
    length: Dim = Any()
    if isinstance(limit, np.ndarray) and _always(going) and bodies.goes_on(body):
        length = max(int(limit.reshape(())), 0)
    finals = [bodies.join(a, b) for a, b in zip(state, later, strict=False)]
    rows = bodies.tensors("what is stacked", later[len(state) :])
    stacked = [TensorType((length, *each.shape), each.dtype) for each in rows]
    return (*finals, *stacked)


def _require_scalar(name: str, given: TensorType | Array | None, wanted: TensorType) -> None:
    if given is None:
        return
    found = TensorType(given.shape, given.dtype)
    if found != wanted:
        raise TypeInferenceError(f"operand {name}: expected {wanted!r}, found {found!r}")


def _always(going: TensorType | Array | None) -> bool:
    return going is None or (isinstance(going, np.ndarray) and bool(going.reshape(())))


def _decompose_loop(
    limit: Expr | None,
    going: Expr | None,
    state: Sequence[Expr],
    captures: Sequence[Expr],
    *,
    body: Function,
) -> Expr:
    """The loop becomes a recursive function bound by a Let, as TVM has it."""
    given = [("", bodies.SCALAR_INT), *(("", each.checked_type) for each in (*state, *captures))]
    yielded = bodies.substitute_results(bodies.results(body), bodies.enter(body, given))
    elements = bodies.tensors("what is stacked", yielded[1 + len(state) :])
    start = [_nothing(element, (*state, *captures)) for element in elements]
    types: list[TensorType | SequenceType] = [
        bodies.join(each.checked_type, later)
        for each, later in zip(state, yielded[1:], strict=False)
    ]
    types += [TensorType((Any(), *each.shape), each.dtype) for each in elements]
    number, further = Var("i", bodies.SCALAR_INT), Var("going", bodies.SCALAR_BOOL)
    names = [param.name_hint for param in body.params[1 : 1 + len(state)]]
    names += [f"stacked{index}" for index in range(len(elements))]
    carried = [Var(name, type_) for name, type_ in zip(names, types, strict=True)]
    result = TupleType(types)
    loop = Var("loop", FuncType([bodies.SCALAR_INT, bodies.SCALAR_BOOL, *types], result))

    def again(fields: list[Expr]) -> Expr:
        rows = [call("expand_dims", row, axis=0) for row in fields[1 + len(state) :]]
        pairs = zip(carried[len(state) :], rows, strict=True)
        stacked = [call("concatenate", [before, row], axis=0) for before, row in pairs]
        following = call("add", number, const(1, "int64"))
        return bodies.call_function(loop, [following, *fields[: 1 + len(state)], *stacked])

    inner = instantiate(body, [number, *carried[: len(state)], *captures])
    condition: Expr = further
    if limit is not None:
        condition = call("logical_and", call("less", number, limit), further)
    step = bodies.with_results(inner, len(yielded), again)
    choice = If(condition, step, Tuple(carried))
    choice.type = result
    function = Function([number, further, *carried], choice, result)
    begin = const(True, "bool") if going is None else going
    return Let(
        loop, function, bodies.call_function(loop, [const(0, "int64"), begin, *state, *start])
    )


def _nothing(element: TensorType, sources: Sequence[Expr]) -> Expr:
    """Return no elements at all; a length that is a symbol is taken from one of `sources`."""
    if any(isinstance(dim, Any) for dim in element.shape):
        raise TypeInferenceError(f"a stack of {element!r} cannot begin empty: a length is unknown")
    if element.concrete_shape is not None:
        return call("zeros", shape=(0, *element.shape), dtype=element.dtype)
    lengths = [const(0, "int64"), *(_length(dim, sources) for dim in element.shape)]
    return call("dyn.zeros", call("stack", lengths, axis=0), dtype=element.dtype)


def _length(dim: Dim, sources: Sequence[Expr]) -> Expr:
    if isinstance(dim, int):
        return const(dim, "int64")
    for source in sources:
        if isinstance(source.type, TensorType) and dim in source.type.shape:
            shape = call("shape_of", source, dtype="int64")
            axis = const(source.type.shape.index(dim), "int64")
            return call("take", shape, axis, axis=0, mode="clip")
    raise TypeInferenceError(f"no operand of the loop has the length {dim} of what is stacked")


@relay_op(
    "serde.loop",
    traits=(InRange(ranges.within(0, ranges.COUNT)),),
    infer=_loop_type,
    decompose=_decompose_loop,
    by_value=("limit", "going"),
    samples=[
        sample(
            np.array(4, np.int64),
            None,
            [(2, 2), tensor((), "int32")],
            [(2,)],
            body=samples.accumulation(),
        ),
        sample(None, np.array(True), [(2, 3)], [np.float32(0.5)], body=samples.countdown()),
        sample(
            tensor((), "int64", low=2, high=5),
            tensor((), "bool"),
            [(2, 3)],
            [np.float32(0.5)],
            body=samples.countdown(),
        ),
        sample(
            np.array(0, np.int64),
            None,
            [(2, 2), tensor((), "int32")],
            [(2,)],
            body=samples.accumulation(),
        ),
        sample(np.array(3, np.int64), None, [tensor((2,), "int64")], [], body=samples.growth()),
        sample(
            tensor((), "int64", low=2, high=4),
            None,
            [sequence((2,), (3,))],
            [(2,)],
            body=samples.collection(),
        ),
    ],
)
def loop(
    limit: Array | None,
    going: Array | None,
    state: tuple[Array | list[Array], ...],
    captures: tuple[Array | list[Array], ...],
    *,
    body: Function,
) -> Kernel[tuple[Array | list[Array], ...]]:
    """Call `body` again and again, as a Loop of ONNX does.

    With i from 0 on, while i is below `limit` and `going` holds: going, the states and one value
    for each stack are what `body` yields for i, the states and the captures.

    Args:
        limit: How often at most, a scalar of int64; any number of times if absent.
        going: Whether to begin, a scalar of bool; True if absent.
        state: What goes into the first iteration, and from each into the next: tensors and
            sequences.
        captures: What every iteration gets alike.
        body: A function without free variables of the iteration's number (a scalar of int64),
            the states and the captures. It yields whether to go on (a scalar of bool), the next
            states, and what is stacked. A length of a state that changes is anonymous.

    Returns:
        The last states, then each value that is stacked, along a new first axis: of no iteration,
        a stack of length 0 of the elements that `body` declares.
    """
    number, values = 0, tuple(state)
    stacks: list[list[Array]] | None = None
    while (limit is None or number < int(limit)) and (going is None or bool(going)):
        args = (np.array(number, np.int64), *values, *captures)
        going, *results = yield Apply(body, args)
        values, rows = tuple(results[: len(state)]), results[len(state) :]
        if stacks is None:
            stacks = [[] for _ in rows]
        for stack, row in zip(stacks, rows, strict=True):
            stack.append(row)
        number += 1
    if stacks is None:
        blank = yield Blank(body, (np.array(0, np.int64), *values, *captures))
        empty = [np.zeros((0, *row.shape), row.dtype) for row in blank[1 + len(state) :]]
        return (*values, *empty)
    return (*values, *(np.stack(stack) for stack in stacks))


@builder("serde.loop")
def build_loop(
    limit: Expr | None,
    going: Expr | None,
    state: Sequence[Expr],
    captures: Sequence[Expr] = (),
    *,
    body: Function,
) -> AnyValue:
    """Return a call of ``serde.loop``, whose results index and unpack."""
    return wrap_tuple(call("serde.loop", limit, going, tuple(state), tuple(captures), body=body))
