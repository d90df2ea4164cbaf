"""``genai_config.json``: what onnxruntime-genai is told of a decoder with its cache.

The keys are those of release 0.18: https://onnxruntime.ai/docs/genai/reference/config.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any as AnyValue, Final

__all__ = ["CONFIG", "generation_config"]

CONFIG: Final = "genai_config.json"

_TYPE: Final = "llama"
"""Of any decoder that takes tokens and returns logits: GenAI has one loop for all of these."""

_PAST: Final = re.compile(r"past_key_values\.(\d+)\.key")
_NAMES: Final = {
    "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value",
    "present_key_names": "present.%d.key", "present_value_names": "present.%d.value",
}  # fmt: skip


def generation_config(
    filename: str, interface: Mapping[str, AnyValue], facts: Mapping[str, AnyValue]
) -> str | None:
    """Return the config of a decoder; None for what is none.

    Args:
        filename: The model's file.
        interface: Its inputs and outputs, with their shapes.
        facts: What :class:`serde.bridge.parts.Parts` says of it.
    """
    inputs = {each["name"]: each["shape"] for each in interface["inputs"]}
    layers = [name for name in inputs if _PAST.fullmatch(name)]
    past = [name for name in inputs if name.startswith("past_key_values.")]
    if not layers or not facts or len(past) != 2 * len(layers):
        return None
    _, heads, _, size = inputs[layers[0]]
    plain = [x for x in ("input_ids", "attention_mask", "position_ids") if x in inputs]
    names = {
        start: {key: name for key, name in _NAMES.items() if key.startswith(start)}
        for start in ("past", "present")
    }
    decoder = {
        "filename": filename,
        "head_size": size,
        "hidden_size": facts["hidden_size"],
        "num_attention_heads": facts["num_attention_heads"],
        "num_hidden_layers": len(layers),
        "num_key_value_heads": heads,
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "inputs": {**{name: name for name in plain}, **names["past"]},
        "outputs": {"logits": "logits", **names["present"]},
    }
    tokens = {key: facts[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    model = {
        "type": _TYPE,
        "vocab_size": facts["vocab_size"],
        "context_length": facts["context_length"],
        **{key: value for key, value in tokens.items() if value is not None},
        "decoder": decoder,
    }
    search = {
        "max_length": facts["context_length"],
        "do_sample": False,
        "num_beams": 1,
        # The graph returns a longer cache than it is given, in memory of its own.
        "past_present_share_buffer": False,
    }
    return json.dumps({"model": model, "search": search}, indent=2) + "\n"
