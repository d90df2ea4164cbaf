"""Branches, loops and layers of users."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.neuralnetwork.import_context import number
from serde.coreml.neuralnetwork.message_view import MessageView, layer_outputs, layers_of
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, If, TensorType, Tuple, TupleGetItem, Type, Var, call
from serde.relay.ir.dims import Any as AnyDim
from serde.relay.ir.visit import free_vars
from serde.walk.assembly import closed_over
from serde.walk.holes import Hole, Incomplete

_MOST_ITERATIONS = 2**63 - 1


@LAYERS.imports("custom", ignored=["weights", "parameters", "description"])
def import_custom(ctx: Import, *xs: Expr, class_name: str = "") -> Expr:
    """What it does is in the code of an app."""
    raise Unsupported(f"a layer of the user's class {class_name}")


def _holds(ctx: Import, condition: Expr) -> Expr:
    """Return whether a tensor of one element is not about zero."""
    found = relay.greater(relay.abs(condition), number(1e-6))
    return relay.reshape(found, ()) if ctx.type(condition).rank else found


@LAYERS.imports("branch")
def import_branch(
    ctx: Import,
    condition: Expr,
    *,
    if_branch: MessageView | None = None,
    else_branch: MessageView | None = None,
) -> list[Expr]:
    """Tensors that both branches give, or that one gives anew, are those of the whole after it.

    Where the iteration of a loop may end in a branch, nothing comes after it but the next one.
    """
    if if_branch is None:
        raise Unsupported("a branch without layers")
    before = dict(ctx.values())
    one, other = ctx.branch(if_branch), ctx.branch(else_branch)
    names = [
        name
        for name in (before if ctx.forks else one)
        if name in other and not (one[name] is before.get(name) is other[name])
    ]
    for name in names:
        types = one[name].type, other[name].type
        if not all(isinstance(each, TensorType) for each in types) or types[0] != types[1]:
            raise Unsupported(f"{name} is {types[0]!r} in one branch and {types[1]!r} in the other")
    if not names:
        return []
    found = If(
        _holds(ctx, condition),
        Tuple([one[name] for name in names]),
        Tuple([other[name] for name in names]),
    )
    for index, name in enumerate(names):
        ctx.define(name, TupleGetItem(found, index))
    return []


@LAYERS.imports("loopBreak")
def import_loop_break(ctx: Import) -> list[Expr]:
    ctx.end(again=False)
    return []


@LAYERS.imports("loopContinue")
def import_loop_continue(ctx: Import) -> list[Expr]:
    ctx.end(again=True)
    return []


@LAYERS.imports("loop")
def import_loop(
    ctx: Import,
    count: Expr | None = None,
    *,
    max_loop_iterations: int = 0,
    condition_var: str = "",
    condition_network: MessageView | None = None,
    body_network: MessageView | None = None,
) -> list[Expr]:
    """Tensors that are written again, by copies, are the states of the loop.

    Whether to go on is one more tensor of the body: where that breaks the loop, its condition is
    not asked. Lengths of states that a turn changes are open, for which it is read once more.
    """
    if body_network is None:
        raise Unsupported("a loop without layers")
    if not condition_var:
        condition_network = None
    before = dict(ctx.values())
    parts = [part for part in (condition_network, body_network) if part is not None]
    outputs = {name for part in parts for layer in layers_of(part) for name in layer_outputs(layer)}
    names = [name for name in before if name in outputs]
    values: Mapping[str, Expr] = before
    going = None
    if condition_network is not None:
        values = ctx.network(condition_network)
        going = ctx.fold(_holds(ctx, _find_tensor(values, condition_var)))
    turn = _Turn(ctx, body_network, condition_network, condition_var, before, outputs)
    types = [_find_tensor(before, name).type for name in names]
    types = _open_changes(names, types, [values[name] for name in names])
    states, captured, results = turn.settle(names, types)
    iteration = Var("iteration", TensorType((), "int64"))
    free = set(free_vars(Tuple(results)))
    taken = {value: var for value, var in captured.items() if var in free}
    function, arguments = closed_over([iteration, *states], taken, results)
    limit = None
    if count is not None:
        limit = relay.cast(relay.reshape(ctx.integers(count), ()), "int64")
    elif max_loop_iterations > _MOST_ITERATIONS:
        raise Unsupported(f"a loop of {max_loop_iterations} iterations")
    elif max_loop_iterations:
        limit = relay.Constant(np.int64(max_loop_iterations))
    elif going is None:
        return []
    entering = tuple(values[name] for name in names)
    found = call("serde.loop", limit, going, entering, tuple(arguments), body=function)
    for index, name in enumerate(names):
        ctx.define(name, TupleGetItem(found, index))
    return []


@dataclass(frozen=True)
class _Turn:
    """The networks of a loop, what there is before it, and all names that they give tensors."""

    ctx: Import
    body: MessageView
    asks: MessageView | None
    condition: str
    before: Mapping[str, Expr]
    outputs: Collection[str]

    def settle(
        self, names: list[str], types: list[Type | None]
    ) -> tuple[list[Var], dict[Expr, Var], list[Expr]]:
        """Return states, what is captured, and what a turn gives of them, of the same types."""
        while True:
            states = [Var(f"state{i}", type_) for i, type_ in enumerate(types)]
            inner = dict(zip(names, states, strict=True))
            captured = _make_captured_params(self.before, inner)
            results = self.read(inner, captured)
            found = _open_changes(names, types, results[1:])
            if all(one is other for one, other in zip(found, types, strict=True)):
                return states, captured, results
            types = found

    def read(self, states: Mapping[str, Expr], captured: Mapping[Expr, Var]) -> list[Expr]:
        """Return whether there is another turn, and the states after one."""
        ctx, names = self.ctx, list(states)
        around = {name: captured.get(value, value) for name, value in self.before.items()}
        flag, goes_on = _make_unused_name({*self.before, *self.outputs}), relay.const(True, "bool")
        after = ctx.network(self.body, {**around, **states, flag: goes_on}, flag=flag)
        again = after[flag]
        if self.asks is None:
            return [again, *(after[name] for name in names)]
        asked = ctx.network(self.asks, {**around, **{name: after[name] for name in names}})
        holds = _holds(ctx, _find_tensor(asked, self.condition))
        results = [holds, *(asked[name] for name in names)]
        if again is goes_on:
            return results
        broken = [relay.const(False, "bool"), *(after[name] for name in names)]
        chosen = If(again, Tuple(results), Tuple(broken))
        return [ctx.fold(TupleGetItem(chosen, index)) for index in range(len(results))]


def _open_changes(
    names: list[str], types: list[Type | None], values: Sequence[Expr]
) -> list[Type | None]:
    """Return types of states with each length open that is another in a value."""
    found: list[Type | None] = []
    for name, type_, value in zip(names, types, values, strict=True):
        other = value.type
        if not isinstance(type_, TensorType) or not isinstance(other, TensorType):
            raise Unsupported(f"{name} changes from {type_!r} to {other!r}")
        if type_.dtype != other.dtype or type_.rank != other.rank:
            raise Unsupported(f"{name} changes from {type_!r} to {other!r}")
        changed = [
            not isinstance(one, AnyDim) and one != new
            for one, new in zip(type_.shape, other.shape, strict=True)
        ]
        opened = [AnyDim() if each else dim for each, dim in zip(changed, type_.shape, strict=True)]
        found.append(TensorType(opened, type_.dtype) if any(changed) else type_)
    return found


def _find_tensor(values: Mapping[str, Expr], name: str) -> Expr:
    """Return the tensor of a name."""
    if name not in values:
        raise Unsupported(f"no tensor is called {name!r}")
    if isinstance(values[name], Hole):
        raise Incomplete
    return values[name]


def _make_unused_name(names: Collection[str]) -> str:
    """Return a name that no tensor has."""
    name = "goes_on"
    while name in names:
        name += "_"
    return name


def _make_captured_params(
    values: Mapping[str, Expr], states: Mapping[str, Expr]
) -> dict[Expr, Var]:
    """Return a parameter for each tensor from around a loop."""
    kept = [
        value
        for name, value in values.items()
        if name not in states
        and not isinstance(value, (Constant, Hole))
        and isinstance(value.type, TensorType)
    ]
    return {value: Var(f"captured{i}", value.type) for i, value in enumerate(kept)}


@LAYERS.exports("cond")
def export_cond(ctx: Export, pred: Value) -> list[Value]:
    """Both branches write tensors of the same names."""
    found = [Value(ctx.reserve(), type_) for type_ in ctx.types]
    names = [each.name for each in found]
    for network in ctx.blocks:
        given = list(zip(network.outputs, names, strict=True))
        network.layers += [ctx.copied(own, name) for own, name in given]
        network.outputs[:] = names
    branches = {"if_branch": ctx.blocks[0], "else_branch": ctx.blocks[1]}
    ctx.writing("branch", [pred], names, **branches)
    return found


@LAYERS.exports("while_loop")
def export_while_loop(ctx: Export, loop_vars: tuple[Value, ...]) -> list[Value]:
    """The variables are tensors that are there before, and that the body writes again."""
    condition, body = ctx.blocks
    names = list(body.inputs)
    condition.rename(dict(zip(condition.inputs, names, strict=True)))
    for value, name in zip(loop_vars, names, strict=True):
        ctx.append(ctx.copied(ctx.name_of(value), name))
    given = list(zip(body.outputs, names, strict=True))
    body.layers += [ctx.copied(own, name) for own, name in given]
    body.outputs[:] = names
    parts = {"condition_network": condition, "body_network": body}
    ctx.writing("loop", [], names, condition_var=condition.outputs[0], **parts)
    return [Value(name, type_) for name, type_ in zip(names, ctx.types, strict=True)]
