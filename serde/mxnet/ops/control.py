"""Loops: ``_foreach`` where the number of iterations is known, else ``_while_loop``.

What a subgraph takes as data, state or condition, it names by the place of its own variable; what
else it takes from around it is an input of the node as well. A variable of one element and no axis
has one axis of length 1 unless MXNet runs with NumPy's shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.mxnet.bodies import arrange, choose
from serde.mxnet.builder import Subgraph
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.mxnet.rows import as_rows, from_row, from_rows, to_row
from serde.relay.ir import Any, Dim, Expr, Function, If, TensorType, TupleGetItem, Var, call
from serde.relay.op.control.body import goes_on
from serde.walk.bodies import only_result
from serde.walk.export_context import Writing

SCALAR = TensorType((), "int64")

OPS.refuses(
    "Custom",
    "_CustomFunction",
    "_NDArray",
    "_Native",
    reason="it runs Python code of the model's author, which no file of a model holds",
    hint="converters= or --converters says what it is, keep_unknown keeps it as it is",
)


@dataclass(frozen=True)
class _Variables:
    """What a subgraph begins with: names and Relay types, slices first, then states."""

    slices: Sequence[TensorType]
    states: Sequence[TensorType]

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        slices = [f"slice{i}" for i in range(len(self.slices))]
        return slices + [f"state{i}" for i in range(len(self.states))]

    @property
    def types(self) -> list[TensorType]:
        """Types of the variables."""
        return [*self.slices, *self.states]


def _add_dependency(ctx: Export, result: Value, unused: Value) -> Value:
    """Return `result`, made to need a variable of the same type that the body does not use."""
    return replace(ctx.emit("_identity_with_attr_like_rhs", result, unused), type=result.type)


def _require_fixed(types: Sequence[TensorType], what: str) -> None:
    """Refuse what may have another shape in each iteration.

    A length that is a symbol is one for all of them, which MXNet finds when a graph is bound.
    """
    for type_ in types:
        if any(isinstance(dim, Any) for dim in type_.shape):
            raise Unsupported(f"{what} of {type_!r}: MXNet allocates it beforehand")


def _inputs(
    body: Subgraph, names: Sequence[str], given: Sequence[Value], inputs: list[Value]
) -> list[int]:
    """Return where among `inputs` each variable of a body is; captured ones are added."""
    indices = []
    known = dict(zip(names, given, strict=True))
    for name in body.variables:
        value = known.get(name, body.captured.get(name))
        if value is None:
            raise Unsupported(f"{name} has no value")
        if name not in known:
            inputs.append(value)
            indices.append(len(inputs) - 1)
        else:
            indices.append(list(names).index(name))
    return indices


def _foreach(
    ctx: Export, data: Sequence[Value], states: Sequence[Value], captures: Sequence[Value],
    body: Function,
    *, stacks: Sequence[TensorType], numbered: bool,
) -> Writing[tuple[Value, ...]]:  # fmt: skip
    """Emit a ``_foreach`` over axis 0 and return the last states and the stacks.

    Args:
        ctx: What a converter may reach.
        data: What is walked along.
        states: What goes in first.
        captures: What every iteration gets alike.
        body: The body: of states, slices and captures, or where `numbered` of the slice that is
            the iteration's number, states and captures.
        stacks: Types of one element of each stack.
        numbered: Whether the body is that of ``serde.loop``.
    """
    kinds = [ctx.type(each) for each in states]
    _require_fixed([*kinds, *stacks], "a state or stack")
    slices = [TensorType(ctx.type(each).shape[1:], ctx.type(each).dtype) for each in data]
    variables = _Variables(slices, kinds)

    def write(own: Sequence[Value]) -> Writing[Sequence[Value]]:
        first = [from_row(ctx, each) for each in own[: len(data)]]
        later = list(own[len(data) :])
        taken = [ctx.captured(each) for each in captures]
        if numbered:
            _, *found = yield from ctx.write_body(body, [*first, *later, *taken])
        else:
            found = [*(yield from ctx.write_body(body, [*later, *first, *taken]))]
        nexts = found[: len(states)]
        nexts = [
            _add_dependency(ctx, replace(value, type=kind), state)
            for value, state, kind in zip(nexts, later, kinds, strict=True)
        ]
        rows = [to_row(ctx, value) for value in found[len(states) :]]
        # A loop that looks at no slice gives the first one back, for MXNet to count by.
        looks = ctx.depend([*rows, *nexts], own[: len(data)])
        echoed = [] if looks else [ctx.emit("_copy", own[0])]
        return [*rows, *echoed, *nexts]

    most = len(stacks) + 1 + len(states)
    inside = yield from ctx.subgraph(variables.names, variables.types, write, most)
    count = len(inside.graph.heads) - len(states)
    lanes = [as_rows(ctx, each) for each in data]
    inputs = [*lanes, *states]
    indices = _inputs(inside, variables.names, inputs, inputs)
    own = inside.variables
    kept = [i for i, name in enumerate(variables.names[: len(data)]) if name in own]
    order = [*kept, *range(len(data), len(inputs))]
    results = ctx.emit_with_bodies(
        "_foreach", [inputs[i] for i in order], [inside], count + len(states),
        num_args=len(order) + 1, num_outputs=count + len(states), num_out_data=count,
        in_data_locs=str([own.index(variables.names[i]) for i in kept]),
        in_state_locs=str([own.index(name) for name in variables.names[len(data) :]]),
        remain_locs=str([i for i, place in enumerate(indices) if place >= len(data) + len(states)]),
    )  # fmt: skip
    return (*results[count:], *results[: len(stacks)])


@OPS.exports("serde.scan")
def export_scan(
    ctx: Export, state: tuple[Value, ...], scanned: tuple[Value, ...], captures: tuple[Value, ...],
    *, body: Function, axes: tuple[int, ...], reverse: tuple[bool, ...], out_axes: tuple[int, ...],
    out_reverse: tuple[bool, ...],
) -> Writing[tuple[Value, ...]]:  # fmt: skip
    """MXNet walks along axis 0 forwards; other axes and directions are changed outside."""
    results = ctx.result_types()
    stacks = results[len(state) :]
    _require_fixed(results[: len(state)], "a state")
    data = [
        ctx.spell(_to_front(axis, backwards), each)
        for each, axis, backwards in zip(
            scanned, axes or (0,) * len(scanned), reverse or (False,) * len(scanned), strict=True
        )
    ]
    ways = list(
        zip(out_axes or (0,) * len(stacks), out_reverse or (False,) * len(stacks), strict=True)
    )
    elements = [
        TensorType(_without(each, axis), each.dtype)
        for each, (axis, _) in zip(stacks, ways, strict=True)
    ]
    length = ctx.type(data[0]).shape[0]
    if length == 0:
        return (*state, *(ctx.const(allocation.zeros(_shape(each)), each.dtype) for each in stacks))
    found = yield from _foreach(ctx, data, state, captures, body, stacks=elements, numbered=False)
    placed = []
    for value, element, (axis, backwards) in zip(found[len(state) :], elements, ways, strict=True):
        whole = from_rows(ctx, value, TensorType((length, *element.shape), element.dtype))
        placed.append(ctx.spell(_from_front(axis % (element.rank + 1), backwards), whole))
    return (*found[: len(state)], *placed)


def _shape(type_: TensorType) -> tuple[int, ...]:
    if type_.concrete_shape is None:
        raise Unsupported(f"a stack of {type_!r}: MXNet allocates it beforehand")
    return type_.concrete_shape


def _without(type_: TensorType, axis: int) -> tuple[Dim, ...]:
    shape = list(type_.shape)
    del shape[axis]
    return tuple(shape)


def _to_front(axis: int, backwards: bool) -> Callable[[Expr], Expr]:
    def build(x: Expr) -> Expr:
        rank = x.checked_type.rank  # type: ignore[union-attr]
        along = axis % rank
        if along:
            x = relay.transpose(x, [along, *(i for i in range(rank) if i != along)])
        return relay.reverse(x, 0) if backwards else x

    return build


def _from_front(axis: int, backwards: bool) -> Callable[[Expr], Expr]:
    def build(x: Expr) -> Expr:
        rank = x.checked_type.rank  # type: ignore[union-attr]
        if backwards:
            x = relay.reverse(x, 0)
        order = list(range(1, rank))
        order.insert(axis, 0)
        return relay.transpose(x, order) if axis else x

    return build


@OPS.exports("serde.loop")
def export_loop(
    ctx: Export,
    limit: Value | None,
    going: Value | None,
    state: tuple[Value, ...],
    captures: tuple[Value, ...],
    *,
    body: Function,
) -> Writing[tuple[Value, ...]]:
    """The limit must be constant, as MXNet allocates for as many iterations.

    A loop that no condition ends is a ``_foreach`` over the numbers of its iterations.
    """
    results = ctx.result_types()
    stacks = results[len(state) :]
    _require_fixed(results[: len(state)], "a state")
    if limit is None or limit.data is None:
        raise Unsupported(
            "a loop without a constant limit",
            hint="MXNet needs the greatest number of iterations: give the loop a limit",
        )
    most = max(int(limit.data.reshape(())), 0)
    begins = going is None or (going.data is not None and bool(going.data.reshape(())))
    never = going is not None and going.data is not None and not begins
    elements = [TensorType(each.shape[1:], each.dtype) for each in stacks]
    if most == 0 or never:
        return (*state, *(ctx.const(allocation.zeros((0, *_shape(x))), x.dtype) for x in elements))
    if begins and goes_on(body):
        numbers = ctx.const(allocation.arange(most))
        found = yield from _foreach(
            ctx, [numbers], state, captures, body, stacks=elements, numbered=True
        )
        whole = [
            from_rows(ctx, value, TensorType((most, *each.shape), each.dtype))
            for value, each in zip(found[len(state) :], elements, strict=True)
        ]
        return (*found[: len(state)], *whole)
    start = ctx.const(True) if going is None else going
    return (yield from _while_loop(ctx, most, start, state, captures, body, elements))


def _while_loop(
    ctx: Export, most: int, going: Value, states: Sequence[Value], captures: Sequence[Value],
    body: Function, elements: Sequence[TensorType],
) -> Writing[tuple[Value, ...]]:  # fmt: skip
    """Emit a ``_while_loop`` of number, condition and states; stacks are cut by the number."""
    kinds = [ctx.type(each) for each in states]
    _require_fixed([*kinds, *elements], "a state or stack")
    if ctx.np_shape:
        raise Unsupported(
            "MXNet 1.9.1 runs no _while_loop with NumPy's shapes",
            hint="give every input and output of the model an axis",
        )
    real = TensorType((), "float32")
    variables = _Variables([], [SCALAR, real, *kinds])
    names, count = variables.names, len(variables.names)

    def step(own: Sequence[Value]) -> Writing[Sequence[Value]]:
        number, _, *later = own
        taken = [ctx.captured(each) for each in captures]
        again, *found = yield from ctx.write_body(body, [number, *later, *taken])
        following = ctx.spell(lambda i: relay.add(i, relay.const(1, "int64")), number)
        nexts = [following, ctx.cast(again, "float32"), *found[: len(states)]]
        nexts = [
            _add_dependency(ctx, replace(value, type=kind), state)
            for value, state, kind in zip(nexts, own, variables.types, strict=True)
        ]
        return [*found[len(states) :], *nexts]

    asks = ctx.identity(["state1"], [real])
    inside = yield from ctx.subgraph(names, variables.types, step, len(elements) + count)
    inputs = [ctx.const(0, "int64"), ctx.cast(going, "float32"), *states]
    asked = _inputs(asks, names, inputs[:count], inputs)
    taken = _inputs(inside, names, inputs[:count], inputs)
    results = ctx.emit_with_bodies(
        "_while_loop", inputs, [asks, inside], len(elements) + count, num_args=len(inputs) + 2,
        num_outputs=len(elements) + count, num_out_data=len(elements), max_iterations=most,
        cond_input_locs=str(asked), func_input_locs=str(taken),
        func_var_locs=str([inside.variables.index(name) for name in names]),
    )  # fmt: skip
    stacks, (number, _, *last) = results[: len(elements)], results[len(elements) :]
    steps = ctx.const(allocation.arange(most), "float32")
    done = ctx.emit("broadcast_lesser", steps, ctx.cast(replace(number, type=SCALAR), "float32"))
    cut = []
    for stack, element in zip(stacks, elements, strict=True):
        kept = ctx.emit("_contrib_boolean_mask", stack, done, axis=0)
        cut.append(kept if element.shape else ctx.emit("Reshape", kept, shape=(-1,)))
    return (*last, *cut)


Indices = tuple[int, ...]


def _variable(name: str, x: Expr) -> Var:
    return Var(name, x.checked_type)


def _truth(ctx: Import, x: Expr) -> Expr:
    return relay.cast(relay.reshape(x, ()), "bool")


@OPS.imports("_foreach", ignored=("num_args", "num_outputs"))
def import_foreach(
    ctx: Import,
    *inputs: Expr,
    num_out_data: int,
    in_data_locs: Indices,
    in_state_locs: Indices,
    remain_locs: Indices,
) -> Sequence[Expr]:
    """A slice of a vector has one axis of length 1. MXNet gives the stacks first."""
    walked, count = len(in_data_locs), len(in_data_locs) + len(in_state_locs)
    data = [relay.reshape(x, (-1, 1)) if ctx.type(x).rank == 1 else x for x in inputs[:walked]]
    states, captures = inputs[walked:count], inputs[count:]
    if any(not ctx.type(x).rank for x in data):
        raise Unsupported("a scalar has no slices")
    slices = [
        Var(f"slice{i}", TensorType(ctx.type(x).shape[1:], ctx.type(x).dtype))
        for i, x in enumerate(data)
    ]
    carried = [_variable(f"state{i}", x) for i, x in enumerate(states)]
    taken = [_variable(f"captured{i}", x) for i, x in enumerate(captures)]
    groups = [(slices, in_data_locs), (carried, in_state_locs), (taken, remain_locs)]
    found = ctx.subgraph(ctx.graph(0), *arrange(len(inputs), groups))
    if not 0 <= num_out_data == len(found) - len(states):
        raise Unsupported(f"a body with {len(found)} results for {len(states)} states")
    results = relay.Tuple([*found[num_out_data:], *found[:num_out_data]])
    body = Function([*carried, *slices, *taken], results)
    scan = call("serde.scan", tuple(states), tuple(data), tuple(captures), body=body)
    fields = [TupleGetItem(scan, i) for i in range(len(found))]
    return [*fields[len(states) :], *fields[: len(states)]]


@OPS.imports("_cond", ignored=("num_args",))
def import_cond(
    ctx: Import,
    *inputs: Expr,
    num_outputs: int,
    cond_input_locs: Indices,
    then_input_locs: Indices,
    else_input_locs: Indices,
) -> Sequence[Expr]:
    indices = (cond_input_locs, then_input_locs, else_input_locs)
    conditions, *branches = (
        ctx.subgraph(ctx.graph(i), *choose(inputs, own)) for i, own in enumerate(indices)
    )
    condition = only_result(conditions)
    if any(len(branch) != num_outputs for branch in branches):
        found = " and ".join(str(len(branch)) for branch in branches)
        raise Unsupported(f"expected {num_outputs} results of both branches, found {found}")
    one, two = (relay.Tuple(list(branch)) for branch in branches)
    chosen = If(_truth(ctx, condition), one, two)
    chosen.type = one.type
    return [TupleGetItem(chosen, i) for i in range(num_outputs)]


@OPS.imports("_while_loop", ignored=("num_args", "num_outputs"))
def import_while_loop(
    ctx: Import,
    *inputs: Expr,
    num_out_data: int,
    max_iterations: int,
    cond_input_locs: Indices,
    func_input_locs: Indices,
    func_var_locs: Indices,
) -> Sequence[Expr]:
    """MXNet's stacks are as long as there are iterations at most, so they go round as states."""
    if any(not 0 <= place < len(func_input_locs) for place in func_var_locs):
        raise Unsupported(f"func_var_locs={func_var_locs} for {len(func_input_locs)} inputs")
    names = [func_input_locs[place] for place in func_var_locs]
    states = choose(inputs, names)
    choose(inputs, (*func_input_locs, *cond_input_locs))
    if len(set(names)) < len(names):
        raise Unsupported(f"func_var_locs={func_var_locs} name a state twice")
    others = [place for place in range(len(inputs)) if place not in names]
    carried = {place: _variable(f"state{place}", inputs[place]) for place in names}
    taken = {place: _variable(f"captured{place}", inputs[place]) for place in others}
    inside: dict[int, Expr] = {**carried, **taken}
    number = Var("number", SCALAR)
    found = ctx.subgraph(ctx.graph(1), *(inside[place] for place in func_input_locs))
    rows, nexts = found[:num_out_data], found[num_out_data:]
    if not 0 <= num_out_data == len(found) - len(names):
        raise Unsupported(f"a body with {len(found)} results for {len(names)} states")
    following = {**taken, **dict(zip(names, nexts, strict=True))}
    asked = [following[place] for place in cond_input_locs]
    again = only_result(ctx.subgraph(ctx.graph(0), *asked))
    begins = only_result(ctx.subgraph(ctx.graph(0), *choose(inputs, cond_input_locs)))
    stacks = [
        Var(f"stack{i}", TensorType((max_iterations, *ctx.type(row).shape), ctx.type(row).dtype))
        for i, row in enumerate(rows)
    ]
    written = [
        relay.where(_is_now(number, max_iterations, ctx.type(row).rank), _row(row), stack)
        for row, stack in zip(rows, stacks, strict=True)
    ]
    results = relay.Tuple([_truth(ctx, again), *nexts, *written])
    body = Function([number, *carried.values(), *stacks, *taken.values()], results)
    blank = [relay.zeros(ctx.static_shape(stack), ctx.type(stack).dtype) for stack in stacks]
    loop = call(
        "serde.loop",
        relay.const(max_iterations, "int64"),
        _truth(ctx, begins),
        (*states, *blank),
        tuple(inputs[place] for place in others),
        body=body,
    )
    fields = [TupleGetItem(loop, i) for i in range(len(states) + len(stacks))]
    return [*fields[len(states) :], *fields[: len(states)]]


def _row(row: Expr) -> Expr:
    return relay.expand_dims(row, 0)


def _is_now(number: Expr, most: int, rank: int) -> Expr:
    """Return where the row of an iteration is in a stack of rows of `rank`."""
    indices = relay.Constant(allocation.arange(most).reshape(-1, *[1] * rank))
    return relay.equal(indices, number)
