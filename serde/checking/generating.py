"""Checks of models that are called again and again with what they returned: decoders with a cache.

They are given prompts, alone and in batches that are padded on either side, and steps behind them.
Then the target generates from its own cache, and the source reads all of that as one prompt. Other
models with states take steps of drawn inputs, source and target each from their own states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.checking.data import CheckData
from serde.checking.distance import cosine, deviation, difference
from serde.checking.engines import WrappedEngine
from serde.checking.inputs import random_inputs
from serde.checking.sizes import input_type, resolve_dims
from serde.checking.verdict import compare
from serde.core import Array, OutputVerdict, Report, dtype_name, replace
from serde.engine.base import Engine, run_engine
from serde.engine.fitting import match_names
from serde.errors import CheckError
from serde.relay.ir import RelayModel, SymDim

__all__ = ["OverFixedCaches", "Prompts", "compare_as_used", "generates", "judge_generation"]

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
    """Whether a model takes tokens, which are integers, and takes again what it returned."""
    types = {each.name_hint: input_type(each) for each in model.inputs()}
    named = _keeps_states(model) and TOKENS in types and SCORES in model.meta.outputs
    return named and types[TOKENS].dtype.startswith("int")


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
                outputs = _run(self._model, engine, inputs)
                rows.append(outputs[SCORES][:, -1])
                inputs = self.step(inputs, outputs, tokens[:, place : place + 1])
            return np.stack(rows, axis=1)
        past = {output: inputs[name] for output, name in self._model.meta.states.items()}
        found = self.step(inputs, past, tokens)
        found[TOKENS] = np.concatenate([inputs[TOKENS], found[TOKENS]], axis=1)
        first = inputs[TOKENS].shape[1] - 1
        return _run(self._model, engine, self._placed(found))[SCORES][:, first:-1]

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
            outputs = _run(self._model, engine, each)
            tokens = outputs[SCORES][:, -1:].argmax(-1)
            steps.append(self.step(each, outputs, tokens))
        return CheckData("prompts and steps behind them", [*prompts, *steps])


def _run(model: RelayModel, engine: Engine, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of an engine by the names that the model has for them."""
    found = dict(zip(engine.outputs, run_engine(engine, inputs), strict=True))
    names = match_names(model.meta.outputs, list(found))
    return {name: found[other] for name, other in names.items()}


