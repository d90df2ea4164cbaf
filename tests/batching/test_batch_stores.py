"""Batches from and to S3: what is fetched and what is not again, hostile archives, faults."""

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.batch_nets import weights_of, write_net
from support.stores import Faults, s3_server

import serde
from serde.bridge.formats import get_bridge
from serde.core.limits import MAX_ARCHIVE_MEMBERS
from serde.fleet.batching.pool import LocalPool
from serde.fleet.batching.records import Outcome
from serde.fleet.batching.worker import Runner

boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")


@pytest.fixture(scope="module")
def server() -> Iterator[Faults]:
    faults = Faults()
    with s3_server(faults) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIsecret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        # What other tests have opened leads to another server.
        others = dict(s3fs.S3FileSystem._cache)
        s3fs.S3FileSystem.clear_instance_cache()
        yield faults
        for fs in s3fs.S3FileSystem._cache.values():
            if getattr(fs, "_s3", None) is not None:
                s3fs.S3FileSystem.close_session(fs.loop, fs._s3)
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem._cache.update(others)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


@pytest.fixture
def client(server: Faults, request: pytest.FixtureRequest) -> Any:
    server.errors = 0.0
    found = boto3.client("s3")
    found.create_bucket(Bucket="nets")
    yield found
    server.errors = 0.0
    for each in found.list_objects_v2(Bucket="nets").get("Contents", ()):
        found.delete_object(Bucket="nets", Key=each["Key"])
    found.delete_bucket(Bucket="nets")
    found.close()


@pytest.fixture
def batch(runner: Runner, tmp_path: Path) -> Any:
    def run(*sources: str, **options: Any) -> dict[str, Outcome]:
        given = {
            "to": "onnx",
            "out": "s3://nets/out",
            "ledger": tmp_path / "ledger.sqlite",
            "scheduler": LocalPool(2, runner),
            **options,
        }
        return {each.name: each for each in serde.batch(list(sources), **given)}

    return run


def upload_pair(client: Any, tmp_path: Path, name: str, seed: int) -> Path:
    """Put a symbol and its parameters there; return the net that they were made from."""
    net = write_net(tmp_path / f"{name}.onnx", seed)
    serde.convert(net, tmp_path / f"{name}-symbol.json")
    for end in ("-symbol.json", "-0000.params"):
        client.upload_file(str(tmp_path / f"{name}{end}"), "nets", f"in/{name}{end}")
    return net


def bodies(server: Faults) -> list[str]:
    """Paths of the sources that were fetched since this was asked last."""
    found = [path for method, path in server.requests if method == "GET" and "/in/" in path]
    server.requests.clear()
    return sorted(set(found))


def fetched(client: Any, tmp_path: Path, key: str) -> Path:
    client.download_file("nets", key, str(tmp_path / "fetched.onnx"))
    return tmp_path / "fetched.onnx"


SHAPES = {"input_shapes": {"x": [2, 4]}}


@pytest.mark.wide
def test_models_of_a_bucket_are_converted_into_one_and_not_read_again(
    client: Any, server: Faults, tmp_path: Path, batch: Any
) -> None:
    net = upload_pair(client, tmp_path, "a", 1)
    client.upload_file(str(write_net(tmp_path / "b.onnx", 2)), "nets", "in/deep/b.onnx")
    found = batch("s3://nets/in", **SHAPES)
    assert {name: each.status for name, each in found.items()} == {
        "s3://nets/in/a-symbol.json": "done",
        "s3://nets/in/deep/b.onnx": "done",
    }
    assert weights_of(fetched(client, tmp_path, "out/a.onnx"))["w"].tobytes() == (
        weights_of(net)["w"].tobytes()
    )
    assert fetched(client, tmp_path, "out/deep/b.onnx").stat().st_size
    assert len(bodies(server)) == 3
    again = batch("s3://nets/in", **SHAPES)
    assert [each.reused for each in again.values()] == [True, True]
    assert bodies(server) == []


@pytest.mark.wide
def test_parameters_that_change_beside_a_symbol_are_fetched(
    client: Any, server: Faults, tmp_path: Path, batch: Any
) -> None:
    upload_pair(client, tmp_path, "a", 1)
    first = batch("s3://nets/in", **SHAPES)
    other = upload_pair(client, tmp_path / "other", "a", 2)
    second = batch("s3://nets/in", **SHAPES)
    assert not second["s3://nets/in/a-symbol.json"].reused
    assert {each.content for each in first.values()} != {each.content for each in second.values()}
    assert weights_of(fetched(client, tmp_path, "out/a.onnx"))["w"].tobytes() == (
        weights_of(other)["w"].tobytes()
    )


