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