class OverFixedCaches(WrappedEngine):
    """An engine whose caches have a `fixed` length, used as one of the model while they grew."""

    def __init__(self, engine: Engine, fixed: RelayModel, growing: RelayModel) -> None:
        super().__init__(engine)
        types = {each.name_hint: input_type(each) for each in growing.inputs()}
        self.inputs = {name: type_.dtype for name, type_ in types.items()}
        self.outputs = growing.meta.outputs
        self._shapes = {each.name_hint: input_type(each).shape for each in fixed.inputs()}
        (self._position,) = self._shapes.keys() - types.keys()
        self._axes = {
            (output, name): axis
            for output, name in growing.meta.states.items()
            for axis, dim in enumerate(types[name].shape) if isinstance(dim, SymDim)
        }  # fmt: skip

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs, caches as long as those that are given and what is new."""
        (_, first), axis = next(iter(self._axes.items()))
        past, room = inputs[first].shape[axis], self._shapes[first][axis]
        total = past + inputs[TOKENS].shape[1]
        if not isinstance(room, int) or total > room:
            raise CheckError(f"{self.name}: caches for {room} tokens have no room for {total}")
        own = {**inputs, self._position: np.arange(past, total)}
        given = {name: own[name] for name in self._shapes}
        for name, where in {**{x: axis for (_, x), axis in self._axes.items()}, MASK: 1}.items():
            if name in given:
                ends = [(0, 0)] * given[name].ndim
                ends[where] = 0, room - given[name].shape[where]
                given[name] = np.pad(given[name], ends)
        names = match_names([*self._engine.inputs], [*given])
        dtypes = self._engine.inputs.items()
        fitting = {x: np.asarray(given[names[x]], dtype or None) for x, dtype in dtypes}
        found = dict(zip(self._engine.outputs, run_engine(self._engine, fitting), strict=True))
        names = match_names(self.outputs, [*found])
        results = {name: found[names[name]] for name in self.outputs}
        for (name, _), where in self._axes.items():
            results[name] = results[name].take(range(total), where)
        return [*results.values()]


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
    narrow = bool(options.get("float16"))
    if generating:
        judge_generation(reference, candidate, model, report, dims, narrow=narrow)
    elif data is None and _keeps_states(model):
        _judge_steps(reference, candidate, model, report, dims, narrow=narrow)
    return failing


def _keeps_states(model: RelayModel) -> bool:
    """Whether a model has states by the names of its inputs and outputs; its target may not."""
    names = {each.name_hint for each in model.inputs()}
    states, outputs = model.meta.states, {*model.meta.outputs}
    return bool(states) and {*states} <= outputs and {*states.values()} <= names


def _judge_steps(
    reference: Engine,
    candidate: Engine,
    model: RelayModel,
    report: Report,
    dims: Mapping[str, int] | None,
    *,
    narrow: bool,
) -> None:
    """Add verdicts on all outputs of some steps, which engines take from their own states."""
    states, lengths = model.meta.states, resolve_dims(model, dims)
    types = {each.name_hint: input_type(each) for each in model.inputs()}
    own: list[dict[str, Array]] = [{}, {}]
    made: dict[str, tuple[list[Array], list[Array]]] = {x: ([], []) for x in model.meta.outputs}
    for step in range(_STEPS):
        drawn = random_inputs(model, seed=(0, step), lengths=lengths)
        for place, engine in enumerate((reference, candidate)):
            outputs = _run(model, engine, {**drawn, **own[place]})
            own[place] = {name: outputs[output] for output, name in states.items()}
            for name, each in outputs.items():
                made[name][place].append(each.ravel())
        for name, each in own[0].items():
            named = zip(map(_symbol, types[name].shape), each.shape, strict=True)
            lengths |= {symbol: length for symbol, length in named if symbol}
    for name, (expected, found) in made.items():
        arrays = np.concatenate(expected), np.concatenate(found)
        report.verdicts.append(_agreement(name, *arrays, narrow=narrow))


def judge_generation(
    reference: Engine,
    candidate: Engine,
    model: RelayModel,
    report: Report,
    dims: Mapping[str, int] | None = None,
    *,
    narrow: bool = False,
) -> None:
    """Add a verdict on the scores and tokens of some steps, each from the cache of that before.

    Args:
        reference: Runs the source, once, on the prompt with all that the target generated.
        candidate: Runs the target.
        model: The source as Relay.
        report: Gets the verdict.
        dims: Lengths of further dimensions.
        narrow: Whether the target was asked to compute in float16.
    """
    prompts = Prompts(model, dims)
    first = inputs = prompts.prompt(3, "left")
    scores, tokens = [], []
    for _ in range(_STEPS):
        outputs = _run(model, candidate, inputs)
        scores.append(outputs[SCORES][:, -1])
        tokens.append(scores[-1].argmax(-1)[:, None])
        inputs = prompts.step(inputs, outputs, tokens[-1])
    chosen, found = np.concatenate(tokens, axis=1), np.stack(scores, axis=1)
    expected = prompts.scores(reference, first, chosen)
    report.verdicts.append(_verdict(expected, found, chosen, narrow))


def _agreement(name: str, expected: Array, found: Array, *, narrow: bool = False) -> OutputVerdict:
    """Return whether what an output was in all steps is within part of its own deviation."""
    dtypes = dtype_name(expected.dtype), dtype_name(found.dtype)
    wide = not narrow and {*dtypes} <= {"float32", "float64"}
    near = _NEAR if wide else _NEAR_NARROW
    atol = near * deviation(expected)
    apart = float(difference(expected, found).max())
    most = float(np.abs(expected.astype(np.float64)).max())
    return OutputVerdict(
        f"{name} of {_STEPS} steps", (expected.shape, found.shape), dtypes, apart,
        apart / max(most, _TINY), cosine(expected, found), atol, 0.0, apart <= atol, target=name,
    )  # fmt: skip


def _verdict(expected: Array, found: Array, chosen: Array, narrow: bool) -> OutputVerdict:
    verdict = _agreement(SCORES, expected, found, narrow=narrow)
    exact = expected.astype(np.float64)
    # Of two scores that are nearly one, either may win.
    lost = exact.max(-1) - np.take_along_axis(exact, chosen[..., None], -1)[..., 0]
    equal = int((lost <= 2 * verdict.atol).sum())
    return replace(
        verdict, passed=verdict.passed and equal == chosen.size,
        remark=f"{equal} of {chosen.size} tokens equal",
    )  # fmt: skip


def _symbol(dim: object) -> str:
    """Return the name of a dimension that is one symbol; empty for others."""
    return (dim.name or "") if isinstance(dim, SymDim) else ""
