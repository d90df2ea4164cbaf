"""``serde view``: where the page goes, what is printed, and what is refused."""

import json
from pathlib import Path

import pytest
from support import view_models

import serde
from serde.command.cli import main


def test_the_page_goes_beside_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = view_models.chain(tmp_path / "net.onnx", 1)
    assert main(["view", str(path)]) == 0
    page = tmp_path / "net.onnx.html"
    assert capsys.readouterr().out.startswith(f"{page}  (")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_json_tells_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = view_models.chain(tmp_path / "net.onnx", 1)
    page = tmp_path / "page.html"
    assert main(["view", str(path), str(path), "-o", str(page), "--dims", "N=2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "outcome": "done",
        "exit_code": 0,
        "error": None,
        "path": str(page),
        "bytes": page.stat().st_size,
        "models": [{"title": "net.onnx", "nodes": 6, "gaps": 0}] * 2,
    }


def test_a_model_with_gaps_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = view_models.with_gap(tmp_path / "net.onnx")
    assert main(["view", str(path), "--json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert model == {"title": "net.onnx", "nodes": 5, "gaps": 1}


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["missing.onnx"], 2, "there is no such file"),
        (["bad.onnx"], 3, "bad.onnx"),
        (["net.onnx", "-o", "page.txt"], 2, "expected a name ending in .html"),
        (["net.onnx", "-o", "nowhere/page.html"], 2, "there is no directory"),
        (["net.onnx", "missing.onnx"], 2, "there is no such file"),
        (["net.onnx", "net.onnx", "--dims", "M=3"], 2, "M"),
        (["net.onnx", "--from", "toy"], 2, "toy"),
        (["net.onnx", "--weights-seconds", "-1"], 2, "-1"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    view_models.chain(tmp_path / "net.onnx", 1)
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07\xff\xff\xff")
    before = sorted(tmp_path.iterdir())
    assert main(["view", *args]) == code
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert sorted(tmp_path.iterdir()) == before


def test_a_symbol_without_shapes_takes_those_of_the_other_model(tmp_path: Path) -> None:
    onnx = view_models.chain(tmp_path / "net.onnx", 1)
    serde.convert(onnx, tmp_path / "net-symbol.json", input_shapes={"x": (2, 8)})
    page = serde.view(onnx, tmp_path / "net-symbol.json", input_shapes={"x": (2, 8)})
    assert [model.title for model in page.models] == ["net.onnx", "net-symbol.json"]
    assert "values agree" in page.html
