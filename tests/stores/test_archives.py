"""Archives of SageMaker and of model servers are taken as they are."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import serde
from serde.command.cli import main
from serde.core.report import Report
from serde.errors import FormatError, OptionError, SerdeError
from serde.fleet.stores import archives
from serde.fleet.stores.staging import stage

WEIGHT = np.random.default_rng(3).normal(size=(4, 12)).astype(np.float32)
X = np.random.default_rng(4).normal(size=(5, 3, 2, 2)).astype(np.float32)
LABELS = ["n01 cat, tabby", "n02 dog", "n03 cow", "n04 bee"]
SHAPES = [{"shape": [0, 3, 2, 2], "name": "data"}, {"shape": [0], "name": "softmax_label"}]
SIGNATURE = {
    "inputs": [{"data_name": "data", "data_shape": [0, 3, 2, 2]}],
    "input_type": "image/jpeg",
    "outputs": [{"data_name": "softmax", "data_shape": [0, 4]}],
    "output_type": "application/json",
}
MANIFEST = {
    "runtime": "python",
    "model": {"modelName": "net", "handler": "service:handle"},
    "modelServerVersion": "1.0",
    "implementationVersion": "1.0",
    "specificationVersion": "1.0",
}
SYMBOL = json.dumps(
    {
        "nodes": [
            {"op": "null", "name": "data", "inputs": []},
            {"op": "null", "name": "fc_weight", "attrs": {"num_hidden": "4"}, "inputs": []},
            {
                "op": "FullyConnected",
                "name": "fc",
                "attrs": {"num_hidden": "4", "no_bias": "True"},
                "inputs": [[0, 0, 0], [1, 0, 0]],
            },
            {"op": "null", "name": "softmax_label", "inputs": []},
            {"op": "SoftmaxOutput", "name": "softmax", "inputs": [[2, 0, 0], [3, 0, 0]]},
        ],
        "arg_nodes": [0, 1, 3],
        "heads": [[4, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
).encode()


def params(weight: np.ndarray[Any, Any]) -> bytes:
    """A parameter file as MXNet 1.9.1 writes it, spelled out."""
    words = np.array([0x112, 0, 1], "<u8").tobytes()
    tensor = np.array([0xF993FAC9, 0], "<u4").tobytes() + np.array([2], "<u4").tobytes()
    tensor += np.array(weight.shape, "<i8").tobytes()
    tensor += np.array([1, 0, 0], "<i4").tobytes() + weight.astype("<f4").tobytes()
    name = b"arg:fc_weight"
    return words + tensor + np.array([1, len(name)], "<u8").tobytes() + name


def softmax(weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the net computes of X."""
    scores = np.exp(X.reshape(5, 12) @ weight.T)
    return np.asarray(scores / scores.sum(1, keepdims=True))


def as_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return path


def as_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return path


