"""ONNX files that are not what they claim to be."""

from __future__ import annotations

import functools
import os
import random
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.tiers import first_of

from serde.errors import FormatError
from serde.onnx import codec
from serde.onnx.model import tensors

DATA = np.arange(500, dtype=np.float32)


def model_of(*initializers: TensorProto, nodes: list[onnx.NodeProto] | None = None):
    graph = helper.make_graph(
        nodes or [helper.make_node("Add", ["x", "w"], ["y"], name="add")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [500])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [500])],
        list(initializers),
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="test")


@functools.cache
def sound() -> bytes:
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(DATA + 1))
    body = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["o"])],
        "body",
        [],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, [500])],
        [numpy_helper.from_array(DATA[:300], "inner")],
    )
    branch = helper.make_node("If", ["k"], ["z"], then_branch=body, else_branch=body)
    weights = [
        numpy_helper.from_array(DATA, "w"),
        numpy_helper.from_array(np.arange(5), "short"),
        helper.make_tensor("typed", TensorProto.FLOAT, [300], DATA[:300]),
    ]
    return model_of(*weights, nodes=[constant, branch]).SerializeToString(deterministic=True)


def read_all(data: bytes) -> None:
    """Read a model and every tensor of it."""
    model = codec.load(data)
    for _, found in tensors(model.proto):
        if found.data_type != TensorProto.STRING:
            model.weight(found).array()
    model.complete()


def test_the_sound_model_is_sound() -> None:
    read_all(sound())


