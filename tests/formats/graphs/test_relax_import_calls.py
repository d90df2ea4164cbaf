"""Calls of Relax's operators as serde reads them, against what TVM computes for the same call."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from support.relax_calls import CALLS
from support.relax_imports import CallCase, check


def _marked(case: CallCase) -> object:
    name = case[0]
    return pytest.param(case, id=name, marks=pytest.mark.slow if "-" in name else pytest.mark.wide)


@pytest.mark.parametrize("case", list(map(_marked, CALLS)))
def test_a_call_is_read_as_tvm_computes_it(case: CallCase) -> None:
    check(case)
