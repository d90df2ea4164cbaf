"""Shape arithmetic over symbols."""

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.dims import Any, substitute
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import free_vars, post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import FoldShape, InferType
from serde.relay.transform.fold_shape import shape_value

N = relay.symbol("N")


def _x(*shape: object) -> relay.Var:
    return relay.var("x", relay.TensorType(shape))


def _shape(x: relay.Expr) -> relay.Expr:
    return relay.shape_of(x, dtype="int64")


def _c(*values: int) -> relay.Expr:
    return relay.Constant(np.array(values, "int64"))


def _calls(function: relay.Function) -> list[str]:
    return [node.op.name for node in post_order(function) if isinstance(node, relay.Call)]


def test_the_shape_of_a_known_tensor_is_a_constant() -> None:
    x = _x(2, 3, 4)
    mod, changed = FoldShape().run(relay.IRModule.from_expr(_shape(x)))
    assert changed
    assert isinstance(mod["main"].body, relay.Constant)
    np.testing.assert_array_equal(mod["main"].body.data, [2, 3, 4])
    assert mod["main"].body.data.dtype == np.int64


VALUES = {
    "shape": (lambda x: _shape(x), (N, 3, 4)),
    "size": (lambda x: relay.reshape(relay.ndarray_size(x), (1,)), (N * 12,)),
    "sum and product": (
        lambda x: relay.multiply(relay.add(_shape(x), _c(1, 1, 1)), _c(2, 2, 2)),
        (N * 2 + 2, 8, 10),
    ),
    "difference": (lambda x: relay.subtract(_shape(x), _c(1, 1, 1)), (N - 1, 2, 3)),
    "quotient": (lambda x: relay.floor_divide(_shape(x), _c(2, 2, 2)), (N // 2, 1, 2)),
    "truncated quotient of lengths": (
        lambda x: relay.divide(relay.multiply(_shape(x), _c(4, 1, 1)), _c(2, 2, 2)),
        (N * 2, 1, 2),
    ),
    "slice": (lambda x: relay.strided_slice(_shape(x), [1], [3], [1]), (3, 4)),
    "take": (lambda x: relay.take(_shape(x), _c(2, 0), axis=0), (4, N)),
    "concatenate": (
        lambda x: relay.concatenate(
            [relay.strided_slice(_shape(x), [0], [1], [1]), _c(-1)], axis=0
        ),
        (N, -1),
    ),
    "stack of scalars": (
        lambda x: relay.stack([relay.take(_shape(x), relay.const(0), axis=0)] * 2, axis=0),
        (N, N),
    ),
    "cast": (lambda x: relay.cast(_shape(x), "int32"), (N, 3, 4)),
    "product of all": (lambda x: relay.prod(_shape(x), keepdims=True), (N * 12,)),
    "split": (lambda x: relay.split(_shape(x), 3)[0], (N,)),
    "reversed": (lambda x: relay.reverse(_shape(x), axis=0), (4, 3, N)),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_shape_tensor_is_followed(case: str) -> None:
    """Symbolic values, and the same with a number for the symbol as the kernels give it."""
    build, want = VALUES[case]
    expr = build(_x("N", 3, 4))
    assert shape_value(expr) == want
    concrete = relay.Function([(x := _x(5, 3, 4))], build(x))
    computed = run(concrete, [np.zeros((5, 3, 4), "float32")])
    replaced = [substitute(d, {"N": 5}) for d in want]
    np.testing.assert_array_equal(computed, replaced)


def test_what_cannot_be_followed_is_anonymous_or_unknown() -> None:
    x = _x("?", 3)
    assert shape_value(_shape(x)) == (Any(), 3)
    i = relay.var("i", relay.TensorType((2,), "int64"))
    assert shape_value(relay.add(i, _shape(x))) is None
    negative = relay.subtract(_shape(_x("N", 3)), _c(7, 7))
    assert shape_value(relay.divide(negative, _c(2, 2))) is None
    assert shape_value(relay.floor_divide(negative, _c(0, 1))) is None


def test_an_unknown_truth_value_beside_a_known_one_chooses_nothing() -> None:
    flag = relay.var("flag", relay.TensorType((1,), "bool"))
    both = relay.concatenate([relay.const([True]), flag], axis=0)
    function = relay.Function([flag], relay.where(both, _c(2, 6), _c(4, 3)))
    folded = FoldShape()(InferType()(relay.IRModule.from_expr(function)))
    assert run(folded["main"], [np.array([False])]).tolist() == [2, 3]
    assert run(folded["main"], [np.array([True])]).tolist() == [2, 6]


def test_wrapping_arithmetic_is_not_followed() -> None:
    big = relay.const(np.array([2**30], "int32"))
    assert shape_value(relay.multiply(big, big)) is None


def test_reshape_like_takes_symbols_as_its_shape() -> None:
    x = relay.var("x", relay.TensorType(("N", 12)))
    y = relay.var("y", relay.TensorType(("N", 3, 4)))
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x, y], relay.reshape_like(x, y))))
    result = FoldShape()(mod)
    verify(result)
    assert _calls(result["main"]) == ["reshape"]
    a = np.arange(60, dtype="float32").reshape(5, 12)
    got = run(result["main"], [a, np.zeros((5, 3, 4), "float32")])
    np.testing.assert_array_equal(got, a.reshape(5, 3, 4))


