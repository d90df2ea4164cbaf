"""Type inference over functions and modules."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.errors import TypeInferenceError
from serde.relay.ir.adt import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
)
from serde.relay.ir.bodies import all_nodes, inner_first
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.module import IRModule, callees_first, find_callees
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.registry import OpDef, infer_call
from serde.relay.ir.types import (
    FuncType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    accepts,
    bind_type_vars,
    is_complete,
    join_types,
)
from serde.relay.ir.visit import Binding, binding_order

__all__ = ["infer_function", "infer_if", "infer_match", "infer_module", "infer_reference"]

_MAX_ROUNDS: Final = 100


class _UntypedError(TypeInferenceError):
    """A walk forward met something whose type it cannot know."""


def _on_demand(module: str) -> AnyValue:
    """Return a module beside this one that most programs do not need."""
    return importlib.import_module(f"serde.relay.ir.{module}")


def infer_module(mod: IRModule) -> tuple[IRModule, bool]:
    """Infer the types of all functions.

    One walk forward does where types are declared, callees first. Where it meets a variable or
    a function without type, types of all functions are found together, by unification: from
    arguments, declared results, branches, and the operators that a variable feeds (a weight of
    ``nn.conv2d`` whose ``channels`` and ``kernel_size`` are given).

    Returns:
        The module, marked as checked, and whether it is another than `mod`.

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """
    for variable, function in mod.functions.items():
        variable.type = function.type
    functions: dict[GlobalVar, Function] = {}
    try:
        for variable in callees_first(find_callees(mod)):
            functions[variable] = _with_result(_walk_bodies(mod.functions[variable]))
            variable.type = functions[variable].type
    except _UntypedError:
        _refuse_unknown(mod)
        _unify(mod.functions)
        functions = {variable: _with_result(each) for variable, each in mod.functions.items()}
        for variable, function in functions.items():
            variable.type = function.type
    ordered = {variable: functions[variable] for variable in mod.functions}
    changed = any(ordered[v] is not mod.functions[v] for v in ordered)
    if not changed and mod.checked:
        return mod, False
    return mod.with_functions(ordered, checked=True), True


def _refuse_unknown(mod: IRModule) -> None:
    for node in all_nodes(*mod.functions.values()):
        callee = node.op if isinstance(node, Call) else node
        if isinstance(callee, GlobalVar) and callee.type is None and callee not in mod:
            known = ", ".join(f"@{each.name_hint}" for each in mod.functions)
            name = callee.name_hint
            hint = "; take the variable that mod.get_global_var gives" if name in mod else ""
            text = f"@{name} names no function of the module (there are: {known}){hint}"
            error = TypeInferenceError(text)
            error.node = node
            raise error


def infer_function(function: Function) -> Function:
    """Infer the types below `function` and return it with the type of its result.

    Global functions that it calls need types.

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """
    try:
        _walk_bodies(function)
    except _UntypedError:
        _unify({GlobalVar(""): function})
    return _with_result(function)


def _with_result(function: Function) -> Function:
    """Return a function with the type that its body was found to have."""
    result = function.body.type
    if result is None:
        error = _UntypedError(f"the result of {function!r} has no type")
        error.node = function
        raise error
    if is_complete(function.ret_type):
        return function
    return function.evolve(ret_type=result)


# Unification, where a walk forward does not know enough.


def _unify(functions: Mapping[GlobalVar, Function]) -> None:
    """Type the variables below `functions`, and by them everything else."""
    nodes = list(all_nodes(*functions.values()))
    untyped = [node for node in nodes if isinstance(node, Var) and node.type is None]
    try:
        for body in inner_first(*functions.values()):
            _unify_scopes({GlobalVar(""): body})
        _unify_scopes(functions)
    except TypeInferenceError:
        for variable in untyped:
            variable.type = None
        raise


def _unify_scopes(functions: Mapping[GlobalVar, Function]) -> None:
    found = _on_demand("solver").Solver(functions).solve(functions.values())
    assumed: dict[Var | GlobalVar, FuncType] = {}
    for node, type_ in found.items():
        if isinstance(node, Call):
            node.type = type_
        elif isinstance(node, GlobalVar) or (
            isinstance(node, Var) and not is_complete(node.type_annotation)
        ):
            node.type = type_
            if isinstance(type_, FuncType):
                assumed[node] = type_
    for _ in range(_MAX_ROUNDS):
        for function in functions.values():
            _walk(function)
        for variable, function in functions.items():
            variable.type = _with_result(function).type
        if not _revise(assumed):
            return
    raise TypeInferenceError(f"lengths of results change from turn to turn: {list(assumed)}")


def _revise(assumed: dict[Var | GlobalVar, FuncType]) -> bool:
    """Replace what was assumed of functions that call themselves by what a walk found.

    A length that differs from turn to turn becomes anonymous, and one that never does is kept.

    Returns:
        Whether anything differs.
    """
    changed = False
    for variable, before in assumed.items():
        found = variable.type
        if found == before or not isinstance(found, FuncType):
            continue
        result = join_types(before.ret_type, found.ret_type)
        if result is None:
            error = TypeInferenceError(
                f"{variable!r}: expected a result of {before.ret_type!r}, found {found.ret_type!r}"
            )
            error.node = variable
            raise error
        joined = found if result == before.ret_type else FuncType(found.arg_types, result)
        assumed[variable] = joined
        variable.type = joined
        changed = True
    return changed


# The walk forward.


def _walk_bodies(function: Function) -> Function:
    for body in inner_first(function):
        _walk(body)
    _walk(function)
    return function


def _walk(function: Function) -> None:
    steps = binding_order(function)
    for step in steps:
        if isinstance(step, Let) and step.var.type is None:
            step.var.type = step.value.type
    for step in steps:
        try:
            _infer_step(step)
        except TypeInferenceError as error:
            if error.node is None:
                error.node = step.node if isinstance(step, Binding) else step
            raise


def _infer_step(step: Expr | Binding) -> None:
    if isinstance(step, Binding):
        _bind(step.node)
    elif not isinstance(step, Var):
        step.type = _infer(step)


def _bind(node: Let | Match) -> None:
    if isinstance(node, Let):
        _bind_variable(node.var, node.value.type, node)
        return
    for clause in node.clauses:
        pending: list[tuple[Pattern, Type]] = [(clause.lhs, _require_type(node.data))]
        while pending:
            pattern, type_ = pending.pop()
            if isinstance(pattern, PatternVar):
                _bind_variable(pattern.var, type_, node)
            else:
                parts = _split_pattern(pattern, type_, node)
                pending.extend(zip(pattern.parts, parts, strict=True))


def _bind_variable(variable: Var, found: Type | None, node: Expr) -> None:
    declared = variable.type_annotation
    if declared is not None and found is not None and not accepts(declared, found):
        raise TypeInferenceError(f"{node!r}: expected {declared!r}, found {found!r}")
    variable.type = declared if is_complete(declared) else found


def _split_pattern(pattern: Pattern, type_: Type, node: Match) -> Sequence[Type]:
    """Return the types of the parts of a value that a pattern asks for."""
    if isinstance(pattern, PatternTuple):
        if not isinstance(type_, TupleType) or len(type_.fields) != len(pattern.parts):
            raise TypeInferenceError(f"{node!r}: {pattern!r} is asked of {type_!r}")
        return type_.fields
    if not isinstance(pattern, PatternConstructor):
        return ()
    signature = _on_demand("solver").pattern_signature(pattern)
    whole = signature.ret_type
    if not isinstance(type_, TypeCall) or not isinstance(whole, TypeCall):
        raise TypeInferenceError(f"{node!r}: {pattern!r} is asked of {type_!r}")
    if type_.func != whole.func or len(type_.args) != len(whole.args):
        raise TypeInferenceError(f"{node!r}: {pattern!r} is asked of {type_!r}")
    values = dict(zip(signature.type_params, type_.args, strict=True))
    return [bind_type_vars(each, values) for each in signature.arg_types]


def _infer(node: Expr) -> Type | None:
    if isinstance(node, Call):
        return _infer_call(node)
    if isinstance(node, Tuple):
        return TupleType(_require_type(field) for field in node.fields)
    if isinstance(node, TupleGetItem):
        return _infer_field(node)
    if isinstance(node, Function):
        declared = node.ret_type if is_complete(node.ret_type) else None
        result = declared if declared is not None else _require_type(node.body)
        if node.body.type is not None and not accepts(result, node.body.type):
            raise TypeInferenceError(
                f"{node!r}: expected a result of {result!r}, found {node.body.type!r}"
            )
        return FuncType([_require_type(param) for param in node.params], result, node.type_params)
    if isinstance(node, Let):
        return _require_type(node.body)
    if isinstance(node, If):
        return infer_if(node)
    if isinstance(node, Match):
        _require_all_cases(node)
        return infer_match(node)
    if isinstance(node, (RefCreate, RefRead, RefWrite)):
        return infer_reference(node)
    if isinstance(node, Constructor) and node.type is None:
        raise TypeInferenceError(f"{node!r} belongs to no definition of a type")
    return node.type


def _require_type(node: Expr) -> Type:
    if node.type is None:
        raise _UntypedError(f"{node!r} has no type")
    return node.type


def _infer_call(node: Call) -> Type | None:
    if isinstance(node.op, OpDef) and any(argument.type is None for argument in node.args):
        _complete(node, node.op)
    type_ = infer_call(node)
    if type_ is None:
        untyped = [each for each in (*node.args, node.op) if each.type is None]
        what = repr(untyped[0]) if untyped else f"the result of {node.op!r}"
        raise _UntypedError(f"{node!r}: {what} has no type")
    return type_


def _complete(node: Call, definition: OpDef) -> None:
    if definition.complete is None:
        return
    given = [argument.type for argument in node.args]
    for argument, type_ in zip(node.args, definition.complete(*given, **node.attrs), strict=True):
        if argument.type is None and isinstance(argument, Var):
            argument.type = type_


def _infer_field(node: TupleGetItem) -> Type:
    type_ = _require_type(node.tuple_value)
    if not isinstance(type_, TupleType) or not 0 <= node.index < len(type_.fields):
        raise TypeInferenceError(f"{node!r}: no such field in {type_!r}")
    return type_.fields[node.index]


def infer_if(node: If) -> Type:
    """Return the type of an ``If`` whose parts are typed.

    Raises:
        TypeInferenceError: The branches differ in rank or dtype.
    """
    if _require_type(node.cond) != TensorType((), "bool"):
        raise TypeInferenceError(f"a condition must be a scalar bool, found {node.cond.type!r}")
    left, right = _require_type(node.true_branch), _require_type(node.false_branch)
    joined = join_types(left, right)
    if joined is None:
        raise TypeInferenceError(f"the branches of an if differ: {left!r} and {right!r}")
    return joined


def _require_all_cases(node: Match) -> None:
    missing = _on_demand("exhaustion").unmatched_cases(node) if node.complete else []
    if missing:
        text = f"no clause for {', '.join(map(repr, missing[:3]))}"
        raise TypeInferenceError(f"{node!r}: {text} (match? takes some cases only)")


def infer_match(node: Match) -> Type:
    """Return the type of a ``Match`` whose clauses are typed.

    Raises:
        TypeInferenceError: There are no clauses, or they differ in type.
    """
    joined: Type | None = None
    for clause in node.clauses:
        found = _require_type(clause.rhs)
        whole = found if joined is None else join_types(joined, found)
        if whole is None:
            raise TypeInferenceError(f"the clauses of a match differ: {joined!r} and {found!r}")
        joined = whole
    if joined is None:
        raise TypeInferenceError("a match without clauses has no type")
    return joined


def infer_reference(node: RefCreate | RefRead | RefWrite) -> Type:
    """Return the type of a node that makes, reads or writes a reference.

    Raises:
        TypeInferenceError: What is read or written is no reference, or holds another type.
    """
    if isinstance(node, RefCreate):
        return RefType(_require_type(node.value))
    type_ = _require_type(node.ref)
    if not isinstance(type_, RefType):
        raise TypeInferenceError(f"{node!r}: expected a reference, found {type_!r}")
    if isinstance(node, RefRead):
        return type_.value
    if not accepts(type_.value, _require_type(node.value)):
        raise TypeInferenceError(f"{node!r}: expected {type_.value!r}, found {node.value.type!r}")
    return TupleType(())
