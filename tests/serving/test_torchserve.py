"""Archives of TorchServe: laid out as its archiver does, and answering as ONNX Runtime does."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from serde.command.cli import main
from serde.errors import OptionError
from serde.fleet.serving import write_torchserve

MEMBERS = [
    "MAR-INF/MANIFEST.json", "config.json", "handler.py", "model.py", "model.safetensors",
    "requirements.txt",
]  # fmt: skip


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Two inputs, of which one is integers, and the scores of three classes."""
    table = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    weights = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["N"])
    shift = helper.make_tensor_value_info("shift", TensorProto.FLOAT, ["N", 3])
    prob = helper.make_tensor_value_info("prob", TensorProto.FLOAT, ["N", 3])
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["rows"]),
        helper.make_node("MatMul", ["rows", "w"], ["h"]),
        helper.make_node("Add", ["h", "shift"], ["moved"]),
        helper.make_node("Softmax", ["moved"], ["prob"], axis=1),
    ]
    arrays = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(weights, "w")]
    graph = helper.make_graph(nodes, "g", [tokens, shift], [prob], arrays)
    path = tmp_path / "net.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def test_the_archive_is_laid_out_as_the_archiver_does(net: Path, store: Path) -> None:
    archiver = pytest.importorskip("model_archiver.model_packaging_utils")
    config = pytest.importorskip("model_archiver.model_archiver_config").ModelArchiverConfig
    path = write_torchserve(net, store)
    assert path == store / "net.mar"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == MEMBERS
        manifest = json.loads(archive.read("MAR-INF/MANIFEST.json"))
        compile(archive.read("handler.py"), "handler.py", "exec")
    wanted = json.loads(
        archiver.ModelExportUtils.generate_manifest_json(
            config(
                model_name="net", handler="handler.py", model_file="model.py", version="1.0",
                requirements_file="requirements.txt",
            )
        )
    )  # fmt: skip
    assert manifest["model"] == wanted["model"]
    assert manifest["runtime"] == wanted["runtime"]


def test_the_same_model_gives_the_same_bytes(net: Path, store: Path) -> None:
    first = write_torchserve(net, store).read_bytes()
    os.utime(net)
    assert write_torchserve(net, store).read_bytes() == first


def test_class_labels_are_torchserves_table(net: Path, store: Path) -> None:
    (net.parent / "synset.txt").write_text("cat\ndog\nGüte\n", encoding="utf-8")
    path = write_torchserve(net, store, model_name="named")
    with zipfile.ZipFile(path) as archive:
        table = json.loads(archive.read("index_to_name.json"))
    assert table == {"0": "cat", "1": "dog", "2": "Güte"}
    assert path.name == "named.mar"


def test_archives_of_others_stay(net: Path, store: Path) -> None:
    (store / "net.mar").write_bytes(b"PK other")
    with pytest.raises(OptionError, match="serde did not write what is there"):
        write_torchserve(net, store)
    assert (store / "net.mar").read_bytes() == b"PK other"
    assert main(["convert", str(net), "--torchserve", str(store), "--overwrite", "-q"]) == 0
    assert zipfile.is_zipfile(store / "net.mar")
    write_torchserve(net, store)
    assert os.listdir(store) == ["net.mar"]


def test_a_store_that_is_missing(net: Path, store: Path) -> None:
    with pytest.raises(OptionError, match="expected the folder of a model store"):
        write_torchserve(net, store / "none")


class Context(SimpleNamespace):
    """What TorchServe tells a handler."""

    def __init__(self, folder: Path) -> None:
        properties = {"model_dir": os.fspath(folder), "gpu_id": None}
        super().__init__(system_properties=properties, statuses={})

    def set_response_status(self, code: int, phrase: str, index: int) -> None:
        self.statuses[index] = (code, phrase)


@pytest.fixture
def handler(net: Path, store: Path, tmp_path: Path) -> Any:
    """The handler of an archive, started as a worker of TorchServe starts it."""
    pytest.importorskip("torch")
    labels = ["cat", "dog", "eel"]
    path = write_torchserve(net, store, class_labels=labels)
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    spec = importlib.util.spec_from_file_location("handler", folder / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    classes = [each for each in vars(module).values() if isinstance(each, type)]
    (found,) = [each for each in classes if each.__module__ == module.__name__]
    made = found()
    made.initialize(Context(folder))
    return made


def inputs(rows: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(rows)
    shift = rng.normal(size=(rows, 3)).astype(np.float32)
    return {"tokens": rng.integers(0, 5, rows), "shift": shift}


def test_torch_answers_as_onnx_runtime_does(net: Path, handler: Any) -> None:
    session = onnxruntime.InferenceSession(os.fspath(net))
    given = [inputs(2), inputs(3), inputs(1)]
    packed = io.BytesIO()
    np.savez(packed, **given[1])
    requests = [
        {"body": {name: value.tolist() for name, value in given[0].items()}},
        {"body": bytearray(packed.getvalue())},
        {"data": json.dumps({k: v.tolist() for k, v in given[2].items()}).encode()},
    ]
    context = Context(Path())
    answers = handler.handle(requests, context)
    assert context.statuses == {}
    for answer, feed in zip(answers, given, strict=True):
        (wanted,) = session.run(["prob"], feed)
        np.testing.assert_allclose(answer["prob"], wanted, rtol=1e-5)
        best = [row[0][0] for row in answer["labels"]["prob"]]
        assert best == [["cat", "dog", "eel"][place] for place in wanted.argmax(1)]
    json.dumps(answers)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"tokens": [1]}, "by name"),
        ([1, 2], "by name"),
        ({"tokens": [1], "shift": [[0.0, 0.0]]}, "shift: expected"),
        ({"tokens": [1], "shift": "text"}, ""),
        (b"\x80\x04pickle", ""),
        (None, "by name"),
    ],
)
def test_torch_requests_that_do_not_fit_are_answered(
    handler: Any, body: object, message: str
) -> None:
    good = {"body": {name: value.tolist() for name, value in inputs(1).items()}}
    context = Context(Path())
    answers = handler.handle([{"body": body}, good], context)
    assert list(context.statuses) == [0]
    assert context.statuses[0][0] == 400
    assert message in answers[0]["error"]
    assert "prob" in answers[1]


def test_torch_pickles_are_not_read(handler: Any) -> None:
    packed = io.BytesIO()
    np.savez(packed, tokens=np.array([object()], object), shift=np.zeros((1, 3), np.float32))
    context = Context(Path())
    (answer,) = handler.handle([{"body": packed.getvalue()}], context)
    assert "allow_pickle" in answer["error"]
