"""An S3 server for all tests of stores, and a bucket for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from support.stores import Faults, s3_server

pytest.importorskip("moto")
pytest.importorskip("s3fs")

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def s3() -> Iterator[tuple[str, Faults]]:
    """The address of an S3 server, and what it does wrong."""
    faults = Faults()
    with s3_server(faults) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIsecret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield address, faults
        _close_sessions()


def _close_sessions() -> None:
    """Close what s3fs keeps open, which would warn at exit."""
    import s3fs

    for fs in s3fs.S3FileSystem._cache.values():
        if getattr(fs, "_s3", None) is not None:
            s3fs.S3FileSystem.close_session(fs.loop, fs._s3)
    s3fs.S3FileSystem.clear_instance_cache()


class Bucket:
    """A bucket, written to and read behind the back of serde."""

    def __init__(self, client: Any, name: str, faults: Faults) -> None:
        self.client = client
        self.name = name
        self.faults = faults

    @property
    def url(self) -> str:
        return f"s3://{self.name}"

    def put(self, key: str, body: bytes = b"x") -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=body)

    def get(self, key: str) -> bytes:
        body: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return body

    def names(self) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return sorted(each["Key"] for page in pages for each in page.get("Contents", ()))


@pytest.fixture
def bucket(s3: tuple[str, Faults]) -> Iterator[Bucket]:
    """An empty bucket of a server that does nothing wrong yet."""
    import boto3

    address, faults = s3
    client = boto3.client("s3", endpoint_url=address)
    name = f"models-{next(_NUMBERS)}"
    client.create_bucket(Bucket=name)
    faults.restart()
    yield Bucket(client, name, faults)
    faults.errors = faults.cuts = 0.0
    client.close()
