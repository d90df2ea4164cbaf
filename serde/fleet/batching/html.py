"""The outcomes of a batch as one HTML page, which needs nothing but a browser.

Its figures and tables are there without scripts; a script searches, sorts and shows the models,
which stand in the page as JSON. Nothing is fetched: a policy in the page forbids it, and lets no
other script run than this one. Names come from files, so that all of them are escaped, and signs
that show nothing or turn the direction of writing are spelled out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from serde._version import __version__
from serde.core.texts import printable, size_text
from serde.fleet.batching.findings import VERDICTS, Findings
from serde.fleet.batching.gaps import OperatorGap, Step
from serde.fleet.batching.page_data import PageData, status_class
from serde.fleet.batching.records import Outcome, Settings
from serde.io.atomic import write_text
from serde.viewing.page import quoted_digest

__all__ = ["write_html"]

_SHOWN, _STEPS, _OUTSTANDING, _TEXT = 30, 10, 10, 300
"""Rows that are shown at once, operators to add next, models that stand out, signs of a reason."""

_ORDER: Final = ("done", "unchanged", "refused")
"""The statuses that come first; all others follow by how many models they have."""

_HEADS: Final = (
    ("name", "model", ""),
    ("status", "ended", ""),
    ("verdict", "check", ""),
    ("seconds", "time", "right"),
    ("memory", "memory", "right minor"),
    ("bytes_read", "read", "right minor"),
    ("bytes_written", "written", "right minor"),
    ("nodes", "nodes", "right minor"),
)


def write_html(
    path: str | os.PathLike[str], outcomes: Iterable[Outcome], *, settings: Settings | None = None
) -> Findings:
    """Write the page of a batch, which appears whole or not at all.

    Args:
        path: The file.
        outcomes: The outcomes; taken once, and not kept but for what the page shows of them.
        settings: What the models were to become, for the heading.

    Returns:
        What the outcomes come to.

    Raises:
        OptionError: `path` cannot be a new file.
    """
    findings, data = Findings(), PageData()
    for outcome in outcomes:
        findings.add(outcome)
        data.add(outcome)
    write_text(path, "".join(_page(findings, data, settings)))
    return findings


def _page(findings: Findings, data: PageData, settings: Settings | None) -> Iterator[str]:
    """Yield the parts of the page."""
    assets = files("serde.fleet.batching") / "page"
    style, script = ((assets / name).read_text("utf-8") for name in ("page.css", "page.js"))
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {quoted_digest(style)}; script-src {quoted_digest(script)}"
    )
    title = f"serde batch: {findings.models:,} {'model' if findings.models == 1 else 'models'}"
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{title}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>{style}</style>\n</head>\n<body>\n<main>\n"
    )
    yield from _summary(findings, settings, title)
    yield from _operators(findings)
    yield from _reasons(findings)
    yield from _outstanding(findings)
    yield from _models(findings, data)
    yield (
        "</main>\n"
        f'<script type="application/json" id="data">{data.as_json()}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _summary(findings: Findings, settings: Settings | None, title: str) -> Iterator[str]:
    """Yield the heading, the figures of the run and how models ended."""
    yield f"<h1>{title}{f' to {_text(settings.to)}' if settings else ''}</h1>\n"
    facts = [f"serde {__version__}"]
    if settings:
        facts.insert(0, f'into <span class="name">{_text(settings.out)}</span>')
    if findings.began is not None:
        facts.append(time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(findings.began)))
    yield f'<p class="faint">{" · ".join(facts)}</p>\n<dl class="tiles">\n'
    for what, figure in _figures(findings):
        yield f"<div><dt>{what}</dt><dd>{figure}</dd></div>\n"
    yield "</dl>\n"
    statuses = _ordered(findings)
    yield _bar([(count, status_class(status)) for status, count in statuses], whole=True)
    yield '<ul class="legend">\n'
    for status, count in statuses:
        yield (
            f'<li><button type="button" data-status="{_text(status)}">'
            f'<span class="dot {status_class(status)}">{count:,} {_text(status)}</span></button>\n'
        )
    yield "</ul>\n"
    if findings.models > findings.verdicts["not checked"]:
        parts = [f"{findings.verdicts[word]:,} {word}" for word in VERDICTS[:3]]
        yield f"<p>Outputs of source and target: {', '.join(parts)}.</p>\n"


def _figures(findings: Findings) -> Iterator[tuple[str, str]]:
    """Yield the figures of the run."""
    yield "models", f"{findings.models:,}"
    yield "done", f"{findings.done:,}"
    yield "failed", f"{findings.failed:,}"
    if findings.reused:
        yield "of an earlier run", f"{findings.reused:,}"
    yield "read", size_text(findings.bytes_read)
    yield "written", size_text(findings.bytes_written)
    if findings.elapsed:
        yield "wall time", _duration(findings.elapsed)
        yield "models a second", f"{findings.rate:.3g}"
        yield "in parallel", f"{findings.busy / findings.elapsed:.1f}"


def _ordered(findings: Findings) -> list[tuple[str, int]]:
    """Return how models ended and how many, in the order of the page."""
    first = [status for status in _ORDER if findings.statuses[status]]
    rest = [status for status, _ in findings.statuses.most_common() if status not in _ORDER]
    return [(status, findings.statuses[status]) for status in (*first, *rest)]


def _operators(findings: Findings) -> Iterator[str]:
    """Yield what holds models up, and what to add next."""
    gaps = findings.gaps.operators()
    if not gaps:
        return
    held = findings.gaps.models
    steps = list(findings.gaps.next_best(_STEPS))
    yield (
        "<h2>Operators that hold models up</h2>\n"
        f"<p>{_models_text(held)} refused for {len(gaps):,} "
        f"{'operator' if len(gaps) == 1 else 'operators'}. "
        "<em>Alone</em> counts the models whose gaps are all of that operator: "
        "what adding just it would free.</p>\n"
        '<p class="faint">Of the gaps that are known: a model that is refused while it is read '
        "has not been asked what the target lacks.</p>\n"
    )
    heads = ("operator", "on the way", "<models", "", "<alone", "<nodes", "why")
    rows = [_gap_cells(gap, held) for gap in gaps]
    yield from _folded(heads, rows, "operators", len(rows))
    yield "<h2>Add these next</h2>\n"
    yield (
        "<p>Each is the operator that frees most models once those above it are there; "
        "where none does, the one that most models wait for.</p>\n"
    )
    heads = ("<", "operator", "on the way", "<frees", "<together", "<of refused", "")
    yield _table(heads, [_step_cells(place, each, held) for place, each in enumerate(steps, 1)])


def _gap_cells(gap: OperatorGap, held: int) -> tuple[str, ...]:
    op, way = _text(gap.operator.op), _text(gap.operator.way)
    bar = _bar([(gap.alone, "accent"), (gap.models - gap.alone, "more")], held)
    return (
        f'<button type="button" class="link name" data-operator="{op}" data-way="{way}">'
        f"{op}</button>",
        way,
        f"{gap.models:,}",
        bar,
        f"{gap.alone:,}",
        f"{gap.nodes:,}",
        _why(gap.reasons),
    )


def _why(reasons: Sequence[tuple[str, int]]) -> str:
    """Return the reasons of a gap, the first one outside."""
    texts = [f"{_text(_short(reason))} <span class='faint'>({n:,})</span>" for reason, n in reasons]
    if len(texts) < 2:
        return _text(_short(reasons[0][0]))
    more = "<br>".join(texts[1:_SHOWN])
    return f"{texts[0]}<details><summary>{len(texts) - 1:,} more</summary>{more}</details>"


def _step_cells(place: int, step: Step, held: int) -> tuple[str, ...]:
    return (
        f"{place}",
        f'<span class="name">{_text(step.operator.op)}</span>',
        _text(step.operator.way),
        f"{step.freed:,}",
        f"{step.total:,}",
        f"{100 * step.total / held:.0f} %",
        _bar([(step.total - step.freed, "more"), (step.freed, "accent")], held),
    )


def _reasons(findings: Findings) -> Iterator[str]:
    """Yield why models failed."""
    reasons = findings.reasons()
    if not reasons:
        return
    yield "<h2>What failed, by reason</h2>\n"
    rows = [
        (
            f'<span class="dot {status_class(each.status)}">{_text(each.status)}</span>',
            _text(_short(each.text)),
            f"{each.models:,}",
            _model(each.example),
        )
        for each in reasons
    ]
    heads = ("ended", "why", "<models", "such as")
    yield from _folded(heads, rows, "reasons", 20 * _SHOWN)


def _folded(
    heads: Sequence[str], rows: Sequence[Sequence[str]], what: str, most: int
) -> Iterator[str]:
    """Yield a table of which only the first rows are seen until somebody asks for the rest."""
    yield _table(heads, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield f"<details><summary>{len(rows) - _SHOWN:,} more {what}</summary>\n"
        yield f"{_table(heads, rows[_SHOWN:most])}</details>\n"


def _outstanding(findings: Findings) -> Iterator[str]:
    """Yield the slowest and largest models, and what ran them."""
    slowest = [(name, _duration(seconds)) for name, seconds in findings.slowest()]
    largest = [(name, size_text(size)) for name, size in findings.largest()]
    hungriest = [(name, size_text(size)) for name, size in findings.hungriest()]
    lists = (("Slowest", slowest), ("Largest", largest), ("Most memory", hungriest))
    yield '<div class="columns">\n'
    for title, found in lists:
        if found:
            rows = [(_model(name), figure) for name, figure in found[:_OUTSTANDING]]
            yield f"<section><h2>{title}</h2>\n{_table(('model', '<'), rows)}</section>\n"
    if len(findings.workers) > 1:
        counted = findings.workers.most_common(_SHOWN)
        rows = [(f'<span class="name">{_text(name)}</span>', f"{n:,}") for name, n in counted]
        yield f"<section><h2>What ran them</h2>\n{_table(('process', '<models'), rows)}</section>\n"
    yield "</div>\n"


def _models(findings: Findings, data: PageData) -> Iterator[str]:
    """Yield what the script fills with the models."""
    heads = "".join(
        f'<th scope="col" data-column="{column}" class="{kind}">'
        f'<button type="button">{name}</button></th>'
        for column, name, kind in _HEADS
    )
    yield '<h2 id="all">All models</h2>\n'
    if data.left_out:
        yield (
            f"<p>{data.left_out:,} models are not in this table, which has those that failed "
            "first; the Parquet file has all.</p>\n"
        )
    yield (
        '<noscript><p class="faint">The table of models needs scripts.</p></noscript>\n'
        '<div class="tools">\n'
        '<input id="search" type="search" placeholder="Search names, errors, operators" '
        'aria-label="Search models">\n'
        f"{_choice('status', 'however they ended', data.statuses)}"
        f"{_choice('verdict', 'whatever the check said', VERDICTS)}"
        '<button type="button" id="chosen" hidden></button>\n'
        '<output id="count"></output>\n'
        '<button type="button" id="previous">Previous</button>\n'
        '<button type="button" id="next">Next</button>\n</div>\n'
        f'<div class="scroll"><table id="models"><thead><tr>{heads}</tr></thead>'
        "<tbody></tbody></table></div>\n"
    )


def _choice(name: str, every: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{_text(value)}</option>" for value in values)
    return (
        f'<select id="{name}" aria-label="{name}"><option value="">{every}</option>'
        f"{options}</select>\n"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells in HTML; a column whose head begins with ``<`` holds numbers."""
    kinds = {"why": ' class="why"', "on the way": ' class="way minor"'}
    right = ' class="right"'
    classes = [right if head.startswith("<") else kinds.get(head, "") for head in heads]
    lines = ['<div class="scroll"><table><thead><tr>']
    lines += [
        f'<th scope="col"{kind}>{head.removeprefix("<")}</th>'
        for head, kind in zip(heads, classes, strict=True)
    ]
    lines.append("</tr></thead><tbody>\n")
    for row in rows:
        cells = (
            f"<td{' class=meter' if cell.startswith('<svg') else kind}>{cell}</td>"
            for cell, kind in zip(row, classes, strict=True)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    lines.append("</tbody></table></div>\n")
    return "".join(lines)


def _bar(parts: Sequence[tuple[int, str]], of: int | None = None, *, whole: bool = False) -> str:
    """Return parts of a whole side by side, each a count and its colour."""
    total = max(sum(count for count, _ in parts) if of is None else of, 1)
    drawn, start = [], 0.0
    for count, kind in parts:
        share = 100 * count / total
        drawn.append(f'<rect class="{kind}" x="{start:.2f}%" width="{share:.2f}%" height="100%"/>')
        start += share
    return f'<svg class="bar{" whole" if whole else ""}" aria-hidden="true">{"".join(drawn)}</svg>'


def _model(name: str) -> str:
    text = _text(name)
    return f'<button type="button" class="link name" data-model="{text}">{text}</button>'


def _models_text(count: int) -> str:
    return "1 model is" if count == 1 else f"{count:,} models are"


def _text(text: str) -> str:
    """Return text as it stands in HTML, in an attribute too."""
    return escape(printable(text))


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"


def _duration(seconds: float) -> str:
    """Return a time as ``1.25 s``, ``4 m 12 s`` or ``3 h 7 m``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} m" if hours else f"{minutes} m {rest} s"
