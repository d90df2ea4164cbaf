"""Results appear in a store whole or not at all, the file that refers to others last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serde.errors import OptionError, StoreError
from serde.fleet.stores import publishing
from serde.fleet.stores.faults import Retries
from serde.fleet.stores.publishing import publish, published

RANDOM = np.random.default_rng(8).bytes(12_000_000)
NO_RETRIES = {"config_kwargs": {"retries": {"max_attempts": 0}}}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least that S3 takes as a part."""
    monkeypatch.setattr(publishing, "_PART", 5 * 2**20)


@pytest.mark.wide
def test_a_large_file_goes_in_parts(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(RANDOM)
    assert publish(tmp_path / "net.onnx", f"{bucket.url}/out/other.onnx") == len(RANDOM)
    assert bucket.get("out/other.onnx") == RANDOM
    head = bucket.client.head_object(Bucket=bucket.name, Key="out/other.onnx")
    assert head["ETag"].endswith('-3"')


@pytest.mark.wide
def test_a_server_that_fails_now_and_then_keeps_all(bucket: Any, tmp_path: Path) -> None:
    bucket.faults.errors = 0.3
    (tmp_path / "net.onnx").write_bytes(RANDOM)
    publish(
        tmp_path / "net.onnx",
        f"{bucket.url}/net.onnx",
        storage_options=NO_RETRIES,
        retries=Retries(60, 0.001, 0.002),
    )
    bucket.faults.errors = 0.0
    assert bucket.get("net.onnx") == RANDOM
    assert bucket.faults.failed


@pytest.mark.parametrize("size", [1000, 12_000_000])
def test_an_upload_that_fails_leaves_the_old_object(bucket: Any, tmp_path: Path, size: int) -> None:
    bucket.put("net.onnx", b"old")
    (tmp_path / "net.onnx").write_bytes(RANDOM[:size])
    bucket.faults.errors = 1.0
    with pytest.raises(StoreError, match=r"^s3://.*/net\.onnx: the store answered 500"):
        publish(
            tmp_path / "net.onnx",
            f"{bucket.url}/net.onnx",
            storage_options=NO_RETRIES,
            retries=Retries(2, 0.001),
        )
    bucket.faults.errors = 0.0
    assert bucket.get("net.onnx") == b"old"


def test_a_disk_that_cannot_be_read_completes_no_upload(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net.onnx").write_bytes(RANDOM)

    def copy(source: Any, target: Any) -> None:
        target.write(source.read(6 * 2**20))
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(publishing, "_copy", copy)
    with pytest.raises(StoreError, match="Input/output error"):
        publish(tmp_path / "net.onnx", f"{bucket.url}/net.onnx")
    assert bucket.names() == []
    uploads = bucket.client.list_multipart_uploads(Bucket=bucket.name)
    assert "Uploads" not in uploads


@pytest.mark.wide
def test_what_others_refer_to_goes_first(bucket: Any, tmp_path: Path) -> None:
    bucket.faults.requests.clear()
    with published(f"{bucket.url}/out/net.mlpackage", tmp_path) as place:
        (place / "Data/weights").mkdir(parents=True)
        (place / "Data/weights/w.bin").write_bytes(b"w")
        (place / "Data/model.mlmodel").write_bytes(b"m")
        (place / "Manifest.json").write_bytes(b"{}")
        (place.parent / "beside.data").write_bytes(b"d")
    puts = [path for method, path in bucket.faults.requests if method == "PUT"]
    placed = [path.rpartition("/")[2] for path in puts if "/.serde-new-" not in path]
    assert placed == ["beside.data", "w.bin", "model.mlmodel", "Manifest.json"]
    assert bucket.names() == [
        "out/beside.data",
        "out/net.mlpackage/Data/model.mlmodel",
        "out/net.mlpackage/Data/weights/w.bin",
        "out/net.mlpackage/Manifest.json",
    ]
    assert os.listdir(tmp_path) == []


def test_nothing_is_published_by_a_run_that_fails(bucket: Any, tmp_path: Path) -> None:
    def fail(place: Path) -> None:
        place.write_bytes(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), published(f"{bucket.url}/net.onnx", tmp_path) as place:
        fail(place)
    assert bucket.names() == []
    assert os.listdir(tmp_path) == []


def test_what_nobody_named_is_not_replaced(bucket: Any, tmp_path: Path) -> None:
    bucket.put("net.onnx.data", b"original")

    def write(place: Path) -> None:
        place.write_bytes(b"model")
        (place.parent / "net.onnx.data").write_bytes(b"data")

    with (
        pytest.raises(OptionError, match=r"net\.onnx\.data: would be replaced, though .*--overw"),
        published(f"{bucket.url}/net.onnx", tmp_path, overwrite=False) as place,
    ):
        write(place)
    assert bucket.names() == ["net.onnx.data"]


def test_a_store_without_whole_uploads_gets_a_rename(tmp_path: Path) -> None:
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    moves: list[tuple[str, str]] = []

    class Plain(LocalFileSystem):
        protocol = "plain"

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("plain://").rstrip("/")

        def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
            moves.append((os.path.basename(path1), os.path.basename(path2)))
            super().mv(path1, path2, **kwargs)

    fsspec.register_implementation("plain", Plain, clobber=True)
    (tmp_path / "net.onnx").write_bytes(b"model")
    publish(tmp_path / "net.onnx", f"plain://{tmp_path}/out/net.onnx")
    assert (tmp_path / "out/net.onnx").read_bytes() == b"model"
    assert os.listdir(tmp_path / "out") == ["net.onnx"]
    ((passing, final),) = moves
    assert passing.startswith(".serde-")
    assert final == "net.onnx"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://example.com/net.onnx", "https://example.com/net.onnx: nothing can be written th"),
        ("zip://net.onnx::memory://a.zip", "nothing can be written there"),
        ("s3://bucket/", "expected the name of an object"),
        ("net.onnx", "expected the URL of a store"),
    ],
)
def test_what_cannot_be_written_is_told(tmp_path: Path, url: str, message: str) -> None:
    (tmp_path / "net.onnx").write_bytes(b"model")
    with pytest.raises(OptionError, match=message):
        publish(tmp_path / "net.onnx", url)
