"""Checks of models that are called again and again with what they returned: decoders with a cache.

They are given prompts, alone and in batches that are padded on either side, and steps behind them.
Then the target generates from its own cache, and the source reads all of that as one prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.checking.data import CheckData
from serde.checking.distance import cosine, deviation, difference
from serde.checking.inputs import random_inputs
from serde.checking.sizes import input_type, resolve_dims
from serde.checking.verdict import compare
from serde.core import Array, OutputVerdict, Report, dtype_name
from serde.engine.base import Engine, run_engine
from serde.engine.fitting import match_names
from serde.relay.ir import RelayModel, SymDim

__all__ = ["Prompts", "compare_as_used", "generates", "judge_generation"]

TOKENS: Final = "input_ids"
MASK: Final = "attention_mask"
POSITIONS: Final = "position_ids"
SCORES: Final = "logits"
"""What inputs and outputs of decoders are called by all who export them."""

_TINY: Final = 1e-300
_LENGTH: Final = 7
_PADDING: Final = 3
_STEPS: Final = 16
_NEAR: Final = 1e-3
_NEAR_NARROW: Final = 5e-2
"""Part of the deviation of scores within which they agree, and within which two are a tie."""


def generates(model: RelayModel) -> bool:
    """Whether a model takes tokens, and takes again what it returned."""
    inputs, states = {each.name_hint for each in model.inputs()}, model.meta.states
    outputs = {*model.meta.outputs}
    return bool(states) and {TOKENS, *states.values()} <= inputs and {SCORES, *states} <= outputs


class Prompts:
    """What a decoder is given.

    Args:
        model: The decoder.
        dims: Lengths of further dimensions that a caller gives.
    """

    def __init__(self, model: RelayModel, dims: Mapping[str, int] | None = None) -> None:
        self._model = model
        self._types = {each.name_hint: input_type(each) for each in model.inputs()}
        self._lengths = resolve_dims(model, dims)
        self._batch, self._sequence = map(_symbol, self._types[TOKENS].shape)
        kept = [dim for name in model.meta.states.values() for dim in self._types[name].shape]
        self._past = {*map(_symbol, kept)} - {self._batch, ""}

    @property
    def is_padded(self) -> bool:
        """Whether prompts of a batch may have other lengths."""
        return MASK in self._types and bool(self._sequence)

    @staticmethod
    def reads_text(model: RelayModel) -> bool:
        """Whether a model generates, and from tokens alone."""
        inputs = {each.name_hint for each in model.inputs()}
        known = {TOKENS, MASK, POSITIONS, *model.meta.states.values()}
        return generates(model) and inputs <= known

    def prompt(self, batch: int, padding: str = "", length: int = _LENGTH) -> dict[str, Array]:
        """Return a prompt, or several that are padded on the left or right, without a past."""
        lengths = {**self._lengths, self._batch: batch, **dict.fromkeys(self._past, 0)}
        if self._sequence:
            lengths[self._sequence] = length
        inputs = random_inputs(self._model, seed=(0, batch), lengths=lengths)
        for name in inputs:
            if name.endswith(MASK):
                inputs[name] = np.ones_like(inputs[name])
        if padding and self.is_padded:
            hidden = slice(0, _PADDING) if padding == "left" else slice(-_PADDING, None)
            inputs[MASK][1:, hidden] = 0
        return self._placed(inputs)

    def begin(self, token: int) -> dict[str, Array]:
        """Return one token, before which there is nothing."""
        inputs = self.prompt(1, length=1)
        inputs[TOKENS] = np.full_like(inputs[TOKENS], token)
        for name in self._model.meta.states.values():
            inputs[name] = np.zeros_like(inputs[name])
        return inputs

    def step(
        self, inputs: Mapping[str, Array], outputs: Mapping[str, Array], tokens: Array
    ) -> dict[str, Array]:
        """Return what follows inputs for which the model returned outputs."""
        states = {name: outputs[output] for output, name in self._model.meta.states.items()}
        found = {**inputs, **states, TOKENS: tokens.astype(inputs[TOKENS].dtype)}
        if MASK in inputs:
            mask = inputs[MASK]
            found[MASK] = np.concatenate([mask, np.ones(tokens.shape, mask.dtype)], axis=1)
        return self._placed(found)

    def scores(self, engine: Engine, inputs: Mapping[str, Array], tokens: Array) -> Array:
        """Return the scores of each of some tokens behind a prompt, read at once where it can be.

        A model that takes one token at a time reads them one after the other.
        """
        if not self._sequence:
            rows = []
            for place in range(tokens.shape[1]):
                outputs = self.run(engine, inputs)
                rows.append(outputs[SCORES][:, -1])
                inputs = self.step(inputs, outputs, tokens[:, place : place + 1])
            return np.stack(rows, axis=1)
        past = {output: inputs[name] for output, name in self._model.meta.states.items()}
        found = self.step(inputs, past, tokens)
        found[TOKENS] = np.concatenate([inputs[TOKENS], found[TOKENS]], axis=1)
        return self.run(engine, self._placed(found))[SCORES][:, inputs[TOKENS].shape[1] - 1 : -1]

    def _placed(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Return inputs with the positions that follow from the mask."""
        if POSITIONS in self._types:
            ones = inputs.get(MASK, np.ones_like(inputs[TOKENS]))
            places = np.maximum(np.cumsum(ones, axis=1) - 1, 0)[:, -inputs[TOKENS].shape[1] :]
            inputs[POSITIONS] = places.astype(self._types[POSITIONS].dtype)
        return inputs

    def samples(self, engine: Engine, *, padded: bool = True) -> CheckData:
        """Return prompts, and steps that follow them as an engine computes it."""
        prompts = [self.prompt(1), self.prompt(3)]
        if padded and self.is_padded:
            prompts[1:] = [self.prompt(3, "left"), self.prompt(3, "right")]
        steps = []
        for each in prompts[:2]:
            outputs = self.run(engine, each)
            tokens = outputs[SCORES][:, -1:].argmax(-1)
            steps.append(self.step(each, outputs, tokens))
        return CheckData("prompts and steps behind them", [*prompts, *steps])

    def run(self, engine: Engine, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs of an engine by the names that the model has for them."""
        found = dict(zip(engine.outputs, run_engine(engine, inputs), strict=True))
        names = match_names(self._model.meta.outputs, list(found))
        return {name: found[other] for name, other in names.items()}


def compare_as_used(
    reference: Engine,
    candidate: Engine,
    model: RelayModel,
    *,
    report: Report,
    dims: Mapping[str, int] | None = None,
    data: CheckData | None = None,
    **options: AnyValue,
) -> Mapping[str, Array] | None:
    """Compare engines as :func:`serde.checking.verdict.compare` does; what generates, generates.

    Args:
        reference: Runs the source.
        candidate: Runs the target.
        model: The source as Relay.
        report: Gets the verdicts.
        dims: Lengths of further dimensions.
        data: Inputs of a user, with which nothing is generated.
        options: What else ``compare`` takes.

    Returns:
        What ``compare`` returns.
    """
    generating = data is None and generates(model)
    if generating:
        data = Prompts(model, dims).samples(reference)
    failing = compare(reference, candidate, model, report=report, dims=dims, data=data, **options)
    if generating:
        judge_generation(reference, candidate, model, report, dims)
    return failing


def judge_generation(
    reference: Engine,
    candidate: Engine,
    model: RelayModel,
    report: Report,
    dims: Mapping[str, int] | None = None,
) -> None:
    """Add a verdict on the scores and tokens of some steps, each from the cache of that before.

    Args:
        reference: Runs the source, once, on the prompt with all that the target generated.
        candidate: Runs the target.
        model: The source as Relay.
        report: Gets the verdict.
        dims: Lengths of further dimensions.
    """
    prompts = Prompts(model, dims)
    first = inputs = prompts.prompt(3, "left")
    scores, tokens = [], []
    for _ in range(_STEPS):
        outputs = prompts.run(candidate, inputs)
        scores.append(outputs[SCORES][:, -1])
        tokens.append(scores[-1].argmax(-1)[:, None])
        inputs = prompts.step(inputs, outputs, tokens[-1])
    chosen, found = np.concatenate(tokens, axis=1), np.stack(scores, axis=1)
    expected = prompts.scores(reference, first, chosen)
    report.verdicts.append(_verdict(expected, found, chosen))


def _verdict(expected: Array, found: Array, chosen: Array) -> OutputVerdict:
    dtypes = dtype_name(expected.dtype), dtype_name(found.dtype)
    near = _NEAR if {*dtypes} <= {"float32", "float64"} else _NEAR_NARROW
    atol = near * deviation(expected)
    apart = float(difference(expected, found).max())
    exact = expected.astype(np.float64)
    # Of two scores that are nearly one, either may win.
    lost = exact.max(-1) - np.take_along_axis(exact, chosen[..., None], -1)[..., 0]
    equal = int((lost <= 2 * atol).sum())
    return OutputVerdict(
        f"{SCORES} of {_STEPS} steps", (expected.shape, found.shape), dtypes, apart,
        apart / max(float(np.abs(exact).max()), _TINY), cosine(expected, found), atol, 0.0,
        apart <= atol and equal == chosen.size, target=SCORES,
        remark=f"{equal} of {chosen.size} tokens equal",
    )  # fmt: skip


def _symbol(dim: object) -> str:
    """Return the name of a dimension that is one symbol; empty for others."""
    return (dim.name or "") if isinstance(dim, SymDim) else ""
