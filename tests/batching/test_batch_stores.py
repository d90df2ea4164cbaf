"""Batches from and to S3: what is fetched, what is not fetched again, and a server that fails."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.batch_nets import weights_of, write_net
from support.stores import Faults, s3_server

import serde
from serde.batching.pool import LocalPool
from serde.batching.records import Outcome
from serde.batching.worker import Runner

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
        yield faults
        for fs in s3fs.S3FileSystem._cache.values():
            if getattr(fs, "_s3", None) is not None:
                s3fs.S3FileSystem.close_session(fs.loop, fs._s3)
        s3fs.S3FileSystem.clear_instance_cache()


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


def test_a_target_that_is_gone_is_made_again(client: Any, tmp_path: Path, batch: Any) -> None:
    client.upload_file(str(write_net(tmp_path / "b.onnx")), "nets", "in/b.onnx")
    batch("s3://nets/in")
    client.delete_object(Bucket="nets", Key="out/b.onnx")
    assert not batch("s3://nets/in")["s3://nets/in/b.onnx"].reused
    assert fetched(client, tmp_path, "out/b.onnx").stat().st_size


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
