"""Fusion of operators, against the groups that TVM's rules give for known graphs."""

import numpy as np
import pytest
from support.golden import tvm_ops

import serde.relay as relay
from serde.relay.ir.compare import assert_structural_equal
from serde.relay.ir.expr import Call, Constant, Expr, Function, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef, all_ops, get, pattern_of
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import DefuseOps, FuseOps, InferType

TVM_NAMES = {
    "ELEMWISE": "ElemWise",
    "BROADCAST": "Broadcast",
    "INJECTIVE": "Injective",
    "COMM_REDUCE": "CommReduce",
    "OUT_ELEMWISE_FUSABLE": "OutEWiseFusable",
    "OPAQUE": "Opaque",
}
RNG = np.random.default_rng(3)


@pytest.mark.wide
@pytest.mark.parametrize("name", sorted(all_ops()))
def test_every_operator_has_the_pattern_that_tvm_gives_it(name: str) -> None:
    found = TVM_NAMES[pattern_of(get(name)).name]
    assert found == tvm_ops().get(name, {}).get("fusion", found)


def _module(body: Expr) -> relay.IRModule:
    return InferType()(relay.IRModule.from_expr(body))


def _names(function: Expr) -> list[str]:
    return [n.op.name for n in post_order(function) if isinstance(n, Call) and _is_op(n)]


def _is_op(node: Call) -> bool:
    return isinstance(node.op, OpDef)


def _kernels(mod: relay.IRModule) -> list[list[str]]:
    """Return the operators of each fused function, in order of evaluation."""
    nodes = post_order(mod["main"])
    return [_names(n) for n in nodes if isinstance(n, Function) and n.attrs.get("Primitive")]


def _check(body: Expr, want: list[list[str]], **options: int) -> relay.IRModule:
    """Check the groups, that nothing is outside them, and that the numbers stay."""
    before = _module(body)
    after, changed = FuseOps(**options).run(before)
    assert changed
    verify(after)
    assert _kernels(after) == want
    assert len(_names(after["main"])) == sum(map(len, want))
    shapes = [param.checked_type.concrete_shape for param in before["main"].params]
    inputs = [RNG.uniform(-2, 2, shape).astype("float32") for shape in shapes]
    for ours, theirs in zip(
        np.atleast_1d(run(after["main"], inputs)),
        np.atleast_1d(run(before["main"], inputs)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert_structural_equal(DefuseOps()(after), before)
    again, changed = FuseOps(**options).run(after)
    assert not changed
    assert again is after
    return after


def _x(*shape: int, name: str = "x") -> Var:
    return relay.var(name, shape=shape)


def test_a_chain_is_one_function_with_its_scalars() -> None:
    y = relay.add(_x(10, 20), relay.const(1.0))
    mod = _check(relay.squeeze(relay.exp(y)), [["add", "exp", "squeeze"]])
    (function,) = [n for n in post_order(mod["main"]) if isinstance(n, Function) and n.attrs]
    assert [param.name_hint for param in function.params] == ["p0"]
    assert any(isinstance(node, Constant) for node in post_order(function))


def test_a_constant_with_axes_becomes_a_parameter() -> None:
    y = relay.add(_x(3), relay.const(np.ones(3, "float32")))
    mod = _check(y, [["add"]])
    (function,) = [n for n in post_order(mod["main"]) if isinstance(n, Function) and n.attrs]
    assert len(function.params) == 2


def test_a_convolution_takes_what_is_elementwise_after_it() -> None:
    x, w = _x(1, 4, 6, 6), _x(4, 4, 3, 3, name="w")
    bias = _x(4, 1, 1, name="b")
    y = relay.nn.conv2d(x, w, padding=(1, 1))
    _check(relay.nn.relu(relay.add(y, bias)), [["nn.conv2d", "add", "nn.relu"]])


def test_two_convolutions_are_two_functions() -> None:
    x, w1, w2 = _x(1, 4, 6, 6), _x(4, 4, 3, 3, name="w1"), _x(4, 4, 1, 1, name="w2")
    y = relay.add(relay.const(1.0), relay.nn.conv2d(x, w1, padding=(1, 1)))
    z = relay.add(relay.nn.conv2d(relay.exp(y), w2), y)
    _check(z, [["nn.conv2d", "add"], ["exp"], ["nn.conv2d", "add"]])


def test_a_reduction_takes_what_feeds_it_but_not_what_follows() -> None:
    y = relay.sum(relay.multiply(relay.exp(_x(3, 4)), relay.const(2.0)), axis=1)
    _check(relay.sqrt(y), [["exp", "multiply", "sum"], ["sqrt"]])


def test_a_concatenation_inside_takes_its_branches() -> None:
    x = _x(1, 4, 8, 8)
    pooled = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    up = relay.nn.upsampling(pooled, 2, 2, layout="NCHW")
    joined = relay.concatenate((up, x), 1)
    out = relay.add(joined, relay.const(1.0))
    _check(out, [["nn.max_pool2d"], ["nn.upsampling", "concatenate", "add"]])


def test_the_result_is_not_fused_into_a_tuple() -> None:
    x = _x(1, 4, 8, 8)
    pooled = relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))
    up = relay.nn.upsampling(pooled, 2, 2, layout="NCHW")
    mod = _module(Tuple([up, x]))
    after = FuseOps()(mod)
    verify(after)
    assert _kernels(after) == [["nn.max_pool2d"], ["nn.upsampling"]]


