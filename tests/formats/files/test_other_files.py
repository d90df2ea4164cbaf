"""Files that are no models of ours: they are named for what they are, and nothing of ours is."""

from __future__ import annotations

import io
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from serde.bridge.formats import source_bridge
from serde.command.cli import main
from serde.errors import FormatError
from serde.io.other_files import describe_content, describe_unrecognised

HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(88)
PAGE = b"\n<!DOCTYPE html>\n<html><head><title>model.onnx</title></head></html>\n"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
IR = b'<?xml version="1.0"?>\n<net name="net" version="11">\n</net>\n'
TFJS = b'{"format": "layers-model", "generatedBy": "keras v2.12.0", "modelTopology": {}}'
ERROR = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>'
NODE = b"\x0a\x01x\x12\x0bPlaceholder"


def zipped(*names: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, b"{}")
    return data.getvalue()


def tarred(*names: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return data.getvalue()


def arrays() -> bytes:
    data = io.BytesIO()
    np.savez(data, a=np.zeros(2))
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("net.h5", HDF5, r"HDF5 .*model\.export\('model\.onnx', format='onnx'\)"),
        ("net.onnx", HDF5, "expected a file of format onnx, found an HDF5 file"),
        ("net.keras", zipped("metadata.json", "config.json", "model.weights.h5"), "Keras; in"),
        ("net.ort", b"\x1c\0\0\0ORTM" + bytes(20), "ONNX Runtime's own format"),
        ("net.onnx", PAGE, r"net\.onnx: .* found a web page \(HTML\)"),
        ("net.mlmodel", PAGE, r"expected a file of format coreml, found a web page"),
        ("net.onnx", b'{"message": "Not Found"}', r'JSON that begins \{"message": "Not Found"\}'),
        ("net.onnx", b'{"a": [' + b"1, " * 9000, r'JSON that begins \{"a": \[1, 1'),
        ("net.onnxjson", b'{"irVersion": "x"}', r"net\.onnxjson: (?!.*such as a server sends)"),
        ("net-symbol.json", b'{"message": "Not Found"}', r"json: (?!.*such as a server sends)"),
        ("net.onnx", ERROR, r"an error that a server sent \(XML\)"),
        ("net.onnx", POINTER, "a pointer of Git LFS; fetch the file with git lfs pull"),
        ("net.params", POINTER, "a pointer of Git LFS"),
        ("net.bin", POINTER, "a pointer of Git LFS"),
        ("net.xml", IR, "a model of OpenVINO"),
        ("model.json", TFJS, r"TensorFlow\.js; .*--tfjs"),
        ("net.pb", bytes([len(NODE)]).join([b"\n", NODE]), r"a GraphDef of .*--graphdef"),
        ("saved_model.pb", b"\x08\x01\x12\x02\x0a\x00", r"a SavedModel .*--saved-model"),
        ("net.pkl", pickle.dumps({"a": [1, 2]}), "a pickle, .*never unpickled here"),
        ("net.joblib", b"x\x9c\x00", "a pickle, .*never unpickled here"),
        ("net.npz", arrays(), "arrays of NumPy, which are no model"),
        ("net.zip", zipped("a.txt", "b.txt"), r"zip archive .* holds a\.txt, b\.txt; unpack it"),
        ("net.tar", tarred(*"abcdef"), r"tar archive .* holds a, b, c, d, \.\.\.; unpack"),
        ("net.zip", zipped()[:4] + bytes(9), "no format recognises it"),
        ("net.bin", b"", "found an empty file"),
        ("net.bin", b"\x80\x04\xff\xff", "no format recognises it"),
        ("net.txt", b"a text", "no format recognises it"),
    ],
)  # fmt: skip
def test_what_a_file_is_that_is_no_model(
    tmp_path: Path, name: str, content: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["inspect", str(path)]) == 3
    message = capsys.readouterr().err
    assert message.startswith(f"serde: {path}: ")
    with pytest.raises(FormatError, match=said):
        raise FormatError(message)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "found an empty folder"),
        (("saved_model.pb",), "a SavedModel of TensorFlow"),
        (("config.json", "model-00001-of-2.safetensors"), "a folder that is no model itself"),
        (("config.json", "pytorch_model.bin"), "Hugging Face.*pickled.*save_pretrained"),
        (("coremldata.bin", "model.mil"), "a compiled Core ML model"),
        (("a.onnx", "b.onnx"), r"holds a\.onnx, b\.onnx; name the model in it"),
    ],
)
def test_what_a_folder_is_that_is_no_model(
    tmp_path: Path, names: tuple[str, ...], said: str
) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(FormatError, match=said):
        source_bridge(tmp_path)


def test_an_estimator_of_scikit_learn_is_never_loaded(tmp_path: Path) -> None:
    # What pickle writes of an estimator: its class by name, which is not imported here.
    content = b"\x80\x04\x95\x2b\0\0\0\0\0\0\0\x8c\x14sklearn.linear_model\x8c\x05Ridge\x93)\x81."
    (tmp_path / "net.pkl").write_bytes(content)
    assert "skl2onnx" in (describe_unrecognised(tmp_path / "net.pkl") or "")


def test_a_batch_tells_what_a_folder_without_models_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00")
    args = ["batch", str(tmp_path / "net"), "--to", "onnx", "--out", str(tmp_path / "out")]
    assert main(args) == 101
    said = "no model is in the folder, which is a SavedModel of TensorFlow; python -m tf2onnx"
    assert said in capsys.readouterr().err


GOLDEN = Path(__file__).parents[2] / "golden"


def test_nothing_is_claimed_of_models() -> None:
    files = [each for each in GOLDEN.rglob("*") if each.is_file()]
    assert len(files) > 50
    assert [each for each in files if describe_content(each) is not None] == []


@pytest.mark.parametrize("read", [describe_content, describe_unrecognised])
def test_what_cannot_be_read_is_not_described(
    tmp_path: Path, read: Callable[[Path], str | None]
) -> None:
    assert read(tmp_path / "nothing") is None
    (tmp_path / "deep.bin").write_bytes(b"[" * 15000)
    assert read(tmp_path / "deep.bin") is None
