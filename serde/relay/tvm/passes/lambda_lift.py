"""Local functions as functions of the module; those that take from around them as closures."""

from __future__ import annotations

from typing import ClassVar

from serde.relay.ir import Call, Expr, Function, GlobalVar, IRModule, Let, Var, infer_module
from serde.relay.ir.bodies import substitute
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.hashing import structural_hash
from serde.relay.ir.types import FuncType, TypeVar, walk_type
from serde.relay.ir.visit import free_vars, post_order, rewrite_function
from serde.relay.transform.base import ModulePass

__all__ = ["LambdaLift"]


class LambdaLift(ModulePass):
    """Make a global function of every local one.

    Where a function stood its global name stands. One that takes variables from around it
    becomes, with ``Closure=1``, a global function of these variables that returns it, and where
    it stood that is called. Equal functions become one. Functions with ``Primitive`` stay.
    """

    name: ClassVar[str] = "LambdaLift"
    opt_level: ClassVar[int] = 1

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Lift out of every function of the module, inner ones first."""
        typed, inferred = infer_module(mod)
        lifter = _Lifter(typed)
        for variable, function in typed.functions.items():
            lifter.functions[variable] = lifter.lift_below(function)
        if len(lifter.functions) == len(typed.functions):
            return typed, inferred
        return infer_module(typed.with_functions(lifter.functions, checked=False))[0], True


class _Lifter:
    """Collects the functions of the module that results.

    Attributes:
        functions: Those that are done.
    """

    def __init__(self, mod: IRModule) -> None:
        self.functions: dict[GlobalVar, Function] = {}
        self._names: dict[str, tuple[GlobalVar, Function] | None] = {
            variable.name_hint: None for variable in mod.functions
        }

    def lift_below(self, function: Function) -> Function:
        """Return a function without those inside it."""
        owners: dict[Expr, Var] = {
            node.value: node.var
            for node in post_order(function)
            if isinstance(node, Let) and isinstance(node.value, Function)
        }

        own: set[Expr] = {function}
        if function.attrs.get("Closure"):
            own.add(function.body)

        def replace(old: Expr, new: Expr) -> Expr:
            lifted = isinstance(old, Function) and old not in own
            if not lifted or not isinstance(new, Function) or new.attrs.get("Primitive"):
                return new
            return self._lift(new, owners.get(old))

        return rewrite_function(function, replace)

    def _lift(self, literal: Function, owner: Var | None) -> Expr:
        """Return what stands for a function whose own functions are lifted.

        Args:
            literal: The function.
            owner: The variable that a let binds it to, by which it may call itself.
        """
        free = free_vars(literal)
        captured = [variable for variable in free if variable is not owner]
        types = _free_type_vars(literal)
        variable = GlobalVar(f"lifted_name{structural_hash(literal, map_free_vars=True)}")
        fresh = [Var(each.name_hint, each.type, each.span) for each in captured]
        values: dict[Expr, Expr] = dict(zip(captured, fresh, strict=True))
        if owner is not None and owner in free:
            values[owner] = _named(variable, fresh, literal, types)
        inner = substitute(literal, values)
        if not isinstance(inner, Function):
            return literal
        function = inner
        if captured or types:
            function = Function(fresh, inner, literal.type, types, {"Closure": 1}, literal.span)
        known = self._add(variable, function)
        return _named(known, captured, literal, types)

    def _add(self, variable: GlobalVar, function: Function) -> GlobalVar:
        """Return the name of a function; one that is equal gives it its own."""
        name, count = variable.name_hint, 0
        while variable.name_hint in self._names:
            known = self._names[variable.name_hint]
            if known is not None and structural_equal(known[1], function):
                return known[0]
            count += 1
            variable.name_hint = f"{name}_{count}"
        self._names[variable.name_hint] = (variable, function)
        self.functions[variable] = function
        variable.type = function.type
        return variable


def _named(
    variable: GlobalVar, captured: list[Var], literal: Function, types: list[TypeVar]
) -> Expr:
    """Return a function by its global name, called for its closure if it takes anything."""
    if not captured and not types:
        return variable
    result = Call(variable, captured, span=literal.span)
    result.type = literal.type
    return result


def _free_type_vars(literal: Function) -> list[TypeVar]:
    """Return the type variables in a function that are parameters of one around it."""
    found: dict[TypeVar, None] = {}
    bound: set[TypeVar] = set()
    for node in post_order(literal):
        if isinstance(node, Function):
            bound.update(node.type_params)
        if isinstance(node, (Var, Function)):
            for type_ in walk_type(node.type):
                if isinstance(type_, TypeVar):
                    found[type_] = None
                elif isinstance(type_, FuncType):
                    bound.update(type_.type_params)
    return [each for each in found if each not in bound]
