"""Pipelines of diffusers as folders of ONNX models, against diffusers itself."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.pipelines import CLIP, FLUX, SD3, T5, UNET, VAE, diffusers, save, save_stable_diffusion

import serde
from serde.core.weights import FileWeight
from serde.relay.run.computed import ComputedWeight

torch = pytest.importorskip("torch")
runtime = pytest.importorskip("onnxruntime")
package = diffusers()
texts = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")

NEAR = 1e-4
"""Of the spread of what diffusers gives."""


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run sources here, where torchvision is out of the way."""
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)


class Runs:
    """The models of a folder, which take tensors by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, part: str, **given: Any) -> dict[str, Any]:
        session = runtime.InferenceSession(str(self._folder / part / "model.onnx"))
        found = session.run(None, {name: each.numpy() for name, each in given.items()})
        names = [each.name for each in session.get_outputs()]
        return {name: torch.tensor(each) for name, each in zip(names, found, strict=True)}


def check(expected: Any, found: Any) -> None:
    """Compare tensors, of which the first is to say something."""
    assert expected.std() > 0.1
    assert expected.shape == found.shape
    assert float((expected - found).abs().max() / expected.std()) < NEAR


def encode(parts: Mapping[str, Any], ids: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return the condition of an image, and what XL takes beside it, as its pipeline computes."""
    first = parts["text_encoder"](ids, output_hidden_states=True)
    if "text_encoder_2" not in parts:
        return first.last_hidden_state, first, {}
    second = parts["text_encoder_2"](ids, output_hidden_states=True)
    both = torch.cat([first.hidden_states[-2], second.hidden_states[-2]], -1)
    sizes = torch.tensor([[48.0, 32.0, 0.0, 0.0, 48.0, 32.0]] * len(ids))
    return both, first, {"text_embeds": second.text_embeds, "time_ids": sizes}


