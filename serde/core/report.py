"""What a conversion has to say: its gaps, its stages and its verdicts, and the tables of them."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from itertools import zip_longest
from typing import Any, Final

from serde.core.progress import Progress, listening
from serde.core.records import asdict, dataclass, field, fields
from serde.core.texts import size_text

__all__ = [
    "NOT_SHOWN", "TICKS", "Issue", "Nearness", "OutputAccuracy", "OutputVerdict", "Progress",
    "Report", "Stage", "Table", "counted", "operator_table", "shape_text", "verdict_table",
]  # fmt: skip

_LOG = logging.getLogger("serde")
_LOG.addHandler(logging.NullHandler())

_TRIED: Final = ("allowed", "fallbacks", "notes", "facts")
"""Fields of a report that a step adds to which may be taken back."""

NOT_SHOWN = ("on_progress", "_logged")
"""Fields of a report that are no part of what it says."""


TICKS: Final = ("✓", "✗")
"""What stands for an output that passed and for one that did not."""

_SHOWN_FACTS_APART = frozenset((
    "path", "bytes", "parameters", "source", "target", "inputs", "outputs", "labels", "outside",
))  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """One reason why one node cannot be converted.

    Attributes:
        op: Operator of the node, with its version where there is one.
        node: Name of the node, with its subgraph path.
        reason: Why, in one clause.
        hint: What the user may do about it.
    """

    op: str
    node: str
    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a conversion and its wall time in seconds."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """How one output of two models compares on the same inputs.

    Attributes:
        output: Name of the output.
        shapes: Shape from the source, shape from the target.
        dtypes: dtype from the source, dtype from the target.
        max_abs: Largest absolute difference.
        max_rel: Largest difference relative to the largest magnitude of the source.
        cosine: Cosine of the angle between both, as flat vectors.
        atol: Absolute tolerance applied.
        rtol: Relative tolerance applied.
        passed: Shapes and dtypes match and the values agree.
        informative: Whether the source's output can tell right from wrong; one that cannot has
            not passed, and has not failed either.
        target: What the target calls the output, None if it has none.
        distance: Distance of the target from the exact result, in deviations of the output;
            None where the exact result was not needed.
        own: Likewise that of the source, or of its rounding.
        remark: What else there is to say, such as ``2 of 40 rows swapped within 1.5e-06``.
    """

    output: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[str, str]
    max_abs: float
    max_rel: float
    cosine: float
    atol: float
    rtol: float
    passed: bool
    informative: bool = True
    target: str | None = None
    distance: float | None = None
    own: float | None = None
    remark: str = ""

    def _repr_html_(self) -> str:
        """Return the figures for a notebook."""
        return verdict_table([self]).as_html()

    @property
    def failed(self) -> bool:
        """Whether the output was found to be wrong."""
        return self.informative and not self.passed

    @property
    def factor(self) -> float | None:
        """How many times as far from the exact result the target is as the source."""
        if self.distance is None or self.own is None:
            return None
        if self.own == 0.0:
            return 0.0 if self.distance == 0.0 else math.inf
        return self.distance / self.own


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near an output of a model is to the source's, over all samples.

    Attributes:
        cosine: Cosine of the angle between both, as flat vectors of all samples.
        worst_cosine: The least cosine of a sample.
        snr: Ratio of the source's power to that of the difference, in decibels.
        error: Root of the mean square of the difference, in deviations of the output.
        agreement: Share of rows in which the same class is best; of integers, of elements that
            are equal. None where neither is meant.
    """

    cosine: float
    worst_cosine: float
    snr: float
    error: float
    agreement: float | None = None


@dataclass(frozen=True, slots=True)
class OutputAccuracy:
    """What making a model smaller does to one output.

    Attributes:
        output: Name of the output in the source.
        before: The target as it was written, beside the source.
        after: The smaller target, beside the source.
        passed: Whether `after` is not below what the caller demands; None where that is nothing.
    """

    output: str
    before: Nearness
    after: Nearness
    passed: bool | None = None


def counted(parts: Sequence[str]) -> str:
    """Return how many operators the parts are of, as ``3 clips, 1 branch``."""
    nouns = Counter(noun for noun, _ in {(p.split(" ")[0], p.split(": ")[0]) for p in parts})
    plurals = {"branch": "branches"}
    return ", ".join(
        f"{count} {noun if count == 1 else plurals.get(noun, noun + 's')}"
        for noun, count in sorted(nouns.items(), key=lambda item: (-item[1], item[0]))
    )


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

    def as_html(self) -> str:
        """Return it for a notebook."""
        from serde.core.markup import table

        return table(self.columns if self.header else (), self.rows, right=self.right)


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


