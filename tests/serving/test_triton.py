"""Entries of Triton's repositories, judged by Triton's own message and by ONNX Runtime."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper, numpy_helper

import serde
import serde.fleet.serving.triton as triton
from serde.bridge.summary import ServedFile
from serde.checking.tolerance import Tolerance
from serde.command.cli import main
from serde.core.report import Report
from serde.errors import CheckError, FormatError, OptionError
from serde.fleet.serving import write_triton
from serde.fleet.serving.config import Port, config_text, is_batched, make_config
from serde.fleet.serving.naming import served_name

model_config = pytest.importorskip("tritonclient.grpc.model_config_pb2")

ONNX = ServedFile("onnxruntime", "model.onnx")


def save_net(path: Path, batch: Any = "N", classes: int = 3, scale: float = 1.0) -> Path:
    """A classifier with a second output of one number a row."""
    weights = np.random.default_rng(0).normal(size=(4, classes)).astype(np.float32) * scale
    shapes = {"data": [batch, 4], "prob": [batch, classes], "score": [batch]}
    value = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    }
    nodes = [
        helper.make_node("MatMul", ["data", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["prob"], axis=1),
        helper.make_node("ReduceMax", ["h"], ["score"], axes=[1], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes, "g", [value["data"]], [value["prob"], value["score"]],
        [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return save_net(tmp_path / "net.onnx")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return tmp_path / "models"


def config_of(entry: Path) -> Any:
    """What Triton reads in a configuration."""
    text = (entry / "config.pbtxt").read_text(encoding="utf-8")
    return text_format.Parse(text, model_config.ModelConfig())


def files(root: Path) -> list[str]:
    return sorted(each.relative_to(root).as_posix() for each in root.rglob("*") if each.is_file())


def test_a_new_model_is_what_triton_reads(net: Path, repository: Path) -> None:
    assert write_triton(net, repository, check=True) == repository / "net" / "1"
    assert files(repository) == ["net/1/model.onnx", "net/config.pbtxt"]
    expected = model_config.ModelConfig(
        name="net",
        backend="onnxruntime",
        max_batch_size=8,
        input=[{"name": "data", "data_type": "TYPE_FP32", "dims": [4]}],
        output=[
            {"name": "prob", "data_type": "TYPE_FP32", "dims": [3]},
            {"name": "score", "data_type": "TYPE_FP32", "dims": [1], "reshape": {"shape": []}},
        ],
    )
    assert config_of(repository / "net") == expected
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    ours, theirs = (
        onnxruntime.InferenceSession(os.fspath(each)).run(["prob", "score"], {"data": x})
        for each in (repository / "net" / "1" / "model.onnx", net)
    )
    for found, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_model_of_one_length_has_no_batch(tmp_path: Path, repository: Path) -> None:
    report = Report()
    write_triton(save_net(tmp_path / "net.onnx", batch=2), repository, report=report)
    config = config_of(repository / "net")
    assert config.max_batch_size == 0
    assert list(config.input[0].dims) == [2, 4]
    assert [list(each.dims) for each in config.output] == [[2, 3], [2]]
    assert any("no batches" in note for note in report.notes)


def test_open_lengths_without_a_batch_are_said_to_be_open(net: Path, repository: Path) -> None:
    write_triton(net, repository, max_batch_size=0)
    config = config_of(repository / "net")
    assert config.max_batch_size == 0
    assert list(config.input[0].dims) == [-1, 4]


def test_the_server_may_gather_requests(net: Path, repository: Path) -> None:
    write_triton(net, repository, max_batch_size=32, dynamic_batching=True)
    config = config_of(repository / "net")
    assert config.max_batch_size == 32
    assert config.HasField("dynamic_batching")


@pytest.mark.parametrize("given", ["option", "file", "beside"])
def test_class_labels_go_to_a_file_of_their_output(net: Path, repository: Path, given: str) -> None:
    labels = ["cat", "dog", "Güteklasse 1"]
    (net.parent / "synset.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
    found: Any = {"option": labels, "file": net.parent / "synset.txt", "beside": None}[given]
    if given == "option":
        (net.parent / "synset.txt").unlink()
    write_triton(net, repository, class_labels=found)
    config = config_of(repository / "net")
    assert [each.label_filename for each in config.output] == ["labels.txt", ""]
    text = (repository / "net" / "labels.txt").read_text(encoding="utf-8")
    assert text.splitlines() == labels


def test_class_labels_of_another_count(net: Path, repository: Path) -> None:
    with pytest.raises(OptionError, match="no output has one score for each of 2 class labels"):
        write_triton(net, repository, class_labels=["cat", "dog"])
    assert not repository.exists()
    (net.parent / "synset.txt").write_text("cat\ndog\n")
    report = Report()
    write_triton(net, repository, report=report)
    assert any("2 class labels" in note for note in report.notes)
    assert config_of(repository / "net").output[0].label_filename == ""


def test_labels_of_the_model_itself(net: Path, repository: Path, tmp_path: Path) -> None:
    """Relay's files hold them."""
    model = serde.to_relay(net)
    labels = ("a", "b", "c")
    meta = type(model.meta)(inputs=model.meta.inputs, outputs=model.meta.outputs, labels=labels)
    serde.from_relay(model.evolve(meta=meta), path=tmp_path / "own.relay")
    write_triton(tmp_path / "own.relay", repository)
    assert (repository / "own" / "labels.txt").read_text().split() == ["a", "b", "c"]


