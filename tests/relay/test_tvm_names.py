"""Names and calls of TVM's Python API: paths, types, scopes, values, and misspelled names."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError

X, Y = relay.var("x", "float32"), relay.var("y", "float32")

VERSION = '#[version = "0.0.5"]\n'

# Paths.

PATHS = {
    "op.nn.conv2d": "nn.conv2d",
    "op.transform.reshape": "reshape",
    "op.transform.strided_slice": "strided_slice",
    "op.tensor.add": "add",
    "op.tensor.concatenate": "concatenate",
    "op.algorithm.topk": "topk",
    "op.reduce.sum": "sum",
    "op.reduce.mean_variance": "mean_variance",
    "op.image.resize2d": "image.resize2d",
    "op.vision.roi_align": "vision.roi_align",
    "op.random.uniform": "random.uniform",
    "op.dyn.nn.pad": "dyn.nn.pad",
    "op.scatter_nd": "scatter_nd",
    "op.zeros": "zeros",
    "op.abs": "abs",
    "qnn.conv2d": "qnn.op.conv2d",
    "qnn.requantize": "qnn.op.requantize",
    "op.nn.leaky_relu": "nn.leaky_relu",
    "op.nn.nn.conv2d": "nn.conv2d",
    "op.vision.nms.non_max_suppression": "vision.non_max_suppression",
    "op.image.image.resize2d": "image.resize2d",
    "RelayExpr": "Expr",
    "expr.RelayExpr": "Expr",
    "Kind": "TypeKind",
}


def follow(path: str) -> Any:
    found: Any = relay
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("path", PATHS)
def test_a_builder_is_found_where_tvm_has_it(path: str) -> None:
    assert follow(path) is follow(PATHS[path])


@pytest.mark.parametrize(
    "path", ["op.no_such", "op.nn.no_such", "op.transform.no_such", "op.image.no_such",
             "op.reduce.no_such", "qnn.no_such", "op.tensor._make"]
)  # fmt: skip
def test_what_is_not_there_is_an_attribute_error(path: str) -> None:
    with pytest.raises(AttributeError):
        follow(path)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("relay.expr", "Call Constant If Let Tuple TupleGetItem TupleWrapper Var const var bind"),
        ("relay.expr", "RefCreate RefRead RefWrite CallWithFields VarWithFields"),
        ("relay.function", "Function FunctionWithFields"),
        ("relay.expr_functor", "ExprFunctor ExprMutator ExprVisitor MixedModeMutator"),
        ("relay.adt", "Clause Constructor Match PatternVar TypeData"),
        ("relay.ty", "TensorType TupleType FuncType Any scalar_type TypeVar IncompleteType"),
        ("relay.scope_builder", "ScopeBuilder"),
        ("relay.build_module", "bind_params_by_name create_executor"),
        ("relay.analysis", "free_vars well_formed count_layers"),
    ],
)
def test_modules_have_the_names_of_tvms(module: str, names: str) -> None:
    found = importlib.import_module(f"serde.{module}")
    assert all(hasattr(found, name) for name in names.split())
    assert set(names.split()) <= set(found.__all__)


def test_operators_are_listed_below_op() -> None:
    assert {"nn", "transform", "tensor", "get", "op", "add"} <= set(dir(relay.op))
    assert "reshape" in dir(relay.op.transform)


def test_an_operator_by_name() -> None:
    add = relay.op.get("add")
    assert add is relay.op.op.get("add")
    assert add.name == "add"
    assert add.num_inputs == 2
    assert relay.op.get("concatenate").num_inputs == 1
    assert relay.exp(relay.Var("x")).op is relay.op.get("exp")
    with pytest.raises(RelayError, match="no_such"):
        relay.op.get("no_such")


@pytest.mark.parametrize(
    ("register", "key"),
    [("register_legalize", "FTVMLegalize"), ("register_alter_op_layout", "FTVMAlterOpLayout"),
     ("register_convert_op_layout", "FTVMConvertOpLayout"), ("register_pattern", "TOpPattern")],
)  # fmt: skip
def test_registrations_set_an_attribute_of_an_operator(register: str, key: str) -> None:
    operator = relay.op.get("atanh")
    assert operator.get_attr(key) is None
    marker = object()
    try:
        getattr(relay.op, register)("atanh", marker)
        assert operator.get_attr(key) is marker
    finally:
        operator.reset_attr(key)


# Types.


@pytest.mark.parametrize(
    ("given", "dtype"),
    [("int", "int32"), ("uint", "uint32"), ("float", "float32"), ("uint1", "bool"),
     ("bool", "bool"), ("int8", "int8"), (np.float16, "float16"), (np.dtype("int64"), "int64")],
)  # fmt: skip
def test_names_of_element_types(given: Any, dtype: str) -> None:
    assert relay.TensorType((2,), given).dtype == dtype
    assert relay.scalar_type(given) == relay.TensorType((), dtype)
    assert relay.var("x", shape=(2,), dtype=given).checked_type.dtype == dtype


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (relay.TensorType((2, 3)), False),
        (relay.TensorType((relay.Any(), 3)), True),
        (relay.TensorType((relay.symbol("n"),)), False),
        (relay.TupleType([relay.scalar_type("int32"), relay.TensorType((relay.Any(),))]), True),
        (relay.FuncType([relay.TensorType((2,))], relay.TensorType((relay.Any(),))), True),
        (relay.FuncType([], relay.TupleType([])), False),
    ],
)
def test_types_with_axes_of_which_nothing_is_known(type_: Any, expected: bool) -> None:
    assert relay.ty.is_dynamic(type_) is expected
    assert relay.ty.type_has_any(type_) is expected


@pytest.mark.parametrize("text", ["int", "uint", "float", "uint1"])
def test_short_names_of_element_types_in_text(text: str) -> None:
    function = relay.parse_expr(f"fn (%x: {text}) {{ %x }}")
    assert function.params[0].type == relay.TensorType((), text)


# Scopes.


def test_branches_and_lets_in_the_order_in_which_they_run() -> None:
    builder, cond = relay.ScopeBuilder(), relay.var("c", "bool")
    first = builder.let("first", relay.exp(X))
    with builder.if_scope(cond):
        one = builder.let(("one", relay.scalar_type("float32")), relay.const(1.0))
        builder.ret(relay.subtract(one, first))
    with builder.else_scope():
        builder.let(relay.var("unused", "float32"), X)
        builder.ret(first)
    expected = relay.parse_expr("""
