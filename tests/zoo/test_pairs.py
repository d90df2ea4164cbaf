"""Small nets through every pair of formats; ``benchmarks/pairs.py`` prints a table of more."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gaps import PAIR_GAPS
from support.pairs import readable, verdicts, writable

from serde.compat import import_mxnet


@pytest.mark.parametrize(
    "net",
    [
        pytest.param("recurrent", marks=pytest.mark.wide),
        pytest.param("arcface", marks=pytest.mark.slow),
    ],
)
def test_every_pair_of_formats(net: str, tmp_path: Path) -> None:
    found = list(verdicts(import_mxnet(), [net], tmp_path))
    assert {(each.source, each.target) for each in found} == {
        (source, target) for source in readable() for target in writable()
    }
    assert {"mxnet", "onnx", "relay"} <= set(readable())
    assert [each.row() for each in found if each.fault] == []
    refused = {(net, each.source, each.target): each.refused for each in found if each.refused}
    assert refused == {pair: reason for pair, reason in PAIR_GAPS.items() if pair[0] == net}
    agreeing = [each for each in found if not each.refused]
    assert all(each.engines[0].startswith("mxnet") for each in agreeing)
    assert max(each.worst for each in agreeing) < 1e-4
