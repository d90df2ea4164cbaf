"""Modules of Relax with every kind of expression in every place, most of them without meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx

TENSOR = relax.TensorType((2, 3), "float32")
INPUTS = {
    "x": relax.Var("x", TENSOR),
    "y": relax.Var("y", TENSOR),
    "c": relax.Var("c", relax.TensorType((), "bool")),
}
GLOBALS = {each: relax.GlobalVar(each) for each in ("function", "tir", "packed", "nowhere")}
_X, _Y, _C = INPUTS.values()
_N = tirx.Var("n", "int64")


def _local() -> Any:
    param = relax.Var("p", TENSOR)
    return relax.Function([param], relax.SeqExpr([], relax.op.nn.relu(param)), TENSOR)


def _packed(*args: Any) -> Any:
    return relax.Call(relax.ExternFunc("my.packed"), list(args), ty_args=[TENSOR])


def _operator(name: str, *args: Any) -> Any:
    return relax.Call(tvm.ir.Op.get(f"relax.{name}"), list(args))


KINDS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: _X,
    "bool": lambda: _C,
    "constant": lambda: relax.const(np.ones((2, 3), np.float32)),
    "tuple": lambda: relax.Tuple([_X, _Y]),
    "empty": lambda: relax.Tuple([]),
    "nested": lambda: relax.Tuple([relax.Tuple([_X]), _Y]),
    "item": lambda: relax.TupleGetItem(relax.Tuple([_X, _Y]), 1),
    "shape": lambda: relax.ShapeExpr([2, 3]),
    "open shape": lambda: relax.ShapeExpr([_N, 3]),
    "number": lambda: tirx.IntImm("int64", 3),
    "float": lambda: tirx.FloatImm("float32", 3.5),
    "sum": lambda: _N + 1,
    "text": lambda: tvm.ir.StringImm("a"),
    "extern": lambda: relax.ExternFunc("my.packed"),
    "operator": lambda: tvm.ir.Op.get("relax.nn.relu"),
    **{f"global {name}": lambda name=name: GLOBALS[name] for name in GLOBALS},
    "local function": _local,
    "unbound": lambda: relax.Var("unbound", TENSOR),
    "conditional": lambda: relax.If(_C, relax.SeqExpr([], _X), relax.SeqExpr([], _Y)),
    "sequence": lambda: relax.SeqExpr([], _X),
    "call": lambda: relax.op.nn.relu(_X),
    "split": lambda: relax.op.split(_X, 3, axis=1),
    "null": lambda: relax.op.null_value(),
    "shape of": lambda: relax.op.shape_of(_X),
    "without arguments": lambda: _operator("nn.relu"),
    "without attributes": lambda: _operator("concat", relax.Tuple([_X, _Y])),
    "packed": lambda: _packed(_X),
    "packed text": lambda: _packed(tvm.ir.StringImm("a")),
    "destination": lambda: relax.op.call_dps_packed("my.packed", [_X], TENSOR),
    "pure": lambda: relax.op.call_pure_packed("my.packed", _X, ty_args=TENSOR),
    "tir": lambda: relax.op.call_tir(GLOBALS["tir"], [_X], TENSOR),
    "global call": lambda: relax.Call(GLOBALS["function"], [_X]),
    "local call": lambda: relax.Call(_local(), [_X]),
    "print": lambda: relax.op.print(_X, format="a"),
}
"""Expressions of main's parameters."""

