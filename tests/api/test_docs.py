"""Generated documents are what the code generates."""

from __future__ import annotations

from pathlib import Path

import pytest

from serde.cli import main


def test_operators_document_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--markdown"]) == 0
    document = Path(__file__).parents[2] / "docs" / "operators.md"
    assert document.read_text(encoding="utf-8") == capsys.readouterr().out


def test_operators_of_one_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--format", "mxnet", "--json"]) == 0
    assert '"Convolution"' in capsys.readouterr().out
    assert main(["ops", "--format", "nothing"]) == 2
