"""Live objects of MXNet: what they give equals what MXNet itself exports."""

import logging
from types import ModuleType

import numpy as np
import pytest

import serde
from serde.bridge.formats import get_bridge
from serde.compat import import_mxnet
from serde.errors import MissingDependency, OptionError
from serde.mxnet.arrays import as_weight
from serde.mxnet.codec import load
from serde.mxnet.live import from_live, is_live


@pytest.fixture(scope="module")
def mx() -> ModuleType:
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


@pytest.fixture
def symbol(mx):
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="bn", fix_gamma=False)
    net = mx.sym.FullyConnected(net, num_hidden=2, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


SHAPES = {
    "arg:bn_gamma": (3,),
    "arg:bn_beta": (3,),
    "arg:fc_weight": (2, 3),
    "arg:fc_bias": (2,),
    "aux:bn_moving_mean": (3,),
    "aux:bn_moving_var": (3,),
}


@pytest.fixture
def values():
    rng = np.random.default_rng(8)
    return {name: rng.standard_normal(shape).astype("float32") for name, shape in SHAPES.items()}


def spelled(mx, values, how):
    """The values as one of the params arguments that are accepted."""
    bare = {name[4:]: value for name, value in values.items()}
    arg = {name[4:]: mx.nd.array(v) for name, v in values.items() if name.startswith("arg:")}
    aux = {name: mx.nd.array(v) for name, v in values.items() if name.startswith("aux:")}
    spellings = {
        "prefixed NumPy": values,
        "bare NumPy": bare,
        "big-endian": {name: value.astype(">f4") for name, value in bare.items()},
        "prefixed NDArray": {name: mx.nd.array(value) for name, value in values.items()},
        "bare NDArray": {name: mx.nd.array(value) for name, value in bare.items()},
        "mx.np": {name: mx.nd.array(value).as_np_ndarray() for name, value in values.items()},
        "pair": (arg, aux),
    }
    return spellings[how]


def check(model, values):
    assert {f"arg:{name}" for name in model.arg} | {f"aux:{name}" for name in model.aux} == set(
        values
    )
    for name, value in values.items():
        weight = model.param(name[4:])
        assert (weight.shape, weight.dtype) == (value.shape, value.dtype.name)
        np.testing.assert_array_equal(weight.array(), value)
        np.testing.assert_array_equal(weight.rows(1, 2), value[1:2])
        assert b"".join(weight.chunks()) == value.tobytes()


@pytest.mark.parametrize(
    "how",
    [
        *("prefixed NumPy", "bare NumPy", "big-endian", "prefixed NDArray", "bare NDArray"),
        *("mx.np", "pair"),
    ],
)
def test_a_symbol_with_any_parameters(mx, symbol, values, how):
    model = from_live(symbol, spelled(mx, values, how))
    check(model, values)
    assert model.inputs == ["data", "softmax_label"]
    assert [node.op for node in model.graph.nodes if node.op != "null"] == [
        "BatchNorm",
        "FullyConnected",
        "SoftmaxOutput",
    ]


def test_a_symbol_alone(symbol):
    assert from_live(symbol).inputs[:2] == ["data", "bn_gamma"]


@pytest.mark.parametrize("dtype", ["float16", "float64", "bool", "int8", "uint8", "int32", "int64"])
def test_dtypes(mx, symbol, dtype):
    value = np.array([[0, 1, 2], [3, 0, 5]]).astype(dtype)
    model = from_live(symbol, {"fc_weight": mx.nd.array(value, dtype=dtype)})
    check(model, {"arg:fc_weight": value})


def test_bfloat16(mx, symbol):
    value = mx.nd.array([[1.5, -2.0]]).astype(np.dtype([("bfloat16", np.uint16)]))
    weight = from_live(symbol, {"fc_weight": value}).arg["fc_weight"]
    assert weight.dtype == "bfloat16"
    np.testing.assert_array_equal(weight.array().astype("float32"), [[1.5, -2.0]])


@pytest.mark.parametrize("storage", ["row_sparse", "csr"])
def test_sparse_storage(mx, symbol, storage):
    dense = np.array([[0, 0, 0], [1, 0, 2], [0, 0, 0]], "float32")
    value = mx.nd.array(dense).tostype(storage)
    weight = from_live(symbol, {"fc_weight": value}).arg["fc_weight"]
    assert weight.sparse
    np.testing.assert_array_equal(weight.array(), dense)
    np.testing.assert_array_equal(weight.rows(1, 2), dense[1:2])


@pytest.mark.parametrize(
    "params", [[1, 2, 3], {"a": "text"}, {3: np.ones(2)}, {"a": np.array(["x"])}, 5]
)
def test_what_are_no_parameters(symbol, params):
    with pytest.raises(OptionError):
        from_live(symbol, params)


# ---- Module


def module(mx, symbol):
    logging.disable(logging.WARNING)
    return mx.mod.Module(symbol, label_names=["softmax_label"])


def test_a_module_that_is_bound(mx, symbol):
    mod = module(mx, symbol)
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params(mx.init.Uniform(1))
    arg, aux = mod.get_params()
    expected = {f"arg:{name}": value.asnumpy() for name, value in arg.items()}
    expected |= {f"aux:{name}": value.asnumpy() for name, value in aux.items()}
    check(from_live(mod), expected)


def test_a_module_that_is_not_bound(mx, symbol, values):
    mod = module(mx, symbol)
    with pytest.raises(OptionError, match="Module has no parameters yet"):
        from_live(mod)
    check(from_live(mod, values), values)


@pytest.mark.parametrize("given", [None, {"data": ("N", 3)}])
def test_a_module_that_is_bound_knows_its_shapes(mx, symbol, given):
    """What the caller says goes before."""
    mod = module(mx, symbol)
    mod.bind([mx.io.DataDesc("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params(mx.init.Uniform(1))
    options = {} if given is None else {"input_shapes": given}
    (data,) = serde.to_relay(mod, **options).inputs()
    assert str(data.type.shape[0]) == ("4" if given is None else "N")


def test_a_feed_forward_model(mx, symbol, values):
    split = {kind: {} for kind in ("arg", "aux")}
    for full, value in values.items():
        kind, _, name = full.partition(":")
        split[kind][name] = mx.nd.array(value)
    with pytest.warns(DeprecationWarning, match="FeedForward"):
        model = mx.model.FeedForward(symbol, arg_params=split["arg"], aux_params=split["aux"])
    check(from_live(model), values)
    assert is_live(model)
    with pytest.warns(DeprecationWarning, match="FeedForward"):
        empty = mx.model.FeedForward(symbol)
    with pytest.raises(OptionError, match="FeedForward has no parameters yet"):
        from_live(empty)
    check(from_live(empty, values), values)


def test_a_bucketing_module_is_bound_first(mx, symbol):
    def bucket(key):
        return symbol, ["data"], ["softmax_label"]

    mod = mx.mod.BucketingModule(bucket, default_bucket_key=3)
    with pytest.raises(OptionError, match="BucketingModule has no symbol"):
        from_live(mod)
    mod.bind([("data", (4, 3))], [("softmax_label", (4,))])
    mod.init_params()
    model = from_live(mod)
    assert model.inputs == ["data", "softmax_label"]
    np.testing.assert_array_equal(model.aux["bn_moving_var"].array(), np.ones(3))


# ---- Gluon


def convnet(mx):
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Dense(2))
    net.initialize(mx.init.Uniform(1))
    return net


def exported(net, tmp_path):
    net.export(str(tmp_path / "net"))
    return load(tmp_path / "net")


@pytest.mark.parametrize("when", ["fresh", "forward", "hybridized", "hybridized, forward"])
def test_a_block_gives_what_it_would_export(mx, tmp_path, when):
    net = convnet(mx)
    x = mx.nd.ones((2, 3, 8, 8))
    if "hybridized" in when:
        net.hybridize()
    if "forward" in when:
        net(x)
    active, cached = net._active, bool(net._cached_graph)
    model = from_live(net, None, {"data": ("N", 3, 8, 8)})
    assert (net._active, bool(net._cached_graph)) == (active, cached)
    assert model.inputs == ["data"]
    net.hybridize()
    net(x)
    expected = exported(net, tmp_path)
    # What a block notes on a variable (its shape) depends on when it made it.
    assert plain(model.graph) == plain(expected.graph)
    same_values(model, expected)


def plain(graph):
    nodes = [(node.op, node.name, node.attrs, node.inputs) for node in graph.nodes]
    return nodes, graph.heads


def same_values(model, expected):
    for kind in ("arg", "aux"):
        ours, theirs = getattr(model, kind), getattr(expected, kind)
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name].array(), theirs[name].array())


@pytest.mark.parametrize("shapes", [{"": (1, 3, 8, 8)}, {"data": (1, 3, 8, 8)}])
def test_deferred_parameters_get_their_shapes(mx, shapes):
    net = convnet(mx)
    model = from_live(net, None, shapes)
    assert model.arg["net_dense0_weight"].shape == (2, 4 * 6 * 6)
    weight = net.collect_params()["net_dense0_weight"].data().asnumpy()
    np.testing.assert_array_equal(model.arg["net_dense0_weight"].array(), weight)


@pytest.mark.parametrize("shapes", [None, {"data": ("N", 3, "H", "W")}, {"other": (1, 3, 8, 8)}])
def test_a_missing_shape_is_named(mx, shapes):
    with pytest.raises(OptionError, match=r"input_shapes=\{'data'"):
        from_live(convnet(mx), None, shapes)


def test_a_shape_that_does_not_fit(mx):
    with pytest.raises(OptionError, match="do not fit"):
        from_live(convnet(mx), None, {"data": (1, 3)})


def test_a_block_without_values(mx):
    net = mx.gluon.nn.Dense(2, in_units=3)
    with pytest.raises(OptionError, match=r"initialize\(\)"):
        from_live(net)


def test_a_block_with_other_values(mx):
    net = mx.gluon.nn.Dense(2, in_units=3, prefix="fc_")
    value = np.arange(6, dtype="float32").reshape(2, 3)
    model = from_live(net, {"fc_weight": value})
    np.testing.assert_array_equal(model.arg["fc_weight"].array(), value)


def two_inputs(mx):
    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="two_")
            with self.name_scope():
                self.dense = mx.gluon.nn.Dense(3, in_units=5)
                self.scale = self.params.get_constant("scale", [[2.0]])

        def hybrid_forward(self, F, a, b, mask=None, scale=None):  # noqa: N803
            y = F.broadcast_mul(self.dense(a), scale) + b
            return (y if mask is None else y * mask), [b * 2, F.exp(a)]

    net = Net()
    net.initialize()
    return net


