"""Checkpoints and modules of transformers, against what transformers itself generates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import save, transformers, write_safetensors

import serde
from serde.core.weights import FileWeight
from serde.relay.run.computed import ComputedWeight

torch = pytest.importorskip("torch")
transformers()
runtime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore")

EXPERTS = {"num_local_experts": 3, "num_experts_per_tok": 2}
PAIRED = {
    "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2, "vocab_size": 64,
    "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
STEPS = 6


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run sources here, where torchvision is out of the way."""
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)


def session(path: Path) -> Any:
    return runtime.InferenceSession(str(path))


def empty(net: Any, batch: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a past of no length; states of a recurrence are zero."""
    return {
        each.name: np.zeros(
            [batch if d == "batch" else 0 if isinstance(d, str) else d for d in each.shape],
            np.float32,
        )
        for each in net.get_inputs()
        if each.name.startswith("past") and each.name not in given
    }


def generate(net: Any, ids: Any, mask: Any) -> Any:
    """Return the tokens of some greedy steps, each from the cache of that before."""
    names, made = [each.name for each in net.get_inputs()], []
    past, feed = empty(net, len(ids), {}), ids
    for _ in range(STEPS):
        place = np.maximum(mask.cumsum(1) - 1, 0)[:, -feed.shape[1] :]
        given = {"input_ids": feed, "attention_mask": mask, "position_ids": place, **past}
        scores, *present = net.run(None, {name: given[name] for name in names})
        past = dict(zip(past, present, strict=True))
        feed = scores[:, -1:].argmax(-1)
        made.append(feed)
        mask = np.concatenate([mask, np.ones_like(feed)], 1)
    return np.concatenate(made, 1)


@pytest.mark.parametrize(
    ("config", "own"),
    [
        ("LlamaConfig", {}),
        ("GPT2Config", {"n_positions": 64}),
        ("MistralConfig", {"sliding_window": 4}),
        ("MixtralConfig", EXPERTS),
        ("Lfm2Config", {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}),
    ],
)
def test_a_decoder_generates_what_transformers_does(
    tmp_path: Path, config: str, own: dict[str, Any]
) -> None:
    module = save(tmp_path / "in", config, **own)
    serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx")
    ids = np.random.default_rng(0).integers(3, 64, (2, 5))
    mask = np.ones_like(ids)
    mask[1, :2] = 0
    with torch.no_grad():
        expected = module.generate(
            torch.tensor(ids), attention_mask=torch.tensor(mask), do_sample=False,
            max_new_tokens=STEPS, min_new_tokens=STEPS, eos_token_id=63,
        )  # fmt: skip
    found = generate(session(tmp_path / "out" / "model.onnx"), ids, mask)
    np.testing.assert_array_equal(found, expected[:, 5:].numpy())


def test_inputs_outputs_and_states_have_the_names_that_runtimes_expect(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    model = serde.to_relay(tmp_path / "in", task="text-generation")
    cache = "[(batch, 1, past, 16), float32]"
    assert {each.name_hint: repr(each.type) for each in model.inputs()} == {
        "input_ids": "Tensor[(batch, sequence), int64]",
        "attention_mask": "Tensor[(batch, past + sequence), int64]",
        "position_ids": "Tensor[(batch, sequence), int64]",
        "past_key_values.0.key": f"Tensor{cache}",
        "past_key_values.0.value": f"Tensor{cache}",
    }
    assert model.meta.outputs == ("logits", "present.0.key", "present.0.value")
    assert model.meta.states == {
        "present.0.key": "past_key_values.0.key",
        "present.0.value": "past_key_values.0.value",
    }


def test_weights_stay_in_their_files(tmp_path: Path) -> None:
    module = save(tmp_path / "in", "MixtralConfig", tie_word_embeddings=True, **EXPERTS)
    model = serde.to_relay(tmp_path / "in", task="text-generation")
    expected = module.state_dict()
    computed = {name for name, each in model.params.items() if isinstance(each, ComputedWeight)}
    stored = {name for name, each in model.params.items() if isinstance(each, FileWeight)}
    layer = "model.layers.0.mlp.experts"
    assert computed == {f"{layer}.gate_up_proj", f"{layer}.down_proj"}
    assert {*model.params} - computed - stored == {"model.rotary_emb.inv_freq"}
    assert len({*model.params} & {"lm_head.weight", "model.embed_tokens.weight"}) == 1
    for name in computed | stored:
        np.testing.assert_array_equal(model.params[name].array(), expected[name].numpy())


def test_a_check_generates_and_the_folder_is_what_genai_reads(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    (tmp_path / "in" / "tokenizer.json").write_text("{}")
    report = serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", check=True)
    assert report.passed
    (tokens,) = [each for each in report.verdicts if each.output.startswith("logits of")]
    assert tokens.remark == "48 of 48 tokens equal"
    assert {each.name for each in (tmp_path / "out").iterdir()} == {
        "config.json", "generation_config.json", "genai_config.json", "model.onnx",
        "tokenizer.json",
    }  # fmt: skip
    found = json.loads((tmp_path / "out" / "genai_config.json").read_text())
    assert found["model"]["decoder"]["num_key_value_heads"] == 1
    assert found["model"]["decoder"]["head_size"] == 16
    assert found["model"]["eos_token_id"] == 2
    assert found["search"]["past_present_share_buffer"] is False


def test_an_encoder_and_a_decoder_become_two_models(tmp_path: Path) -> None:
    module = save(tmp_path / "in", "T5Config", "AutoModelForSeq2SeqLM", **PAIRED)
    report = serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", check=True)
    assert report.facts["parts"] == ["encoder_model.onnx", "decoder_model.onnx"]
    encoder, decoder = (session(tmp_path / "out" / name) for name in report.facts["parts"])
    ids, mask = np.random.default_rng(0).integers(2, 64, (2, 7)), np.ones((2, 7), np.int64)
    mask[1, 4:] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    with torch.no_grad():
        expected = module.generate(
            **{name: torch.tensor(each) for name, each in given.items()}, do_sample=False,
            max_new_tokens=STEPS, min_new_tokens=STEPS, eos_token_id=63,
        )  # fmt: skip
    names = [each.name for each in encoder.get_outputs()]
    cross = {
        name.replace("present", "past_key_values"): each
        for name, each in zip(names, encoder.run(None, given), strict=True)
        if name.startswith("present")
    }
    past, feed, made = empty(decoder, 2, cross), np.zeros((2, 1), np.int64), []
    for _ in range(STEPS):
        inputs = {"input_ids": feed, "encoder_attention_mask": mask, **cross, **past}
        scores, *present = decoder.run(None, inputs)
        past = dict(zip(past, present, strict=True))
        feed = scores[:, -1:].argmax(-1)
        made.append(feed)
    np.testing.assert_array_equal(np.concatenate(made, 1), expected[:, 1:].numpy())


@pytest.mark.parametrize(
    ("config", "own"),
    [
        ("LlamaConfig", {}),
        ("MistralConfig", {"sliding_window": 4}),
        ("Gemma2Config", {"sliding_window": 4, "head_dim": 16, "num_hidden_layers": 2}),
        ("Phi3Config", {}),
        ("MixtralConfig", EXPERTS),
    ],
)
def test_operators_of_onnx_runtime_compute_what_transformers_does(
    tmp_path: Path, config: str, own: dict[str, Any]
) -> None:
    save(tmp_path / "in", config, **own)
    report = serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="onnx", runtime="onnxruntime", check=True
    )
    assert report.passed
    assert not any("stay as they are" in note for note in report.notes)
    layers = own.get("num_hidden_layers", 1)
    assert report.after["com.microsoft.GroupQueryAttention"] == layers
    assert report.after["com.microsoft.MoE"] == (config == "MixtralConfig")
    assert not {"Softmax", "Pow", "ReduceMean"} & {*report.after}


@pytest.mark.parametrize("target_format", ["torch", "relax"])
def test_a_decoder_generates_elsewhere(tmp_path: Path, target_format: str) -> None:
    pytest.importorskip("tvm" if target_format == "relax" else "torch")
    save(tmp_path / "in", "LlamaConfig")
    report = serde.convert(
        tmp_path / "in", tmp_path / "out", target_format=target_format, check=True
    )
    assert report.passed
    (tokens,) = [each for each in report.verdicts if each.output.startswith("logits of")]
    assert tokens.remark == "48 of 48 tokens equal"


def test_a_live_module_is_read_by_task_and_stays_as_it_is(tmp_path: Path) -> None:
    module = save(tmp_path / "in", "LlamaConfig")
    module.train()
    before = {name: each.clone() for name, each in module.state_dict().items()}
    serde.convert(module, tmp_path / "live.onnx", task="text-generation", check=True)
    serde.convert(tmp_path / "in", tmp_path / "stored.onnx", check=True)
    assert (tmp_path / "live.onnx").read_bytes() == (tmp_path / "stored.onnx").read_bytes()
    assert module.training
    assert all(torch.equal(each, before[name]) for name, each in module.state_dict().items())


def test_a_recurrence_takes_one_token_at_a_time_and_says_so(tmp_path: Path) -> None:
    save(tmp_path / "in", "MambaConfig", state_size=4)
    report = serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", check=True)
    assert any(each.startswith("takes one token at a time") for each in report.notes)
    net = session(tmp_path / "out" / "model.onnx")
    assert net.get_inputs()[0].shape == ["batch", 1]
    assert not (tmp_path / "out" / "genai_config.json").exists()


@pytest.mark.parametrize(
    ("task", "auto", "outputs"),
    [
        ("fill-mask", "AutoModelForMaskedLM", ["logits"]),
        ("feature-extraction", "AutoModel", ["last_hidden_state", "pooler_output"]),
        ("text-classification", "AutoModelForSequenceClassification", ["logits"]),
    ],
)
def test_tasks_without_a_cache(tmp_path: Path, task: str, auto: str, outputs: list[str]) -> None:
    module = save(tmp_path / "in", "BertConfig", auto)
    serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", task=task)
    net = session(tmp_path / "out" / "model.onnx")
    assert [each.name for each in net.get_outputs()] == outputs
    ids = np.random.default_rng(0).integers(3, 64, (2, 6))
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": 0 * ids}
    given["attention_mask"][1, 4:] = 0
    with torch.no_grad():
        expected = module(**{name: torch.tensor(each) for name, each in given.items()})
    for name, found in zip(outputs, net.run(None, given), strict=True):
        rows = found[given["attention_mask"] == 1] if found.shape[:2] == ids.shape else found
        wanted = expected[name].numpy()
        wanted = wanted[given["attention_mask"] == 1] if found.shape[:2] == ids.shape else wanted
        np.testing.assert_allclose(rows, wanted, atol=1e-4)


def test_weights_in_another_dtype_are_computed_piece_by_piece(tmp_path: Path) -> None:
    module = save(tmp_path / "in", "LlamaConfig")
    module.to(torch.bfloat16).save_pretrained(tmp_path / "narrow")
    model = serde.to_relay(tmp_path / "narrow", dtype="float32")
    weight = model.params["lm_head.weight"]
    assert (weight.dtype, type(weight)) == ("float32", ComputedWeight)
    expected = module.lm_head.weight.detach().float().numpy()
    np.testing.assert_array_equal(weight.array(), expected)


# What is refused.


def refused(tmp_path: Path, said: str, **options: Any) -> None:
    with pytest.raises(serde.SerdeError, match=said):
        serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", **options)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in"]


def stored(folder: Path) -> dict[str, Any]:
    """Return the weights of a folder as arrays."""
    from serde.torch.checkpoint.files import open_checkpoint

    return {name: each.array() for name, each in open_checkpoint(folder).weights.items()}


def test_a_task_that_the_family_has_not(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    refused(tmp_path, "llama has no task fill-mask", task="fill-mask")


def test_a_family_that_transformers_does_not_know(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    (tmp_path / "in" / "config.json").write_text('{"model_type": "mine"}')
    refused(tmp_path, "mine")


def test_a_vocabulary_that_does_not_fit(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    config = json.loads((tmp_path / "in" / "config.json").read_text())
    (tmp_path / "in" / "config.json").write_text(json.dumps({**config, "vocab_size": 65}))
    refused(tmp_path, r"expected \[65, 32\]|mismatch|size")


def test_a_weight_that_is_missing(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    arrays = stored(tmp_path / "in")
    del arrays["model.norm.weight"]
    write_safetensors(tmp_path / "in" / "model.safetensors", arrays)
    refused(tmp_path, r"the weight model\.norm\.weight is missing")


def test_tied_weights_that_differ(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig", tie_word_embeddings=True)
    arrays = stored(tmp_path / "in")
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"] + 1
    write_safetensors(tmp_path / "in" / "model.safetensors", arrays)
    refused(tmp_path, "tied weights differ")


def test_tied_weights_that_are_stored_twice_are_one(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig", tie_word_embeddings=True)
    arrays = stored(tmp_path / "in")
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
    write_safetensors(tmp_path / "in" / "model.safetensors", arrays)
    params = serde.to_relay(tmp_path / "in").params
    assert len({*params} & {"lm_head.weight", "model.embed_tokens.weight"}) == 1


def test_nothing_is_fetched_and_no_code_is_run(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    config = json.loads((tmp_path / "in" / "config.json").read_text())
    own = {**config, "auto_map": {"AutoModelForCausalLM": "modeling.Own"}}
    (tmp_path / "in" / "config.json").write_text(json.dumps(own))
    (tmp_path / "in" / "modeling.py").write_text("raise SystemExit('was run')\n")
    refused(tmp_path, "never run")


def test_an_encoder_and_a_decoder_are_no_single_file(tmp_path: Path) -> None:
    save(tmp_path / "in", "T5Config", "AutoModelForSeq2SeqLM", **PAIRED)
    with pytest.raises(serde.OptionError, match="name a folder, or part: encoder_model"):
        serde.convert(tmp_path / "in", tmp_path / "net.onnx")


def test_a_folder_of_others_is_not_replaced(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(serde.OptionError, match="expected a package to replace"):
        serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx")
