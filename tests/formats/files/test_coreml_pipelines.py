"""Pipelines of Core ML models: chains of networks, and detectors with Apple's suppression.

coremltools makes them. What stays of boxes is spelled out in NumPy, by what Apple's message of the
suppression says: boxes by centre and size, the best first, those below the threshold left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support.coreml_layers import evaluate
from support.coreml_models import small_network, tools

import serde
from serde.core.report import Report
from serde.core.weights import FileWeight
from serde.coreml.reader import load
from serde.errors import FormatError, OptionError, UnsupportedModelError

BOXES, CLASSES = 24, 3
IOU, LEAST = 0.3, 0.4


def program(build: Any, *shapes: tuple[int, ...], **options: Any) -> Any:
    ct = tools()
    from coremltools.converters.mil import Builder

    names = ", ".join(f"x{i}" for i in range(len(shapes)))
    scope: dict[str, Any] = {"build": build, "mb": Builder}
    exec(f"def program({names}): return build(mb, {names})", scope)
    specs = [Builder.TensorSpec(shape=shape) for shape in shapes]
    made = Builder.program(input_specs=specs, opset_version=ct.target.iOS15)(scope["program"])
    return ct.convert(
        made,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        skip_model_load=True,
        **options,
    )


DRAWS = np.random.default_rng(5)
CENTRES = DRAWS.uniform(0.2, 0.8, (BOXES, 2))
SPOTS = np.concatenate([CENTRES, DRAWS.uniform(0.1, 0.5, (BOXES, 2))], 1).astype(np.float32)
MARKS = DRAWS.uniform(0, 1, (BOXES, CLASSES)).astype(np.float32)


def detector() -> Any:
    """A program that gives the same boxes for each image, moved by its first pixel."""
    ct = tools()

    def net(mb: Any, x: Any) -> Any:
        head = mb.slice_by_size(x=x, begin=[0, 0, 0, 0], size=[1, 1, 1, 1])
        moved = mb.reshape(x=head, shape=[1, 1])
        return mb.add(x=moved, y=MARKS, name="marks"), mb.add(x=moved, y=SPOTS, name="boxes")

    image = ct.ImageType(name="x0", shape=(1, 3, 4, 4), scale=1 / 1024)
    return program(net, (1, 3, 4, 4), inputs=[image])


def suppression(described: Any, per_class: bool, rows: tuple[int, int] | None) -> Any:
    """Apple's suppression of what a detector gives, its outputs bounded to some rows."""
    tools()
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model(specificationVersion=6)
    for name, width in (("confidence", CLASSES), ("coordinates", 4)):
        feature = spec.description.output.add(name=name)
        array = feature.type.multiArrayType
        array.dataType = 65568
        if rows is not None and rows[0] == rows[1]:
            array.shape.extend([rows[0], width])
            continue
        for lower, upper in (rows or (0, -1), (width, width)):
            array.shapeRange.sizeRanges.add(lowerBound=lower, upperBound=upper)
    spec.description.input.extend(described.description.output)
    own = spec.nonMaximumSuppression
    own.confidenceInputFeatureName, own.coordinatesInputFeatureName = "marks", "boxes"
    own.confidenceOutputFeatureName, own.coordinatesOutputFeatureName = "confidence", "coordinates"
    own.iouThresholdInputFeatureName = "iouThreshold"
    own.confidenceThresholdInputFeatureName = "confidenceThreshold"
    own.iouThreshold, own.confidenceThreshold = IOU, LEAST
    own.pickTop.perClass = per_class
    own.stringClassLabels.vector.extend(["cat", "dog", "bird"])
    return spec


