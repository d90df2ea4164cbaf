"""Images, class labels, flexible lengths and descriptions of Core ML models, both ways.

What is written is compared with what coremltools itself writes when it is asked for the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_interface import (
    FIXED,
    LABELS,
    SCALED,
    SIZES,
    convert,
    evaluate,
    image,
    program,
    read,
    relay_net,
    written,
)
from support.coreml_models import tools
from support.coreml_structure import structure
from support.mil_apple import Proof
from support.mil_executor import execute
from support.mil_values import check_types
from support.oracle import run_mxnet

import serde
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.compat import import_mxnet
from serde.core.report import Report
from serde.coreml.options import CoremlExportOptions
from serde.errors import OptionError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run


def sizes() -> Any:
    return tools().EnumeratedShapes(SIZES)


def lengths() -> Any:
    ct = tools()
    return ct.Shape((1, 3, ct.RangeDim(8, 64, default=10), ct.RangeDim(8, 32, default=12)))


RANGES = {"x_2": (8, 64, 10), "x_3": (8, 32, 12)}

ASKED: dict[str, tuple[Callable[[], dict[str, Any]], dict[str, Any], tuple[Any, ...]]] = {
    "image": (lambda: image(), {"images": ["x"]}, FIXED),
    "scaled": (
        lambda: image(layout="BGR", scale=1 / 255, bias=[-0.1, -0.2, -0.3]),
        {"images": {"x": SCALED}},
        FIXED,
    ),
    "scale": (lambda: image(scale=0.5), {"images": {"x": {"scale": 0.5}}}, FIXED),
    "bias": (lambda: image(bias=[1.0, 1.0, 1.0]), {"images": {"x": {"bias": 1}}}, FIXED),
    "gray": (
        lambda: image((1, 1, 8, 8), "GRAYSCALE", scale=0.5, bias=-0.1),
        {"images": {"x": {"color_layout": "GRAYSCALE", "scale": 0.5, "gray_bias": -0.1}}},
        (1, 1, 8, 8),
    ),
    "image_sizes": (
        lambda: image(sizes(), scale=0.5),
        {"images": {"x": {"scale": 0.5}}, "enumerated_shapes": SIZES},
        (1, 3, "h", "w"),
    ),
    "image_lengths": (
        lambda: image(lengths()),
        {"images": "x", "ranges": RANGES},
        (1, 3, "h", "w"),
    ),
    "shapes": (
        lambda: {"inputs": [tools().TensorType(name="x", shape=sizes())]},
        {"enumerated_shapes": {"x": SIZES}},
        (1, 3, "h", "w"),
    ),
    "lengths": (
        lambda: {"inputs": [tools().TensorType(name="x", shape=lengths())]},
        {"ranges": RANGES},
        (1, 3, "h", "w"),
    ),
    "labels": (
        lambda: {"classifier_config": tools().ClassifierConfig(LABELS)},
        {"class_labels": LABELS},
        FIXED,
    ),
    "numbers_as_labels": (
        lambda: {"classifier_config": tools().ClassifierConfig([5, 6, 7], "kind")},
        {"class_labels": (5, 6, 7), "predicted_feature_name": "kind", "mode": "classifier"},
        FIXED,
    ),
}


def same_program(shape: tuple[Any, ...], **options: Any) -> Any:
    from coremltools.converters.mil.mil import get_new_symbol

    tools()
    dims = tuple(each if isinstance(each, int) else get_new_symbol() for each in shape)
    return program(dims, **options)


@pytest.mark.wide
@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("case", ASKED)
@pytest.mark.thin(2)
def test_coremltools_writes_the_same(case: str, precision: str) -> None:
    ask, options, shape = ASKED[case]
    theirs = convert(same_program(shape), precision, "iOS15", **ask())
    # Of flexible lengths the program is the same whichever they are.
    plain = {} if shape == FIXED or 1 in shape[1:2] else {"inputs": ask()["inputs"]}
    for each in plain.get("inputs", ()):
        plain["inputs"] = [tools().TensorType(name="x", shape=each.shape)]
    source = convert(same_program(shape), "float32", "iOS15", **plain)
    ours = serde.export_model(source, format="coreml", compute_precision=precision, **options)
    expected, found = structure(theirs), structure(ours)
    assert found["description"] == expected["description"]
    assert found == expected


@pytest.mark.wide
def test_a_gray_image_of_float16() -> None:
    layout = {"color_layout": "GRAYSCALE_FLOAT16", "scale": 0.5, "bias": -0.25}
    given = image((1, 1, 8, 8), "GRAYSCALE_FLOAT16", scale=0.5, bias=-0.25)
    net = program((1, 1, 8, 8), "float16", "iOS16")
    theirs = convert(net, "float16", "iOS16", **given)
    source = convert(program((1, 1, 8, 8), "float16", "iOS16"), "float16", "iOS16")
    ours = serde.export_model(
        source, format="coreml", minimum_deployment_target="iOS16", images={"x": layout}
    )
    assert structure(ours) == structure(theirs)


@pytest.mark.parametrize("target", ["iOS15", "iOS16"])
def test_inputs_of_float16_stay_from_ios16_on(target: str) -> None:
    dtype = "float16" if target == "iOS16" else "float32"
    model = written(relay_net((1, 3, 8, 8), "float16"), minimum_deployment_target=target)
    declared = [*model.spec.description.input, *model.spec.description.output]
    codes = {each.type.multiArrayType.dataType for each in declared}
    assert codes == {{"float16": 65552, "float32": 65568}[dtype]}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_an_image_of_float16_needs_no_wider_copy(dtype: str) -> None:
    layout = {"color_layout": "GRAYSCALE_FLOAT16", "scale": 0.5}
    net = relay_net((1, 1, 8, 8), dtype)
    model = written(net, minimum_deployment_target="iOS16", images={"x": layout})
    operators = [op for op in get_bridge("coreml").operators(model) if op != "cast"]
    first = operators.index("mul")
    assert operators[first : first + 2] == ["mul", "conv"]
    assert get_bridge("coreml").operators(model)[:2] == ["mul", "conv"]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("target", ["iOS15", "iOS18"])
def test_apple_infers_the_scaled_image(layout: str, target: str) -> None:
    shape = FIXED if layout == "NCHW" else (1, 8, 8, 3)
    net = relay_net(shape, layout=layout)
    options = {"minimum_deployment_target": target, "compute_precision": "float32"}
    model = written(net, images={"x": SCALED}, **options)
    check_types(model)
    pixels = np.random.default_rng(3).integers(0, 256, FIXED).astype(np.float32)
    scaled = pixels * np.float32(1 / 255) + np.array([-0.1, -0.2, -0.3]).reshape(3, 1, 1)
    fed = scaled if layout == "NCHW" else scaled.transpose(0, 2, 3, 1)
    expected = run(net.main, [fed.astype(np.float32)])
    proof = Proof()
    (found,) = execute(model, {"x": pixels}, proof)
    assert proof.differing == []
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    again = read(model)
    np.testing.assert_allclose(evaluate(again, pixels), expected, rtol=1e-4, atol=1e-6)
    assert again.meta.extra["x.color_space"] == "BGR"


def test_each_channel_has_its_scale() -> None:
    """A list of factors, of which coremltools makes a program that it then refuses."""
    scales = {"red_scale": 0.5, "blue_scale": 2, "bias": (1, 2, 3)}
    x = Var("x", TensorType(FIXED, "float32"))
    meta = ModelMeta(inputs=("x",), outputs=("y",))
    net = RelayModel(IRModule({"main": Function([x], relay.nn.relu(x))}), {}, meta)
    model = written(net, images={"x": scales}, compute_precision="float32")
    pixels = np.random.default_rng(7).integers(0, 256, FIXED).astype(np.float32)
    proof = Proof()
    (found,) = execute(model, {"x": pixels}, proof)
    assert proof.differing == []
    expected = pixels * np.array([0.5, 1, 2]).reshape(3, 1, 1) + np.array([1, 2, 3]).reshape(
        3, 1, 1
    )
    np.testing.assert_array_equal(found, expected)


def test_numbers_of_mxnet_on_an_image(tmp_path: Path) -> None:
    mx = import_mxnet()
    data = mx.sym.Variable("data")
    net = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, no_bias=True, name="c")
    net = mx.sym.softmax(mx.sym.Flatten(mx.sym.Pooling(net, global_pool=True, pool_type="avg")))
    weight = np.random.default_rng(4).normal(size=(4, 3, 3, 3)).astype(np.float32)
    path = serde.export_model(
        net,
        {"c_weight": mx.nd.array(weight)},
        path=tmp_path / "net.mlpackage",
        input_shapes={"data": FIXED},
        compute_precision="float32",
        images={"data": {"scale": 0.02, "red_bias": -2.1, "green_bias": -2.0, "blue_bias": -1.8}},
        class_labels=["a", "b", "c", "d"],
    )
    pixels = np.random.default_rng(5).integers(0, 256, FIXED).astype(np.float32)
    scaled = pixels * np.float32(0.02) + np.array([-2.1, -2.0, -1.8], np.float32).reshape(3, 1, 1)
    (expected,) = run_mxnet(net, {"c_weight": weight}, {"data": scaled})
    model = serde.to_relay(path)
    np.testing.assert_allclose(evaluate(model, pixels), expected, rtol=1e-4, atol=1e-6)
    assert model.meta.labels == ("a", "b", "c", "d")
    assert model.meta.outputs == ("classLabel_probs",)


@pytest.mark.wide
@pytest.mark.parametrize("layout", ["RGB", "GRAYSCALE", "GRAYSCALE_FLOAT16"])
def test_images_come_out_as_coremltools_writes_them(layout: str) -> None:
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import types

    shape = (1, 3 if layout == "RGB" else 1, 8, 8)
    half = "FLOAT16" in layout
    target = "iOS16" if half else "iOS15"
    spec = Builder.TensorSpec(shape=shape, dtype=types.fp16 if half else types.fp32)

    def net() -> Any:
        made = Builder.program(input_specs=[spec], opset_version=getattr(ct.target, target))
        return made(lambda x: Builder.relu(x=x, name="y"))

    precision = "float16" if half else "float32"
    asked = net()
    # As its converters of other frameworks do; convert() leaves programs of MIL alone.
    asked.functions["main"].set_output_types(
        [ct.ImageType(name="y", color_layout=getattr(ct.colorlayout, layout))]
    )
    theirs = convert(asked, precision, target)
    ours = serde.export_model(
        convert(net(), precision, target),
        format="coreml",
        output_images={"y": layout},
        compute_precision=precision,
        minimum_deployment_target=target,
    )
    assert structure(ours) == structure(theirs)


def test_an_image_of_flexible_size_comes_out() -> None:
    x = Var("x", TensorType((1, 3, symbol("h"), symbol("w")), "float32"))
    meta = ModelMeta(inputs=("x",), outputs=("y",))
    net = RelayModel(IRModule({"main": Function([x], relay.nn.relu(x))}), {}, meta)
    (output,) = written(net, images="x", output_images="y").spec.description.output
    assert output.type.imageType.imageSizeRange.heightRange.upperBound == -1


def test_a_symbol_is_flexible_within_bounds() -> None:
    model = written(relay_net((1, 3, symbol("h"), symbol("w") * 2)), ranges={"w": (4, 8, 5)})
    (feature,) = model.spec.description.input
    bounds = [
        (each.lowerBound, each.upperBound)
        for each in feature.type.multiArrayType.shapeRange.sizeRanges
    ]
    assert bounds == [(1, 1), (3, 3), (1, 1024), (8, 16)]
    assert list(feature.type.multiArrayType.shape) == [1, 3, 1, 10]


def test_lengths_of_one_input_bind_those_of_another() -> None:
    x = Var("x", TensorType((symbol("n"), 4), "float32"))
    y = Var("y", TensorType((symbol("n"), 1), "float32"))
    meta = ModelMeta(inputs=("x", "y"), outputs=("sum",))
    net = RelayModel(IRModule({"main": Function([x, y], relay.add(x, y))}), {}, meta)
    shapes = [(2, 4), (1, 4), (7, 4)]
    _, feature = written(net, enumerated_shapes={"x": shapes}).spec.description.input
    sizes = feature.type.multiArrayType.shapeRange.sizeRanges
    assert [(each.lowerBound, each.upperBound) for each in sizes] == [(1, 7), (1, 1)]
    assert list(feature.type.multiArrayType.shape) == [2, 1]
    both = {"x": shapes, "y": [(2, 1), (1, 1)]}
    with pytest.raises(OptionError, match="before iOS18 only one input"):
        written(net, enumerated_shapes=both)
    written(net, enumerated_shapes=both, minimum_deployment_target="iOS18")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no_such_input": ({"images": "data"}, r"no input is called 'data'; there are: x"),
    "no_such_output": ({"output_images": "y"}, r"no output is called 'y'; there are: scores"),
    "channels": ({"images": {"x": "GRAYSCALE"}}, r"GRAYSCALE image is a tensor of \[1, 1, H, W\]"),
    "no_image": ({"output_images": "scores"}, r"RGB image is a tensor of \[1, 3, H, W\], found"),
    "layout": ({"images": {"x": "CMYK"}}, r"expected one of GRAYSCALE, .*, found 'CMYK'"),
    "bias": ({"images": {"x": {"bias": (1, 2)}}}, r"bias: expected 1 or 3 numbers, found 2"),
    "number": ({"images": {"x": {"scale": "much"}}}, r"scale: expected a number, found 'much'"),
    "property": ({"images": {"x": {"gray_bias": 1}}}, r"gray_bias: no such property of a RGB"),
    "scaled_output": ({"output_images": {"scores": {"scale": 2}}}, r"does not scale images"),
    "old_target": (
        {"images": {"x": "GRAYSCALE_FLOAT16"}},
        r"GRAYSCALE_FLOAT16 needs minimum_deployment_target=iOS16",
    ),
    "count": ({"class_labels": ["a", "b"]}, r"2 labels for the 3 scores scores of Tensor"),
    "twice": ({"class_labels": ["a", "b", "a"]}, r"'a' is the label of classes 0 and 2"),
    "mixed": ({"class_labels": ["a", 1, 2]}, r"expected text or integers, found both"),
    "label": ({"class_labels": [1.5, 1, 2]}, r"expected text or integers, found 1.5"),
    "no_labels": ({"mode": "classifier"}, r"class_labels are missing"),
    "regressor": ({"mode": "regressor"}, r"only a NeuralNetwork can be a regressor"),
    "labels_of_regressor": ({"mode": "regressor", "class_labels": LABELS}, r"a regressor has none"),
    "no_such_scores": (
        {"class_labels": LABELS, "predicted_probabilities_output": "y"},
        r"predicted_probabilities_output: no output is called 'y'",
    ),
    "feature_name": (
        {"class_labels": LABELS, "predicted_feature_name": "a b"},
        r"expected letters, digits and _, found 'a b'",
    ),
    "no_such_symbol": ({"ranges": {"n": (1, 2)}}, r"no dynamic dimension is called 'n'; .*: h, w"),
    "range": ({"ranges": {"h": (4, 2)}}, r"expected 1 <= lower <= default <= upper"),
    "default": ({"ranges": {"h": (4, 8, 9)}}, r"expected 1 <= lower <= default <= upper"),
    "no_range": ({"ranges": {"h": 4}}, r"expected \(lower, upper\) or with a default, found 4"),
    "shape": ({"enumerated_shapes": [(1, 4, 8, 8)]}, r"\[1, 4, 8, 8\] is no shape of Tensor"),
    "rank": ({"enumerated_shapes": [(1, 3, 8)]}, r"\[1, 3, 8\] is no shape of Tensor"),
    "same_shape": ({"enumerated_shapes": [FIXED, FIXED]}, r"a shape is given twice"),
    "no_shapes": ({"enumerated_shapes": {"x": []}}, r"x: expected a list of shapes, found \[\]"),
    "both": (
        {"enumerated_shapes": SIZES, "ranges": {"h": (1, 2)}},
        r"ranges: h: its lengths are those of enumerated_shapes of x",
    ),
    "no_such_port": ({"descriptions": {"z": "a"}}, r"no input or output is called 'z'"),
    "no_mode": ({"mode": "oracle"}, r"mode: expected 'classifier' or 'regressor', found 'oracle'"),
    "no_author": ({"author": 1}, r"author: expected text, found 1"),
    "no_text": ({"metadata": {"z": 1}}, r"metadata: expected texts by name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    options, message = WRONG[case]
    with pytest.raises(OptionError, match=message):
        written(relay_net((1, 3, symbol("h"), symbol("w"))), **options)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((symbol("n"), 3, 8, 8), {"images": "x"}, r"RGB image is a tensor of \[1, 3, H, W\]"),
        ((symbol("n"), 3, 8, 8), {"class_labels": LABELS}, r"classifies one at a time"),
    ],
)
def test_a_batch_of_any_length_is_neither_image_nor_classified(
    shape: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        written(relay_net(shape), **options)


def test_integers_are_images_that_are_not_scaled() -> None:
    x = Var("x", TensorType(FIXED, "uint8"))
    meta = ModelMeta(inputs=("x",), outputs=("y",))
    body = relay.cast(x, "float32")
    net = RelayModel(IRModule({"main": Function([x], body)}), {}, meta)
    model = written(net, images="x", minimum_deployment_target="iOS17")
    pixels = np.random.default_rng(6).integers(0, 256, FIXED).astype(np.float32)
    np.testing.assert_array_equal(evaluate(read(model), pixels), pixels)
    with pytest.raises(OptionError, match="scale and bias would be rounded to uint8"):
        written(net, images={"x": {"scale": 0.5}})


def test_one_of_several_outputs_holds_the_scores() -> None:
    x = Var("x", TensorType((1, 3), "float32"))
    body = relay.Tuple([relay.nn.relu(x), relay.nn.softmax(x), relay.exp(x)])
    meta = ModelMeta(inputs=("x",), outputs=("a", "b", "c"))
    net = RelayModel(IRModule({"main": Function([x], body)}), {}, meta)
    with pytest.raises(OptionError, match="must name one of a, b, c"):
        written(net, class_labels=LABELS)
    model = written(net, class_labels=LABELS, predicted_probabilities_output="b")
    check_types(model)
    names = [each.name for each in model.spec.description.output]
    assert names == ["classLabel", "a", "classLabel_probs", "c"]
    again = read(model)
    assert again.meta.outputs == ("a", "classLabel_probs", "c")
    assert get_bridge("coreml").names(model).outputs == again.meta.outputs
    value = np.array([[1, 2, 3]], np.float32)
    _, scores, _ = evaluate(again, value)
    np.testing.assert_allclose(scores, run(net.main, [value])[1], rtol=1e-3)
    # Written once more, the same output holds the scores.
    assert [each.name for each in written(again).spec.description.output] == names


@pytest.mark.parametrize("softmax", [True, False])
def test_scores_without_a_softmax_are_told_of(softmax: bool) -> None:
    report = Report("test")
    written(relay_net(FIXED, softmax=softmax), report, class_labels=LABELS)
    told = [note for note in report.notes if "come from no softmax" in note]
    assert len(told) == (0 if softmax else 1)


def test_labels_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "synset.txt"
    path.write_bytes("\ufefftench, Tinca\r\nBäcker\nn02 shark\n\n".encode())
    model = written(relay_net(FIXED), class_labels=path)
    assert read(model).meta.labels == ("tench, Tinca", "Bäcker", "n02 shark")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"tench\nB\xe4cker\nshark\n", r"synset.txt: line 2 is not UTF-8"),
        (b"tench\n\nshark\n", r"synset.txt: line 2 is empty"),
        (b"\n", r"expected a label on each line, found none"),
        (None, r"synset.txt: No such file"),
    ],
)
def test_files_that_hold_no_labels(tmp_path: Path, data: bytes | None, message: str) -> None:
    path = tmp_path / "synset.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(OptionError, match=message):
        CoremlExportOptions(class_labels=path)


def test_a_length_that_other_ends_of_ranges_make_negative(tmp_path: Path) -> None:
    """With 1 to 1024 rows, 8 less half of them is from -504 to 8: a length is from 0 on."""
    rows = relay.symbol("rows")
    x = relay.var("x", shape=("batch", 8 - rows // 2))
    module = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    path = serde.from_relay(
        module, format="coreml", path=tmp_path / "m.mlpackage", minimum_deployment_target="iOS18"
    )
    shape = tools().utils.load_spec(str(path)).description.input[0].type.multiArrayType
    ends = [(each.lowerBound, each.upperBound) for each in shape.shapeRange.sizeRanges]
    assert ends == [(1, 1024), (0, 8)]
    assert all(low <= length <= high for length, (low, high) in zip(shape.shape, ends, strict=True))


def test_a_length_that_only_mixed_ends_of_ranges_stretch(tmp_path: Path) -> None:
    """Two lengths of 1 to 1024 each are apart by 1023, and at both ends by nothing."""
    x = relay.var("x", shape=(relay.symbol("a") - relay.symbol("b") + 2, 3))
    module = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    path = serde.from_relay(
        module, format="coreml", path=tmp_path / "m.mlmodel", minimum_deployment_target="iOS14"
    )
    shape = tools().utils.load_spec(str(path)).description.input[0].type.multiArrayType
    assert list(shape.shape) == [2, 3]
    ends = [(each.lowerBound, each.upperBound) for each in shape.shapeRange.sizeRanges]
    assert ends == [(0, 1025), (3, 3)]