free_var %x: float32;
free_var %c: bool;
let %first = exp(%x);
if (%c) { let %one: float32 = 1f; subtract(%one, %first) }
else { let %unused: float32 = %x; %first }
""")
    relay.assert_structural_equal(builder.get(), expected, map_free_vars=True)


def _else_without_if(builder: relay.ScopeBuilder) -> None:
    with builder.else_scope():
        builder.ret(X)


def _no_result_in_a_branch(builder: relay.ScopeBuilder) -> None:
    with builder.if_scope(relay.const(True)):
        builder.let("a", X)


def _two_results(builder: relay.ScopeBuilder) -> None:
    builder.ret(X)
    builder.ret(Y)


def _result_and_branch(builder: relay.ScopeBuilder) -> None:
    builder.ret(X)
    with builder.if_scope(relay.const(True)):
        builder.ret(X)


def _if_without_else(builder: relay.ScopeBuilder) -> None:
    with builder.if_scope(relay.const(True)):
        builder.ret(X)
    builder.get()


@pytest.mark.parametrize(
    "misuse",
    [_else_without_if, _no_result_in_a_branch, _two_results, _result_and_branch, _if_without_else],
)
def test_a_scope_is_closed_as_it_was_opened(misuse: Any) -> None:
    with pytest.raises(RelayError):
        misuse(relay.ScopeBuilder())


def test_an_error_inside_a_scope_is_not_hidden() -> None:
    builder = relay.ScopeBuilder()
    with pytest.raises(ZeroDivisionError), builder.if_scope(relay.const(True)):
        raise ZeroDivisionError


# Values.


def test_constants_are_values() -> None:
    executor = relay.create_executor()
    assert executor.evaluate(relay.exp(X), {X: relay.const(0.0)}) == 1
    assert executor.evaluate(relay.Function([X], relay.exp(X)))(relay.const(0.0)) == 1


def test_parameters_become_constants_by_name() -> None:
    function = relay.Function([X, Y], relay.subtract(X, Y))
    bound = relay.build_module.bind_params_by_name(function, {"y": 3.0, "other": 1.0})
    assert [each.name_hint for each in bound.params] == ["x"]
    assert relay.create_executor().evaluate(bound)(np.float32(5)) == 2
    twice = relay.Function([X, relay.var("x", "float32")], X)
    with pytest.raises(ValueError, match="several"):
        relay.build_module.bind_params_by_name(twice, {"x": 1.0})


# Testing.


def test_types_and_passes_in_one_call() -> None:
    x = relay.var("x", shape=(2,))
    typed = relay.testing.run_infer_type(relay.split(x, 2))
    assert typed.checked_type == relay.TupleType([relay.TensorType((1,))] * 2)
    assert relay.testing.count_ops(relay.exp(relay.exp(x))) == {"exp": 2}
    assert relay.testing.rand("float16", 2, 3).shape == (2, 3)
    function = relay.testing.run_infer_type(relay.Function([x], relay.exp(x)))
    assert function.checked_type == relay.FuncType([x.type], x.type)
    one = relay.exp(relay.const(0.0))
    found = relay.testing.run_opt_pass(relay.Function([x], one), relay.transform.FoldConstant())
    assert isinstance(found, relay.Function)
    assert isinstance(found.body, relay.Constant)
    assert isinstance(
        relay.testing.run_opt_pass(one, relay.transform.FoldConstant()), relay.Constant
    )


def test_an_attribute_of_an_operator_for_a_while() -> None:
    module = importlib.import_module("serde.relay.testing.temp_op_attr")
    operator, marker = relay.op.get("atanh"), object()
    with module.TempOpAttr("atanh", "test.mark", marker):
        assert operator.get_attr("test.mark") is marker
    assert operator.get_attr("test.mark") is None


# What is there, and what was meant.

LAZY = {
    "relay": "const Function transform nn add concatenate",
    "relay.adt": "Match Clause",
    "relay.analysis": "free_vars well_formed",
    "relay.dataflow_pattern": "is_op rewrite wildcard",
    "relay.expr": "Call TupleWrapper bind",
    "relay.expr_functor": "ExprVisitor",
    "relay.function": "Function",
    "relay.op.contrib.onnx": "partition_for_onnx",
    "relay.testing": "run_infer_type",
    "relay.transform": "InferType FoldConstant ToMixedPrecision PassContext Sequential",
    "relay.ty": "TensorType scalar_type type_has_any",
    "relax": "__all__",
    "target": "__all__",
}


@pytest.mark.parametrize("package", LAZY)
def test_packages_that_load_names_later_list_them(package: str) -> None:
    module = importlib.import_module(f"serde.{package}")
    listed = dir(module)
    assert listed == sorted(set(listed))
    public = module.__all__ if LAZY[package] == "__all__" else LAZY[package].split()
    assert set(public) <= set(listed)
    assert not {"annotations", "lazy_names", "HOMES"} & set(listed)
    for name in listed:
        getattr(module, name)


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("nn.rleu", "relu"),
        ("op.nn.rleu", "relu"),
        ("op.transform.reshpe", "reshape"),
        ("op.reshpe", "reshape"),
        ("concatinate", "concatenate"),
        ("qnn.op.quantise", "quantize"),
        ("transform.FoldConst", "FoldConstant"),
        ("analysis.free_var", "free_vars"),
        ("expr.cosnt", "const"),
    ],
)
def test_a_misspelled_name_is_told_its_nearest(path: str, near: str) -> None:
    with pytest.raises(AttributeError, match=rf"{path.split('.')[-1]}.*\. Did you mean {near}\b"):
        follow(path)


def test_a_name_near_none_is_told_none() -> None:
    with pytest.raises(AttributeError, match=r"relay\.nn has no operator zzzzzz\.$"):
        follow("nn.zzzzzz")
