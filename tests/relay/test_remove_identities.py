"""Identities that hold bit for bit."""

from collections.abc import Callable

import numpy as np
import pytest

import serde.relay as relay
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import RemoveIdentities

DATA = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
CUBE = relay.TensorType((2, 3, 4))

VANISHING: dict[str, Callable[[relay.Expr], relay.Expr]] = {
    "copy": relay.copy,
    "cast to the same dtype": lambda x: relay.cast(x, "float32"),
    "reshape to the same shape": lambda x: relay.reshape(x, newshape=(2, -1, 4)),
    "broadcast_to the same shape": lambda x: relay.broadcast_to(x, shape=(2, 3, 4)),
    "transpose in order": lambda x: relay.transpose(x, axes=(0, 1, -1)),
    "two transposes": lambda x: relay.transpose(relay.transpose(x, (2, 0, 1)), (1, 2, 0)),
    "two default transposes": lambda x: relay.transpose(relay.transpose(x)),
    "slice of everything": lambda x: relay.strided_slice(x, [0, 0, 0], [2, 9, 4]),
    "concatenate of one": lambda x: relay.concatenate([x], axis=1),
    "concatenate with nothing": lambda x: relay.concatenate(
        [relay.strided_slice(x, [4], [9], [1], axes=[2]), x], axis=2
    ),
    "expand and squeeze": lambda x: relay.squeeze(relay.expand_dims(x, axis=1), axis=[1]),
    "reshape there and back": lambda x: relay.reshape(relay.reshape(x, (6, 4)), (2, 3, 4)),
    "slices that make up a tensor": lambda x: relay.concatenate(
        [relay.strided_slice(x, [at], [at + 1], [1], axes=[1]) for at in range(3)], axis=1
    ),
    "field of a tuple": lambda x: relay.TupleGetItem(relay.Tuple([relay.exp(x), x]), 1),
}


@pytest.mark.parametrize("case", VANISHING)
def test_an_identity_vanishes(case: str) -> None:
    x = relay.var("x", CUBE)
    mod, changed = RemoveIdentities().run(relay.IRModule.from_expr(VANISHING[case](x)))
    verify(mod)
    assert changed
    assert mod["main"].body is x


