"""Decoders as Core ML packages that keep what they have read, run by the executor of MIL."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_decoders import Decoder, load_by_coremltools
from support.coreml_models import tools
from support.decoders import LAYERS, VOCABULARY, decoder, scores
from support.mil_executor import load as load_program

import serde
import serde.relay as relay
from serde.core import ArrayWeight, Report
from serde.coreml.model import operations
from serde.coreml.reader import load
from serde.errors import CheckError, OptionError
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

tools()

LENGTH = 24
PROMPT = np.random.default_rng(2).integers(0, VOCABULARY, 7).tolist()
FIXED: Mapping[str, Any] = {"cache_length": LENGTH, "minimum_deployment_target": "iOS18"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what writes a package for options, once for each."""

    @functools.cache
    def write(**asked: Any) -> Path:
        path = tmp_path_factory.mktemp("net") / "net.mlpackage"
        given = {**FIXED, **asked, "allow": {asked.get("allow")} - {None}}
        serde.convert(decoder(), path, **given)
        return path

    return write


@pytest.mark.parametrize(
    ("asked", "far"),
    [
        ({}, 2e-2),
        ({"compute_precision": "float32"}, 1e-5),
        ({"compute_precision": "float32", "cache": "states"}, 2e-2),
        ({"cache": "inputs"}, 2e-2),
        ({"minimum_deployment_target": "iOS16", "allow": "int64-as-int32"}, 2e-2),
        (
            {
                "minimum_deployment_target": "iOS15",
                "compute_precision": "float32",
                "allow": "int64-as-int32",
            },
            1e-5,
        ),
    ],
    ids=lambda each: ",".join(map(str, each.values())) if isinstance(each, dict) else "",
)
@pytest.mark.parametrize("at_once", [1, 3])
def test_it_generates_from_what_it_keeps(
    asked: dict[str, str], far: float, at_once: int, package: Any
) -> None:
    made, found = Decoder(package(**asked)).generate(PROMPT, 8, at_once)
    expected = scores([*PROMPT, *made])[len(PROMPT) - 1 : -1]
    assert np.abs(expected - found).max() <= far * expected.std()
    np.testing.assert_array_equal(expected.argmax(-1), made)


def test_a_padded_prompt_leaves_nothing_behind(package: Any) -> None:
    net = Decoder(package())
    found = [net.read(PROMPT, padded=5)[0], net.read([3])[0]]
    expected = scores([*PROMPT, 3])
    assert np.abs(expected - np.concatenate(found)).max() <= 2e-2 * expected.std()


def test_states_are_declared_under_the_names_that_the_program_has(package: Any) -> None:
    """Heads are split by a reshape and a transpose, as in coremltools #2275 and #2278."""
    spec = load(package()).spec
    function = spec.mlProgram.functions["main"]
    kept = [each.name for each in function.inputs if each.type.HasField("stateType")]
    assert kept == [each.name for each in spec.description.state]
    assert len(kept) == 2 * LAYERS
    read = [op for op in operations(spec) if op.type == "read_state"]
    written = [op for op in operations(spec) if op.type == "write_state"]
    assert [op.inputs["input"].arguments[0].name for op in read] == kept
    assert [op.inputs["input"].arguments[0].name for op in written] == kept
    assert {*(tuple(x.type.stateType.arrayType.shape) for x in spec.description.state)} == {
        (1, 2, LENGTH, 32)
    }


def test_caches_are_written_in_place_of_grown(package: Any) -> None:
    """What Core ML cannot plan is a cache of open length (coremltools #2325)."""
    program = load_by_coremltools(package())
    function = program.functions["main"]
    updates = function.find_ops(op_type="slice_update")
    assert [op.x.op.op_type for op in updates] == ["read_state"] * 2 * LAYERS
    assert {op.outputs[0].shape for op in updates} == {(1, 2, LENGTH, 32)}
    for op in function.find_ops(op_type="concat"):
        assert op.outputs[0].rank == 1, "only the bounds of a slice are joined"


