"""Regions inside of what stays on the host: in branches of conditionals and in bodies of loops.

Each is partitioned as a model of its own, whose inputs are what it reads from around it. Relay's
interpreter, which runs the host, calls the regions in it where it comes by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

from serde.core import Weight
from serde.relay.ir import IRModule, ModelMeta, RelayModel, free_vars, rewrite, value_types
from serde.relay.ir.bodies import all_nodes, carried, map_bodies
from serde.relay.ir.expr import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    Var,
)
from serde.relay.ir.foreign import REGION_FRAMEWORK, Foreign, is_foreign
from serde.relay.ir.leaves import as_leaves
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.transform.dead_state import without_dead_states
from serde.target.cutting import keep
from serde.target.units import Unit

__all__ = ["Inside", "enter", "outline"]

Inside: TypeAlias = tuple[Expr, list[RelayModel]]
"""What a conditional or loop of the host became, and those of its parts that have regions."""


def enter(
    unit: Unit, model: RelayModel, partition: Callable[[RelayModel, bool], RelayModel | None]
) -> Inside:
    """Return what a unit became.

    `partition` returns a part in regions, None where it has none. It is told whether the part sees
    the weights around it.
    """
    leaves = (leaf for leaf in unit.operands if not isinstance(leaf, (Constant, Var)))
    memo: dict[Expr, Expr] = {x: Var(f"branch.i{i}", x.type) for i, x in enumerate(leaves)}
    back: dict[Expr, Expr] = {variable: leaf for leaf, variable in memo.items()}
    root = rewrite(unit.root, keep, memo)
    parts: list[RelayModel] = []
    fresh: list[Var] = []
    captured, is_open = find_captured(root), not isinstance(root, Call)

    def divide(function: Function) -> Function:
        weights = _weights_in(function, captured, model)
        mod = IRModule({"main": function}, checked=True)
        found = partition(RelayModel(mod, weights, ModelMeta()), is_open)
        if found is None:
            return function
        if is_open:
            parts.append(found)
            return function.evolve(body=found.main.body)
        # A body is closed: weights that it did not have are captured, too.
        new = [each for each in found.main.params if each not in set(function.params)]
        parts.append(found.evolve(params={x.name_hint: found.params[x.name_hint] for x in new}))
        fresh.extend(new)
        return function.evolve(params=[*function.params, *new], body=found.main.body)

    def divide_open(body: Expr) -> Expr:
        return divide(Function(free_vars(body), body)).body

    def enter_function(_node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Let) or not isinstance(new.value, Function):
            return new
        value = new.value.evolve(body=divide_open(new.value.body))
        return Let(new.var, value, new.body, new.span)

    if isinstance(root, If):
        then, other = divide_open(root.true_branch), divide_open(root.false_branch)
        made: Expr = If(root.cond, then, other, root.span)
    elif isinstance(root, Call) and carried(root) and not is_foreign(root):
        attrs = {n: divide(x) if isinstance(x, Function) else x for n, x in root.attrs.items()}
        args = [*root.args[:-1], Tuple([*as_leaves(root.args[-1:]), *fresh])]
        made = Call(root.op, args if fresh else root.args, Attrs(attrs), span=root.span)
    elif isinstance(root, Let):
        made = rewrite(root, enter_function)
    else:
        return unit.root, []
    made = rewrite(made, keep, back)
    made.type = unit.root.type
    return made, parts


def _weights_in(
    function: Function, captured: Mapping[Expr, Expr], model: RelayModel
) -> dict[str, Weight]:
    """Return the weights among parameters of a body, of which each has a name of its own."""
    params = model.main.params
    outer = {x: model.params[x.name_hint] for x in params if x.name_hint in model.params}
    counts = Counter(each.name_hint for each in function.params)
    plain = (each for each in function.params if counts[each.name_hint] == 1)
    around = {each.name_hint: captured.get(each, each) for each in plain}
    return {name: outer[x] for name, x in around.items() if isinstance(x, Var) and x in outer}


def find_captured(root: Expr) -> dict[Expr, Expr]:
    """Return what parameters of bodies stand for in every iteration, seen from around all loops."""
    found: dict[Expr, Expr] = {}
    pairs = (
        (param, value)
        for node in all_nodes(root)
        for body in carried(node)
        if isinstance(node, Call) and isinstance(node.args[-1], Tuple) and not is_foreign(node)
        for param, value in zip(body.params[::-1], node.args[-1].fields[::-1], strict=False)
    )
    for param, value in pairs:  # A body of two loops may stand for two values: for none, then.
        found[param] = value if found.get(param, value) is value else param
    for each in found:
        while found.get(found[each], found[each]) is not found[each]:
            found[each] = found[found[each]]
    return found


def outline(part: RelayModel, take: Callable[[Call], str]) -> RelayModel:
    """Return a part of the host in which calls of regions are operators that its runner has.

    `take` notes the call of a region, on its weights alone, and returns the region's name, if any.
    """
    held = [each for each in part.main.params if each.name_hint in part.params]
    weights: dict[Expr, Expr] = {each: each for each in held}
    for param, value in find_captured(part.main).items():
        if isinstance(value, Constant) or value in weights:
            weights[param] = value

    def replace(_node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, GlobalVar):
            return new
        fed = [arg for arg in new.args if not isinstance(arg, Constant) and arg not in weights]
        known = [Tuple(()) if arg in fed else weights.get(arg, arg) for arg in new.args]
        name = take(Call(new.op, known))
        results = tuple(each for each in value_types(new.type) if isinstance(each, TensorType))
        if not name:
            return new
        call = Foreign(framework=REGION_FRAMEWORK, name=name, results=results).build(fed, new.span)
        single = isinstance(new.type, TupleType) and len(results) == 1
        return Tuple((call,)) if single else call

    def inside(function: Function) -> Function:
        return without_dead_states(function.evolve(body=rewrite(function.body, replace)))

    main = inside(map_bodies(part.main, inside))
    lost = {each.name_hint for each in set(held).difference(free_vars(main.body))}
    main = main.evolve(params=[each for each in main.params if each.name_hint not in lost])
    params = {name: weight for name, weight in part.params.items() if name not in lost}
    return part.evolve(mod=part.mod.with_main(main), params=params)
