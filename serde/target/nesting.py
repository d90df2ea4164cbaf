"""Regions inside of what stays on the host: in branches of conditionals and in bodies of loops.

A branch is partitioned as a model of its own, whose inputs are what it reads from around it; so is
a body. The host's interpreter calls the regions in it where it comes by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from serde.core import dataclass
from serde.relay.ir import IRModule, ModelMeta, RelayModel, free_vars, rewrite, value_types
from serde.relay.ir.bodies import carried, map_bodies
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, GlobalVar, If, Tuple, Var
from serde.relay.ir.foreign import REGION_FRAMEWORK, Foreign, foreign_calls, is_foreign
from serde.relay.ir.types import TensorType, TupleType
from serde.target.cutting import keep
from serde.target.units import Unit

__all__ = ["Inside", "Sub", "called_inside", "enter", "outline"]


@dataclass(frozen=True, slots=True)
class Sub:
    """A branch or a body as a model of its own.

    Attributes:
        model: The model.
        leaves: What its inputs stand for, where they are not themselves.
    """

    model: RelayModel
    leaves: dict[Expr, Expr]


@dataclass(frozen=True, slots=True)
class Inside:
    """What a conditional or a loop became.

    Attributes:
        root: The expression, on what it reads from around it.
        parts: Its branches in regions, whose weights it reads, too.
    """

    root: Expr
    parts: tuple[RelayModel, ...]


Partitioned = Callable[[RelayModel], RelayModel | None]
"""Returns a model in regions, None where there are none."""

Bind = Callable[[RelayModel], Function]
"""Returns ``main`` of a model in regions, the weights of which are constants of the regions."""


def enter(unit: Unit, model: RelayModel, partition: Partitioned, bind: Bind) -> Inside | None:
    """Return a conditional or loop with regions inside; None where there are none.

    Args:
        unit: A unit of the host.
        model: The model.
        partition: Partitions a branch or body.
        bind: Returns a partitioned body whose weights are constants.
    """
    root = unit.root
    if isinstance(root, If):
        branches, parts = [], []
        for branch in (root.true_branch, root.false_branch):
            sub = _as_model(branch, unit.operands, model)
            found = partition(sub.model)
            if found is not None:
                parts.append(found)
                branch = rewrite(found.main.body, keep, dict(sub.leaves))
            branches.append(branch)
        if not parts:
            return None
        made = If(root.cond, *branches, root.span)
        made.type = root.type
        return Inside(made, tuple(parts))
    if not isinstance(root, Call) or is_foreign(root) or not carried(root):
        return None
    bodies = {}
    for body in carried(root):
        meta = ModelMeta(tuple(param.name_hint for param in body.params))
        found = partition(RelayModel(IRModule({"main": body}, checked=True), {}, meta))
        if found is not None:
            bodies[body] = bind(found)
    if not bodies:
        return None
    attrs = {
        name: bodies.get(each, each) if isinstance(each, Function) else each
        for name, each in root.attrs.items()
    }
    call = Call(root.op, root.args, Attrs(attrs), span=root.span)
    call.type = root.type
    return Inside(call, ())


def _as_model(branch: Expr, operands: Sequence[Expr], model: RelayModel) -> Sub:
    memo: dict[Expr, Expr] = {}
    names: Iterator[str] = (f"branch_i{i}" for i in range(len(model.params) + len(operands)))
    free = (name for name in names if name not in model.params)
    for leaf in operands:
        if not isinstance(leaf, (Constant, Var)):
            memo[leaf] = Var(next(free), leaf.type)
    leaves = {variable: leaf for leaf, variable in memo.items()}
    body = rewrite(branch, keep, memo)
    params = free_vars(body)
    held = model.params
    weights = {each.name_hint: held[each.name_hint] for each in params if each.name_hint in held}
    meta = ModelMeta(tuple(p.name_hint for p in params if p.name_hint not in weights))
    mod = IRModule({"main": Function(params, body)}, checked=True)
    return Sub(RelayModel(mod, weights, meta), leaves)


def outline(part: RelayModel, take: Callable[[Call], str]) -> RelayModel:
    """Return a part of the host in which calls of regions are operators that its runner has.

    Args:
        part: The part.
        take: Notes the call of a region, on its weights and on nameless variables for all else,
            and returns the name of the region; empty where it is no such call.
    """
    weights = {each for each in part.main.params if each.name_hint in part.params}

    def replace(_node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, GlobalVar):
            return new
        own = [isinstance(arg, Constant) or arg in weights for arg in new.args]
        pairs = list(zip(new.args, own, strict=True))
        name = take(Call(new.op, [arg if held else Var("", arg.type) for arg, held in pairs]))
        if not name:
            return new
        results = tuple(each for each in value_types(new.type) if isinstance(each, TensorType))
        node = Foreign(framework=REGION_FRAMEWORK, name=name, results=results)
        call = node.build([arg for arg, held in pairs if not held], new.span)
        single = isinstance(new.type, TupleType) and len(results) == 1
        return Tuple((call,)) if single else call

    def inside(function: Function) -> Function:
        return function.evolve(body=rewrite(function.body, replace))

    main = inside(map_bodies(part.main, inside))
    used = set(free_vars(main.body))
    gone = {each.name_hint for each in weights - used}
    main = main.evolve(params=[each for each in main.params if each.name_hint not in gone])
    params = {name: weight for name, weight in part.params.items() if name not in gone}
    mod = part.mod.with_main(main)
    return part.evolve(mod=mod, params=params)


def called_inside(part: RelayModel) -> Iterator[tuple[str, list[TensorType], list[TensorType]]]:
    """Yield the regions that a part of the host calls: names, and types of what goes in and out."""
    for call in foreign_calls(part):
        node = Foreign.of(call)
        if node.framework == REGION_FRAMEWORK:
            (given,) = call.args
            types = [each for each in value_types(given.type) if isinstance(each, TensorType)]
            yield node.name, types, list(node.results)
