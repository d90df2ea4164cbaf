"""Whisper from samples of sound, against transformers' feature extractor and model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import save_speech, transformers

import serde

torch = pytest.importorskip("torch")
package = transformers()
runtime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings("ignore")

STEPS = 60


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run sources here, where torchvision is out of the way."""
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)


def sounds(length: int) -> Any:
    """Return two sounds: a rising tone that is struck, and one in a little noise."""
    rng, time = np.random.default_rng(0), np.arange(length) / 16000
    struck = np.sin(2 * np.pi * (200 + 300 * time) * time) * (np.sin(40 * time) > 0)
    quiet = 0.1 * np.sin(5000 * time) + 0.001 * rng.standard_normal(length)
    return np.stack([struck, quiet]).astype(np.float32)


@pytest.mark.parametrize("length", [11_200, 16_777])
def test_samples_become_the_tokens_that_transformers_generates(tmp_path: Path, length: int) -> None:
    module, extractor = save_speech(tmp_path / "in")
    report = serde.convert(
        tmp_path / "in", tmp_path / "out", target_format="onnx", raw_audio=True, check=True
    )
    assert report.passed
    encoder, decoder = (
        runtime.InferenceSession(str(tmp_path / "out" / name)) for name in report.facts["parts"]
    )
    audio = sounds(length)
    features = extractor([*audio], sampling_rate=16000, return_tensors="pt").input_features
    with torch.no_grad():
        hidden = module.model.encoder(features).last_hidden_state.numpy()
        expected = module.generate(
            features, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False, num_beams=1
        )
    found, *cross = encoder.run(None, {"audio": audio})
    assert np.abs(found - hidden).max() < 1e-4 * hidden.std()
    names = [each.name for each in decoder.get_inputs()]
    given = dict(zip([x for x in names if ".encoder." in x], cross, strict=True))
    past = {x: np.zeros((2, 2, 0, 16), np.float32) for x in names if ".decoder." in x}
    tokens = [np.full((2, 1), 3)]
    for _ in range(STEPS):
        scores, *present = decoder.run(None, {"input_ids": tokens[-1], **given, **past})
        past = dict(zip(past, present, strict=True))
        scores[..., 2] = -np.inf  # min_new_tokens keeps the end away.
        tokens.append(scores[:, -1:].argmax(-1))
    made = np.concatenate(tokens[1:], 1)
    assert len(np.unique(made)) > 10
    assert (made[0] != made[1]).any()
    np.testing.assert_array_equal(made, expected[:, -STEPS:].numpy())


def test_the_spectrogram_is_the_extractor_s(tmp_path: Path) -> None:
    save_speech(tmp_path / "in")
    model = serde.to_relay(tmp_path / "in", part="encoder_model", raw_audio=True)
    (audio,) = model.inputs()
    assert repr(audio.type) == "Tensor[(batch, samples), float32]"
    # The decoder is the same.
    model = serde.to_relay(tmp_path / "in", part="decoder_model", raw_audio=True)
    assert "audio" not in {each.name_hint for each in model.inputs()}


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({"dither": 0.1}, "expected a WhisperFeatureExtractor without dither"),
        ({"hop_length": 80}, r"its spectrograms are \[16, 200\], the model takes \[16, 100\]"),
    ],
)
def test_another_spectrogram_is_refused(tmp_path: Path, own: dict[str, Any], told: str) -> None:
    save_speech(tmp_path / "in", **own)
    with pytest.raises(serde.OptionError, match=told):
        serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", raw_audio=True)


def test_a_folder_without_an_extractor_is_refused(tmp_path: Path) -> None:
    module, _ = save_speech(tmp_path / "in")
    (tmp_path / "in" / "preprocessor_config.json").unlink()
    with pytest.raises(serde.FormatError, match="feature extractor"):
        serde.convert(tmp_path / "in", tmp_path / "out", target_format="onnx", raw_audio=True)
    with pytest.raises(serde.OptionError, match="is of a checkpoint"):
        serde.to_relay(
            module, part="encoder_model", raw_audio=True, task="automatic-speech-recognition"
        )
