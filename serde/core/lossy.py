"""Lossy steps: what a conversion may lose, each by the name with which the caller allows it.

A step is declared here once. What takes it calls :meth:`LossyStep.record`; ``--allow`` and its
help, its completion and the documentation list what is declared. A format of another package
declares its own in the module of its options, so that they are known before options are bound.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from serde.core.records import dataclass
from serde.core.report import Issue, Report
from serde.errors import OptionError

__all__ = [
    "FLOAT16_OVERFLOW", "FLOAT64_AS_FLOAT32", "INT64_AS_INT32", "INTEGERS_AS_FLOAT32",
    "MISMATCHED_PAIR", "OTHER_LENGTHS", "QUANTISED_AS_FLOATS", "QUANTISED_AS_QDQ",
    "SIX_DIGIT_FLOATS", "TRACED_BRANCH", "UINT8_AS_INT8", "LossyStep", "check_allowed",
    "declare_lossy_step", "lossy_steps",
]  # fmt: skip

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class LossyStep:
    """A step of a conversion that loses something.

    Attributes:
        name: What ``allow`` and ``--allow`` call it: words with hyphens between.
        loses: What is lost, in one clause.
    """

    name: str
    loses: str

    @property
    def hint(self) -> str:
        """What a refusal tells the user to do."""
        return f"allow {self.name!r}"

    def record(
        self, report: Report, allow: Collection[str], *, op: str, node: str, reason: str
    ) -> None:
        """Record the step in a report: among what was allowed, or among the gaps.

        Args:
            report: Where to.
            allow: Names of the steps that the caller allows.
            op: Operator of the node that is concerned, or what else it is.
            node: Its name.
            reason: What is lost there, in one clause.
        """
        issue = Issue(op, node, reason, self.hint)
        (report.allowed if self.name in allow else report.issues).append(issue)


_STEPS: dict[str, LossyStep] = {}


def declare_lossy_step(name: str, loses: str) -> LossyStep:
    """Declare a step that callers may allow by its name, and return it.

    Raises:
        ValueError: The name is taken, or is not made of small words with hyphens between.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a lossy step, such as 'int64-as-int32'")
    if name in _STEPS:
        raise ValueError(f"lossy step {name} is declared already: {_STEPS[name].loses}")
    step = _STEPS[name] = LossyStep(name, loses)
    return step


def lossy_steps() -> Mapping[str, LossyStep]:
    """Return the declared steps by their names, in the order of these."""
    return MappingProxyType(dict(sorted(_STEPS.items())))


def check_allowed(names: Collection[str]) -> None:
    """Refuse names that no step has.

    Raises:
        OptionError: There is one; it tells the most similar names, or all.
    """
    for name in sorted(set(names) - _STEPS.keys()):
        from difflib import get_close_matches

        near = get_close_matches(name, sorted(_STEPS))
        told = f"did you mean {' or '.join(near)}?"
        if not near:
            told = f"known: {', '.join(lossy_steps())}"
        raise OptionError(f"allow: there is no lossy step {name!r}; {told}")


FLOAT16_OVERFLOW = declare_lossy_step(
    "float16-overflow", "values beyond the range of float16 become infinite"
)
FLOAT64_AS_FLOAT32 = declare_lossy_step(
    "float64-as-float32", "float64 is computed and stored as float32"
)
INT64_AS_INT32 = declare_lossy_step(
    "int64-as-int32", "integers of 64 bits are held in 32; larger ones wrap around"
)
INTEGERS_AS_FLOAT32 = declare_lossy_step(
    "integers-as-float32", "integers are held as float32, exact up to 2^24"
)
MISMATCHED_PAIR = declare_lossy_step(
    "mismatched-pair", "parameters are read with a graph that they were not written with"
)
OTHER_LENGTHS = declare_lossy_step(
    "other-lengths", "numbers that may hold a length stay, at other lengths than a model has"
)
QUANTISED_AS_FLOATS = declare_lossy_step(
    "quantised-as-floats", "integer arithmetic of quantised operators is done on floats"
)
QUANTISED_AS_QDQ = declare_lossy_step(
    "quantised-as-qdq", "quantised operators become floats between QuantizeLinear and "
    "DequantizeLinear, which round halves to even",
)  # fmt: skip
SIX_DIGIT_FLOATS = declare_lossy_step(
    "six-digit-floats", "strict Relay text has floats of six digits"
)
TRACED_BRANCH = declare_lossy_step(
    "traced-branch", "branches and loops on values of tensors stay as the examples take them"
)
UINT8_AS_INT8 = declare_lossy_step(
    "uint8-as-int8", "activations of uint8 are held as int8, with half as many levels"
)
