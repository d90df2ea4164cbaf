"""MIL's lists: of fixed length, growing, and of elements whose shape a model tells late.

What a list holds is spelled out in NumPy: one that grows gets zeros up to the place that is
written, as coremltools itself lowers such lists to NeuralNetworks.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support.coreml_layers import evaluate
from support.coreml_models import tools

import serde
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Call
from serde.relay.ir.visit import post_order

GOLDEN = Path(__file__).parents[2] / "golden" / "coreml"
KERAS = ("last", "times", "batch", "both", "masked")


def converted(build: Any, *shapes: tuple[Any, ...]) -> Any:
    """The message of a program of float32 inputs ``x0``, ``x1`` ..."""
    ct = tools()
    from coremltools.converters.mil import Builder

    names = ", ".join(f"x{i}" for i in range(len(shapes)))
    scope: dict[str, Any] = {"build": build, "mb": Builder}
    exec(f"def program({names}): return build(mb, {names})", scope)
    specs = [Builder.TensorSpec(shape=shape) for shape in shapes]
    program = Builder.program(input_specs=specs, opset_version=ct.target.iOS15)(scope["program"])
    return ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        pass_pipeline=ct.PassPipeline.EMPTY,
        skip_model_load=True,
    )


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def results(source: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    return evaluate(serde.to_relay(source), {f"x{i}": each for i, each in enumerate(inputs)})


@pytest.mark.parametrize("fixed", [True, False])
def test_a_list_that_is_written_within_its_length(fixed: bool) -> None:
    def program(mb: Any, row: Any, rows: Any) -> Any:
        made = mb.make_list(init_length=4, dynamic_length=not fixed, elem_shape=(2,))
        made = mb.list_write(ls=made, index=1, value=row)
        made = mb.list_scatter(ls=made, indices=[3, 0], value=rows)
        count = mb.cast(x=mb.list_length(ls=made), dtype="fp32")
        whole = mb.list_gather(ls=made, indices=[0, 1, 2, 3])
        return mb.add(x=mb.list_read(ls=made, index=3), y=count), whole

    row, rows = draw(2), draw(2, 2)
    found = results(converted(program, (2,), (2, 2)), row, rows)
    np.testing.assert_array_equal(found[0], rows[0] + 4)
    np.testing.assert_array_equal(found[1], [rows[1], row, [0, 0], rows[0]])


def test_a_list_grows_by_what_is_written_behind_its_end() -> None:
    def program(mb: Any, row: Any, rows: Any) -> Any:
        made = mb.make_list(init_length=1, elem_shape=(2,))
        made = mb.list_write(ls=made, index=2, value=row)
        middle = mb.list_length(ls=made)
        made = mb.list_scatter(ls=made, indices=[5, 1], value=rows)
        lengths = mb.stack(values=[middle, mb.list_length(ls=made)], axis=0)
        return mb.list_gather(ls=made, indices=[0, 1, 2, 3, 4, 5]), lengths

    row, rows = draw(2), draw(2, 2)
    found = results(converted(program, (2,), (2, 2)), row, rows)
    zero = [0, 0]
    np.testing.assert_array_equal(found[0], [zero, rows[1], row, zero, zero, rows[0]])
    np.testing.assert_array_equal(found[1], [3, 6])


def squares(mb: Any, most: Any, row: Any, step: int) -> Any:
    """Write row times index at every `step` places of a list that begins with one."""
    made = mb.make_list(init_length=1, elem_shape=(2,))

    def more(i: Any, _: Any) -> Any:
        return mb.less(x=i, y=most)

    def turn(i: Any, ls: Any) -> Any:
        value = mb.mul(x=row, y=mb.cast(x=i, dtype="fp32"))
        return mb.add(x=i, y=step), mb.list_write(ls=ls, index=i, value=value)

    _, made = mb.while_loop(_cond=more, _body=turn, loop_vars=(np.int32(1), made))
    count = mb.list_length(ls=made)
    return mb.list_gather(ls=made, indices=mb.range_1d(start=0, end=count, step=1))


@pytest.mark.wide
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("most", [1, 2, 6])
def test_a_list_that_grows_in_a_loop(most: int, step: int, tmp_path: Path) -> None:
    def program(mb: Any, most: Any, row: Any) -> Any:
        whole = mb.cast(x=mb.squeeze(x=most, axes=[0]), dtype="int32")
        return squares(mb, whole, row, step)

    source = converted(program, (1,), (2,))
    row = draw(2)
    wanted = np.zeros((max([0, *range(1, most, step)]) + 1, 2), np.float32)
    for index in range(1, most, step):
        wanted[index] = row * index
    given = np.array([most], np.float32), row
    (found,) = results(source, *given)
    np.testing.assert_array_equal(found, wanted)
    path = serde.export_model(source, format="onnx", path=tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {"x0": given[0], "x1": row})
    np.testing.assert_array_equal(found, wanted)


def test_a_branch_gives_a_list_whose_shape_the_other_tells() -> None:
    def program(mb: Any, rows: Any) -> Any:
        made = mb.make_list(init_length=2, elem_shape=("any", np.int32(2)))
        ask = mb.greater(x=mb.reduce_sum(x=rows), y=0.0)
        made = mb.cond(
            pred=ask,
            _true_fn=lambda: mb.list_write(ls=made, index=0, value=rows),
            _false_fn=lambda: mb.identity(x=made),
        )
        return mb.list_gather(ls=made, indices=[0, 1])

    source = converted(program, (3, 2))
    for sign in (1, -1):
        rows = np.full((3, 2), sign, np.float32)
        (found,) = results(source, rows)
        np.testing.assert_array_equal(found, [rows * (sign > 0), np.zeros((3, 2))])


def test_a_list_of_unknown_elements_that_is_never_written_is_refused() -> None:
    def program(mb: Any, rows: Any) -> Any:
        made = mb.make_list(init_length=2, elem_shape=("any", np.int32(2)))
        return mb.add(x=mb.reduce_sum(x=mb.list_read(ls=made, index=0)), y=mb.reduce_sum(x=rows))

    source = converted(program, (3, 2))
    with pytest.raises(UnsupportedModelError, match="read before the shape of its elements"):
        serde.to_relay(source)


@pytest.fixture(scope="module")
def keras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("keras")
    with zipfile.ZipFile(GOLDEN / "keras.zip") as archive:
        archive.extractall(root)
    return root


@pytest.mark.parametrize("net", KERAS)
def test_recurrent_layers_of_keras(net: str, keras: Path, tmp_path: Path) -> None:
    """As ``golden/coreml/make_keras.py`` made them, judged by what TensorFlow gives."""
    with np.load(keras / "expected.npz") as arrays:
        x, wanted = arrays[net], arrays[f"{net}.0"]
    source = keras / f"{net}.mlpackage"
    model = serde.to_relay(source)
    (name,) = model.meta.inputs
    (found,) = evaluate(model, {name: x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
    # No list grows in the loop, so that the lengths of what comes out are known.
    grown = [node for node in post_order(model.main.body) if isinstance(node, Call)]
    assert not [node for node in grown if node.op.name == "dyn.full"]
    path = serde.export_model(source, format="onnx", path=tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
    serde.convert(source, tmp_path / "again.mlpackage", compute_precision="float32")
    again = serde.to_relay(tmp_path / "again.mlpackage")
    (found,) = evaluate(again, {name: x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
