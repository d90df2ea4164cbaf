"""How well a model that generates predicts a text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from serde.checking.generating import Prompts
from serde.core import Array, dataclass, require
from serde.engine.base import Engine, first_line
from serde.errors import OptionError
from serde.relay.ir import RelayModel

__all__ = ["Text", "read_text"]

_WINDOW: Final = 512
_STRIDE: Final = 256
"""Tokens that are read at once, and by how many the next window begins later."""

_CONFIG: Final = "config.json"
_POSITIONS: Final = ("max_position_embeddings", "n_positions", "max_sequence_length")
_ROWS: Final = 64
"""Tokens whose scores are held in float64 at a time."""


@dataclass(frozen=True)
class Text:
    """A text as tokens.

    Attributes:
        name: What reports call it.
        tokens: Its tokens.
        window: How many of them are read at once.
    """

    name: str
    tokens: Array
    window: int

    def perplexity(self, prompts: Prompts, engine: Engine) -> float:
        """Return ``exp`` of the mean of what each token but the first costs, in nats.

        Windows overlap: each token is predicted once, by as many as are before it in its window.
        """
        total, end = 0.0, 1
        stride = min(_STRIDE, self.window)
        for start in range(0, len(self.tokens), stride):
            part = self.tokens[start : start + self.window]
            new = start + len(part) - end
            if new <= 0:
                break
            scores = prompts.scores(engine, prompts.begin(part[0]), part[None, 1:])[0]
            total += _cost(scores[-new:], part[-new:])
            end = start + len(part)
        return math.exp(min(total / (len(self.tokens) - 1), 700.0))


def read_text(path: str, files: Sequence[Path], model: RelayModel) -> Text:
    """Return a text in the tokens of a model.

    Args:
        path: The text, in UTF-8.
        files: Those that the model was read from, beside which its tokenizer is.
        model: The model.

    Raises:
        MissingDependency: transformers is not installed.
        OptionError: There is no such text, no tokenizer, or the model reads more than text.
    """
    if not Prompts.reads_text(model):
        raise OptionError("perplexity_text: the model does not generate from tokens alone")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"perplexity_text: {path}: {error}") from error
    folder = files[0].parent if files else None
    if folder is None:
        raise OptionError("perplexity_text: a module in memory has no tokenizer; convert a folder")
    transformers = require("transformers")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        tokens = np.asarray(tokenizer(text, verbose=False)["input_ids"], np.int64)
    except Exception as error:
        told = f"perplexity_text: {folder} has no tokenizer that loads: {first_line(error)}"
        raise OptionError(told) from error
    if len(tokens) < 2:
        raise OptionError(f"perplexity_text: {path}: expected two tokens at least")
    return Text(path, tokens, min(_WINDOW, _most_positions(folder)))


def _most_positions(folder: Path) -> int:
    """Return how many tokens a model knows positions of, as its config says it."""
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return _WINDOW
    config = config if isinstance(config, dict) else {}
    found = [config.get(name) for name in _POSITIONS]
    return min([each for each in found if isinstance(each, int) and each > 1], default=_WINDOW)


def _cost(scores: Array, tokens: Array) -> float:
    """Return what tokens cost by the scores before each of them."""
    total = 0.0
    for start in range(0, len(tokens), _ROWS):
        rows = scores[start : start + _ROWS].astype(np.float64)
        rows -= rows.max(-1, keepdims=True)
        chosen = np.take_along_axis(rows, tokens[start : start + _ROWS, None], -1)[:, 0]
        total += float((np.log(np.exp(rows).sum(-1)) - chosen).sum())
    return total
