"""Functions of Relay: their nodes where they are called, or local functions of ONNX."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx.inliner
import pytest
from support.exported import assert_close, export, interpreted, run_proto, typed

import serde
import serde.relay as relay
from serde.errors import OptionError, UnsupportedModelError
from serde.onnx.builder import walk_nodes
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.foreign import Foreign
from serde.relay.ir.infer import infer_function
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import FuncType, TensorType, TupleType

RNG = np.random.default_rng(5)
X3, Y3 = RNG.standard_normal((2, 3)).astype(np.float32)
IMAGE = RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)
KERNEL = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
BIAS = RNG.standard_normal(4).astype(np.float32)

VECTOR = TensorType((3,))


def vector(name: str = "x") -> Var:
    return relay.var(name, shape=(3,))


def conv_relu(**attrs: object) -> Function:
    data = relay.var("data", shape=(1, 3, 8, 8))
    weight, bias = relay.var("weight", shape=(4, 3, 3, 3)), relay.var("bias", shape=(4,))
    summed = relay.nn.bias_add(relay.nn.conv2d(data, weight, padding=(1, 1)), bias)
    return Function([data, weight, bias], relay.nn.relu(summed), attrs=attrs)


def check(
    source: Function | IRModule, arguments: Sequence[np.ndarray], opset: int = 17, **options: object
) -> onnx.ModelProto:
    """Export, and compare with the interpreter: as it is, and with functions inlined by ONNX."""
    expected = interpreted(source, arguments)
    proto = export(source, opset, **options)
    assert_close(run_proto(proto, arguments), expected)
    if proto.functions:
        assert_close(run_proto(onnx.inliner.inline_local_functions(proto), arguments), expected)
    return proto


def names(proto: onnx.ModelProto) -> list[str]:
    return [function.name for function in proto.functions]


def called(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node if node.domain == "serde"]


def two_convs(**attrs: object) -> Function:
    x = relay.var("x", shape=(1, 3, 8, 8))
    w, b = relay.var("w", shape=(4, 3, 3, 3)), relay.var("b", shape=(4,))
    first = Call(conv_relu(**attrs), [x, w, b])
    second = Call(conv_relu(**attrs), [relay.tanh(x), w, b])
    return Function([x, w, b], relay.add(first, second))


@pytest.mark.parametrize(
    "attrs",
    [
        {"Composite": "dnnl.conv2d_relu"},
        {"Primitive": 1},
        {"Compiler": "dnnl", "global_symbol": "dnnl_0"},
        {},
    ],
    ids=["composite", "primitive", "compiler", "plain"],
)
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
def test_functions_are_inlined(attrs: dict[str, object], opset: int) -> None:
    proto = check(two_convs(**attrs), [IMAGE, KERNEL, BIAS], opset)
    assert not proto.functions
    assert sorted(node.op_type for node in proto.graph.node) == [
        "Add", "Conv", "Conv", "Relu", "Relu", "Tanh",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("attrs", "name"),
    [
        ({"Composite": "dnnl.conv2d_relu"}, "dnnl_conv2d_relu"),
        ({"Primitive": 1, "PartitionedFromPattern": "nn.conv2d_nn.relu_"}, "nn_conv2d_nn_relu"),
        ({"Primitive": 1}, "fused_nn_conv2d_nn_bias_add_nn_relu"),
    ],
)
@pytest.mark.parametrize("opset", [15, 17, 21])
def test_equal_functions_are_one_local_function(
    attrs: dict[str, object], name: str, opset: int
) -> None:
    proto = check(two_convs(**attrs), [IMAGE, KERNEL, BIAS], opset, local_functions=True)
    assert names(proto) == [name]
    assert called(proto) == [name, name]
    (function,) = proto.functions
    assert list(function.input) == ["data", "weight", "bias"]
    assert [node.op_type for node in function.node] == ["Conv", "Relu"]
    assert proto.ir_version >= 8
    assert {each.domain: each.version for each in proto.opset_import} == {"": opset, "serde": 1}
    assert [each.domain for each in function.opset_import] == [""]


def test_weights_are_inputs_of_local_functions() -> None:
    source = two_convs(Composite="dnnl.conv2d_relu")
    expected = interpreted(source, [IMAGE, KERNEL, BIAS])
    proto = export(source, params={"w": KERNEL, "b": BIAS}, local_functions=True)
    assert {tensor.name for tensor in proto.graph.initializer} == {"w", "b"}
    assert_close(run_proto(proto, [IMAGE]), expected)


def test_local_functions_need_opset_15() -> None:
    with pytest.raises(OptionError, match="opset 15"):
        export(two_convs(Primitive=1), 14, local_functions=True)


def fused(factor: float) -> Function:
    p = vector("p")
    body = relay.multiply(relay.exp(p), relay.const(np.full(3, factor, np.float32)))
    return Function([p], body, attrs={"Primitive": 1})


def test_functions_that_differ_in_a_constant_are_two() -> None:
    x = vector()
    body = relay.add(Call(fused(2.0), [x]), Call(fused(3.0), [x]))
    proto = check(Function([x], body), [X3], local_functions=True)
    assert names(proto) == ["fused_exp_multiply", "fused_exp_multiply_1"]
    for function in proto.functions:
        assert [node.op_type for node in function.node] == ["Constant", "Exp", "Mul"] or [
            node.op_type for node in function.node
        ] == ["Exp", "Constant", "Mul"]


def test_functions_that_differ_in_an_attribute_are_two() -> None:
    def softmax(axis: int) -> Function:
        p = relay.var("p", shape=(3, 3))
        return Function([p], relay.nn.softmax(p, axis=axis), attrs={"Composite": "vendor.softmax"})

    x = relay.var("x", shape=(3, 3))
    body = relay.add(Call(softmax(0), [x]), Call(softmax(1), [x]))
    data = RNG.standard_normal((3, 3)).astype(np.float32)
    proto = check(Function([x], body), [data], local_functions=True)
    assert names(proto) == ["vendor_softmax", "vendor_softmax_1"]


def test_constant_argument_is_a_constant_of_the_function() -> None:
    p, slope = relay.var("p", shape=(1, 3)), relay.var("slope", shape=())
    scaled = Function([p, slope], relay.multiply(p, slope), attrs={"Composite": "vendor.scale"})
    x = relay.var("x", shape=(1, 3))
    body = relay.add(Call(scaled, [x, relay.const(2.0)]), Call(scaled, [x, relay.const(3.0)]))
    proto = check(Function([x], body), [X3.reshape(1, 3)], local_functions=True)
    assert [list(function.input) for function in proto.functions] == [["p"], ["p_1"]]


def test_global_functions() -> None:
    u, x = vector("u"), vector()
    helper, half = GlobalVar("helper"), GlobalVar("half")
    v = vector("v")
    mod = IRModule(
        {
            GlobalVar("main"): Function(
                [x], relay.add(Call(helper, [x]), Call(helper, [relay.exp(x)]))
            ),
            helper: Function([u], relay.tanh(Call(half, [u]))),
            half: Function([v], relay.multiply(v, relay.const(0.5))),
        }
    )
    assert not check(mod, [X3]).functions
    proto = check(mod, [X3], local_functions=True)
    assert names(proto) == ["half", "helper"]
    assert called(proto) == ["helper", "helper"]
    nested = proto.functions[1]
    assert [node.op_type for node in nested.node] == ["half", "Tanh"]
    assert [each.domain for each in nested.opset_import] == ["", "serde"]


def test_composite_inside_a_compiler_function() -> None:
    a = vector("a")
    inner = Function([a], relay.nn.relu(relay.negative(a)), attrs={"Composite": "npu.neg_relu"})
    p = vector("p")
    attrs = {"Compiler": "npu", "global_symbol": "npu_main_0"}
    outer = Function([p], relay.exp(Call(inner, [p])), attrs=attrs)
    x, whole = vector(), GlobalVar("npu_main_0")
    mod = IRModule({GlobalVar("main"): Function([x], Call(whole, [x])), whole: outer})
    assert not check(mod, [X3]).functions
    proto = check(mod, [X3], local_functions=True)
    assert names(proto) == ["npu_neg_relu", "npu_main_0"]


def test_what_a_closure_captures_is_an_input() -> None:
    x, y, p = vector(), vector("y"), vector("p")
    taken = relay.exp(y)
    v = Var("taken")
    fused = Function([p], relay.add(p, v), attrs={"Primitive": 1})
    source = Function([x, y], Let(v, taken, Call(fused, [x])))
    assert not check(source, [X3, Y3]).functions
    w = vector("w")
    direct = Function([p], relay.add(p, w), attrs={"Primitive": 1})
    proto = check(Function([x, w], Call(direct, [x])), [X3, Y3], local_functions=True)
    assert [list(function.input) for function in proto.functions] == [["p", "w_1"]]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("chosen", [True, False])
def test_higher_order_functions(local: bool, chosen: bool) -> None:
    """A closure that is returned, functions handed to a function, one chosen by a condition."""
    y, z, c = vector("y"), vector("z"), relay.var("c", shape=(), dtype="bool")
    u, captured, inner = vector("u"), vector("captured"), vector("inner")
    helper, twice = GlobalVar("helper"), GlobalVar("twice")
    h, hx = Var("h", FuncType([VECTOR], VECTOR)), vector("hx")
    maker = Function([captured], Function([inner], relay.add(inner, captured)))
    fn, pick, k = Var("fn"), Var("pick"), vector("k")
    total = relay.add(Call(fn, [z]), relay.add(Call(twice, [helper, y]), Call(twice, [fn, z])))
    choice = If(c, helper, Function([k], relay.negative(k)))
    body = Let(fn, Call(maker, [y]), Let(pick, choice, relay.add(total, Call(pick, [z]))))
    mod = IRModule(
        {
            GlobalVar("main"): Function([c, y, z], body),
            helper: Function([u], relay.tanh(u)),
            twice: Function([h, hx], Call(h, [Call(h, [hx])])),
        }
    )
    proto = check(mod, [np.array(chosen), X3, Y3], local_functions=local)
    assert names(proto) == (["helper"] if local else [])


@pytest.mark.parametrize("local", [False, True])
def test_functions_in_a_tuple(local: bool) -> None:
    x, p, q, pair = vector(), vector("p"), vector("q"), Var("pair")
    functions = Tuple([Function([p], relay.exp(p)), Function([q], relay.negative(q))])
    body = Let(
        pair,
        functions,
        relay.add(Call(TupleGetItem(pair, 0), [x]), Call(TupleGetItem(pair, 1), [x])),
    )
    check(Function([x], body), [X3], local_functions=local)


@pytest.mark.parametrize("local", [False, True])
def test_tuples_in_and_out_of_a_function(local: bool) -> None:
    t = relay.var("t", TupleType([VECTOR, TupleType([VECTOR])]))
    first, second = TupleGetItem(t, 0), TupleGetItem(TupleGetItem(t, 1), 0)
    result = Tuple([Tuple([second, relay.add(first, second)]), first])
    swap = Function([t], result, attrs={"Composite": "vendor.swap"})
    x, y = vector(), vector("y")
    done = Call(swap, [Tuple([x, Tuple([relay.exp(y)])])])
    inner = TupleGetItem(done, 0)
    body = Tuple([TupleGetItem(inner, 0), TupleGetItem(inner, 1), TupleGetItem(done, 1)])
    proto = check(Function([x, y], body), [X3, Y3], local_functions=local)
    if local:
        (function,) = proto.functions
        assert list(function.input) == ["t_0", "t_1_0"]
        assert len(function.output) == 3
        assert not set(function.input) & set(function.output)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("chosen", [True, False])
def test_function_with_a_condition_called_from_a_branch(local: bool, chosen: bool) -> None:
    c, p = relay.var("c", shape=(), dtype="bool"), vector("p")
    inner = If(c, relay.exp(p), relay.multiply(p, relay.const(3.0)))
    f = Function([c, p], inner, attrs={"Composite": "vendor.gate"})
    d, x = relay.var("d", shape=(), dtype="bool"), vector()
    body = If(d, Call(f, [d, x]), Call(f, [d, relay.negative(x)]))
    proto = check(Function([d, x], body), [np.array(chosen), X3], local_functions=local)
    assert len(proto.functions) == local


@pytest.mark.parametrize("local", [False, True])
def test_function_called_from_the_body_of_a_loop(local: bool) -> None:
    p = vector("p")
    f = Function([p], relay.tanh(relay.multiply(p, relay.const(2.0))), attrs={"Primitive": 1})
    i, a = relay.var("i", shape=(), dtype="int64"), vector("a")
    body = infer_function(Function([i, a], Tuple([relay.const(True), Call(f, [Call(f, [a])])])))
    x = vector()
    looped = relay.serde.loop(relay.const(3, "int64"), None, [x], [], body=body)[0]
    proto = check(Function([x], looped), [X3], local_functions=local)
    ops = [node.op_type for node in walk_nodes(proto.graph.node)]
    assert ops.count("fused_multiply_tanh") == 2 * local


@pytest.mark.parametrize("local", [False, True])
def test_loop_in_a_function(local: bool) -> None:
    i, a, k = relay.var("i", shape=(), dtype="int64"), vector("a"), vector("k")
    body = Function([i, a, k], Tuple([relay.const(True), relay.add(a, k)]))
    p, q = vector("p"), vector("q")
    looped = relay.serde.loop(relay.const(3, "int64"), None, [p], [relay.exp(q)], body=body)[0]
    f = Function([p, q], looped, attrs={"Composite": "vendor.accumulate"})
    x, y = vector(), vector("y")
    proto = check(Function([x, y], Call(f, [x, y])), [X3, Y3], local_functions=local)
    assert names(proto) == ["vendor_accumulate"] * local


@pytest.mark.parametrize("local", [False, True])
def test_symbols_of_a_function_are_those_of_its_call(local: bool) -> None:
    """The function says (N, N); it is called where N is called M, and where it is 2."""
    p = relay.var("p", shape=("N",))
    square = relay.broadcast_to(p, (*p.type.shape, *p.type.shape))
    f = GlobalVar("square")
    x, y = relay.var("x", shape=("M",)), relay.var("y", shape=(2,))
    mod = IRModule(
        {
            GlobalVar("main"): Function(
                [x, y], Tuple([relay.exp(Call(f, [x])), relay.exp(Call(f, [y]))])
            ),
            f: Function([p], square),
        }
    )
    proto = export(mod, local_functions=local)
    found = run_proto(proto, [X3, X3[:2]])
    expected = [np.broadcast_to(np.exp(X3), (3, 3)), np.broadcast_to(np.exp(X3[:2]), (2, 2))]
    assert_close(found, expected)
    assert names(proto) == ["square"] * local


def test_global_function_that_calls_itself_is_refused() -> None:
    n, u, f = relay.var("n", shape=(), dtype="int32"), vector("u"), GlobalVar("f", None)
    less = relay.subtract(n, relay.const(1))
    again = relay.add(Call(f, [less, u]), Call(f, [less, relay.exp(u)]))
    f.type = FuncType([n.type, VECTOR], VECTOR)
    x = vector()
    mod = IRModule(
        {
            f: Function([n, u], If(relay.less(n, relay.const(1)), u, again), VECTOR),
            GlobalVar("main"): Function([x], Call(f, [relay.const(2), x])),
        }
    )
    for options in ({}, {"local_functions": True}):
        with pytest.raises(UnsupportedModelError, match="calls itself"):
            export(mod, **options)


def test_gap_in_a_local_function_is_named_with_its_path() -> None:
    p = relay.var("p", shape=(3, 3))
    bad = relay.cast(relay.reinterpret(p, "int32"), "float32")
    f = Function([p], bad, attrs={"Composite": "vendor.pick"})
    x = relay.var("x", shape=(3, 3))
    source = Function([x], relay.add(Call(f, [x]), Call(f, [relay.exp(x)])))
    with pytest.raises(UnsupportedModelError, match=r"x1 .*\[vendor_pick/reinterpret\]"):
        export(source, local_functions=True)


def test_operators_inside_are_counted() -> None:
    report = serde.Report()
    mod = typed(two_convs(Composite="dnnl.conv2d_relu"))
    serde.export_model((mod, {}), format="onnx", local_functions=True, report=report)
    assert report.after == {"dnnl_conv2d_relu": 2, "Tanh": 1, "Add": 1, "Conv": 1, "Relu": 1}


@pytest.mark.wide
def test_a_long_chain_of_calls() -> None:
    f, u, x = GlobalVar("f"), vector("u"), vector()
    value: Expr = x
    for _ in range(5_000):
        value = Call(f, [value])
    mod = typed(
        IRModule({GlobalVar("main"): Function([x], value), f: Function([u], relay.negative(u))})
    )
    plain = serde.export_model((mod, {}), format="onnx")
    assert len(plain.graph.node) == 5_000
    local = serde.export_model((mod, {}), format="onnx", local_functions=True)
    assert len(local.graph.node) == 5_000
    assert names(local) == ["f"]


@pytest.mark.parametrize(
    ("count", "body"), [(120, "@f{}(exp(%a))"), (24, "add(@f{0}(%a), @f{0}(exp(%a)))")]
)
def test_functions_that_are_too_much_spelled_out_are_refused(count: int, body: str) -> None:
    v = "Tensor[(2, 3), float32]"
    texts = [f"def @f{i}(%a: {v}) -> {v} {{ {body.format(i + 1)} }}" for i in range(count)]
    texts += [f"def @f{count}(%a: {v}) -> {v} {{ tanh(%a) }}", f"def @main(%x: {v}) {{ @f0(%x) }}"]
    mod = relay.fromtext('#[version = "0.0.5"]\n' + "\n".join(texts))
    with pytest.raises(OptionError, match="calls deep"):
        relay.to_onnx(mod, {}, "net", local_functions=True)


@pytest.mark.parametrize("place", range(3))
def test_functions_of_one_name_are_several(place: int) -> None:
    """Names that are equal at once, after sanitising, and with a number behind."""
    wanted = [("f", "f", "f"), ("f", "f_1", "f"), ("a.b", "a_b", "a/b")][place]
    x: Expr = (entry := vector())
    for name, op in zip(wanted, (relay.tanh, relay.sigmoid, relay.exp), strict=True):
        inner = vector()
        body = relay.negative(op(inner))
        x = Call(Function([inner], body).with_attr("Composite", name), [x])
    proto = check(Function([entry], x), [X3], local_functions=True)
    assert len(set(names(proto))) == 3
    expected = -np.exp(-1 / (1 + np.exp(np.tanh(X3))))
    assert_close(run_proto(proto, [X3]), [expected])


def keep_inside(domain: str) -> IRModule:
    inner, x = vector(), vector()
    kept = Foreign(framework="onnx", name="wobble", domain=domain, results=(VECTOR,)).build([inner])
    function = Function([inner], relay.tanh(kept)).with_attr("Composite", "wobble")
    return IRModule.from_expr(Function([x], Call(function, [x])))


def test_kept_operators_in_local_functions_have_their_domain() -> None:
    proto = serde.from_relay(
        keep_inside("com.acme"), format="onnx", local_functions=True, custom_ops=["wobble"]
    )
    (function,) = proto.functions
    assert {each.domain for each in function.opset_import} == {"", "com.acme"}
    onnx.checker.check_model(proto)


def test_kept_operators_and_local_functions_do_not_share_a_domain() -> None:
    with pytest.raises(OptionError, match="operators of the domain serde"):
        serde.from_relay(
            keep_inside("serde"), format="onnx", local_functions=True, custom_ops=["wobble"]
        )
