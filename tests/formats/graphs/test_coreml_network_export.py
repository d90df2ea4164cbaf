"""NeuralNetworks that are written: whole nets, weights, control flow, options and files."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from support.coreml_models import tools
from support.coreml_networks import check_network, evaluate_back, layer_kinds, message_of, network
from support.nn_layers import evaluate_network

import serde
import serde.relay as relay
from serde.compat import import_mxnet
from serde.core.report import Report
from serde.core.weights import ArrayWeight, FileWeight, OpenFile
from serde.errors import OptionError, UnsupportedModelError
from serde.relay.ir.expr import Expr, Function, If, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run

F32 = np.float32


def model_of(
    body: Expr, inputs: list[Var], weights: dict[Var, np.ndarray] | None = None
) -> RelayModel:
    known = weights or {}
    main = infer_function(Function([*inputs, *known], body))
    params = {each.name_hint: ArrayWeight(value) for each, value in known.items()}
    count = len(getattr(main.body.type, "fields", (None,)))
    names = tuple(f"y{i}" for i in range(count)) if count > 1 else ("y",)
    meta = ModelMeta(tuple(each.name_hint for each in inputs), names)
    return RelayModel(IRModule({"main": main}), params, meta)


def var(name: str, *shape: object, dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "alexnet", "densenet121", "inceptionv3", "mobilenetv2_1.0", "resnet18_v1",
        "squeezenet1.0", "vgg11",
    ],
)  # fmt: skip
def test_gluon_zoo(name: str, tmp_path: Path) -> None:
    """The largest deviation from MXNet is a ten-thousandth of the deviation of the scores."""
    mx = import_mxnet()
    from mxnet.gluon.model_zoo import vision

    mx.random.seed(7)
    net = vision.get_model(name)
    net.initialize(mx.init.Xavier(magnitude=2.24))
    net.hybridize()
    shape = (1, 3, 299, 299) if name == "inceptionv3" else (1, 3, 224, 224)
    data = mx.nd.random.uniform(-1, 1, shape)
    wanted = net(data).asnumpy()
    path = serde.export_model(
        net,
        format="coreml",
        path=tmp_path / "net.mlmodel",
        minimum_deployment_target="iOS13",
        input_shapes={"data": shape},
    )
    (found,) = evaluate_back(path, {"data": data.asnumpy()})
    assert np.abs(found - wanted).max() <= 1e-4 * wanted.std()


def dense(rows: int, columns: int) -> tuple[RelayModel, np.ndarray]:
    x, w = var("x", 2, columns), var("w", rows, columns)
    weight = np.random.default_rng(1).normal(size=(rows, columns)).astype(F32)
    return model_of(relay.nn.dense(x, w), [x], {w: weight}), weight


@pytest.mark.parametrize("rows", [3, 300])
def test_weights_in_float16(rows: int) -> None:
    source, weight = dense(rows, 64)
    model = network(source, "iOS13", compute_precision="float16")
    x = np.random.default_rng(2).normal(size=(2, 64)).astype(F32)
    message = check_network(model, {"x": x}, [x @ weight.astype(np.float16).astype(F32).T])
    params = message.neuralNetwork.layers[0].innerProduct.weights
    assert len(params.float16Value) == 2 * rows * 64
    assert not params.floatValue


def test_values_beyond_float16_are_refused_unless_allowed() -> None:
    x, w = var("x", 2, 4), var("w", 3, 4)
    source = model_of(relay.nn.dense(x, w), [x], {w: np.full((3, 4), 1e5, F32)})
    half = {"minimum_deployment_target": "iOS14", "compute_precision": "float16"}
    with pytest.raises(UnsupportedModelError, match="beyond the range of float16"):
        serde.export_model(source, format="coreml", **half)
    report = Report()
    allowed = {"float16-overflow"}
    serde.export_model(source, format="coreml", allow=allowed, report=report, **half)
    assert [issue.node for issue in report.allowed] == ["weight w"]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("kind", ["conv", "transpose", "dense", "alone"])
def test_quantised_weight(kind: str, each: bool, dtype: str) -> None:
    """It keeps a byte a value, with one scale or one for each result."""
    rng = np.random.default_rng(3)
    shape = {"dense": (6, 300), "alone": (6, 300)}.get(kind, (6, 6, 8, 8))
    axis = 1 if kind == "transpose" else 0
    limits = np.iinfo(dtype)
    codes = rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    scale = rng.uniform(0.01, 0.02, (6,) if each else ()).astype(F32)
    zero = rng.integers(0, 9, scale.shape).astype(dtype)
    w = var("w", *shape, dtype=dtype)
    real = relay.serde.dequantize_linear(w, relay.const(scale), relay.const(zero), axis=axis)
    spread = [-1 if place == axis else 1 for place in range(len(shape))] if each else ()
    floats = (codes.astype(F32) - zero.astype(F32).reshape(spread)) * scale.reshape(spread)
    plain = var("w", *shape)
    x = var("x", *((2, 300) if kind in ("dense", "alone") else (1, 6, 9, 9)))
    builds = {
        "conv": lambda v: relay.nn.conv2d(x, v, kernel_size=(8, 8)),
        "transpose": lambda v: relay.nn.conv2d_transpose(x, v, kernel_size=(8, 8)),
        "dense": lambda v: relay.nn.dense(x, v),
        "alone": lambda v: relay.nn.batch_matmul(
            relay.expand_dims(x, 0), relay.expand_dims(relay.add(v, v), 0)
        ),
    }
    model = network(model_of(builds[kind](real), [x], {w: codes}), "iOS13")
    given = rng.uniform(-1, 1, [int(n) for n in x.type.shape]).astype(F32)
    reference = model_of(builds[kind](plain), [x], {plain: floats})
    wanted = run(reference.main, [given, floats], mod=reference.mod)
    message = check_network(model, {"x": given}, [wanted], tolerance=1e-3)
    assert len(message.SerializeToString()) < 2 * codes.size


def test_branch() -> None:
    x, go = var("x", 3), var("go", 1)
    condition = relay.greater(relay.reshape(go, ()), relay.const(F32(0)))
    body = If(condition, relay.add(x, x), relay.exp(x))
    model = network(model_of(body, [x, go]), "iOS13")
    assert "branch" in layer_kinds(model)
    data = np.array([0.5, -1, 2], F32)
    for flag, wanted in ((1.0, data + data), (-1.0, np.exp(data))):
        check_network(model, {"x": data, "go": np.array([flag], F32)}, [wanted])


def test_outputs_that_no_layer_gives() -> None:
    """An input, a constant and one tensor twice are copies under the names of the outputs."""
    x = var("x", 3)
    twice = relay.exp(x)
    body = relay.Tuple([x, relay.Constant(np.arange(2, dtype=F32)), twice, twice])
    data = np.array([0.5, -1, 2], F32)
    wanted = [data, np.arange(2, dtype=F32), np.exp(data), np.exp(data)]
    check_network(network(model_of(body, [x]), "iOS13"), {"x": data}, wanted)


def test_names_stay() -> None:
    x = var("my input/0", 3)
    source = model_of(relay.exp(x), [x]).evolve(meta=ModelMeta(("my input/0",), ("soft:out",)))
    description = network(source, "iOS13").spec.description
    assert [each.name for each in description.input] == ["my input/0"]
    assert [each.name for each in description.output] == ["soft:out"]


def test_whole_numbers_need_consent() -> None:
    x = var("x", 3, dtype="int32")
    source = model_of(relay.add(x, x), [x])
    with pytest.raises(UnsupportedModelError, match="allow 'integers-as-float32'"):
        network(source, "iOS13", allow=frozenset())
    message = check_network(
        network(source, "iOS13"), {"x": np.array([1, -2, 3], np.int32)}, [np.array([2, -4, 6])]
    )
    codes = message.description.input[0].type.multiArrayType.dataType
    assert codes == tools().proto.FeatureTypes_pb2.ArrayFeatureType.INT32


def test_narrow_numbers_need_none() -> None:
    x, y = var("a", 4, dtype="int8"), var("b", 4, dtype="int8")
    model = network(model_of(relay.multiply(x, y), [x, y]), "iOS13", allow=frozenset())
    a, b = np.array([100, -100, 5, -128], np.int8), np.array([2, 3, -7, -1], np.int8)
    check_network(model, {"a": a, "b": b}, [a * b])


@pytest.mark.parametrize("weight", [False, True])
def test_a_number_that_float32_does_not_hold(weight: bool) -> None:
    x, w = var("x", 3, dtype="int32"), var("w", 3, dtype="int32")
    value = np.full(3, 2**24 + 1, np.int32)
    if weight:
        source = model_of(relay.add(x, w), [x], {w: value})
    else:
        source = model_of(relay.add(x, relay.const(value)), [x])
    with pytest.raises(UnsupportedModelError, match="16777217, which float32 does not hold"):
        network(source, "iOS13")


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    source, _ = dense(300, 64)
    options = {"format": "coreml", "minimum_deployment_target": "iOS14"}
    paths = [
        serde.export_model(source, path=tmp_path / f"{i}.mlmodel", **options) for i in range(2)
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_model_in_memory() -> None:
    source, weight = dense(300, 64)
    model = serde.export_model(source, format="coreml", minimum_deployment_target="iOS14")
    spec = model.get_spec()
    assert spec.specificationVersion == 5
    values = spec.neuralNetwork.layers[0].innerProduct.weights.floatValue
    np.testing.assert_array_equal(np.array(values, F32).reshape(300, 64), weight)


def test_coremltools_finds_the_weights() -> None:
    """It stores them in float16, which takes that it knows every layer and its sizes."""
    from coremltools.models.neural_network.quantization_utils import quantize_weights

    rng = np.random.default_rng(5)
    x, k, w, b = var("x", 1, 3, 8, 8), var("k", 8, 3, 3, 3), var("w", 40, 288), var("b", 40)
    found = relay.nn.relu(relay.nn.conv2d(x, k, kernel_size=(3, 3)))
    body = relay.nn.bias_add(relay.nn.dense(relay.nn.batch_flatten(found), w), b, axis=-1)
    values = {each: rng.normal(size=each.type.concrete_shape).astype(F32) for each in (k, w, b)}
    source = model_of(body, [x], values)
    whole = serde.export_model(source, format="coreml", minimum_deployment_target="iOS13")
    half = quantize_weights(whole, 16).get_spec()
    stored = half.neuralNetwork.layers
    assert len(stored[0].convolution.weights.float16Value) == 2 * 8 * 27
    data = {"x": rng.normal(size=(1, 3, 8, 8)).astype(F32)}
    (ours,) = evaluate_network(whole.get_spec(), data).values()
    (theirs,) = evaluate_network(half, data).values()
    np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=0.3)


def test_a_file_that_was_read_is_written_again(tmp_path: Path) -> None:
    from serde.coreml.reader import load
    from serde.coreml.writer import save

    source, _ = dense(300, 64)
    options = {"format": "coreml", "minimum_deployment_target": "iOS14"}
    first = serde.export_model(source, path=tmp_path / "first.mlmodel", **options)
    second = save(load(first), tmp_path / "second.mlmodel")
    assert message_of(first) == message_of(second)
    with pytest.raises(OptionError):
        save(load(first), first)


@pytest.mark.parametrize(
    ("target", "suffix", "wanted"),
    [
        ("iOS13", ".mlpackage", "a file, called .mlmodel; minimum_deployment_target=iOS15"),
        ("iOS14", "", "a file, called .mlmodel"),
        ("iOS15", ".mlmodel", "a package, called .mlpackage; minimum_deployment_target=iOS14"),
    ],
)
def test_paths(target: str, suffix: str, wanted: str, tmp_path: Path) -> None:
    source, _ = dense(3, 4)
    with pytest.raises(OptionError, match=wanted):
        serde.export_model(
            source,
            format="coreml",
            path=tmp_path / f"net{suffix}",
            minimum_deployment_target=target,
        )


def test_targets() -> None:
    source, _ = dense(3, 4)
    with pytest.raises(OptionError, match=r"expected iOS13, iOS14, iOS15, .*iOS26"):
        network(source, "iOS12")


def test_weights_stream(tmp_path: Path) -> None:
    """Weights in a file go into the message without being in memory as a whole."""
    rows, columns = 4096, 4096
    raw = tmp_path / "weights"
    with raw.open("wb") as file:
        for row in range(rows):
            file.write(np.full(columns, row, F32).tobytes())
    x, w = var("x", 2, columns), var("w", rows, columns)
    main = infer_function(Function([x, w], relay.nn.dense(x, w)))
    with OpenFile.open(raw) as opened:
        weight = FileWeight(opened.range(0, opened.size), (rows, columns), "float32")
    source = RelayModel(IRModule({"main": main}), {"w": weight}, ModelMeta(("x",), ("y",)))
    tracemalloc.start()
    try:
        path = serde.export_model(
            source,
            format="coreml",
            path=tmp_path / "net.mlmodel",
            minimum_deployment_target="iOS13",
        )
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    back = serde.to_relay(path)
    (found,) = back.params.values()
    assert found.source is not None
    assert found.rows(4095, 4096)[0, 0] == 4095


def test_flexible_lengths_are_ranges() -> None:
    x = var("x", "n", 4)
    feature = network(model_of(relay.exp(x), [x]), "iOS13").spec.description.input[0]
    ranges = feature.type.multiArrayType.shapeRange.sizeRanges
    assert [(each.lowerBound, each.upperBound) for each in ranges] == [(1, 1024), (4, 4)]


def test_suppression_is_read() -> None:
    """A layer of coremltools against the kernel of MIL's operator in the tests."""
    from support.coreml_layers import check_layers
    from support.mil_layers import KERNELS

    rng = np.random.default_rng(4)
    boxes = np.concatenate(
        [rng.uniform(0, 4, (2, 7, 2)), rng.uniform(1, 3, (2, 7, 2))], axis=2
    ).astype(F32)
    scores = rng.uniform(0, 1, (2, 7, 3)).astype(F32)
    wanted = KERNELS["non_maximum_suppression"](boxes, scores, 0.4, 4, 0.3, True)
    check_layers(
        lambda b: b.add_nms(
            "l", ["x", "s"], ["y0", "y1", "y2", "y3"], 0.4, 0.3, 4, per_class_suppression=True
        ),
        {"x": boxes, "s": scores},
        [np.asarray(each, F32) for each in wanted],
        exact=True,
    )