_MANY = [
    "nn.relu",
    "shape_of",
    "tensor_to_shape",
    "shape_to_tensor",
    "null_value",
    "reshape",
    "full",
    "where",
    "arange",
    "split",
    "take",
    "clip",
    "strided_slice",
    "permute_dims",
    "print",
    "assert_op",
    "concat",
    "call_tir",
    "call_dps_packed",
    "call_pure_packed",
    "make_closure",
    "invoke_closure",
    "memory.alloc_storage",
    "nn.softmax",
    "nn.attention",
    "topk",
    "unique",
    "image.resize2d",
    "layout_transform",
    "one_hot",
    "scatter_nd",
    "eye",
    "vision.non_max_suppression",
]
PLACES: dict[str, Callable[[Any], Any]] = {
    "result": lambda e: e,
    "field": lambda e: relax.Tuple([e, _X]),
    "item": lambda e: relax.TupleGetItem(e, 0),
    "condition": lambda e: relax.If(e, relax.SeqExpr([], _X), relax.SeqExpr([], _Y)),
    "branch": lambda e: relax.If(_C, relax.SeqExpr([], e), relax.SeqExpr([], _Y)),
    "branches": lambda e: relax.If(_C, relax.SeqExpr([], e), relax.SeqExpr([], e)),
    "callee": lambda e: relax.Call(e, [_X]),
    "argument": lambda e: relax.Call(GLOBALS["function"], [e]),
    "local argument": lambda e: relax.Call(_local(), [e]),
    "packed argument": _packed,
    "sum": lambda e: _operator("add", _X, e),
    "new shape": lambda e: _operator("reshape", _X, e),
    **{name: lambda e, name=name: _operator(name, e) for name in _MANY},
    **{f"{name} of three": lambda e, name=name: _operator(name, e, e, e) for name in _MANY},
    **{f"{name} of none": lambda _, name=name: _operator(name) for name in _MANY},
}
"""What uses an expression."""

BOUND = ("plain", "bound", "cast", "shape cast", "dataflow")
"""How the expression comes to its place."""


def odd_module(kind: str, place: str, bound: str) -> tvm.IRModule:
    """Return a module whose main has an expression of a kind in a place.

    Raises:
        IndexError: TVM refuses to build it.
    """
    expr = KINDS[kind]()
    if bound == "plain":
        body = relax.SeqExpr([], PLACES[place](expr))
    else:
        variable = (relax.DataflowVar if bound == "dataflow" else relax.Var)("v")
        types = {"cast": TENSOR, "shape cast": relax.ShapeType([2, tirx.Var("m", "int64")])}
        first = relax.VarBinding(variable, expr)
        if bound in types:
            first = relax.MatchCast(variable, expr, types[bound])
        result = relax.Var("w")
        block = relax.DataflowBlock if bound == "dataflow" else relax.BindingBlock
        bindings = [first, relax.VarBinding(result, PLACES[place](variable))]
        body = relax.SeqExpr([block(bindings)], result)
    main = relax.Function(list(INPUTS.values()), body, relax.AnyType(), is_pure=False)
    functions = {"main": main.with_attr("global_symbol", "main")}
    return tvm.IRModule(
        {
            **functions,
            GLOBALS["function"]: _local().with_attr("global_symbol", "function"),
            GLOBALS["tir"]: tirx.PrimFunc([], tirx.Evaluate(0)),
            GLOBALS["packed"]: relax.ExternFunc("packed"),
        }
    )


TYPES: dict[str, Any] = {
    "tensor": TENSOR,
    "rank": relax.TensorType(ndim=2, dtype="float32"),
    "no rank": relax.TensorType(dtype="float32"),
    "no dtype": relax.TensorType((2, 3), ""),
    "open": relax.TensorType((_N, 3), "float32"),
    "negative": relax.TensorType((-2, 3), "float32"),
    "lanes": relax.TensorType((2,), "float32x4"),
    "shape variable": relax.TensorType(relax.Var("s", relax.ShapeType([2, 3])), "float32"),
    "shape": relax.ShapeType([2, 3]),
    "open shape": relax.ShapeType(ndim=2),
    "any": relax.AnyType(),
    "tuple": relax.TupleType([TENSOR, TENSOR]),
    "empty": relax.TupleType([]),
    "function": relax.FuncType([TENSOR], TENSOR),
    "number": tvm.ir.PrimType("int64"),
}
"""What main may declare."""


def typed_module(given: str, result: str) -> tvm.IRModule:
    """Return a module whose main declares types that it need not have."""
    variable = relax.Var("x", TYPES[given])
    main = relax.Function([variable], relax.SeqExpr([], variable), TYPES[result])
    return tvm.IRModule({"main": main.with_attr("global_symbol", "main")})