def encode_by(models: Runs, ids: Any, xl: bool) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return the same as the written models compute it."""
    first = models("text_encoder", input_ids=ids.int())
    if not xl:
        return first["last_hidden_state"], first, {}
    second = models("text_encoder_2", input_ids=ids.int())
    both = torch.cat([first["hidden_states.1"], second["hidden_states.1"]], -1)
    sizes = torch.tensor([[48.0, 32.0, 0.0, 0.0, 48.0, 32.0]] * len(ids))
    return both, first, {"text_embeds": second["text_embeds"], "time_ids": sizes}


@pytest.mark.parametrize("xl", [False, pytest.param(True, marks=pytest.mark.wide)])
def test_a_text_becomes_the_image_that_diffusers_makes(tmp_path: Path, xl: bool) -> None:
    parts = save_stable_diffusion(tmp_path / "sd", xl=xl)
    serde.convert(tmp_path / "sd", tmp_path / "out", target_format="onnx")
    models, scheduler = Runs(tmp_path / "out"), parts["scheduler"]
    torch.manual_seed(1)
    ids = torch.randint(0, 52, (2, 11))
    ids[:, -1] = 53
    scheduler.set_timesteps(3)
    other = deepcopy(scheduler)
    # Of another size than the example that was exported, and no square.
    expected = found = torch.randn(2, 4, 12, 10) * scheduler.init_noise_sigma
    with torch.no_grad():
        condition, encoded, more = encode(parts, ids)
        own, own_encoded, own_more = encode_by(models, ids, xl)
        check(encoded.pooler_output, own_encoded["pooler_output"])
        check(condition, own)
        for step in scheduler.timesteps:
            noisy = scheduler.scale_model_input(expected, step)
            noise = parts["unet"](noisy, step, condition, added_cond_kwargs=more).sample
            noisy = other.scale_model_input(found, step)
            given = {"sample": noisy, "timestep": step.reshape(1), "encoder_hidden_states": own}
            own_noise = models("unet", **given, **own_more)["out_sample"]
            check(noise, own_noise)
            expected = scheduler.step(noise, step, expected).prev_sample
            found = other.step(own_noise, step, found).prev_sample
        image = models("vae_decoder", latent_sample=found)["sample"]
        check(parts["vae"].decode(expected).sample, image)
        latents = parts["vae"].encode(image).latent_dist.parameters
        check(latents, models("vae_encoder", sample=image)["latent_parameters"])


def test_the_folder_is_what_onnx_pipelines_read(tmp_path: Path) -> None:
    save_stable_diffusion(tmp_path / "sd")
    report = serde.convert(tmp_path / "sd", tmp_path / "out", target_format="onnx", check=True)
    assert report.passed
    found = [each for each in (tmp_path / "out").rglob("*") if each.is_file()]
    models = ["text_encoder", "unet", "vae_decoder", "vae_encoder"]
    assert {each.relative_to(tmp_path / "out").as_posix() for each in found} == {
        "model_index.json", "scheduler/scheduler_config.json", "tokenizer/vocab.json",
        *(f"{name}/{file}" for name in models for file in ("config.json", "model.onnx")),
    }  # fmt: skip
    unet = runtime.InferenceSession(str(tmp_path / "out" / "unet" / "model.onnx"))
    assert {each.name: each.shape for each in unet.get_inputs()} == {
        "sample": ["batch", 4, "2*height", "2*width"], "timestep": [1],
        "encoder_hidden_states": ["batch", "sequence", 32],
    }  # fmt: skip


@pytest.mark.wide
def test_a_transformer_takes_pictures_of_any_size(tmp_path: Path) -> None:
    kind = package.SD3Transformer2DModel
    (module,) = save(tmp_path / "sd3", "StableDiffusion3Pipeline", transformer=(kind, SD3)).values()
    given = {
        "hidden_states": torch.randn(2, 4, 16, 12), "encoder_hidden_states": torch.randn(2, 5, 32),
        "pooled_projections": torch.randn(2, 48), "timestep": torch.tensor([7.0, 500.0]),
    }  # fmt: skip
    serde.convert(tmp_path / "sd3", tmp_path / "out", target_format="onnx")
    found = Runs(tmp_path / "out")("transformer", **given)["out_hidden_states"]
    # As it is loaded again: the export has not touched it.
    module = kind.from_pretrained(tmp_path / "sd3" / "transformer", low_cpu_mem_usage=False)
    with torch.no_grad():
        check(module(**given).sample, found)


@pytest.mark.wide
def test_flux_and_its_text_encoder(tmp_path: Path) -> None:
    kinds = {
        "text_encoder_2": (texts.T5EncoderModel, T5),
        "transformer": (package.FluxTransformer2DModel, FLUX),
    }
    parts = save(tmp_path / "flux", "FluxPipeline", **kinds)
    serde.convert(tmp_path / "flux", tmp_path / "out", target_format="onnx")
    models, ids = Runs(tmp_path / "out"), torch.arange(14).reshape(2, 7)
    places = torch.stack([torch.zeros(6), torch.arange(6) // 3, torch.arange(6) % 3], -1)
    with torch.no_grad():
        condition = parts["text_encoder_2"](ids).last_hidden_state
        check(condition, models("text_encoder_2", input_ids=ids.int())["last_hidden_state"])
        given = {
            "hidden_states": torch.randn(2, 6, 16), "encoder_hidden_states": condition,
            "pooled_projections": torch.randn(2, 32), "timestep": torch.tensor([0.1, 0.9]),
            "img_ids": places, "txt_ids": torch.zeros(7, 3), "guidance": torch.tensor([3.5, 3.5]),
        }  # fmt: skip
        expected = parts["transformer"](**given).sample
    check(expected, models("transformer", **given)["out_hidden_states"])


def test_weights_stay_in_their_files_under_the_names_of_older_releases(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    saved = save(tmp_path / "sd", "AutoPipeline", vae=(package.AutoencoderKL, VAE))["vae"]
    stored = tmp_path / "sd" / "vae" / "diffusion_pytorch_model.safetensors"
    older = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
    state = load_file(stored)
    for new, old in older.items():
        state = {name.replace(f".{new}.", f".{old}."): each for name, each in state.items()}
    save_file({name: each.half() for name, each in state.items()}, stored)
    expected = saved.half().state_dict()
    model = serde.to_relay(tmp_path / "sd", part="vae_encoder/model")
    assert {type(each) for each in model.params.values()} == {FileWeight}
    assert "encoder.mid_block.attentions.0.to_q.weight" in model.params
    for name, each in model.params.items():
        np.testing.assert_array_equal(each.array(), expected[name].numpy())
    model = serde.to_relay(tmp_path / "sd", part="vae_encoder/model", dtype="float32")
    assert {type(each) for each in model.params.values()} == {ComputedWeight}
    assert {each.dtype for each in model.params.values()} == {"float32"}


def _fault(tmp_path: Path, **config: Any) -> Path:
    """Return a folder of one UNet whose config is not that of its weights."""
    save(tmp_path / "sd", "AutoPipeline", unet=(package.UNet2DConditionModel, UNET))
    path = tmp_path / "sd" / "unet" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return tmp_path / "sd"


@pytest.mark.parametrize(
    ("config", "kind", "told"),
    [
        ({"out_channels": 5}, "FormatError", r"conv_out.bias: expected \[5\].*found \[4\]"),
        ({"num_class_embeds": 7}, "FormatError", "class_embedding.weight is missing"),
        ({"class_embed_type": "identity"}, "OptionError", "asks for inputs that no pipeline gives"),
        ({"auto_map": {"AutoModel": "x.Y"}}, "FormatError", "never run"),
        ({"quantization_config": {"bits": 4}}, "FormatError", "quantised weights are not read"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(
    tmp_path: Path, config: dict[str, Any], kind: str, told: str
) -> None:
    source = _fault(tmp_path, **config)
    with pytest.raises(getattr(serde, kind), match=told):
        serde.convert(source, tmp_path / "out", target_format="onnx")
    assert not (tmp_path / "out").exists()


def test_what_is_no_part_of_a_pipeline_is_named(tmp_path: Path) -> None:
    source = _fault(tmp_path)
    with pytest.raises(serde.OptionError, match="or part: unet/model"):
        serde.convert(source, tmp_path / "one.onnx")
    with pytest.raises(serde.OptionError, match="is a pipeline"):
        serde.to_relay(source, part="unet/model", task="fill-mask")
    with pytest.raises(serde.OptionError, match="is a pipeline"):
        serde.to_relay(source, part="unet/model", raw_audio=True)
    (source / "model_index.json").write_text(json.dumps({"unet": ["mine", "Own"]}))
    with pytest.raises(serde.OptionError, match=r"unet: nothing is known of mine\.Own"):
        serde.convert(source, tmp_path / "out", target_format="onnx")


@pytest.mark.parametrize("name", ["../x", "vae"])
def test_a_folder_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    source = tmp_path / "sd"
    source.mkdir()
    (source / "vae").symlink_to(tmp_path)
    index = {name: ["diffusers", "AutoencoderKL"]}
    (source / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(serde.FormatError, match="names no folder of it"):
        serde.convert(source, tmp_path / "out", target_format="onnx")


def test_a_class_that_the_package_lacks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _fault(tmp_path)
    monkeypatch.setitem(sys.modules, "diffusers", types.ModuleType("diffusers"))
    with pytest.raises(serde.OptionError, match="diffusers does not load UNet2DConditionModel"):
        serde.convert(source, tmp_path / "out", target_format="onnx")


def test_a_checker_of_images_is_left_out_with_a_word(tmp_path: Path) -> None:
    kinds = {"text_encoder": (texts.CLIPTextModel, CLIP)}
    save(tmp_path / "sd", "StableDiffusionPipeline", **kinds)
    other = texts.CLIPTextModel(texts.CLIPTextConfig(**CLIP))
    other.save_pretrained(tmp_path / "sd" / "safety_checker")
    index = json.loads((tmp_path / "sd" / "model_index.json").read_text())
    index["safety_checker"] = ["stable_diffusion", "StableDiffusionSafetyChecker"]
    (tmp_path / "sd" / "model_index.json").write_text(json.dumps(index))
    report = serde.convert(tmp_path / "sd", tmp_path / "out", target_format="onnx")
    assert any("safety_checker is not converted" in each for each in report.notes)
    assert not (tmp_path / "out" / "safety_checker").exists()


def test_a_folder_is_replaced_if_it_holds_nothing_else(tmp_path: Path) -> None:
    kinds = {"text_encoder": (texts.CLIPTextModel, CLIP)}
    save(tmp_path / "sd", "StableDiffusionPipeline", **kinds)
    for _ in range(2):
        serde.convert(tmp_path / "sd", tmp_path / "out", target_format="onnx")
    (tmp_path / "out" / "text_encoder" / "notes.txt").write_text("mine")
    with pytest.raises(serde.OptionError, match="expected a package to replace"):
        serde.convert(tmp_path / "sd", tmp_path / "out", target_format="onnx")
