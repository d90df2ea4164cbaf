"""The backend suite of the onnx package, through import and through import and export."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from support.gaps import case as gap_case, unknown_gaps
from support.onnx_suite import (
    SuiteCase,
    check_export,
    check_import,
    check_mxnet,
    frozen,
    imported,
    load_cases,
)

import serde
from serde.errors import MissingDependency, Unsupported, UnsupportedModelError
from serde.onnx.ops import TABLES

CASES = load_cases()
COUNTED = [each for each in CASES if each.left_out is None]


KNOWN = {
    f"{domain}.{op}" if domain else op
    for domain, table in TABLES.items()
    for op, _ in table.imported()
}
"""Operators that have an importer at some version."""


def chosen(suite: str) -> list[Any]:
    """The cases that can be expected to pass.

    The first of each operator that is no whole net is in the first tier.
    """
    found = []
    seen: set[str] = set()
    for each in COUNTED:
        operators = set(each.operators) - each.functions
        if not operators <= KNOWN:
            continue
        param = gap_case(suite, each.name, each)
        if each.kind == "real":
            tier = [pytest.mark.slow]
        elif operators <= seen:
            tier = [pytest.mark.wide]
        else:
            tier = []
            seen |= operators
        found.append(pytest.param(each, id=each.name, marks=[*param.marks, *tier]))
    return found


def test_the_suite_is_whole() -> None:
    assert len(CASES) >= 1500
    assert len(COUNTED) > 0.95 * len(CASES)


@pytest.mark.parametrize("suite", ["onnx-import", "onnx-import-frozen", "onnx-again", "onnx-mxnet"])
def test_gaps_name_cases(suite: str) -> None:
    assert unknown_gaps(suite, {each.name for each in COUNTED}) == []


@pytest.mark.wide
@pytest.mark.parametrize("case", chosen("onnx-import"))
def test_import(case: SuiteCase) -> None:
    check_import(case)


@pytest.mark.sparse(3)
@pytest.mark.thin(3)
@pytest.mark.parametrize("case", chosen("onnx-import-frozen"))
def test_import_with_constants(case: SuiteCase) -> None:
    check_import(frozen(case))


@pytest.mark.sparse(3)
@pytest.mark.parametrize("case", chosen("onnx-again"))
def test_import_and_export(case: SuiteCase) -> None:
    pytest.importorskip("onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_export(case, imported(case))


MXNET_LACKS = re.compile(
    r"MXNet has no arrays of|[Ss]equence|an optional|the bits of|computed at run time"
    r"|dyn\.\w+ +x\d+ +no exporter|without a constant limit|allocates it beforehand"
    r"|no importer|the greatest part of a sample"
)
"""Why cases are refused: dtypes, sequences, bits, and lengths that are not known beforehand."""


@pytest.mark.sparse(3)
@pytest.mark.wide
@pytest.mark.parametrize("case", chosen("onnx-mxnet"))
def test_import_and_mxnet(case: SuiteCase) -> None:
    """What MXNet cannot say is skipped with the reason; a refusal for another one fails."""
    try:
        check_mxnet(frozen(case))
    except MissingDependency as error:
        pytest.skip(str(error))
    except (Unsupported, UnsupportedModelError) as error:
        if MXNET_LACKS.search(str(error)) is None:
            raise
        pytest.skip(" ".join(str(error).split()))
    except RuntimeError as error:
        if "Shape size mismatch 0 v.s. 1" not in str(error):
            raise
        pytest.skip("MXNet 1.9.1 confuses it with a reduction that ran before")


def test_a_refusal_names_the_operators() -> None:
    refused = next(each for each in CASES if each.left_out == "ai.onnx.preview.training")
    match = r"domain 'ai\.onnx\.preview\.training' are not read"
    with pytest.raises(UnsupportedModelError, match=match):
        serde.to_relay(refused.model())
