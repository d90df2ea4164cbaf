"""Calls of global functions that ask for it, replaced by what they call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from serde.errors import RelayError
from serde.relay.ir import all_nodes, instantiate, map_bodies, rewrite_function
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Op, Var
from serde.relay.ir.module import IRModule, callees_first, find_callees, recursive_functions
from serde.relay.transform.base import Pass
from serde.relay.transform.inline_calls import symbols_agree

__all__ = ["Inline"]


class Inline(Pass):
    """Inline the global functions with the attribute ``Inline``.

    One is inlined if it calls no global function any more and not itself. Where it is called its
    body stands; where it is a value, the function itself. One with ``Compiler`` is not opened:
    the function stands where its name stood, and the call stays. Afterwards those that were
    inlined are gone from the module, unless no one called them before.

    Raises:
        RelayError: A function asks for it and cannot be inlined.
    """

    name: ClassVar[str] = "InlineGlobals"
    opt_level: ClassVar[int] = 1

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Inline callees first."""
        calls = find_callees(mod)
        order = callees_first(calls)
        recursive = recursive_functions(calls, order)
        called = {name for function in mod.functions.values() for name in _global_names(function)}
        ready: dict[str, Function] = {}
        final: dict[GlobalVar, Function] = {}
        for variable in order:
            function = mod.functions[variable]
            if ready:
                function = map_bodies(function, lambda body: _inline(body, ready))
                function = _inline(function, ready)
            final[variable] = function
            leaf = not _global_names(function)
            if leaf and variable not in recursive and _is_marked(function):
                ready[variable.name_hint] = function
        kept = {}
        for variable in mod.functions:
            name = variable.name_hint
            gone = _is_marked(final[variable]) and name in called and variable not in recursive
            if gone and name not in ready:
                raise RelayError(f"{name} has the attribute Inline but calls other functions")
            if not gone:
                kept[variable] = final[variable]
        if all(kept.get(v) is f for v, f in mod.functions.items()):
            return mod, False
        return mod.with_functions(kept), True


def _is_marked(function: Function) -> bool:
    return bool(function.attrs.get("Inline"))


def _global_names(function: Function) -> set[str]:
    used = (node.op if isinstance(node, Call) else node for node in all_nodes(function))
    return {each.name_hint for each in used if isinstance(each, GlobalVar)}


def _inline(function: Function, ready: Mapping[str, Function]) -> Function:
    def replace(node: Expr, new: Expr) -> Expr:
        if isinstance(new, GlobalVar):
            callee = ready.get(new.name_hint)
            return new if callee is None else _copy(callee)
        if not isinstance(new, Call):
            return new
        if not isinstance(new.op, GlobalVar):
            if new is not node and node.type is None and not isinstance(new.op, Op):
                new.type = None  # TVM infers no types here, and a function's result is compared
            return new
        callee = ready.get(new.op.name_hint)
        if callee is None or not symbols_agree(callee, new.args):
            return new
        if callee.attrs.get("Compiler", "default") == "default":
            return instantiate(callee, new.args, new.type)
        result = Call(_copy(callee), new.args, new.attrs, span=new.span)
        result.type = new.type
        return result

    return rewrite_function(function, replace)


def _copy(function: Function) -> Function:
    """Return a function with variables of its own."""
    params = [Var(param.name_hint, param.type_annotation, param.span) for param in function.params]
    for fresh, param in zip(params, function.params, strict=True):
        fresh.type = param.type
    body = instantiate(function, params)
    return function.evolve(params=params, body=body)