def detection(path: Path, *, per_class: bool = True, rows: tuple[int, int] | None = None) -> Path:
    """A package as ultralytics exports one: a program, its suppression and its thresholds."""
    ct = tools()
    model = detector()
    spec = model.get_spec()
    last = ct.models.MLModel(suppression(spec, per_class, rows), skip_model_load=True)
    array, double = ct.models.datatypes.Array, ct.models.datatypes.Double
    pipeline = ct.models.pipeline.Pipeline(
        input_features=[
            ("x0", array(3, 4, 4)),
            ("iouThreshold", double()),
            ("confidenceThreshold", double()),
        ],
        output_features=["confidence", "coordinates"],
    )
    pipeline.add_model(model)
    pipeline.add_model(last)
    pipeline.spec.description.input[0].ParseFromString(
        spec.description.input[0].SerializeToString()
    )
    for place in range(2):
        given = last.get_spec().description.output[place]
        pipeline.spec.description.output[place].ParseFromString(given.SerializeToString())
    pipeline.spec.specificationVersion = 6
    whole = ct.models.MLModel(pipeline.spec, weights_dir=model.weights_dir, skip_model_load=True)
    whole.save(str(path))
    return path


def overlap(one: np.ndarray, two: np.ndarray) -> float:
    low = np.maximum(one[:2] - one[2:] / 2, two[:2] - two[2:] / 2)
    high = np.minimum(one[:2] + one[2:] / 2, two[:2] + two[2:] / 2)
    shared = np.prod(np.maximum(high - low, 0))
    return float(shared / (one[2] * one[3] + two[2] * two[3] - shared))


def kept(
    marks: np.ndarray, boxes: np.ndarray, iou: float, least: float, per_class: bool
) -> tuple[np.ndarray, np.ndarray]:
    score, kind = marks.max(1), marks.argmax(1)
    stay: list[int] = []
    for box in np.argsort(-score, kind="stable"):
        rivals = [each for each in stay if not per_class or kind[each] == kind[box]]
        alone = all(overlap(boxes[box], boxes[each]) <= iou for each in rivals)
        if score[box] >= least and alone:
            stay.append(int(box))
    return marks[stay], boxes[stay]


def picture() -> dict[str, np.ndarray]:
    pixels = np.random.default_rng(1).integers(0, 256, (1, 3, 4, 4))
    return {"x0": pixels.astype(np.float32)}


def thresholds(iou: float, least: float) -> dict[str, np.ndarray]:
    named = {"iouThreshold": iou, "confidenceThreshold": least}
    return {name: np.array([value], np.float32) for name, value in named.items()}