def test_several_inputs_and_outputs(mx, tmp_path):
    net = two_inputs(mx)
    model = from_live(net)
    assert model.inputs == ["data0", "data1"]
    net.hybridize()
    net(mx.nd.ones((2, 5)), mx.nd.ones((2, 3)))
    expected = exported(net, tmp_path)
    assert plain(model.graph) == plain(expected.graph)
    same_values(model, expected)


@pytest.mark.parametrize("hybrid", [False, True])
def test_inputs_are_in_the_order_in_which_a_block_takes_them(mx, hybrid):
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, a, b, c):  # noqa: N803
            return F.broadcast_sub(c, a) * b

    net, values = Net(), [mx.nd.array([value]) for value in (1.0, 2.0, 5.0)]
    if hybrid:
        net.hybridize()
    expected = net(*values).asnumpy()
    model = serde.to_relay(net, input_shapes={f"data{i}": (1,) for i in range(3)})
    assert model.meta.inputs == ("data0", "data1", "data2")
    again = serde.import_to_gluon(serde.export_model(model, format="onnx"))
    np.testing.assert_array_equal(again(*values).asnumpy(), expected)


def test_a_symbol_block_has_the_order_that_it_was_made_with(mx):
    a, b = (mx.sym.var(name, dtype="float32") for name in "ab")
    symbol = (b - a) * 2
    assert symbol.list_arguments() == ["b", "a"]
    shapes = {"a": (1,), "b": (1,)}
    block = mx.gluon.SymbolBlock(symbol, [a, b])
    assert serde.to_relay(block, input_shapes=shapes).meta.inputs == ("a", "b")
    noted, _ = serde.import_model(serde.export_model(block, format="onnx", input_shapes=shapes))
    turned = mx.gluon.SymbolBlock(noted, [b, a])
    assert serde.to_relay(turned, input_shapes=shapes).meta.inputs == ("b", "a")


