"""The backend suite of the onnx package, from ONNX to NNEF.

What is written is read by Khronos' parser, and run twice: by Relay's interpreter after serde has
read it, and by the specification read in NumPy. Both are compared with the suite's results.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.gaps import suite_cases, unknown_gaps
from support.nnef_gaps import REASONS
from support.nnef_suite import check_written
from support.onnx_suite import SuiteCase, load_cases

from serde.errors import Unsupported, UnsupportedModelError

pytest.importorskip("nnef")

COUNTED = [each for each in load_cases() if each.left_out is None]

LACKS = re.compile(
    "|".join(map(re.escape, REASONS))
    + r"|NNEF has no (float|bfloat|conditionals)|no importer|an optional|a cast to float8"
    r"|expected elements like|the greatest part of a sample has no decomposition|a compressed image"
)
"""Why cases are refused: the reasons of operators, element types, branches, and unread models."""


def test_gaps_name_cases() -> None:
    assert unknown_gaps("onnx-nnef", {each.name for each in COUNTED}) == []


@pytest.mark.sparse(3)
@pytest.mark.thin(2)
@pytest.mark.parametrize("case", suite_cases("onnx-nnef", COUNTED))
def test_written_right(case: SuiteCase, tmp_path: Path) -> None:
    """What NNEF cannot say is skipped with the reason; a refusal for another one fails."""
    try:
        check_written(case, tmp_path / "net")
    except (Unsupported, UnsupportedModelError) as error:
        if LACKS.search(" ".join(str(error).split())) is None:
            raise
        pytest.skip(" ".join(str(error).split()))