def image_net() -> RelayModel:
    x = var("x", 1, 3, 4, 4)
    return model_of(relay.nn.softmax(relay.mean(x, axis=[2, 3])), [x])


def test_classifier_of_images(tmp_path: Path) -> None:
    """Scores keep their name, labels lie in the network, and pixels are scaled."""
    path = serde.export_model(
        image_net(),
        format="coreml",
        path=tmp_path / "net.mlmodel",
        minimum_deployment_target="iOS13",
        class_labels=["cat", "dog", "owl"],
        images={"x": {"color_layout": "BGR", "scale": 0.5, "bias": -1}},
    )
    message = message_of(path)
    network_ = message.neuralNetworkClassifier
    assert list(network_.stringClassLabels.vector) == ["cat", "dog", "owl"]
    assert message.description.predictedProbabilitiesName == network_.labelProbabilityLayerName
    assert message.description.input[0].type.WhichOneof("Type") == "imageType"
    pixels = np.random.default_rng(6).integers(0, 9, (1, 3, 4, 4)).astype(F32)
    (found,) = evaluate_back(path, {"x": pixels})
    exponents = np.exp((pixels * 0.5 - 1).mean((2, 3)))
    np.testing.assert_allclose(found, exponents / exponents.sum(), rtol=1e-5)
    assert serde.to_relay(path).meta.labels == ("cat", "dog", "owl")


def test_regressor(tmp_path: Path) -> None:
    path = serde.export_model(
        image_net(),
        format="coreml",
        path=tmp_path / "net.mlmodel",
        minimum_deployment_target="iOS14",
        mode="regressor",
    )
    assert message_of(path).WhichOneof("Type") == "neuralNetworkRegressor"
    (found,) = evaluate_back(path, {"x": np.ones((1, 3, 4, 4), F32)})
    np.testing.assert_allclose(found, np.full((1, 3), 1 / 3), rtol=1e-6)
