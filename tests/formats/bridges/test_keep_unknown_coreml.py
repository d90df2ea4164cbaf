"""Custom layers of Core ML, in programs and networks: converted by functions, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.engine import foreign as engine
from serde.errors import OptionError, RelayError, UnsupportedModelError
from serde.relay.ir.foreign import Foreign, is_foreign
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run

ct = pytest.importorskip("coremltools")

from coremltools.converters.mil import Builder  # noqa: E402
from coremltools.converters.mil.mil import InputSpec, Operation, TensorInputType, register_op, types  # noqa: E402
from coremltools.models import datatypes  # noqa: E402
from coremltools.models.neural_network import NeuralNetworkBuilder  # noqa: E402

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)
ONE = TensorType((2, 3), "float32")
WANT = np.maximum((np.tanh(X) + X) * 1.5, 0)


@register_op(is_custom_op=True)
class serde_test_wobble(Operation):  # noqa: N801
    """``(x + z) * gain``, as the class of an app would compute it."""

    input_spec = InputSpec(
        x=TensorInputType(type_domain="T"),
        z=TensorInputType(type_domain="T"),
        gain=TensorInputType(const=True, type_domain=types.fp32),
        mode=TensorInputType(const=True, type_domain=types.str),
    )
    type_domains = {"T": (types.fp16, types.fp32)}  # noqa: RUF012
    bindings = {  # noqa: RUF012
        "class_name": "Wobble",
        "input_order": ["x", "z"],
        "parameters": ["gain", "mode"],
        "description": "wobbles",
    }

    def type_inference(self) -> Any:
        return self.x.sym_type


@pytest.fixture(scope="module")
def program() -> Any:
    """The message of a program with a custom operator, as coremltools writes it."""

    @Builder.program(input_specs=[Builder.TensorSpec(shape=(2, 3))], opset_version=ct.target.iOS15)
    def prog(x: Any) -> Any:
        h = Builder.tanh(x=x, name="h")
        a = Builder.serde_test_wobble(x=h, z=x, gain=np.float32(1.5), mode="fast", name="a")
        return Builder.relu(x=a, name="y")

    model = ct.convert(
        prog,
        convert_to="mlprogram",
        minimum_deployment_target=ct.target.iOS15,
        compute_precision=ct.precision.FLOAT32,
        skip_model_load=True,
    )
    return model


def network(**parameters: Any) -> Any:
    """The message of a network with a custom layer."""
    ends = [("x", datatypes.Array(2, 3))], [("y", datatypes.Array(2, 3))]
    builder = NeuralNetworkBuilder(*ends, disable_rank5_shape_mapping=True)
    builder.add_activation("t", "TANH", "x", "h")
    layer = builder.spec.neuralNetwork.layers.add(name="a", input=["h", "x"], output=["a"])
    layer.custom.className = "Wobble"
    layer.custom.parameters["gain"].doubleValue = 1.5
    layer.custom.parameters["mode"].stringValue = "fast"
    builder.add_activation("r", "RELU", "a", "y")
    return builder.spec


def wobble(ctx: Any, x: Any, z: Any, *, gain: float, mode: str) -> Any:
    assert mode == "fast"
    return relay.multiply(relay.add(x, z), relay.const(np.float32(gain)))


@pytest.fixture
def kernel() -> Iterator[None]:
    before = dict(engine._KERNELS)
    serde.register_kernel("Wobble", lambda x, z, *, gain, mode: (x + z) * np.float32(gain))
    yield
    engine._KERNELS.clear()
    engine._KERNELS.update(before)


def kept_node(model: Any) -> Foreign:
    (found,) = filter(is_foreign, post_order(model.main))
    return Foreign.of(found)  # type: ignore[arg-type]


@pytest.fixture(params=["program", "network"])
def source(request: pytest.FixtureRequest, program: Any) -> tuple[Any, dict[str, Any]]:
    """A model of either kind, and what it needs to be kept."""
    if request.param == "program":
        return program, {}
    return network(), {"result_types": {"a": "float32[2,3]"}}


def test_without_anything_it_is_refused(source: Any) -> None:
    with pytest.raises(UnsupportedModelError, match="custom"):
        serde.to_relay(source[0])


def test_a_function_converts_it(source: Any) -> None:
    report = Report()
    found = serde.to_relay(source[0], converters={"Wobble": wobble}, report=report)
    np.testing.assert_allclose(run(found.mod["main"], [X]), WANT, rtol=1e-6)
    assert [each.node for each in report.fallbacks] == ["a"]


def test_kept_it_is_run_by_a_kernel(source: Any, kernel: None) -> None:
    model, options = source
    report = Report()
    found = serde.to_relay(model, keep_unknown=True, report=report, **options)
    np.testing.assert_allclose(run(found.mod["main"], [X]), WANT, rtol=1e-6)
    node = kept_node(found)
    assert (node.framework, node.name, node.results) == ("coreml", "Wobble", (ONE,))
    assert node.plain_attributes == {"gain": 1.5, "mode": "fast"}
    assert [(each.op, each.node) for each in report.fallbacks] == [("Wobble", "a")]


def test_without_a_kernel_nothing_runs_it(source: Any) -> None:
    model, options = source
    found = serde.to_relay(model, keep_unknown=True, **options)
    with pytest.raises(RelayError, match="nothing here runs operators of coreml"):
        run(found.mod["main"], [X])


@pytest.mark.parametrize("strict", [False, True])
def test_kept_it_comes_through_text(source: Any, strict: bool) -> None:
    model, options = source
    found = serde.to_relay(model, keep_unknown=True, **options)
    again = relay.fromtext(found.mod.astext(strict=strict))
    assert relay.structural_equal(found.mod, again)


@pytest.mark.parametrize(
    "target",
    [
        "iOS14",
        "iOS15",
        *(pytest.param(each, marks=pytest.mark.wide) for each in ("iOS13", "iOS16", "iOS18")),
    ],
)
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_core_ml_gets_it_back(source: Any, target: str, precision: str, kernel: None) -> None:
    model, options = source
    found = serde.to_relay(model, keep_unknown=True, **options)
    written = serde.from_relay(
        found, format="coreml", minimum_deployment_target=target, compute_precision=precision
    )
    again = serde.to_relay(written, keep_unknown=True)
    before, after = kept_node(found), kept_node(again)
    assert (after.name, after.plain_attributes) == (before.name, before.plain_attributes)
    assert after.results == (ONE,)
    tolerance = 1e-6 if precision == "float32" else 5e-3
    np.testing.assert_allclose(run(again.mod["main"], [X]), WANT, rtol=tolerance, atol=tolerance)


def test_a_program_says_the_same_of_it_as_coremltools(program: Any) -> None:
    found = serde.to_relay(program, keep_unknown=True)
    written = serde.from_relay(found, format="coreml", compute_precision="float32")

    def custom(spec: Any) -> Any:
        function = spec.mlProgram.functions["main"]
        block = function.block_specializations[function.opset]
        (op,) = [each for each in block.operations if each.type == "custom_layer"]
        return op

    before, after = custom(program.get_spec()), custom(written.get_spec())
    assert set(after.inputs) == set(before.inputs)
    for name in ("class_name", "input_order", "parameters", "description", "weights"):
        assert after.attributes[name].immediateValue == before.attributes[name].immediateValue
    assert after.outputs[0].type == before.outputs[0].type


PARAMETERS: dict[str, tuple[str, Any]] = {
    "double": ("doubleValue", 0.1),
    "string": ("stringValue", "größe"),
    "int": ("intValue", -3),
    "long": ("longValue", 2**40),
    "bool": ("boolValue", True),
    "false": ("boolValue", False),
}


@pytest.mark.parametrize("title", PARAMETERS)
def test_parameters_of_layers_come_back(title: str) -> None:
    field, value = PARAMETERS[title]
    spec = network()
    setattr(spec.neuralNetwork.layers[1].custom.parameters["extra"], field, value)
    spec.neuralNetwork.layers[1].custom.description = "an extra"
    found = serde.to_relay(spec, keep_unknown=True, result_types={"a": "float32[2,3]"})
    assert kept_node(found).attributes["extra"] == value
    written = serde.from_relay(found, format="coreml", minimum_deployment_target="iOS14")
    (layer,) = [x for x in written.get_spec().neuralNetwork.layers if x.HasField("custom")]
    again = layer.custom.parameters["extra"]
    assert (again.WhichOneof("value"), getattr(again, field)) == (field, value)
    assert layer.custom.description == "an extra"


def test_the_type_of_a_layer_may_be_declared() -> None:
    spec = network()
    layer = spec.neuralNetwork.layers[1]
    layer.outputTensor.add(rank=2, dimValue=[2, 3])
    assert kept_node(serde.to_relay(spec, keep_unknown=True)).results == (ONE,)


def test_the_type_of_an_output_is_that_of_the_model() -> None:
    spec = network()
    del spec.neuralNetwork.layers[2]
    spec.neuralNetwork.layers[1].output[0] = "y"
    assert kept_node(serde.to_relay(spec, keep_unknown=True)).results == (ONE,)


def test_weights_of_a_layer_go_to_a_function() -> None:
    spec = network()
    spec.neuralNetwork.layers[1].custom.weights.add().floatValue.extend([1, 2, 3])

    def with_weight(ctx: Any, x: Any, z: Any, w: Any, *, gain: float, mode: str) -> Any:
        np.testing.assert_array_equal(ctx.constant(w), [1, 2, 3])
        return relay.add(x, w)

    found = serde.to_relay(spec, converters={"Wobble": with_weight})
    weights = [found.params[each.name_hint].array() for each in found.main.params[1:]]
    want = np.maximum(np.tanh(X) + np.array([1, 2, 3]), 0)
    np.testing.assert_allclose(run(found.mod["main"], [X, *weights]), want, rtol=1e-6)
    with pytest.raises(UnsupportedModelError, match="the weights of a layer of class Wobble"):
        serde.to_relay(spec, keep_unknown=True, result_types={"a": "float32[2,3]"})


def test_an_operator_of_mil_that_is_not_known_is_kept(program: Any, kernel: None) -> None:
    spec = program.get_spec()
    function = spec.mlProgram.functions["main"]
    block = function.block_specializations[function.opset]
    (op,) = [each for each in block.operations if each.type == "custom_layer"]
    op.type = "Wobble"
    for name in ("class_name", "input_order", "parameters", "description", "weights"):
        del op.attributes[name]
    with pytest.raises(UnsupportedModelError, match="no importer"):
        serde.to_relay(spec)
    found = serde.to_relay(spec, keep_unknown=True)
    assert kept_node(found).name == "Wobble"
    written = serde.from_relay(found, format="coreml", compute_precision="float32")
    kinds = [each.type for each in _operations(written.get_spec())]
    assert kinds == ["tanh", "Wobble", "relu"]
    with pytest.raises(UnsupportedModelError, match="networks have no layer for Wobble"):
        serde.from_relay(found, format="coreml", minimum_deployment_target="iOS14")


def _operations(spec: Any) -> list[Any]:
    function = spec.mlProgram.functions["main"]
    block = function.block_specializations[function.opset]
    return [each for each in block.operations if each.type != "const"]


def test_a_function_takes_the_place_of_an_operator_that_is_known(program: Any) -> None:
    found = serde.to_relay(
        program, converters={"Wobble": wobble, "relu": lambda ctx, x: relay.negative(x)}
    )
    want = -(np.tanh(X) + X) * np.float32(1.5)
    np.testing.assert_allclose(run(found.mod["main"], [X]), want, rtol=1e-6)


def test_inputs_come_by_name_and_in_order(program: Any) -> None:
    seen: list[Any] = []

    def turned(ctx: Any, z: Any, x: Any, *, gain: float, mode: str) -> Any:
        seen.append((z.span.source_name, x.span.source_name))
        return x

    def many(ctx: Any, *xs: Any, **rest: Any) -> Any:
        seen.append((*(x.span.source_name for x in xs[:2]), sorted(rest)))
        return xs[0]

    serde.to_relay(program, converters={"Wobble": turned})
    serde.to_relay(program, converters={"Wobble": many})
    assert seen[0] == ("x", "h")
    assert seen[1][:2] == ("h", "x")
    assert "mode" in seen[1][2]


@pytest.mark.parametrize("target", ["iOS14", "iOS15"])
def test_an_operator_of_onnx_becomes_a_custom_layer(target: str) -> None:
    x = relay.var("x", ONE)
    given = {"gain": 1.5, "mode": "fast", "count": 3, "flag": True}
    node = Foreign(
        framework="onnx", name="Wobble", domain="com.acme", attributes=given, results=(ONE,)
    )
    mod = relay.IRModule.from_expr(relay.Function([x], node.build([x, x])))
    with pytest.raises(UnsupportedModelError, match=r"custom_ops=\['com\.acme::Wobble'\]"):
        serde.from_relay(mod, format="coreml", minimum_deployment_target=target)
    written = serde.from_relay(
        mod, format="coreml", minimum_deployment_target=target, custom_ops=["Wobble"],
        compute_precision="float32",
    )  # fmt: skip
    again = kept_node(serde.to_relay(written, keep_unknown=True))
    assert (again.framework, again.name) == ("coreml", "Wobble")
    assert again.plain_attributes == given


@pytest.mark.parametrize(
    ("target", "attributes", "message"),
    [
        ("iOS14", {"axes": (1, 2)}, "has no list as axes"),
        ("iOS15", {"raw": b"\x00"}, "no parameter of a layer can be raw"),
        ("iOS14", {"raw": b"\x00"}, "no parameter of a layer can be raw"),
    ],
)
def test_parameters_that_layers_cannot_have_are_refused(
    target: str, attributes: dict[str, Any], message: str
) -> None:
    x = relay.var("x", ONE)
    node = Foreign(framework="onnx", name="Wobble", attributes=attributes, results=(ONE,))
    mod = relay.IRModule.from_expr(relay.Function([x], node.build([x])))
    with pytest.raises(UnsupportedModelError, match=message):
        serde.from_relay(
            mod, format="coreml", minimum_deployment_target=target, custom_ops=["Wobble"]
        )


@pytest.mark.parametrize("target", ["iOS14", "iOS15"])
def test_a_function_writes_an_operator(target: str) -> None:
    x = relay.var("x", ONE)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.leaky_relu(x, 0.25)))

    def leaky(ctx: Any, x: Any, *, alpha: float) -> Any:
        return ctx.emit("maximum", x=x, y=ctx.emit("mul", x=x, y=ctx.const(alpha, "float32")))

    written = serde.from_relay(
        mod, format="coreml", minimum_deployment_target=target, compute_precision="float32",
        converters={"nn.leaky_relu": leaky},
    )  # fmt: skip
    again = serde.to_relay(written)
    want = np.where(X > 0, X, 0.25 * X)
    np.testing.assert_allclose(run(again.mod["main"], [X]), want, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda ctx, x, z, **a: 3, "expected 1 Relay expressions, found 3"),
        (lambda ctx, x, z, **a: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_function_that_is_wrong_is_named(source: Any, function: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"of Wobble .*node a .*{message}"):
        serde.to_relay(source[0], converters={"Wobble": function})


def test_a_package_goes_round_on_disk(program: Any, tmp_path: Path) -> None:
    program.save(str(tmp_path / "a.mlpackage"))
    report = serde.convert(
        tmp_path / "a.mlpackage", tmp_path / "b.mlpackage", keep_unknown=True,
        compute_precision="float32",
    )  # fmt: skip
    assert report.after["custom_layer"] == 1
    first, second = (
        serde.to_relay(tmp_path / f"{name}.mlpackage", keep_unknown=True).mod for name in "ab"
    )
    assert relay.structural_equal(first, second)