@pytest.mark.wide
@pytest.mark.parametrize("per_class", [True, False])
@pytest.mark.parametrize(("iou", "least"), [(0.3, 0.4), (0.05, 0.7), (1.0, 0.0), (0.3, 9.0)])
def test_a_detector(per_class: bool, iou: float, least: float, tmp_path: Path) -> None:
    source = detection(tmp_path / "net.mlpackage", per_class=per_class)
    report = Report()
    model = serde.to_relay(source, report=report)
    assert model.meta.inputs == ("x0", "iouThreshold", "confidenceThreshold")
    assert model.meta.outputs == ("confidence", "coordinates")
    assert model.meta.extra["confidence.labels"] == "cat\ndog\nbird"
    assert any("Core ML takes 0.4 where it is left out" in note for note in report.notes)
    given = picture() | thresholds(iou, least)
    shift = given["x0"][0, 0, 0, 0] / np.float32(1024)
    wanted = kept(MARKS + shift, SPOTS + shift, iou, least, per_class)
    path = serde.export_model(source, format="onnx", path=tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(path)
    for found in (evaluate(model, given), session.run(None, given)):
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_thresholds_that_are_left_out(tmp_path: Path) -> None:
    source = detection(tmp_path / "net.mlpackage")
    report = Report()
    model = serde.to_relay(source, optional_inputs="defaults", report=report)
    assert model.meta.inputs == ("x0",)
    assert "iouThreshold is no input: it is always 0.3" in report.notes
    given = picture()
    shift = given["x0"][0, 0, 0, 0] / np.float32(1024)
    wanted = kept(MARKS + shift, SPOTS + shift, IOU, LEAST, True)
    assert 1 < len(wanted[0]) < BOXES
    for ours, theirs in zip(evaluate(model, given), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rows", [(3, 3), (30, 30), (0, 4), (2, 5), (12, 20)])
@pytest.mark.parametrize("least", [0.4, 0.99])
def test_a_detector_whose_rows_are_bounded(
    rows: tuple[int, int], least: float, tmp_path: Path
) -> None:
    """Zeros stand behind the boxes that there are."""
    source = detection(tmp_path / "net.mlpackage", rows=rows)
    model = serde.to_relay(source)
    given = picture() | thresholds(IOU, least)
    shift = given["x0"][0, 0, 0, 0] / np.float32(1024)
    wanted = kept(MARKS + shift, SPOTS + shift, IOU, least, True)
    path = serde.export_model(source, format="onnx", path=tmp_path / "net.onnx")
    for found in (evaluate(model, given), onnxruntime.InferenceSession(path).run(None, given)):
        for ours, theirs in zip(found, wanted, strict=True):
            best = theirs[: rows[1]]
            short = max(rows[0] - len(best), 0)
            padded = np.pad(best, [(0, short), (0, 0)])
            np.testing.assert_allclose(ours, padded, rtol=0, atol=1e-6)


def test_a_detector_is_inspected_without_its_weights(tmp_path: Path) -> None:
    source = detection(tmp_path / "net.mlpackage")
    from serde.bridge.formats import get_bridge

    bridge = get_bridge("coreml")
    facts = bridge.summary(load(source)).facts
    assert facts["kind"] == "pipeline"
    assert facts["models"] == "mlProgram, nonMaximumSuppression"
    assert "slice_by_size" in bridge.operators(load(source))


def test_one_model_of_a_pipeline(tmp_path: Path) -> None:
    source = detection(tmp_path / "net.mlpackage")
    model = serde.to_relay(source, pipeline_model="0")
    assert model.meta.outputs == ("marks", "boxes")
    with pytest.raises(OptionError, match="1 is a nonMaximumSuppression"):
        serde.to_relay(source, pipeline_model="1")
    with pytest.raises(OptionError, match=r"there are 0 \(mlProgram\), 1 \(nonMaximum"):
        serde.to_relay(source, pipeline_model="7")
    with pytest.raises(OptionError, match="neuralNetwork is no pipeline"):
        serde.to_relay(small_network(), pipeline_model="0")


def weights(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((16, 16)).astype(np.float32) / 4


@pytest.mark.wide
def test_a_chain_of_programs(tmp_path: Path) -> None:
    """Coremltools keeps the weights of each in a file of its own; names occur in both."""
    ct = tools()

    def net(seed: int, source: str, target: str) -> Any:
        def build(mb: Any, x: Any) -> Any:
            return mb.relu(x=mb.linear(x=x, weight=weights(seed), name="dense"), name=target)

        made = program(build, (2, 16))
        spec = made.get_spec()
        ct.utils.rename_feature(spec, "x0", source)
        return ct.models.MLModel(spec, weights_dir=made.weights_dir, skip_model_load=True)

    models = [net(1, "x", "a"), net(2, "a", "b"), net(3, "b", "c")]
    whole = ct.utils.make_pipeline(*models)
    whole.save(str(tmp_path / "net.mlpackage"))
    model = serde.to_relay(tmp_path / "net.mlpackage")
    assert (model.meta.inputs, model.meta.outputs) == (("x",), ("c",))
    assert len(model.params) == 6  # coremltools adds biases of zeros.
    x = np.random.default_rng(4).standard_normal((2, 16)).astype(np.float32)
    wanted = x
    for seed in (1, 2, 3):
        wanted = np.maximum(wanted @ weights(seed).T, 0)
    (found,) = evaluate(model, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_chain_of_networks(tmp_path: Path) -> None:
    """Weights stay where they are in the file, of networks in pipelines in pipelines, too."""
    ct = tools()
    wide = weights(1)[:, :, None] * np.ones(4, np.float32)
    kernel = np.ascontiguousarray(wide.reshape(16, 64))

    def network(source: str, target: str, weight: np.ndarray) -> Any:
        rows, columns = weight.shape
        array = ct.models.datatypes.Array
        features = [(source, array(columns))], [(target, array(rows))]
        net = ct.models.neural_network.NeuralNetworkBuilder(
            *features, disable_rank5_shape_mapping=True
        )
        net.add_inner_product("fc", weight, None, columns, rows, False, source, target)
        return net.spec

    from coremltools.proto import Model_pb2

    inner = Model_pb2.Model(specificationVersion=4)
    inner.pipeline.models.extend([network("x", "a", kernel), network("a", "b", kernel.T)])
    inner.description.input.extend(inner.pipeline.models[0].description.input)
    inner.description.output.extend(inner.pipeline.models[1].description.output)
    outer = Model_pb2.Model(specificationVersion=4)
    outer.pipeline.models.extend([inner, network("b", "c", kernel)])
    outer.description.input.extend(inner.description.input)
    outer.description.output.extend(outer.pipeline.models[1].description.output)
    path = tmp_path / "net.mlmodel"
    path.write_bytes(outer.SerializeToString())
    model = serde.to_relay(path)
    assert [type(each) for each in model.params.values()] == [FileWeight] * 3
    assert len(load(path).spec.SerializeToString()) < 2048
    x = np.random.default_rng(4).standard_normal(64).astype(np.float32)
    (found,) = evaluate(model, {"x": x})
    np.testing.assert_allclose(found, kernel @ (kernel.T @ (kernel @ x)), rtol=1e-4, atol=1e-5)


def test_a_classifier_at_the_end_of_a_pipeline() -> None:
    ct = tools()
    from coremltools.proto import Model_pb2

    def network(source: str, target: str, weight: np.ndarray, mode: str | None = None) -> Any:
        rows, columns = weight.shape
        array = ct.models.datatypes.Array
        features = [(source, array(columns))], [(target, array(rows))]
        net = ct.models.neural_network.NeuralNetworkBuilder(
            *features, mode=mode, disable_rank5_shape_mapping=True
        )
        net.add_inner_product("fc", weight, None, columns, rows, False, source, target)
        if mode is not None:
            net.set_class_labels(["cat", "dog", "bird"], prediction_blob=target)
        return net.spec

    one = network("x", "a", weights(1))
    two = network("a", "scores", weights(2)[:3], "classifier")
    spec = Model_pb2.Model(specificationVersion=4)
    spec.pipelineClassifier.pipeline.models.extend([one, two])
    spec.description.CopyFrom(two.description)
    spec.description.input[0].CopyFrom(one.description.input[0])
    model = serde.to_relay(spec)
    assert (model.meta.inputs, model.meta.outputs) == (("x",), ("scores",))
    assert model.meta.labels == ("cat", "dog", "bird")
    x = np.random.default_rng(4).standard_normal(16).astype(np.float32)
    (found,) = evaluate(model, {"x": x})
    np.testing.assert_allclose(found, weights(2)[:3] @ (weights(1) @ x), rtol=1e-4, atol=1e-5)


def test_models_of_other_kinds_are_refused_by_name(tmp_path: Path) -> None:
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model(specificationVersion=4)
    spec.pipeline.models.extend([small_network().get_spec()])
    spec.pipeline.models.add().glmRegressor.SetInParent()
    spec.pipeline.models.add().imputer.SetInParent()
    with pytest.raises(UnsupportedModelError, match=r"glmRegressor .*\n.*imputer") as caught:
        serde.to_relay(spec)
    assert "use pipeline_model for one that is read alone: 0 (neuralNetwork)" in str(caught.value)
    assert serde.to_relay(spec, pipeline_model="0").meta.outputs == ("y",)


def test_what_a_pipeline_does_not_hold_is_told() -> None:
    from coremltools.proto import Model_pb2

    spec = Model_pb2.Model(specificationVersion=4)
    spec.pipeline.models.extend([small_network().get_spec()])
    spec.description.input.extend(spec.pipeline.models[0].description.input)
    spec.description.output.add(name="other").type.multiArrayType.SetInParent()
    with pytest.raises(FormatError, match="output 'other' is given by no model"):
        serde.to_relay(spec)
    del spec.description.input[:]
    with pytest.raises(FormatError, match=r"models\[0\] takes 'x', which nothing gives"):
        serde.to_relay(spec)
