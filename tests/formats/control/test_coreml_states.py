"""States of ML Programs: inputs and outputs elsewhere, states again in Core ML from iOS18 on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_interface import evaluate, read, written
from support.coreml_models import tools

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.coreml.model import CoremlModel, operations
from serde.coreml.reader import load
from serde.errors import OptionError
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

HALF = np.float16
X, Y = np.array([1, 2], HALF), np.array([4, 8], HALF)
TOTAL, FACTOR = np.array([3, 5], HALF), np.array([2, 0.5], HALF)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A running total that is read and written, and a factor that is only read."""
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import types

    specs = [
        Builder.TensorSpec(shape=(2,), dtype=types.fp16),
        Builder.StateTensorSpec(shape=(2,), dtype=types.fp16),
        Builder.StateTensorSpec(shape=(2,), dtype=types.fp16),
        Builder.TensorSpec(shape=(2,), dtype=types.fp16),
    ]

    @Builder.program(input_specs=specs, opset_version=ct.target.iOS18)
    def program(x: Any, total: Any, factor: Any, y: Any) -> Any:
        grown = Builder.add(x=Builder.read_state(input=total), y=x)
        grown = Builder.coreml_update_state(state=total, value=grown)
        once = Builder.mul(x=grown, y=Builder.read_state(input=factor), name="once")
        grown = Builder.coreml_update_state(state=total, value=Builder.add(x=grown, y=y))
        return once, Builder.sub(x=grown, y=x, name="twice")

    model = ct.convert(
        program,
        convert_to="mlprogram",
        minimum_deployment_target=ct.target.iOS18,
        skip_model_load=True,
    )
    path = tmp_path_factory.mktemp("states") / "net.mlpackage"
    model.save(str(path))
    return path


def check_values(model: RelayModel) -> None:
    given = {"x": X, "y": Y, "total": TOTAL, "factor": FACTOR}
    found = evaluate(model, *(given[name] for name in model.meta.inputs))
    named = dict(zip(model.meta.outputs, found, strict=True))
    np.testing.assert_array_equal(named["once"], (TOTAL + X) * FACTOR)
    np.testing.assert_array_equal(named["twice"], TOTAL + Y)
    np.testing.assert_array_equal(named["total_out"], TOTAL + X + Y)


def state_operations(model: CoremlModel) -> list[str]:
    return [op.type for op in operations(model.spec) if op.type.endswith("_state")]


def test_states_are_read_as_inputs_and_outputs(source: Path) -> None:
    model = serde.to_relay(source)
    assert model.meta.inputs == ("x", "total", "factor", "y")
    assert model.meta.outputs == ("once", "twice", "total_out")
    assert model.meta.extra["total.state"] == "total_out"
    assert model.meta.extra["factor.state"] == "factor"
    check_values(model)


@pytest.mark.parametrize("way", ["at once", "by a Relay file"])
def test_states_are_written_as_states(way: str, source: Path, tmp_path: Path) -> None:
    given, target = source, tmp_path / "again.mlpackage"
    if way == "by a Relay file":
        given = tmp_path / "net.relay"
        serde.convert(source, given)
    report = serde.convert(given, target, minimum_deployment_target="iOS18", check=True)
    assert [each.passed for each in report.verdicts] == [True] * 3
    model = load(target)
    description = model.spec.description
    assert [each.name for each in description.input] == ["x", "y"]
    assert [each.name for each in description.output] == ["once", "twice"]
    assert [each.name for each in description.state] == ["total", "factor"]
    assert description.state[0].type.stateType.arrayType.shape == [2]
    assert state_operations(model) == ["read_state", "read_state", "write_state"]
    check_values(serde.to_relay(target))
    # coremltools checks names, types and operations of the program that it loads.
    from coremltools.converters.mil.frontend.milproto.load import load as load_program

    weights = str(target / "Data/com.apple.CoreML/weights")
    program = load_program(model.spec, model.spec.specificationVersion, weights)
    updates = program.functions["main"].find_ops(op_type="coreml_update_state")
    assert [op.state.name for op in updates] == ["total"]


def test_an_older_target_has_inputs_and_outputs(source: Path, tmp_path: Path) -> None:
    report = serde.convert(source, tmp_path / "net.mlpackage", minimum_deployment_target="iOS17")
    (note,) = [each for each in report.notes if "states" in each]
    assert "iOS17 has none: total, factor; minimum_deployment_target=iOS18 keeps them" in note
    model = serde.to_relay(tmp_path / "net.mlpackage")
    assert model.meta.outputs == ("once", "twice", "total_out")
    check_values(model)


def counter(dtype: str = "float16", length: int = 2) -> RelayModel:
    """Something that counts: what becomes of the state comes first, and twice it second."""
    before, x = (Var(name, TensorType((length,), dtype)) for name in ("before", "x"))
    after = relay.add(before, x)
    body = relay.Tuple([after, relay.add(after, after), relay.negative(x)])
    meta = ModelMeta(inputs=("before", "x"), outputs=("after", "double", "less"))
    return RelayModel(IRModule({"main": Function([before, x], body)}), {}, meta)


