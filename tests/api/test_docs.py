"""Generated documents are what the code generates."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from serde.command.cli import COMMANDS, find_command, main

DOCS = Path(__file__).parents[2] / "docs"


def test_operators_document_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    import_module("serde.torch.source.overloads")  # registers what no archive calls
    assert main(["ops", "--markdown"]) == 0
    document = Path(__file__).parents[2] / "docs" / "operators.md"
    assert document.read_text(encoding="utf-8") == capsys.readouterr().out


def test_operators_of_one_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "--format", "mxnet", "--json"]) == 0
    assert '"Convolution"' in capsys.readouterr().out
    assert main(["ops", "--format", "nothing"]) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_told_of(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    told = set(re.findall(r"--?[a-z][-a-z0-9]*", text))
    found = find_command(command)
    # A command keeps the option of its help, so the context must name it as the program does.
    context = click.Context(found, help_option_names=["-h", "--help"])
    options = [o for o in found.get_params(context) if isinstance(o, click.Option)]
    untold = [o.opts for o in options if not told & {*o.opts, *o.secondary_opts}]
    assert untold in ([], [["-h", "--help"]])
    assert f"\nserde {command} " in text
