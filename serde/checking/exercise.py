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
from serde.checking.yardstick import Yardstick
from serde.report import OutputVerdict, Report, counted
from serde.weights import Array

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
            silent = [at for at, v in enumerate(self.verdicts) if v.remark and not v.informative]
            if self.failing is not None or not (silent or self._missed):
                break
            missed, known = self._missed or [], None
            if self._measure is not None:
                known = self._measure.observed.copy()
                self._measure.observed.largest = 0.0
                missed = self._look(inputs, self._measure)
                if self._measure.observed.largest > _LARGEST[float16]:
                    self._measure.observed.restore(known)
                    continue
            reached = [each for each in self._missed or () if each not in missed]
            found = self._compare(inputs) if reached or silent else []
            told = [found[at].output for at in silent if found[at].informative]
            if reached or told:
                self._add(inputs, found)
                self._missed = missed
                what = ", ".join(filter(None, [counted(reached), *told]))
                self._report.notes.append(f"inputs were also drawn {how}, which shows {what}")
        if self.failing is None:
            self._report.unexercised += self._missed or ()

    def _look(self, inputs: Mapping[str, Array], measure: Yardstick) -> list[str]:
        with self._report.stage("yardstick"):
            _ = measure.at(inputs).exact
        return measure.missed

    def _add(self, inputs: Mapping[str, Array], found: list[OutputVerdict]) -> None:
        if self.failing is None and any(v.failed and v.target is not None for v in found):
            self.failing = inputs
        self.verdicts = list(map(_worse, self.verdicts, found)) if self.verdicts else found


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
