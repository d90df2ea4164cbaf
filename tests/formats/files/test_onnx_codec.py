"""ONNX files read and written by serde, judged by onnx and ONNX Runtime."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import ODD, model_of, same_bits, tensor, values

from serde.core.weights import Array, ArrayWeight, FileWeight, OpenFile, Weight
from serde.errors import ConverterBug, FormatError, OptionError
from serde.io.packed import PackedWeight
from serde.onnx import codec
from serde.onnx.elements import CODES, ELEMENTS, MESSAGES
from serde.onnx.model import OnnxModel, tensors


def rich_model() -> onnx.ModelProto:
    """Return a model with large tensors in every place that may hold one."""
    large = np.arange(600, dtype=np.float32)
    sparse = helper.make_sparse_tensor(
        tensor("sparse", large), tensor("", np.arange(600, dtype=np.int64)), [1000]
    )
    branch = helper.make_graph(
        [helper.make_node("Add", ["x", "inner"], ["out"])],
        "branch",
        [],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [600])],
        [tensor("inner", large + 1), tensor("little", large[:3])],
    )
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensor("", large + 2)),
        helper.make_node("Constant", [], ["small"], value=tensor("", large[:5])),
        helper.make_node("If", ["cond"], ["z"], then_branch=branch, else_branch=branch),
        helper.make_node("Many", [], ["m"], domain="test"),
        helper.make_node("Identity", ["x"], ["y"]),
    ]
    nodes[3].attribute.append(helper.make_attribute("ts", [tensor("a", large), tensor("b", large)]))
    model = model_of(tensor("w", large + 3), tensor("b", large[:4]), nodes=nodes)
    model.graph.initializer[0].doc_string = "kept"
    model.graph.sparse_initializer.append(sparse)
    body = [helper.make_node("Constant", [], ["o"], value=tensor("", large + 4))]
    model.functions.append(
        helper.make_function("test", "F", [], ["o"], body, [helper.make_opsetid("", 17)])
    )
    return model


def test_element_types_are_those_of_onnx() -> None:
    named = {code for code in TensorProto.DataType.values() if code not in (0, TensorProto.STRING)}
    assert named == set(ELEMENTS)
    for code, element in ELEMENTS.items():
        assert helper.tensor_dtype_to_np_dtype(code).name == element.dtype
        assert helper.tensor_dtype_to_field(code) == element.field


def test_messages_are_those_that_lead_to_a_tensor() -> None:
    descriptors = {"ModelProto": onnx.ModelProto.DESCRIPTOR}
    pending = [onnx.ModelProto.DESCRIPTOR]
    while pending:
        for field in pending.pop().fields:
            child = field.message_type
            if child is not None and child.name not in descriptors:
                descriptors[child.name] = child
                pending.append(child)
    leading = {"TensorProto"}
    while True:
        more = {
            name
            for name, descriptor in descriptors.items()
            if any(f.message_type and f.message_type.name in leading for f in descriptor.fields)
        }
        if more <= leading:
            break
        leading |= more
    expected = {
        name: {
            f.number: (f.name, f.message_type.name)
            for f in descriptors[name].fields
            if f.message_type and f.message_type.name in leading and name != "TensorProto"
        }
        for name in leading
    }
    assert {n: {k: v[:2] for k, v in f.items()} for n, f in MESSAGES.items()} == expected


@pytest.mark.parametrize("dtype", sorted(CODES))
@pytest.mark.parametrize("external", [False, True])
def test_each_type_is_read_as_onnx_reads_it(tmp_path: Path, dtype: str, external: bool) -> None:
    array = values(dtype)
    path = tmp_path / "m.onnx"
    kept = tensor("w", array)
    onnx.save_model(model_of(kept), path, save_as_external_data=external, location="m.onnx.data")
    weight = codec.load(path).weights["w"]
    expected = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    assert same_bits(weight.array(), expected)
    assert same_bits(weight.array(), array)
    assert weight.shape == ODD
    assert same_bits(weight.rows(7, 8), array[7:8])
    assert same_bits(weight.rows(60, 61), array[60:61])


@pytest.mark.parametrize("dtype", sorted(CODES))
@pytest.mark.parametrize("external", [False, True])
def test_each_type_is_written_as_onnx_writes_it(tmp_path: Path, dtype: str, external: bool) -> None:
    array = values(dtype)
    path = codec.save(
        OnnxModel(model_of(), {"w": ArrayWeight(array)}),
        tmp_path / "m.onnx",
        force_external=external,
    )
    onnx.checker.check_model(path)
    found = onnx.load(path).graph.initializer[0]
    assert found.raw_data == tensor("w", array).raw_data
    assert (found.name, tuple(found.dims), found.data_type) == ("w", ODD, CODES[dtype].code)


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float4_e2m1fn", "float6_e3m2fn", "bfloat16"])
def test_packed_bytes_move_unchanged(tmp_path: Path, dtype: str) -> None:
    array = values(dtype)
    onnx.save(model_of(tensor("w", array)), tmp_path / "a.onnx")
    model = codec.load(tmp_path / "a.onnx")
    codec.save(model, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


class Pieces(Weight):
    """A weight whose chunks are given."""

    def __init__(self, chunks: list[bytes], shape: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype, self._chunks = shape, dtype, chunks

    def rows(self, start: int, stop: int) -> Array:
        raise NotImplementedError

    def chunks(self) -> Iterator[memoryview]:
        return map(memoryview, self._chunks)


@pytest.mark.parametrize("dtype", ["int4", "uint2", "float6_e2m3fn"])
def test_packing_goes_on_across_chunks(tmp_path: Path, dtype: str) -> None:
    array = values(dtype)
    data = array.tobytes()
    cuts = [0, 1, 2, 5, 12, 1001, 4000, len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(cuts)]
    model = OnnxModel(model_of(), {"w": Pieces(chunks, ODD, dtype)})
    path = codec.save(model, tmp_path / "m.onnx")
    assert onnx.load(path).graph.initializer[0].raw_data == tensor("w", array).raw_data


@pytest.mark.parametrize("order", ["<", ">"])
def test_bytes_are_little_endian(tmp_path: Path, order: str) -> None:
    array = np.arange(500, dtype=f"{order}f4")
    path = codec.save(OnnxModel(model_of(), {"w": ArrayWeight(array)}), tmp_path / "m.onnx")
    found = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    assert np.array_equal(found, np.arange(500))


@pytest.mark.parametrize(
    ("code", "array"),
    [
        (TensorProto.FLOAT, np.arange(600, dtype=np.float32)),
        (TensorProto.DOUBLE, np.arange(600, dtype=np.float64)),
        (TensorProto.COMPLEX64, np.arange(600) * np.complex64(1 + 2j)),
        (TensorProto.COMPLEX128, np.arange(600) * np.complex128(1 + 2j)),
        (TensorProto.INT32, np.arange(-300, 300, dtype=np.int32)),
        (TensorProto.INT64, np.arange(-300, 300, dtype=np.int64)),
        (TensorProto.UINT64, np.arange(600, dtype=np.uint64)),
        (TensorProto.FLOAT16, np.arange(600, dtype=np.float16)),
        (TensorProto.BFLOAT16, np.arange(600).astype(ml_dtypes.bfloat16)),
        (TensorProto.INT4, (np.arange(601) % 16 - 8).astype(ml_dtypes.int4)),
        (TensorProto.BOOL, np.arange(600) % 3 == 0),
        (TensorProto.FLOAT, np.array(2.5, np.float32)),
        (TensorProto.FLOAT, np.zeros((0, 3), np.float32)),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_typed_data_fields(tmp_path: Path, code: int, array: Array) -> None:
    typed = helper.make_tensor("w", code, array.shape, array.reshape(-1))
    assert not typed.HasField("raw_data")
    onnx.save(model_of(typed), tmp_path / "a.onnx")
    model = codec.load(tmp_path / "a.onnx")
    in_place = code in (1, 11, 14, 15) and array.nbytes >= 1024
    assert set(model.weights) == ({"w"} if in_place else set())
    assert np.array_equal(model.weight(model.proto.graph.initializer[0]).array(), array)
    codec.save(model, tmp_path / "b.onnx")
    found = numpy_helper.to_array(onnx.load(tmp_path / "b.onnx").graph.initializer[0])
    assert np.array_equal(found, array)


def test_written_bytes_are_those_of_protobuf(tmp_path: Path) -> None:
    proto = rich_model()
    expected = proto.SerializeToString(deterministic=True)
    (tmp_path / "a.onnx").write_bytes(expected)
    model = codec.load(tmp_path / "a.onnx")
    codec.save(model, tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == expected
    assert model.complete() == proto


@pytest.mark.parametrize("kind", ["path", "bytes", "message"])
def test_large_tensors_are_found_wherever_they_are(tmp_path: Path, kind: str) -> None:
    proto = rich_model()
    onnx.save(proto, tmp_path / "a.onnx")
    source = {
        "path": tmp_path / "a.onnx",
        "bytes": (tmp_path / "a.onnx").read_bytes(),
        "message": proto,
    }[kind]
    model = codec.load(source)
    assert proto == rich_model()
    assert list(model.weights) == ["w"]
    assert set(model.nested) == {
        "graph.node[0].attribute[0].t",
        "graph.node[2].attribute[0].g.initializer[0]",
        "graph.node[2].attribute[1].g.initializer[0]",
        "graph.node[3].attribute[0].tensors[0]",
        "graph.node[3].attribute[0].tensors[1]",
        "graph.sparse_initializer[0].values",
        "graph.sparse_initializer[0].indices",
        "functions[0].node[0].attribute[0].t",
    }
    assert model.proto.ByteSize() < 3000
    for (path, found), (other, expected) in zip(tensors(model.proto), tensors(proto), strict=True):
        assert path == other
        assert same_bits(model.weight(found).array(), numpy_helper.to_array(expected))
    assert model.complete() == proto


def test_a_graph_in_two_parts_is_one(tmp_path: Path) -> None:
    whole = model_of(tensor("a", np.arange(500)), tensor("b", np.arange(700)))
    second = onnx.ModelProto()
    second.graph.initializer.append(tensor("c", np.arange(900)))
    data = whole.SerializeToString() + second.SerializeToString()
    model = codec.load(data)
    assert list(model.weights) == ["a", "b", "c"]
    codec.save(model, tmp_path / "m.onnx")
    whole.graph.initializer.append(tensor("c", np.arange(900)))
    assert onnx.load(tmp_path / "m.onnx") == whole


def test_unknown_fields_and_groups_are_kept(tmp_path: Path) -> None:
    group = b"\xfb\x3f" + b"\x08\x05" + b"\x13\x14" + b"\xfc\x3f"
    data = model_of(tensor("w", np.arange(500))).SerializeToString() + group
    codec.save(codec.load(data), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes().endswith(group)


@pytest.mark.parametrize("one_file", [True, False])
def test_external_data_of_onnx_is_read_in_place(tmp_path: Path, one_file: bool) -> None:
    proto = rich_model()
    onnx.save_model(
        proto,
        tmp_path / "a.onnx",
        save_as_external_data=True,
        all_tensors_to_one_file=one_file,
        location="a.onnx_data" if one_file else None,
        size_threshold=100,
        convert_attribute=True,
    )
    expected = rich_model()
    model = codec.load(tmp_path / "a.onnx")
    assert model.weights["w"].source is not None
    assert model.weights["w"].source.path != str(tmp_path / "a.onnx")
    assert model.complete() == expected
    embedded = codec.load((tmp_path / "a.onnx").read_bytes(), directory=tmp_path)
    assert embedded.complete() == expected
    message = onnx.load(tmp_path / "a.onnx", load_external_data=False)
    assert codec.load(message, directory=tmp_path).complete() == expected


def test_external_data_without_a_length(tmp_path: Path) -> None:
    array = np.arange(500, dtype=np.float32)
    (tmp_path / "d").write_bytes(b"head" + array.tobytes() + b"tail")
    entry = TensorProto(name="w", data_type=1, dims=[500], data_location=TensorProto.EXTERNAL)
    entry.external_data.add(key="location", value="d")
    entry.external_data.add(key="offset", value="4")
    onnx.save(model_of(entry), tmp_path / "m.onnx")
    assert np.array_equal(codec.load(tmp_path / "m.onnx").weights["w"].array(), array)


def test_a_cache_of_symbolic_links_is_read(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshots" / "1").mkdir(parents=True)
    array = np.arange(500, dtype=np.float32)
    onnx.save_model(
        model_of(tensor("w", array)),
        tmp_path / "model.onnx",
        save_as_external_data=True,
        location="model.onnx_data",
        size_threshold=0,
    )
    for number, name in enumerate(["model.onnx", "model.onnx_data"]):
        shutil.move(tmp_path / name, tmp_path / "blobs" / str(number))
        (tmp_path / "snapshots" / "1" / name).symlink_to(f"../../blobs/{number}")
    model = codec.load(tmp_path / "snapshots" / "1" / "model.onnx")
    assert np.array_equal(model.weights["w"].array(), array)


def runnable() -> tuple[OnnxModel, Array]:
    """Return a model that adds two weights to its input, and what it adds."""
    rng = np.random.default_rng(1)
    large = rng.standard_normal((300, 200)).astype(np.float32)
    middle = rng.standard_normal((300, 1)).astype(np.float32)
    small = rng.standard_normal((1, 200)).astype(np.float32)
    names = ["large", "middle", "small"]
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x" if i == 0 else f"t{i - 1}", name], [f"t{i}"])
            for i, name in enumerate(names)
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [300, 200])],
        [helper.make_tensor_value_info("t2", TensorProto.FLOAT, [300, 200])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    weights = {
        name: ArrayWeight(each) for name, each in zip(names, [large, middle, small], strict=True)
    }
    return OnnxModel(proto, dict(weights)), large + middle + small


@pytest.mark.parametrize("external", [False, True])
def test_onnx_runtime_runs_it_before_it_is_in_place(tmp_path: Path, external: bool) -> None:
    model, expected = runnable()
    ran: list[Path] = []

    def run(path: Path) -> None:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {"x": np.zeros((300, 200), np.float32)})
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        ran.append(path)

    target = tmp_path / "net.onnx"

    def check(path: Path) -> None:
        assert path.name == target.name
        assert not target.exists()
        run(path)

    assert codec.save(model, target, force_external=external, before_commit=check) == target
    run(target)
    assert len(ran) == 2
    onnx.checker.check_model(target, full_check=True)
    names = ["net.onnx", "net.onnx.data"] if external else ["net.onnx"]
    assert sorted(os.listdir(tmp_path)) == names


def test_layout_of_external_data(tmp_path: Path) -> None:
    model, _ = runnable()
    model.weights = {name: model.weights[name] for name in ("middle", "large", "small")}
    path = codec.save(model, tmp_path / "net.onnx", force_external=True)
    found = onnx.load(path, load_external_data=False).graph.initializer
    described = [{e.key: e.value for e in t.external_data} for t in found]
    assert [t.name for t in found] == ["middle", "large", "small"]
    assert described == [
        {"location": "net.onnx.data", "offset": "0", "length": "1200"},
        {"location": "net.onnx.data", "offset": "4096", "length": "240000"},
        {},
    ]
    assert len(found[2].raw_data) == 800
    assert (tmp_path / "net.onnx.data").stat().st_size == 4096 + 240000


def test_threshold_decides_by_the_size_of_the_file(tmp_path: Path) -> None:
    model, _ = runnable()
    size = codec.save(model, tmp_path / "a.onnx").stat().st_size
    codec.save(model, tmp_path / "b.onnx", external_threshold=size)
    codec.save(model, tmp_path / "c.onnx", external_threshold=size - 1)
    assert sorted(os.listdir(tmp_path)) == ["a.onnx", "b.onnx", "c.onnx", "c.onnx.data"]


@pytest.mark.parametrize("external", [False, True])
def test_the_same_model_gives_the_same_bytes(tmp_path: Path, external: bool) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        codec.save(runnable()[0], tmp_path / name / "m.onnx", force_external=external)
    for name in os.listdir(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_scalars_and_empty_tensors(tmp_path: Path) -> None:
    arrays = {
        "scalar": np.array(3, np.int64),
        "none": np.zeros((0, 4), np.float16),
        "nibble": np.array(-3).astype(ml_dtypes.int4),
    }
    weights = {name: ArrayWeight(each) for name, each in arrays.items()}
    path = codec.save(OnnxModel(model_of(), dict(weights)), tmp_path / "m.onnx")
    for found in onnx.load(path).graph.initializer:
        assert numpy_helper.to_array(found).shape == arrays[found.name].shape
        assert np.array_equal(numpy_helper.to_array(found), arrays[found.name])
        assert found.HasField("raw_data")


@pytest.mark.parametrize("size", [0, 1996, 2004, 4000])
@pytest.mark.parametrize("external", [False, True])
def test_a_wrong_number_of_bytes_leaves_nothing(tmp_path: Path, size: int, external: bool) -> None:
    target = tmp_path / "m.onnx"
    target.write_bytes(b"old")
    weight = Pieces([bytes(size)], (500,), "float32")
    with pytest.raises(ConverterBug, match="expected 2000 bytes"):
        codec.save(OnnxModel(model_of(), {"w": weight}), target, force_external=external)
    assert os.listdir(tmp_path) == ["m.onnx"]
    assert target.read_bytes() == b"old"
    with pytest.raises(ConverterBug, match="expected 2000 bytes"):
        OnnxModel(model_of(), {"w": weight}).complete()


def test_a_source_that_changed_is_a_format_error(tmp_path: Path) -> None:
    onnx.save(model_of(tensor("w", np.arange(500))), tmp_path / "a.onnx")
    model = codec.load(tmp_path / "a.onnx")
    os.truncate(tmp_path / "a.onnx", 1000)
    with pytest.raises(FormatError, match="changed"):
        codec.save(model, tmp_path / "b.onnx")
    assert os.listdir(tmp_path) == ["a.onnx"]


@pytest.mark.parametrize("external", [False, True])
def test_a_model_is_not_written_over_its_weights(tmp_path: Path, external: bool) -> None:
    onnx.save_model(
        model_of(tensor("w", np.arange(500))),
        tmp_path / "m.onnx",
        save_as_external_data=external,
        location="m.onnx.data",
    )
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    model = codec.load(tmp_path / "m.onnx")
    with pytest.raises(OptionError, match="same file"):
        codec.save(model, tmp_path / "m.onnx", force_external=True, sources=[tmp_path / "m.onnx"])
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


@pytest.mark.parametrize("name", ["a\\b.onnx", "c:x.onnx", "\udcff.onnx"])
def test_names_that_no_model_can_refer_to(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="external data"):
        codec.save(runnable()[0], tmp_path / name, force_external=True)
    assert os.listdir(tmp_path) == []


def test_what_protobuf_cannot_hold_asks_for_a_path(tmp_path: Path) -> None:
    huge = Pieces([], (2**29,), "float32")
    with pytest.raises(OptionError, match="give a path"):
        OnnxModel(model_of(), {"w": huge}).complete()


def test_two_gigabytes_become_external_by_themselves(tmp_path: Path) -> None:
    huge = Pieces([], (2**29,), "float32")
    with pytest.raises(ConverterBug, match="expected 2147483648 bytes") as caught:
        codec.save(OnnxModel(model_of(), {"w": huge}), tmp_path / "m.onnx")
    frames = [entry.name for entry in caught.traceback]
    assert "put_payload" in frames
    assert "put_pieces" not in frames


def test_nested_tensors_beyond_protobuf_are_refused(tmp_path: Path) -> None:
    model = codec.load(rich_model())
    key = "graph.node[0].attribute[0].t"
    model.nested[key] = Pieces([], (2**29,), "float32")
    found = next(each for path, each in tensors(model.proto) if path == key)
    found.dims[:] = [2**29]
    with pytest.raises(OptionError, match="Constant"):
        codec.save(model, tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.proto.graph.initializer[0].dims.append(1), "declared"),
        (lambda m: setattr(m.proto.graph.initializer[0], "raw_data", b"1234"), "twice"),
        (lambda m: m.proto.graph.initializer.append(m.proto.graph.initializer[0]), "twice"),
        (lambda m: m.weights.clear(), "bytes|entries"),
        (lambda m: m.nested.clear(), "no weight"),
        (lambda m: m.weights.update(s=ArrayWeight(np.array(["a"]))), "element type"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, change, message: str) -> None:
    model = codec.load(rich_model())
    change(model)
    with pytest.raises(OptionError, match=message):
        codec.save(model, tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("m.onnx", b"", True),
        ("m.pb", model_of().SerializeToString(), True),
        ("m.pb", model_of().SerializeToString()[:-3], False),
        ("m.pb", b"", False),
        ("m.pb", helper.make_opsetid("", 17).SerializeToString(), False),
        ("m.pb", tensor("w", np.arange(5)).SerializeToString(), False),
        ("m.json", b'{"nodes": []}', False),
        ("m.params", b"\x12\x01" + bytes(30), False),
    ],
)
def test_detection(tmp_path: Path, name: str, content: bytes, expected: bool) -> None:
    (tmp_path / name).write_bytes(content)
    assert codec.detect(tmp_path / name) is expected
    assert codec.detect(tmp_path) is False
    assert codec.detect(tmp_path / "missing.onnx") is False


def test_a_packed_weight_knows_its_bytes() -> None:
    packed = ArrayWeight(np.arange(10, dtype=np.uint8))
    with pytest.raises(ValueError, match="10 bytes"):
        PackedWeight(packed, (7, 3), "uint4", 4)
    assert PackedWeight(packed, (19,), "uint4", 4).array().astype(int).tolist()[:4] == [0, 0, 1, 0]


def test_file_ranges_are_written_with_their_own_offsets(tmp_path: Path) -> None:
    array = np.random.default_rng(2).standard_normal((70, 33)).astype(np.float32)
    (tmp_path / "raw").write_bytes(b"x" * 13 + array.tobytes() + b"y")
    with OpenFile.open(tmp_path / "raw") as opened:
        weight = FileWeight(opened.range(13, array.nbytes), array.shape, "float32")
    path = codec.save(OnnxModel(model_of(), {"w": weight}), tmp_path / "m.onnx")
    assert same_bits(numpy_helper.to_array(onnx.load(path).graph.initializer[0]), array)
