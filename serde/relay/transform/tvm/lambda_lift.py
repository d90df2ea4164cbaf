"""Local functions as functions of the module, what they take from around them as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Let, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import FuncType
from serde.relay.ir.visit import bound_vars, children, free_vars, rewrite
from serde.relay.transform.base import Pass
from serde.relay.transform.tvm.fusion_graph import OPAQUE_ATTRS, parts, walk

__all__ = ["LambdaLift"]


@dataclass(frozen=True)
class LambdaLift(Pass):
    """Make global functions of local ones that are only ever called.

    A function that a let binds, or that is called where it stands, becomes a function of the
    module; variables it takes from around it become its first parameters, and calls hand them
    over. Closures that are values (results, arguments, fields) stay, as do functions with
    ``Primitive``, ``Composite``, ``Compiler`` or ``Extern``.
    """

    name: ClassVar[str] = "LambdaLift"

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Lift out of every function of the module."""
        taken = {variable.name_hint for variable in mod.functions}
        functions: dict[GlobalVar, Function] = {}
        changed = False
        for variable, function in mod.functions.items():
            lifted = _find_lifted(function, variable.name_hint, taken)
            functions[variable] = _Lowering(lifted, {}).function(function)
            for each in lifted.values():
                functions[each.variable] = each.function(lifted)
            changed |= bool(lifted)
        return (mod.with_functions(functions), True) if changed else (mod, False)


@dataclass(eq=False)
class _Lifted:
    """A local function that becomes global.

    Attributes:
        literal: The function as it is.
        owner: The variable a let binds it to, or None where it is called as it stands.
        bound: Variables that it binds.
        captures: Variables from around it, those of functions it calls included.
        variable: Its global name.
    """

    literal: Function
    owner: Var | None
    variable: GlobalVar
    bound: set[Var]
    captures: dict[Var, None] = field(default_factory=dict)

    def function(self, lifted: dict[Expr, _Lifted]) -> Function:
        """Return the global function; none of its variables is another function's."""
        literal = self.literal
        names = {variable: _fresh(variable) for variable in self.bound}
        names |= {each: Var(each.name_hint, each.type, each.span) for each in self.captures}
        body = _Lowering(lifted, names).expression(literal.body)
        params = [names[variable] for variable in (*self.captures, *literal.params)]
        return Function(
            params,
            body,
            literal.ret_type,
            type_params=literal.type_params,
            attrs=literal.attrs,
            span=literal.span,
        )


def _fresh(variable: Var) -> Var:
    fresh = Var(variable.name_hint, variable.type_annotation, variable.span)
    fresh.type = variable.type
    return fresh


def _find_lifted(function: Function, name: str, taken: set[str]) -> dict[Expr, _Lifted]:
    """Return the functions to lift, by themselves and by the variable that holds them."""
    if any(key in function.attrs for key in OPAQUE_ATTRS):
        return {}
    order = walk(function)
    candidates = _only_called(order, function)
    found: dict[Expr, _Lifted] = {}
    for literal, owner in candidates.items():
        hint = "lambda" if owner is None else owner.name_hint
        variable = GlobalVar(_choose_unused_name(f"{name}_{hint}", taken))
        found[literal] = _Lifted(literal, owner, variable, bound_vars(walk(literal)))
    by_owner: dict[Expr, _Lifted] = {
        each.owner: each for each in found.values() if each.owner is not None
    }
    _capture(found.values(), by_owner)
    for each in found.values():
        params = [*each.captures, *each.literal.params]
        types = [param.type for param in params if param.type is not None]
        result = each.literal.ret_type or each.literal.body.type
        if result is not None and len(types) == len(params):
            each.variable.type = FuncType(types, result)
    return found


def _only_called(order: list[Expr], root: Function) -> dict[Function, Var | None]:
    """Return the literals that are called and never used otherwise, with what binds them."""
    owners: dict[Expr, list[Let]] = {}
    values: set[Expr] = {root}
    called: set[Expr] = set()
    for node in order:
        if isinstance(node, Let):
            values.add(node.body)
            if not isinstance(node.value, Function):
                values.add(node.value)
            owners.setdefault(node.value, []).append(node)
        elif isinstance(node, Call):
            values.update(node.args)
            called.add(node.op)
        elif isinstance(node, Function) and parts(node):
            values.add(node.body)
        else:
            values.update(children(node))
    found: dict[Function, Var | None] = {}
    for node in order:
        if not isinstance(node, Function) or node in values or not parts(node):
            continue
        lets = owners.get(node, [])
        if not lets and node in called:
            found[node] = None
        elif len(lets) == 1 and node not in called and lets[0].var not in values:
            found[node] = lets[0].var
    return found


def _choose_unused_name(name: str, taken: set[str]) -> str:
    count = 0
    found = name
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


def _capture(lifted: Iterable[_Lifted], by_owner: dict[Expr, _Lifted]) -> None:
    """Find what each function takes from around it, through the functions that it calls."""
    users: dict[_Lifted, list[_Lifted]] = {}
    pending: list[_Lifted] = []
    for each in lifted:
        for variable in free_vars(each.literal):
            callee = by_owner.get(variable)
            if callee is None:
                each.captures[variable] = None
            else:
                users.setdefault(callee, []).append(each)
        pending.append(each)
    while pending:
        callee = pending.pop()
        for user in users.get(callee, ()):
            known = user.bound | user.captures.keys()
            added = [variable for variable in callee.captures if variable not in known]
            user.captures.update(dict.fromkeys(added))
            if added:
                pending.append(user)


class _Lowering:
    """Rewrites calls of lifted functions, variables being known under other names."""

    def __init__(self, lifted: dict[Expr, _Lifted], names: Mapping[Var, Var]) -> None:
        self._find_lifted = lifted
        self._by_owner = {e.owner: e for e in lifted.values() if e.owner is not None}
        self._names = names
        self._memo: dict[Expr, Expr] = {literal: literal for literal in lifted}
        for outside, inside in names.items():
            self._memo[outside] = inside

    def function(self, function: Function) -> Function:
        """Return a function of the module without its local ones."""
        result = self.expression(function)
        return result if isinstance(result, Function) else function

    def expression(self, root: Expr) -> Expr:
        """Return `root` with calls of lifted functions by their global names."""
        return rewrite(root, self._replace, self._memo)

    def _replace(self, node: Expr, new: Expr) -> Expr:
        if isinstance(node, Let) and node.value in self._find_lifted and isinstance(new, Let):
            return new.body
        if not isinstance(node, Call) or not isinstance(new, Call):
            return new
        each = self._find_lifted.get(node.op)
        if each is None and isinstance(node.op, Var):
            each = self._by_owner.get(node.op)
        if each is None:
            return new
        handed = [self._names.get(capture, capture) for capture in each.captures]
        result = Call(each.variable, [*handed, *new.args], span=new.span)
        result.type = new.type
        return result
