"""Every exception that serde raises on purpose.

::

    SerdeError
    ├── FormatError              malformed bytes in a file
    ├── OptionError              an argument or flag that cannot be used as given
    ├── ConversionError
    │   ├── Unsupported          raised by one converter; recorded, never leaves a conversion
    │   ├── UnsupportedModelError    all gaps of one conversion, in ``.report``
    │   ├── LimitError           a limit that can be raised by name is reached
    │   ├── EvaluationError      values that an operator cannot take, as a run would show
    │   ├── CompileError         what compiles a model refuses it, or crashed
    │   └── ConverterBug         a defect of serde itself
    ├── RelayError
    │   ├── TypeInferenceError   an operator's rules refuse its operands
    │   ├── VerifyError          a module breaks a structural rule
    │   └── ParseError           Relay text that does not parse
    │       └── IllTypedError    Relay text that parses, whose operands do not fit their operators
    ├── CheckError               numbers of two models differ, or could not be compared
    ├── StoreError               a store that does not hold, give or take what it should
    ├── ClusterError             a cluster that is not there, is lost, or has no worker
    └── MissingDependency        an optional package is not installed
"""

from __future__ import annotations

import os

from serde.core.report import Issue, Report

__all__ = [
    "CheckError", "ClusterError", "CompileError", "ConversionError", "ConverterBug",
    "EvaluationError", "FormatError", "IllTypedError", "LimitError", "MissingDependency",
    "OptionError", "ParseError", "RelayError", "SerdeError", "StoreError", "TypeInferenceError",
    "Unsupported", "UnsupportedModelError", "VerifyError", "raise_if_refused", "refuse_model",
]  # fmt: skip


class SerdeError(Exception):
    """Root of all errors raised by serde."""


class FormatError(SerdeError):
    """Bytes that are not what their format prescribes.

    Args:
        message: What was expected and what was found.
        path: The file concerned, if there is one.
        offset: Position of the fault in bytes from the start of the file.
    """

    def __init__(
        self, message: str, *, path: str | os.PathLike[str] | None = None, offset: int | None = None
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self.offset = offset
        where = "" if path is None else f"{self.path}: "
        if offset is not None:
            where += f"at byte {offset}: "
        super().__init__(where + message)


class OptionError(SerdeError, ValueError):
    """An argument, option or flag that cannot be used as given."""


class ConversionError(SerdeError):
    """A model that could not be converted."""


class Unsupported(ConversionError):
    """One node that a converter cannot express.

    Args:
        reason: Why, in one clause.
        hint: What the user may do about it.
    """

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class UnsupportedModelError(ConversionError):
    """A conversion was refused; ``report`` lists every gap."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.as_text())
        self.report = report


def raise_if_refused(report: Report) -> None:
    """Raise if a gap was recorded.

    Raises:
        UnsupportedModelError: It carries the report.
    """
    if report.issues:
        raise UnsupportedModelError(report)


def refuse_model(error: Unsupported, name: str, given: Report | None) -> UnsupportedModelError:
    """Return what tells that a format cannot hold a model, for a reason that is no node's.

    Args:
        error: The reason.
        name: Name of the format.
        given: What the conversion reports so far, if that is at hand.
    """
    report = Report() if given is None else given
    report.title = report.title or name
    report.issues.append(Issue("graph", "main", error.reason, error.hint))
    return UnsupportedModelError(report)


class LimitError(ConversionError):
    """A conversion would take more than it may.

    Args:
        limit: Name of the limit: a field of :class:`serde.core.limits.Limits`.
        allowed: How much there may be of it.
        needed: How much there would have to be, as far as is known.
        what: What for.

    Attributes:
        node: Name of the node it is for, once that is known.
    """

    def __init__(self, limit: str, allowed: int, needed: int, what: str) -> None:
        super().__init__(limit, allowed, needed, what)
        self.limit = limit
        self.allowed = allowed
        self.needed = needed
        self.what = what
        self.node = ""

    def __str__(self) -> str:
        where = f"{self.node}: " if self.node else ""
        return (
            f"{where}{self.what} would take {self.needed:,} {self.limit}, and {self.allowed:,} may "
            f"be taken; --limit {self.limit}={self.needed} allows it"
        )


class CompileError(ConversionError):
    """A model whose code could not be made: the compiler refuses it, or crashed."""


class ConverterBug(ConversionError):
    """A converter failed in a way that it must not: a defect of serde."""


class RelayError(SerdeError):
    """A fault in a Relay module.

    Attributes:
        node: The expression at fault, where it is known.
    """

    node: object | None = None


class EvaluationError(RelayError, ConversionError):
    """Values that an operator cannot take: a run of the model would fail as its conversion does."""


class TypeInferenceError(RelayError):
    """Operands or attributes that an operator does not accept."""


class VerifyError(RelayError):
    """A module that breaks a structural rule of Relay."""


class ParseError(RelayError):
    """Relay text that does not parse.

    Args:
        message: What was expected and what was found.
        line: Line of the fault, from 1.
        column: Column of the fault, from 1.
        name: Name of the text, such as its file.
    """

    def __init__(self, message: str, *, line: int, column: int, name: str = "<text>") -> None:
        super().__init__(f"{name}:{line}:{column}: {message}")
        self.line = line
        self.column = column


class IllTypedError(ParseError, TypeInferenceError):
    """Relay text whose operators do not fit their operands, or whose variables are not bound."""


class CheckError(SerdeError):
    """Two models disagree, or could not be compared; ``report`` holds the verdicts."""

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


class StoreError(SerdeError):
    """A store that cannot be reached, refuses access, or lacks or loses an object.

    What it says is one line that names the URL, without what is secret there.
    """


class ClusterError(SerdeError):
    """A cluster that cannot be reached, is lost meanwhile, or has no worker that could be used."""


class MissingDependency(SerdeError, ImportError):
    """An optional package that is not installed.

    Args:
        package: Name of the missing package.
        extra: The extra of this distribution that installs it.
        reason: What it is needed for, or another way.
    """

    def __init__(self, package: str, *, extra: str, reason: str = "") -> None:
        message = f"{package} is not installed; pip install 'serde-relay[{extra}]'"
        super().__init__(f"{message} ({reason})" if reason else message)
        self.package = package
        self.extra = extra
