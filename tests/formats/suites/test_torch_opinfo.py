"""PyTorch's own samples of its operators, run by Relay's interpreter, judged by PyTorch."""

from __future__ import annotations

from functools import cache

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")

from support import torch_gaps, torch_opinfo  # noqa: E402

QUICK = ("add", "sub", "mul", "where", "sum", "amax", "softmax", "nn.functional.gelu", "matmul",
         "clamp", "arange", "nn.functional.layer_norm", "nn.functional.conv2d", "gather",
         "cat", "index_select")  # fmt: skip
"""Operators whose samples of float32 and int64 run with the other tests; the rest later."""

CASES = [
    pytest.param(
        name,
        dtype,
        marks=[] if name in QUICK and dtype in ("float32", "int64") else [pytest.mark.slow],
    )
    for name, info in torch_opinfo.operators().items()
    for dtype in torch_opinfo.dtypes_of(info)
]
GAPS = [
    pytest.param(
        name, gap.reason, marks=[pytest.mark.slow, pytest.mark.xfail(strict=True, reason=gap.why)]
    )
    for gap in torch_gaps.GAPS
    for name in gap.names
]


@cache
def _outcome(name: str, dtype: str) -> torch_opinfo.Outcome:
    return torch_opinfo.run_operator(name, dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_samples_give_the_results_of_pytorch(name: str, dtype: str) -> None:
    found = _outcome(name, dtype)
    known = torch_gaps.reasons_of(name, dtype)
    left = {
        reason: found.examples[reason]
        for reason in found.reasons
        if not any(part in reason for part in known)
    }
    assert not left


@pytest.mark.parametrize(("name", "reason"), GAPS)
def test_gaps_are_open(name: str, reason: str) -> None:
    operator, _, dtype = name.rstrip("]").partition("[")
    dtypes = [dtype] if dtype else torch_opinfo.dtypes_of(torch_opinfo.operators()[operator])
    found = [each for dtype in dtypes for each in _outcome(operator, dtype).reasons]
    assert not [each for each in found if reason in each]


@pytest.mark.parametrize("name", ["add", "sum", "matmul", "softmax", "where", "mean"])
def test_samples_of_symbolic_lengths_give_the_results_of_pytorch(name: str) -> None:
    found = torch_opinfo.run_operator(name, "float32", torch_opinfo.Options(symbolic=True))
    assert found.passed
    assert not found.reasons


@pytest.mark.parametrize("name", ["softmax", "addmm", "var", "std_mean", "stack"])
def test_samples_in_the_core_of_aten_give_the_results_of_pytorch(name: str) -> None:
    found = torch_opinfo.run_operator(name, "float32", torch_opinfo.Options(core=True))
    assert found.passed
    assert not found.reasons
