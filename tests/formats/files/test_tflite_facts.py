"""TFLite Metadata: images and class labels, and archives of a model.

``labelled.tflite`` was made by tflite-support 0.4.4 (``image_classifier.MetadataWriter``).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_models import T, make_model, run_litert

import serde
import serde.relay as relay
from serde.checking.data import as_check_data
from serde.command.cli import main
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError, OptionError
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.tflite.bridge import BRIDGE
from serde.tflite.codec import load

GOLDEN = Path("tests/golden/tflite/labelled.tflite")
RNG = np.random.default_rng(3)
MEAN, STD = np.array([127.5, 100, 90]), np.array([127.5, 50, 60])
IMAGE = {"color_layout": "RGB", "scale": tuple(1 / STD), "bias": tuple(-MEAN / STD)}


def net(classes: int = 3, shape: tuple[int, ...] = (1, 3, 8, 8)) -> RelayModel:
    x = relay.var("data", shape=shape)
    kernel = relay.const(RNG.normal(size=(classes, 3, 3, 3)).astype("f4"))
    kind = {"data_layout": "NCHW", "kernel_layout": "OIHW"}
    if shape[1] != 3:
        kind["data_layout"] = "NHWC"
    found = relay.nn.conv2d(x, kernel, channels=classes, kernel_size=(3, 3), **kind)
    axes = [kind["data_layout"].index(letter) for letter in "HW"]
    body = relay.nn.softmax(relay.mean(found, axes))
    module = IRModule({"main": relay.Function([x], body)})
    return RelayModel(module, {}, ModelMeta(("data",), ("scores",)))


def test_what_others_wrote_is_read() -> None:
    meta = serde.to_relay(GOLDEN).meta
    assert meta.labels == ("red", "green", "blue")
    (name,) = meta.inputs
    facts = {key.removeprefix(f"{name}."): text for key, text in meta.extra.items()}
    assert facts["color_space"] == "RGB"
    np.testing.assert_allclose(np.float64(facts["scale"].split(",")), 1 / STD)
    np.testing.assert_allclose(np.float64(facts["bias"].split(",")), -MEAN / STD)
    assert BRIDGE.summary(load(GOLDEN)).facts["labels"] == ["red", "green", "blue"]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """And once more, without being asked."""
    path = tmp_path / "net.tflite"
    labels = tmp_path / "labels.txt"
    labels.write_text("Katze\ncrane\nété\n", encoding="utf-8")
    serde.export_model(
        net(), format="tflite", path=path, images={"data": IMAGE}, class_labels=labels
    )
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("labels.txt").decode() == "Katze\ncrane\nété\n"
    again = tmp_path / "again.tflite"
    serde.convert(path, again)
    for each in (path, again):
        meta = serde.to_relay(each).meta
        assert meta.labels == ("Katze", "crane", "été")
        assert meta.extra["data.color_space"] == "RGB"
        np.testing.assert_allclose(
            np.float64(meta.extra["data.bias"].split(",")), -MEAN / STD, rtol=1e-6
        )


def test_images_have_their_channels_last(tmp_path: Path) -> None:
    """Nothing is transposed, and LiteRT computes what the source does."""
    model, path = net(), tmp_path / "net.tflite"
    serde.export_model(model, format="relay", path=tmp_path / "net.relay")
    assert serde.convert(tmp_path / "net.relay", path, images=["data"], check=True).passed
    graph = load(path).subgraphs[0]
    assert graph.tensors[graph.inputs[0]].shape == (1, 8, 8, 3)
    assert "TRANSPOSE" not in [each.name for each in graph.operators]
    x = RNG.normal(size=(1, 3, 8, 8)).astype("f4")
    (found,) = run_litert(path.read_bytes(), [x.transpose(0, 2, 3, 1).copy()])
    np.testing.assert_allclose(found, RelayEngine(model).run({"data": x})[0], rtol=1e-5)


def test_quantised_models_keep_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    data = RNG.normal(size=(1, 8, 8, 3)).astype("f4")
    serde.export_model(
        net(), format="tflite", path=path, images=["data"], class_labels=["a", "b", "b"],
        int8=True, calibration=data,
    )  # fmt: skip
    meta = serde.to_relay(path).meta
    assert (meta.labels, meta.extra["data.color_space"]) == (("a", "b", "b"), "RGB")


def test_other_formats_take_over_how_pixels_become_numbers(tmp_path: Path) -> None:
    """A Core ML app gives pixels, which the written model scales and shifts itself."""
    pytest.importorskip("coremltools")
    target = tmp_path / "Net.mlpackage"
    serde.convert(GOLDEN, target, compute_precision="float32")
    model = serde.to_relay(target)
    (param,) = model.inputs()
    assert model.meta.extra[f"{param.name_hint}.color_space"] == "RGB"
    assert model.meta.labels == ("red", "green", "blue")
    pixels = RNG.integers(0, 256, (1, 4, 4, 3)).astype("f4")
    scores = RelayEngine(model).run({param.name_hint: pixels.transpose(0, 3, 1, 2).copy()})
    normal = ((pixels - MEAN) / STD).astype("f4")
    (wanted,) = run_litert(GOLDEN.read_bytes(), [normal])
    assert any(np.allclose(each, wanted, atol=1e-4) for each in scores)


def test_pictures_become_what_the_network_takes(tmp_path: Path) -> None:
    """Ranges are measured on numbers that pixels become, not on pixels."""
    pillow = pytest.importorskip("PIL.Image")
    pixels = RNG.integers(0, 256, (8, 8, 3)).astype(np.uint8)
    pillow.fromarray(pixels).save(tmp_path / "photo.png")
    serde.export_model(
        net(), format="tflite", path=tmp_path / "net.tflite", images={"data": IMAGE}, int8=True,
        calibration=tmp_path / "photo.png",
    )  # fmt: skip
    graph = load(tmp_path / "net.tflite").subgraphs[0]
    first = next(each for each in graph.operators if each.name == "QUANTIZE")
    scale = float(graph.tensors[first.outputs[0]].quantization.scales[0])
    numbers = (pixels - MEAN) / STD
    assert scale == pytest.approx((numbers.max() - numbers.min()) / 255, rel=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_pixels_of_quantised_inputs_are_their_codes(tmp_path: Path, dtype: str) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pixels = RNG.integers(0, 256, (4, 4, 3)).astype(np.uint8)
    pillow.fromarray(pixels).save(tmp_path / "photo.png")
    x = relay.var("data", shape=(1, 4, 4, 3), dtype=dtype)
    module = IRModule({"main": relay.Function([x], x)})
    extra = {"data.color_space": "RGB", "data.scale": "0.5,0.5,0.5", "data.bias": "1.0,2.0,3.0"}
    model = RelayModel(module, {}, ModelMeta(("data",), ("y",), extra=extra))
    (sample,) = as_check_data(tmp_path / "photo.png").samples(model, {}, serde.Report())
    wanted = pixels if dtype == "uint8" else pixels * 0.5 + np.array([1, 2, 3])
    np.testing.assert_array_equal(sample["data"][0], wanted)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"images": ["x"]}, "no input is called 'x'"),
    "blue first": ({"images": {"data": "BGR"}}, "have RGB and GRAYSCALE, found BGR"),
    "channels": ({"images": {"data": "GRAYSCALE"}}, "it has not 1 channels"),
    "zero": ({"images": {"data": {"scale": 0}}}, "divided by nothing"),
    "labels": ({"class_labels": ["a"]}, "no outputs have 1 scores"),
    "no file": ({"class_labels": "labels.txt"}, "labels.txt"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    options, message = REFUSED[name]
    with pytest.raises(OptionError, match=message):
        serde.export_model(net(), format="tflite", path=tmp_path / "net.tflite", **options)


def test_what_the_source_says_and_does_not_fit_is_told() -> None:
    model = net()
    extra = {"data.color_space": "RGB"}
    model = model.evolve(meta=ModelMeta(("data",), ("scores",), labels=("a",), extra=extra))
    report = serde.Report()
    serde.export_model(model, format="tflite", report=report)
    assert any("channels at its end" in note for note in report.notes)
    assert any("class_labels: no outputs" in note for note in report.notes)


def test_the_least_runtime() -> None:
    """A convolution of floats runs on the first ones, one of groups from 2.9 on."""
    x = T((1, 8, 8, 4))

    def least(groups: int) -> bytes:
        a = relay.var("x", shape=x.shape)
        w = relay.const(RNG.normal(size=(4, 4 // groups, 3, 3)).astype("f4"))
        body = relay.nn.conv2d(
            a, w, channels=4, kernel_size=(3, 3), groups=groups, data_layout="NHWC",
            kernel_layout="OIHW",
        )  # fmt: skip
        module = IRModule({"main": relay.Function([a], body)})
        data = serde.export_model(
            RelayModel(module, {}, ModelMeta(("x",), ("y",))), format="tflite"
        )
        return load(data).metadata["min_runtime_version"].array().tobytes()

    assert least(1) == b"1.5.0".ljust(16, b"\0")
    assert least(2) == b"2.9.0".ljust(16, b"\0")


def test_an_archive_of_one_model(tmp_path: Path) -> None:
    path = tmp_path / "net.task"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.txt", "a net")
        archive.write(GOLDEN, "inner/net.tflite")
    assert main(["convert", str(path), str(tmp_path / "net.onnx"), "--check"]) == 0
    assert main(["convert", str(path), str(tmp_path / "net.tflite")]) == 0
    assert serde.to_relay(tmp_path / "net.tflite").meta.labels == ("red", "green", "blue")


def test_an_archive_of_several_models(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "net.task"
    with zipfile.ZipFile(path, "w") as archive:
        for name in "ab":
            archive.write(GOLDEN, f"{name}.tflite")
    assert main(["convert", str(path), str(tmp_path / "net.onnx")]) == 3
    assert "a.tflite, b.tflite" in capsys.readouterr().err


def _archive(data: bytes, build: Callable[[zipfile.ZipFile], None]) -> bytes:
    head = data[: data.index(b"PK\x03\x04")]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        build(archive)
    return head + file.getvalue()


def test_labels_that_unpack_to_much_are_cut(tmp_path: Path) -> None:
    """A megabyte of zeros packs to a thousand bytes; no more than four are read."""
    data = _archive(
        GOLDEN.read_bytes(), lambda archive: archive.writestr("labels.txt", b"0" * 2**24)
    )
    assert len(data) < 2**15
    (labels,) = load(data).facts.labels.values()
    assert len(labels[0]) == 2**22


def test_labels_that_are_not_there() -> None:
    data = _archive(GOLDEN.read_bytes(), lambda archive: archive.writestr("other.txt", "a"))
    assert load(data).facts.labels == {}
    assert load(data[: data.index(b"PK\x03\x04")]).facts.labels == {}


@pytest.mark.parametrize("seed", range(60))
def test_damaged_bytes(seed: int) -> None:
    """Metadata and archives with other bytes are read, or refused with one error."""
    data = bytearray(GOLDEN.read_bytes())
    start = data.index(b"M001") - 4
    draw = np.random.default_rng(seed)
    for place in draw.integers(start, len(data), 6):
        data[place] = draw.integers(256)
    try:
        load(bytes(data))
    except FormatError:
        return


def test_metadata_that_are_none() -> None:
    data = GOLDEN.read_bytes().replace(b"M001", b"M009")
    with pytest.raises(FormatError, match="expected M001"):
        load(data)
    plain = make_model("ABS", [T((2,))], [T((2,))])
    assert not load(plain).facts
