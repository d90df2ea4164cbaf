"""Checkpoints as Core ML packages with states, run by the executor of MIL, against transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import save, transformers
from support.coreml_decoders import Decoder, load_by_coremltools, read_by_transformers

import serde
from serde.coreml.reader import load

torch = pytest.importorskip("torch")
transformers()

pytestmark = pytest.mark.filterwarnings("ignore")

EXPERTS = {"num_local_experts": 3, "num_experts_per_tok": 2}
PROMPT = np.random.default_rng(3).integers(4, 64, 9).tolist()


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run sources here, where torchvision is out of the way."""
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)


@pytest.mark.parametrize(
    ("config", "own"),
    [
        ("LlamaConfig", {}),
        ("GPT2Config", {"n_positions": 64}),
        ("MistralConfig", {"sliding_window": 4}),
        pytest.param("BloomConfig", {"n_layer": 1, "n_head": 2}, marks=pytest.mark.wide),
        pytest.param("Gemma2Config", {"sliding_window": 4, "head_dim": 16}, marks=pytest.mark.wide),
        pytest.param("MixtralConfig", EXPERTS, marks=pytest.mark.wide),
        pytest.param("OPTConfig", {"word_embed_proj_dim": 32}, marks=pytest.mark.wide),
        pytest.param(
            "Lfm2Config", {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]},
            marks=pytest.mark.wide,
        ),
    ],
)  # fmt: skip
def test_it_generates_what_transformers_does(
    tmp_path: Path, config: str, own: dict[str, Any]
) -> None:
    module = save(tmp_path / "in", config, **own)
    for precision, far in (("float16", 5e-2), ("float32", 1e-5)):
        path = tmp_path / f"{precision}.mlpackage"
        serde.convert(
            tmp_path / "in", path, task="text-generation", cache_length=32,
            minimum_deployment_target="iOS18", compute_precision=precision,
            allow={"int64-as-int32"},
        )  # fmt: skip
        load_by_coremltools(path)
        assert bool(load(path).spec.description.state) == (precision == "float16")
        made, found = Decoder(path).generate(PROMPT, 16)
        expected = read_by_transformers(module, PROMPT, made)
        assert np.abs(expected - found).max() <= far * expected.std()
        np.testing.assert_array_equal(expected.argmax(-1), made)


def test_a_recurrence_is_a_state(tmp_path: Path) -> None:
    save(tmp_path / "in", "MambaConfig", state_size=8)
    path = tmp_path / "net.mlpackage"
    report = serde.convert(
        tmp_path / "in", path, task="text-generation", cache_batch=1, check=True,
        minimum_deployment_target="iOS18", compute_precision="float32", cache="states",
    )  # fmt: skip
    assert [each.output for each in report.verdicts if not each.passed] == []
    names = [each.name for each in load(path).spec.description.state]
    assert names == ["past_key_values_0_conv", "past_key_values_0_recurrent"]


def test_a_folder_has_the_package_and_the_tokenizer(tmp_path: Path) -> None:
    save(tmp_path / "in", "LlamaConfig")
    (tmp_path / "in" / "tokenizer.json").write_text("{}")
    report = serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="coreml", task="text-generation",
        cache_length=32, minimum_deployment_target="iOS18", check=True,
    )  # fmt: skip
    assert report.verdicts[-1].remark == "16 of 16 tokens equal"
    assert {each.name for each in (tmp_path / "out").iterdir()} >= {
        "model.mlpackage", "tokenizer.json", "config.json",
    }  # fmt: skip


def test_of_an_encoder_and_a_decoder_the_decoder_keeps_states(tmp_path: Path) -> None:
    save(
        tmp_path / "in", "T5Config", "AutoModelForSeq2SeqLM", d_model=32, d_kv=16, d_ff=48,
        num_layers=1, num_heads=2, vocab_size=64, decoder_start_token_id=0, pad_token_id=0,
        eos_token_id=1,
    )  # fmt: skip
    report = serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="coreml", task="text2text-generation",
        cache_length=32, minimum_deployment_target="iOS18", check=True, allow={"int64-as-int32"},
    )  # fmt: skip
    assert report.verdicts[-1].remark == "16 of 16 tokens equal"
    kept = {
        part: [x.name for x in load(tmp_path / "out" / f"{part}.mlpackage").spec.description.state]
        for part in ("encoder_model", "decoder_model")
    }
    assert kept == {
        "encoder_model": [],
        "decoder_model": ["past_key_values_0_decoder_key", "past_key_values_0_decoder_value"],
    }


@pytest.mark.parametrize("opset", [17, 24])
def test_onnx_has_the_same_caches_and_no_config_of_genai(opset: int, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    module = save(tmp_path / "in", "LlamaConfig")
    report = serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="onnx", task="text-generation",
        cache_length=32, opset=opset,
    )  # fmt: skip
    assert report.after["TensorScatter" if opset > 23 else "ScatterElements"] == 2
    assert not (tmp_path / "out" / "genai_config.json").exists()
    session = runtime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    kept = [np.full((1, 1, 32, 16), 5, np.float32)] * 2
    ids, made = PROMPT, []
    for _ in range(8):
        first = len(PROMPT) + len(made) - len(ids)
        places = np.arange(first, first + len(ids))
        names = [each.name for each in session.get_inputs()]
        given = dict(zip(names, [np.array([ids]), places, *kept], strict=True))
        found, *kept = session.run(None, given)
        made.append(int(found[0, -1].argmax()))
        ids = made[-1:]
    expected = read_by_transformers(module, PROMPT, made)
    np.testing.assert_array_equal(expected.argmax(-1), made)
