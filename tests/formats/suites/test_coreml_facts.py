"""Descriptions, metadata and names of Core ML models, of functions and of networks, both ways."""

from __future__ import annotations

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
from support.coreml_models import package, tools
from support.coreml_structure import structure

import serde
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.command.inspection import inspect_model
from serde.coreml.interface.description import Feature
from serde.coreml.interface.planning import plan
from serde.coreml.model import CoremlModel
from serde.coreml.options import CoremlExportOptions
from serde.coreml.reader import load
from serde.coreml.versions import TARGETS
from serde.errors import OptionError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

FACTS: dict[str, Any] = {
    "author": "A. Baker",
    "license": "CC0",
    "model_version": "2.1",
    "short_description": "Tells fish apart.",
    "descriptions": {"x": "The photo.", "classLabel": "The fish."},
    "metadata": {"trained": "2019"},
}


def test_facts_as_coremltools_reads_them() -> None:
    net = relay_net((1, 3, symbol("h"), 8))
    model = written(net, images="x", class_labels=LABELS, ranges={"h": (8, 16)}, **FACTS)
    made = get_bridge("coreml").complete(model)
    assert (made.author, made.license, made.version) == ("A. Baker", "CC0", "2.1")
    assert made.short_description == "Tells fish apart."
    assert made.input_description["x"] == "The photo."
    assert made.output_description["classLabel"] == "The fish."
    assert made.user_defined_metadata["trained"] == "2019"


def facts_of(spec: Any) -> str:
    copy = type(spec.description)()
    copy.CopyFrom(spec.description)
    del copy.metadata.userDefined["com.github.serde.source"]
    copy.metadata.userDefined.pop("com.github.serde.names", None)
    return str(copy)


@pytest.mark.parametrize(
    "options",
    [
        {"images": "x", "class_labels": LABELS, "ranges": {"h": (8, 16, 9)}, **FACTS},
        {"images": {"x": SCALED}, "class_labels": (1, 2, 3), "enumerated_shapes": SIZES[:1]},
        {"enumerated_shapes": [FIXED, (1, 3, 9, 8)], "predicted_feature_name": "fish"},
        {"ranges": {"h": (8, 16, 9)}, "class_labels": LABELS, "predicted_feature_name": "fish"},
    ],
)
def test_a_model_that_is_read_is_written_with_all_of_it(options: dict[str, Any]) -> None:
    first = written(relay_net((1, 3, symbol("h"), symbol("w"))), **options)
    again = read(first)
    assert again.meta.labels == tuple(map(str, options.get("class_labels", ())))
    second = written(again)
    assert facts_of(second.spec) == facts_of(first.spec)
    third = written(read(second))
    assert structure_of(third) == structure_of(second)


def structure_of(model: CoremlModel) -> dict[str, Any]:
    return structure(get_bridge("coreml").complete(model))


def test_what_is_asked_counts_before_what_the_source_says() -> None:
    first = written(relay_net(FIXED), images="x", class_labels=LABELS, **FACTS)
    second = written(
        read(first),
        images={"x": "BGR"},
        class_labels=["a", "b", "c"],
        author="B",
        descriptions={"x": "Other."},
        metadata={"trained": "2020"},
    )
    again = read(second).meta
    assert again.labels == ("a", "b", "c")
    assert again.extra["x.color_space"] == "BGR"
    assert again.extra["author"] == "B"
    assert again.extra["x.description"] == "Other."
    assert again.extra["metadata.trained"] == "2020"
    assert again.extra["license"] == "CC0"


def test_facts_of_relay_files_are_kept(tmp_path: Path) -> None:
    first = written(relay_net((1, 3, symbol("h"), 8)), class_labels=LABELS, **FACTS)
    path = get_bridge("coreml").save(first, tmp_path / "a.mlpackage", CoremlExportOptions())
    serde.convert(path, tmp_path / "a.relay")
    serde.convert(tmp_path / "a.relay", tmp_path / "b.mlpackage")
    assert facts_of(load(tmp_path / "b.mlpackage").spec) == facts_of(first.spec)


def test_names_that_were_changed_are_told_of() -> None:
    x = Var("data:0", TensorType((1, 3), "float32"))
    meta = ModelMeta(inputs=("data:0",), outputs=("soft/out",))
    net = RelayModel(IRModule({"main": Function([x], relay.nn.softmax(x))}), {}, meta)
    model = written(net, descriptions={"data:0": "Given.", "soft/out": "Made."})
    description = model.spec.description
    told = dict(
        pair.split("=", 1)
        for pair in description.metadata.userDefined["com.github.serde.names"].split(";")
    )
    (input_,), (output,) = description.input, description.output
    assert (told[input_.name], told[output.name]) == ("data:0", "soft/out")
    assert (input_.shortDescription, output.shortDescription) == ("Given.", "Made.")
    assert written(net).spec == written(net).spec


