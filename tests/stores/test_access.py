"""URLs and archives where a command takes a path."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from support.stores import Site, web_server

import serde
from serde.command.cli import main
from serde.conversion.steps import may_lie_elsewhere
from serde.core.report import Report
from serde.errors import OptionError

WEIGHT = np.random.default_rng(5).normal(size=(12, 64)).astype(np.float32)
X = np.random.default_rng(6).normal(size=(1, 12)).astype(np.float32)


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of temporary files, in which nothing may stay."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def save_net(path: Path, **options: Any) -> None:
    weight = numpy_helper.from_array(WEIGHT, "w")
    x, y = (helper.make_tensor_value_info(n, 1, [1, s]) for n, s in (("x", 12), ("y", 64)))
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, **options)


@pytest.fixture
def net(bucket: Any, tmp_path: Path) -> str:
    """A net with external data in a bucket."""
    folder = tmp_path / "source"
    folder.mkdir()
    save_net(folder / "net.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    for name in ("net.onnx", "w.bin"):
        bucket.put(f"in/{name}", (folder / name).read_bytes())
    return f"{bucket.url}/in/net.onnx"


def judge(path: Path) -> None:
    """Let ONNX Runtime say whether a file computes what NumPy does."""
    session = onnxruntime.InferenceSession(path)
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ WEIGHT, rtol=1e-5)


@pytest.mark.wide
def test_from_a_bucket_into_a_bucket(
    net: str, bucket: Any, tmp_path: Path, temporary_files: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    target = f"{bucket.url}/out/net.onnx"
    assert main(["convert", net, target, "--save-as-external-data", "--check"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(target)
    assert "fetch" in told.err
    assert "publish" in told.err
    assert os.listdir(temporary_files) == []
    names = [key for key in bucket.names() if key.startswith("out/")]
    assert names == ["out/net.onnx", "out/net.onnx.data"]
    for key in names:
        (tmp_path / os.path.basename(key)).write_bytes(bucket.get(key))
    judge(tmp_path / "net.onnx")


@pytest.mark.wide
def test_nothing_is_lost_or_left_by_a_server_that_fails(
    net: str, bucket: Any, tmp_path: Path, temporary_files: Path
) -> None:
    bucket.faults.errors, bucket.faults.cuts = 0.2, 0.2
    serde.convert(net, f"{bucket.url}/out.onnx")
    bucket.faults.errors = bucket.faults.cuts = 0.0
    (tmp_path / "out.onnx").write_bytes(bucket.get("out.onnx"))
    judge(tmp_path / "out.onnx")
    assert os.listdir(temporary_files) == []


@pytest.mark.wide
def test_a_pair_is_published_whole(net: str, bucket: Any) -> None:
    serde.convert(net, f"{bucket.url}/out/net-symbol.json")
    assert [key for key in bucket.names() if key.startswith("out/")] == [
        "out/net-0000.params", "out/net-symbol.json",
    ]  # fmt: skip


@pytest.mark.wide
def test_parameters_that_are_there_are_not_replaced(net: str, bucket: Any) -> None:
    bucket.put("out/net-0000.params", b"original")
    with pytest.raises(OptionError, match=r"net-0000\.params: would be replaced"):
        serde.convert(net, f"{bucket.url}/out/net-symbol.json")
    assert bucket.get("out/net-0000.params") == b"original"
    serde.convert(net, f"{bucket.url}/out/net-symbol.json", overwrite=True)
    assert bucket.get("out/net-0000.params") != b"original"


def test_weights_in_a_bucket_are_not_referred_to(net: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="in a store or in an archive can be copied, but not"):
        serde.convert(net, tmp_path / "out.onnx", link_weights=True)


def test_progress_is_told_in_bytes(net: str, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serde.core.progress.INTERVAL", 0.0)
    heard = []
    serde.convert(net, f"{bucket.url}/out.onnx", report=Report(on_progress=heard.append))
    fetched = [each for each in heard if each.stage == "fetch" and each.unit == "bytes"]
    assert fetched[-1].done == fetched[-1].total > WEIGHT.nbytes


@pytest.mark.wide
def test_two_models_in_buckets_are_compared(net: str, bucket: Any) -> None:
    serde.convert(net, f"{bucket.url}/out.onnx")
    assert serde.check(net, f"{bucket.url}/out.onnx").passed


def test_a_model_on_the_web_is_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("aiohttp")
    save_net(tmp_path / "net.onnx")
    with web_server(Site({"/net.onnx": (tmp_path / "net.onnx").read_bytes()})) as address:
        assert main(["inspect", f"{address}/net.onnx", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == [{"name": "x", "shape": [1, 12], "dtype": "float32"}]


def test_what_lies_in_a_bucket_is_malformed(
    bucket: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put("m/bad-symbol.json", b'{"nodes": 3}')
    assert main(["convert", f"{bucket.url}/m/bad-symbol.json", "out.onnx"]) == 3
    told = capsys.readouterr().err
    assert f"serde: {bucket.url}/m/bad-symbol.json: " in told
    assert ".serde-" not in told


@pytest.mark.wide
@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["s3://{bucket}/no.onnx", "o.onnx"], 7, "s3://{bucket}/no.onnx: there is no such object"),
        (["{net}", "{net}"], 2, "in/net.onnx: is the same object as the source"),
        (["{net}", "s3://no-such-bucket/o.onnx"], 7, "s3://no-such-bucket/o.onnx: there is no"),
        (["{net}", "https://example.com/o.onnx"], 2, "nothing can be written there"),
        (["{net}", "s3://{bucket}/o.what"], 2, "no format is known by this suffix"),
        (["{net}", "gs://bucket/o.onnx"], 6, "gcsfs is not installed"),
        (["{net}", "o.onnx", "--storage-option", "anon"], 2, "expected KEY=VALUE"),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_code(
    net: str, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], args: list[str], code: int, told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    given = [each.format(bucket=bucket.name, net=net) for each in args]
    assert main(["convert", *given, "-q"]) == code
    error = capsys.readouterr().err
    assert told.format(bucket=bucket.name) in error
    assert error.count("\n") == 1


def test_options_of_a_file_system_come_from_the_command_line(
    net: str, s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    address, _ = s3
    flags = ["--storage-option", f"client_kwargs.endpoint_url={address}"]
    flags += ["--storage-option", "use_ssl=false"]
    assert main(["convert", net, str(tmp_path / "out.onnx"), *flags]) == 0
    judge(tmp_path / "out.onnx")


def test_an_archive_in_a_bucket_is_taken_as_it_is(bucket: Any, tmp_path: Path) -> None:
    save_net(tmp_path / "net.onnx")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        archive.add(tmp_path / "net.onnx", "m/net.onnx")
        archive.add(tmp_path / "net.onnx", "m/._net.onnx")
        (tmp_path / "synset.txt").write_text("a\nb\nc\nd\n")
        archive.add(tmp_path / "synset.txt", "m/synset.txt")
    bucket.put("model.tar.gz", data.getvalue())
    report = Report()
    serde.convert(f"{bucket.url}/model.tar.gz", tmp_path / "out.onnx", report=report)
    judge(tmp_path / "out.onnx")
    assert "model.tar.gz: the model is m/net.onnx" in report.notes


@pytest.mark.wide
def test_local_paths_load_nothing_of_stores(tmp_path: Path) -> None:
    save_net(tmp_path / "net.onnx")
    code = (
        "import sys, serde\nserde.convert(sys.argv[1], sys.argv[2])\n"
        "print([m for m in sys.modules if m.startswith(('serde.fleet.stores', 'fsspec'))])"
    )
    args = [sys.executable, "-c", code, str(tmp_path / "net.onnx"), str(tmp_path / "out.onnx")]
    run = subprocess.run(args, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("net.onnx", False),
        (Path("net-symbol.json"), False),
        (["a-symbol.json", "a.params"], False),
        ('{"nodes": [], "note": "https://mxnet.apache.org"}', False),
        (b"s3://bucket/net.onnx", False),
        (3, False),
        ("s3://bucket/net.onnx", True),
        (["s3://b/a-symbol.json", "s3://b/a.params"], True),
        ("model.tar.gz", True),
        (Path("net.mar"), True),
    ],
)
def test_what_may_lie_elsewhere(source: Any, expected: bool) -> None:
    assert may_lie_elsewhere(source) is expected
