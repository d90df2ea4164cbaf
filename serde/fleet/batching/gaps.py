"""By how many models each missing operator holds up, and which ones to add next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any as AnyValue

from serde.core.records import dataclass

__all__ = ["Gaps", "Operator", "OperatorGap", "Step"]


@dataclass(frozen=True, slots=True, order=True)
class Operator:
    """What a conversion could not do: one operator on one way.

    Attributes:
        op: Name of the operator, as the report of a conversion has it.
        way: Where it was met, such as ``onnx -> relay``: when it was read or when it was written.
    """

    op: str
    way: str


@dataclass(frozen=True, slots=True)
class OperatorGap:
    """One operator that models wait for.

    Attributes:
        operator: Which one.
        models: Models that have a gap of it.
        nodes: Their nodes that cannot be converted because of it.
        alone: Models whose gaps are all of it: the ones that adding just it would free.
        reasons: Reasons with the models that have each, the most frequent first.
        example: Name of one of the models.
    """

    operator: Operator
    models: int
    nodes: int
    alone: int
    reasons: tuple[tuple[str, int], ...]
    example: str


@dataclass(frozen=True, slots=True)
class Step:
    """The next operator to add, after those of the steps before it.

    Attributes:
        operator: Which one.
        freed: Models that it frees then.
        total: Models that it and those before it free together.
    """

    operator: Operator
    freed: int
    total: int


class Gaps:
    """Which operators hold up which models; filled model by model, and small for any number.

    A model that is refused while it is read has not been asked what the target lacks, so that
    figures of what would be freed are those of the gaps that are known.
    """

    def __init__(self) -> None:
        self._sets: Counter[frozenset[Operator]] = Counter()
        self._nodes: Counter[Operator] = Counter()
        self._reasons: dict[Operator, Counter[str]] = {}
        self._examples: dict[Operator, str] = {}

    def add(self, name: str, report: Mapping[str, AnyValue]) -> None:
        """Count the gaps of one model.

        Args:
            name: What the model is called.
            report: :meth:`serde.core.report.Report.as_dict` of its conversion.
        """
        issues = report.get("issues") or ()
        way = str(report.get("title", ""))
        found: dict[Operator, set[str]] = {}
        for issue in issues:
            operator = Operator(issue["op"], way)
            found.setdefault(operator, set()).add(issue["reason"])
            self._nodes[operator] += 1
        for operator, reasons in found.items():
            self._reasons.setdefault(operator, Counter()).update(reasons)
            self._examples.setdefault(operator, name)
        if found:
            self._sets[frozenset(found)] += 1

    @property
    def models(self) -> int:
        """How many models have gaps."""
        return self._sets.total()

    def operators(self) -> list[OperatorGap]:
        """Return the operators, the one that holds up most models first."""
        held: Counter[Operator] = Counter()
        alone: Counter[Operator] = Counter()
        for operators, models in self._sets.items():
            held.update(dict.fromkeys(operators, models))
            if len(operators) == 1:
                alone.update(dict.fromkeys(operators, models))
        ordered = sorted(held, key=lambda each: (-held[each], -alone[each], each))
        return [
            OperatorGap(
                each,
                held[each],
                self._nodes[each],
                alone[each],
                tuple(sorted(self._reasons[each].items(), key=lambda item: (-item[1], item[0]))),
                self._examples[each],
            )
            for each in ordered
        ]

    def next_best(self, count: int = 10) -> Iterator[Step]:
        """Yield up to `count` operators in an order that frees many models soon.

        Each is the one that frees most models besides those before it. Where none frees a model
        by itself it is the one that the models wait for most, a model that lacks few operators
        counting more than one that lacks many.
        """
        waiting = Counter(self._sets)
        total = 0
        for _ in range(count):
            if not waiting:
                return
            freed: Counter[Operator] = Counter()
            pull: dict[Operator, float] = {}
            for operators, models in waiting.items():
                for each in operators:
                    pull[each] = pull.get(each, 0.0) + models / len(operators)
                    freed[each] += models if len(operators) == 1 else 0
            best = min(pull, key=lambda each: (-freed[each], -round(pull[each], 6), each))
            total += freed[best]
            yield Step(best, freed[best], total)
            left: Counter[frozenset[Operator]] = Counter()
            for operators, models in waiting.items():
                if operators != {best}:
                    left[operators - {best}] += models
            waiting = left