def test_the_next_version_keeps_the_configuration(net: Path, repository: Path) -> None:
    write_triton(net, repository)
    config = repository / "net" / "config.pbtxt"
    own = config.read_text().replace("max_batch_size: 8", "max_batch_size: 64")
    own += (
        "instance_group { count: 2 kind: KIND_CPU }\nversion_policy { latest { num_versions: 2 } }"
    )
    config.write_text(own)
    (repository / "net" / "007").mkdir()
    (repository / "net" / "notes").mkdir()
    save_net(net, scale=2.0)
    assert write_triton(net, repository) == repository / "net" / "8"
    assert config.read_text() == own
    assert [each for each in files(repository) if "model" in each] == [
        "net/1/model.onnx", "net/8/model.onnx",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dims: [3]", "dims: [4]", r"dims of output prob is \[4\], not \[3\]"),
        ("TYPE_FP32", "TYPE_FP16", "data_type of input data is TYPE_FP16, not TYPE_FP32"),
        ('name: "prob"', 'name: "other"', "outputs are other, score, not prob, score"),
        ("max_batch_size: 8", "", "max_batch_size is 0, not 8"),
        ('"onnxruntime"', '"tensorrt"', "backend is 'tensorrt', not 'onnxruntime'"),
        ('name: "net"', 'name: "nets"', "name is 'nets', not 'net'"),
    ],
)
def test_a_configuration_that_says_otherwise_is_refused(
    net: Path, repository: Path, old: str, new: str, message: str
) -> None:
    write_triton(net, repository)
    config = repository / "net" / "config.pbtxt"
    config.write_text(config.read_text().replace(old, new, 1))
    before = files(repository)
    with pytest.raises(OptionError, match=message):
        write_triton(net, repository)
    assert files(repository) == before


def test_a_configuration_that_leaves_out_what_triton_finds(net: Path, repository: Path) -> None:
    write_triton(net, repository)
    (repository / "net" / "config.pbtxt").write_text(
        'platform: "onnxruntime_onnx"\nmax_batch_size: 4'
    )
    assert write_triton(net, repository).name == "2"


def test_a_configuration_with_what_serde_never_writes(net: Path, repository: Path) -> None:
    """In the spelling of Triton's documents, which `text_format` reads in Triton's own message."""
    write_triton(net, repository)
    path = repository / "net" / "config.pbtxt"
    more = (
        "instance_group [ { count: 2 kind: KIND_CPU gpus: [ 0, 1 ] } ] # on [ both ]\n"
        'parameters { key: "x [ \\" y" value { string_value: \'a [ b\' } }\n'
        "version_policy: { all { } }\n"
        "model_warmup[{name:'w' inputs{key:'x' value{data_type:TYPE_FP32 dims:[4]}}}]\n"
    )
    path.write_text(path.read_text() + more)
    text_format.Parse(path.read_text(), model_config.ModelConfig())
    assert write_triton(net, repository).name == "2"


