"""Targets are refused before anything is converted, and originals replaced only when asked."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.params_layout import listing, v2

import serde
import serde.api
import serde.relay as relay
from serde.command.cli import main
from serde.errors import FormatError, MissingDependency, OptionError

SHAPES = {"data": (1, 3)}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with ``net.onnx``, which keeps a dense layer as PyTorch would."""
    weight = numpy_helper.from_array(np.arange(1024, dtype=np.float32).reshape(32, 32), "w")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["data", "w"], ["out"], transB=1)],
        "g",
        [value("data", 1, (1, 32))],
        [value("out", 1, (1, 32))],
        [weight],
    )
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unconverted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be converted."""

    def convert(*_args: Any, **_options: Any) -> None:
        raise AssertionError("converted before the target was refused")

    for name in ("onnx", "relay", "mxnet", "coreml"):
        monkeypatch.setattr(type(serde.bridge.formats.get_bridge(name)), "to_relay", convert)


def checkpoint(folder: Path, epoch: int = 0) -> dict[Path, bytes]:
    """Write the files of MXNet's own of a net called ``net``; return what they hold."""
    names = ["data", "fc_weight", "fc_bias"]
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    inputs = [[i, 0, 0] for i in range(3)]
    attrs = {"num_hidden": "2"}
    nodes.append({"op": "FullyConnected", "name": "fc", "attrs": attrs, "inputs": inputs})
    graph = {
        "nodes": nodes,
        "arg_nodes": [0, 1, 2],
        "node_row_ptr": [0, 1, 2, 3, 4],
        "heads": [[3, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    arrays = [v2(np.ones((2, 3), np.float32)), v2(np.ones(2, np.float32))]
    files = {
        folder / "net-symbol.json": json.dumps(graph, indent=2).encode(),
        folder / f"net-{epoch:04d}.params": listing(arrays, ["arg:fc_weight", "arg:fc_bias"]),
    }
    for path, data in files.items():
        path.write_bytes(data)
    return files


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Before the conversion.

UNWRITTEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "opset": ("o.onnx", {"opset": 99}, "opset 99: expected 11 to"),
    "functions": ("o.onnx", {"opset": 14, "local_functions": True}, "expected opset 15 or later"),
    "coremltools": ("o.mlpackage", {}, "coremltools is not installed; pip install"),
    "tvm": ("o_relax", {}, "tvm is not installed; pip install"),
    "torch": ("o_torch", {"check": True}, "torch is not installed; pip install"),
    "nnef": ("o_nnef", {"check": True}, "nnef is not installed; pip install"),
    "onnxruntime": ("o.onnx", {"int8": "dynamic"}, "onnxruntime is not installed; pip install"),
}


@pytest.mark.parametrize("missing", UNWRITTEN)
def test_what_cannot_be_met_is_refused_before(
    missing: str, work: Path, unconverted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, options, message = UNWRITTEN[missing]
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == missing else find(name)
    )
    report = serde.Report()
    with pytest.raises((OptionError, MissingDependency), match=message):
        serde.convert("net.onnx", target, report=report, **options)
    assert report.stages == []


REFUSED = {
    "no directory": ("nowhere/out.onnx", {}, "nowhere does not exist"),
    "no directory for MXNet": ("nowhere/out-symbol.json", {}, "nowhere does not exist"),
    "no directory for Relay": ("nowhere/out.relay", {}, "nowhere does not exist"),
    "no directory for a package": ("nowhere/out.mlpackage", {}, "nowhere does not exist"),
    "a directory": ("folder.onnx", {}, "expected a file, found a directory"),
    "a folder for a package": ("folder.mlpackage", {}, "expected a package to replace"),
    "a file for a package": ("file.mlpackage", {}, "expected a package to replace"),
    "a directory of parameters": ("taken-symbol.json", {}, "taken-0000.params: expected a file"),
    "another format's": ("out.relay", {"target_format": "onnx"}, "names that end in .onnx"),
    "no format's": ("out.bin", {"target_format": "onnx"}, "names that end in .onnx"),
    "of Relay": ("out.onnx", {"target_format": "relay"}, "end in .relay or .json or .txt"),
    "of MXNet": ("out.json5", {"target_format": "mxnet"}, "end in -symbol.json or .json"),
    "MXNet's parameters": ("out.params", {}, "end in -symbol.json or .json"),
    "MXNet's archive": ("out.tar.gz", {"target_format": "mxnet"}, "end in -symbol.json or .json"),
    "a prefix": ("out", {"target_format": "mxnet"}, "end in -symbol.json or .json"),
    "of Core ML": ("out.onnx", {"target_format": "coreml"}, "called .mlpackage"),
    "a file of a program": ("out.mlmodel", {}, "called .mlpackage"),
    "a package of a network": (
        "out.mlpackage", {"minimum_deployment_target": "iOS13"}, "called .mlmodel",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize(("target", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_a_target_is_refused_before_the_conversion(
    work: Path, target: str, options: dict[str, Any], message: str
) -> None:
    for name in ("folder.onnx", "folder.mlpackage", "taken-0000.params"):
        (work / name).mkdir()
        (work / name / "kept").touch()
    (work / "file.mlpackage").touch()
    before = contents(work)
    with pytest.raises(OptionError, match=message):
        serde.convert("net.onnx", target, **options)
    export = {**options, "format": options.get("target_format")}
    export.pop("target_format", None)
    with pytest.raises(OptionError, match=message):
        serde.export_model("net.onnx", path=target, **export)
    assert contents(work) == before


def test_a_relay_model_is_not_converted_either(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = serde.to_relay("net.onnx")
    monkeypatch.setattr("serde.conversion.steps.prepare", None)
    with pytest.raises(OptionError, match="nowhere does not exist"):
        serde.from_relay(model, path="nowhere/out.onnx")


@pytest.mark.parametrize("name", ["out", "out.onnx"])
def test_an_onnx_file_may_have_no_suffix(work: Path, name: str) -> None:
    serde.convert("net.onnx", name, target_format="onnx")
    onnx.checker.check_model(onnx.load(name))


@pytest.fixture
def locked(work: Path) -> Iterator[Path]:
    """A directory that this process may not write to."""
    folder = work / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write anywhere")
    yield folder
    folder.chmod(stat.S_IRWXU)


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize(
    "name", ["out.onnx", "out.relay", "out-symbol.json", "out.mlpackage", "out.mlmodel"]
)
def test_a_directory_without_permission(locked: Path, name: str) -> None:
    options = {"minimum_deployment_target": "iOS13"} if name.endswith(".mlmodel") else {}
    with pytest.raises(OptionError, match="locked: cannot be written to: Permission denied"):
        serde.convert("net.onnx", locked / name, **options)


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("name", ["out.onnx", "out-symbol.json", "out.mlpackage"])
def test_a_file_system_that_is_read_only(
    work: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_args: Any, **_options: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", read_only)
    with pytest.raises(OptionError, match="cannot be written to: Read-only file system"):
        serde.convert("net.onnx", name)


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("flag", ["--report", "--tensor-mapping"])
def test_files_beside_the_target_are_refused_first(
    work: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "folder.json").mkdir()
    for name in ("nowhere/x.json", "folder.json"):
        assert main(["convert", "net.onnx", "out.onnx", flag, name]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert not (work / "out.onnx").exists()


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/map.json", "nowhere does not exist"),
        ("net.onnx", "is the same file as the source"),
        ("./out.onnx", "is also the target"),
    ],
)
def test_a_mapping_is_refused_first(work: Path, name: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        serde.convert("net.onnx", "out.onnx", tensor_mapping=name)


# Originals.


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("epoch", [0, 7])
def test_a_checkpoint_of_mxnet_needs_overwrite(
    work: Path, epoch: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = checkpoint(work, epoch)
    assert main(["convert", "net.onnx", "net-symbol.json"]) == 2
    message = capsys.readouterr().err
    assert "net-symbol.json" in message
    assert "serde did not write what is there; take another name, or --overwrite" in message
    assert {path: path.read_bytes() for path in before} == before


def test_a_checkpoint_is_replaced_when_asked(work: Path) -> None:
    checkpoint(work)
    assert main(["convert", "net.onnx", "net-symbol.json", "--overwrite", "-q"]) == 0
    found = serde.to_relay("net", input_shapes={"data": (1, 32)})
    (weight,) = found.params.values()
    np.testing.assert_array_equal(weight.array(), np.arange(1024.0).reshape(32, 32))
    assert main(["convert", "net.onnx", "net-symbol.json", "-q"]) == 0


@pytest.mark.parametrize("name", ["out-symbol.json", "out.relay", "out.onnx", "out.mlpackage"])
def test_a_script_runs_again(work: Path, name: str) -> None:
    serde.convert("net.onnx", name)
    before = contents(work)
    serde.convert("net.onnx", name)
    assert contents(work) == before


@pytest.mark.parametrize("target", ["out.onnx", "out.relay", "out-symbol.json", "out.mlpackage"])
def test_reports_and_mappings_are_replaced(work: Path, target: str) -> None:
    beside = ["--report", "r.json", "--tensor-mapping", "names.json", "-q"]
    for _ in range(2):
        assert main(["convert", "net.onnx", target, *beside]) == 0
    assert json.loads(Path("r.json").read_text())["outcome"] == "done"


def test_another_epoch_goes_beside(work: Path) -> None:
    serde.convert("net.onnx", "net-symbol.json")
    serde.convert("net.onnx", "net-symbol.json", params_epoch=3)
    names = ["net-0000.params", "net-0003.params", "net-symbol.json", "net.onnx"]
    assert sorted(os.listdir(work)) == names


@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("target", ["net-symbol.json", "net.relay"])
def test_a_file_that_was_not_named_needs_overwrite(work: Path, target: str) -> None:
    name = "net-0000.params" if target.endswith(".json") else "net.params"
    (work / name).write_bytes(b"precious")
    with pytest.raises(OptionError, match=f"{name}: would be replaced"):
        serde.convert("net.onnx", target)
    assert (work / name).read_bytes() == b"precious"


@pytest.mark.parametrize("content", [b"", b"notes", b'{"nodes": 1}'])
@pytest.mark.parametrize("name", ["out-symbol.json", "out.relay", "out.onnx"])
def test_the_file_that_was_named_is_replaced(work: Path, content: bytes, name: str) -> None:
    (work / name).write_bytes(content)
    serde.convert("net.onnx", name)
    assert (work / name).read_bytes() != content
    assert serde.to_relay(name, **_shapes_of(name)).meta.outputs


def _shapes_of(name: str) -> dict[str, Any]:
    """The shapes that a file must be told to be read: those of a symbol, which holds none."""
    if not name.endswith(".json"):
        return {}
    model = serde.to_relay("net.onnx")
    return {"input_shapes": {v.name_hint: v.type.concrete_shape for v in model.inputs()}}


# Pairs that do not match.


def renamed(model: relay.RelayModel, function: Any) -> relay.RelayModel:
    """The model with another function behind it."""
    main_function = model.main
    body = function(main_function.body)
    mod = relay.IRModule.from_expr(relay.Function(main_function.params, body))
    return relay.RelayModel(relay.transform.InferType()(mod), model.params, model.meta)


@pytest.mark.parametrize(("graph", "params"), [("m-symbol.json", "m-0000.params"),
                                               ("m.relay", "m.params")])  # fmt: skip
def test_a_mismatched_pair_is_refused(work: Path, graph: str, params: str) -> None:
    model = serde.to_relay("net.onnx")
    serde.from_relay(renamed(model, relay.tanh), path=graph)
    kept = Path(graph).read_bytes()
    serde.from_relay(renamed(model, relay.nn.relu), path=graph)
    Path(graph).write_bytes(kept)
    shapes = {"data": (1, 32)}
    for source in (graph, params, "m", (graph, params), (params, graph)):
        with pytest.raises(FormatError, match=f"{params}: mismatched pair.*'mismatched-pair'"):
            serde.to_relay(source, input_shapes=shapes)
    found = serde.to_relay("m", input_shapes=shapes, allow={"mismatched-pair"})
    assert "tanh" in found.mod.astext()


@pytest.mark.parametrize(("graph", "params"), [("m-symbol.json", "m-0000.params"),
                                               ("m.relay", "m.params")])  # fmt: skip
def test_other_weights_of_the_graph_are_read(work: Path, graph: str, params: str) -> None:
    model = serde.to_relay("net.onnx")
    serde.from_relay(model, path=graph)
    kept = Path(graph).read_bytes()
    (name,) = model.params
    array = np.ones((32, 32), np.float32)
    tuned = relay.RelayModel(model.mod, {name: serde.core.weights.ArrayWeight(array)}, model.meta)
    serde.from_relay(tuned, path=graph)
    Path(graph).write_bytes(kept)
    (weight,) = serde.to_relay("m", input_shapes={"data": (1, 32)}).params.values()
    np.testing.assert_array_equal(weight.array(), array)


def test_parameters_of_tvm_fit_any_text(work: Path) -> None:
    serde.convert("net.onnx", "m.relay")
    (name,) = serde.to_relay("m.relay").params
    Path("m.params").write_bytes(relay.save_param_dict({name: np.ones((32, 32), np.float32)}))
    (weight,) = serde.to_relay("m").params.values()
    np.testing.assert_array_equal(weight.array(), np.ones((32, 32)))


def test_a_file_that_cannot_be_replaced_is_named(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def immutable(source: str, _target: str) -> None:
        raise PermissionError(1, "Operation not permitted", source)

    monkeypatch.setattr(os, "replace", immutable)
    assert main(["convert", "net.onnx", "out.onnx", "-q"]) == 2
    assert capsys.readouterr().err == "serde: out.onnx: Operation not permitted\n"


# Disks that are full.

WRITTEN = ["out.onnx", "out.relay", "out-symbol.json", "out.mlpackage", "out.mlmodel"]


@contextmanager
def little_space() -> Iterator[None]:
    """No file may have more than 2 kB; Python would keep byte code that is cut off there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    left_out, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = left_out


@pytest.mark.parametrize("name", WRITTEN)
def test_a_full_disk_names_the_target(work: Path, name: str) -> None:
    options = {"minimum_deployment_target": "iOS13"} if name.endswith(".mlmodel") else {}
    with pytest.raises(OSError, match=f"File too large: '{name}'"), little_space():
        serde.convert("net.onnx", name, **options)
    assert os.listdir(work) == ["net.onnx"]


@pytest.mark.parametrize("flag", ["--report", "--tensor-mapping"])
def test_a_full_disk_names_the_file_beside(
    work: Path, flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace = os.replace

    def full(source: str, target: str) -> None:
        if str(target).endswith("x.json"):
            raise OSError(28, "No space left on device", source)
        replace(source, target)

    (work / "x.json").write_text("old")
    monkeypatch.setattr(os, "replace", full)
    assert main(["convert", "net.onnx", "out.onnx", flag, "x.json", "-q"]) == 2
    assert "x.json: No space left on device" in capsys.readouterr().err
    assert (work / "x.json").read_text() == "old"
