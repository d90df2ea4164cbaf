"""Core ML packages: read without their weights, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_models import package, small_network, small_program

import serde
from serde.core.weights import ArrayWeight, FileWeight, OpenFile, numpy_dtype
from serde.coreml.blobs import BlobFile, BlobLayout
from serde.coreml.elements import BY_DTYPE, BY_MIL
from serde.coreml.model import CoremlModel
from serde.coreml.reader import detect, load
from serde.errors import FormatError, OptionError, SerdeError

BLOB = ("@model_path/weights/weight.bin", 64)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package(small_program(), tmp_path_factory.mktemp("program") / "net.mlpackage")


@pytest.fixture
def copied(program: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(program, tmp_path / "net.mlpackage"))


def weights_of(root: Path) -> Path:
    return root / "Data/com.apple.CoreML/weights/weight.bin"


def model_of(root: Path) -> Path:
    return root / "Data/com.apple.CoreML/model.mlmodel"


@pytest.mark.wide
def test_weights_of_a_program_stay_in_their_file(program: Path) -> None:
    model = load(program)
    assert model.kind == "mlProgram"
    weight = model.blobs[BLOB]
    assert isinstance(weight, FileWeight)
    assert weight.source.path == str(weights_of(program))
    assert (weight.shape, weight.dtype) == ((4, 3, 3, 3), "float32")
    kernel = np.arange(108, dtype=np.float32).reshape(4, 3, 3, 3) / 108
    np.testing.assert_array_equal(weight.array(), kernel)


def test_weights_of_a_network_stay_in_the_model(tmp_path: Path) -> None:
    path = tmp_path / "net.mlmodel"
    small_network().save(str(path))
    model = load(path)
    weight = model.arrays["neuralNetwork.layers[0].innerProduct.weights"]
    assert isinstance(weight, FileWeight)
    np.testing.assert_array_equal(weight.array(), np.arange(1024, dtype=np.float32))
    assert len(model.spec.SerializeToString()) < 1024


@pytest.mark.parametrize("kind", ["path", "bytes", "message", "object"])
def test_sources(kind: str, tmp_path: Path) -> None:
    made = small_network()
    path = tmp_path / "net.mlmodel"
    made.save(str(path))
    forms: dict[str, Any] = {
        "path": path,
        "bytes": path.read_bytes(),
        "message": made.get_spec(),
        "object": made,
    }
    found = load(forms[kind]).arrays["neuralNetwork.layers[0].innerProduct.weights"]
    assert found.array().tolist() == list(range(1024))


DTYPES = ["float16", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_are_written_as_coremltools_writes_them(dtype: str, tmp_path: Path) -> None:
    from coremltools.libmilstoragepython import _BlobStorageWriter

    values = np.arange(70).astype(dtype)
    names = {"float16": "fp16", "float32": "float"}
    theirs = tmp_path / "theirs.bin"
    writer = _BlobStorageWriter(str(theirs))
    write = getattr(writer, f"write_{names.get(dtype, dtype)}_data")
    places = [
        write(part.view("uint16") if dtype == "float16" else part) for part in (values, values[:3])
    ]
    del write, writer
    layout = BlobLayout()
    element = BY_DTYPE[dtype]
    assert [layout.add(ArrayWeight(each), element, "w") for each in (values, values[:3])] == places
    layout.write(tmp_path / "ours.bin")
    assert (tmp_path / "ours.bin").read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("code", [35, 36, 37, 38, 39, 25])
def test_values_narrower_than_a_byte(code: int, tmp_path: Path) -> None:
    element = BY_MIL[code]
    low = -(2 ** (element.bits - 1)) if element.dtype == "int4" else 0
    values = (np.arange(37) % 2**element.bits + low).astype(numpy_dtype(element.dtype))
    layout = BlobLayout()
    offset = layout.add(ArrayWeight(values), element, "w")
    layout.write(tmp_path / "w.bin")
    with OpenFile.open(tmp_path / "w.bin") as opened:
        found = BlobFile(opened).weight(offset, (37,), element)
    np.testing.assert_array_equal(found.array().astype(int), values.astype(int))


def test_same_bytes_each_time(program: Path, tmp_path: Path) -> None:
    model = serde.to_relay(program)
    for name in ("one", "two"):
        serde.from_relay(model, format="coreml", path=tmp_path / f"{name}.mlpackage")
    one, two = (sorted((tmp_path / f"{name}.mlpackage").rglob("*")) for name in ("one", "two"))
    assert [path.name for path in one[1:]] == [path.name for path in two[1:]]
    for first, second in zip(one, two, strict=True):
        assert first.is_dir() or first.read_bytes() == second.read_bytes()


def test_a_package_is_replaced_whole(program: Path, tmp_path: Path) -> None:
    target = Path(shutil.copytree(program, tmp_path / "net.mlpackage"))
    (target / "old").write_text("old")
    serde.from_relay(serde.to_relay(program), format="coreml", path=target)
    assert not (target / "old").exists()
    assert sorted(os.listdir(tmp_path)) == ["net.mlpackage"]
    assert load(target).kind == "mlProgram"


def test_a_failure_leaves_what_was_there(program: Path, tmp_path: Path) -> None:
    from serde.coreml.writer import save

    target = Path(shutil.copytree(program, tmp_path / "net.mlpackage"))

    def refuse(_: Path) -> None:
        raise ValueError("not good")

    with pytest.raises(ValueError, match="not good"):
        save(CoremlModel(load(program).spec), target, before_commit=refuse)
    assert sorted(os.listdir(tmp_path)) == ["net.mlpackage"]
    assert model_of(target).read_bytes() == model_of(program).read_bytes()


def test_what_a_broken_run_put_aside_comes_back(program: Path, copied: Path) -> None:
    from serde.coreml.writer import save

    copied.rename(copied.parent / ".serde-old-net.mlpackage")

    def refuse(_: Path) -> None:
        raise ValueError("not good")

    with pytest.raises(ValueError, match="not good"):
        save(CoremlModel(load(program).spec), copied, before_commit=refuse)
    assert sorted(os.listdir(copied.parent)) == ["net.mlpackage"]
    assert model_of(copied).read_bytes() == model_of(program).read_bytes()


def test_a_directory_of_something_else_is_not_replaced(program: Path, tmp_path: Path) -> None:
    target = tmp_path / "net.mlpackage"
    target.mkdir()
    (target / "thesis.tex").write_text("years of work")
    with pytest.raises(OptionError, match="expected a package"):
        serde.from_relay(serde.to_relay(program), format="coreml", path=target)
    assert (target / "thesis.tex").read_text() == "years of work"


def test_a_source_in_the_target_is_not_replaced(copied: Path) -> None:
    with pytest.raises(OptionError, match="holds the source"):
        serde.convert(copied, copied)


def patched(offset: int, form: str, value: int) -> Callable[[Path], None]:
    def patch(root: Path) -> None:
        data = bytearray(weights_of(root).read_bytes())
        struct.pack_into(form, data, offset, value)
        weights_of(root).write_bytes(data)

    return patch


def repointed(offset: int, name: str = BLOB[0]) -> Callable[[Path], None]:
    def patch(root: Path) -> None:
        spec = load(root).spec
        for op in spec.mlProgram.functions["main"].block_specializations["CoreML5"].operations:
            value = op.attributes.get("val")
            if value is not None and value.WhichOneof("value") == "blobFileValue":
                value.blobFileValue.offset = offset
                value.blobFileValue.fileName = name
        model_of(root).write_bytes(spec.SerializeToString())

    return patch


def manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def patch(root: Path) -> None:
        content = json.loads((root / "Manifest.json").read_text())
        change(content)
        (root / "Manifest.json").write_text(json.dumps(content))

    return patch


def located(location: object) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        content["itemInfoEntries"][content["rootModelIdentifier"]]["path"] = location

    return change


def linked(root: Path) -> None:
    target = weights_of(root).rename(root.parent / "elsewhere.bin")
    weights_of(root).symlink_to(target)


def versioned(root: Path) -> None:
    spec = load(root).spec
    spec.specificationVersion = 99
    model_of(root).write_bytes(spec.SerializeToString())


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "beyond the file": (repointed(2**40), "expected a record at a multiple of 64"),
    "misaligned": (repointed(65), "expected a record at a multiple of 64"),
    "no record": (repointed(128), "expected the mark"),
    "another file": (repointed(64, "@model_path/weights/other.bin"), "No such file"),
    "outside the package": (repointed(64, "@model_path/../../../x.bin"), "leaves the directory"),
    "absolute": (repointed(64, "/etc/passwd"), "expected it below @model_path/"),
    "sentinel": (patched(64, "<I", 1), "expected the mark 0xdeadbeef, found 0x1"),
    "type": (patched(68, "<I", 4), "expected fp32, found storage type 4"),
    "size": (patched(72, "<Q", 2**62), "expected 432 bytes"),
    "place": (patched(80, "<Q", 2**62), "expected 432 bytes, found 0"),
    "version": (patched(4, "<I", 1), "expected version 2"),
    "no manifest": (lambda root: (root / "Manifest.json").unlink(), "No such file"),
    "garbage": (lambda root: (root / "Manifest.json").write_text("[["), "names a model"),
    "no root": (manifest(lambda content: content.pop("rootModelIdentifier")), "names a model"),
    "model outside": (manifest(located("../../../model.mlmodel")), "leaves the directory"),
    "model is a number": (manifest(located(7)), "expected a path, found 7"),
    "link": (linked, "symbolic link"),
    "newer specification": (versioned, "specification version 99: expected 1 to 10"),
    "no message": (lambda root: model_of(root).write_bytes(b"\xff" * 40), "at byte 0"),
}


@pytest.mark.parametrize("name", ["int4", "uint3", "int8", "float16"])
def test_unused_bits_count_where_a_value_is_narrower_than_a_byte(name: str, tmp_path: Path) -> None:
    """Nothing initialised the field in what coremltools wrote before it had such values."""
    element = next(each for each in BY_MIL.values() if name in (each.name, each.dtype))
    layout = BlobLayout()
    offset = layout.add(ArrayWeight(np.zeros(5, numpy_dtype(element.dtype))), element, "w")
    path = tmp_path / "weight.bin"
    layout.write(path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, offset + 24, 7)
    path.write_bytes(data)
    with OpenFile.open(path) as opened:
        blobs = BlobFile(opened)
        if element.bits < 8:
            with pytest.raises(FormatError, match="bits are unused, found 7"):
                blobs.weight(offset, (5,), element)
        else:
            assert blobs.weight(offset, (5,), element).shape == (5,)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told(name: str, copied: Path, tmp_path: Path) -> None:
    break_it, message = FAULTS[name]
    break_it(copied)
    with pytest.raises(FormatError, match=message):
        serde.convert(copied, tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()


@pytest.mark.parametrize("part", ["model", "weights", "manifest"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_truncation(part: str, share: float, copied: Path) -> None:
    places = {"model": model_of, "weights": weights_of, "manifest": lambda r: r / "Manifest.json"}
    path = places[part](copied)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(SerdeError):
        serde.to_relay(copied)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("net.mlmodel", b"", True),
        ("net", b"", False),
        ("net", b"\x08\x08\x12\x00\xb2\x1f\x00", True),
        ("net.bin", b"\x08\x08\x3a\x00", False),
        ("net", b"\x08\x08" * 9 + b"\x12\x00\xb2\x1f\x00", True),
        ("net", b"\x08\x08\x12\x00\xb2\x1f\x00\x12\x00", False),
    ],
)
def test_detection(name: str, content: bytes, expected: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert detect(tmp_path / name) is expected


def test_other_kinds_are_refused_by_name() -> None:
    from serde.coreml.protos import message_class

    spec = message_class("Model.Model")(specificationVersion=4)
    spec.pipeline.models.add().glmRegressor.SetInParent()
    with pytest.raises(FormatError, match="kind pipeline of glmRegressor"):
        load(spec)
