"""A target that is not named: it is called after its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serde.command.cli import main
from serde.errors import OptionError
from serde.fleet.batching.sources import own_target


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in a folder of the working directory, and all formats."""
    monkeypatch.chdir(tmp_path)
    Path("nets").mkdir()
    path = Path("nets/net.relay")
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) { nn.relu(%x) }')
    return path


def test_a_target_is_named_after_its_source(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(net), "--to", "ONNX", "-q"]) == 0
    assert Path("net.onnx").is_file()
    capsys.readouterr()
    assert main(["convert", str(net), "--to", "onnx"]) == 2
    assert "net.onnx: is there already; name a target, or" in capsys.readouterr().err
    assert main(["convert", str(net), "--to", "onnx", "--overwrite", "-q"]) == 0


@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_a_target_that_names_itself_is_never_the_source(
    net: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    before = net.rename("net.relay").read_bytes()
    assert main(["convert", "net.relay", "--to", "relay", *more]) == 2
    assert "net.relay: is the same file as the source" in capsys.readouterr().err
    assert Path("net.relay").read_bytes() == before


@pytest.mark.parametrize(
    ("source", "to", "options", "target"),
    [
        ("https://a.b/net.relay", "coreml", {"minimum_deployment_target": "iOS13"}, "net.mlmodel"),
        ("nets/net-symbol.json", "coreml", {}, "net.mlpackage"),
        ("nets", "mxnet", {}, "nets-symbol.json"),
    ],
)
def test_the_suffix_of_such_a_target_is_one_that_the_options_allow(
    net: Path, source: str, to: str, options: dict[str, Any], target: str
) -> None:
    assert own_target(source, to, options) == target


def test_a_format_that_is_not_written_names_no_target(net: Path) -> None:
    with pytest.raises(OptionError, match="unknown format 'tyo'"):
        own_target("net.onnx", "tyo", {})