def test_an_optional_input_is_there_if_it_has_a_shape(mx):
    shapes = {"data0": (2, 5), "data1": (2, 3), "data2": (2, 3)}
    assert from_live(two_inputs(mx), None, shapes).inputs == ["data0", "data1", "data2"]


@pytest.mark.filterwarnings("ignore:Cannot decide type")
def test_a_symbol_block(mx, tmp_path):
    net = convnet(mx)
    net.hybridize()
    net(mx.nd.ones((2, 3, 8, 8)))
    expected = exported(net, tmp_path)
    files = str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
    block = mx.gluon.SymbolBlock.imports(*files)
    model = from_live(block)
    assert plain(model.graph) == plain(expected.graph)
    same_values(model, expected)


def test_numpy_mode(mx):
    mx.npx.set_np()
    try:
        net = mx.gluon.nn.Dense(2, in_units=3, prefix="np_")
        net.initialize()
        model = from_live(net, None, {"data": (4, 3)})
        weight = net.weight.data().asnumpy()
    finally:
        mx.npx.reset_np()
    np.testing.assert_array_equal(model.arg["np_weight"].array(), weight)


def test_a_plain_block_is_refused(mx):
    with pytest.raises(OptionError, match="make it a HybridBlock"):
        from_live(mx.gluon.nn.Sequential())


