"""Type inference over functions and modules."""

from __future__ import annotations

from serde.errors import TypeInferenceError
from serde.relay.ir.bodies import all_nodes, inner_first
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import OpDef, infer_call
from serde.relay.ir.types import FuncType, TensorType, TupleType, Type, accepts, join_types
from serde.relay.ir.visit import Binding, binding_order

__all__ = ["infer_function", "infer_if", "infer_module"]


def infer_module(mod: IRModule) -> tuple[IRModule, bool]:
    """Infer the types of all functions, callees first.

    Untyped variables take the type that the operators they feed ask for
    (a weight of ``nn.conv2d`` whose ``channels`` and ``kernel_size`` are given).

    Returns:
        The module, marked as checked, and whether it is another than `mod`.

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """
    functions: dict[GlobalVar, Function] = {}
    for variable in mod.functions:
        variable.type = mod.functions[variable].type
    for variable in _callees_first(mod):
        functions[variable] = infer_function(mod.functions[variable])
        variable.type = functions[variable].type
    ordered = {variable: functions[variable] for variable in mod.functions}
    changed = any(ordered[v] is not mod.functions[v] for v in ordered)
    if not changed and mod.checked:
        return mod, False
    return mod.with_functions(ordered, checked=True), True


def _callees_first(mod: IRModule) -> list[GlobalVar]:
    called = {
        variable: {
            node.op
            for node in all_nodes(function)
            if isinstance(node, Call) and isinstance(node.op, GlobalVar)
        }
        for variable, function in mod.functions.items()
    }
    order: list[GlobalVar] = []
    waiting = list(mod.functions)
    while waiting:
        done = set(order)
        ready = [v for v in waiting if not (called[v] & set(waiting)) - {v}] or waiting[:1]
        order += [v for v in ready if v not in done]
        waiting = [v for v in waiting if v not in ready]
    return order


def infer_function(function: Function) -> Function:
    """Infer the types below `function` and return it with the type of its result.

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """
    for body in inner_first(function):
        _infer_scope(body)
    _infer_scope(function)
    result = function.body.type
    if result is None:
        error = TypeInferenceError(f"the result of {function!r} has no type")
        error.node = function
        raise error
    if function.ret_type is not None:
        return function
    return Function(function.params, function.body, result, function.attrs, function.span)


def _infer_scope(function: Function) -> None:
    steps = binding_order(function)
    for step in steps:
        if isinstance(step, Let) and step.var.type is None:
            step.var.type = step.value.type
    for step in steps:
        try:
            _infer_step(step)
        except TypeInferenceError as error:
            if error.node is None:
                error.node = step.let if isinstance(step, Binding) else step
            raise


def _infer_step(step: Expr | Binding) -> None:
    if isinstance(step, Binding):
        _bind(step.let)
    elif not isinstance(step, Var):
        step.type = _infer(step)


def _bind(let: Let) -> None:
    declared, found = let.var.type_annotation, let.value.type
    if declared is not None and found is not None and not accepts(declared, found):
        raise TypeInferenceError(f"{let!r}: expected {declared!r}, found {found!r}")
    let.var.type = declared if declared is not None else found


def _infer(node: Expr) -> Type | None:
    if isinstance(node, Call):
        return _infer_call(node)
    if isinstance(node, Tuple):
        return TupleType(_require_type(field) for field in node.fields)
    if isinstance(node, TupleGetItem):
        return _infer_field(node)
    if isinstance(node, Function):
        result = node.ret_type if node.ret_type is not None else _require_type(node.body)
        if node.body.type is not None and not accepts(result, node.body.type):
            raise TypeInferenceError(
                f"{node!r}: expected a result of {result!r}, found {node.body.type!r}"
            )
        return FuncType([_require_type(param) for param in node.params], result)
    if isinstance(node, Let):
        return _require_type(node.body)
    if isinstance(node, If):
        return infer_if(node)
    return node.type


def _require_type(node: Expr) -> Type:
    if node.type is None:
        raise TypeInferenceError(f"{node!r} has no type")
    return node.type


def _infer_call(node: Call) -> Type | None:
    if isinstance(node.op, OpDef) and any(argument.type is None for argument in node.args):
        _complete(node, node.op)
    type_ = infer_call(node)
    if type_ is None:
        untyped = [argument for argument in (*node.args, node.op) if argument.type is None]
        raise TypeInferenceError(f"{node!r}: {untyped[0]!r} has no type")
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
    if node.cond.type != TensorType((), "bool"):
        raise TypeInferenceError(f"a condition must be a scalar bool, found {node.cond.type!r}")
    left, right = _require_type(node.true_branch), _require_type(node.false_branch)
    joined = join_types(left, right)
    if joined is None:
        raise TypeInferenceError(f"the branches of an if differ: {left!r} and {right!r}")
    return joined
