"""How what serde is asked for ends: the exit codes, and what an error says in one message."""

from __future__ import annotations

import os

from serde.errors import (
    CheckError,
    ClusterError,
    ConversionError,
    ConverterBug,
    FormatError,
    MissingDependency,
    OptionError,
    ParseError,
    SerdeError,
    StoreError,
)

__all__ = ["OUTCOMES", "error_message", "exit_code"]

OUTCOMES = {
    0: "done",
    1: "refused",
    2: "usage",
    3: "malformed",
    4: "check failed",
    5: "not checked",
    6: "package missing",
    7: "unreachable",
    8: "cluster failed",
    70: "internal error",
    130: "interrupted",
}
_EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (ConverterBug, 70), (ConversionError, 1), (OptionError, 2), (FormatError, 3), (ParseError, 3),
    (MissingDependency, 6), (StoreError, 7), (ClusterError, 8), (OSError, 2),
    (KeyboardInterrupt, 130),
)  # fmt: skip
"""The exit code of each kind of error, the first that fits."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error that ended a command."""
    if isinstance(error, CheckError):
        report = error.report
        if report is not None and any(each.passed is False for each in report.accuracy):
            return 4
        return 4 if report is not None and report.verdicts and not report.says_nothing else 5
    for kind, code in _EXIT_CODES:
        if isinstance(error, kind):
            return code
    return 70


def error_message(error: BaseException) -> str:
    """Return what an error says; of one by the operating system, the file and the cause."""
    if isinstance(error, SerdeError) or not isinstance(error, OSError) or not error.strerror:
        return str(error)
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return where + error.strerror
