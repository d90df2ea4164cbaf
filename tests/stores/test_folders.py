"""A folder in a store is replaced by exactly the new files, or is as it was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import coremltools
import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.errors import OptionError, StoreError
from serde.fleet.stores import folders, publishing
from serde.fleet.stores.faults import Retries
from serde.fleet.stores.publishing import publish, published

SOME = [pytest.param(0, marks=pytest.mark.wide), 1, pytest.param(2, marks=pytest.mark.wide)]
"""How much of three steps succeeds."""

PACKAGE = {"Manifest.json": b"{}", "Data/model.mlmodel": b"m2", "Data/weights/b.bin": b"b" * 3000}
OLD = {"Manifest.json": b"old", "Data/model.mlmodel": b"m1", "Data/weights/a.bin": b"a" * 5000}
NO_RETRIES = {"config_kwargs": {"retries": {"max_attempts": 0}}}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "new" / "net.mlpackage"
    for name, data in PACKAGE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


@pytest.fixture
def old(bucket: Any) -> str:
    """The URL of a package in a bucket, among others whose names begin likewise."""
    for name, data in OLD.items():
        bucket.put(f"m/net.mlpackage/{name}", data)
    for name in OTHERS:
        bucket.put(name)
    return f"{bucket.url}/m/net.mlpackage"


OTHERS = ["m/net.mlpackage.bak/w.bin", "m/net.mlpackage2/w.bin", "m/other.onnx", "net.mlpackage/a"]


def content(bucket: Any, folder: str = "m/net.mlpackage/") -> dict[str, bytes]:
    names = [name for name in bucket.names() if name.startswith(folder)]
    return {name.removeprefix(folder): bucket.get(name) for name in names}


@pytest.mark.wide
def test_a_replaced_folder_ends_with_exactly_the_new_files(
    bucket: Any, old: str, package: Path
) -> None:
    bucket.faults.requests.clear()
    assert publish(package, old) == sum(map(len, PACKAGE.values()))
    assert content(bucket) == PACKAGE
    assert sorted(set(bucket.names()) - {f"m/net.mlpackage/{name}" for name in PACKAGE}) == OTHERS
    changes = [
        (method, path.partition("/m/")[2])
        for method, path in bucket.faults.requests
        if method in ("PUT", "DELETE") and ".serde-new-" not in path
    ]
    assert changes == [
        ("PUT", "net.mlpackage/Data/weights/b.bin"),
        ("PUT", "net.mlpackage/Data/model.mlmodel"),
        ("PUT", "net.mlpackage/Manifest.json"),
        ("DELETE", "net.mlpackage/Data/weights/a.bin"),
    ]


@pytest.mark.parametrize("after", SOME)
def test_an_upload_that_fails_leaves_the_old_folder_as_it_was(
    bucket: Any, old: str, package: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    before, original, sent = bucket.names(), publishing._send, []

    def send(store: Any, path: Path, target: str) -> None:
        if len(sent) == after:
            raise OSError(5, "Input/output error")
        sent.append(path)
        original(store, path, target)

    monkeypatch.setattr(publishing, "_send", send)
    with pytest.raises(StoreError, match="Input/output error"):
        publish(package, old)
    assert content(bucket) == OLD
    assert bucket.names() == before


@pytest.mark.wide
def test_a_server_that_fails_now_and_then_loses_nothing(
    bucket: Any, old: str, package: Path
) -> None:
    bucket.faults.errors = 0.3
    publish(package, old, storage_options=NO_RETRIES, retries=Retries(60, 0.001, 0.002))
    bucket.faults.errors = 0.0
    assert bucket.faults.failed
    assert content(bucket) == PACKAGE
    assert [name for name in bucket.names() if "/." in name] == []


@pytest.mark.wide
@pytest.mark.parametrize("after", SOME)
def test_what_a_killed_run_had_begun_to_replace_is_finished_by_the_next(
    bucket: Any, old: str, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:  # fmt: skip
    original, moved = folders._move, []

    def move(store: Any, passing: str, target: str) -> None:
        if len(moved) == after:
            raise KeyboardInterrupt
        moved.append(target)
        original(store, passing, target)

    monkeypatch.setattr(folders, "_move", move)
    with pytest.raises(KeyboardInterrupt):
        publish(package, old)
    assert bucket.get("m/net.mlpackage/Manifest.json") == b"old"
    monkeypatch.undo()
    bucket.client.delete_object(Bucket=bucket.name, Key="m/net.mlpackage/Manifest.json")
    with published(old, tmp_path) as place:
        shutil.copytree(package, place)
    assert content(bucket) == PACKAGE
    assert [name for name in bucket.names() if "/." in name] == []


@pytest.mark.wide
def test_names_are_no_patterns(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "a1.dat").write_bytes(b"new")
    for name in ("a[1].dat", "a*.dat", "a1.dat"):
        bucket.put(f"net/{name}")
    bucket.put("neither")
    publish(tmp_path / "net", f"{bucket.url}/net")
    assert bucket.names() == ["neither", "net/a1.dat"]


def dense(size: int) -> tuple[relay.IRModule, dict[str, Any]]:
    x = relay.var("x", shape=(1, 8))
    weight = relay.var("w", shape=(size, 8))
    mod = relay.IRModule.from_expr(relay.Function([x, weight], relay.nn.dense(x, weight)))
    return mod, {"w": np.random.default_rng(size).normal(size=(size, 8)).astype(np.float32)}


@pytest.mark.wide
def test_packages_are_as_coremltools_reads_them(bucket: Any, tmp_path: Path) -> None:
    """The first net has a file of weights, and the second one has none."""
    url = f"{bucket.url}/m/net.mlpackage"
    x = relay.var("x", shape=(1, 2))
    plain = relay.IRModule.from_expr(relay.Function([x], relay.tanh(x)))
    for net in (dense(400), (plain, {})):
        source = serde.from_relay(net, format="onnx", path=tmp_path / "n.onnx")
        serde.convert(source, url)
        weights = [name for name in bucket.names() if name.endswith("weight.bin")]
        assert len(weights) == bool(net[1])
    serde.convert(source, tmp_path / "net.mlpackage")
    local = {
        each.relative_to(tmp_path / "net.mlpackage").as_posix(): each.read_bytes()
        for each in (tmp_path / "net.mlpackage").rglob("*")
        if each.is_file()
    }
    assert content(bucket) == local
    for name, data in content(bucket).items():
        path = tmp_path / "fetched.mlpackage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    spec = coremltools.utils.load_spec(str(tmp_path / "fetched.mlpackage"))
    assert spec.description.output[0].type.multiArrayType.shape == [1, 2]


@pytest.mark.parametrize(
    ("format", "name", "there"),
    [
        ("nnef", "models", {"readme.md": b"x", "a/net.onnx": b"y"}),
        ("nnef", "net", {"graph.nnef": b"version 1.0;\ngraph g(x)->(x){}", "notes.txt": b"mine"}),
        ("coreml", "net.mlpackage", {"Data/weights.bin": b"x"}),
        ("nnef", "net", {"graph.nnef/deep": b"x", "graph.nnef": b"y"}),
        ("nnef", "net", {"../graph.nnef": b"x", "graph.nnef": b"y"}),
    ],
)
def test_a_folder_that_is_no_such_package_stays(
    bucket: Any, tmp_path: Path, format: str, name: str, there: dict[str, bytes]
) -> None:
    for each, data in there.items():
        bucket.put(f"m/{name}/{each}", data)
    before = bucket.names()
    source = serde.from_relay(dense(2), format="onnx", path=tmp_path / "n.onnx")
    with pytest.raises(OptionError) as told:
        serde.convert(source, f"{bucket.url}/m/{name}", target_format=format, overwrite=True)
    assert str(told.value).startswith(f"{bucket.url}/m/{name}: ")
    assert "expected a package to replace, or nothing" in str(told.value)
    assert bucket.names() == before


def test_an_object_in_the_place_of_a_folder_stays(bucket: Any, tmp_path: Path) -> None:
    bucket.put("net.mlpackage", b"original")
    source = serde.from_relay(dense(2), format="onnx", path=tmp_path / "n.onnx")
    with pytest.raises(OptionError, match="expected a package to replace, or nothing"):
        serde.convert(source, f"{bucket.url}/net.mlpackage")
    assert bucket.names() == ["net.mlpackage"]
    assert bucket.get("net.mlpackage") == b"original"


@pytest.mark.wide
def test_a_file_is_not_put_in_the_place_of_a_folder(bucket: Any, tmp_path: Path) -> None:
    bucket.put("models/a.onnx")
    source = serde.from_relay(dense(2), format="onnx", path=tmp_path / "n.onnx")
    with pytest.raises(OptionError, match=f"{bucket.url}/models: "):
        serde.convert(source, f"{bucket.url}/models", target_format="onnx")
    assert bucket.names() == ["models/a.onnx"]


@pytest.mark.wide
def test_a_folder_of_far_more_files_than_a_model_has_is_not_read(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_ARCHIVE_MEMBERS", 5)
    for number in range(20):
        bucket.put(f"m/{number}.bin")
    bucket.faults.requests.clear()
    with (
        pytest.raises(OptionError, match="expected a package to replace, or nothing"),
        published(f"{bucket.url}/m", tmp_path),
    ):
        raise AssertionError("the body was run")
    assert {method for method, _ in bucket.faults.requests} <= {"GET", "HEAD"}


def test_folders_of_a_plain_file_system_are_replaced_likewise(
    tmp_path: Path, package: Path
) -> None:
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    class Plain(LocalFileSystem):
        protocol = "plain2"

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("plain2://").rstrip("/")

    fsspec.register_implementation("plain2", Plain, clobber=True)
    root = tmp_path / "out" / "net.mlpackage"
    for name in (*OLD, "Data/deep/er/c.bin"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"old")
    publish(package, f"plain2://{root}")
    found = {
        each.relative_to(root).as_posix(): each.read_bytes()
        for each in root.rglob("*")
        if each.is_file()
    }
    assert found == PACKAGE
    assert sorted(os.listdir(root / "Data")) == ["model.mlmodel", "weights"]
    assert os.listdir(tmp_path / "out") == ["net.mlpackage"]


def test_a_folder_in_memory_is_replaced(tmp_path: Path, package: Path) -> None:
    import fsspec

    url = f"memory://{tmp_path.name}/net.mlpackage"
    fs, path = fsspec.url_to_fs(url)
    for name, data in OLD.items():
        fs.pipe_file(f"{path}/{name}", data)
    publish(package, url)
    assert {name: fs.cat_file(name) for name in fs.find(fs._parent(path))} == {
        f"{path}/{name}": data for name, data in PACKAGE.items()
    }