@pytest.mark.wide
def test_a_target_that_is_gone_is_made_again(client: Any, tmp_path: Path, batch: Any) -> None:
    client.upload_file(str(write_net(tmp_path / "b.onnx")), "nets", "in/b.onnx")
    batch("s3://nets/in")
    client.delete_object(Bucket="nets", Key="out/b.onnx")
    assert not batch("s3://nets/in")["s3://nets/in/b.onnx"].reused
    assert fetched(client, tmp_path, "out/b.onnx").stat().st_size


@pytest.mark.wide
def test_a_server_that_fails_now_and_then_loses_nothing(
    client: Any, server: Faults, tmp_path: Path, batch: Any
) -> None:
    for number in range(8):
        net = write_net(tmp_path / f"n{number}.onnx", number)
        client.upload_file(str(net), "nets", f"in/n{number}.onnx")
    server.errors = 0.15
    found = batch("s3://nets/in")
    server.errors = 0.0
    assert server.failed > 0
    assert {each.status for each in found.values()} == {"done"}
    keys = [
        each["Key"] for each in client.list_objects_v2(Bucket="nets", Prefix="out/")["Contents"]
    ]
    assert keys == [f"out/n{number}.onnx" for number in range(8)]


def test_what_a_store_does_not_have_or_refuses_is_one_line(
    client: Any, server: Faults, tmp_path: Path, batch: Any
) -> None:
    client.upload_file(str(write_net(tmp_path / "b.onnx")), "nets", "in/b.onnx")
    found = batch("s3://nets/in/b.onnx", "s3://nets/in/gone.onnx", "s3://other/*.onnx")
    assert {name: each.status for name, each in found.items()} == {
        "s3://nets/in/b.onnx": "done",
        "s3://nets/in/gone.onnx": "unreachable",
        "s3://other/*.onnx": "unreachable",
    }
    assert found["s3://nets/in/gone.onnx"].error == (
        "s3://nets/in/gone.onnx: there is no such object"
    )
    assert "there is no such bucket" in found["s3://other/*.onnx"].error


