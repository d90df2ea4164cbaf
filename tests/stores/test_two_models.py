"""URLs where a command takes two models, weights apart, or a folder to write."""

from __future__ import annotations

import gc
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import serde
from serde.command.cli import main
from serde.errors import StoreError
from serde.target.module import OnnxModule
from serde.target.splitting import split

RNG = np.random.default_rng(4)
WEIGHT = RNG.normal(size=(8, 3)).astype(np.float32)
X = RNG.normal(size=(2, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of temporary files, in which nothing may stay."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def net(weight: np.ndarray, op: str = "Tanh") -> bytes:
    x, y = (helper.make_tensor_value_info(n, 1, [2, s]) for n, s in (("x", 8), ("y", 3)))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="dense"),
        helper.make_node(op, ["h"], ["y"], name="end"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


@pytest.fixture
def nets(bucket: Any) -> tuple[str, str]:
    """The URLs of two nets that differ in one weight by 0.5, and in what comes of it."""
    changed = WEIGHT.copy()
    changed[1, 2] += 0.5
    bucket.put("m/a.onnx", net(WEIGHT))
    bucket.put("m/b.onnx", net(changed))
    return f"{bucket.url}/m/a.onnx", f"{bucket.url}/m/b.onnx"


def test_diff_compares_models_of_a_bucket(
    nets: tuple[str, str], temporary_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *nets, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (weight,) = found["weights"]
    assert (weight["elements"], weight["max_abs"]) == (1, pytest.approx(0.5, abs=1e-6))
    assert main(["diff", nets[0], nets[0]]) == 0
    assert os.listdir(temporary_files) == []


def test_diff_takes_the_shapes_that_either_archive_tells(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "n.onnx").write_bytes(net(WEIGHT))
    serde.convert(tmp_path / "n.onnx", tmp_path / "n-symbol.json")
    (tmp_path / "n-shapes.json").write_text('[{"name": "x", "shape": [2, 8]}]')
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name in ("n-symbol.json", "n-0000.params", "n-shapes.json"):
            archive.add(tmp_path / name, name)
    bucket.put("model.tar.gz", data.getvalue())
    url = f"{bucket.url}/model.tar.gz"
    for left, right in ((tmp_path / "n.onnx", url), (url, tmp_path / "n.onnx")):
        found = serde.diff(left, right)
        (weight,) = found.weights
        assert set(weight.shapes) == {(8, 3), (3, 8)}
    assert serde.diff(url, url).equal


def test_bisect_finds_where_models_of_a_bucket_begin_to_differ(
    nets: tuple[str, str], temporary_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bisect", *nets, "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert "h" in found["sentence"]
    assert main(["bisect", nets[0], nets[0]]) == 0
    assert os.listdir(temporary_files) == []


def test_view_shows_models_and_weights_of_a_bucket(
    bucket: Any, tmp_path: Path, temporary_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "n.onnx").write_bytes(net(WEIGHT))
    serde.convert(tmp_path / "n.onnx", tmp_path / "n-symbol.json")
    bucket.put("m/n-symbol.json", (tmp_path / "n-symbol.json").read_bytes())
    bucket.put("m/n-0000.params", b"of another net")
    bucket.put("w/other.params", (tmp_path / "n-0000.params").read_bytes())
    bucket.faults.requests.clear()
    flags = ["--params", f"{bucket.url}/w/other.params", "--input-shape", "x:2,8", "--json"]
    assert main(["view", f"{bucket.url}/m/n-symbol.json", *flags]) == 0
    assert json.loads(capsys.readouterr().out)["path"] == "n-symbol.json.html"
    page = (tmp_path / "n-symbol.json.html").read_text()
    assert f"{WEIGHT.max():.5f}"[:6] in page
    asked = {path.rpartition("/")[2] for method, path in bucket.faults.requests if method == "GET"}
    assert "n-0000.params" not in asked
    assert os.listdir(temporary_files) == []


@pytest.mark.wide
@pytest.mark.parametrize("where", ["bucket", "here"])
def test_weights_lie_apart_from_their_model(where: str, bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "n.onnx").write_bytes(net(WEIGHT))
    serde.convert(tmp_path / "n.onnx", tmp_path / "n-symbol.json")
    bucket.put("w/other.params", (tmp_path / "n-0000.params").read_bytes())
    source: Any = tmp_path / "n-symbol.json"
    if where == "bucket":
        bucket.put("m/n-symbol.json", source.read_bytes())
        source = f"{bucket.url}/m/n-symbol.json"
    (tmp_path / "n-0000.params").unlink()
    options = {"params": f"{bucket.url}/w/other.params", "input_shapes": {"x": (2, 8)}}
    serde.convert(source, tmp_path / "out.onnx", **options)
    (value,) = onnxruntime.InferenceSession(tmp_path / "out.onnx").run(None, {"x": X})
    np.testing.assert_allclose(value, np.tanh(X @ WEIGHT), rtol=1e-4, atol=1e-5)
    assert serde.bisect(source, tmp_path / "out.onnx", **options).first is None
    if where == "here":
        return
    with pytest.raises(StoreError, match=r"w/none\.params: there is no such object"):
        serde.convert(source, tmp_path / "o.onnx", params=f"{bucket.url}/w/none.params")


@pytest.mark.wide
def test_a_split_goes_from_a_bucket_into_one(
    nets: tuple[str, str], bucket: Any, tmp_path: Path, temporary_files: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "chip.json").write_text('{"operators": ["MatMul"]}')
    bucket.put("s/other")
    flags = ["--supported", "chip.json", "--check", "--runner", "onnxruntime", "--json"]
    for _ in range(2):  # The second one replaces what the first has written.
        assert main(["partition", nets[0], f"{bucket.url}/s/split", *flags]) == 1
        assert json.loads(capsys.readouterr().out)["facts"]["path"] == f"{bucket.url}/s/split"
    names = [
        name.removeprefix("s/split/") for name in bucket.names() if name.startswith("s/split/")
    ]
    assert bucket.get("s/other") == b"x"
    for name in names:
        (tmp_path / "split").mkdir(exist_ok=True)
        (tmp_path / "split" / name).write_bytes(bucket.get(f"s/split/{name}"))
    assert OnnxModule.load(tmp_path / "split").opset == 17
    (region,) = [name for name in names if name.endswith(".onnx")]
    session = onnxruntime.InferenceSession(tmp_path / "split" / region)
    (value,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(value, X @ WEIGHT, rtol=1e-4, atol=1e-5)
    assert os.listdir(temporary_files) == []


@pytest.mark.wide
def test_a_split_keeps_the_weights_that_it_needs(
    nets: tuple[str, str], tmp_path: Path, temporary_files: Path
) -> None:
    found = split(nets[0], supported=["MatMul"])
    gc.collect()
    found.module.save(tmp_path / "split")
    assert WEIGHT.tobytes() in b"".join(
        each.read_bytes() for each in (tmp_path / "split").iterdir()
    )
    del found
    gc.collect()
    assert os.listdir(temporary_files) == []


@pytest.mark.wide
@pytest.mark.parametrize(
    "command", ["diff", pytest.param("bisect", marks=pytest.mark.wide), "view", "check"]
)
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_not_there_is_one_line(
    command: str, side: int, nets: tuple[str, str], bucket: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    urls = list(nets)
    urls[side] = f"{bucket.url}/gone.onnx"
    assert main([command, *urls, "-q"]) == 7
    told = capsys.readouterr().err
    assert told == f"serde: {bucket.url}/gone.onnx: there is no such object\n"


def test_a_folder_of_others_is_not_replaced_by_a_split(
    nets: tuple[str, str], bucket: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put("s/thesis.tex", b"years of work")
    assert main(["partition", nets[0], f"{bucket.url}/s", "-q"]) == 2
    told = capsys.readouterr().err
    assert told == f"serde: {bucket.url}/s: expected a package to replace, or nothing\n"
    assert bucket.get("s/thesis.tex") == b"years of work"


@pytest.mark.wide
def test_options_of_file_systems_reach_both_models(
    nets: tuple[str, str], s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    address, _ = s3
    flags = ["--storage-option", f"client_kwargs.endpoint_url={address}"]
    assert main(["diff", *nets, *flags]) == 1
    assert main(["bisect", *nets, *flags]) == 4
