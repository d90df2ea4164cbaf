"""How near a model that was made smaller stays to its source, over any number of samples.

Samples are run one at a time; of each output only sums are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from serde.bridge.quantizing import QuantizeOptions
from serde.checking.generating import SCORES
from serde.checking.outputs import match_outputs
from serde.core import Array, dataclass, replace
from serde.core.report import Nearness, OutputAccuracy
from serde.engine.base import Engine, run_engine
from serde.errors import CheckError, OptionError

__all__ = ["measure_accuracy", "require_accuracy"]


def measure_accuracy(
    source: Engine,
    before: Engine,
    after: Engine,
    samples: Iterable[Mapping[str, Array]],
    recorded: Sequence[str] | None = None,
) -> tuple[list[OutputAccuracy], int]:
    """Return what making a model smaller does to each output, and the number of samples.

    Args:
        source: Runs the source.
        before: Runs the target as it was written.
        after: Runs the smaller target.
        samples: Inputs by name.
        recorded: Names of the outputs in the target, in the source's order.

    Raises:
        CheckError: An engine failed, or an output is missing or has another shape.
    """
    comparisons = [_Comparison(engine, source, recorded) for engine in (before, after)]
    count = 0
    for inputs in samples:
        expected = run_engine(source, inputs)
        for comparison in comparisons:
            comparison.add(expected, inputs)
        count += 1
    if not count:
        raise CheckError("accuracy: there are no samples")
    first, second = comparisons
    rows = [
        OutputAccuracy(source.outputs[at], first.sums[at].nearness(), second.sums[at].nearness())
        for at in range(len(source.outputs))
    ]
    return rows, count


def require_accuracy(
    found: Sequence[OutputAccuracy], options: QuantizeOptions
) -> list[OutputAccuracy]:
    """Return the entries with the verdict that the caller's limits give, if there are any.

    Raises:
        OptionError: `min_agreement` is given, and no output has classes.
    """
    least, cosine = options.min_agreement, options.min_cosine
    if least is not None and all(each.after.agreement is None for each in found):
        raise OptionError("min_agreement: no output is scores of classes; give min_cosine")

    def passed(near: Nearness) -> bool | None:
        figures = ((near.agreement, least), (near.cosine, cosine))
        judged = [f >= limit for f, limit in figures if f is not None and limit is not None]
        return all(judged) if judged else None

    return [replace(each, passed=passed(each.after)) for each in found]


class _Comparison:
    """Sums of one model's outputs beside the source's."""

    def __init__(self, engine: Engine, source: Engine, recorded: Sequence[str] | None) -> None:
        self._engine = engine
        self._names = list(source.outputs)
        self._places = match_outputs(source.outputs, engine.outputs, recorded)
        for name, place in zip(self._names, self._places, strict=True):
            if place is None:
                raise CheckError(f"{engine.name}: the target has no output {name}")
        self.sums = [_Sums() for _ in self._names]

    def add(self, expected: Sequence[Array], inputs: Mapping[str, Array]) -> None:
        found = run_engine(self._engine, inputs)
        for name, wanted, place, sums in zip(
            self._names, expected, self._places, self.sums, strict=True
        ):
            value = found[place or 0]
            if value.shape != wanted.shape:
                raise CheckError(
                    f"{self._engine.name}: output {name}: expected shape {wanted.shape}, "
                    f"found {value.shape}"
                )
            sums.add(wanted, value, last=name == SCORES)


@dataclass
class _Sums:
    """What is kept of an output: sums over elements, and rows that agree."""

    count: int = 0
    total: float = 0.0
    power: float = 0.0
    other: float = 0.0
    product: float = 0.0
    noise: float = 0.0
    worst: float = 1.0
    rows: int = 0
    agreeing: int = 0

    def add(self, expected: Array, found: Array, *, last: bool) -> None:
        """Take one sample's output; scores of tokens are along the `last` axis."""
        self._add_rows(expected, found, last=last and expected.ndim == 3)
        x, y = (each.astype(np.float64).ravel() for each in (expected, found))
        both = np.isfinite(x) & np.isfinite(y)
        # What is not finite in one of the two only weighs as a total loss.
        lost = np.isfinite(x) & ~np.isfinite(y)
        x, y = np.where(both | lost, x, 0.0), np.where(both, y, 0.0)
        difference = x - y
        power, other, product = float(x @ x), float(y @ y), float(x @ y)
        self.count += int(x.size)
        self.total += float(x.sum())
        self.power += power
        self.other += other
        self.product += product
        self.noise += float(difference @ difference)
        self.worst = min(self.worst, 0.0 if lost.any() else _cosine(power, other, product))

    def _add_rows(self, expected: Array, found: Array, *, last: bool) -> None:
        if expected.dtype.kind in "iub":
            self.rows += expected.size
            self.agreeing += int((expected == found).sum())
        elif last or _is_scores(expected):
            classes = expected.shape[2 if last else 1]
            best = [each.reshape(-1, classes).argmax(axis=1) for each in (expected, found)]
            self.rows += len(best[0])
            self.agreeing += int(np.equal(*best).sum())

    def nearness(self) -> Nearness:
        """Return the figures of all samples."""
        mean = self.total / max(self.count, 1)
        variance = max(self.power / max(self.count, 1) - mean * mean, 0.0)
        noise = self.noise / max(self.count, 1)
        return Nearness(
            cosine=_cosine(self.power, self.other, self.product),
            worst_cosine=self.worst,
            snr=_decibels(self.power, self.noise),
            error=math.sqrt(noise / variance) if variance else math.inf if noise else 0.0,
            agreement=self.agreeing / self.rows if self.rows else None,
        )


def _is_scores(value: Array) -> bool:
    """Whether an output looks like scores of classes: a row a sample, or one element an image."""
    return value.ndim >= 2 and value.shape[1] > 1 and math.prod(value.shape[2:]) == 1


def _cosine(power: float, other: float, product: float) -> float:
    if not power or not other:
        return 1.0 if power == other else 0.0
    return min(max(product / math.sqrt(power * other), -1.0), 1.0)


def _decibels(power: float, noise: float) -> float:
    if not noise:
        return math.inf
    return 10 * math.log10(power / noise) if power else -math.inf