def test_fields_of_a_split_are_taken_where_they_are_used() -> None:
    parts = relay.split(_x(4, 6), 2, axis=1)
    _check(relay.subtract(parts[0], parts[1]), [["split", "subtract"]])


def test_fields_of_an_opaque_result_stay_outside() -> None:
    top = relay.topk(_x(2, 6), k=3, ret_type="both")
    mod = _module(relay.exp(top[0]))
    after = FuseOps()(mod)
    verify(after)
    assert _kernels(after) == [["topk"], ["exp"]]
    inside = [n for n in post_order(after["main"]) if isinstance(n, TupleGetItem)]
    assert len(inside) == 1


def test_parallel_injective_branches_meet() -> None:
    y = relay.add(_x(10, 20), relay.const(1.0))
    z = relay.maximum(relay.squeeze(y), relay.transpose(y, axes=(0, 1)))
    _check(z, [["add", "squeeze", "transpose", "maximum"]])


def test_a_value_that_is_also_a_result_is_not_taken() -> None:
    y = relay.exp(_x(2, 3))
    mod = FuseOps()(_module(Tuple([relay.sqrt(y), y])))
    verify(mod)
    assert _kernels(mod) == [["exp"], ["sqrt"]]


@pytest.mark.parametrize(("most", "want"), [(256, [256, 44]), (100, [100, 100, 100])])
def test_a_function_has_at_most_so_many_nodes(most: int, want: list[int]) -> None:
    y: Expr = _x(2)
    for _ in range(300):
        y = relay.tanh(y)
    mod = FuseOps(max_fuse_depth=most)(_module(y))
    assert [len(each) for each in _kernels(mod)] == want


def test_level_0_fuses_nothing() -> None:
    _check(relay.exp(relay.sqrt(_x(2, 3))), [["sqrt"], ["exp"]], fuse_opt_level=0)


def test_nothing_is_fused_through_a_let() -> None:
    x, v = _x(2, 3), relay.var("v")
    body = Let(v, relay.exp(relay.abs(x)), relay.sqrt(relay.negative(v)))
    mod = FuseOps()(_module(Function([x], body)))
    verify(mod)
    assert _kernels(mod) == [["abs", "exp"], ["negative", "sqrt"]]


def test_shape_operands_stay_constants() -> None:
    y = relay.broadcast_to(_x(1, 3), relay.Constant(np.array([2, 3])))
    mod = FuseOps()(_module(relay.exp(y)))
    verify(mod)
    assert mod["main"].checked_type.ret_type == relay.TensorType((2, 3))


def test_composites_stay_whole() -> None:
    k = _x(2, 3, name="k")
    inner = Function([k], relay.exp(relay.abs(k)), attrs={"Composite": "one"})
    x = _x(2, 3)
    before = _module(Function([x], Call(inner, [relay.sqrt(x)])))
    after = FuseOps()(before)
    verify(after)
    assert _kernels(after) == [["sqrt"]]


@pytest.mark.slow
def test_uses_far_apart_are_fused_in_time_linear_in_nodes() -> None:
    count = 20_000
    shared = [relay.exp(_x(2))]
    for _ in range(count):
        shared.append(relay.tanh(shared[-1]))
    total: Expr = shared[-1]
    for each in reversed(shared):
        total = relay.add(total, each)
    mod = _module(total)
    after = FuseOps()(mod)
    assert sum(map(len, _kernels(after))) == 2 * count + 2
    assert_structural_equal(DefuseOps()(after), mod)