KEPT: dict[str, tuple[Callable[[relay.Expr], relay.Expr], Callable[[np.ndarray], np.ndarray]]] = {
    "reversing slice": (lambda x: relay.strided_slice(x, [-1], [-9], [-1]), lambda a: a[::-1]),
    "cast through a narrow type": (
        lambda x: relay.cast(relay.cast(x, "float16"), "float32"),
        lambda a: a.astype("float16").astype("float32"),
    ),
    "slices in another order": (
        lambda x: relay.concatenate(
            [relay.strided_slice(x, [at], [at + 1], [1], axes=[0]) for at in (1, 0)], axis=0
        ),
        lambda a: a[::-1],
    ),
    "slices of one and the same part": (
        lambda x: relay.concatenate(
            [relay.strided_slice(x, [0], [1], [1], axes=[0]) for _ in range(2)], axis=0
        ),
        lambda a: np.concatenate([a[:1], a[:1]]),
    ),
    "slices along another axis": (
        lambda x: relay.concatenate([relay.strided_slice(x, [0], [2], [1], axes=[2])] * 2, axis=1),
        lambda a: np.concatenate([a[..., :2]] * 2, 1),
    ),
    "one transpose": (lambda x: relay.transpose(x, (0, 2, 1)), lambda a: a.transpose(0, 2, 1)),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_changes_values_stays(case: str) -> None:
    build, want = KEPT[case]
    x = relay.var("x", CUBE)
    function = relay.Function([x], build(x))
    assert RemoveIdentities().transform(function) is function
    np.testing.assert_array_equal(run(function, [DATA]), want(DATA))


@pytest.mark.parametrize("op", [relay.nn.space_to_depth, relay.nn.depth_to_space])
@pytest.mark.parametrize("size", [1, 2])
def test_blocks_of_one_pixel_vanish(op: Callable[..., relay.Expr], size: int) -> None:
    x = relay.var("x", shape=("n", 4, "h", 6))
    body = RemoveIdentities().transform(relay.Function([x], op(x, size))).body
    assert (body is x) == (size == 1)


def test_two_reshapes_and_two_transposes_become_one() -> None:
    x = relay.var("x", CUBE)
    turned = relay.transpose(relay.transpose(x, (1, 0, 2)), (2, 1, 0))
    function = relay.Function([x], relay.reshape(relay.reshape(turned, (4, 6)), (8, 3)))
    result = RemoveIdentities().transform(function)
    names = [node.op.name for node in post_order(result) if isinstance(node, relay.Call)]
    assert names == ["transpose", "reshape"]
    want = DATA.transpose(1, 0, 2).transpose(2, 1, 0).reshape(8, 3)
    np.testing.assert_array_equal(run(result, [DATA]), want)


UNITS: dict[str, tuple[list[object], Callable[[relay.Expr], relay.Expr], bool]] = {
    "squeeze": (["T", 1, "B", 4], lambda x: relay.squeeze(_turn(x), [2]), True),
    "squeeze from the end": ([2, 1, 3, 4], lambda x: relay.squeeze(_turn(x), [-2]), True),
    "reshape": ([2, 1, 3, 4], lambda x: relay.reshape(_turn(x), (2, 12)), False),
    "expand": ([2, 1, 3, 4], lambda x: relay.expand_dims(_turn(x), 0), False),
    "two that move": ([2, 5, 3, 4], lambda x: relay.reshape(_turn(x), (6, 20)), False),
    "another goes": ([2, 5, 3, 1], lambda x: relay.squeeze(_turn(x), [3]), False),
    "open lengths": (["T", 1, "B", 4], lambda x: relay.reshape(_turn(x), (-1, 4)), False),
}


def _turn(x: relay.Expr) -> relay.Expr:
    return relay.transpose(x, (0, 2, 1, 3))


@pytest.mark.parametrize("case", UNITS)
def test_a_transpose_that_moves_units_alone_goes(case: str) -> None:
    shape, build, goes = UNITS[case]
    x = relay.var("x", relay.TensorType(shape))
    function = relay.Function([x], build(x))
    result = RemoveIdentities().transform(function)
    names = [node.op.name for node in post_order(result) if isinstance(node, relay.Call)]
    assert ("transpose" in names) is not goes
    lengths = [3 if isinstance(dim, str) else dim for dim in shape]
    data = np.random.default_rng(2).normal(size=lengths).astype("float32")
    np.testing.assert_array_equal(run(result, [data]), run(function, [data]))


def test_an_anonymous_length_keeps_a_reshape_and_a_symbol_does_not() -> None:
    anonymous = relay.var("x", relay.TensorType(("?", 3)))
    kept = relay.Function([anonymous], relay.reshape(anonymous, newshape=(-1, 3)))
    assert RemoveIdentities().transform(kept) is kept
    named = relay.var("x", relay.TensorType(("N", 3)))
    same = relay.Function([named], relay.reshape(named, newshape=(relay.symbol("N"), 3)))
    assert RemoveIdentities().transform(same).body is named


def test_reshapes_of_symbols_there_and_back_vanish() -> None:
    x = relay.var("x", relay.TensorType(("N", "T", 4)))
    back = relay.reshape(relay.reshape(x, (0, 0, 2, 2)), (0, 0, -1))
    assert back.type == x.type
    assert RemoveIdentities().transform(relay.Function([x], back)).body is x


@pytest.mark.wide
def test_100000_copies() -> None:
    x = relay.var("x", CUBE)
    body = x
    for _ in range(100_000):
        body = relay.copy(body)
    assert RemoveIdentities().transform(relay.Function([x], body)).body is x


FLAG = relay.TensorType((2, 1), "bool")

BROADCAST_LESS: dict[str, tuple[Callable[..., relay.Expr], list[str]]] = {
    "zeros and ones of a tensor": (
        lambda x, f, g: relay.where(f, x, relay.multiply(relay.ones_like(x), relay.const(-2.0))),
        ["where"],
    ),
    "a broadcast operand": (
        lambda x, f, g: relay.where(relay.broadcast_to(f, (2, 3)), x, relay.const(1.0)),
        ["where"],
    ),
    "a full tensor that gives the shape": (
        lambda x, f, g: relay.add(relay.zeros((4, 2, 3), "float32"), x),
        ["zeros", "add"],
    ),
    "flags as numbers": (
        lambda x, f, g: relay.not_equal(relay.cast(f, "float32"), relay.const(0.0)),
        [],
    ),
    "no flags as numbers": (
        lambda x, f, g: relay.equal(relay.cast(f, "float32"), relay.const(0.0)),
        ["logical_not"],
    ),
    "a sum of flags": (
        lambda x, f, g: relay.not_equal(
            relay.broadcast_to(relay.add(relay.cast(f, "int8"), relay.cast(g, "int8")), (2, 3)),
            relay.const(np.int8(0)),
        ),
        ["logical_or", "broadcast_to"],
    ),
    "a product of flags": (
        lambda x, f, g: relay.not_equal(
            relay.multiply(relay.cast(f, "int8"), relay.cast(g, "int8")), relay.const(np.int8(0))
        ),
        ["logical_and"],
    ),
    "a number of flags compared with one": (
        lambda x, f, g: relay.not_equal(relay.cast(f, "float32"), relay.const(1.0)),
        ["cast", "not_equal"],
    ),
    "numbers compared with zero": (
        lambda x, f, g: relay.not_equal(relay.cast(x, "float64"), relay.Constant(np.float64(0))),
        ["cast", "not_equal"],
    ),
}


@pytest.mark.parametrize("case", BROADCAST_LESS)
def test_what_is_broadcast_anyway_is_not_broadcast_before(case: str) -> None:
    build, names = BROADCAST_LESS[case]
    parameters = [relay.var("x", relay.TensorType((2, 3))), *(relay.var(n, FLAG) for n in "fg")]
    before = relay.IRModule.from_expr(relay.Function(parameters, build(*parameters)))
    after = RemoveIdentities()(before)
    verify(after)
    calls = [node for node in post_order(after["main"].body) if isinstance(node, relay.Call)]
    assert [call.op.name for call in calls] == names
    values = [DATA[0, :2, :3], np.array([[True], [False]]), np.array([[True], [True]])]
    np.testing.assert_array_equal(run(after["main"], values), run(before["main"], values))


WANTING_RANKS: dict[str, Callable[[relay.Expr], relay.Expr]] = {
    "broadcast_to_like": lambda x: relay.broadcast_to_like(x, relay.zeros((2, 3, 4), "float32")),
    "serde.swiglu": lambda x: relay.serde.swiglu(x, relay.ones_like(x)),
}


@pytest.mark.parametrize("case", WANTING_RANKS)
def test_what_takes_no_scalar_for_a_uniform_tensor_stays(case: str) -> None:
    x = relay.var("x", CUBE)
    function = relay.Function([x], WANTING_RANKS[case](x))
    after = RemoveIdentities()(relay.IRModule.from_expr(function))
    verify(after)
    np.testing.assert_array_equal(run(after["main"], [DATA]), run(function, [DATA]))
