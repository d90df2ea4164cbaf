"""Layouts: what the pass moves and what it leaves, with the numbers of the net as it was."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from support.runtime import run_onnx

import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.errors import RelayError, Unsupported
from serde.onnx.exporter import from_relay
from serde.relay.ir.expr import Call, Expr, Function, Tuple, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import OpDef, get
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import free_vars, post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, TransposeToLayout, channels_first, fold_weights

RNG = np.random.default_rng(11)
CONV = {"nn.conv2d": ["NCHW", "default"]}
Weights = dict[str, np.ndarray]


def _names(root: Expr) -> list[str]:
    calls = [n.op for n in post_order(root) if isinstance(n, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


def _weight(values: Weights, *shape: int) -> Var:
    name = f"w{len(values)}"
    values[name] = RNG.uniform(0.5, 1.5, shape).astype("float32")
    return relay.var(name, shape=shape)


def _conv(x: Expr, values: Weights, filters: int, size: int = 3, **attrs: object) -> Expr:
    channels = x.checked_type.shape[-1]
    w = _weight(values, size, size, channels, filters)
    pad = (size // 2, size // 2)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    return relay.nn.conv2d(x, w, padding=pad, **layouts, **attrs)


def _norm(x: Expr, values: Weights) -> Expr:
    stats = [_weight(values, x.checked_type.shape[-1]) for _ in range(4)]
    return relay.nn.batch_norm(x, *stats, axis=3)[0]


def _residual_net(values: Weights) -> tuple[Var, Expr]:
    """A ResNet of two blocks with channels last, a map of features as its result."""
    x = relay.var("x", shape=(1, 16, 16, 3))
    y = relay.nn.relu(_norm(_conv(x, values, 8, 7, strides=(2, 2)), values))
    y = relay.nn.max_pool2d(y, (3, 3), (2, 2), padding=(1, 1), layout="NHWC")
    for stride, filters in ((1, 8), (2, 12)):
        skip = y
        z = relay.nn.relu(_norm(_conv(y, values, filters, strides=(stride, stride)), values))
        z = _norm(_conv(z, values, filters), values)
        if stride != 1:
            skip = _norm(_conv(skip, values, filters, 1, strides=(stride, stride)), values)
        y = relay.nn.relu(relay.add(z, skip))
    gate = relay.mean(y, axis=(1, 2), keepdims=True)
    gate = relay.add(_conv(gate, values, 12, 1), _weight(values, 12))
    return x, relay.multiply(y, relay.sigmoid(gate))


def _module(x: Var, body: Expr) -> relay.IRModule:
    weights = [each for each in free_vars(body) if each is not x]
    return InferType()(relay.IRModule.from_expr(Function([x, *weights], body)))


def _inputs(mod: relay.IRModule, values: Weights) -> list[np.ndarray]:
    given = []
    for param in mod["main"].params:
        shape = param.checked_type.concrete_shape
        known = values.get(param.name_hint)
        given.append(RNG.uniform(-1, 1, shape).astype("float32") if known is None else known)
    return given


def _arrays(result: object) -> tuple[np.ndarray, ...]:
    return result if isinstance(result, tuple) else (result,)


def _check(mod: relay.IRModule, values: Weights, layouts: dict[str, list[str]]) -> relay.IRModule:
    """Convert; the numbers stay as they were but for the rounding of sums."""
    after, changed = TransposeToLayout(layouts).run(mod)
    verify(after)
    assert changed
    inputs = _inputs(mod, values)
    got, want = (_arrays(run(each["main"], inputs)) for each in (after, mod))
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
    again, changed = TransposeToLayout(layouts).run(after)
    assert not changed
    assert again is after
    return after


def test_a_residual_net_is_transposed_only_at_its_edges() -> None:
    values: Weights = {}
    mod = _module(*_residual_net(values))
    after = _check(mod, values, CONV)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    names = _names(fold_weights(model).main)
    assert names.count("transpose") == 2
    assert names.count("reshape") == 0


def test_the_net_exports_with_two_transposes_and_the_same_numbers() -> None:
    values: Weights = {}
    mod = _module(*_residual_net(values))
    params = {name: ArrayWeight(value) for name, value in values.items()}
    model = RelayModel(mod, params, ModelMeta(("x",), ("y",)))
    proto = from_relay(model, 17, True, Report()).complete()
    onnx.checker.check_model(proto, full_check=True)
    assert [node.op_type for node in proto.graph.node].count("Transpose") == 2
    inputs = _inputs(mod, values)
    _, (found,) = run_onnx(proto.SerializeToString(), {"x": inputs[0]})
    want = run(mod["main"], inputs)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_a_dense_layer_takes_images_flattened_as_they_are() -> None:
    values: Weights = {}
    x = relay.var("x", shape=(2, 6, 7, 3))
    rows = relay.nn.batch_flatten(relay.nn.relu(_conv(x, values, 4)))
    body = relay.nn.dense(rows, _weight(values, 5, 168))
    after = _check(_module(x, body), values, CONV)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    assert _names(fold_weights(model).main).count("transpose") == 1


def test_what_a_net_transposes_back_itself_is_in_order_already() -> None:
    """A block of ConvNeXt: a norm and a dense layer over channels, which it has last for these."""
    values: Weights = {}
    x = relay.var("x", shape=(1, 6, 7, 3))
    y = _conv(x, values, 4)
    first = relay.transpose(y, (0, 3, 1, 2))
    scaled = relay.multiply(first, _weight(values, 4, 1, 1))
    z = relay.add(relay.transpose(scaled, (0, 2, 3, 1)), y)
    mod = _module(x, relay.nn.relu(_conv(z, values, 4)))
    assert _names(mod["main"]).count("transpose") == 2
    after, _ = TransposeToLayout({"nn.conv2d": ["NCHW", "default"]}).run(mod)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    assert _names(fold_weights(model).main).count("transpose") == 2
    inputs = _inputs(mod, values)
    got, want = (run(each["main"], inputs) for each in (after, mod))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("wanted", [0, 1])
def test_an_input_in_the_order_that_is_wanted_stays(wanted: int) -> None:
    """What comes in transposed, and is scaled, is transposed again for none or for one."""
    values: Weights = {}
    x = relay.var("x", shape=(1, 3, 6, 7))
    y = relay.multiply(relay.transpose(x, (0, 2, 3, 1)), _weight(values, 3))
    found = _conv(y, values, 4)
    body = Tuple([found, y]) if wanted else relay.nn.relu(found)
    after = _check(_module(x, body), values, CONV)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    assert _names(fold_weights(model).main).count("transpose") == 1 + wanted


@pytest.mark.parametrize("groups", [(2, 4), (2, 2, 2)])
def test_shuffled_channels_are_shuffled_where_they_are(groups: tuple[int, ...]) -> None:
    values: Weights = {}
    x = relay.var("x", shape=(1, 6, 7, 3))
    y = _conv(x, values, 8)
    rank = 3 + len(groups)
    split = relay.reshape(y, (1, 6, 7, *groups))
    order = (0, 1, 2, *range(rank - 1, 2, -1))
    y = relay.reshape(relay.transpose(split, order), (1, 6, 7, 8))
    after = _check(_module(x, _conv(y, values, 4)), values, CONV)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    assert _names(fold_weights(model).main).count("transpose") == 3


Body = Callable[[Expr, Weights], Expr]


def _twice(name: str, **attrs: object) -> Body:
    builder: object = relay
    for part in name.split("."):
        builder = getattr(builder, part)
    return lambda y, _values: builder(y, **attrs)


def _with_vector(name: str, count: int, **attrs: object) -> Body:
    return lambda y, values: getattr(relay.nn, name)(
        y, *[_weight(values, y.checked_type.shape[-1]) for _ in range(count)], **attrs
    )


FOLLOWERS: dict[str, Body] = {
    "relu": _twice("nn.relu"),
    "leaky_relu": _twice("nn.leaky_relu", alpha=0.1),
    "clip": _twice("clip", a_min=-1.0, a_max=1.0),
    "cast": _twice("cast", dtype="float64"),
    "bias_add": _with_vector("bias_add", 1, axis=-1),
    "prelu": _with_vector("prelu", 1, axis=3),
    "instance_norm": _with_vector("instance_norm", 2, axis=3),
    "group_norm": _with_vector("group_norm", 2, axis=3, num_groups=2),
    "layer_norm": _with_vector("layer_norm", 2, axis=-1),
    "lrn": _twice("nn.lrn", axis=3, size=3),
    "l2_normalize": _twice("nn.l2_normalize", axis=[3], eps=1e-6),
    "softmax": _twice("nn.softmax", axis=-1),
    "log_softmax": _twice("nn.log_softmax", axis=1),
    "cumsum": _twice("cumsum", axis=2),
    "max_pool2d": _twice("nn.max_pool2d", pool_size=(2, 2), layout="NHWC"),
    "avg_pool2d": _twice("nn.avg_pool2d", pool_size=(2, 3), strides=(2, 1), layout="NHWC"),
    "global_avg_pool2d": _twice("nn.global_avg_pool2d", layout="NHWC"),
    "adaptive_max_pool2d": _twice("nn.adaptive_max_pool2d", output_size=(3, 2), layout="NHWC"),
    "resize2d": _twice("image.resize2d", size=(5, 9), layout="NHWC"),
    "upsampling": _twice("nn.upsampling", scale_h=2, scale_w=2, layout="NHWC"),
    "depth_to_space": _twice("nn.depth_to_space", block_size=2, layout="NHWC"),
    "space_to_depth": _twice("nn.space_to_depth", block_size=2, layout="NHWC"),
    "pad": _twice("nn.pad", pad_width=((0, 0), (1, 2), (0, 1), (0, 0))),
    "mirror_pad": _twice("nn.mirror_pad", pad_width=((0, 0), (1, 2), (0, 1), (0, 0))),
    "strided_slice": _twice("strided_slice", begin=[0, 1, 0, 1], end=[1, 5, 6, 4]),
    "strided_slice of axes": _twice("strided_slice", begin=[1], end=[3], axes=[-1]),
    "reverse": _twice("reverse", axis=2),
    "repeat": _twice("repeat", repeats=2, axis=3),
    "mean keeping axes": _twice("mean", axis=(1, 2), keepdims=True),
    "sum of the others": _twice("sum", axis=(0, 3), exclude=True, keepdims=True),
    "concatenate": lambda y, _v: relay.concatenate((y, relay.exp(y), y), axis=3),
    "add a vector": lambda y, v: relay.add(y, _weight(v, 8)),
    "add a map": lambda y, v: relay.add(_weight(v, 6, 6, 8), y),
    "add a column": lambda y, v: relay.add(y, _weight(v, 6, 1)),
    "add a scalar": lambda y, _v: relay.add(relay.const(1.5), y),
    "where": lambda y, v: relay.where(relay.greater(y, relay.const(0.0)), y, _weight(v, 8)),
    "split": lambda y, _v: relay.add(*relay.split(y, 2, axis=3)),
    "dropout": lambda y, _v: relay.nn.dropout(y, 0.5),
    "batch_norm": _norm,
}


@pytest.mark.thin(2)
@pytest.mark.parametrize("case", FOLLOWERS)
def test_an_operator_between_two_convolutions_follows(case: str) -> None:
    values: Weights = {}
    x = relay.var("x", shape=(1, 6, 6, 4))
    y = FOLLOWERS[case](_conv(x, values, 8), values)
    y = relay.cast(y, "float32") if case == "cast" else y
    after = _check(_module(x, _conv(y, values, 5)), values, CONV)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    names = _names(fold_weights(model).main)
    assert names.count("transpose") + names.count("reshape") == 2


ENDINGS: dict[str, Body] = {
    "mean": _twice("mean", axis=(1, 2)),
    "max of rows": _twice("max", axis=1),
    "argmax of channels": _twice("argmax", axis=3),
    "argmax of all": _twice("argmax"),
    "argmax of two axes": _twice("argmax", axis=(1, 3)),
    "sum of all": _twice("sum"),
    "variance": _twice("variance", axis=[3]),
    "squeeze": _twice("squeeze"),
    "squeeze an axis": _twice("squeeze", axis=[0]),
    "reshape": _twice("reshape", newshape=(1, -1)),
    "batch_flatten": _twice("nn.batch_flatten"),
    "tile": _twice("tile", reps=(1, 2, 1, 1)),
    "expand_dims": _twice("expand_dims", axis=1),
    "cumsum of all": _twice("cumsum"),
    "transpose": _twice("transpose", axes=(0, 3, 1, 2)),
    "transpose otherwise": _twice("transpose", axes=(3, 0, 2, 1)),
    "layout_transform": _twice("layout_transform", src_layout="NHWC", dst_layout="NCHW"),
    "blocks": _twice("layout_transform", src_layout="NHWC", dst_layout="NCHW4c"),
    "all results of a norm": lambda y, v: relay.nn.batch_norm(
        y, *[_weight(v, 8) for _ in range(4)], axis=3
    ).astuple(),
    "all parts of a split": lambda y, _v: relay.split(y, 2, axis=3).astuple(),
    "two results": lambda y, _v: Tuple([y, relay.exp(y)]),
    "a matrix product": lambda y, _v: relay.nn.batch_matmul(
        relay.reshape(y, (6, 6, 8)), relay.reshape(y, (6, 6, 8))
    ),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_what_follows_computes_the_same(case: str) -> None:
    values: Weights = {}
    x = relay.var("x", shape=(1, 6, 6, 4))
    _check(_module(x, ENDINGS[case](_conv(x, values, 8), values)), values, CONV)


def test_a_transpose_that_asks_for_the_new_order_disappears() -> None:
    values: Weights = {}
    x = relay.var("x", shape=(1, 4, 6, 6))
    y = _conv(relay.transpose(x, axes=(0, 2, 3, 1)), values, 8)
    mod = _module(x, relay.transpose(relay.nn.relu(y), axes=(0, 3, 1, 2)))
    after = _check(mod, values, CONV)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    assert _names(fold_weights(model).main) == ["nn.conv2d", "nn.relu"]


def test_a_value_is_transposed_once_for_all_its_uses() -> None:
    values: Weights = {}
    x = relay.var("x", shape=(1, 6, 6, 4))
    mod = _module(x, relay.concatenate([_conv(x, values, 4) for _ in range(3)], axis=3))
    after = _check(mod, values, CONV)
    model = RelayModel(after, {name: ArrayWeight(value) for name, value in values.items()})
    assert _names(fold_weights(model).main).count("transpose") == 2


WEIGHTED = {
    "conv1d": ("nn.conv1d", (1, 7, 4), (3, 4, 6), "NWC", "WIO", {}, "NCW"),
    "conv2d": ("nn.conv2d", (1, 6, 6, 4), (3, 3, 4, 6), "NHWC", "HWIO", {}, "NCHW"),
    "grouped": (
        "nn.conv2d", (1, 6, 6, 4), (3, 3, 2, 6), "NHWC", "HWIO", {"groups": 2}, "NCHW",
    ),
    "depthwise": (
        "nn.conv2d", (1, 6, 6, 4), (3, 3, 4, 2), "NHWC", "HWOI",
        {"groups": 4, "channels": 8, "kernel_size": (3, 3)}, "NCHW",
    ),
    "other result": (
        "nn.conv2d", (1, 6, 6, 4), (3, 3, 4, 6), "NHWC", "HWIO", {"out_layout": "NCHW"}, "NCHW",
    ),
    "batch last": ("nn.conv2d", (6, 6, 4, 1), (3, 3, 4, 6), "HWCN", "HWIO", {}, "NCHW"),
    "to channels last": ("nn.conv2d", (1, 4, 6, 6), (6, 4, 3, 3), "NCHW", "OIHW", {}, "NHWC"),
    "conv3d": ("nn.conv3d", (1, 4, 5, 5, 2), (2, 3, 3, 2, 3), "NDHWC", "DHWIO", {}, "NCDHW"),
    "conv1d_transpose": ("nn.conv1d_transpose", (1, 7, 4), (3, 4, 6), "NWC", "WIO", {}, "NCW"),
    "conv2d_transpose": (
        "nn.conv2d_transpose", (1, 4, 4, 3), (2, 2, 3, 5), "NHWC", "HWIO",
        {"strides": (2, 2)}, "NCHW",
    ),
    "conv3d_transpose": (
        "nn.conv3d_transpose", (1, 3, 3, 3, 2), (2, 2, 2, 2, 3), "NDHWC", "DHWIO", {}, "NCDHW",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WEIGHTED)
def test_each_convolution_gets_the_layout(case: str) -> None:
    name, shape, kernel, layout, kernel_layout, attrs, wanted = WEIGHTED[case]
    values: Weights = {}
    x = relay.var("x", shape=shape)
    builder = getattr(relay.nn, name.split(".")[1])
    layouts = {"data_layout": layout, "kernel_layout": kernel_layout}
    y = builder(x, _weight(values, *kernel), **layouts, **attrs)
    after = _check(_module(x, y), values, {name: [wanted]})
    (conv,) = [n for n in post_order(after["main"]) if isinstance(n, Call) and n.op is get(name)]
    assert conv.attrs["data_layout"] == wanted
    assert conv.attrs["out_layout"] == ""
    channels = "IO" if name.endswith("transpose") else "OI"
    usual = channels + wanted[2:] if wanted[1] == "C" else wanted[1:-1] + channels[::-1]
    assert conv.attrs["kernel_layout"] == usual.replace("OI", "IO") if usual[-1] in "IO" else usual


def test_a_kernel_layout_may_be_asked_for() -> None:
    values: Weights = {}
    x = relay.var("x", shape=(1, 6, 6, 4))
    mod = _module(x, _conv(x, values, 8))
    after = _check(mod, values, {"nn.conv2d": ["default", "OHWI"]})
    assert _names(after["main"]) == ["transpose", "nn.conv2d"]


def test_what_is_in_the_layout_stays_the_same_module() -> None:
    x, w = relay.var("x", shape=(1, 4, 6, 6)), relay.var("w", shape=(8, 4, 3, 3))
    mod = _module(x, relay.nn.relu(relay.nn.conv2d(x, w)))
    assert channels_first().run(mod) == (mod, False)


def test_operators_without_a_layout_are_refused() -> None:
    with pytest.raises(RelayError, match=r"nn\.dense has no layout"):
        TransposeToLayout({"nn.dense": ["NC"]})


def test_layouts_of_other_axes_are_refused() -> None:
    with pytest.raises(RelayError, match="expected the axes NCHW, found NCW"):
        TransposeToLayout({"nn.conv2d": ["NCW"]})


def test_blocks_are_refused() -> None:
    with pytest.raises(Unsupported, match="NCHW16c splits an axis"):
        TransposeToLayout({"nn.max_pool2d": ["NCHW16c"]})


def test_symbolic_dimensions_keep_their_names() -> None:
    values: Weights = {}
    n = relay.var("x", shape=("n", 6, 6, 4))
    mod = _module(n, relay.nn.relu(_conv(n, values, 8)))
    after = TransposeToLayout(CONV)(mod)
    verify(after)
    assert after["main"].body.checked_type == mod["main"].body.checked_type


@pytest.mark.wide
def test_a_long_chain_is_converted() -> None:
    values: Weights = {}
    x = relay.var("x", shape=(1, 2, 2, 3))
    y = _conv(x, values, 3, 1)
    for _ in range(20_000):
        y = relay.tanh(y)
    after = TransposeToLayout(CONV)(_module(x, y))
    assert _names(after["main"])[-2:] == ["tanh", "transpose"]
