"""Every sample of every Relay operator as TFLite: right in LiteRT, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_samples import each_sample, judge, written

from serde.errors import UnsupportedModelError
from serde.relay.ir.registry import Sample

SAMPLES = [
    pytest.param(name, given, id=key, marks=[pytest.mark.wide] if index else [])
    for key, name, index, given in each_sample()
]


@pytest.mark.sparse(2)
@pytest.mark.parametrize(("name", "given"), SAMPLES)
@pytest.mark.thin(2)
def test_litert_agrees_with_kernel(name: str, given: Sample, tmp_path: Path) -> None:
    try:
        built, path = written(name, given, tmp_path)
    except UnsupportedModelError:
        built = path = None
    if built is None or path is None:
        assert not list(tmp_path.iterdir())
        return
    judge(built, path)
