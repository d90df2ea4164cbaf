"""Functions written out where a name stands for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from serde.core.records import dataclass
from serde.errors import RelayError
from serde.relay.ir import Constructor, IRModule, infer_module, map_bodies, rewrite_function
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Var
from serde.relay.ir.types import FuncType, Type, TypeVar, bind_type_vars
from serde.relay.transform.base import ModulePass

__all__ = ["EtaExpand"]


@dataclass(frozen=True)
class EtaExpand(ModulePass):
    """Write ``fn (x) { f(x) }`` for constructors and global functions that are values.

    What is called stays as it is.

    Args:
        expand_constructor: Whether constructors are written out.
        expand_global_var: Whether global functions are.

    Raises:
        RelayError: Neither is asked for.
    """

    name: ClassVar[str] = "EtaExpand"
    opt_level: ClassVar[int] = 1
    required: ClassVar[Sequence[str]] = ()

    expand_constructor: bool = False
    expand_global_var: bool = False

    def __post_init__(self) -> None:
        if not self.expand_constructor and not self.expand_global_var:
            raise RelayError("EtaExpand must expand constructors, global functions, or both")

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Write out the values of every function."""
        typed = infer_module(mod)[0]

        def expand(function: Function) -> Function:
            return rewrite_function(function, lambda old, new: self._expand(old, new, typed))

        functions = {v: expand(map_bodies(f, expand)) for v, f in typed.functions.items()}
        if all(functions[v] is f for v, f in typed.functions.items()):
            return mod, False
        return infer_module(typed.with_functions(functions, checked=False))[0], True

    def _expand(self, old: Expr, new: Expr, mod: IRModule) -> Expr:
        if isinstance(new, Call) and isinstance(old, Call) and isinstance(old.op, Constructor):
            return _call_again(old, old.op, new.args)
        if isinstance(new, Constructor) and self.expand_constructor:
            return _written_out(new, new.type, ())
        if isinstance(new, GlobalVar) and self.expand_global_var and new in mod:
            function = mod[new.name_hint]
            return _written_out(new, function.type, function.params)
        return new


def _call_again(old: Call, constructor: Constructor, args: Sequence[Expr]) -> Call:
    """Return a call of a constructor, which was written out, as it was, on its new operands."""
    if all(new is given for new, given in zip(args, old.args, strict=True)):
        return old
    result = Call(constructor, args, old.attrs, span=old.span)
    result.type = old.type
    return result


def _written_out(callee: Expr, type_: Type | None, params: Sequence[Var]) -> Expr:
    """Return the function that hands its parameters to `callee`, type parameters its own."""
    if not isinstance(type_, FuncType):
        raise RelayError(f"{callee!r} has no type of a function")
    fresh = {each: TypeVar(each.name_hint, each.kind) for each in type_.type_params}
    names = [param.name_hint for param in params] or [f"x{i}" for i in range(len(type_.arg_types))]
    own = [
        Var(name, bind_type_vars(argument, fresh))
        for name, argument in zip(names, type_.arg_types, strict=True)
    ]
    result = bind_type_vars(type_.ret_type, fresh)
    return Function(own, Call(callee, own), result, list(fresh.values()))