def test_broadcast_to_like_becomes_static() -> None:
    x = relay.var("x", relay.TensorType((1, 4)))
    y = relay.var("y", relay.TensorType((3, 4)))
    function = relay.Function([x, y], relay.broadcast_to_like(x, y))
    result = FoldShape().transform(function)
    assert _calls(result) == ["broadcast_to"]
    a = np.arange(4, dtype="float32").reshape(1, 4)
    got = run(result, [a, np.zeros((3, 4), "float32")])
    np.testing.assert_array_equal(got, np.tile(a, (3, 1)))


def test_slice_like_becomes_static() -> None:
    x = relay.var("x", relay.TensorType((5, 4)))
    y = relay.var("y", relay.TensorType((3, 2)))
    function = relay.Function([x, y], relay.slice_like(x, y, axes=(0,)))
    result = FoldShape().transform(function)
    assert _calls(result) == ["strided_slice"]
    a = np.arange(20, dtype="float32").reshape(5, 4)
    np.testing.assert_array_equal(run(result, [a, np.zeros((3, 2), "float32")]), a[:3])


def test_an_unknown_length_keeps_reshape_like() -> None:
    x = relay.var("x", relay.TensorType(("?", 12)))
    y = relay.var("y", relay.TensorType(("?", 3, 4)))
    function = relay.Function([x, y], relay.reshape_like(x, y))
    assert FoldShape().transform(function) is function


@pytest.mark.wide
def test_a_long_chain_of_arithmetic() -> None:
    x = _x("N", 3)
    value = _shape(x)
    for _ in range(20_000):
        value = relay.add(value, _c(1, 1))
    assert shape_value(value) == (N + 20_000, 20_003)


def _l(*values: int) -> relay.Expr:
    """A vector that shape arithmetic gives: the lengths of a tensor."""
    return _shape(relay.var("like", relay.TensorType(values)))