def packed(files: dict[str, bytes]) -> bytes:
    """A tar file with such members, compressed."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return gzip.compress(data.getvalue(), 1)


def pair(tmp_path: Path) -> dict[str, bytes]:
    """A symbol that does not tell its shapes, its parameters, and what SageMaker says of them."""
    serde.convert(write_net(tmp_path / "n.onnx"), tmp_path / "n-symbol.json")
    files = {name: (tmp_path / name).read_bytes() for name in ("n-symbol.json", "n-0000.params")}
    shapes = [{"name": "x", "shape": [2, 4]}]
    return {**files, "n-shapes.json": json.dumps(shapes).encode()}


@pytest.mark.wide
def test_archives_of_a_bucket_are_unpacked_in_the_process_of_the_model(
    client: Any, tmp_path: Path, batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack(*_: Any) -> None:
        raise AssertionError("unpacked here")

    monkeypatch.setattr("serde.fleet.stores.staging.unpack", unpack)
    client.put_object(Bucket="nets", Key="in/model.tar.gz", Body=packed(pair(tmp_path)))
    (first,) = batch("s3://nets/in").values()
    assert (first.status, first.error) == ("done", "")
    assert "model.tar.gz: the model is n-symbol.json, with n-0000.params" in first.report["notes"]
    assert weights_of(fetched(client, tmp_path, "out/model.onnx")).keys() == {"w", "b"}
    (second,) = batch("s3://nets/in").values()
    assert second.reused


def many_members(count: int) -> bytes:
    """A tar file with so many members, a million of which are some 3 MB."""
    header = tarfile.TarInfo("a").tobuf(tarfile.USTAR_FORMAT)
    piece = gzip.compress(header * 10_000, 1)
    return piece * (count // 10_000) + gzip.compress(bytes(1024))


def zeros(size: int) -> bytes:
    """A tar file with one member, which is so long and all zeros."""
    info = tarfile.TarInfo("z.bin")
    info.size = size
    piece = gzip.compress(bytes(2**24), 9)
    noise = tarfile.TarInfo("noise")
    noise.size = size // 900 // 512 * 512
    start = noise.tobuf() + os.urandom(noise.size) + info.tobuf()
    return gzip.compress(start, 1) + piece * (size // 2**24)


def bomb(size: int) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MAR-INF/MANIFEST.json", '{"model": {"serializedFile": "n.onnx"}}')
        archive.writestr("n.onnx", bytes(size))
    return data.getvalue()


@pytest.mark.wide
def test_hostile_archives_neither_stop_nor_slow_the_others(
    client: Any, tmp_path: Path, batch: Any
) -> None:
    hostile = {
        "members.tar.gz": many_members(1_000_000),
        "zeros.tar.gz": zeros(2**32),
        "bomb.mar": bomb(2**27),
        "cut.tar.gz": packed(pair(tmp_path))[:300],
    }
    for name, body in hostile.items():
        client.put_object(Bucket="nets", Key=f"in/{name}", Body=body)
    for number in range(3):
        net = write_net(tmp_path / f"n{number}.onnx", number)
        client.upload_file(str(net), "nets", f"in/n{number}.onnx")
    found = batch("s3://nets/in", time_limit=1.5)
    place = "s3://nets/in/"
    assert {name.removeprefix(place): each.status for name, each in found.items()} == {
        "members.tar.gz": "malformed",
        "zeros.tar.gz": "out of time",
        "bomb.mar": "malformed",
        "cut.tar.gz": "malformed",
        **{f"n{number}.onnx": "done" for number in range(3)},
    }
    errors = {name.removeprefix(place): each.error for name, each in found.items()}
    assert errors["zeros.tar.gz"] == "took more than 1.5 s"
    assert errors["members.tar.gz"].startswith(f"{place}members.tar.gz: ")
    assert f"more than {MAX_ARCHIVE_MEMBERS} members" in errors["members.tar.gz"]
    assert errors["bomb.mar"].startswith(f"{place}bomb.mar")
    assert all(each.content for each in found.values())
    again = batch("s3://nets/in", time_limit=1.5)
    assert all(each.reused for each in again.values())


@pytest.mark.wide
def test_an_archive_is_held_to_the_memory_of_its_model(
    client: Any, tmp_path: Path, batch: Any
) -> None:
    files = {**pair(tmp_path), "synset.txt": b"ab\n" * 1_390_000}
    client.put_object(Bucket="nets", Key="in/labels.tar.gz", Body=packed(files))
    client.upload_file(str(tmp_path / "n.onnx"), "nets", "in/n.onnx")
    found = batch("s3://nets/in", memory_limit=2**26)
    assert {name.rpartition("/")[2]: each.status for name, each in found.items()} == {
        "labels.tar.gz": "out of memory",
        "n.onnx": "done",
    }


def with_data(tmp_path: Path, seed: int, location: str = "w.bin") -> dict[str, bytes]:
    """An ONNX model whose weights lie in a file beside it."""
    net = onnx.load(write_net(tmp_path / "n.onnx", seed))
    onnx.save(
        net, tmp_path / "d.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    data = (tmp_path / "d.onnx").read_bytes()
    places = {location: (tmp_path / "w.bin").read_bytes()}
    (tmp_path / "w.bin").unlink()
    assert len(location) == len("w.bin")
    return {"d.onnx": data.replace(b"w.bin", location.encode()), **places}


@pytest.mark.wide
def test_what_a_model_names_is_found_in_its_own_process_and_fetched(
    client: Any, server: Faults, tmp_path: Path, batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def companions(*_: Any) -> None:
        raise AssertionError("read here")

    monkeypatch.setattr(get_bridge("onnx"), "companions", companions)
    for seed in (1, 2):
        for name, body in with_data(tmp_path, seed).items():
            client.put_object(Bucket="nets", Key=f"in/{name}", Body=body)
        (found,) = batch("s3://nets/in").values()
        assert (found.status, found.error, found.reused) == ("done", "", False)
        expected = weights_of(tmp_path / "n.onnx")["w"]
        made = fetched(client, tmp_path, "out/d.onnx")
        assert weights_of(made)["w"].tobytes() == expected.tobytes()
        assert found.bytes_read > expected.nbytes
    bodies(server)
    (found,) = batch("s3://nets/in").values()
    assert (found.reused, bodies(server)) == (True, [])


@pytest.mark.wide
def test_models_that_name_what_is_not_theirs_or_take_too_long_stop_nobody(
    client: Any, tmp_path: Path, batch: Any
) -> None:
    client.upload_file(str(write_net(tmp_path / "good.onnx")), "nets", "in/good.onnx")
    client.put_object(Bucket="nets", Key="secret", Body=b"s" * 100)
    outside = with_data(tmp_path, 1, "../..")
    client.put_object(Bucket="nets", Key="in/outside.onnx", Body=outside["d.onnx"])
    gone = with_data(tmp_path, 1, "x.bin")
    client.put_object(Bucket="nets", Key="in/gone.onnx", Body=gone["d.onnx"])
    count = 4_000_000  # Tensors of nothing, each of which is looked at.
    length = bytes([(2 * count) & 127 | 128, (2 * count) >> 7 & 127 | 128])
    length += bytes([(2 * count) >> 14 & 127 | 128, (2 * count) >> 21])
    slow = b"\x08\x08\x3a" + length + b"\x2a\x00" * count + b"\x42\x02\x10\x11"
    client.put_object(Bucket="nets", Key="in/slow.onnx", Body=slow)
    found = batch("s3://nets/in", time_limit=2)
    assert {name.rpartition("/")[2]: each.status for name, each in found.items()} == {
        "good.onnx": "done",
        "outside.onnx": "malformed",
        "gone.onnx": "unreachable",
        "slow.onnx": "out of time",
    }
    assert max(each.seconds for each in found.values()) < 10
    gone_error = found["s3://nets/in/gone.onnx"].error
    assert gone_error == "s3://nets/in/x.bin: there is no such object"
