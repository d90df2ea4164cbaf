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
        ("Lfm2Config", {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}),
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