def accuracy_table(found: Sequence[OutputAccuracy], ticks: tuple[str, str] = TICKS) -> Table:
    """Return two rows an output: the target as it was written, and made smaller."""
    rows = []
    for each in found:
        rows.append((each.output, "written", *_nearness(each.before), ""))
        tick = "" if each.passed is None else ticks[0 if each.passed else 1]
        rows.append(("", "smaller", *_nearness(each.after), tick))
    columns = ("output", "target", "cosine", "worst", "SNR dB", "error", "same class", "")
    return Table(columns, tuple(rows), frozenset(range(2, 7)))


def _nearness(near: Nearness) -> tuple[str, ...]:
    agreement = "" if near.agreement is None else f"{near.agreement:.2%}"
    cosines = f"{near.cosine:.6f}", f"{near.worst_cosine:.6f}"
    return (*cosines, f"{near.snr:.1f}", f"{near.error:.1e}", agreement)


def verdict_table(verdicts: Sequence[OutputVerdict], ticks: tuple[str, str] = TICKS) -> Table:
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


def _pair(left: str, right: str, sign: str = "!=") -> str:
    return left if left == right else f"{left} {sign} {right}"


def shape_text(shape: Sequence[object] | None) -> str:
    """Return a shape as ``1x3x224x224``; ``scalar`` for rank 0, ``unknown`` for None."""
    if shape is None:
        return "unknown"
    return "x".join(map(str, shape)) or "scalar"


def _agreeing(total: int, silent: int) -> str:
    if silent == total:
        return "the output says nothing" if total == 1 else f"all {total} outputs say nothing"
    if silent:
        return f"{total - silent} of {total} outputs agree, {silent} say nothing"
    return "the output agrees" if total == 1 else f"all {total} outputs agree"


