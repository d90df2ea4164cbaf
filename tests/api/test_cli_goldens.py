"""What every command prints, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli_goldens import COMMANDS, FOLDER, printed


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_prints(name: str, tmp_path: Path) -> None:
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert printed(name, tmp_path) == expected


def test_every_golden_has_its_command() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(COMMANDS)
