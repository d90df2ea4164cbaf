"""What a checkpoint becomes in a folder: its models, and the files of its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.bridge.parts import Parts
from serde.torch.checkpoint import loading
from serde.torch.checkpoint.files import CONFIG, open_checkpoint, read_config, sidecars
from serde.torch.checkpoint.tasks import choose_class, parts_of

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["find_parts"]

_GENERATION: Final = "generation_config.json"
_TOKENS: Final = ("bos_token_id", "eos_token_id", "pad_token_id")
_LENGTHS: Final = ("max_target_positions", "max_position_embeddings")
_CONTEXT: Final = 2048
"""Tokens of a context of which the config says nothing, as where positions are biases."""


def find_parts(source: AnyValue, options: TorchImportOptions) -> Parts:
    """Return the models of a folder, or of a live module, and what belongs beside them.

    Raises:
        FormatError: The folder is malformed.
        OptionError: It has no such task.
    """
    files: dict[str, Path | str]
    if isinstance(source, Path):
        config, files = loading.load_config(open_checkpoint(source)), {**sidecars(source)}
        files.setdefault(CONFIG, config.to_json_string())
        made = read_config(source, _GENERATION) if _GENERATION in files else {}
    else:
        config, files = source.config, {CONFIG: source.config.to_json_string()}
        generation = getattr(source, "generation_config", None)
        made = {} if generation is None else generation.to_dict()
    _, task, paired = choose_class(config, options.task)
    speaks = paired and task == "automatic-speech-recognition"
    facts = _facts(config, made) if speaks or task == "text-generation" else {}
    return Parts(tuple(parts_of(paired)) or ("model",), files, facts)


def _facts(config: AnyValue, generation: AnyValue) -> dict[str, AnyValue]:
    """Return what a runtime is told, under the names that configs have in common."""
    text = config.get_text_config()
    tokens = {name: generation.get(name, getattr(text, name, None)) for name in _TOKENS}
    ends = tokens["eos_token_id"]
    lengths = [getattr(text, name, None) for name in _LENGTHS]
    first = ends[0] if isinstance(ends, list) and ends else ends
    tokens["pad_token_id"] = first if tokens["pad_token_id"] is None else tokens["pad_token_id"]
    return {
        "vocab_size": text.vocab_size,
        "context_length": next(filter(None, lengths), _CONTEXT),
        "hidden_size": text.hidden_size,
        "num_attention_heads": text.num_attention_heads,
        **tokens,
    }
