"""Functions that external compilers run: out of their callers, marked as extern, or back inside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from serde.core.records import dataclass
from serde.errors import RelayError
from serde.relay.ir import Call, Expr, Function, GlobalVar, IRModule, Let, infer_call, instantiate
from serde.relay.ir.visit import children, free_vars, post_order, rewrite_function
from serde.relay.transform.base import ModulePass, is_marked

__all__ = [
    "InlineCompilerFunctionsBoundTo",
    "MarkCompilerFunctionsAsExtern",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols",
]


def _is_for(function: Expr, compiler: str) -> bool:
    """Whether a node is a function that a compiler runs, any where none is named."""
    if not isinstance(function, Function) or "Compiler" not in function.attrs:
        return False
    return not compiler or function.attrs["Compiler"] == compiler


def _rewrite(function: Function, replacer: _Replacer) -> Function:
    return rewrite_function(function, replacer.replace)


class _Replacer:
    def replace(self, node: Expr, new: Expr) -> Expr:
        """Return what a node becomes, whose children are replaced in `new`."""
        raise NotImplementedError


def _values_of(node: Expr) -> tuple[Expr, ...]:
    """Return what a node uses as values, not what it calls or binds."""
    if isinstance(node, Let):
        return (node.value, node.body)
    return node.args if isinstance(node, Call) else children(node)


@dataclass(frozen=True)
class OutlineCompilerFunctionsWithExistingGlobalSymbols(ModulePass):
    """Make functions with ``Compiler`` that are called where they stand functions of the module.

    Each has the name that its attribute ``global_symbol`` says; calls of functions of one name
    are calls of one function. A function that a let binds is called by its name too.

    Args:
        compiler_filter: The only value of ``Compiler`` that is meant; all of them if empty.

    Raises:
        RelayError: A function has no ``global_symbol``, or takes variables from around it.
    """

    name: ClassVar[str] = "OutlineCompilerFunctions"

    compiler_filter: str = ""

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Move the functions of every function that passes look into."""
        outliner = _Outliner(mod, self.compiler_filter)
        functions = {
            variable: function if is_marked(function) else outliner.outline(function)
            for variable, function in mod.functions.items()
        }
        changed = any(functions[v] is not mod.functions[v] for v in functions)
        return mod.with_functions({**functions, **outliner.made}), changed


class _Outliner(_Replacer):
    def __init__(self, mod: IRModule, compiler: str) -> None:
        self.made: dict[GlobalVar, Function] = {}
        self._names = {variable.name_hint: variable for variable in mod.functions}
        self._compiler = compiler
        self._bound: dict[Expr, Expr] = {}

    def outline(self, function: Function) -> Function:
        """Return a function that calls by name what it called where it stood."""
        nodes = post_order(function)
        values = {each for node in nodes for each in _values_of(node)}
        self._bound = {
            node.var: node.value
            for node in nodes
            if isinstance(node, Let)
            and _is_for(node.value, self._compiler)
            and node.var not in values
        }
        return _rewrite(function, self)

    def replace(self, node: Expr, new: Expr) -> Expr:
        if isinstance(node, Let) and node.var in self._bound and isinstance(new, Let):
            return new.body
        if not isinstance(new, Call):
            return new
        callee = self._bound.get(new.op, new.op)
        if not isinstance(callee, Function) or not _is_for(callee, self._compiler):
            return new
        result = Call(self._find_name(callee), new.args, new.attrs, span=new.span)
        result.type = infer_call(result) or new.type
        return result

    def _find_name(self, function: Function) -> GlobalVar:
        """Return the name of a function, which enters the module with its first call."""
        symbol = function.attrs.get("global_symbol")
        if symbol is None:
            raise RelayError(f"{function!r} has no global_symbol, so it has no name to go by")
        around = free_vars(function)
        if around:
            raise RelayError(f"@{symbol} takes {around[0]!r} from around it")
        if symbol not in self._names:
            self._names[symbol] = GlobalVar(symbol, function.type)
            self.made[self._names[symbol]] = function
        return self._names[symbol]


@dataclass(frozen=True)
class MarkCompilerFunctionsAsExtern(ModulePass):
    """Give functions of the module with ``Compiler`` the attribute ``Extern`` in place of all.

    Args:
        compiler_filter: The only value of ``Compiler`` that is meant; all of them if empty.
    """

    name: ClassVar[str] = "MarkCompilerFunctionsAsExtern"

    compiler_filter: str = ""

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Mark the functions."""
        functions = dict(mod.functions)
        for variable, function in mod.functions.items():
            if _is_for(function, self.compiler_filter):
                functions[variable] = function.evolve(attrs={"Extern": 1})
        changed = any(functions[v] is not mod.functions[v] for v in functions)
        return (mod.with_functions(functions), True) if changed else (mod, False)


@dataclass(frozen=True, init=False)
class InlineCompilerFunctionsBoundTo(ModulePass):
    """Put the bodies of some functions with ``Compiler`` where they are called.

    So do the bodies of the composite functions that they call; the functions are gone then.

    Args:
        global_vars: The functions.

    Raises:
        RelayError: One is not in the module, or no external compiler runs it.
    """

    name: ClassVar[str] = "InlineCompilerFunctionsBoundTo"

    global_vars: tuple[GlobalVar, ...]

    def __init__(self, global_vars: Iterable[GlobalVar]) -> None:
        object.__setattr__(self, "global_vars", tuple(global_vars))

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Inline in every function that passes look into."""
        if not self.global_vars:
            return mod, False
        bodies = {variable: mod[variable] for variable in self.global_vars}
        for variable, function in bodies.items():
            if "Compiler" not in function.attrs:
                raise RelayError(f"@{variable.name_hint} has no Compiler")
        replace = _Inliner(bodies)
        return mod.with_functions(
            {
                variable: function if is_marked(function) else _rewrite(function, replace)
                for variable, function in mod.functions.items()
                if variable not in bodies
            }
        ), True


class _Inliner(_Replacer):
    def __init__(self, functions: dict[GlobalVar, Function]) -> None:
        inner = _CompositeInliner()
        self._functions = {v: _rewrite(each, inner) for v, each in functions.items()}

    def replace(self, node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, GlobalVar):
            return new
        function = self._functions.get(new.op)
        return new if function is None else instantiate(function, new.args)


class _CompositeInliner(_Replacer):
    def replace(self, node: Expr, new: Expr) -> Expr:
        called = new.op if isinstance(new, Call) else None
        if not isinstance(new, Call) or not isinstance(called, Function):
            return new
        return instantiate(called, new.args) if "Composite" in called.attrs else new