def test_a_block_that_cannot_be_traced(mx):
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):  # noqa: N803
            return x * x.shape[0]

    with pytest.raises(OptionError, match="cannot be traced with 1 inputs"):
        from_live(Net())


def test_what_is_live(mx, symbol):
    assert is_live(symbol)
    assert is_live(two_inputs(mx))
    assert is_live(mx.mod.Module(symbol, label_names=["softmax_label"]))
    assert not is_live(mx.nd.ones(2))
    assert not is_live("m-symbol.json")
    assert not is_live(mx)


def test_what_is_not_live(mx):
    with pytest.raises(OptionError, match="found NDArray"):
        from_live(mx.nd.ones(2))


@pytest.mark.parametrize("how", ["path", "bytes"])
def test_a_symbol_with_the_file_of_its_parameters(mx, symbol, values, tmp_path, how):
    path = tmp_path / "p.params"
    mx.nd.save(str(path), {name: mx.nd.array(value) for name, value in values.items()})
    given = path if how == "path" else path.read_bytes()
    bridge = get_bridge("mxnet")
    model = bridge.load(symbol, given, bridge.bind_import({}))
    check(model, values)


@pytest.mark.wide
def test_weights_are_read_whole_while_a_net_runs(mx: ModuleType) -> None:
    """A convolution's first inference moves its weights about in their own memory."""
    wanted = np.arange(256 * 256 * 9, dtype=np.float32).reshape(256, 256, 3, 3)
    x = mx.nd.ones((1, 256, 4, 4))
    for _ in range(20):
        layer = mx.gluon.nn.Conv2D(256, 3, padding=1, in_channels=256, use_bias=False)
        layer.initialize(mx.init.Zero())
        layer.weight.set_data(mx.nd.array(wanted))
        mx.nd.waitall()
        layer(x)
        weight = as_weight(layer.weight.data())
        assert all(np.array_equal(weight.array(), wanted) for _ in range(12))
