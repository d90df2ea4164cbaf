"""What models of transformers are asked to do, and by which of its classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final, Literal, get_args

from serde.core import require
from serde.errors import OptionError

__all__ = ["PARTS", "TASKS", "Task", "choose_class", "parts_of"]

Task = Literal[
    "text-generation", "text2text-generation", "automatic-speech-recognition",
    "feature-extraction", "fill-mask", "text-classification", "image-classification",
    "zero-shot-image-classification",
]  # fmt: skip

TASKS: Final[Mapping[str, Sequence[str]]] = {
    "text-generation": ["AutoModelForCausalLM"],
    "text2text-generation": ["AutoModelForSeq2SeqLM"],
    "automatic-speech-recognition": ["AutoModelForSpeechSeq2Seq", "AutoModelForCTC"],
    "feature-extraction": ["AutoModel"],
    "fill-mask": ["AutoModelForMaskedLM"],
    "text-classification": ["AutoModelForSequenceClassification"],
    "image-classification": ["AutoModelForImageClassification"],
    "zero-shot-image-classification": ["AutoModelForZeroShotImageClassification"],
}
"""The classes of transformers that know, for each config, the class of a task."""

PARTS: Final = ("encoder_model", "decoder_model")
"""What models of which an encoder runs once, and a decoder again and again, come as."""

_PAIRED: Final = ("AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq")


def choose_class(config: AnyValue, task: str | None) -> tuple[type[AnyValue], str, bool]:
    """Return the class of a task, the task, and whether it has an encoder and a decoder.

    Raises:
        OptionError: The family has no such task, or nobody names one.
    """
    wanted = getattr(config, "architectures", None) or ()
    task = task or _task_of(config, wanted)
    for name in TASKS[task]:
        found = _classes(name, config)
        if found:
            chosen = next((x for x in found if x.__name__ in wanted), found[0])
            return chosen, task, name in _PAIRED
    known = [each for each in get_args(Task) if any(_classes(x, config) for x in TASKS[each])]
    raise OptionError(
        f"{config.model_type} has no task {task} (it has: {', '.join(known) or 'none'})"
    )


def _task_of(config: AnyValue, names: Sequence[str]) -> str:
    """Return the one task that classes of these names do."""
    found = [
        task
        for task in get_args(Task)
        if any(each.__name__ in names for x in TASKS[task] for each in _classes(x, config))
    ]
    if len(found) != 1:
        raise OptionError(f"name a task ({', '.join(found or get_args(Task))})")
    return str(found[0])


def parts_of(paired: bool) -> Sequence[str]:
    """Return the names of what a model becomes; none where it stays one."""
    return PARTS if paired else ()


def _classes(name: str, config: AnyValue) -> Sequence[type[AnyValue]]:
    """Return what an automatic class knows for a config."""
    mapping = getattr(require("transformers"), name)._model_mapping
    if type(config) not in mapping:
        return ()
    found = mapping[type(config)]
    return found if isinstance(found, (tuple, list)) else (found,)
