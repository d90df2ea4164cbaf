"""Files of serde's own and of servers, which are input like models: plans, ledgers, manifests.

A case of the format ``own`` names in its options which of :data:`OWN` reads it. A reader takes the
main file and an empty folder, asks all that serde asks of such a file, and leaves nothing behind.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

import serde
import serde.relay as relay
from fuzz.case import Case
from serde.bridge.input_types import labels_from
from serde.bridge.summary import ServedFile
from serde.checking.data import as_check_data
from serde.core.report import Nearness, OutputAccuracy, OutputVerdict, Report
from serde.errors import SerdeError
from serde.fleet.batching.findings import Findings
from serde.fleet.batching.ledger import Ledger, read_outcomes
from serde.fleet.batching.looks import Looks
from serde.fleet.batching.manifest import Trust, read_manifest
from serde.fleet.batching.page_data import PageData
from serde.fleet.batching.planning import plan
from serde.fleet.batching.records import Job, Outcome
from serde.fleet.batching.stored import COLUMNS, read_outcome
from serde.fleet.serving.config import Port, config_text, differences, make_config, read_config
from serde.fleet.serving.naming import known_labels
from serde.fleet.stores.signatures import read_signature
from serde.fleet.stores.staging import stage
from serde.fleet.stores.urls import is_url
from serde.io.staging import pending, sweep
from serde.onnx.profile import read_supported
from serde.target.storage import load_split

__all__ = ["OWN", "READER", "read_own", "seeds"]

READER: Final = "reader"
"""Option of a case: which of :data:`OWN` reads it."""

JOB: Final = Job("net.onnx", ("net.onnx",), "net.relay")
_SERVED: Final = ServedFile("onnxruntime", "model.onnx")
_PRECIOUS: Final = b"precious"


def read_own(path: Path, reader: str, folder: Path) -> None:
    """Read a case of the format ``own``.

    Args:
        path: Its main file.
        reader: One of :data:`OWN`.
        folder: Where may be written what goes again.
    """
    with tempfile.TemporaryDirectory(dir=folder) as work:
        OWN[reader](path, Path(work))


def _identity(path: Path) -> bytes:
    status = path.stat()
    return json.dumps([status.st_ino, status.st_size, status.st_mtime_ns]).encode()


def _plan(path: Path, work: Path) -> None:
    """What a killed run left, whose plan says ``"@a"`` for what a file is known by."""
    target = work / "folder"
    hidden = target / ".serde-aaaaaaaa"
    (hidden / "new").mkdir(parents=True)
    hidden.chmod(0o700)
    (hidden / "lock").touch()
    beside = (target / "a", target / "c", work / "b", work / "c")
    for each in (hidden / "new" / "b", hidden / "new" / "c", *beside):
        each.write_bytes(_PRECIOUS)
    text = path.read_bytes()
    for name, each in (("a", target / "a"), ("b", hidden / "new" / "b"), ("c", target / "c")):
        text = text.replace(f'"@{name}"'.encode(), _identity(each))
    (hidden / "plan.json").write_bytes(text)
    pending(target / "b")
    sweep(target)
    for each in (work / "b", work / "c"):  # What lies beside may be removed by who knows it.
        if each.read_bytes() != _PRECIOUS:
            raise AssertionError(f"{each.name} is gone")


def _told(outcomes: list[Outcome]) -> None:
    """Do with outcomes what commands do."""
    findings, page = Findings(outcomes), PageData(outcomes)
    page.as_json()
    findings.reasons()
    list(findings.gaps.next_best())
    json.dumps([each.as_dict() for each in outcomes]).encode()
    with suppress(ImportError):
        import pyarrow as pa

        from serde.fleet.batching.parquet import _row, schema

        pa.RecordBatch.from_pylist([_row(each) for each in outcomes], schema())


def _ledger(path: Path, work: Path) -> None:
    for each in path.parent.iterdir():
        shutil.copyfile(each, work / each.name)
    ledger = Ledger(work / path.name, {})
    try:
        Looks({}).holds(ledger.look(JOB).look, JOB.sources)
        seen = ledger.find(JOB.target, "c", "o")
        if seen is not None:
            ledger.reuse(seen, JOB)
    finally:
        ledger.close()
    _told(list(read_outcomes(work / path.name, ledger.run)))


def _outcome(path: Path, work: Path) -> None:
    """A row of a ledger, as JSON."""
    try:
        row = json.loads(path.read_bytes())
        lacks = {*COLUMNS, "sources", "report", "reused"} - row.keys()
    except (ValueError, RecursionError, AttributeError):
        return
    if lacks:
        return  # Which no ledger does.
    report = json.dumps(row["report"]).encode()
    row |= {"report": zlib.compress(report), "sources": json.dumps(row["sources"])}
    _told([read_outcome(cast(sqlite3.Row, row), path)])
    Looks({}).holds(json.dumps(row.get("look")), JOB.sources)


def _manifest(path: Path, work: Path) -> None:
    from serde.fleet.batching.api import _known_options

    for trust in (Trust(), Trust(code=True, targets=True)):
        found = list(read_manifest(str(path), _known_options(), trust))
        local = [each for each in found if not any(map(is_url, each.sources))]
        made = plan(local, str(work), ".relay", {}, 100)
        json.dumps([each.as_dict() for each in (*made.jobs, *made.faults)]).encode()
        with closing(Ledger(work / "l.sqlite", {})) as ledger:
            for fault in made.faults:
                ledger.record(fault, options="")


@cache
def _model() -> relay.RelayModel:
    x, ids = relay.var("x", shape=("N", 6)), relay.var("ids", shape=("N",), dtype="int32")
    body = relay.Tuple([relay.copy(x), relay.copy(ids)])
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, ids], body)))
    return relay.RelayModel(mod, {}, relay.ModelMeta(outputs=("y", "z")))


@cache
def _image_model() -> relay.RelayModel:
    x = relay.var("x", shape=(1, 3, "H", "W"))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], relay.copy(x))))
    return relay.RelayModel(mod, {}, relay.ModelMeta(outputs=("y",)))


def _data(path: Path, work: Path) -> None:
    for model in (_model(), _image_model()):
        with suppress(SerdeError):
            for _ in as_check_data(path).samples(model, {}, Report()):
                pass


def _labels(path: Path, work: Path) -> None:
    for read in (
        lambda: labels_from(path),
        lambda: known_labels(None, path, {}),
        lambda: read_signature([path]),
    ):
        with suppress(SerdeError):
            read()


def _signature(path: Path, work: Path) -> None:
    read_signature(path.parent.iterdir())


def _archive(path: Path, work: Path) -> None:
    with stage(path, work) as staged:
        serde.to_relay(staged.source, **staged.options)


def _triton(path: Path, work: Path) -> None:
    port = Port("x", (1, 6), "float32")
    ours = make_config(
        "m", _SERVED, [port], [port], max_batch_size=0, dynamic_batching=False, labels={}
    )
    text = path.read_bytes().decode("utf-8", "replace")
    differences(read_config(text, str(path)), ours)


def _partition(path: Path, work: Path) -> None:
    load_split(path)


def _links(path: Path, work: Path) -> None:
    """What a model notes of files that its weights stay in, and the model beside it."""
    import onnx
    from google.protobuf.message import DecodeError

    from serde.onnx.model import LINKED_PROPERTY

    for each in path.parent.iterdir():
        shutil.copyfile(each, work / each.name)
    try:
        model = onnx.ModelProto.FromString((work / "m.onnx").read_bytes())
    except (OSError, DecodeError):
        return  # Models are fuzzed elsewhere.
    text = path.read_bytes().decode("utf-8", "replace")
    del model.metadata_props[:]
    model.metadata_props.add(key=LINKED_PROPERTY, value=text)
    (work / "m.onnx").write_bytes(model.SerializeToString())
    made = serde.to_relay(work / "m.onnx")
    for weight in made.params.values():
        for _ in weight.chunks():
            pass


def _supported(path: Path, work: Path) -> None:
    read_supported(path)


def _replaced(path: Path, work: Path) -> None:
    """What stands where a model is to be written, of any format."""
    target = work / path.name
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        for each in path.parent.iterdir():
            shutil.copyfile(each, work / each.name)
    serde.convert(_image_model(), target)


OWN: Final[Mapping[str, Callable[[Path, Path], None]]] = {
    "archive": _archive,
    "data": _data,
    "labels": _labels,
    "ledger": _ledger,
    "links": _links,
    "manifest": _manifest,
    "outcome": _outcome,
    "partition": _partition,
    "plan": _plan,
    "replaced": _replaced,
    "signature": _signature,
    "supported": _supported,
    "triton": _triton,
}
"""What reads each kind of file."""


# Seeds.


def seeds() -> Iterator[Case]:
    """Yield honest files of each kind, and some that are nearly so."""
    for kind, made in _SEEDS.items():
        for number, (files, main) in enumerate(made()):
            case = Case.of("own", f"{kind}-{number}", files, **{READER: kind})
            yield (
                case
                if main is None
                else Case("own", f"{kind}-{number}", files, main, {READER: kind})
            )


_Made = Iterator[tuple[dict[str, bytes], str | None]]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _plans() -> _Made:
    a, b = ["a", "@a", None], ["b", "@b", None]
    for removals in ([], [["c", "@c"]], [["c", None]], [["../c", "@c"]]):
        yield {"plan.json": _json({"renames": [a, b], "removals": removals})}, None
    for name in ("c", "../c", "/c", "x/b", ".", ""):
        yield {"plan.json": _json({"renames": [a, b, [name, "@b", "@c"]], "removals": []})}, None
    yield {"plan.json": _json({"renames": [["a", None, None], b], "removals": []})}, None


def _report() -> Report:
    near = Nearness(1.0, 1.0, 60.0, 0.1)
    shapes = ((2, 3), (2, 3))
    verdict = OutputVerdict("y", shapes, ("float32",) * 2, 0.0, 0.0, 1.0, 1e-5, 1e-5, True)
    report = Report("onnx -> relay", 3, notes=["one"], facts={"parameters": 12, "target": {}})
    report.add("Gate", "gate_1", "no such operator", "another")
    report.verdicts.append(verdict)
    report.accuracy.append(OutputAccuracy("y", near, near))
    report.engines = ("a", "b")
    report.before["Relu"] = 3
    return report


def _outcomes() -> Iterator[Outcome]:
    for status, report in (("refused", _report().as_dict()), ("done", {}), ("malformed", {})):
        yield Outcome(
            name="net.onnx", sources=("net.onnx",), target="net.relay", status=status,
            content="c", error="why", started=1.7e9, seconds=0.5, report=report,
        )  # fmt: skip


def _rows() -> _Made:
    for each in _outcomes():
        look = {"files": [["net.onnx", 1, "1-1"]], "beside": ""}
        yield {"row.json": _json({**asdict(each), "look": look})}, None


def _ledgers() -> _Made:
    for each in _outcomes():
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder, "l.sqlite"), {})
            ledger.record(each, options="o", look=_json({"files": [["net.onnx", 1, "1"]]}).decode())
            ledger.close()
            data = Path(folder, "l.sqlite").read_bytes()
        yield {"l.sqlite": data}, None
        yield {"l.sqlite": data, "l.sqlite-journal": data[:512], "l.sqlite-wal": data[:64]}, None


def _manifests() -> _Made:
    lines = [
        {"source": "nets/a.onnx", "input_shapes": {"data": [1, 3, 224, 224]}, "check": 3},
        {"sources": ["a-symbol.json", "a-0007.params"], "target": "old/a.onnx", "opset": 13},
        {"source": "a.onnx", "target": "../a.onnx", "converters": ["my.py"], "cc": "cc"},
        {"source": "n\u00e9t*.onnx", "allow": ["int64-as-int32"], "limits": {"nodes": 5}},
    ]
    yield {"m.jsonl": b"\n".join(map(_json, lines))}, None
    yield {"m.csv": b'source,opset,input_shapes\na.onnx,13,"{""data"": [1, 3]}"\nb,,\n'}, None
    yield {"m.txt": "# aside\na b.onnx\nnets/*.onnx\n\u00fcber.onnx\n".encode()}, None


def _npy(value: Any) -> bytes:
    made = io.BytesIO()
    np.save(made, value)
    return made.getvalue()


def _arrays() -> _Made:
    x, ids = np.arange(12, dtype=np.float32).reshape(2, 6), np.arange(2, dtype=np.int32)
    for save in (np.savez, np.savez_compressed):
        made = io.BytesIO()
        save(made, x=x, ids=ids)
        yield {"d.npz": made.getvalue()}, None
    for value in (x, x.T.copy().T, x.astype(">f8"), np.array(["a"]), ids.astype(bool)):
        yield {"d.npy": _npy(value)}, None
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("x.npy", _npy(value))
            archive.writestr("ids.npy", _npy(ids))
        yield {"d/0.npz": packed.getvalue(), "d/note.txt": b"x"}, "d"
    from onnx import numpy_helper

    for number in (0, 1):
        tensors = [numpy_helper.from_array(x, "x"), numpy_helper.from_array(ids, "ids")]
        if number:  # Values in the fields of their type, not as bytes.
            tensors = [numpy_helper.from_array(each.astype(np.float16)) for each in (x, ids)]
        files = {f"d/input_{i}.pb": each.SerializeToString() for i, each in enumerate(tensors)}
        yield files, "d"
    with suppress(ImportError):
        from PIL import Image

        for kind in ("png", "bmp", "gif", "jpeg", "tiff", "webp"):
            made = io.BytesIO()
            Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(made, kind)
            yield {f"d.{kind}": made.getvalue()}, None


def _label_files() -> _Made:
    for text in ("cat\ndog\n", "0\n1\n2\n", "\ufeffcat\r\ndog", "n01 tench, Tinca\nn02 shark\n\n"):
        yield {"synset.txt": text.encode()}, None


def _signatures() -> _Made:
    inputs = [{"name": "data", "shape": [0, 3, 224, 224], "dtype": "float32"}]
    yield {"signature.json": _json({"inputs": inputs, "input_type": "image/jpeg"})}, None
    shapes = [{"name": "data", "shape": [1, 3, 0, None]}]
    yield {"m-shapes.json": _json(shapes), "synset.txt": b"a\nb\n"}, None
    old = [{"data_name": "data", "data_shape": [0, 10]}]
    yield {"signature.json": _json({"inputs": old}), "m-shapes.json": _json(shapes)}, None


def _net() -> dict[str, bytes]:
    x = relay.var("data", shape=(1, 4))
    w = relay.var("w", shape=(3, 4))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    value = serde.core.weights.ArrayWeight(np.ones((3, 4), np.float32))
    model = relay.RelayModel(mod, {"w": value}, relay.ModelMeta(outputs=("y",)))
    with tempfile.TemporaryDirectory() as folder:
        serde.convert(model, Path(folder, "net-symbol.json"))
        return {each.name: each.read_bytes() for each in sorted(Path(folder).iterdir())}


def _archives() -> _Made:
    shapes = _json([{"name": "data", "shape": [0, 4]}])
    said = {"net-shapes.json": shapes, "synset.txt": b"a\nb\nc\n"}
    served = {"MANIFEST.json": _json({"Model": {"Symbol": "net-symbol.json"}})}
    multi = {"MAR-INF/MANIFEST.json": _json({"model": {"serializedFile": "net-symbol.json"}})}
    for name, more in (("m.tar.gz", said), ("m.mar", multi), ("m.model", served), ("m.mar", said)):
        files, made = {**_net(), **more}, io.BytesIO()
        if name.endswith("gz"):
            with tarfile.open(fileobj=made, mode="w:gz") as tar:
                for each, data in files.items():
                    member = tarfile.TarInfo(each)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        else:
            with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
                for each, data in files.items():
                    archive.writestr(each, data)
        yield {name: made.getvalue()}, None
    yield {f"m/{each}": data for each, data in {**_net(), **multi, **said}.items()}, "m"


def _configs() -> _Made:
    port = Port("x", (1, 6), "float32")
    for size, labels in ((0, {}), (8, {"x": "labels.txt"})):
        made = make_config(
            "m", _SERVED, [port], [port], max_batch_size=size, dynamic_batching=size > 0,
            labels=labels,
        )  # fmt: skip
        yield {"config.pbtxt": config_text(made).encode()}, None
    more = "instance_group [ { count: 2 kind: KIND_CPU } ]\nparameters { key: 'a' value { } }\n"
    yield {"config.pbtxt": f"name: 'm'\nbackend: 'x'\n{more}".encode()}, None


def _partitions() -> _Made:
    x, w = relay.var("x", shape=("N", 4)), relay.var("w", shape=(4, 4))
    body = relay.nn.dense(relay.tanh(relay.nn.dense(x, w)), w)
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, w], body)))
    value = serde.core.weights.ArrayWeight(np.ones((4, 4), np.float32))
    model = relay.RelayModel(mod, {"w": value}, relay.ModelMeta(outputs=("y",)))
    from serde.target.splitting import split

    for operators in (["Gemm", "MatMul", "Transpose"], ["Tanh"]):
        with tempfile.TemporaryDirectory() as folder:
            split(model, Path(folder, "p.zip"), supported=operators)
            yield {"p.zip": Path(folder, "p.zip").read_bytes()}, None
            split(model, Path(folder, "p"), supported=operators)
            found = sorted(Path(folder, "p").rglob("*"))
            yield (
                {
                    str(each.relative_to(folder)): each.read_bytes()
                    for each in found
                    if each.is_file()
                },
                "p",
            )


def _linked() -> _Made:
    import onnx

    from serde.onnx.model import LINKED_PROPERTY

    weight = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    ends = [onnx.helper.make_tensor_value_info(name, 1, [1, 64]) for name in "xy"]
    node = onnx.helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:], [weight])
    opsets = [onnx.helper.make_opsetid("", 17)]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "s.onnx"), Path(folder, "m.onnx")
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
        onnx.save_model(model, source, save_as_external_data=True, location="s.data")
        serde.convert(source, target, link_weights=True)
        (note,) = [
            entry.value
            for entry in onnx.load(target, load_external_data=False).metadata_props
            if entry.key == LINKED_PROPERTY
        ]
        files = {"links.json": note.encode(), "m.onnx": target.read_bytes()}
        yield {**files, "s.data": Path(folder, "s.data").read_bytes()}, "links.json"


def _rules() -> _Made:
    rules = {
        "max_opset": 17, "operators": {
            "Conv": {"dtypes": ["float32"], "max_rank": 4, "attributes": {"group": {"max": 1}}},
            "Gemm": {}, "Softmax": {"attributes": {"axis": [-1, 1]}},
        },
    }  # fmt: skip
    yield {"npu.json": _json(rules)}, None
    yield {"npu.json": _json({"operators": ["Conv", "Relu"]})}, None
    yield {"npu.toml": b'max_opset = 17\noperators = ["Conv"]\n'}, None
    yield {"npu.toml": b'[operators.Conv]\ndtypes = ["float32"]\n[operators.Relu]\n'}, None


def _targets() -> _Made:
    for suffix in (".onnx", ".relay", "-symbol.json", "_nnef", "_torch", ".mlpackage", ".nnef.tgz"):
        with tempfile.TemporaryDirectory() as folder, suppress(SerdeError):
            options = {"save_as_external_data": True} if suffix == ".onnx" else {}
            serde.convert(_image_model(), Path(folder, f"m{suffix}"), **options)
            found = [each for each in sorted(Path(folder).rglob("*")) if each.is_file()]
            files = {str(each.relative_to(folder)): each.read_bytes() for each in found}
            yield files, f"m{suffix}"


_SEEDS: Final[Mapping[str, Callable[[], _Made]]] = {
    "archive": _archives,
    "data": _arrays,
    "labels": _label_files,
    "ledger": _ledgers,
    "links": _linked,
    "manifest": _manifests,
    "outcome": _rows,
    "partition": _partitions,
    "plan": _plans,
    "replaced": _targets,
    "signature": _signatures,
    "supported": _rules,
    "triton": _configs,
}
