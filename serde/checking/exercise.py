"""The inputs of a check, and others where these tell too little.

An output that says nothing for usual inputs may say something for others; a clip that they do not
reach is reached by larger ones. What no inputs reach is told, since nothing of it was compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from serde.checking.inputs import InputSets
from serde.checking.judgement import RANDOM
from serde.checking.yardstick import Yardstick
from serde.core.report import OutputVerdict, Report, counted
from serde.core.weights import Array

__all__ = ["TriedInputs"]

Compare = Callable[[Mapping[str, Array]], list[OutputVerdict]]

_LARGEST = {True: 3e4, False: 1e6}
"""Magnitude of inner values beyond which inputs are not taken, for a target in float16 and another:
what overflows then says nothing of usual inputs."""


class TriedInputs:
    """What the sets of inputs so far have shown.

    Args:
        compare: Returns a verdict for each output, for a set of inputs.
        measure: Tells what a set reaches, if that is wanted.
        report: Gets notes, and what is not reached.

    Attributes:
        verdicts: The worst of each output.
        failing: The first inputs for which an output that the target has differs.
    """

    def __init__(self, compare: Compare, measure: Yardstick | None, report: Report) -> None:
        self.verdicts: list[OutputVerdict] = []
        self.failing: Mapping[str, Array] | None = None
        self._compare = compare
        self._measure = measure if measure is not None and measure.has_cases else None
        self._report = report
        self._missed: list[str] | None = None

    def run(self, inputs: Mapping[str, Array]) -> None:
        """Compare on a set of inputs, and look what it reaches, until all is reached."""
        self._add(inputs, self._compare(inputs))
        if self._measure is not None and self._missed != []:
            self._missed = self._look(inputs, self._measure)

    def draw_otherwise(self, sets: InputSets, *, float16: bool) -> None:
        """Draw again where outputs said nothing or parts were not reached; tell what is left.

        Args:
            sets: Draws them.
            float16: Whether the target computes in float16.
        """
        for how, inputs in sets.otherwise():
            silent = [at for at, verdict in enumerate(self.verdicts) if _is_silent(verdict)]
            if self.failing is not None or not (silent or self._missed):
                break
            missed = self._look_within(inputs, _LARGEST[float16])
            if missed is None or not (silent or len(missed) < len(self._missed or ())):
                continue
            if not sets.runs_at(inputs):
                continue
            found = self._compare(inputs)
            told = [found[at].output for at in silent if found[at].informative]
            reached = [each for each in self._missed or () if each not in missed]
            if (reached or told) and not any(map(_is_of_the_source, found)):
                self._add(inputs, found)
                self._missed = missed
                what = ", ".join(filter(None, [counted(reached), *told]))
                self._report.notes.append(f"inputs were also drawn {how}, which shows {what}")
        if self.failing is None:
            self._report.unexercised += self._missed or ()

    def _look_within(self, inputs: Mapping[str, Array], largest: float) -> list[str] | None:
        """Return what is left when inputs were looked at; None where values become too large."""
        if self._measure is None:
            return []
        observed = self._measure.observed
        known = observed.copy()
        observed.largest = 0.0
        missed = self._look(inputs, self._measure)
        if observed.largest <= largest:
            return missed
        observed.restore(known)
        return None

    def _look(self, inputs: Mapping[str, Array], measure: Yardstick) -> list[str]:
        _ = measure.at(inputs).exact
        return measure.missed

    def _add(self, inputs: Mapping[str, Array], found: list[OutputVerdict]) -> None:
        if self.failing is None and any(v.failed and v.target is not None for v in found):
            self.failing = inputs
        self.verdicts = list(map(_worse, self.verdicts, found)) if self.verdicts else found


def _is_silent(verdict: OutputVerdict) -> bool:
    """Whether an output says nothing for what it is, and neither for chance nor for rounding."""
    return not verdict.informative and verdict.distance is None and verdict.remark != RANDOM


def _is_of_the_source(verdict: OutputVerdict) -> bool:
    """Whether an output differs because the source's engine errs, more than the target's."""
    far, own = verdict.distance, verdict.own
    return verdict.failed and far is not None and own is not None and far <= own


def _worse(known: OutputVerdict, new: OutputVerdict) -> OutputVerdict:
    """Return the verdict of the worse run, with the worst figures of both; NaN is the worst.

    A run that says nothing leaves the verdict to one that does.
    """
    worst = min(known, new, key=_badness)
    return replace(
        worst,
        max_abs=max(known.max_abs, new.max_abs),
        max_rel=max(known.max_rel, new.max_rel),
        cosine=float(np.minimum(known.cosine, new.cosine)),
    )


def _badness(verdict: OutputVerdict) -> tuple[int, float, float]:
    kind = 0 if verdict.failed else 1 if verdict.passed else 2
    factor = verdict.factor
    return kind, -math.inf if factor is None else -factor, -verdict.max_abs