def test_other_labels_than_those_that_are_there(net: Path, repository: Path) -> None:
    write_triton(net, repository, class_labels=["a", "b", "c"])
    with pytest.raises(OptionError, match=r"labels\.txt: the new version has other class labels"):
        write_triton(net, repository, class_labels=["a", "c", "b"])
    assert write_triton(net, repository, class_labels=["a", "b", "c"]).name == "2"


@pytest.mark.parametrize("text", ["input [", "name: 3", "\x00", "input {" * 2000])
def test_a_malformed_configuration(net: Path, repository: Path, text: str) -> None:
    write_triton(net, repository)
    (repository / "net" / "config.pbtxt").write_text(text)
    with pytest.raises(FormatError, match=r"config\.pbtxt: is no configuration"):
        write_triton(net, repository)
    assert files(repository) == ["net/1/model.onnx", "net/config.pbtxt"]


def test_what_is_no_entry_of_tritons(net: Path, repository: Path) -> None:
    (repository / "net" / "1").mkdir(parents=True)
    with pytest.raises(OptionError, match=r"has no config\.pbtxt"):
        write_triton(net, repository)
    (repository / "other").write_text("")
    with pytest.raises(OptionError, match="expected a folder of Triton's, found a file"):
        write_triton(net, repository, model_name="other")
    (repository / "config.pbtxt").write_text("")
    with pytest.raises(OptionError, match="is a model; name the repository"):
        write_triton(net, repository)
    with pytest.raises(OptionError, match="found a file"):
        write_triton(net, net)
    with pytest.raises(OptionError, match="is written to a local folder"):
        write_triton(net, "s3://bucket/models")
    with pytest.raises(OptionError, match="does not exist"):
        write_triton(net, repository / "a" / "b")


@pytest.mark.parametrize("name", ["../net", "a/b", ".hidden", "", "a b", "n" * 200])
def test_names_that_are_no_folders(net: Path, repository: Path, name: str) -> None:
    with pytest.raises(OptionError, match="model_name: expected letters"):
        write_triton(net, repository, model_name=name)
    assert not repository.exists()


@pytest.mark.parametrize(
    ("file", "name"),
    [("net.onnx", "net"), ("net-symbol.json", "net"), ("net.v2.mlpackage", "net.v2")],
)
def test_a_model_is_called_as_its_file(file: str, name: str) -> None:
    assert served_name(f"/somewhere/{file}", None) == name
    assert served_name([f"/somewhere/{file}", "other"], None) == name


def test_a_live_object_needs_a_name(net: Path, repository: Path) -> None:
    with pytest.raises(OptionError, match="nothing tells the model's name"):
        write_triton(onnx.load(net), repository)
    assert write_triton(onnx.load(net), repository, model_name="mine").parent.name == "mine"


def test_a_format_that_triton_does_not_run(net: Path, repository: Path) -> None:
    with pytest.raises(OptionError, match="Triton does not run format coreml; it runs onnx"):
        write_triton(net, repository, target_format="coreml")


def test_a_check_that_fails_leaves_the_repository(net: Path, repository: Path) -> None:
    write_triton(net, repository)
    before = files(repository)
    half = {"float16": True, "keep_io_types": True}
    with pytest.raises(CheckError, match=r"models/net: the numbers differ"):
        write_triton(net, repository, check=True, tolerance=Tolerance(1e-12, 0.0), **half)
    assert files(repository) == before
    assert [each for each in os.listdir(repository / "net") if each.startswith(".")] == []


