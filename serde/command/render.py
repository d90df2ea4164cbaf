"""What a report looks like to people: tables, the same for a terminal and for Markdown."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING
from typing import Any as AnyValue

from serde.report import Nearness, OutputAccuracy, OutputVerdict, Report, counted
from serde.texts import printable, size_text

if TYPE_CHECKING:
    from serde.bridge import TensorSummary
    from serde.checking.bisection import Bisection
    from serde.checking.difference import ModelDiff, WeightDiff

__all__ = [
    "Table",
    "as_json",
    "as_markdown",
    "bisection_table",
    "difference_lines",
    "difference_tables",
    "markdown_document",
    "markdown_table",
    "shape_text",
    "tables",
    "verdict_line",
]

_SHOWN_BEFORE, _SHOWN_VALUES = 4, 12
"""How many values are shown in front of the first one at fault, and in all."""

_SHOWN_FACTS_APART = frozenset((
    "path", "bytes", "parameters", "source", "target", "inputs", "outputs", "labels",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under column names.

    Attributes:
        columns: Names of the columns.
        rows: Texts, as many in each row as there are columns.
        right: Positions of the columns that hold numbers.
        header: Whether the names of the columns are shown.
        parts: Tables that say the same one below the other, where this one is too wide.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    header: bool = True
    parts: tuple[Table, ...] = ()


def tables(report: Report, *, ticks: tuple[str, str]) -> Iterator[Table]:
    """Yield the tables of a report that have rows: operators, figures, verdicts.

    Args:
        report: The report.
        ticks: What stands for an output that passed and for one that did not.
    """
    if report.before or report.after:
        yield operator_table(report)
    figures = figure_table(report)
    if figures.rows:
        yield figures
    if report.verdicts:
        yield verdict_table(report.verdicts, ticks)
    if report.accuracy:
        yield accuracy_table(report.accuracy, ticks)


def operator_table(report: Report) -> Table:
    """Return the operators of source and target side by side, the most frequent first."""
    source = str(report.facts.get("source", "before"))
    if "target" not in report.facts:
        total = ("total", str(report.before.total()))
        return Table((source, "count"), (*_by_count(report.before), total), frozenset({1}))
    target = str(report.facts["target"])
    blank = ("", "")
    rows = [
        (*left, *right)
        for left, right in zip_longest(
            _by_count(report.before), _by_count(report.after), fillvalue=blank
        )
    ]
    sides = ((source, "before", report.before), (target, "after", report.after))
    totals = [("total", str(counts.total())) for _, _, counts in sides]
    rows.append((*totals[0], *totals[1]))
    parts = tuple(
        Table((name, when), (*_by_count(counts), total), frozenset({1}))
        for (name, when, counts), total in zip(sides, totals, strict=True)
    )
    return Table((source, "before", target, "after"), tuple(rows), frozenset({1, 3}), parts=parts)


def _by_count(counts: Counter[str]) -> list[tuple[str, str]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(name, str(count)) for name, count in ordered]


def figure_table(report: Report) -> Table:
    """Return parameters, size and what else is known of the result."""
    facts = report.facts
    rows = []
    if "parameters" in facts:
        rows.append(("parameters", f"{facts['parameters']:,}"))
    if "bytes" in facts:
        rows.append(("size", size_text(facts["bytes"])))
    rows += [
        (_fact_name(name), size_text(value) if name.endswith("_bytes") else str(value))
        for name, value in facts.items()
        if name not in _SHOWN_FACTS_APART
    ]
    rows += [("allowed", f"{i.op} {i.node}: {i.reason}") for i in sorted(report.allowed)]
    rows += [("fallback", f"{i.op} {i.node}: {i.reason}") for i in sorted(report.fallbacks)]
    rows += [("note", note) for note in report.notes]
    return Table(("", ""), tuple(rows), header=False)


def _fact_name(name: str) -> str:
    """Return what a figure is called."""
    return name.removesuffix("_bytes").replace("_", " ")


def accuracy_table(found: Sequence[OutputAccuracy], ticks: tuple[str, str]) -> Table:
    """Return two rows an output: the target as it was written, and made smaller."""
    rows = []
    for each in found:
        rows.append((each.output, "written", *_nearness(each.before), ""))
        rows.append(("", "smaller", *_nearness(each.after), ticks[0 if each.passed else 1]))
    columns = ("output", "target", "cosine", "worst", "SNR dB", "error", "same class", "")
    return Table(columns, tuple(rows), frozenset(range(2, 7)))


def _nearness(near: Nearness) -> tuple[str, ...]:
    agreement = "" if near.agreement is None else f"{near.agreement:.2%}"
    cosines = f"{near.cosine:.6f}", f"{near.worst_cosine:.6f}"
    return (*cosines, f"{near.snr:.1f}", f"{near.error:.1e}", agreement)


def verdict_table(verdicts: Sequence[OutputVerdict], ticks: tuple[str, str]) -> Table:
    """Return one row an output: where the exact result was needed, the distances from it."""
    measured = any(verdict.distance is not None for verdict in verdicts)
    remarked = any(verdict.remark for verdict in verdicts)
    rows = tuple(
        (
            _pair(verdict.output, verdict.target or verdict.output, sign="->"),
            _pair(*map(shape_text, verdict.shapes)),
            _pair(*verdict.dtypes, sign="!=" if verdict.failed else "->"),
            f"{verdict.max_abs:.2e}",
            f"{verdict.max_rel:.2e}",
            f"{verdict.cosine:.6f}",
            *(_distances(verdict) if measured else (f"{verdict.atol:.1e}", f"{verdict.rtol:.1e}")),
            *((verdict.remark,) if remarked else ()),
            ticks[0] if verdict.passed else ticks[1] if verdict.failed else "?",
        )
        for verdict in verdicts
    )
    figures = ("distance", "own", "factor") if measured else ("atol", "rtol")
    columns = ("output", "shape", "dtype", "max abs", "max rel", "cosine", *figures)
    right = frozenset(range(3, len(columns)))
    return Table((*columns, *(("",) if remarked else ()), ""), rows, right)


def _distances(verdict: OutputVerdict) -> tuple[str, str, str]:
    """Return the distances from the exact result, empty where both agreed at once."""
    if verdict.distance is None or verdict.own is None:
        return "", "", ""
    return f"{verdict.distance:.1e}", f"{verdict.own:.1e}", f"{verdict.factor:.2g}"


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


def verdict_line(report: Report) -> str:
    """Return one sentence on the outcome of a check, empty if there was none."""
    if not report.verdicts or report.engines is None:
        return ""
    failed = sum(verdict.failed for verdict in report.verdicts)
    silent = sum(not verdict.informative for verdict in report.verdicts)
    total = len(report.verdicts)
    outcome = f"{failed} of {total} outputs differ" if failed else _agreeing(total, silent)
    if report.unexercised:
        outcome += f"; not exercised: {counted(report.unexercised)}"
    return f"checked {report.engines[0]} against {report.engines[1]}: {outcome}"


def _agreeing(total: int, silent: int) -> str:
    if silent == total:
        return "the output says nothing" if total == 1 else f"all {total} outputs say nothing"
    if silent:
        return f"{total - silent} of {total} outputs agree, {silent} say nothing"
    return "the output agrees" if total == 1 else f"all {total} outputs agree"


def _pair(left: str, right: str, sign: str = "!=") -> str:
    return left if left == right else f"{left} {sign} {right}"


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


def shape_text(shape: Sequence[object] | None) -> str:
    """Return a shape as ``1x3x224x224``; ``scalar`` for rank 0, ``unknown`` for None."""
    if shape is None:
        return "unknown"
    return "x".join(map(str, shape)) or "scalar"


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
    parts += [markdown_table(table) for table in tables(report, ticks=("✓", "✗"))]
    line = verdict_line(report)
    if line:
        parts.append(line)
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
