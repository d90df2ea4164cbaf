"""How cases of onnx's backend suite fare on their way to NNEF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx.backend.test.runner import Runner
from support.nnef_written import kind_of, write
from support.onnx_suite import SuiteCase, comparable, feeds, frozen, imported

from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report

_TIES = "a quotient that float32 rounds to a half is none in float64, in which the judge computes"
UNJUDGED = {"dynamicquantizelinear": _TIES, "dynamicquantizelinear_expanded": _TIES}
"""Cases whose results only the interpreter has right, and why."""


def check_written(case: SuiteCase, folder: Path) -> None:
    """Write a case and compare what the folder computes with the results of the suite.

    Inputs that models have as constants are constants. The folder is read again and run by Relay's
    interpreter, and by the specification read in NumPy.

    Raises:
        SerdeError: It is refused.
        AssertionError: A result is wrong.
    """
    fixed = frozen(case)
    case = fixed if fixed.data() and fixed.data()[0][0] else case
    model = prepare(imported(case), PrepareOptions(), report=Report())
    found = write(model, folder)
    for inputs, outputs in case.data():
        given = feeds(case.model(), inputs)
        judge(case, outputs, found.interpret(given))
        if case.name not in UNJUDGED:
            judge(case, outputs, found.evaluate(given))


def judge(case: SuiteCase, expected: Sequence[Any], found: Sequence[np.ndarray]) -> None:
    """Compare results as the suite does; NNEF does not tell the widths of their elements."""
    assert len(found) == len(expected)
    for wanted, value in zip(expected, found, strict=True):
        assert kind_of(wanted) == kind_of(value)
    same = [value.astype(wanted.dtype) for wanted, value in zip(expected, found, strict=True)]
    Runner.assert_similar_outputs(
        comparable(expected), comparable(same), case.rtol, case.atol, case.name
    )
