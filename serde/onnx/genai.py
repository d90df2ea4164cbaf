"""``genai_config.json``: what onnxruntime-genai is told of a decoder with its cache, or of Whisper.

The keys are those of release 0.18: https://onnxruntime.ai/docs/genai/reference/config.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any as AnyValue, Final

__all__ = ["CONFIG", "generation_config"]

CONFIG: Final = "genai_config.json"

_FRAMES: Final = 3000
"""Of the spectrogram of half a minute, the only one that GenAI gives to Whisper."""


def generation_config(
    interfaces: Mapping[str, Mapping[str, AnyValue]], facts: Mapping[str, AnyValue]
) -> str | None:
    """Return the config of a decoder, or of Whisper; None for what is neither.

    Args:
        interfaces: Inputs and outputs of each model with their shapes, by its file.
        facts: What :class:`serde.bridge.parts.Parts` says of them.
    """
    inputs = {
        name: {each["name"]: each["shape"] for each in interface["inputs"]}
        for name, interface in interfaces.items()
    }
    sound = next((n for n in inputs if [*inputs[n]] == ["input_features"]), None)
    own = "" if sound is None else ".decoder"
    others = [name for name in inputs if name != sound]
    if "cache_position" in inputs[others[0]]:  # GenAI has no such input.
        return None
    past = [x for x in inputs[others[0]] if re.fullmatch(rf"past_key_values\.\d+{own}\.key", x)]
    given = sum(name.startswith("past_key_values.") for name in inputs[others[0]])
    if not facts or len(others) != 1 or not past or given != len(past) * (2 if not own else 4):
        return None
    if sound is not None and inputs[sound]["input_features"][-1] != _FRAMES:
        return None
    _, heads, _, size = inputs[others[0]][past[0]]
    common = {
        "head_size": size,
        "hidden_size": facts["hidden_size"],
        "num_attention_heads": facts["num_attention_heads"] if sound is None else heads,
        "num_hidden_layers": len(past),
        "num_key_value_heads": heads,
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
    }
    plain = ("input_ids", "attention_mask", "position_ids")
    taken = {x: x for x in plain if x in inputs[others[0]]} | _names("past", "past_key_values", own)
    cross = {} if sound is None else _names("cross_past", "past_key_values", ".encoder")
    decoder = {
        "filename": others[0],
        **common,
        "inputs": taken | cross,
        "outputs": {"logits": "logits", **_names("present", "present", own)},
    }
    encoder = {
        "filename": sound,
        **common,
        "inputs": {"audio_features": "input_features"},
        "outputs": {
            "encoder_hidden_states": "last_hidden_state",
            **_names("cross_present", "present", ".encoder"),
        },
    }
    tokens = {key: facts[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    model = {
        # GenAI has one loop for all decoders that take tokens and return logits.
        "type": "llama" if sound is None else "whisper",
        "vocab_size": facts["vocab_size"],
        "context_length": facts["context_length"],
        **{key: value for key, value in tokens.items() if value is not None},
        "decoder": decoder,
        **({} if sound is None else {"encoder": encoder}),
    }
    search = {
        "max_length": facts["context_length"],
        "do_sample": False,
        "num_beams": 1,
        # The graph returns a longer cache than it is given, in memory of its own.
        "past_present_share_buffer": False,
    }
    return json.dumps({"model": model, "search": search}, indent=2) + "\n"


def _names(key: str, name: str, own: str) -> dict[str, str]:
    """Return what keys and values of a cache are called, by the layer's number."""
    return {f"{key}_{kind}_names": f"{name}.%d{own}.{kind}" for kind in ("key", "value")}