@dataclass(slots=True)
class Report:
    """Filled while a conversion runs; the public functions accept one as ``report=``.

    Attributes:
        title: What is being done, such as ``"mxnet -> relay"``.
        nodes: Number of nodes of the source.
        issues: Gaps that make the conversion impossible.
        allowed: Lossy steps that the caller allowed by name, one issue each.
        fallbacks: Operators that a user's function converted, or that were kept or written as
            they are, one issue a node.
        notes: Facts worth knowing that do not change the result.
        stages: Steps done, with their wall time.
        before: Count of each operator in the source.
        after: Count of each operator in the target.
        facts: Figures of the result: path, size in bytes, parameters, version.
        verdicts: One comparison an output, where the result was checked.
        engines: Names of the engines that ran source and target of the check.
        unexercised: Parts of the source that no inputs of the check reached, such as
            ``clip relu6_1: above 6`` or ``branch if_0: false``; what they compute was not compared.
        accuracy: One entry an output, where the target was made smaller.
        on_progress: Called while a stage goes on, ten times a second at most, with how far it
            has come; what it raises ends the conversion.
    """

    title: str = ""
    nodes: int = 0
    issues: list[Issue] = field(default_factory=list)
    allowed: list[Issue] = field(default_factory=list)
    fallbacks: list[Issue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Any] = field(default_factory=dict)
    verdicts: list[OutputVerdict] = field(default_factory=list)
    engines: tuple[str, str] | None = None
    unexercised: list[str] = field(default_factory=list)
    accuracy: list[OutputAccuracy] = field(default_factory=list)
    on_progress: Callable[[Progress], object] | None = field(
        default=None, repr=False, compare=False
    )
    _logged: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def add(self, op: str, node: str, reason: str, hint: str | None = None) -> None:
        """Record one gap."""
        self.issues.append(Issue(op, node, reason, hint))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the body of a ``with`` statement as one stage, and log what it has to say."""
        tell = self.on_progress
        _LOG.info("%s", name, extra={"stage": name})
        start = time.perf_counter()
        try:
            with nullcontext() if tell is None else listening(name, tell):
                yield
        finally:
            self._log_found()
        self.stages.append(Stage(name, time.perf_counter() - start))
        _LOG.debug("%s: %.3f s", name, self.stages[-1].seconds, extra={"stage": name})

    def _log_found(self) -> None:
        """Log what was noted since the last time: lossy steps as warnings, the rest as facts."""
        for kind, level, found in (
            ("allowed", logging.WARNING, self.allowed),
            ("fallback", logging.INFO, self.fallbacks),
            ("note", logging.INFO, self.notes),
        ):
            for each in found[self._logged.get(kind, 0) :]:
                text = each if isinstance(each, str) else f"{each.op} {each.node}: {each.reason}"
                _LOG.log(level, "%s: %s", kind, text)
            self._logged[kind] = len(found)

    def trial(self) -> Report:
        """Return a report for a step that may be taken back."""
        made = copy(self)
        made.issues = []
        for name in _TRIED:
            setattr(made, name, copy(getattr(self, name)))
        return made

    def adopt(self, trial: Report) -> None:
        """Take over what a step has found that is not taken back."""
        for name in _TRIED:
            setattr(self, name, getattr(trial, name))

    @property
    def passed(self) -> bool:
        """Whether some output agrees and none failed."""
        return any(v.passed for v in self.verdicts) and not any(v.failed for v in self.verdicts)

    @property
    def says_nothing(self) -> bool:
        """Whether there are verdicts, and no output can tell right from wrong."""
        return bool(self.verdicts) and not any(v.informative for v in self.verdicts)

    @property
    def coverage(self) -> str:
        """One sentence on how much can be converted, as ``212 of 226 nodes can be converted``."""
        failed = len({issue.node for issue in self.issues})
        total = max(self.nodes, failed)
        return f"{total - failed} of {total} nodes can be converted"

    def as_text(self) -> str:
        """Return the gaps, grouped by operator and reason, in a stable order."""
        failed = len({issue.node for issue in self.issues})
        lines = [f"{self.title}: {failed} of {max(self.nodes, failed)} nodes cannot be converted"]
        groups = self._grouped()
        width = max((len(op) for op, _, _ in groups), default=0)
        count_width = max((len(f"x{len(nodes)}") for nodes in groups.values()), default=0)
        for (op, reason, hint), nodes in groups.items():
            shown = ", ".join(nodes[:5]) + (", ..." if len(nodes) > 5 else "")
            tail = f" ({hint})" if hint else ""
            count = f"x{len(nodes)}"
            lines.append(f"  {op:<{width}}  {count:<{count_width}}  {reason}{tail} [{shown}]")
        return "\n".join(lines)

    def _grouped(self) -> dict[tuple[str, str, str], list[str]]:
        """Return the nodes with gaps by operator, reason and hint, in a stable order."""
        groups: dict[tuple[str, str, str], list[str]] = {}
        for issue in sorted(self.issues, key=lambda i: (i.op, i.reason, i.hint or "", i.node)):
            groups.setdefault((issue.op, issue.reason, issue.hint or ""), []).append(issue.node)
        return groups

    def tables(self, ticks: tuple[str, str] = TICKS) -> Iterator[Table]:
        """Yield the tables that have rows: operators, figures, verdicts, accuracy.

        Args:
            ticks: What stands for an output that passed and for one that did not.
        """
        if self.before or self.after:
            yield operator_table(self)
        figures = figure_table(self)
        if figures.rows:
            yield figures
        if self.verdicts:
            yield verdict_table(self.verdicts, ticks)
        if self.accuracy:
            yield accuracy_table(self.accuracy, ticks)

    @property
    def check_sentence(self) -> str:
        """One sentence on the outcome of a check, empty if there was none."""
        if not self.verdicts or self.engines is None:
            return ""
        failed = sum(verdict.failed for verdict in self.verdicts)
        silent = sum(not verdict.informative for verdict in self.verdicts)
        total = len(self.verdicts)
        outcome = f"{failed} of {total} outputs differ" if failed else _agreeing(total, silent)
        if self.unexercised:
            outcome += f"; not exercised: {counted(self.unexercised)}"
        stage = ", before it was made smaller" if self.accuracy else ""
        return f"checked {self.engines[0]} against {self.engines[1]}{stage}: {outcome}"

    @property
    def accuracy_sentence(self) -> str:
        """One sentence on what making the model smaller has lost, empty if it was not done."""
        if not self.accuracy:
            return ""
        judged = [each.passed for each in self.accuracy if each.passed is not None]
        if not judged:
            return "made smaller: not judged, as no min_cosine or min_agreement is given"
        failed = judged.count(False)
        outputs = "1 output" if len(judged) == 1 else f"{len(judged)} outputs"
        if failed:
            return f"made smaller: {failed} of {outputs} below the least that is demanded"
        return f"made smaller: {outputs} as near as is demanded"

    def _repr_html_(self) -> str:
        """Return for a notebook what a terminal shows, with gaps and stages."""
        from serde.core.markup import escaped, figure, folded, table

        gaps = [
            (op, len(nodes), reason, hint, ", ".join(nodes[:5]) + (", ..." if nodes[5:] else ""))
            for (op, reason, hint), nodes in self._grouped().items()
        ]
        stages = [(stage.name, f"{stage.seconds:.2f}") for stage in self.stages]
        ends = (self.check_sentence, self.accuracy_sentence, str(self.facts.get("path", "")))
        return figure(
            self.title or "Report",
            f"<p>{self.coverage}</p>" if self.issues else "",
            table(("operator", "nodes", "cannot be converted", "hint", "names"), gaps, right={1}),
            *(each.as_html() for each in self.tables()),
            *(f"<p>{escaped(end)}</p>" for end in ends if end),
            folded("stages", table(("stage", "seconds"), stages, right={1})),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the whole report as values that JSON can hold."""
        names = [each.name for each in fields(Report) if each.name not in NOT_SHOWN]
        data = asdict(Report(**{name: getattr(self, name) for name in names}))
        for name in NOT_SHOWN:
            del data[name]
        for shown, verdict in zip(data["verdicts"], self.verdicts, strict=True):
            shown["factor"] = verdict.factor
        data["before"] = dict(sorted(self.before.items()))
        data["after"] = dict(sorted(self.after.items()))
        return data
