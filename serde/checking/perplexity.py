"""How well a model that generates predicts a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from serde.checking.generating import Prompts
from serde.core import Array, require
from serde.engine.base import Engine, first_line
from serde.errors import OptionError

__all__ = ["perplexity", "read_text"]

_WINDOW, _STRIDE = 512, 256
"""Tokens that are read at once, and by how many the next window begins later."""


def read_text(path: str, files: Sequence[Path]) -> Array:
    """Return a text in UTF-8 as tokens of a model, beside whose files is its tokenizer.

    Raises:
        MissingDependency: transformers is not installed.
        OptionError: There is no such text, or no tokenizer.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"perplexity_text: {path}: {error}") from error
    if not files:
        raise OptionError("perplexity_text: a module in memory has no tokenizer; convert a folder")
    transformers, folder = require("transformers"), files[0].parent
    place = {"gguf_file": files[0].name} if files[0].suffix == ".gguf" else {}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, **place
        )
        tokens = np.asarray(tokenizer(text, verbose=False)["input_ids"], np.int64)
    except Exception as error:
        told = f"perplexity_text: {folder} has no tokenizer that loads: {first_line(error)}"
        raise OptionError(told) from error
    if len(tokens) < 2:
        raise OptionError(f"perplexity_text: {path}: expected two tokens at least")
    return tokens


def perplexity(tokens: Array, prompts: Prompts, engine: Engine) -> float:
    """Return ``exp`` of the mean of what each token but the first costs, in nats.

    Windows overlap: each token is predicted once, by as many as are before it in its window.
    """
    total, end = 0.0, 1
    for start in range(0, len(tokens), _STRIDE):
        part = tokens[start : start + _WINDOW]
        new = start + len(part) - end
        if new > 0:
            scores = prompts.scores(engine, prompts.begin(part[0]), part[None, 1:])[0]
            total += _cost(scores[-new:], part[-new:])
            end += new
    return math.exp(min(total / (len(tokens) - 1), 700.0))


def _cost(scores: Array, tokens: Array) -> float:
    """Return what tokens cost by the scores before each of them."""
    total = 0.0
    for row, token in zip(scores, tokens, strict=True):
        below = row.astype(np.float64) - row.max()
        total += float(np.log(np.exp(below).sum()) - below[token])
    return total
