"""Tiny checkpoints of Hugging Face: with random weights, as its package saves them, and by hand."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

TEXT: Mapping[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip

SPEECH = {
    "vocab_size": 64, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "num_mel_bins": 16, "max_source_positions": 50,
    "max_target_positions": 80, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    "decoder_start_token_id": 3,
}  # fmt: skip


def transformers() -> Any:
    """Return the package, which does without a torchvision that does not fit PyTorch."""
    try:
        import torchvision  # noqa: F401
    except Exception:
        sys.modules["torchvision"] = None  # type: ignore[assignment]
    package = pytest.importorskip("transformers")
    package.utils.logging.disable_progress_bar()
    package.utils.logging.set_verbosity_error()
    return package


def save(folder: Path, config: str, auto: str = "AutoModelForCausalLM", **own: Any) -> Any:
    """Save a tiny model of a config's class; return it."""
    import torch

    package = transformers()
    torch.manual_seed(0)
    given = {**({} if "d_model" in own else TEXT), **own}
    module = getattr(package, auto).from_config(getattr(package, config)(**given)).eval()
    with torch.no_grad():  # As initialised, all scores are nearly one.
        for each in module.parameters():
            each.mul_(6.0 if each.ndim > 1 else 1.0)
    module.save_pretrained(folder)
    return module


def save_speech(folder: Path, **own: Any) -> tuple[Any, Any]:
    """Save a tiny Whisper with its feature extractor, of a second; return both."""
    import torch

    package = transformers()
    module = save(folder, "WhisperConfig", "AutoModelForSpeechSeq2Seq", **SPEECH)
    with torch.no_grad():  # Each step says another token, and each sound others.
        module.model.decoder.embed_positions.weight.normal_()
        module.model.decoder.layers[0].encoder_attn.out_proj.weight.mul_(3)
    tokens = {name: each for name, each in SPEECH.items() if name.endswith("token_id")}
    module.generation_config = package.GenerationConfig(**tokens)
    module.save_pretrained(folder)
    extractor = package.WhisperFeatureExtractor(16, chunk_length=1, **own)
    extractor.save_pretrained(folder)
    return module, extractor


def write_safetensors(path: Path, arrays: Mapping[str, Any], **ends: tuple[int, int]) -> None:
    """Write float32 arrays as safetensors, some with other offsets than they have."""
    header, data = {}, b""
    for name, each in arrays.items():
        bytes_ = np.asarray(each, np.float32).tobytes()
        own = ends.get(name, (len(data), len(data) + len(bytes_)))
        shape = list(np.shape(each))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": list(own)}
        data += bytes_
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_folder(
    folder: Path, shards: Mapping[str, Mapping[str, Any]], config: Mapping[str, Any] | None = None
) -> Path:
    """Write a folder with a config and shards of weights by hand, with their index."""
    folder.mkdir(exist_ok=True)
    text = json.dumps({"model_type": "llama"} if config is None else dict(config))
    (folder / "config.json").write_text(text)
    for name, arrays in shards.items():
        write_safetensors(folder / name, arrays)
    index = {tensor: name for name, arrays in shards.items() for tensor in arrays}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return folder
