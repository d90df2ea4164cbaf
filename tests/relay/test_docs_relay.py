"""The page on Relay in Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serde.relay.ir.attrs import reset_op_attr

PAGE = Path(__file__).parents[2] / "docs" / "relay.md"


def test_every_block_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 9
    scope: dict[str, object] = {"__name__": "page"}
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), scope)
    finally:
        reset_op_attr("nn.dense", "target.chip")
        reset_op_attr("ceil", "FTVMMixedPrecisionConversionType")
    assert "nn.dense" in capsys.readouterr().out
