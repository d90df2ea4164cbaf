"""Regions inside of what stays on the host: in branches of conditionals and in bodies of loops.

Each is partitioned as a model of its own, whose inputs are what it reads from around it. Relay's
interpreter, which runs the host, calls the regions in it where it comes by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from serde.relay.ir import IRModule, ModelMeta, RelayModel, free_vars, rewrite, value_types
from serde.relay.ir.bodies import carried, map_bodies
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, GlobalVar, If, Tuple, Var
from serde.relay.ir.foreign import REGION_FRAMEWORK, Foreign, is_foreign
from serde.relay.ir.types import TensorType, TupleType
from serde.target.cutting import keep
from serde.target.units import Unit

__all__ = ["Inside", "enter", "outline"]

Inside: TypeAlias = tuple[Expr, list[RelayModel]]
"""What a conditional or loop of the host became, and those of its parts that have regions."""


def enter(
    unit: Unit, model: RelayModel, partition: Callable[[RelayModel], RelayModel | None]
) -> Inside:
    """Return what a unit became; `partition` returns a part in regions, None where it has none."""
    root, parts = unit.root, []
    leaves = (leaf for leaf in unit.operands if not isinstance(leaf, (Constant, Var)))
    memo: dict[Expr, Expr] = {x: Var(f"branch.i{i}", x.type) for i, x in enumerate(leaves)}
    back: dict[Expr, Expr] = {variable: leaf for leaf, variable in memo.items()}

    def divide(function: Function) -> Function:
        seen = [each for each in function.params if isinstance(root, If) and each not in back]
        names = [each.name_hint for each in seen if each.name_hint in model.params]
        weights = {name: model.params[name] for name in names}
        mod = IRModule({"main": function}, checked=True)
        found = partition(RelayModel(mod, weights, ModelMeta()))
        parts.extend([] if found is None else [found])
        return function if found is None else function.evolve(body=found.main.body)

    if isinstance(root, If):
        bodies = [rewrite(each, keep, dict(memo)) for each in (root.true_branch, root.false_branch)]
        found = [divide(Function(free_vars(each), each)).body for each in bodies]
        then, other = (rewrite(each, keep, dict(back)) for each in found)
        made: Expr = If(root.cond, then, other, root.span)
    elif isinstance(root, Call) and carried(root) and not is_foreign(root):
        attrs = {n: divide(x) if isinstance(x, Function) else x for n, x in root.attrs.items()}
        made = Call(root.op, root.args, Attrs(attrs), span=root.span)
    else:
        return root, []
    made.type = root.type
    return made, parts


def outline(part: RelayModel, take: Callable[[Call], str]) -> RelayModel:
    """Return a part of the host in which calls of regions are operators that its runner has.

    `take` notes the call of a region, on its weights alone, and returns the region's name, if any.
    """
    weights = {each for each in part.main.params if each.name_hint in part.params}

    def replace(_node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, GlobalVar):
            return new
        fed = [arg for arg in new.args if not isinstance(arg, Constant) and arg not in weights]
        name = take(Call(new.op, [Tuple(()) if arg in fed else arg for arg in new.args]))
        results = tuple(each for each in value_types(new.type) if isinstance(each, TensorType))
        if not name:
            return new
        call = Foreign(framework=REGION_FRAMEWORK, name=name, results=results).build(fed, new.span)
        single = isinstance(new.type, TupleType) and len(results) == 1
        return Tuple((call,)) if single else call

    def inside(function: Function) -> Function:
        return function.evolve(body=rewrite(function.body, replace))

    main = inside(map_bodies(part.main, inside))
    lost = {each.name_hint for each in weights.difference(free_vars(main.body))}
    main = main.evolve(params=[each for each in main.params if each.name_hint not in lost])
    params = {name: weight for name, weight in part.params.items() if name not in lost}
    return part.evolve(mod=part.mod.with_main(main), params=params)
