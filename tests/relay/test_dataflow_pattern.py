"""Which expressions match which patterns, as TVM documents its pattern language."""

from collections.abc import Callable

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.dataflow_pattern import (
    AltPattern,
    AndPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    wildcard,
)
from serde.relay.ir.expr import Attrs, Expr
from serde.relay.ir.registry import get

X, Y, Z, W = (relay.var(name) for name in "xyzw")
TX = relay.var("x", shape=(2, 3))
TY = relay.var("y", shape=(3,), dtype="int32")
TI = relay.var("i", shape=(1, 3, 12, 12))
TW = relay.var("w", shape=(3, 3, 3, 3))
ONE, ONEF = relay.const(1), relay.const(1.0)
_ = wildcard


def conv(x: Expr = X, w: Expr = W, **attrs: object) -> Expr:
    return relay.nn.conv2d(x, w, **attrs)


def any_conv() -> DFPattern:
    return is_op("nn.conv2d")(_(), _())


KINDS = {
    "wildcard": (wildcard(), WildcardPattern),
    "var": (is_var("x"), VarPattern),
    "constant": (is_constant(), ConstantPattern),
    "expr": (is_expr(X), ExprPattern),
    "op": (is_op("add"), ExprPattern),
    "call": (is_op("add")(_(), _()), CallPattern),
    "open call": (_()(None), CallPattern),
    "function": (FunctionPattern([_()], _()), FunctionPattern),
    "tuple": (is_tuple([_(), _()]), TuplePattern),
    "field": (is_tuple_get_item(_(), 1), TupleGetItemPattern),
    "if": (is_if(_(), _(), _()), IfPattern),
    "let": (is_let(_(), _(), _()), LetPattern),
    "or": (_() | _(), AltPattern),
    "and": (_() & _(), AndPattern),
    "+": (_() + _(), CallPattern),
    "-": (_() - _(), CallPattern),
    "*": (_() * _(), CallPattern),
    "/": (_() / _(), CallPattern),
    "optional": (_().optional(is_op("tanh")), AltPattern),
    "has_attr": (has_attr({"a": 1}), AttrPattern),
    ".has_attr": (_().has_attr({"a": 1}), AttrPattern),
    "has_type": (has_type(relay.TensorType((1,))), TypePattern),
    ".has_type": (_().has_type(relay.TensorType((1,))), TypePattern),
    "has_dtype": (has_dtype("float16"), DataTypePattern),
    ".has_dtype": (_().has_dtype("float16"), DataTypePattern),
    "has_shape": (has_shape([1, 2]), ShapePattern),
    ".has_shape": (_().has_shape([1, 2]), ShapePattern),
    "dominates": (dominates(_(), _(), _()), DominatorPattern),
    ".dominates": (_().dominates(_()), DominatorPattern),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_patterns(name: str) -> None:
    pattern, kind = KINDS[name]
    assert type(pattern) is kind
    assert isinstance(pattern, DFPattern)
    assert repr(pattern).startswith(kind.__name__)


FIELDS = {
    "var": (is_var("x").name, "x"),
    "var without name": (is_var().name, ""),
    "index": (is_tuple_get_item(_(), 3).index, 3),
    "any index": (is_tuple_get_item(_()).index, -1),
    "dtype": (has_dtype("float16").dtype, "float16"),
    "dtype of NumPy": (has_dtype(np.int8).dtype, "int8"),
    "shape": (has_shape([10, 5]).shape, (10, 5)),
    "attributes": (has_attr({"axis": 1}).attrs, {"axis": 1}),
    "any arguments": (_()(None).args, None),
    "no arguments": (_()().args, ()),
    "any fields": (is_tuple(None).fields, None),
    "number of fields": (len(is_tuple([_(), _()])), 2),
    "operator of +": ((_() + _()).op.expr, get("add")),
    "operator of -": ((_() - _()).op.expr, get("subtract")),
    "operator of *": ((_() * _()).op.expr, get("multiply")),
    "operator of /": ((_() / _()).op.expr, get("divide")),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_patterns(name: str) -> None:
    found, expected = FIELDS[name]
    assert found == expected


def test_an_operator_that_is_not_known_is_refused() -> None:
    with pytest.raises(RelayError):
        is_op("no.such.operator")


UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "log",
    "log10",
    "log2",
    "logical_not",
    "negative",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "nn.relu",
    "nn.softmax",
    "nn.batch_flatten",
    "zeros_like",
    "ones_like",
    "isnan",
    "isfinite",
    "isinf",
    "copy",
    "shape_of",
]


@pytest.mark.parametrize("name", UNARY)
def test_a_call_of_one_operand(name: str) -> None:
    call = relay.Call(get(name), [X])
    assert is_op(name)(is_var("x")).match(call)
    assert not is_op(name)(is_var("y")).match(call)


@pytest.mark.parametrize("name", UNARY)
def test_a_call_of_another_operator(name: str) -> None:
    call = relay.Call(get("add"), [X, Y])
    assert not is_op(name)(None).match(call)
    assert not is_op(name).match(get("add"))


COMMUTES = {
    "add": True,
    "multiply": True,
    "subtract": False,
    "divide": False,
    "maximum": False,
    "minimum": False,
    "power": False,
    "mod": False,
    "equal": False,
    "not_equal": False,
    "less": False,
    "greater": False,
    "logical_and": False,
    "logical_or": False,
    "bitwise_and": False,
    "left_shift": False,
}


@pytest.mark.parametrize("name", COMMUTES)
def test_operands_in_order(name: str) -> None:
    assert is_op(name)(is_var("x"), is_var("y")).match(relay.Call(get(name), [X, Y]))


@pytest.mark.parametrize("name", COMMUTES)
def test_operands_in_the_other_order(name: str) -> None:
    call = relay.Call(get(name), [Y, X])
    assert is_op(name)(is_var("x"), is_var("y")).match(call) is COMMUTES[name]


# As TVM 0.18 registers them.
OP_PATTERNS = {
    "abs": 0, "exp": 0, "tanh": 0, "sigmoid": 0, "nn.relu": 0, "nn.leaky_relu": 0, "cast": 0,
    "clip": 0, "copy": 0, "negative": 0, "zeros_like": 0,
    "add": 1, "subtract": 1, "multiply": 1, "divide": 1, "maximum": 1, "power": 1, "equal": 1,
    "where": 1, "nn.bias_add": 1, "expand_dims": 1,
    "reshape": 2, "transpose": 2, "concatenate": 2, "take": 2, "squeeze": 2, "split": 2,
    "strided_slice": 2, "nn.pad": 2,
    "sum": 3, "mean": 3, "max": 3, "prod": 3,
    "nn.conv2d": 4, "nn.conv2d_transpose": 4, "nn.dense": 4, "nn.max_pool2d": 4,
    "nn.batch_matmul": 4,
}  # fmt: skip


@pytest.mark.parametrize("name", OP_PATTERNS)
def test_attribute_of_an_operator(name: str) -> None:
    expected = OP_PATTERNS[name]
    found = [k for k in range(9) if is_op(name).has_attr({"TOpPattern": k}).match(get(name))]
    assert found == [expected]


def let(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    bound = relay.var("let")
    return relay.Let(bound, value, body(bound))


def fn(*params: Expr, body: Expr, **attrs: object) -> relay.Function:
    return relay.Function(params, body, attrs=attrs)


def call_with(**attrs: object) -> Expr:
    return relay.Call(relay.var("f"), [X], Attrs(attrs))


SHARED = wildcard()
CONV_BIAS_RELU = is_op("nn.relu")(
    any_conv().optional(lambda below: is_op("nn.bias_add")(below, _()))
)
CONV_RELU_TANH = any_conv().optional(is_op("nn.relu")).optional(is_op("tanh"))
LESS_IF = is_if(is_op("less")(is_var("x"), is_var("y")), is_var("x"), is_var("y"))
LESS_LET = is_let(is_var("let"), is_op("less")(is_var("x"), is_var("y")), is_var("let"))
FIELD_OF_3 = is_tuple((is_var("x"), _(), is_op("add")))
THREE = relay.Tuple([X, Y, get("add")])
SUM_FUNCTION = FunctionPattern([SHARED, is_var("y")], SHARED + is_var("y"))
A, B, C = is_var("x"), is_var("y"), is_var("z")
ASSOCIATED = A * B / C
ASSOCIATED_RIGHT = A * (B / C)

MATCHES: dict[str, tuple[DFPattern, Expr, bool]] = {
    "wildcard, var": (_(), X, True),
    "wildcard, op": (_(), get("add"), True),
    "wildcard, call": (_(), X + Y, True),
    "wildcard, function": (_(), fn(X, body=X), True),
    "var, any": (is_var(), X, True),
    "var, name": (is_var("x"), X, True),
    "var, other name": (is_var("y"), X, False),
    "var, constant": (is_var(), ONE, False),
    "var, call": (is_var(), X + Y, False),
    "var, global": (is_var(), relay.GlobalVar("x"), False),
    "constant": (is_constant(), ONE, True),
    "constant, var": (is_constant(), X, False),
    "constant, call": (is_constant(), ONE + ONE, False),
    "op": (is_op("add"), get("add"), True),
    "op, other": (is_op("add"), get("subtract"), False),
    "op, call of it": (is_op("add"), X + Y, False),
    "op or op, left": (is_op("add") | is_op("subtract"), get("add"), True),
    "op or op, right": (is_op("add") | is_op("subtract"), get("subtract"), True),
    "op or op, neither": (is_op("add") | is_op("subtract"), get("divide"), False),
    "and, both": (is_op("add")(_(), _()) & is_op("add")(A, _()), X + Z, True),
    "and, left only": (is_op("add")(_(), _()) & is_op("add")(A, _()), Y + Z, False),
    "and, right only": (is_var("y") & is_var(), X, False),
    "and, neither": (is_constant() & is_var("y"), X, False),
    "and, of types": (has_dtype("float32") & has_shape((2, 3)), TX, True),
    "and, of types, one wrong": (has_dtype("int32") & has_shape((2, 3)), TX, False),
    "expr, var itself": (is_expr(X), X, True),
    "expr, var of its name": (is_expr(X), relay.var("x"), False),
    "expr, constant": (is_expr(ONE), relay.const(1), True),
    "expr, constant of another value": (is_expr(ONE), relay.const(2), False),
    "expr, constant of another dtype": (is_expr(ONE), ONEF, False),
    "expr, constant of another shape": (is_expr(ONE), relay.const([1]), False),
    "expr, call": (is_expr(X + Y), X + Y, True),
    "expr, call of others": (is_expr(X + Y), X + Z, False),
    "expr, not commuted": (is_expr(X + Y), Y + X, False),
    "call, any operator": (_()(_(), _()), X + Y, True),
    "call, other number of arguments": (_()(_()), X + Y, False),
    "call, any arguments": (_()(None), X + Y, True),
    "call, any arguments of one": (_()(None), relay.nn.relu(X), True),
    "call, operator and any arguments": (is_op("add")(None), X + Y, True),
    "call, other operator and any arguments": (is_op("add")(None), X - Y, False),
    "call, of a var": (_()(None), X, False),
    "call, either operator": ((is_op("add") | is_op("subtract"))(_(), _()), X - Y, True),
    "call, neither operator": ((is_op("add") | is_op("subtract"))(_(), _()), X * Y, False),
    "call, alternatives do not commute": ((is_op("add") | is_op("subtract"))(A, B), Y + X, False),
    "call, of a function": (_()(_()), fn(X, body=X)(Y), True),
    "call, of a function pattern": (FunctionPattern([_()], _())(_()), fn(X, body=X)(Y), True),
    "call, of a global": (_()(_()), relay.GlobalVar("f")(X), True),
    "call, of a var of function": (is_var("f")(_()), relay.var("f")(X), True),
    "same pattern, same value": (SHARED + SHARED, X + X, True),
    "same pattern, other value": (SHARED + SHARED, X + Y, False),
    "same pattern, equal constants": (SHARED + SHARED, relay.const(1) + relay.const(1), False),
    "same pattern, after commuting": (is_op("add")(SHARED, is_op("exp")(SHARED)),
                                      relay.exp(X) + X, True),
    "same pattern, failing after commuting": (is_op("add")(SHARED, is_op("exp")(SHARED)),
                                              relay.exp(X) + Y, False),
    "backtracks over arguments": ((SHARED - is_constant()) | (is_constant() - SHARED),
                                  ONE - X, True),
    "forgets what failed": (is_op("add")(is_op("exp")(SHARED) | is_op("tanh")(SHARED), SHARED),
                            relay.tanh(X) + X, True),
    "nested, commuted twice": (A * (B + C), (Z + Y) * X, True),
    "nested, wrong leaf": (A * (B + C), (Z + X) * X, False),
    "function": (SUM_FUNCTION, fn(X, Y, body=X + Y), True),
    "function, commuted": (SUM_FUNCTION, fn(X, Y, body=Y + X), True),
    "function, other body": (SUM_FUNCTION, fn(X, Y, body=X - Y), False),
    "function, other number": (SUM_FUNCTION, fn(X, body=X + Y), False),
    "function, parameter not used": (SUM_FUNCTION, fn(X, Y, body=Y + Y), False),
    "function, any parameters": (FunctionPattern(None, _()), fn(X, body=X), True),
    "function, any two": (FunctionPattern(None, _() + _()), fn(X, Y, body=X + Y), True),
    "function, no function": (FunctionPattern(None, _()), X, False),
    "if": (LESS_IF, relay.If(X < Y, X, Y), True),
    "if, other condition": (LESS_IF, relay.If(X > Y, X, Y), False),
    "if, branches exchanged": (LESS_IF, relay.If(X < Y, Y, X), False),
    "if, no if": (LESS_IF, X < Y, False),
    "let": (LESS_LET, let(X < Y, lambda v: v), True),
    "let, other value": (LESS_LET, let(X > Y, lambda v: v), False),
    "let, other body": (LESS_LET, let(X < Y, lambda v: v * X), False),
    "let, no let": (LESS_LET, X < Y, False),
    "let, not seen through": (is_op("tanh")(_() + _()), let(X + Y, relay.tanh), False),
    "tuple": (FIELD_OF_3, THREE, True),
    "tuple, more fields": (is_tuple((A, _(), _(), _())), THREE, False),
    "tuple, fewer fields": (is_tuple((A, _())), THREE, False),
    "tuple, order counts": (is_tuple((_(), A, _())), THREE, False),
    "tuple, any fields": (is_tuple(None), THREE, True),
    "tuple, any fields of none": (is_tuple(None), relay.Tuple([]), True),
    "tuple, none": (is_tuple([]), relay.Tuple([]), True),
    "tuple, none of some": (is_tuple([]), THREE, False),
    "tuple, no tuple": (is_tuple(None), X, False),
    "field": (is_tuple_get_item(FIELD_OF_3, 1), relay.TupleGetItem(THREE, 1), True),
    "field, other index": (is_tuple_get_item(FIELD_OF_3, 1), relay.TupleGetItem(THREE, 2), False),
    "field, any index, 0": (is_tuple_get_item(FIELD_OF_3), relay.TupleGetItem(THREE, 0), True),
    "field, any index, 2": (is_tuple_get_item(FIELD_OF_3), relay.TupleGetItem(THREE, 2), True),
    "field, of another": (is_tuple_get_item(is_var()), relay.TupleGetItem(THREE, 2), False),
    "field, no field": (is_tuple_get_item(_()), THREE, False),
    "concatenate": (is_op("concatenate")(is_tuple(None)), relay.concatenate([X, Y], 0), True),
    "concatenate, two": (is_op("concatenate")(is_tuple([_(), _()])),
                         relay.concatenate([X, Y, Z], 0), False),
    "option, without": (CONV_BIAS_RELU, relay.nn.relu(conv()), True),
    "option, with": (CONV_BIAS_RELU, relay.nn.relu(relay.nn.bias_add(conv(), Z)), True),
    "option, other root": (CONV_BIAS_RELU, relay.tanh(conv()), False),
    "option, other leaf": (CONV_BIAS_RELU, relay.nn.relu(relay.nn.dense(X, W)), False),
    "option, other leaf below": (CONV_BIAS_RELU,
                                 relay.nn.relu(relay.nn.bias_add(relay.nn.dense(X, W), Z)), False),
    "option, other option": (CONV_BIAS_RELU, relay.nn.relu(conv() + Z), False),
    "options, none": (CONV_RELU_TANH, conv(), True),
    "options, first": (CONV_RELU_TANH, relay.nn.relu(conv()), True),
    "options, second": (CONV_RELU_TANH, relay.tanh(conv()), True),
    "options, both": (CONV_RELU_TANH, relay.tanh(relay.nn.relu(conv())), True),
    "options, other order": (CONV_RELU_TANH, relay.nn.relu(relay.tanh(conv())), False),
    "options, one twice": (CONV_RELU_TANH, relay.nn.relu(relay.nn.relu(conv())), False),
    "a*b/c": (ASSOCIATED, X * Y / Z, True),
    "a*b/c, commuted": (ASSOCIATED, Y * X / Z, True),
    "a*b/c, a*(b/c)": (ASSOCIATED, X * (Y / Z), True),
    "a*b/c, b*(a/c)": (ASSOCIATED, Y * (X / Z), True),
    "a*b/c, (b/c)*a": (ASSOCIATED, (Y / Z) * X, True),
    "a*b/c, (a/c)*b": (ASSOCIATED, (X / Z) * Y, True),
    "a*b/c, a*c/b": (ASSOCIATED, X * Z / Y, False),
    "a*b/c, a*(c/b)": (ASSOCIATED, X * (Z / Y), False),
    "a*b/c, a/(b*c)": (ASSOCIATED, X / (Y * Z), False),
    "a*b/c, a*b": (ASSOCIATED, X * Y, False),
    "a*(b/c)": (ASSOCIATED_RIGHT, X * (Y / Z), True),
    "a*(b/c), (b/c)*a": (ASSOCIATED_RIGHT, (Y / Z) * X, True),
    "a*(b/c), a*b/c": (ASSOCIATED_RIGHT, X * Y / Z, True),
    "a*(b/c), b*a/c": (ASSOCIATED_RIGHT, Y * X / Z, True),
    "a*(b/c), b*(a/c)": (ASSOCIATED_RIGHT, Y * (X / Z), False),
    "a*(b/c), a*c/b": (ASSOCIATED_RIGHT, X * Z / Y, False),
    "(b/c)*a, a*b/c": ((B / C) * A, X * Y / Z, True),
    "a/c, a*c": (A / C, X * Z, False),
    "a+b-c does not associate": (A + B - C, X + (Y - Z), False),
    "type": (has_type(relay.TensorType((2, 3), "float32")), TX, True),
    "type, other dtype": (has_type(relay.TensorType((2, 3), "int32")), TX, False),
    "type, other shape": (has_type(relay.TensorType((3, 2), "float32")), TX, False),
    "type, of a call": (has_type(relay.TensorType((2, 3))), relay.tanh(TX), True),
    "type, and pattern": (has_type(relay.TensorType((2, 3)), is_var("x")), TX, True),
    "type, and other pattern": (has_type(relay.TensorType((2, 3)), is_var("y")), TX, False),
    "type, tuple": (has_type(relay.TupleType([TX.type, TY.type])), relay.Tuple([TX, TY]), True),
    "type, tuple of others": (has_type(relay.TupleType([TX.type])), relay.Tuple([TX, TY]), False),
    "type, constant": (has_type(relay.TensorType((), "int32")), ONE, True),
    "dtype": (has_dtype("float32"), TX, True),
    "dtype, other": (has_dtype("float32"), TY, False),
    "dtype, of a call": (has_dtype("int64"), relay.cast(TX, "int64"), True),
    "dtype, before a cast": (is_op("cast")(has_dtype("float32")), relay.cast(TX, "int64"), True),
    "dtype, tuple": (has_dtype("float32"), relay.Tuple([TX]), False),
    "dtype, operator": (has_dtype("float32"), get("add"), False),
    "dtype, pattern": (is_var("x").has_dtype("float32"), TX, True),
    "shape": (has_shape((2, 3)), TX, True),
    "shape, list": (has_shape([2, 3]), TX, True),
    "shape, other": (has_shape((2, 4)), TX, False),
    "shape, other rank": (has_shape((2,)), TX, False),
    "shape, scalar": (has_shape(()), ONE, True),
    "shape, tuple": (has_shape((2, 3)), relay.Tuple([TX]), False),
    "shape, of a call": (any_conv().has_shape((1, 3, 10, 10)), conv(TI, TW), True),
    "shape, of a call, other": (any_conv().has_shape((1, 3, 12, 12)), conv(TI, TW), False),
    "op attribute": (is_op("add").has_attr({"TOpPattern": 1})(_(), _()), X + Y, True),
    "op attribute, other value": (is_op("nn.dense").has_attr({"TOpPattern": 0})(_(), _()),
                                  relay.nn.dense(X, Y), False),
    "op attribute, other op": (is_op("add").has_attr({"TOpPattern": 1})(_(), _()), X - Y, False),
    "op attribute, let": (is_op("add").has_attr({"TOpPattern": 1})(_(), _()),
                          let(X + Y, lambda v: v), False),
    "op attribute, any op": (_().has_attr({"TOpPattern": 0})(_()), relay.tanh(X), True),
    "op attribute, none such": (is_op("add").has_attr({"Other": 1}), get("add"), False),
    "op attribute, not of calls": (_().has_attr({"TOpPattern": 0}), relay.tanh(X), False),
    "function attribute": (has_attr({"Composite": "add"}),
                           fn(X, Y, body=X + Y, Composite="add"), True),
    "function attribute, other value": (has_attr({"Composite": "add"}),
                                        fn(X, Y, body=X + Y, Composite="sub"), False),
    "function attribute, other name": (has_attr({"Composite": "add"}),
                                       fn(X, Y, body=X + Y, Other="add"), False),
    "function attribute, several": (has_attr({"a": 1, "b": "c"}),
                                    fn(X, body=X, a=1, b="c", c=3), True),
    "function attribute, one of several": (has_attr({"a": 1, "b": "c"}),
                                           fn(X, body=X, a=1), False),
    "function attribute, of a callee": (has_attr({"Composite": "id"})(_()),
                                        fn(X, body=X, Composite="id")(Y), True),
    "attribute": (any_conv().has_attr({"data_layout": "NCHW"}), conv(), True),
    "attribute, other value": (any_conv().has_attr({"data_layout": "NHWC"}), conv(), False),
    "attribute, other name": (any_conv().has_attr({"Other": "NCHW"}), conv(), False),
    "attribute, list": (any_conv().has_attr({"kernel_size": [3, 3]}),
                        conv(kernel_size=[3, 3]), True),
    "attribute, tuple": (any_conv().has_attr({"kernel_size": (3, 3)}),
                         conv(kernel_size=[3, 3]), True),
    "attribute, other list": (any_conv().has_attr({"kernel_size": [3, 3]}),
                              conv(kernel_size=[2, 1]), False),
    "attribute, longer list": (any_conv().has_attr({"kernel_size": [3, 3, 3]}),
                               conv(kernel_size=[3, 3]), False),
    "attribute, list of nothing given": (any_conv().has_attr({"kernel_size": [3, 3]}),
                                         conv(), False),
    "attribute, integer": (any_conv().has_attr({"groups": 1}), conv(), True),
    "attribute, other integer": (any_conv().has_attr({"groups": 2}), conv(), False),
    "attribute, float": (has_attr({"alpha": 0.5}), relay.nn.leaky_relu(X, alpha=0.5), True),
    "attribute, integer for a float": (has_attr({"alpha": 1}),
                                       relay.nn.leaky_relu(X, alpha=1.0), False),
    "attribute, float for an integer": (any_conv().has_attr({"groups": 1.0}), conv(), False),
    "attribute, truth": (has_attr({"keepdims": True}), relay.sum(X, keepdims=True), True),
    "attribute, other truth": (has_attr({"keepdims": True}), relay.sum(X), False),
    "attribute, dtype": (is_op("cast")(_()).has_attr({"dtype": "float32"}),
                         relay.cast(X, "float32"), True),
    "attribute, other dtype": (is_op("cast")(_()).has_attr({"dtype": "float16"}),
                               relay.cast(X, "float32"), False),
    "attribute, several": (has_attr({"groups": 1, "data_layout": "NCHW"}), conv(), True),
    "attribute, one of several": (has_attr({"groups": 2, "data_layout": "NCHW"}), conv(), False),
    "attribute, not of the operand": (is_op("tanh")(_()).has_attr({"groups": 1}),
                                      relay.tanh(conv()), False),
    "attribute, of no operator": (_()(_()).has_attr({"a": "b"}), call_with(a="b"), True),
    "attribute, of no operator, key": (_()(_()).has_attr({"a": "b"}), call_with(c="b"), False),
    "attribute, of no operator, value": (_()(_()).has_attr({"a": "b"}), call_with(a="c"), False),
    "attribute, of no operator, none": (_()(_()).has_attr({"a": "b"}), call_with(), False),
    "no attributes": (_()(_()).has_attr({}), call_with(), True),
    "no attributes, of some": (_()(_()).has_attr({}), call_with(a="b"), True),
    "no attributes, of a function": (has_attr({}), fn(X, body=X), True),
    "no attributes, of a var": (has_attr({}), X, False),
    "constant weight": (is_op("nn.conv2d")(_(), is_constant()), conv(X, ONEF), True),
    "no constant weight": (is_op("nn.conv2d")(_(), is_constant()), conv(), False),
}  # fmt: skip


@pytest.mark.parametrize("name", MATCHES)
def test_match(name: str) -> None:
    pattern, expr, expected = MATCHES[name]
    assert pattern.match(expr) is expected
    assert match(pattern, expr) is expected


def diamond(source: Expr, left: Expr | None = None) -> Expr:
    """A sum of two activations of one value, or of a value and another's."""
    one = relay.nn.relu(relay.nn.relu(source))
    return one + relay.nn.leaky_relu(source if left is None else left, alpha=0.0)


def doubled(source: Expr) -> Expr:
    relu = relay.nn.relu(source)
    return relu + relu


CONV, OTHER_CONV = conv(), conv(Y, Z)
TYPED = conv(TI, TW)
FIXED_DIAMOND = is_op("add")(*(is_op(n)(CONV_P) for CONV_P in [any_conv()]
                               for n in ("nn.relu", "nn.leaky_relu")))  # fmt: skip
FIRST = conv()
SECOND = conv(relay.tanh(FIRST))


def elementwise() -> DFPattern:
    return _().has_attr({"TOpPattern": 0})(_())


def loose() -> DFPattern:
    return elementwise() | (_() + _())


def over(path: DFPattern) -> DFPattern:
    return dominates(any_conv(), path, _() + _())


def typed(dtype: str, shape: list[int]) -> DFPattern:
    path = elementwise().has_dtype(dtype)
    return dominates(any_conv(), path, (_() + _()).has_shape(shape))


FUZZY = relay.tanh(doubled(CONV)) + relay.nn.leaky_relu(CONV, alpha=0.0)
DOMINATORS: dict[str, tuple[DFPattern, Expr, bool]] = {
    "fixed": (FIXED_DIAMOND, relay.nn.relu(CONV) + relay.nn.leaky_relu(CONV, alpha=0.0), True),
    "fixed, a branch": (FIXED_DIAMOND, relay.nn.relu(CONV), False),
    "fixed, two sources": (FIXED_DIAMOND,
                           relay.nn.relu(CONV) + relay.nn.leaky_relu(OTHER_CONV, alpha=0.0), False),
    "fixed, another sum above": (FIXED_DIAMOND, diamond(CONV) + CONV, False),
    "diamond": (over(elementwise()), diamond(CONV), True),
    "deeper": (over(elementwise()), relay.tanh(relay.nn.relu(CONV)) + relay.exp(CONV), True),
    "one branch": (over(elementwise()), doubled(CONV), True),
    "branch of a branch": (over(elementwise()),
                           (lambda r: r + relay.tanh(r))(relay.nn.relu(CONV)), True),
    "parent at once": (over(elementwise()), CONV + CONV, True),
    "parent at once, and a branch": (over(elementwise()), CONV + relay.exp(CONV), True),
    "nested": (over(loose()), FUZZY, True),
    "nested, path too narrow": (over(elementwise()), FUZZY, False),
    "two sources": (over(elementwise()), diamond(CONV, OTHER_CONV), False),
    "source below the parent": (over(elementwise()), relay.nn.relu(X) + relay.exp(CONV), False),
    "no parent": (over(elementwise()), doubled(relay.nn.relu(X)), False),
    "other child": (over(elementwise()), relay.nn.relu(CONV) * relay.nn.relu(CONV), False),
    "two parents": (over(is_op("nn.relu")(_())),
                    relay.nn.relu(SECOND) + relay.nn.relu(FIRST), False),
    "two parents, one at once": (over(is_op("nn.relu")(_())), SECOND + relay.nn.relu(FIRST), False),
    "typed": (typed("float32", [1, 3, 10, 10]), diamond(TYPED), True),
    "typed, other shape": (typed("float32", [1, 1, 10, 10]), diamond(TYPED), False),
    "typed, other dtype": (typed("float16", [1, 3, 10, 10]), diamond(TYPED), False),
    "any path": (is_op("tanh")(_()).dominates(any_conv()), relay.tanh(relay.exp(CONV)), True),
    "any path, no parent": (is_op("tanh")(_()).dominates(any_conv()), relay.tanh(relay.exp(X)),
                            False),
}  # fmt: skip


@pytest.mark.parametrize("name", DOMINATORS)
def test_dominators(name: str) -> None:
    pattern, expr, expected = DOMINATORS[name]
    assert pattern.match(expr) is expected


def test_a_pattern_may_recur() -> None:
    below = wildcard()
    chain = is_op("tanh")(below)
    below.redirect_to(chain | is_var("x"))
    assert chain.match(relay.tanh(relay.tanh(relay.tanh(X))))
    assert not chain.match(relay.tanh(relay.exp(relay.tanh(X))))


@pytest.mark.wide
def test_a_pattern_recurs_over_a_deep_expression() -> None:
    below = wildcard()
    chain = is_op("tanh")(below)
    below.redirect_to(chain | is_var())
    deep: Expr = TX
    for _index in range(100_000):
        deep = relay.tanh(deep)
    assert chain.match(deep)


@pytest.mark.wide
def test_a_deep_pattern_matches_a_deep_expression() -> None:
    deep: Expr = TX
    pattern: DFPattern = is_var("x")
    for _index in range(20_000):
        deep = relay.tanh(deep)
        pattern = is_op("tanh")(pattern)
    assert pattern.match(deep)
    assert not pattern.match(relay.tanh(deep))