@pytest.mark.parametrize(
    "asked", [{}, {"enumerated_shapes": {"input_ids": [(1, 1), (1, 8)]}}], ids=["range", "list"]
)
def test_no_input_is_fixed_beside_flexible_ones(asked: dict[str, Any], tmp_path: Path) -> None:
    """Beside states, Core ML takes no mixture of flexibilities (coremltools #2548)."""
    path = tmp_path / "net.mlpackage"
    serde.convert(decoder(), path, **FIXED, **asked)
    inputs = load(path).spec.description.input
    assert [each.name for each in inputs] == ["input_ids", "cache_position"]
    kinds = {each.type.multiArrayType.WhichOneof("ShapeFlexibility") for each in inputs}
    assert kinds == {"enumeratedShapes" if asked else "shapeRange"}
    if asked:
        listed = inputs[1].type.multiArrayType.enumeratedShapes.shapes
        assert [list(each.shape) for each in listed] == [[1], [8]]
    else:
        ranges = inputs[1].type.multiArrayType.shapeRange.sizeRanges
        assert [(each.lowerBound, each.upperBound) for each in ranges] == [(1, LENGTH)]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"int8": "weights"}, marks=pytest.mark.wide),
        pytest.param({"palettize": 4}, marks=pytest.mark.wide),
        {"int4": True},
    ],
    ids=str,
)
def test_small_weights_leave_states_as_they_are(
    asked: dict[str, Any], package: Any, tmp_path: Path
) -> None:
    """Programs with weights of 4 bits and states, called again and again (coremltools #2716)."""
    if "palettize" in asked:
        pytest.importorskip("sklearn")
    path, plain = package(**asked), tmp_path / "plain.mlpackage"
    description = load(path).spec.description
    assert [x.name for x in description.state] == [
        x.name for x in load(package()).spec.description.state
    ]
    assert any(op.type.startswith("constexpr") for op in operations(load(path).spec))
    load_by_coremltools(path)
    from coremltools.optimize.coreml import decompress_weights

    model = tools().models.MLModel(str(path), skip_model_load=True)
    decompress_weights(model).save(str(plain))
    (made, found), (wanted, expected) = (
        Decoder(each).generate(PROMPT, LENGTH - len(PROMPT)) for each in (path, plain)
    )
    np.testing.assert_array_equal(made, wanted)
    np.testing.assert_allclose(found, expected, atol=2e-2 * expected.std())


def test_a_check_generates(tmp_path: Path) -> None:
    report = serde.convert(decoder(), tmp_path / "net.mlpackage", check=True, **FIXED)
    assert report.passed
    assert report.verdicts[-1].output == "logits of 16 steps"
    assert report.verdicts[-1].remark == "16 of 16 tokens equal"


def test_a_check_of_several_texts_pads_them(tmp_path: Path) -> None:
    report = serde.convert(
        decoder(), tmp_path / "net.mlpackage", check=True, cache_batch=3, **FIXED
    )
    assert report.verdicts[-1].remark == "48 of 48 tokens equal"
    inputs = {
        each.name: list(each.type.multiArrayType.shape)
        for each in load(tmp_path / "net.mlpackage").spec.description.input
    }
    assert inputs == {"input_ids": [3, 1], "attention_mask": [3, LENGTH], "cache_position": [1]}


def test_a_check_tells_of_too_short_a_cache(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="caches for 8 tokens have no room for 9"):
        serde.convert(
            decoder(), tmp_path / "net.mlpackage", check=True, **{**FIXED, "cache_length": 8}
        )


def test_caches_that_grow_are_told_of(tmp_path: Path) -> None:
    report = Report()
    serde.convert(
        decoder(), tmp_path / "net.mlpackage", minimum_deployment_target="iOS18", report=report,
        allow={"int64-as-int32"},
    )  # fmt: skip
    assert any("cache_length (--cache-length) gives them a fixed length" in x for x in report.notes)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cache_length": None}, "cache_length .--cache-length. gives them a fixed length"),
        ({"minimum_deployment_target": "iOS17"}, "states: iOS17 has none, iOS18 has"),
    ],
)
def test_states_that_cannot_be_are_refused(
    asked: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=message):
        serde.convert(decoder(), tmp_path / "net.mlpackage", cache="states", **{**FIXED, **asked})


def test_angles_of_far_tokens_are_exact_in_float16(tmp_path: Path) -> None:
    """Float16 has not all whole numbers beyond 2048; an angle of 1000 is half a radian off."""
    places = Var("places", TensorType((6,), "int64"))
    x = Var("x", TensorType((6, 4), "float32"))
    factors = Var("factors", TensorType((4,), "float32"))
    angles = relay.expand_dims(relay.cast(places, "float32"), axis=1) * factors
    body = relay.cos(angles) * x + relay.sin(angles)
    values = np.array([1, 0.3, 0.05, 0.001], np.float32)
    model = RelayModel(
        IRModule({"main": infer_function(Function([places, x, factors], body))}),
        {"factors": ArrayWeight(values)},
        ModelMeta(("places", "x"), ("y",)),
    )
    path = tmp_path / "net.mlpackage"
    serde.convert(model, tmp_path / "net.onnx")
    serde.convert(tmp_path / "net.onnx", path, minimum_deployment_target="iOS18")
    far, given = np.array([0, 7, 600, 2049, 4095, 9999]), np.ones((6, 4), np.float32)
    with ExitStack() as stack:
        (found,) = load_program(path, stack).run({"places": far.astype(np.int32), "x": given})
    exact = far[:, None] * values.astype(np.float64)
    np.testing.assert_allclose(found, np.cos(exact) + np.sin(exact), atol=2e-3)
