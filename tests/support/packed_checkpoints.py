"""Linear layers as GPTQ and AWQ store them, packed by NumPy as their papers' code does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Which column of eight each nibble of a word is, the lowest bits first."""

WAYS: Mapping[str, Mapping[str, Any]] = {
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False},
    "gptq-sym": {"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": False,
                 "sym": True},
    "gptq-act-order": {"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": True,
                       "sym": False},
    "gptq-8": {"quant_method": "gptq", "bits": 8, "group_size": 32, "desc_act": False,
               "sym": False},
    "gptq-v2": {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False,
                "sym": False, "checkpoint_format": "gptq_v2"},
    "gptq-one-group": {"quant_method": "gptq", "bits": 4, "group_size": -1, "desc_act": False,
                       "sym": False},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 16, "zero_point": True,
            "version": "gemm"},
}  # fmt: skip


def pack_words(values: np.ndarray, bits: int) -> np.ndarray:
    """Return words of 32 bits of the integers along the last axis, the first in the lowest bits."""
    each = 32 // bits
    parts = values.reshape(*values.shape[:-1], -1, each).astype(np.uint32)
    shifts = (bits * np.arange(each)).astype(np.uint32)
    return np.bitwise_or.reduce(parts << shifts, axis=-1).view(np.int32)


def quantize(
    weight: np.ndarray, how: Mapping[str, Any], seed: int = 0
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the tensors of a layer of (outputs, inputs), and the floats that they stand for."""
    outputs, inputs = weight.shape
    bits, size = how["bits"], how["group_size"]
    size = inputs if size == -1 else size
    most = (1 << bits) - 1
    g_idx = np.arange(inputs) // size
    if how.get("desc_act"):
        g_idx = np.random.default_rng(seed).permutation(g_idx)
    groups = -(-inputs // size)
    scales, points = np.empty((groups, outputs), np.float16), np.empty((groups, outputs), int)
    levels = np.empty((inputs, outputs), int)
    for group in range(groups):
        rows = weight.T[g_idx == group].astype(np.float64)
        low, high = np.minimum(rows.min(0), -1e-3), np.maximum(rows.max(0), 1e-3)
        if how.get("sym"):
            high = np.maximum(high, -low)
            low = -high
        scales[group] = (high - low) / most
        # Zero points of GPTQ are stored less one.
        points[group] = np.clip(np.rint(-low / scales[group]), 1, most)
        points[group] = (most + 1) // 2 if how.get("sym") else points[group]
        levels[g_idx == group] = np.clip(np.rint(rows / scales[group]) + points[group], 0, most)
    floats = (levels - points[g_idx]) * scales[g_idx].astype(np.float32)
    if how["quant_method"] == "awq":
        packed = {"qweight": _interleave(levels), "qzeros": _interleave(points)}
    else:
        less = 0 if how.get("checkpoint_format") == "gptq_v2" else 1
        packed = {
            "qweight": np.ascontiguousarray(pack_words(levels.T, bits).T),
            "qzeros": pack_words(points - less, bits),
            "g_idx": g_idx.astype(np.int32),
        }
    return {**packed, "scales": scales}, np.ascontiguousarray(floats.T.astype(np.float32))


def _interleave(values: np.ndarray) -> np.ndarray:
    ordered = values.reshape(len(values), -1, 8)[..., list(AWQ_ORDER)]
    return pack_words(ordered.reshape(len(values), -1), 4)


def pack_folder(
    folder: Path, module: Any, how: Mapping[str, Any], turned: tuple[str, ...] = ()
) -> Any:
    """Replace a saved checkpoint's linear layers, but for head and router, by packed ones.

    Layers whose names end so have weights of (inputs, outputs), as in GPT-2. What is returned is
    the module with the floats that the packed ones stand for.
    """
    from safetensors.torch import load_file, save_file

    floats = load_file(folder / "model.safetensors")
    packed = dict(floats)
    for place, (name, each) in enumerate(floats.items()):
        layer = name.removesuffix(".weight")
        if each.ndim != 2 or layer.endswith(("lm_head", "gate", "embed_in", "embed_out")):
            continue
        if layer == name or any(x in layer for x in ("embed", "wte", "wpe")):
            continue
        turns = layer.endswith(turned)
        weight = each.float().numpy()
        parts, found = quantize(weight.T if turns else weight, how, place)
        floats[name] = torch_of(found.T if turns else found)
        del packed[name]
        packed |= {f"{layer}.{part}": torch_of(values) for part, values in parts.items()}
    save_file(floats, folder / "model.safetensors", metadata={"format": "pt"})
    judge = type(module).from_pretrained(folder).eval()
    save_file(packed, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": dict(how)}))
    return judge


def torch_of(values: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values))
