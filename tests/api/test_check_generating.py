"""Checks of decoders that take again what they returned, on one that is written down here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.bridge.parts import Parts
from serde.checking.generating import Prompts, compare_as_used, generates, judge_generation
from serde.checking.tolerance import Tolerance
from serde.core import Array, ArrayWeight, Report
from serde.engine.base import Engine
from serde.engine.interpreter import RelayEngine
from serde.onnx.bridge import BRIDGE
from serde.onnx.genai import CONFIG, generation_config
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Function, Tuple, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

BATCH, SEQUENCE, PAST = symbol("batch"), symbol("sequence"), symbol("past")
STATES = {"present.0.key": "past_key_values.0.key", "present.0.value": "past_key_values.0.value"}


def decoder(seed: int = 0) -> RelayModel:
    """Return a model whose scores are of the sum of all tokens so far that are no padding."""
    rng = np.random.default_rng(seed)
    ids = Var("input_ids", TensorType((BATCH, SEQUENCE), "int64"))
    mask = Var("attention_mask", TensorType((BATCH, PAST + SEQUENCE), "int64"))
    past = [Var(name, TensorType((BATCH, 1, PAST, 4), "float32")) for name in STATES.values()]
    table = Var("table", TensorType((20, 4), "float32"))
    head = Var("head", TensorType((20, 4), "float32"))
    x = relay.expand_dims(relay.take(table, ids, axis=0), axis=1)
    present = [relay.concatenate([each, x], axis=2) for each in past]
    shown = relay.expand_dims(relay.expand_dims(relay.cast(mask, "float32"), axis=1), axis=3)
    sums = relay.cumsum(present[0] * shown, axis=2)
    one = relay.const(1, "int64")
    total, own = (relay.take(relay.shape_of(x, "int64"), one, axis=0) for x in (mask, ids))
    wanted = relay.arange(total - own, total, one, dtype="int64")
    rows = relay.take(relay.squeeze(sums, axis=[1]), wanted, axis=1)
    logits = relay.sum(relay.expand_dims(rows, axis=2) * head, axis=[3])
    main = infer_function(Function([ids, mask, *past, table, head], Tuple([logits, *present])))
    params = {
        each.name_hint: ArrayWeight(rng.standard_normal((20, 4)).astype(np.float32))
        for each in (table, head)
    }
    names = ("input_ids", "attention_mask", *STATES.values())
    meta = ModelMeta(names, ("logits", *STATES), states=STATES)
    return RelayModel(IRModule({"main": main}), params, meta)


class Forgetful(Engine):
    """Runs a decoder whose cache loses its first token."""

    def __init__(self, engine: Engine) -> None:
        self.name, self.inputs, self.outputs = "forgetful", engine.inputs, engine.outputs
        self._engine = engine

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        found = self._engine.run(inputs)
        return [found[0], *(np.where(np.arange(x.shape[2])[:, None] < 1, 0, x) for x in found[1:])]


def test_a_decoder_is_told_by_its_states() -> None:
    model = decoder()
    assert generates(model)
    assert not generates(model.evolve(meta=ModelMeta(model.meta.inputs, model.meta.outputs)))


def test_text_of_relay_carries_states(tmp_path: Path) -> None:
    serde.from_relay(decoder(), path=tmp_path / "net.relay")
    assert serde.to_relay(tmp_path / "net.relay").meta.states == STATES


def test_states_have_the_names_that_a_caller_gives() -> None:
    names = {"past_key_values.0.key": "keys"}, {"present.0.value": "values"}
    model = serde.to_relay(decoder(), rename_inputs=names[0], rename_outputs=names[1])
    assert model.meta.states == {"present.0.key": "keys", "values": "past_key_values.0.value"}
    assert generates(model)


def test_prompts_are_padded_on_either_side_and_steps_follow_them() -> None:
    model = decoder()
    samples = list(Prompts(model).samples(RelayEngine(model)).sources)
    masks = [each["attention_mask"].tolist() for each in samples]
    assert [len(each) for each in masks] == [1, 3, 3, 1, 3]
    assert masks[1] == [[1] * 7, [0] * 3 + [1] * 4, [0] * 3 + [1] * 4]
    assert masks[2] == [[1] * 7, [1] * 4 + [0] * 3, [1] * 4 + [0] * 3]
    assert [each["input_ids"].shape[1] for each in samples] == [7, 7, 7, 1, 1]
    assert [each["past_key_values.0.key"].shape[2] for each in samples] == [0, 0, 0, 7, 7]
    assert all(each["input_ids"].max() < 20 for each in samples)


def test_a_conversion_is_checked_by_what_it_generates(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    report = serde.convert(decoder(), tmp_path / "net.onnx", check=True)
    assert report.passed
    assert report.verdicts[-1].output == "logits of 16 steps"
    assert report.verdicts[-1].remark == "48 of 48 tokens equal"


def test_another_decoder_does_not_pass(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    serde.convert(decoder(1), tmp_path / "other.onnx")
    report = serde.check(decoder(), tmp_path / "other.onnx")
    assert not report.passed
    assert report.verdicts[-1].failed


def test_a_cache_that_forgets_is_found() -> None:
    model, report = decoder(), Report()
    engine = RelayEngine(model)
    judge_generation(engine, engine, model, report)
    judge_generation(engine, Forgetful(engine), model, report)
    assert [each.passed for each in report.verdicts] == [True, False]


# What onnxruntime-genai is told.

FACTS = {
    "vocab_size": 20, "context_length": 64, "hidden_size": 32, "num_attention_heads": 8,
    "bos_token_id": None, "eos_token_id": [2, 3], "pad_token_id": 2,
}  # fmt: skip


def interface(*names: str) -> dict[str, object]:
    shapes = {"input_ids": ("batch", "sequence"), "attention_mask": ("batch", "past + sequence")}
    cache = ("batch", 2, "past", 16)
    return {"inputs": [{"name": name, "shape": shapes.get(name, cache)} for name in names]}


def test_a_decoder_with_its_cache_has_a_config_for_genai() -> None:
    names = ("input_ids", "attention_mask", *STATES.values())
    found = generation_config({"model.onnx": interface(*names)}, FACTS)
    assert found is not None
    model = json.loads(found)["model"]
    assert (model["eos_token_id"], model["pad_token_id"]) == ([2, 3], 2)
    assert "bos_token_id" not in model
    decoder = model["decoder"]
    assert (decoder["num_hidden_layers"], decoder["num_key_value_heads"]) == (1, 2)
    assert decoder["head_size"] == 16
    assert "position_ids" not in decoder["inputs"]


@pytest.mark.parametrize("frames", [3000, 100])
def test_whisper_has_a_config_for_genai_if_it_takes_half_a_minute(frames: int) -> None:
    sound = {"inputs": [{"name": "input_features", "shape": ("batch", 80, frames)}]}
    cache = [f"past_key_values.0.{own}.{kind}" for own in ("decoder", "encoder") for kind in
             ("key", "value")]  # fmt: skip
    parts = {"encoder_model.onnx": sound, "decoder_model.onnx": interface("input_ids", *cache)}
    found = generation_config(parts, FACTS)
    assert (found is not None) == (frames == 3000)
    if found is not None:
        model = json.loads(found)["model"]
        assert (model["type"], model["encoder"]["filename"]) == ("whisper", "encoder_model.onnx")
        assert model["encoder"]["inputs"] == {"audio_features": "input_features"}
        decoder = model["decoder"]
        assert decoder["inputs"]["cross_past_value_names"] == "past_key_values.%d.encoder.value"
        assert decoder["outputs"]["present_key_names"] == "present.%d.decoder.key"


@pytest.mark.parametrize(
    ("names", "facts"),
    [
        (("input_ids",), FACTS),
        (("input_ids", *STATES.values()), {}),
        (("input_ids", *STATES.values(), "past_key_values.0.conv"), FACTS),
    ],
)
def test_what_genai_does_not_run_has_none(
    names: tuple[str, ...], facts: Mapping[str, object]
) -> None:
    assert generation_config({"model.onnx": interface(*names)}, facts) is None
    parts = Parts(("model",), {}, facts)
    assert BRIDGE.runtime_files(parts, {"model.onnx": interface(*names)}) == {}
    assert [*BRIDGE.runtime_files(parts, None)] == [CONFIG]


def _sums(factor: float) -> RelayModel:
    """Return a model whose output is the sum of all that it was given, times a number."""
    row = TensorType((BATCH, 3), "float32")
    given, held = Var("given", row), Var("held", row)
    total = given + held * relay.const(np.float32(factor))
    main = infer_function(Function([given, held], Tuple([relay.tanh(total), total])))
    return RelayModel(IRModule({"main": main}), {}, ModelMeta(("given", "held"), ("out", "total")))


def test_declared_states_are_stepped_through(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    report = serde.convert(_sums(0.9), tmp_path / "a.onnx", states={"held": "total"}, check=True)
    assert report.passed
    steps = [each for each in report.verdicts if each.output.endswith("of 16 steps")]
    assert [each.output for each in steps] == ["out of 16 steps", "total of 16 steps"]
    assert {each.shapes[0] for each in steps} == {(16 * 2 * 3,)}


def test_a_state_that_goes_its_own_way_is_found() -> None:
    """One call is right within its tolerance, and sixteen are not."""
    model = serde.to_relay(_sums(0.9), states={"held": "total"})
    other = serde.to_relay(_sums(0.9004), states={"held": "total"})
    report, engines = Report(), [RelayEngine(each) for each in (model, other)]
    compare_as_used(*engines, model, report=report, tolerance=Tolerance(atol=1e-2))
    once, steps = report.verdicts[:2], report.verdicts[2:]
    assert all(each.passed for each in once)
    assert all(each.failed for each in steps)
