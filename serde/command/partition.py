"""What ``serde partition`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core.report import Table

if TYPE_CHECKING:
    from serde.core.report import Report
    from serde.target.partition import Partition, PlacedNode

__all__ = ["partition_dict", "partition_line", "partition_properties", "partition_tables"]

_SHOWN_ROWS = 20
_SHOWN_OPERATORS = 4
_SHOWN_REASONS = 3


def partition_tables(found: Partition, report: Report) -> Iterator[Table]:
    """Yield the tables of a partition that have rows: regions, the host, what would win most.

    What a user's function read, or was kept as it is, comes last.
    """
    regions = tuple(
        (
            region.name,
            str(region.calls),
            str(region.nodes.total()),
            str(region.inputs),
            str(region.outputs),
            _most(region.nodes),
        )
        for region in found.regions[:_SHOWN_ROWS]
    )
    if regions:
        columns = ("region", "nodes", "ONNX nodes", "inputs", "outputs", "operators")
        rest = _rest(len(found.regions), "regions", len(columns))
        yield Table(columns, regions + rest, frozenset({1, 2, 3, 4}))
    staying = _by_operator(found.staying)
    kept = tuple((op, str(count), why) for op, (count, why) in staying[:_SHOWN_ROWS])
    if kept:
        rest = _rest(len(staying), "operators", 3)
        yield Table(("on the host", "nodes", "why"), kept + rest, frozenset({1}))
    wins = list(found.wins().items())
    if wins:
        limited = {gap.op for node in found.staying for gap in node.gaps if gap.listed}
        won = tuple(
            (op, str(count), "without its constraints" if op in limited else "in the list")
            for op, count in wins[:_SHOWN_ROWS]
        )
        rest = _rest(len(wins), "operators", 3)
        yield Table(("operator", "would win nodes", "if it were"), won + rest, frozenset({1}))
    fallbacks = tuple(
        ("fallback", f"{issue.op} {issue.node}: {issue.reason}")
        for issue in sorted(report.fallbacks)
    )
    if fallbacks:
        yield Table(("", ""), fallbacks, header=False)


def _rest(count: int, what: str, columns: int) -> tuple[tuple[str, ...], ...]:
    """Return the row that stands for those that are not shown."""
    left = count - _SHOWN_ROWS
    return ((f"and {left} {what} more", *[""] * (columns - 1)),) if left > 0 else ()


def _most(counts: Counter[str]) -> str:
    """Return the most frequent operators with their numbers."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{op} {count}" for op, count in ordered[:_SHOWN_OPERATORS]]
    return ", ".join([*shown, *(["..."] if len(ordered) > _SHOWN_OPERATORS else [])])


def _by_operator(nodes: Sequence[PlacedNode]) -> list[tuple[str, tuple[int, str]]]:
    """Return the operators on the host, the most frequent first, with their reasons."""
    counts: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    for node in nodes:
        counts[node.op] += node.calls
        texts = [f"{gap.op} {gap.reason}".strip() for gap in node.gaps]
        own = reasons.setdefault(node.op, Counter())
        own.update(texts or ["its region would be too small"])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(op, (count, _reasons(reasons[op]))) for op, count in ordered]


def _reasons(counts: Counter[str]) -> str:
    ordered = [text for text, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    more = ["..."] if len(ordered) > _SHOWN_REASONS else []
    return "; ".join([*ordered[:_SHOWN_REASONS], *more])


def partition_line(found: Partition) -> str:
    """Return in one sentence how much went into regions."""
    inside = sum(region.calls for region in found.regions)
    outside = sum(node.calls for node in found.staying)
    count = len(found.regions)
    regions = f"{count} region{'' if count == 1 else 's'}"
    if not outside:
        return f"all {inside} nodes are in {regions}"
    return f"{inside} of {inside + outside} nodes are in {regions}, {outside} stay on the host"


def partition_properties() -> dict[str, AnyValue]:
    """Return the schemas of what :func:`partition_dict` adds to a report."""
    from serde.command.schemas import object_of, schema_of

    count, text = schema_of(int), schema_of(str)
    region = {"name": text, "nodes": count, "written": schema_of(Counter[str])}
    why = object_of({"op": text, "reason": text})
    placed = {"op": text, "name": text, "nodes": count, "why": {"type": "array", "items": why}}
    return {
        "opset": count,
        "whole": schema_of(bool),
        "regions": {
            "type": "array",
            "items": object_of({**region, "inputs": count, "outputs": count}),
        },
        "host": {"type": "array", "items": object_of(placed)},
        "wins": schema_of(Counter[str]),
    }


def partition_dict(found: Partition) -> dict[str, AnyValue]:
    """Return what is known of a partition as values that JSON can hold."""
    return {
        "outcome": "done" if found.is_whole else "some stays on the host",
        "opset": found.opset,
        "whole": found.is_whole,
        "regions": [
            {
                "name": region.name,
                "nodes": region.calls,
                "written": dict(sorted(region.nodes.items())),
                "inputs": region.inputs,
                "outputs": region.outputs,
            }
            for region in found.regions
        ],
        "host": [
            {
                "op": node.op,
                "name": node.name,
                "nodes": node.calls,
                "why": [{"op": gap.op, "reason": gap.reason} for gap in node.gaps],
            }
            for node in found.staying
        ],
        "wins": found.wins(),
    }