@pytest.mark.wide
def test_a_function_of_several_is_read_with_its_own_description(tmp_path: Path) -> None:
    ct = tools()
    paths = {}
    for name, layout in (("fine", "RGB"), ("rough", "BGR")):
        net = program(FIXED, target="iOS18")
        made = convert(net, "float32", "iOS18", **image(layout=layout, scale=0.5))
        paths[name] = package(made, tmp_path / f"{name}.mlpackage")
    listed = ct.utils.MultiFunctionDescriptor()
    for name, path in paths.items():
        listed.add_function(str(path), "main", name)
    listed.default_function_name = "fine"
    together = tmp_path / "both.mlpackage"
    ct.utils.save_multifunction(listed, str(together))
    for function, layout in (("fine", "RGB"), ("rough", "BGR")):
        model = serde.to_relay(together, function=function)
        assert model.meta.extra["x.color_space"] == layout
    assert serde.to_relay(together).meta.extra["x.color_space"] == "RGB"
    with pytest.raises(OptionError, match="no function is called 'main'; functions: fine, rough"):
        serde.to_relay(together, function="main")
    found = inspect_model(together)
    assert found.summary.facts["functions"] == "fine, rough"
    assert found.summary.facts["input x"] == "RGB image; 8x8"


def network_of(classifier: bool) -> Any:
    """A NeuralNetwork of coremltools with an image, or with labels too."""
    ct = tools()
    from coremltools.models import datatypes

    mode = "classifier" if classifier else None
    features = [("x", datatypes.Array(3, 8, 8))], [("scores", datatypes.Array(3))]
    builder = ct.models.neural_network.NeuralNetworkBuilder(*features, mode=mode)
    builder.add_pooling("pool", 1, 1, 1, 1, "AVERAGE", "VALID", "x", "means", is_global=True)
    builder.add_flatten("flatten", 0, "means", "flat")
    builder.add_softmax("softmax", "flat", "scores")
    if classifier:
        builder.set_class_labels(LABELS, prediction_blob="scores")
    builder.set_pre_processing_parameters(
        image_input_names=["x"], is_bgr=True, red_bias=-2.1, green_bias=-2, blue_bias=-1.8,
        image_scale=0.5,
    )  # fmt: skip
    return builder.spec


@pytest.mark.parametrize("classifier", [False, True])
def test_a_network_is_described_as_coremltools_does(classifier: bool) -> None:
    theirs = network_of(classifier)
    asked = {"color_layout": "BGR", "scale": 0.5, "bias": (-1.8, -2, -2.1)}
    labels = LABELS if classifier else None
    options = CoremlExportOptions(images={"x": asked}, class_labels=labels)
    interface = plan(relay_net(FIXED), options, TARGETS["iOS14"])
    x = Feature("x", "x", TensorType(FIXED, "float32"))
    scores = Feature("scores", "scores", TensorType((1, 3), "float32"))
    ours = type(theirs)()
    interface.fill(ours.description, [x], [scores], by_label="scores")
    network = ours.neuralNetworkClassifier if classifier else ours.neuralNetwork
    interface.prepare(network, [x])
    expected = theirs.neuralNetworkClassifier if classifier else theirs.neuralNetwork
    assert list(network.preprocessing) == list(expected.preprocessing)
    assert ours.description.input == theirs.description.input
    if classifier:
        assert {each.name: each.type for each in ours.description.output} == {
            each.name: each.type for each in theirs.description.output
        }
        names = ours.description.predictedFeatureName, ours.description.predictedProbabilitiesName
        assert names == ("classLabel", "scores")


def test_a_network_has_one_scale() -> None:
    options = CoremlExportOptions(images={"x": {"red_scale": 2}})
    interface = plan(relay_net(FIXED), options, TARGETS["iOS14"])
    x = Feature("x", "x", TensorType(FIXED, "float32"))
    with pytest.raises(OptionError, match="a NeuralNetwork scales all channels alike"):
        interface.prepare(network_of(False).neuralNetwork, [x])


@pytest.mark.parametrize("target", ["iOS15", "iOS18"])
def test_a_network_becomes_a_program_with_its_image_and_labels(target: str) -> None:
    ct = tools()
    network = ct.models.MLModel(network_of(True), skip_model_load=True)
    made = serde.export_model(
        network, format="coreml", minimum_deployment_target=target, compute_precision="float32"
    )
    again = serde.to_relay(made)
    assert again.meta.labels == tuple(LABELS)
    assert again.meta.extra["x.color_space"] == "BGR"
    pixels = np.random.default_rng(8).integers(0, 256, FIXED).astype(np.float32)
    expected = evaluate(serde.to_relay(network), pixels)
    np.testing.assert_allclose(evaluate(again, pixels), expected, rtol=1e-5, atol=1e-7)
