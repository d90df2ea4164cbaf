"""Lengths of dynamic dimensions at which models are checked: declared, usual, or searched for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.checking.inputs import InputSets
from serde.checking.sizes import declared_sizes, resolve_dims
from serde.core.report import Report
from serde.engine.base import Engine
from serde.errors import CheckError, OptionError
from serde.relay.ir.expr import Expr, Var


def model_of(body: Expr, *params: Var, facts: Mapping[str, str] | None = None) -> Any:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, body)))
    return relay.RelayModel(mod, {}, relay.ModelMeta(outputs=("out",), extra=facts or {}))


def open_model(*shape: Any, facts: Mapping[str, str] | None = None) -> Any:
    x = relay.var("x", shape=shape)
    return model_of(relay.copy(x), x, facts=facts)


class Picky(Engine):
    """An engine that runs at some shapes only, and keeps those that it was asked for."""

    def __init__(self, runs: Any) -> None:
        self.name, self.inputs, self.outputs = "picky", {}, ("out",)
        self.asked: list[tuple[int, ...]] = []
        self._runs = runs

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        shape = inputs["x"].shape
        self.asked.append(shape)
        if not self._runs(shape):
            raise ValueError(f"no {shape}")
        return [inputs["x"]]


def shapes_of(model: Any, accepts: Any, **options: Any) -> tuple[list[tuple[int, ...]], Report]:
    report, engine = Report(), Picky(accepts)
    sets = InputSets(model, engine, engine, report=report, **options)
    return [inputs["x"].shape for inputs in sets], report


def sizes(model: Any, dims: Mapping[str, int] | None = None) -> list[tuple[int, ...]]:
    return [tuple(each.values()) for each in declared_sizes(model, dims)]


# Declared sizes.


def test_a_range_is_checked_at_its_default_and_ends() -> None:
    assert sizes(open_model(1, 3, "H", 8, facts={"H.range": "224:512:256"})) == [
        (256,), (224,), (512,),
    ]  # fmt: skip


def test_two_ranges_are_checked_at_all_corners() -> None:
    facts = {"H.range": "10:20:15", "W.range": "30:40:30"}
    assert sizes(open_model(1, 3, "H", "W", facts=facts)) == [
        (15, 30), (10, 30), (20, 40), (10, 40), (20, 30),
    ]  # fmt: skip


def test_many_ranges_are_checked_at_least_and_greatest() -> None:
    names = "ABCDE"
    facts = {f"{name}.range": "2:4:3" for name in names}
    assert sizes(open_model(*names, facts=facts)) == [(3,) * 5, (2,) * 5, (4,) * 5]


def test_a_range_without_an_end_is_checked_at_its_default_and_least() -> None:
    assert sizes(open_model("N", 3, facts={"N.range": "1:-1:5"})) == [(5,), (1,)]


def test_each_enumerated_shape_is_checked() -> None:
    model = open_model("N", 3, "H", "W", facts={"x.shapes": "1,3,64,48;1,3,32,32;2,3,64,48"})
    assert sizes(model) == [(1, 64, 48), (1, 32, 32), (2, 64, 48)]


def test_a_dimension_beside_a_range_has_its_usual_length() -> None:
    assert sizes(open_model("N", "T", facts={"T.range": "5:7:5"})) == [(2, 5), (2, 7)]


def test_a_length_that_is_given_does_not_change() -> None:
    facts = {"H.range": "10:20:15", "W.range": "30:40:35"}
    model = open_model("H", "W", facts=facts)
    assert sizes(model, {"H": 12}) == [(12, 35), (12, 30), (12, 40)]


def test_bounds_of_a_trace_are_no_sizes_that_are_asked_for() -> None:
    assert sizes(open_model("N", 3, facts={"N.range": "1:63:0"})) == []


def test_a_size_beyond_bearing_is_left_out() -> None:
    assert sizes(open_model("N", 3, facts={"N.range": "1:2000000000:1"})) == [(1,)]


def test_nothing_is_declared() -> None:
    assert sizes(open_model("N", 3, facts={"N.range": "wide", "x.shapes": "?"})) == []


def test_all_declared_sizes_are_noted() -> None:
    model = open_model("H", facts={"H.range": "4:8:6"})
    shapes, report = shapes_of(model, lambda shape: True, runs=2)
    assert shapes == [(6,), (6,), (4,), (8,)]
    assert report.notes == ["dynamic dimensions were checked at H=6; H=4; H=8"]


def test_a_declared_size_at_which_the_source_fails_is_told() -> None:
    model = open_model("H", facts={"H.range": "1:8:6"})
    shapes, report = shapes_of(model, lambda shape: shape[0] > 1)
    assert shapes == [(6,), (8,)]
    assert report.notes == [
        "the source does not run at H=1, which is declared: picky failed: ValueError: no (1,)",
        "dynamic dimensions were checked at H=6; H=8",
    ]


def test_no_declared_size_runs() -> None:
    model = open_model("H", facts={"H.range": "1:8:6"})
    with pytest.raises(CheckError, match="runs at no size that is declared: picky failed"):
        shapes_of(model, lambda shape: False)


# Usual sizes, and others.


def test_a_net_of_one_size_is_checked_at_that() -> None:
    model = open_model("N", 3, "H", "W")
    shapes, report = shapes_of(model, lambda shape: shape[2:] == (224, 224), runs=2)
    assert shapes == [(2, 3, 224, 224)] * 2
    assert report.notes == [
        "dynamic dimensions were checked at N=2, H=224, W=224 "
        "(the source does not run at N=2, H=64, W=64)"
    ]


def test_a_net_with_a_least_size_is_checked_above_it() -> None:
    shapes, _ = shapes_of(open_model(1, 3, "H", "W"), lambda shape: shape[2] > 75)
    assert shapes == [(1, 3, 224, 224)]


def test_a_net_for_single_images_is_checked_with_one() -> None:
    shapes, _ = shapes_of(open_model("N", 3, "H", "W"), lambda shape: shape[0] == 1)
    assert shapes == [(1, 3, 64, 64)]


def test_dimensions_without_names_are_searched_too() -> None:
    shapes, report = shapes_of(open_model("?", "?"), lambda shape: shape[1] == 512)
    assert shapes == [(2, 512)]
    assert report.notes[0].startswith("dynamic dimensions were checked at x[0]=2, x[1]=512 ")


def test_a_dimension_without_a_name_may_be_given_a_length() -> None:
    model = open_model("?", 3, "?")
    assert resolve_dims(model, {"x[2]": 7}) == {"x[0]": 2, "x[2]": 7}
    shapes, _ = shapes_of(model, lambda shape: True, dims={"x[2]": 7})
    assert shapes == [(2, 3, 7)]


def test_lengths_that_are_given_are_not_searched() -> None:
    with pytest.raises(CheckError, match=r"tried at N=2, T=5; N=1, T=5; check_dim"):
        shapes_of(open_model("N", "T"), lambda shape: False, dims={"T": 5})
    with pytest.raises(CheckError, match=r"^picky failed: ValueError: no \(3, 5\)$"):
        shapes_of(open_model("N", "T"), lambda shape: False, dims={"N": 3, "T": 5})


def test_the_source_runs_once_for_each_set() -> None:
    engine = Picky(lambda shape: True)
    sets = InputSets(open_model("N"), engine, engine, report=Report())
    for inputs in sets:
        sets.reference.run(inputs)
    assert engine.asked == [(2,)]


def test_sizes_whose_types_agree_are_tried_first() -> None:
    """A dense layer behind a flattened image tells its size: nothing else is run."""
    x, w = relay.var("x", shape=("N", 2, "H", "W")), relay.var("w", shape=(5, 2 * 28 * 28))
    flat = relay.nn.batch_flatten(relay.nn.max_pool2d(x, pool_size=(8, 8), strides=(8, 8)))
    model = model_of(relay.nn.dense(flat, w), x, w)
    model = model.evolve(params={"w": relay.Constant(np.zeros((5, 2 * 28 * 28), "f")).data})
    engine = Picky(lambda shape: shape[2] == 224)
    list(InputSets(model, engine, engine, report=Report()))
    assert engine.asked == [(2, 2, 64, 64), (2, 2, 224, 224)]


# Through the public functions.


def written(tmp_path: Path, *shape: Any) -> Path:
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3])
    graph = helper.make_graph([node], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.wide
@pytest.mark.parametrize(
    ("options", "checked"),
    [
        (
            {"ranges": {"H": (24, 48), "W": (32, 64, 40)}},
            "H=24, W=40; H=24, W=32; H=48, W=64; H=24, W=64; H=48, W=32",
        ),
        ({"enumerated_shapes": {"x": [(1, 3, 24, 24), (1, 3, 40, 32)]}}, "H=24, W=24; H=40, W=32"),
        ({}, "H=64, W=64"),
    ],
)
def test_a_core_ml_model_is_checked_at_what_it_declares(
    tmp_path: Path, options: Mapping[str, Any], checked: str
) -> None:
    pytest.importorskip("coremltools")
    source = written(tmp_path, 1, 3, "H", "W")
    report = serde.convert(
        source, tmp_path / "m.mlpackage", check=True, compute_precision="float32", **options
    )
    assert report.passed
    assert f"dynamic dimensions were checked at {checked}" in report.notes


def test_a_source_that_declares_sizes_is_checked_at_them(tmp_path: Path) -> None:
    pytest.importorskip("coremltools")
    source = written(tmp_path, 1, 3, "H", 32)
    package = tmp_path / "m.mlpackage"
    serde.convert(source, package, compute_precision="float32", ranges={"H": (24, 48)})
    report = serde.convert(package, tmp_path / "o.onnx", check=True)
    assert [note for note in report.notes if "checked at" in note] == [
        "dynamic dimensions were checked at x_2=24; x_2=48"
    ]


@pytest.mark.wide
def test_a_net_is_searched_through_the_api(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no dynamic dimension is called Q"):
        serde.check(written(tmp_path, "N", 3, 8, 8), tmp_path / "m.onnx", dims={"Q": 1})