def as_folder(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, body in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(body)
    return path


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


NET = {"net-symbol.json": SYMBOL, "net-0003.params": params(WEIGHT)}
SERVED = {**NET, "MAR-INF/MANIFEST.json": text(MANIFEST), "service.py": b"raise SystemExit"}
SIGNED = {**SERVED, "signature.json": text(SIGNATURE), "synset.txt": "\n".join(LABELS).encode()}
SAGEMAKER = {
    "model_algo-1-symbol.json": SYMBOL,
    "model_algo-1-0000.params": params(WEIGHT),
    "model-shapes.json": text(SHAPES),
}


def inner(files: Mapping[str, bytes], tmp_path: Path) -> bytes:
    return as_tar(tmp_path / "inner.tar.gz", files).read_bytes()


@pytest.mark.parametrize(
    "case",
    ["sagemaker", "mar", "folder", "leading", "mac", "epochs", "nested", "code", "zero", "old"],
)
def test_a_served_model_is_converted_with_its_shapes(case: str, tmp_path: Path) -> None:
    """ONNX Runtime computes what NumPy does, of a batch whose length the archive leaves open."""
    old = {"Model": {"Symbol": "net-symbol.json", "Parameters": "net-0003.params"}}
    make = {
        "sagemaker": lambda: as_tar(tmp_path / "model.tar.gz", SAGEMAKER),
        "mar": lambda: as_zip(tmp_path / "net.mar", SIGNED),
        "folder": lambda: as_folder(tmp_path / "net", SIGNED),
        "leading": lambda: as_tar(
            tmp_path / "model.tar.gz", {f"./export/{k}": v for k, v in SAGEMAKER.items()}
        ),
        "mac": lambda: as_tar(
            tmp_path / "model.tar.gz",
            {**SAGEMAKER, "._model_algo-1-symbol.json": b"junk", "__MACOSX/a-symbol.json": b"junk"},
        ),
        "epochs": lambda: as_tar(
            tmp_path / "model.tar.gz",
            {**SAGEMAKER, "model_algo-1-0000.params": params(-WEIGHT),
             "model_algo-1-0012.params": params(WEIGHT)},
        ),
        "nested": lambda: as_tar(
            tmp_path / "outer.tar.gz", {"a/model.tar.gz": inner(SAGEMAKER, tmp_path)}
        ),
        "code": lambda: as_tar(
            tmp_path / "model.tar.gz", {**SAGEMAKER, "code/other-symbol.json": SYMBOL}
        ),
        "zero": lambda: as_tar(
            tmp_path / "model.tar.gz", {**NET, "net-shapes.json": text(SHAPES)}
        ),
        "old": lambda: as_zip(
            tmp_path / "net.model",
            {**NET, "MANIFEST.json": text(old), "signature.json": text(SIGNATURE)},
        ),
    }  # fmt: skip
    report = Report()
    serde.convert(make[case](), tmp_path / "out.onnx", report=report)
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    (given,) = session.get_inputs()
    assert given.shape[1:] == [3, 2, 2]
    np.testing.assert_allclose(session.run(None, {"data": X})[0], softmax(WEIGHT), rtol=1e-5)
    assert any("input shapes from" in note or "input shapes, lab" in note for note in report.notes)
    left = [note for note in report.notes if "left alone" in note]
    expected = ["model.tar.gz: left alone: model_algo-1-0000.params"] if case == "epochs" else []
    assert left == expected


def test_a_plain_zip_with_one_model_is_opened(tmp_path: Path) -> None:
    """PyTorch's own files are zips as well, and no format reads this one whole."""
    path = as_zip(tmp_path / "net.mar", SIGNED)
    serde.convert(path, tmp_path / "net.onnx")
    plain = as_zip(tmp_path / "net.zip", {"a/net.onnx": (tmp_path / "net.onnx").read_bytes()})
    report = Report()
    serde.convert(plain, tmp_path / "again.onnx", report=report)
    assert "net.zip: the model is a/net.onnx" in report.notes


def test_an_epoch_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    files = {**SAGEMAKER, "model_algo-1-0012.params": params(-WEIGHT)}
    path = as_tar(tmp_path / "model.tar.gz", files)
    serde.convert(path, tmp_path / "out.onnx", epoch=0)
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    np.testing.assert_allclose(session.run(None, {"data": X})[0], softmax(WEIGHT), rtol=1e-5)


def test_what_the_user_says_goes_before(tmp_path: Path) -> None:
    path = as_zip(tmp_path / "net.mar", SIGNED)
    serde.convert(path, tmp_path / "out.onnx", input_shapes={"data": (7, 3, 2, 2)})
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    assert session.get_inputs()[0].shape == [7, 3, 2, 2]


def test_labels_come_from_the_archive(tmp_path: Path) -> None:
    with stage(as_zip(tmp_path / "net.mar", SIGNED), tmp_path) as staged:
        assert staged.options["labels"] == tuple(LABELS)
        assert staged.options["input_shapes"] == {"data": ("N", 3, 2, 2)}


@pytest.mark.wide
def test_labels_go_where_the_target_takes_them(tmp_path: Path) -> None:
    coremltools = pytest.importorskip("coremltools")
    path = as_zip(tmp_path / "net.mar", SIGNED)
    serde.convert(path, tmp_path / "N.mlpackage", input_shapes={"data": (1, 3, 2, 2)})
    spec = coremltools.models.MLModel(str(tmp_path / "N.mlpackage"), skip_model_load=True)
    description = spec.get_spec().description
    assert description.predictedFeatureName == "classLabel"
    assert "n01 cat, tabby" in str(spec.get_spec().mlProgram)


@pytest.mark.wide
def test_labels_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    coremltools = pytest.importorskip("coremltools")
    path = as_zip(tmp_path / "net.mar", {**SIGNED, "synset.txt": b"one\ntwo"})
    serde.convert(path, tmp_path / "N.mlpackage", input_shapes={"data": (1, 3, 2, 2)})
    spec = coremltools.models.MLModel(str(tmp_path / "N.mlpackage"), skip_model_load=True)
    assert spec.get_spec().description.predictedFeatureName == ""


def test_onnx_in_an_archive_keeps_its_own_shapes_and_finds_its_data(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ascontiguousarray(WEIGHT.T), "w")
    x, y = (helper.make_tensor_value_info(n, 1, [1, s]) for n, s in (("x", 12), ("y", 4)))
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m").mkdir()
    onnx.save(
        model, tmp_path / "m/net.onnx", save_as_external_data=True, location="w.bin",
        size_threshold=0,
    )  # fmt: skip
    manifest = {**MANIFEST, "model": {"modelName": "net", "serializedFile": "net.onnx"}}
    files = {
        "MAR-INF/MANIFEST.json": text(manifest),
        "net.onnx": (tmp_path / "m/net.onnx").read_bytes(),
        "w.bin": (tmp_path / "m/w.bin").read_bytes(),
        "signature.json": text({"inputs": [{"data_name": "x", "data_shape": [0, 9, 9]}]}),
    }
    serde.convert(as_zip(tmp_path / "net.mar", files), tmp_path / "out.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    row = X[:1].reshape(1, 12)
    np.testing.assert_allclose(session.run(None, {"x": row})[0], row @ WEIGHT.T, rtol=1e-5)


def test_what_torch_model_archiver_makes_is_read(tmp_path: Path) -> None:
    """Its manifest and its layout, made by the tool itself."""
    packaging = pytest.importorskip("model_archiver.model_packaging")
    utils = pytest.importorskip("model_archiver.model_packaging_utils")
    config = pytest.importorskip("model_archiver.model_archiver_config")
    as_folder(tmp_path / "in", {**NET, "signature.json": text(SIGNATURE), "handler.py": b""})
    wanted = config.ModelArchiverConfig(
        model_name="net",
        handler=str(tmp_path / "in/handler.py"),
        version="1.0",
        serialized_file=str(tmp_path / "in/net-symbol.json"),
        extra_files=f"{tmp_path}/in/net-0003.params,{tmp_path}/in/signature.json",
        export_path=str(tmp_path),
        runtime="python",
        archive_format="default",
        force=True,
    )
    manifest = utils.ModelExportUtils.generate_manifest_json(wanted)
    packaging.package_model(wanted, manifest)
    serde.convert(tmp_path / "net.mar", tmp_path / "out.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    np.testing.assert_allclose(session.run(None, {"data": X})[0], softmax(WEIGHT), rtol=1e-5)


def test_an_archive_is_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = as_zip(tmp_path / "net.mar", SIGNED)
    assert main(["inspect", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == [{"name": "data", "shape": ["N", 3, 2, 2], "dtype": "float32"}]


def test_an_archive_of_a_format_is_left_to_it(tmp_path: Path) -> None:
    files = {"graph.nnef": b"version 1.0;\ngraph g(x) -> (x) {}", "synset.txt": b"a"}
    path = as_tar(tmp_path / "net.nnef.tgz", {"graph.nnef": files["graph.nnef"]})
    with stage(path, tmp_path) as staged:
        assert staged.paths == (path,)


SEGMENTATION = {"model_algo-1": b"\x12\x01", "hyperparams.json": b"{}"}
TWO = {**SERVED, "other-symbol.json": SYMBOL}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (SEGMENTATION, "model_algo-1 holds the parameters .* alone: build the GluonCV network"),
        ({"MAR-INF/MANIFEST.json": b"{}", "a.py": b""}, "no model in the archive, which holds MAR"),
        (TWO, "expected one model in the archive, found net-symbol.json, other-symbol.json; unp"),
        ({**NET, "net-shapes.json": b"{"}, r"net-shapes\.json: expected JSON"),
        ({**NET, "net-shapes.json": b"[" * 100_000}, r"net-shapes\.json: expected JSON"),
        ({**NET, "net-shapes.json": b'[{"name": "data"}]'}, r'expected \{"name": ..., "shape"'),
        ({**NET, "net-shapes.json": text([{"name": "data", "shape": [1.5]}])}, "expected a length"),
        ({**NET, "synset.txt": b"\xff\xfe"}, "expected labels in UTF-8"),
        (
            {**SERVED, "MAR-INF/MANIFEST.json": text({"model": {"serializedFile": "../x.onnx"}})},
            r"names '\.\./x\.onnx', which is not in the archive",
        ),
    ],
)
@pytest.mark.parametrize("make", [as_tar, as_zip])
def test_what_cannot_be_taken_is_told(
    make: Any, files: Mapping[str, bytes], message: str, tmp_path: Path
) -> None:
    name = "model.tar.gz" if make is as_tar else "net.mar"
    path = make(tmp_path / name, files)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(SerdeError, match=message) as found:
        serde.convert(path, tmp_path / "out.onnx")
    assert "\n" not in str(found.value)
    assert ".serde-" not in str(found.value)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(("make", "name"), [(as_tar, "model.tar.gz"), (as_zip, "net.mar")])
def test_a_bomb_is_refused(
    make: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.io.archives.MAX_ARCHIVE_RATIO", 10)
    monkeypatch.setattr("serde.io.zips.MAX_ARCHIVE_RATIO", 10)
    path = make(tmp_path / name, {**SIGNED, "net-0009.params": bytes(6_000_000)})
    with (
        pytest.raises(FormatError, match=r"out of proportion|more than 10 times"),
        stage(path, tmp_path, options={"epoch": 9}),
    ):
        pass
    assert os.listdir(tmp_path) == [name]


def test_links_and_names_that_lead_out_are_never_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.params").write_bytes(params(WEIGHT))
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        for name, body in SAGEMAKER.items():
            if name.endswith(".params"):
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret.params")
                archive.addfile(link)
                continue
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
        out = tarfile.TarInfo("../out-shapes.json")
        out.size = 2
        archive.addfile(out, io.BytesIO(b"[]"))
    with stage(tmp_path / "model.tar.gz", tmp_path) as staged:
        found = [each.name for each in staged.paths[0].parent.iterdir()]
    assert sorted(found) == ["model-shapes.json", "model_algo-1-symbol.json"]
    with zipfile.ZipFile(tmp_path / "net.mar", "w") as zipped:
        for name, body in SIGNED.items():
            entry = zipfile.ZipInfo(name)
            if name.endswith(".params"):
                entry.external_attr = (stat.S_IFLNK | 0o777) << 16
                body = os.fsencode(tmp_path / "secret.params")
            zipped.writestr(entry, body)
        zipped.writestr("../out-shapes.json", b"[]")
    with stage(tmp_path / "net.mar", tmp_path) as staged:
        found = [each.name for each in staged.paths[0].parent.iterdir()]
    assert not [name for name in found if name.endswith(".params") or "out" in name]


def test_a_zip_that_is_damaged_is_told(tmp_path: Path) -> None:
    path = as_zip(tmp_path / "net.mar", SIGNED)
    data = bytearray(path.read_bytes())
    at = data.index(b"net-0003.params") + 40
    data[at] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"net\.mar: the member 'net-0003"), stage(path, tmp_path):
        pass
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match="no sound zip archive"), stage(path, tmp_path):
        pass
    assert os.listdir(tmp_path) == ["net.mar"]


def test_a_disk_without_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = as_zip(tmp_path / "net.mar", {**SIGNED, "net-0003.params": params(np.eye(200))})
    monkeypatch.setattr(archives, "MAX_FACT_BYTES", 2000)
    usage = archives.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with (
        pytest.raises(OptionError, match=r"no room for 160,\d+ bytes of net\.mar; 1,000 are"),
        stage(path, tmp_path),
    ):
        pass
    assert os.listdir(tmp_path) == ["net.mar"]


def test_a_tar_without_facts_is_read_as_before(tmp_path: Path) -> None:
    path = as_tar(tmp_path / "model.tar.gz", NET)
    with stage(path, tmp_path) as staged:
        assert staged.paths == (path,)
    serde.convert(path, tmp_path / "out.onnx", input_shapes={"data": (5, 3, 2, 2)})
    session = onnxruntime.InferenceSession(tmp_path / "out.onnx")
    np.testing.assert_allclose(session.run(None, {"data": X})[0], softmax(WEIGHT), rtol=1e-5)