@pytest.mark.parametrize("new", [True, False])
def test_what_is_seen_meanwhile_is_whole(
    net: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    """Until the last rename, a server that looks finds what was there before."""
    if not new:
        write_triton(net, repository)
    repository.mkdir(exist_ok=True)
    seen = []
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        entries = [each for each in sorted(os.listdir(repository))]
        versions = sorted(os.listdir(repository / "net")) if (repository / "net").exists() else []
        seen.append((entries, [each for each in versions if not each.startswith(".")]))
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    write_triton(net, repository)
    before = ([], []) if new else (["net"], ["1", "config.pbtxt"])
    assert seen
    assert all(each == before for each in seen)


def test_two_runs_that_meet_take_two_numbers(
    net: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_triton(net, repository)
    real = os.listdir

    def listdir(path: Any = ".") -> list[str]:
        found = real(path)
        if Path(path) == repository / "net" and "2" not in found:
            (repository / "net" / "2").mkdir()  # another run, just behind the look
            (repository / "net" / "2" / "model.onnx").touch()
        return found

    monkeypatch.setattr(triton.os, "listdir", listdir)
    assert write_triton(net, repository).name == "3"


@pytest.mark.parametrize(
    ("port", "dims", "reshape"),
    [
        (Port("x", (), "int64"), [1], []),
        (Port("x", ("?", 7), "bool"), [-1, 7], None),
        (Port("x", (2, "H", 3), "bfloat16"), [2, -1, 3], None),
    ],
)
def test_shapes_without_a_batch(port: Port, dims: list[int], reshape: list[int] | None) -> None:
    made = make_config(
        "m", ONNX, [port], [port], max_batch_size=0, dynamic_batching=False, labels={}
    )
    read = text_format.Parse(config_text(made), model_config.ModelConfig())
    for tensor in (*read.input, *read.output):
        assert list(tensor.dims) == dims
        assert tensor.HasField("reshape") == (reshape is not None)
        assert model_config.DataType.Name(tensor.data_type) == {
            "int64": "TYPE_INT64", "bool": "TYPE_BOOL", "bfloat16": "TYPE_BF16"
        }[port.dtype]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int4", "complex64", "float8_e4m3fn"])
def test_dtypes_that_triton_has_not(dtype: str) -> None:
    port = Port("x", (2,), dtype)
    with pytest.raises(OptionError, match="Triton has no tensors of"):
        make_config("m", ONNX, [port], [], max_batch_size=0, dynamic_batching=False, labels={})


def test_empty_tensors_are_refused() -> None:
    port = Port("x", (2, 0), "float32")
    with pytest.raises(OptionError, match="without elements"):
        make_config("m", ONNX, [port], [], max_batch_size=0, dynamic_batching=False, labels={})


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([("N", 3), ("N",)], True),
        ([("N", 3), ("M",)], False),
        ([("?", 3), ("?",)], False),
        ([(2, 3), (2,)], False),
        ([("N", 3), ()], False),
        ([], False),
    ],
)
def test_what_a_batch_is(shapes: list[Any], expected: bool) -> None:
    assert is_batched([Port("x", shape, "float32") for shape in shapes]) is expected


def test_names_by_place_are_those_of_tritons_convention() -> None:
    ports = [Port("a", (2,), "float32"), Port("b", (2,), "float32")]
    served = ServedFile("pytorch", "model.pt", "pytorch_libtorch", by_place=True)
    made = make_config("m", served, ports, ports[:1], max_batch_size=0, dynamic_batching=False,
                       labels={})  # fmt: skip
    read = text_format.Parse(config_text(made), model_config.ModelConfig())
    assert [each.name for each in read.input] == ["a__0", "b__1"]
    assert (read.backend, read.platform) == ("pytorch", "pytorch_libtorch")


def test_on_the_command_line(
    net: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = net.parent / "labels.txt"
    labels.write_text("a\nb\nc\n")
    args = ["convert", str(net), "--triton", str(repository), "--model-name", "clf", "--json"]
    args += ["--class-labels", str(labels), "--max-batch-size", "16", "--dynamic-batching"]
    assert main([*args, "--check"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["facts"]["path"] == str(repository / "clf" / "1")
    config = config_of(repository / "clf")
    assert (config.max_batch_size, config.output[0].label_filename) == (16, "labels.txt")


@pytest.mark.parametrize(
    "flags",
    [
        ["--model-name", "x", "out.onnx"],
        ["--dynamic-batching", "out.onnx"],
        ["--max-batch-size", "4", "out.onnx"],
        ["--triton", "a", "--torchserve", "b"],
        ["--torchserve", "b", "--to", "onnx"],
    ],
)
def test_flags_that_contradict(net: Path, flags: list[str]) -> None:
    assert main(["convert", str(net), *flags]) == 2