def test_states_of_any_model() -> None:
    model = written(counter(), minimum_deployment_target="iOS18", states={"before": "after"})
    assert [each.name for each in model.spec.description.output] == ["double", "less"]
    assert state_operations(model) == ["read_state", "write_state"]
    again = read(model)
    assert again.meta.outputs == ("double", "less", "before_out")
    found = evaluate(again, X, TOTAL)
    for ours, wanted in zip(found, [2 * (X + TOTAL), -X, X + TOTAL], strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_states_are_checked(tmp_path: Path) -> None:
    source = tmp_path / "net.onnx"
    serde.export_model(counter().mod, format="onnx", path=source)
    report = serde.convert(
        source,
        tmp_path / "net.mlpackage",
        check=True,
        minimum_deployment_target="iOS18",
        states={"before": "output0"},
    )
    assert [each.passed for each in report.verdicts] == [True] * 3


@pytest.mark.parametrize(
    ("model", "target", "states", "message"),
    [
        (counter("float32"), "iOS18", {"before": "after"}, "before is float32; the states of"),
        (counter(), "iOS17", {"before": "after"}, "iOS17 has none, iOS18 has"),
        (counter(), "iOS18", {"before": "other"}, "before=other: no such input or output"),
        (counter(), "iOS18", {"other": "after"}, "other=after: no such input or output"),
        (counter(), "iOS18", {"before": "after", "x": "after"}, "two states become one output"),
    ],
)
def test_states_that_cannot_be(
    model: RelayModel, target: str, states: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        written(model, minimum_deployment_target=target, states=states)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"total": "cache"}, {}),
        ({}, {"total_out": "later"}),
        ({"factor": "gain"}, {"total_out": "later", "once": "total_out"}),
    ],
)
def test_states_of_other_names_stay_states(
    inputs: dict[str, str], outputs: dict[str, str], source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "again.mlpackage"
    serde.convert(
        source,
        target,
        minimum_deployment_target="iOS18",
        rename_inputs=inputs,
        rename_outputs=outputs,
        check=True,
    )
    description = load(target).spec.description
    wanted = [inputs.get(name, name) for name in ("total", "factor")]
    assert [each.name for each in description.state] == wanted
    assert [each.name for each in description.output] == [outputs.get("once", "once"), "twice"]


def test_an_output_called_as_the_later_value_of_a_state_is_kept(tmp_path: Path) -> None:
    asked = {"minimum_deployment_target": "iOS18", "states": {"before": "after"}}
    first, second = tmp_path / "first.mlpackage", tmp_path / "second.mlpackage"
    source = counter()
    source = source.evolve(
        meta=ModelMeta(inputs=("before", "x"), outputs=("after", "before_out", "less"))
    )
    serde.from_relay(source, format="coreml", path=first, **asked)
    report = serde.convert(first, second, minimum_deployment_target="iOS18", check=True)
    assert [each.passed for each in report.verdicts] == [True] * 3
    again = serde.to_relay(second)
    assert again.meta.outputs == ("before_out", "less", "before_out_1")
    assert again.meta.extra["before.state"] == "before_out_1"
    found = evaluate(again, X, TOTAL)
    for ours, wanted in zip(found, [2 * (X + TOTAL), -X, X + TOTAL], strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_a_description_of_a_state_is_kept(source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.mlpackage", tmp_path / "second.mlpackage"
    target = {"minimum_deployment_target": "iOS18"}
    serde.convert(source, first, descriptions={"total": "what came so far"}, **target)
    serde.convert(first, second, rename_inputs={"total": "cache"}, **target)
    (told, _) = load(second).spec.description.state
    assert (told.name, told.shortDescription) == ("cache", "what came so far")


@pytest.mark.parametrize(
    "asked", [{"images": {"total": "RGB"}}, {"output_images": {"total_out": "RGB"}}]
)
def test_a_state_is_no_image(asked: dict[str, Any], source: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="total is no image"):
        serde.convert(
            source, tmp_path / "again.mlpackage", minimum_deployment_target="iOS18", **asked
        )


@pytest.mark.parametrize("target", ["iOS15", "iOS18"])
def test_states_of_a_source_that_are_no_halves_are_inputs_and_outputs(
    target: str, tmp_path: Path
) -> None:
    before = Var("before", TensorType((2,), "float32"))
    meta = ModelMeta(("before",), ("after",), extra={"before.state": "after"})
    main = Function([before], relay.add(before, relay.const(1.0)))
    report = Report()
    path = tmp_path / "net.mlpackage"
    serde.from_relay(
        RelayModel(IRModule.from_expr(main), {}, meta),
        format="coreml",
        path=path,
        minimum_deployment_target=target,
        report=report,
    )
    description = load(path).spec.description
    assert [each.name for each in description.input] == ["before"]
    assert not description.state
    assert [each for each in report.notes if "states" in each] == [
        "states are inputs and outputs, as those of Core ML are float16: before"
    ]