@pytest.mark.parametrize("part", range(64))
def test_truncated(tmp_path: Path, part: int) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(sound()[: len(sound()) * part // 64])
    with pytest.raises(FormatError, match=r"m\.onnx"):
        codec.load(path)


@pytest.mark.parametrize("left", range(1, 20))
def test_truncated_at_the_end(left: int) -> None:
    with pytest.raises(FormatError):
        codec.load(sound()[:-left])


def _structure() -> list[int]:
    """Return the positions of bytes that are not values of tensors."""
    data = sound()
    skip = set()
    for run in (DATA, DATA + 1, DATA[:300]):
        start = -1
        while (start := data.find(run.tobytes(), start + 1)) >= 0:
            skip.update(range(start, start + run.nbytes))
    return [position for position in range(len(data)) if position not in skip]


POSITIONS = _structure()


@pytest.mark.parametrize("seed", first_of(range(400), range(100)))
def test_one_flipped_bit(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(sound())
    data[rng.choice(POSITIONS)] ^= 1 << rng.randrange(8)
    try:
        read_all(bytes(data))
    except FormatError:
        return


@pytest.mark.parametrize("seed", range(200))
def test_several_changed_bytes(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(sound())
    for _ in range(rng.randrange(2, 12)):
        data[rng.choice(POSITIONS)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    try:
        read_all(bytes(data))
    except FormatError:
        return


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 64,
        b"\x80\x02}q\x00X\x05\x00\x00\x00",
        b'{"nodes": [], "heads": []}',
        b"PK\x03\x04" + bytes(100),
        b"\x1f\x8b\x08" + bytes(100),
        b"\x12\x01" + bytes(200),
        b"<!DOCTYPE html><html></html>",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        b"\xff" * 100,
        b"\x08\x08",
        b"\x08\x08\x3a\x00",
        b"\x08\x00\x3a\x00\x42\x02\x10\x11",
        b"\x3a\x00\x42\x02\x10\x11",
        b"\x08" + b"\xff" * 9 + b"\x02",
        b"\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x08\x08\x0b\x08\x01",
        b"\x08\x08\x0c",
        b"\x08\x08\x0b\x13\x14",
        b"\x0b" * 500,
        helper.make_opsetid("", 17).SerializeToString(),
        numpy_helper.from_array(DATA, "w").SerializeToString(),
    ],
    ids=range(22),
)
def test_foreign(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"m\.onnx"):
        codec.load(path)


@pytest.mark.parametrize("seed", range(50))
def test_random_bytes(seed: int) -> None:
    rng = random.Random(seed)
    with pytest.raises(FormatError):
        codec.load(rng.randbytes(rng.randrange(1, 5000)))


def test_an_offset_is_told(tmp_path: Path) -> None:
    data = bytearray(sound())
    position = data.index(DATA.tobytes()) - 3
    assert data[position] == 0x4A  # the tag of raw_data, before a length of two bytes
    data[position + 2] = 0x7F
    with pytest.raises(FormatError) as caught:
        codec.load(bytes(data))
    assert caught.value.offset == position


@pytest.mark.parametrize("depth", [33, 40, 5000])
def test_deep_nesting(depth: int) -> None:
    inner = helper.make_graph([], "g", [], [], [numpy_helper.from_array(DATA, "w")])
    data = inner.SerializeToString()

    def nested(number: int, content: bytes) -> bytes:
        length, out = len(content), b""
        while length > 127:
            out, length = out + bytes([length & 127 | 128]), length >> 7
        return bytes([number << 3 | 2]) + out + bytes([length]) + content

    for _ in range(depth):
        data = nested(1, nested(5, nested(6, data)))
    with pytest.raises(FormatError, match="nested deeper"):
        codec.load(b"\x08\x08" + nested(7, data) + b"\x42\x02\x10\x11")


def changed(change) -> bytes:
    entry = numpy_helper.from_array(DATA, "w")
    change(entry)
    return model_of(entry).SerializeToString()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.dims.__setitem__(0, 499), "expected 1996 bytes"),
        (lambda t: t.dims.__setitem__(0, -500), "length -500"),
        (lambda t: t.dims.extend([2**40, 2**40]), "bytes"),
        (lambda t: t.dims.extend([-1, -1]), "length -1"),
        (lambda t: t.dims.extend([1] * 40), "at most 32 axes"),
        (lambda t: setattr(t, "data_type", 0), "data type 0"),
        (lambda t: setattr(t, "data_type", 8), "data type 8"),
        (lambda t: setattr(t, "data_type", 999), "data type 999"),
        (lambda t: setattr(t, "data_type", 11), "expected 4000 bytes"),
        (lambda t: setattr(t, "name", ""), "needs a name"),
        (lambda t: setattr(t, "name", "n" * 1_000_001), "too long"),
        (lambda t: t.float_data.extend([1.0] * 500), "more than once"),
        (lambda t: t.float_data.append(1.0), "more than one place"),
        (lambda t: t.int32_data.append(1), "more than one place"),
        (lambda t: t.string_data.append(b"a"), "more than one place"),
        (lambda t: t.segment.SetInParent(), "more than one place"),
        (lambda t: t.ClearField("raw_data"), "expected 500 entries"),
        (lambda t: setattr(t, "raw_data", b"\0" * 100), "expected 2000 bytes, found 100"),
        (lambda t: (t.ClearField("raw_data"), t.double_data.extend([1.0] * 500)), "float_data"),
        (lambda t: (t.ClearField("raw_data"), t.double_data.extend([1.0] * 5)), "double_data"),
        (lambda t: (t.ClearField("raw_data"), t.float_data.extend([1.0] * 5)), "500 entries"),
        (lambda t: setattr(t, "data_location", TensorProto.EXTERNAL), "more than one place"),
    ],
)
def test_tensors_that_contradict_themselves(change, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        codec.load(changed(change))


def test_two_initializers_of_one_name() -> None:
    entry = numpy_helper.from_array(DATA, "w")
    with pytest.raises(FormatError, match="second initializer"):
        codec.load(model_of(entry, entry).SerializeToString())


def test_data_given_twice() -> None:
    once = numpy_helper.from_array(DATA, "w").SerializeToString()
    raw = b"\x4a\xd0\x0f" + DATA.tobytes()
    entry = once + raw
    data = model_of().SerializeToString() + graph_field(b"\x2a" + length_of(entry) + entry)
    with pytest.raises(FormatError, match="more than once"):
        codec.load(data)


def length_of(content: bytes) -> bytes:
    assert 128 <= len(content) < 2**14
    return bytes([len(content) & 127 | 128, len(content) >> 7])


def graph_field(content: bytes) -> bytes:
    return b"\x3a" + length_of(content) + content


@pytest.mark.parametrize("name", ["producer", "node"])
def test_text_that_is_not_utf8(name: str) -> None:
    model = model_of(numpy_helper.from_array(DATA, "w"))
    model.producer_name = "producer!"
    model.graph.node[0].name = "node!"
    data = model.SerializeToString().replace(name.encode() + b"!", name.encode() + b"\xff")
    with pytest.raises(FormatError, match="UTF-8"):
        codec.load(data)


def test_no_operator_set() -> None:
    model = model_of(numpy_helper.from_array(DATA, "w"))
    model.ClearField("opset_import")
    with pytest.raises(FormatError, match="operator set"):
        codec.load(model.SerializeToString())


def external(path: Path, **entries: str) -> Path:
    """Write a model whose weight is described by `entries`; return its path."""
    entry = TensorProto(name="w", data_type=1, dims=[500], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        entry.external_data.add(key=key, value=value)
    path.write_bytes(model_of(entry).SerializeToString())
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory with good data, beside a file that it must not reach."""
    (tmp_path / "secret").write_bytes(DATA.tobytes())
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    (inside / "w.data").write_bytes(DATA.tobytes())
    (inside / "sub" / "w.data").write_bytes(DATA.tobytes())
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "up").symlink_to(tmp_path)
    (inside / "loop").symlink_to("loop")
    (inside / "hard").hardlink_to(tmp_path / "secret")
    (inside / "alias").symlink_to("w.data")
    os.mkfifo(inside / "fifo")
    return inside


@pytest.mark.parametrize("location", ["w.data", "./w.data", "sub/w.data", "alias", "sub//w.data"])
def test_locations_inside_are_read(place: Path, location: str) -> None:
    path = external(place / "m.onnx", location=location, offset="0", length="2000")
    assert np.array_equal(codec.load(path).weights["w"].array(), DATA)


@pytest.mark.parametrize(
    "location",
    [
        "../secret",
        "sub/../../secret",
        "sub/../w.data",
        "..",
        "..\\secret",
        "sub\\..\\..\\secret",
        "/dev/zero",
        "//server/share",
        "\\\\server\\share",
        "\\secret",
        "C:\\secret",
        "c:secret",
        "w.data\0.txt",
        "",
        ".",
        "sub",
        "link",
        "up/secret",
        "loop",
        "hard",
        "fifo",
        "missing",
        "w.data/x",
        "x" * 5000,
        "file:w.data",
        "~/secret",
    ],
)
@pytest.mark.parametrize("how", ["path", "bytes", "message"])
def test_hostile_locations(place: Path, location: str, how: str) -> None:
    path = external(place / "m.onnx", location=location, offset="0", length="2000")
    before = sorted(os.listdir(place))
    source = {
        "path": path,
        "bytes": path.read_bytes(),
        "message": onnx.load(path, load_external_data=False),
    }[how]
    with pytest.raises(FormatError):
        codec.load(source, directory=place)
    assert sorted(os.listdir(place)) == before


def test_absolute_location_of_a_file_inside(place: Path) -> None:
    path = external(place / "m.onnx", location=str(place / "w.data"))
    with pytest.raises(FormatError, match="absolute"):
        codec.load(path)


def test_bytes_without_a_directory(place: Path) -> None:
    path = external(place / "m.onnx", location="w.data")
    with pytest.raises(FormatError, match="no directory"):
        codec.load(path.read_bytes())


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": "-1"},
        {"offset": "1"},
        {"offset": "2000"},
        {"offset": str(2**60)},
        {"offset": str(2**64)},
        {"offset": "9" * 5000},
        {"offset": ""},
        {"offset": "0x0"},
        {"offset": "1_0"},
        {"offset": "٣"},
        {"offset": " 0"},
        {"offset": "0.0"},
        {"length": "-1"},
        {"length": "1999"},
        {"length": "2001"},
        {"length": str(2**60)},
        {"length": "nan"},
        {"unknown": "1"},
        {"__class__": "1"},
        {"serde.weight": "w"},
        {"Location": "w.data"},
    ],
    ids=lambda entries: "-".join(entries) + str(len(str(entries))),
)
def test_hostile_descriptions(place: Path, entries: dict[str, str]) -> None:
    path = external(place / "m.onnx", **{"location": "w.data", **entries})
    with pytest.raises(FormatError):
        codec.load(path)


def test_a_location_given_twice(place: Path) -> None:
    entry = TensorProto(name="w", data_type=1, dims=[500], data_location=TensorProto.EXTERNAL)
    entry.external_data.add(key="location", value="w.data")
    entry.external_data.add(key="location", value="sub/w.data")
    with pytest.raises(FormatError, match="repeated"):
        codec.load(model_of(entry), directory=place)


@pytest.mark.parametrize(("offset", "sound"), [(0, True), (2000, True), (4, False), (1996, False)])
def test_overlapping_tensors(place: Path, offset: int, sound: bool) -> None:
    (place / "w.data").write_bytes(DATA.tobytes() * 2)
    entries = []
    for name, start in (("a", 0), ("b", offset)):
        entry = TensorProto(name=name, data_type=1, dims=[500], data_location=TensorProto.EXTERNAL)
        entry.external_data.add(key="location", value="w.data")
        entry.external_data.add(key="offset", value=str(start))
        entries.append(entry)
    path = place / "m.onnx"
    path.write_bytes(model_of(*entries).SerializeToString())
    if sound:
        assert np.array_equal(codec.load(path).weights["b"].array(), DATA)
        return
    with pytest.raises(FormatError, match="overlap"):
        codec.load(path)


@pytest.mark.parametrize("kind", ["directory", "fifo", "missing", "device"])
def test_models_that_are_not_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.onnx"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    with pytest.raises(FormatError):
        codec.load(path)


def test_claims_are_checked_before_memory_is_taken(tmp_path: Path) -> None:
    claim = b"\x08\x08\x3a\xff\xff\xff\xff\x0f" + bytes(1000)
    path = tmp_path / "m.onnx"
    path.write_bytes(claim)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="claims"):
            codec.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
