"""Core ML packages of decoders, generating in the executor of ML Programs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from support.coreml_models import tools
from support.mil_executor import Program, load

__all__ = ["Decoder", "load_by_coremltools", "read_by_transformers"]


class Decoder:
    """A package that is given one text, and keeps what it has read.

    Args:
        path: The package.

    Attributes:
        description: Apple's description of the model.
        most: Tokens that a piece of a prompt may have.
    """

    def __init__(self, path: Path) -> None:
        self._program: Program = load(path, ExitStack())
        description = self._program.spec.description
        self.description = description
        self._kept = [each.name for each in description.state]
        arrays = {each.name: each.type.stateType.arrayType for each in description.state}
        if not self._kept:
            others = description.input[2:]
            self._kept = [each.name for each in others]
            arrays = {each.name: each.type.multiArrayType for each in others}
        self._inside = bool(description.state)
        dtypes = {65552: np.float16, 65568: np.float32}
        # What nobody has written yet must not matter.
        self._states = {
            name: np.full(list(array.shape), 3.0 * name.endswith(("key", "value")),
                          dtypes[array.dataType])
            for name, array in arrays.items()
        }  # fmt: skip
        self._read = 0
        array = description.input[0].type.multiArrayType
        self.most = 4 if array.HasField("shapeRange") else 1

    def read(self, tokens: Sequence[int], padded: int = 0) -> Any:
        """Return the scores behind each of some tokens, read at once and padded on the right."""
        ids = [*tokens, *[0] * padded]
        places = np.arange(self._read, self._read + len(ids), dtype=np.int32)
        given = {"input_ids": np.array([ids], np.int32), "cache_position": places}
        if self._inside:
            scores, *_ = self._program.run(given, self._states)
        else:
            scores, *later = self._program.run({**given, **self._states})
            self._states = dict(zip(self._kept, later, strict=True))
        self._read += len(tokens)
        return np.asarray(scores)[:, : len(tokens)]

    def generate(self, prompt: Sequence[int], steps: int, at_once: int = 4) -> tuple[Any, Any]:
        """Return greedy tokens behind a prompt and the scores that they were chosen by.

        Args:
            prompt: The prompt.
            steps: Tokens to choose.
            at_once: Tokens of the prompt that are read in one call.
        """
        for first in range(0, len(prompt), at_once):
            scores = self.read(prompt[first : first + at_once])
        made, seen = [], []
        for _ in range(steps):
            seen.append(scores[0, -1])
            made.append(int(seen[-1].argmax()))
            scores = self.read(made[-1:])
        return np.array(made), np.stack(seen)


def read_by_transformers(module: Any, prompt: Sequence[int], chosen: Sequence[int]) -> Any:
    """Return the scores that a module gives for each of some tokens behind a prompt."""
    import torch

    with torch.no_grad():
        whole = module(torch.tensor([[*prompt, *chosen]])).logits[0].float().numpy()
    return whole[len(prompt) - 1 : -1]


def load_by_coremltools(path: Path) -> Any:
    """Return the program that coremltools makes of a package; it checks types and names."""
    model = tools().models.MLModel(str(path), skip_model_load=True)
    from coremltools.converters.mil.frontend.milproto.load import load as load_program

    spec = model.get_spec()
    return load_program(spec, spec.specificationVersion, model.weights_dir)
