"""One command while it runs: where it prints, what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from serde.command.console import LiveReport, Terminal
from serde.command.render import as_json, as_markdown
from serde.core.outcome import OUTCOMES

__all__ = ["Invocation", "show_report"]


class Invocation:
    """One command while it runs: where it prints, and what it has to report.

    Attributes:
        terminal: Where it prints.
        report: What the public functions fill.
        as_json: Whether stdout gets one JSON object and nothing else.
        report_path: Where the report is written, or None.
        findings: What a command has found besides, for the JSON object and a report in JSON.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.report = LiveReport(terminal)
        self.as_json = False
        self.report_path: Path | None = None
        self.findings: dict[str, Any] = {}
        self._logging = ExitStack()

    def configure(self, options: dict[str, Any]) -> None:
        """Take the flags that all commands have out of `options`."""
        self.terminal.quiet = options.pop("quiet")
        self.terminal.verbose = options.pop("verbose")
        self.terminal.color &= not options.pop("no_color")
        self.as_json = options.pop("json")
        self.terminal.results = not self.as_json
        level = options.pop("log_level") or ("debug" if self.terminal.verbose else None)
        if level is not None:
            from serde.command.logs import LogLines

            lines = LogLines(self.terminal.log, skip_stages=not self.terminal.quiet)
            self._logging.enter_context(lines.attached(level))
        path = options.pop("report", None)
        if path is not None:
            from serde.command.written import check_written

            check_written(path, options["paths"], "--report", (".json", ".md"))
        self.report_path = path

    def finish(self) -> None:
        """Let go of the log; called however the command ends."""
        self._logging.close()

    def print_result(
        self, data: Mapping[str, Any], *, code: int = 0, outcome: str = "done"
    ) -> None:
        """Print what a command without a report has found, as its JSON object.

        Args:
            data: What it has found.
            code: Its exit code.
            outcome: How it ended.
        """
        ended = {"outcome": outcome, "exit_code": code, "error": None}
        self.terminal.raw(as_json({**ended, **data}))

    def close(self, code: int, error: str | None = None) -> None:
        """Write the report file and the JSON object."""
        data = {"outcome": OUTCOMES[code], "exit_code": code, "error": error, **self.findings}
        path, self.report_path = self.report_path, None
        if path is not None:
            if path.suffix == ".json":
                text = as_json({**data, **self.report.as_dict()}) + "\n"
            else:
                text = as_markdown(self.report, outcome=OUTCOMES[code], error=error)
            from serde.io.atomic import write_text

            write_text(path, text)
        if self.as_json:
            self.terminal.raw(as_json({**data, **self.report.as_dict()}))


def show_report(run: Invocation, *, aside: bool = False) -> None:
    """Print the tables of the report; `aside` on stderr, where they are not the result."""
    if aside and not run.as_json:
        run.terminal.progress("")
    for table in run.report.tables(run.terminal.ticks()):
        run.terminal.table(table, aside=aside)
    style = "green" if run.report.passed else "yellow" if run.report.says_nothing else "red"
    _show_sentence(run, run.report.check_sentence, style, aside=aside)
    judged = {each.passed for each in run.report.accuracy}
    style = "red" if False in judged else "green" if True in judged else "yellow"
    _show_sentence(run, run.report.accuracy_sentence, style, aside=aside)


def _show_sentence(run: Invocation, line: str, style: str, *, aside: bool) -> None:
    if line and aside and not run.as_json:
        run.terminal.progress(line, style)
    elif line and not aside:
        run.terminal.line(line, style)
