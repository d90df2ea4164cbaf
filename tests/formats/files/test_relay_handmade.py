"""Modules that users put together by hand, as sources of every format."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.errors import FormatError, OptionError, RelayError
from serde.relay.ir.model import RelayModel

SHAPE = (2, 3)
FORMATS = ("coreml", "mxnet", "onnx", "relay")


def values(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape or SHAPE).astype("float32")


class Given:
    """An array of another framework."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def numpy(self) -> Any:
        return self._value


def nested() -> relay.IRModule:
    x, w = relay.var("x", shape=SHAPE), relay.var("w", shape=SHAPE)
    inner = relay.Tuple([relay.exp(x), relay.Tuple([x * w, relay.negative(x)])])
    return relay.IRModule.from_expr(relay.Function([x, w], relay.Tuple([x + w, inner])))


def run_onnx(model: Any, *arrays: Any) -> list[Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


@pytest.mark.parametrize("given", [values(1), Given(values(1))], ids=["array", "framework"])
@pytest.mark.parametrize("form", ["model", "pair", "export"])
def test_an_untyped_module_with_arrays_is_converted(form: str, given: Any) -> None:
    mod = nested()
    if form == "export":
        model = serde.export_model((mod, {"w": given}), format="onnx")
    else:
        source = RelayModel(mod, {"w": given}) if form == "model" else (mod, {"w": given})
        model = serde.from_relay(source, format="onnx")
    x, w = values(2), values(1)
    found = run_onnx(model, x)
    assert [each.name for each in model.graph.output] == [
        "output0", "output1_0", "output1_1_0", "output1_1_1"
    ]  # fmt: skip
    for got, want in zip(found, [x + w, np.exp(x), x * w, -x], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_tuples_inside_the_result_are_flattened_in_every_format(name: str, tmp_path: Path) -> None:
    path = tmp_path / {"coreml": "m.mlpackage", "mxnet": "m-symbol.json"}.get(name, f"m.{name}")
    serde.from_relay((nested(), {"w": values(1)}), format=name, path=path)
    back = serde.to_relay(path)
    names = [each.removesuffix("_output") for each in back.meta.outputs]
    assert names == ["output0", "output1_0", "output1_1_0", "output1_1_1"]


def test_a_result_that_a_function_gives_is_flattened() -> None:
    x = relay.var("x", shape=SHAPE)
    flag = relay.greater(relay.sum(x), relay.const(0.0))
    pair = relay.Tuple([x, relay.Tuple([relay.exp(x), x])])
    other = relay.Tuple([x, relay.Tuple([relay.negative(x), x])])
    mod = relay.IRModule.from_expr(relay.Function([x], relay.If(flag, pair, other)))
    model = serde.from_relay(mod, format="onnx")
    data = np.ones(SHAPE, "float32")
    np.testing.assert_allclose(run_onnx(model, data)[1], np.exp(data), rtol=1e-6)
    np.testing.assert_array_equal(run_onnx(model, -data)[1], data)


def test_names_of_flattened_outputs_differ() -> None:
    x = relay.var("x", shape=SHAPE)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Tuple([x, relay.Tuple([x, x])])))
    model = serde.to_relay(mod)
    model = model.evolve(meta=serde.relay.ir.model.ModelMeta(outputs=("a_1", "a")))
    found = serde.from_relay(model, format="onnx")
    assert [each.name for each in found.graph.output] == ["a_1", "a_0", "a_1_"]


def test_facts_of_a_model_outlive_its_repair() -> None:
    meta = serde.relay.ir.model.ModelMeta(outputs=("sum", "rest"), labels=("cat", "dog"))
    model = RelayModel(nested(), {"w": values(1)}, meta)
    assert serde.to_relay(model).meta.labels == ("cat", "dog")
    assert serde.to_relay(model).meta.outputs == ("sum", "rest")


def test_an_untyped_parameter_takes_the_type_of_its_weight() -> None:
    x, w = relay.var("x", shape=SHAPE), relay.var("w")
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.multiply(x, w)))
    found = run_onnx(serde.from_relay((mod, {"w": values(1)}), format="onnx"), values(2))
    np.testing.assert_allclose(found[0], values(2) * values(1), rtol=1e-6)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(OptionError, match="expected a RelayModel, or a module and its parameters"):
        serde.from_relay("net.onnx", format="relay")


# Two variables may have one name: they are told apart by what they are.


def same_names() -> relay.Function:
    first, second = relay.var("x", shape=()), relay.var("x", shape=())
    return relay.Function([first, second], first - second)


def test_arguments_are_bound_by_place() -> None:
    call = relay.create_executor(mod=relay.IRModule.from_expr(same_names())).evaluate()
    assert call(np.float32(5), np.float32(1)) == 4
    with pytest.raises(RelayError, match="2 parameters are called x"):
        call(np.float32(1), x=np.float32(5))


def test_parameters_of_an_executor_that_name_two_variables_are_refused() -> None:
    executor = relay.create_executor(
        mod=relay.IRModule.from_expr(same_names()), params={"x": np.float32(1)}
    )
    with pytest.raises(RelayError, match="2 parameters are called x"):
        executor.evaluate()


def test_values_of_variables_are_bound_by_what_they_are() -> None:
    function = same_names()
    free = relay.var("x", shape=())
    around = relay.Function(function.params, function.body * free)
    first, second = function.params
    one, two, ten = (np.float32(value) for value in (1, 2, 10))
    executor = relay.create_executor()
    assert executor.evaluate(around, {second: one, free: ten})(two) == 10
    assert executor.evaluate(around, {first: one, free: ten})(two) == -10
    assert executor.evaluate(function.body * free, {first: two, second: one, free: ten}) == 10


@pytest.mark.parametrize("name", FORMATS)
def test_inputs_of_one_name_are_two_inputs(name: str, tmp_path: Path) -> None:
    path = tmp_path / {"coreml": "m.mlpackage", "mxnet": "m-symbol.json"}.get(name, f"m.{name}")
    function = same_names()
    vectors = [relay.var("x", shape=SHAPE) for _ in function.params]
    mod = relay.IRModule.from_expr(relay.Function(vectors, vectors[0] - vectors[1]))
    serde.convert(mod, path, target_format=name)
    back = serde.to_relay(path)
    assert back.meta.inputs == ("x", "x1")
    a, b = values(1), values(2)
    found = relay.create_executor(mod=back.mod).evaluate()(a, b)
    np.testing.assert_allclose(found[0] if isinstance(found, tuple) else found, a - b, rtol=1e-2)


def test_a_weight_for_two_parameters_of_one_name_is_refused() -> None:
    with pytest.raises(FormatError, match="2 parameters of main are called x"):
        serde.to_relay((same_names(), {"x": np.float32(1)}))


def test_a_function_of_the_module_may_have_parameters_of_one_name() -> None:
    inner = same_names().with_attr("Composite", "difference")
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    mod = relay.IRModule.from_expr(relay.Function([x, y], inner(y, x)))
    model = serde.from_relay(mod, format="onnx", local_functions=True)
    assert run_onnx(model, np.array(1, "float32"), np.array(5, "float32"))[0] == 4
    back = relay.fromtext(relay.transform.InferType()(mod).astext(strict=True))
    assert relay.create_executor(mod=back).evaluate()(np.float32(1), np.float32(5)) == 4
