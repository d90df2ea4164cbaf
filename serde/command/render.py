"""What models, and how they differ, look like to people; reports as JSON and Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core.report import Report, Table, shape_text
from serde.core.texts import printable

if TYPE_CHECKING:
    from serde.bridge.summary import TensorSummary
    from serde.checking.bisection import Bisection
    from serde.checking.difference import ModelDiff, WeightDiff

__all__ = [
    "as_json", "as_markdown", "bisection_table", "difference_lines", "difference_tables",
    "markdown_document", "markdown_table",
]  # fmt: skip

_SHOWN_BEFORE, _SHOWN_VALUES = 4, 12
"""How many values are shown in front of the first one at fault, and in all."""


def bisection_table(found: Bisection, ticks: tuple[str, str]) -> Table:
    """Return a row for the values around the first one at fault: some that agree, and what differs.

    Args:
        found: What comparing inner values has shown.
        ticks: What stands for a value that agrees and for one that does not.
    """
    places = [at for at, value in enumerate(found.values) if value.suspect]
    start = max(places[0] - _SHOWN_BEFORE, 0) if places else len(found.values) - _SHOWN_BEFORE
    rows = tuple(
        (
            value.name,
            value.target,
            value.op,
            shape_text(value.shape),
            f"{value.distance:.2e}",
            " ".join(filter(None, (ticks[0] if value.agrees else ticks[1], value.remark))),
        )
        for value in found.values[max(start, 0) :][:_SHOWN_VALUES]
    )
    return Table(
        ("value", "in the target", "operator", "shape", "distance", ""), rows, frozenset({4})
    )


def difference_tables(found: ModelDiff) -> Iterator[Table]:
    """Yield the tables of what differs that have rows: facts, ports, operators, weights."""
    facts = []
    for name, (left, right) in (("format", found.formats), ("version", found.versions)):
        if left != right:
            facts.append((name, left or "unknown", right or "unknown"))
    if facts:
        yield Table(("", "left", "right"), tuple(facts))
    if found.ports:
        rows = [(p.kind, p.name, _port(p.left), _port(p.right)) for p in found.ports]
        yield Table(("", "name", "left", "right"), tuple(rows))
    if found.operators:
        counts = [(name, str(a), str(b)) for name, (a, b) in found.operators.items()]
        head = f"operator ({found.operator_set})"
        yield Table((head, "left", "right"), tuple(counts), frozenset({1, 2}))
    if found.weights:
        columns = ("weight", "left", "right", "max abs", "elements")
        yield Table(columns, tuple(map(_weight_row, found.weights)), frozenset({3, 4}))


def difference_lines(found: ModelDiff) -> Iterator[str]:
    """Yield the sentences about two models: their graphs, their weights, and the outcome."""
    if not found.ordered:
        yield "inputs or outputs: the same names in another order"
    if found.graph is not None:
        yield f"graph: {found.graph}"
    if found.same_weights is not None:
        differ = f"{len(found.weights)} differ" if found.weights else "none differs"
        yield f"weights: {found.same_weights:,} equal, {differ}"
    yield "the models are equal" if found.equal else "the models differ"


def _port(tensor: TensorSummary | None) -> str:
    if tensor is None:
        return "absent"
    return f"{shape_text(tensor.shape)} {tensor.dtype or 'unknown'}"


def _weight_row(weight: WeightDiff) -> tuple[str, ...]:
    sides = [
        "absent" if dtype is None else f"{shape_text(shape)} {dtype}"
        for shape, dtype in zip(weight.shapes, weight.dtypes, strict=True)
    ]
    if weight.renamed is not None:
        sides[1] = f"called {weight.renamed}"
    figures = ("", "")
    if weight.max_abs is not None:
        figures = (f"{weight.max_abs:.2e}", f"{weight.elements:,}")
    return (weight.name, *sides, *figures)


def as_json(value: Mapping[str, AnyValue]) -> str:
    """Return JSON; numbers that are not finite become the texts ``inf``, ``-inf`` and ``nan``."""
    return json.dumps(_jsonable(value), indent=2, allow_nan=False)


def _jsonable(value: AnyValue) -> AnyValue:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [_jsonable(item) for item in items]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def as_markdown(report: Report, *, outcome: str, error: str | None) -> str:
    """Return a report as a Markdown document.

    Args:
        report: The report.
        outcome: One word for how it ended.
        error: Message of the error that ended it.
    """
    parts = [f"# serde: {outcome}"]
    if error is not None:
        parts.append(f"```\n{printable(error)}\n```")
    if report.stages:
        rows = tuple((stage.name, f"{stage.seconds:.2f}") for stage in report.stages)
        parts.append(markdown_table(Table(("stage", "seconds"), rows, frozenset({1}))))
    parts += [markdown_table(table) for table in report.tables()]
    parts += filter(None, (report.check_sentence, report.accuracy_sentence))
    if "path" in report.facts and error is None:
        parts.append(f"`{printable(str(report.facts['path']))}`")
    return "\n\n".join(parts) + "\n"


def markdown_document(title: str, found: Sequence[Table]) -> str:
    """Return tables as a Markdown document, the first column of each as code."""
    parts = [f"# {title}"]
    for table in found:
        name = table.columns[0]
        rows = tuple((f"`{row[0]}`", *row[1:]) for row in table.rows)
        columns = ("operator", *table.columns[1:])
        parts += [f"## {name}", markdown_table(Table(columns, rows, table.right))]
    return "\n\n".join(parts)


def markdown_table(table: Table) -> str:
    """Return a table as Markdown."""
    rule = ["--:" if i in table.right else "---" for i in range(len(table.columns))]
    lines = [table.columns, rule, *table.rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return printable(text).replace("\n", " ").replace("|", "\\|")
