"""Every sample of every Relay operator as NNEF: judged twice, or refused for the reason listed.

Khronos' parser reads what was written and infers the shapes that Relay has. What serde makes of it
again, and what the specification read in NumPy makes of it, is compared with the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.nnef_gaps import REFUSED
from support.nnef_samples import check, each_sample, judge, written

from serde.errors import UnsupportedModelError
from serde.relay.ir.registry import Sample

pytest.importorskip("nnef")

GAPS = {name: reason for reason, names in REFUSED.items() for name in names}


def samples(*, refused: bool) -> list[Any]:
    """One parameter set for each sample; those behind an operator's first are `wide`."""
    return [
        pytest.param(
            name, given, GAPS.get(key, ""), id=key, marks=[pytest.mark.wide] if index else []
        )
        for key, name, index, given in each_sample()
        if (key in GAPS) is refused
    ]


def test_gaps_name_samples() -> None:
    assert GAPS.keys() <= {key for key, *_rest in each_sample()}
    assert len(GAPS) == sum(map(len, REFUSED.values()))


@pytest.mark.sparse(2)
@pytest.mark.parametrize(("name", "given", "reason"), samples(refused=False))
@pytest.mark.thin(2)
def test_nnef_agrees_with_kernel(name: str, given: Sample, reason: str, tmp_path: Path) -> None:
    built, found = written(name, given, tmp_path / "net")
    check(name, built, found)
    judge(name, built, found)


@pytest.mark.parametrize(("name", "given", "reason"), samples(refused=True))
def test_a_reason_is_told(name: str, given: Sample, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        written(name, given, tmp_path / "net")
    assert reason in " ".join(str(caught.value).split())
    assert not list(tmp_path.iterdir())
