"""Parallel layers: what is combined, what is not, and the same numbers."""

from collections.abc import Sequence

import numpy as np
import pytest
from support.pass_texts import check_bodies, tensor

import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.relay.ir.expr import Call, Expr, Function, Tuple, Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import OpDef
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import free_vars, post_order
from serde.relay.run.computed import ComputedWeight
from serde.relay.run.interpreter import run
from serde.relay.transform import (
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
    InferType,
    Pass,
    fold_weights,
)

RNG = np.random.default_rng(5)


def _names(root: Expr) -> list[str]:
    calls = [n.op for n in post_order(root) if isinstance(n, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


def _var(name: str, *shape: int) -> Var:
    return relay.var(name, shape=shape)


def _module(body: Expr, x: Var) -> relay.IRModule:
    weights = [each for each in free_vars(body) if each is not x]
    return InferType()(relay.IRModule.from_expr(Function([x, *weights], body)))


def _inputs(mod: relay.IRModule) -> list[np.ndarray]:
    shapes = [param.checked_type.concrete_shape for param in mod["main"].params]
    return [RNG.uniform(-1, 1, shape).astype("float32") for shape in shapes]


def _check(each: Pass, mod: relay.IRModule) -> relay.IRModule:
    after, changed = each.run(mod)
    assert changed
    verify(after)
    inputs = _inputs(mod)
    for ours, theirs in zip(run(after["main"], inputs), run(mod["main"], inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert not each.run(after)[1]
    return after


def _stays(each: Pass, mod: relay.IRModule) -> None:
    after, changed = each.run(mod)
    assert not changed
    assert after is mod


def _check_layers_of(layout: str) -> list[int]:
    """Return how many of each operator are left where biases follow convolutions."""
    return [1, 3, 3] if layout == "NCHW" else [1, 1, 1]


def _inception(layout: str = "NCHW", filters: tuple[int, ...] = (4, 5, 6)) -> relay.IRModule:
    last = layout == "NHWC"
    x = _var("x", *((1, 6, 6, 3) if last else (1, 3, 6, 6)))
    ends = []
    for index, count in enumerate(filters):
        shape = (3, 3, 3, count) if last else (count, 3, 3, 3)
        kernel = "HWIO" if last else "OIHW"
        w, b = _var(f"w{index}", *shape), _var(f"b{index}", count)
        y = relay.nn.conv2d(x, w, padding=(1, 1), data_layout=layout, kernel_layout=kernel)
        ends.append(relay.nn.relu(relay.nn.bias_add(y, b, axis=3 if last else 1)))
    return _module(Tuple([*ends, relay.exp(x)]), x)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutions_and_what_follows_become_one(layout: str) -> None:
    after = _check(CombineParallelConv2D(), _inception(layout))
    names = _names(after["main"])
    found = [names.count(n) for n in ("nn.conv2d", "nn.bias_add", "nn.relu")]
    assert found == _check_layers_of(layout)
    assert names.count("strided_slice") == 3


def test_two_branches_are_combined_only_when_asked() -> None:
    mod = _inception(filters=(4, 5))
    _stays(CombineParallelConv2D(), mod)
    _check(CombineParallelConv2D(min_num_branches=2), mod)


def test_the_weights_become_one_that_is_read_by_rows() -> None:
    mod = CombineParallelConv2D()(_inception())
    params = mod["main"].params[1:]
    values = {p.name_hint: RNG.normal(size=p.checked_type.concrete_shape) for p in params}
    weights = {name: ArrayWeight(value.astype("float32")) for name, value in values.items()}
    folded = fold_weights(RelayModel(mod, weights))
    verify(folded.mod)
    assert "concatenate" not in _names(folded.main)
    shapes = sorted(weight.shape for weight in folded.params.values())
    assert shapes == [(4,), (5,), (6,), (15, 3, 3, 3)]
    (kernel,) = [weight for weight in folded.params.values() if len(weight.shape) == 4]
    assert isinstance(kernel, ComputedWeight)
    assert not kernel.whole
    want = np.concatenate([values[f"w{i}"] for i in range(3)]).astype("float32")
    assert b"".join(bytes(chunk) for chunk in kernel.chunks()) == want.tobytes()


def _three(*, stride: int = 1, size: int = 3, groups: int = 1) -> relay.IRModule:
    """Two equal convolutions and one that differs."""
    x = _var("x", 1, 4, 6, 6)
    ws = [_var("w0", 4, 4, 3, 3), _var("w1", 4, 4, 3, 3)]
    ends = [relay.nn.conv2d(x, w) for w in ws]
    other = _var("w2", 4, 4 // groups, size, size)
    ends.append(relay.nn.conv2d(x, other, strides=(stride, stride), groups=groups))
    return _module(Tuple(ends), x)


@pytest.mark.parametrize("options", [{"stride": 2}, {"size": 1}, {"groups": 2}])
def test_convolutions_that_differ_stay(options: dict[str, int]) -> None:
    _stays(CombineParallelConv2D(), _three(**options))


def test_a_weight_that_depends_on_a_branch_stays() -> None:
    x, w = _var("x", 1, 4, 1, 1), _var("w", 4, 4, 1, 1)
    first = relay.nn.conv2d(x, w)
    made = relay.reshape(relay.tile(first, reps=(4, 1, 1, 1)), newshape=(4, 4, 1, 1))
    ends = [first, relay.nn.conv2d(x, made), relay.nn.conv2d(x, relay.exp(made))]
    _stays(CombineParallelConv2D(), _module(Tuple(ends), x))


def test_operands_that_do_not_join_end_the_branches() -> None:
    x = _var("x", 1, 3, 6, 6)
    ends = []
    for index in range(3):
        y = relay.nn.conv2d(x, _var(f"w{index}", 4, 3, 3, 3))
        z = relay.add(y, _var(f"b{index}", 4, 1, 1))
        ends.append(relay.multiply(z, _var(f"m{index}", 1, 4)))
    names = _names(_check(CombineParallelConv2D(), _module(Tuple(ends), x))["main"])
    assert names.count("add") == 1
    assert names.count("multiply") == 3


def test_one_scale_for_all_branches_ends_them() -> None:
    x, scale = _var("x", 1, 3, 6, 6), _var("scale", 1, 1, 1)
    convs = [relay.nn.conv2d(x, _var(f"w{index}", 4, 3, 3, 3)) for index in range(3)]
    mod = _module(Tuple([relay.multiply(y, scale) for y in convs]), x)
    names = _names(_check(CombineParallelConv2D(), mod)["main"])
    assert [names.count(n) for n in ("nn.conv2d", "multiply")] == [1, 3]


def _dense(units: tuple[int, ...], bias: str = "add") -> relay.IRModule:
    x = _var("x", 2, 5)
    ends = []
    for index, count in enumerate(units):
        y = relay.nn.dense(x, _var(f"w{index}", count, 5))
        b = _var(f"b{index}", count)
        y = relay.add(y, b) if bias == "add" else relay.nn.bias_add(y, b, axis=-1)
        ends.append(relay.tanh(relay.multiply(y, _var(f"s{index}", 1))))
    return _module(Tuple(ends), x)


def test_dense_layers_become_one_product_of_batches() -> None:
    names = _names(_check(CombineParallelDense(), _dense((4, 4, 4)))["main"])
    assert "nn.dense" not in names
    assert [names.count(n) for n in ("nn.batch_matmul", "add", "tanh")] == [1, 1, 1]


def test_dense_layers_of_other_sizes_are_no_batch() -> None:
    _stays(CombineParallelDense(), _dense((4, 4, 3)))


@pytest.mark.parametrize("bias", ["add", "bias_add"])
def test_dense_layers_become_one_dense_layer(bias: str) -> None:
    names = _names(_check(CombineParallelDense(3, to_batch=False), _dense((4, 2, 3), bias))["main"])
    assert [names.count(n) for n in ("nn.dense", "tanh", "strided_slice")] == [1, 1, 3]


def test_a_bias_add_ends_the_branches_of_a_batch() -> None:
    names = _names(_check(CombineParallelDense(), _dense((4, 4, 4), "bias_add"))["main"])
    assert [names.count(n) for n in ("nn.batch_matmul", "nn.bias_add")] == [1, 3]


@pytest.mark.parametrize("transpose_b", [True, False])
def test_products_of_batches_become_one(transpose_b: bool) -> None:
    x = _var("x", 2, 3, 5)
    ends = []
    for index, count in enumerate((4, 2, 3)):
        w = _var(f"w{index}", *((2, count, 5) if transpose_b else (2, 5, count)))
        ends.append(relay.exp(relay.nn.batch_matmul(x, w, transpose_b=transpose_b)))
    mod = _module(Tuple(ends), x)
    if not transpose_b:
        _stays(CombineParallelBatchMatmul(), mod)
        return
    names = _names(_check(CombineParallelBatchMatmul(), mod)["main"])
    assert [names.count(n) for n in ("nn.batch_matmul", "exp")] == [1, 1]


def test_branches_of_an_if_stay() -> None:
    x, c = _var("x", 2, 5), relay.var("c", shape=(), dtype="bool")
    layers = [relay.nn.dense(x, _var(f"w{i}", 4, 5)) for i in range(3)]
    body = relay.If(c, layers[0], relay.If(relay.logical_not(c), layers[1], layers[2]))
    _stays(CombineParallelDense(), _module(body, x))


@pytest.mark.wide
def test_long_branches_are_combined() -> None:
    x = _var("x", 1, 2)
    ends = []
    for index in range(4):
        y: Expr = relay.nn.dense(x, _var(f"w{index}", 2, 2))
        for _ in range(5_000):
            y = relay.tanh(y)
        ends.append(y)
    after = CombineParallelDense(to_batch=False)(_module(Tuple(ends), x))
    assert _names(after["main"]).count("tanh") == 5_000


SLICE = 'strided_slice({}, begin={}, end={}, strides={}, slice_mode="size", axes=None)'


def _slices(value: str, axis: int, sizes: Sequence[int], rank: int) -> str:
    found, start = [], 0
    for size in sizes:
        begin, end = [0] * rank, [-1] * rank
        begin[axis], end[axis] = start, size
        found.append(SLICE.format(value, begin, end, [1] * rank))
        start += size
    return f"({', '.join(found)})"


@pytest.mark.parametrize("sizes", [(4, 4), (2, 5), (3, 1, 2), (1, 2, 3, 4)])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    "follow", ["{}", "nn.relu({})", "add({}, %b{i})", "exp(multiply(%b{i}, {}))"]
)
def test_convolutions_in_text(sizes: tuple[int, ...], layout: str, follow: str) -> None:
    last = layout == "NHWC"
    kernel = "HWIO" if last else "OIHW"
    types = {"x": (1, 5, 5, 3) if last else (1, 3, 5, 5)}
    for i, size in enumerate(sizes):
        types[f"w{i}"] = (1, 1, 3, size) if last else (size, 3, 1, 1)
        types[f"b{i}"] = (size,) if last else (size, 1, 1)
    params = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in types.items())

    def conv(weight: str, channels: int) -> str:
        return (
            f"nn.conv2d(%x, {weight}, padding=[0, 0, 0, 0], channels={channels}, "
            f'kernel_size=[1, 1], data_layout="{layout}", kernel_layout="{kernel}")'
        )

    ends = [follow.format(conv(f"%w{i}", size), i=i) for i, size in enumerate(sizes)]
    everything = range(len(sizes))
    axis = kernel.index("O")
    weights = f"concatenate(({', '.join(f'%w{i}' for i in everything)}), axis={axis})"
    vectors = f"concatenate(({', '.join(f'%b{i}' for i in everything)}))"
    value = follow.replace("%b{i}", vectors).format(conv(weights, sum(sizes)))
    channel = layout.index("C")
    after = f"%0 = {value};\n{_slices('%0', channel, sizes, channel + 1)}"
    check_bodies(CombineParallelConv2D(2), params, f"({', '.join(ends)})", after)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("follow", ["{}", "tanh({})", "add({}, %b{i})", "multiply({}, %m{i})"])
def test_dense_layers_as_a_batch_in_text(count: int, follow: str) -> None:
    everything = range(count)
    types = {"x": (2, 3)}
    for i in everything:
        types |= {f"w{i}": (4, 3), f"b{i}": (4,), f"m{i}": (2, 4)}
    params = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in types.items())
    ends = [follow.format(f"nn.dense(%x, %w{i}, units=None)", i=i) for i in everything]
    data = f"stack(({', '.join(['%x'] * count)}), axis=0)"
    weights = f"stack(({', '.join(f'%w{i}' for i in everything)}), axis=0)"
    product = f"nn.batch_matmul({data}, {weights}, transpose_b=True)"
    rows = [f"expand_dims(%b{i}, axis=0)" for i in everything]
    value = follow.replace("%b{i}", f"stack(({', '.join(rows)}), axis=0)")
    value = value.replace("%m{i}", f"stack(({', '.join(f'%m{i}' for i in everything)}), axis=0)")
    lines = [f"%0 = {value.format(product)};", f"%1 = split(%0, indices_or_sections={count});"]
    lines += [f"%{2 + i} = %1.{i};" for i in everything]
    fields = ", ".join(f"squeeze(%{2 + i}, axis=[0])" for i in everything)
    check_bodies(
        CombineParallelDense(2), params, f"({', '.join(ends)})", "\n".join([*lines, f"({fields})"])
    )


@pytest.mark.parametrize("sizes", [(4, 4), (2, 5, 1), (3, 1)])
@pytest.mark.parametrize("follow", ["{}", "tanh({})", "add({}, %b{i})", "multiply({}, %s{i})"])
def test_dense_layers_as_one_in_text(sizes: tuple[int, ...], follow: str) -> None:
    types: dict[str, tuple[int, ...]] = {"x": (2, 3)}
    for i, size in enumerate(sizes):
        types |= {f"w{i}": (size, 3), f"b{i}": (size,), f"s{i}": (1,)}
    params = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in types.items())
    ends = [follow.format(f"nn.dense(%x, %w{i}, units=None)", i=i) for i, _ in enumerate(sizes)]
    names = ", ".join(f"%w{i}" for i, _ in enumerate(sizes))
    product = f"nn.dense(%x, concatenate(({names})), units={sum(sizes)})"
    vectors = ", ".join(f"%b{i}" for i, _ in enumerate(sizes))
    scales = ", ".join(
        f"repeat(%s{i}, repeats={size}, axis=0)" if size > 1 else f"%s{i}"
        for i, size in enumerate(sizes)
    )
    value = follow.replace("%b{i}", f"concatenate(({vectors}))")
    value = value.replace("%s{i}", f"concatenate(({scales}))").format(product)
    after = f"%0 = {value};\n{_slices('%0', 1, sizes, 2)}"
    each = CombineParallelDense(2, to_batch=False)
    check_bodies(each, params, f"({', '.join(ends)})", after)


@pytest.mark.parametrize("sizes", [(4, 4), (2, 5, 1)])
@pytest.mark.parametrize("follow", ["{}", "exp({})", "add({}, %b{i})"])
def test_products_of_batches_in_text(sizes: tuple[int, ...], follow: str) -> None:
    types: dict[str, tuple[int, ...]] = {"x": (2, 3, 4)}
    for i, size in enumerate(sizes):
        types |= {f"w{i}": (2, size, 4), f"b{i}": (size,)}
    params = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in types.items())
    product = "nn.batch_matmul(%x, {}, transpose_b=True)"
    ends = [follow.format(product.format(f"%w{i}"), i=i) for i, _ in enumerate(sizes)]
    names = ", ".join(f"%w{i}" for i, _ in enumerate(sizes))
    vectors = ", ".join(f"%b{i}" for i, _ in enumerate(sizes))
    value = follow.replace("%b{i}", f"concatenate(({vectors}), axis=-1)")
    value = value.format(product.format(f"concatenate(({names}), axis=1)"))
    after = f"%0 = {value};\n{_slices('%0', 2, sizes, 3)}"
    check_bodies(CombineParallelBatchMatmul(2), params, f"({', '.join(ends)})", after)
