"""Files of GGUF made of modules of transformers, by the package of llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

NAMES: Mapping[str, str] = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}  # fmt: skip
"""Layers of a decoder as llama.cpp calls them, in families whose norms are two."""
GEMMA: Mapping[str, str] = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip
WHOLE = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
}  # fmt: skip


def write_gguf(path: Path, module: Any, family: str, kind: str, **facts: Any) -> None:
    """Write a module's weights; matrices as blocks of a type of ggml's.

    The module gets the numbers that these stand for.
    """
    import gguf
    import torch

    config, writer = module.config, gguf.GGUFWriter(path, family)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters.get("rope_theta", 10000.0))
    writer.add_vocab_size(config.vocab_size)
    for name, value in facts.items():
        getattr(writer, name)(value)
    norms = GEMMA if family.startswith("gemma") else {"post_attention_layernorm": "ffn_norm"}
    wanted = getattr(gguf.GGMLQuantizationType, kind)
    state = module.state_dict()
    for name, tensor in state.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        layer, _, end = name.rpartition(".")
        if layer in WHOLE:
            known = WHOLE[layer]
        else:
            _, _, number, rest = layer.split(".", 3)
            known = f"blk.{number}.{ {**NAMES, **norms}[rest] }"
        values = tensor.numpy().astype(np.float32)
        if family == "llama" and known.endswith(("attn_q", "attn_k")):
            heads = config.num_attention_heads if known[-1] == "q" else config.num_key_value_heads
            values = _pair(values, heads)
        if family.startswith("gemma") and "norm" in known:
            values = values + 1
        blocks = wanted if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        packed = gguf.quants.quantize(values, blocks)
        writer.add_tensor(f"{known}.{end}", packed, raw_dtype=blocks)
        found = gguf.quants.dequantize(packed, blocks)
        if family == "llama" and known.endswith(("attn_q", "attn_k")):
            found = _split(found, heads)
        if family.startswith("gemma") and "norm" in known:
            found = found - 1
        tensor.copy_(torch.from_numpy(np.ascontiguousarray(found)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _pair(values: np.ndarray, heads: int) -> np.ndarray:
    """Return rows with the two numbers that an angle turns side by side, as llama.cpp has them."""
    parts = values.reshape(heads, 2, -1, *values.shape[1:])
    return np.ascontiguousarray(parts.swapaxes(1, 2).reshape(values.shape))


def _split(values: np.ndarray, heads: int) -> np.ndarray:
    parts = values.reshape(heads, -1, 2, *values.shape[1:])
    return parts.swapaxes(1, 2).reshape(values.shape)