DYNAMIC = {
    "reshape": (lambda x: relay.reshape(x, _l(6, 2)), "reshape"),
    "broadcast_to": (lambda x: relay.broadcast_to(x, _l(2, 3, 4)), "broadcast_to"),
    "tile": (lambda x: relay.tile(x, _l(2, 1)), "tile"),
    "zeros": (lambda x: relay.add(x, relay.zeros(_l(3, 4), "float32")), "zeros"),
    "ones": (lambda x: relay.add(x, relay.ones(_l(3, 4), "float32")), "ones"),
    "full": (lambda x: relay.add(x, relay.full(relay.const(2.0), _l(3, 4))), "full"),
    "topk": (lambda x: relay.topk(x, _l(2), ret_type="values"), "topk"),
    "strided_slice": (lambda x: relay.strided_slice(x, _l(1, 2), [3, 4]), "strided_slice"),
    "squeeze": (lambda x: relay.dyn.squeeze(relay.reshape(x, (3, 1, 4)), _l(1)), "squeeze"),
    "expand_dims": (lambda x: relay.dyn.expand_dims(x, _l(1)), "expand_dims"),
    "pad": (
        lambda x: relay.dyn.nn.pad(x, relay.reshape(_l(1, 2, 3, 0), (2, 2)), relay.const(0.0)),
        "nn.pad",
    ),
    "resize2d": (
        lambda x: relay.dyn.image.resize2d(
            relay.reshape(x, (1, 1, 3, 4)), _l(6, 5), relay.const(np.zeros(4, "float32"))
        ),
        "image.resize2d",
    ),
    "upsampling": (
        lambda x: relay.dyn.nn.upsampling(
            relay.reshape(x, (1, 1, 3, 4)), relay.const(2.0), relay.const(1.5)
        ),
        "nn.upsampling",
    ),
    "sparse_to_dense": (
        lambda x: relay.add(
            x,
            relay.sparse_to_dense(
                relay.Constant(np.array([[0, 1]])), _l(3, 4), relay.const(np.ones(1, "float32"))
            ),
        ),
        "sparse_to_dense",
    ),
    "one_hot": (
        lambda x: relay.one_hot(
            relay.cast(x, "int32"), 1.0, 0.0, relay.ndarray_size(_l(5, 2)), -1, "float32"
        ),
        "one_hot",
    ),
}


@pytest.mark.parametrize("case", DYNAMIC)
def test_a_known_shape_makes_a_dynamic_operator_static(case: str) -> None:
    build, static = DYNAMIC[case]
    x = _x(3, 4)
    body = build(x)
    dynamic = relay.Function([x, *(v for v in free_vars(body) if v is not x)], body)
    like = [np.zeros(p.type.shape, "float32") for p in dynamic.params[1:]]
    assert any(name.startswith("dyn.") for name in _calls(dynamic))
    result = FoldShape().transform(dynamic)
    assert static in _calls(result)
    assert not any(name.startswith("dyn.") for name in _calls(result))
    a = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(run(result, [a, *like]), run(dynamic, [a, *like]))


def test_a_symbol_becomes_part_of_a_static_shape() -> None:
    x = _x("N", 3, 4)
    first = relay.strided_slice(_shape(x), [0], [1], [1])
    body = relay.reshape(x, relay.concatenate([first, _c(12)], axis=0))
    assert _calls(relay.Function([x], body))[-1] == "dyn.reshape"
    result = FoldShape().transform(relay.Function([x], body))
    assert result.body.type == relay.TensorType(("N", 12))


def test_a_number_as_a_truth_value_stays_without_axes() -> None:
    number = relay.cast(relay.Constant(np.array(10, "int64")), "bool")
    folded = FoldShape()(relay.IRModule.from_expr(number))["main"].body
    assert isinstance(folded, relay.Constant)
    assert folded.data.shape == ()
    assert folded.data.item() is True


@pytest.mark.parametrize(
    ("name", "expected"),
    [("logical_and", [1, 0, 1]), ("logical_or", [1, 1, 1]), ("logical_xor", [0, 1, 0])],
)
def test_numbers_that_are_not_zero_are_true(name: str, expected: list[int]) -> None:
    numbers = relay.const(np.array([1, 0, -4], np.int32))
    call = getattr(relay, name)(numbers, relay.const(np.int32(-2)))
    folded = FoldShape()(relay.IRModule.from_expr(relay.Function([], call)))["main"].body
    assert isinstance(folded, relay.Constant)
    np.testing.assert_array_equal(folded.data, expected)
