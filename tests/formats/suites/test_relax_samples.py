"""Every sample of every Relay operator as a module of Relax: compiled by TVM, run, or refused.

Results are compared with those of the operator's kernel: with lengths, and with a symbol for each
length. ``benchmarks/relax_samples.py`` prints how many are right.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.relax_gaps import REFUSED
from support.relax_samples import each_sample, judge

from serde.errors import TypeInferenceError, UnsupportedModelError
from serde.relax.ops import TABLE
from serde.relay.ir.registry import Sample

pytest.importorskip("tvm")

FIRST = frozenset(
    ("add-0", "nn.conv2d-0", "nn.dense-0", "nn.max_pool2d-0", "take-0", "topk-0", "serde.loop-0")
)
"""Samples that ``make test`` judges, of some kinds of exporters."""

GAPS = {key: reason for reason, keys in REFUSED.items() for key in keys}


def tier(key: str, name: str) -> list[Any]:
    """Return the marks of a sample: the first of an operator that has an exporter is `wide`."""
    if key in FIRST:
        return []
    own = TABLE.exporter(name, 1) is not None and key.endswith("-0")
    return [pytest.mark.wide] if own else [pytest.mark.slow]


def samples(*, refused: bool, slow: bool = False) -> list[Any]:
    """Return a parameter set for each sample that is a gap, or for each that is none."""
    return [
        pytest.param(
            name,
            given,
            GAPS.get(key, ""),
            id=key,
            marks=[pytest.mark.slow] if slow else tier(key, name),
        )
        for key, name, given in each_sample()
        if (key in GAPS) is refused
    ]


def test_gaps_name_samples() -> None:
    assert GAPS.keys() <= {key for key, _, _ in each_sample()}
    assert len(GAPS) == sum(map(len, REFUSED.values()))


@pytest.mark.sparse(2)
@pytest.mark.parametrize(("name", "given", "reason"), samples(refused=False))
def test_tvm_agrees_with_kernel(name: str, given: Sample, reason: str) -> None:
    judge(name, given)


@pytest.mark.parametrize(("name", "given", "reason"), samples(refused=False, slow=True))
def test_tvm_agrees_with_kernel_on_symbols(name: str, given: Sample, reason: str) -> None:
    """What cannot be said of lengths that are open is refused, never wrong."""
    try:
        judge(name, given, symbolic=True)
    except (TypeInferenceError, UnsupportedModelError) as error:
        pytest.xfail(" ".join(str(error).split()))


@pytest.mark.parametrize(("name", "given", "reason"), samples(refused=True, slow=True))
def test_a_reason_is_told(name: str, given: Sample, reason: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        judge(name, given)
    assert reason in " ".join(str(caught.value).split())
