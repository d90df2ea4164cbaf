"""Messages between a check and the process that runs an engine: a header in JSON, then arrays.

A message is its header's length in eight bytes, the header, and the bytes of
the arrays that it announces, row-major, one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any as AnyValue

import numpy as np

from serde.core.weights import Array, Weight, empty_aligned

__all__ = ["receive", "send"]

_LENGTH_BYTES = 8


def send(stream: IO[bytes], header: Mapping[str, AnyValue], arrays: Sequence[Weight] = ()) -> None:
    """Write a message; weights move in bounded pieces from where they are."""
    announced = [[weight.dtype, list(weight.shape)] for weight in arrays]
    text = json.dumps({**header, "arrays": announced}).encode()
    stream.write(len(text).to_bytes(_LENGTH_BYTES, "big") + text)
    for weight in arrays:
        for chunk in weight.chunks():
            stream.write(chunk)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, AnyValue], list[Array]]:
    """Read a message.

    Raises:
        EOFError: The other side has ended.
    """
    length = int.from_bytes(_exactly(stream, _LENGTH_BYTES), "big")
    header = json.loads(_exactly(stream, length))
    arrays = [_array(stream, *each) for each in header.pop("arrays")]
    return header, arrays


def _array(stream: IO[bytes], dtype: str, shape: Sequence[int]) -> Array:
    value = empty_aligned(shape, dtype)
    if value.size:
        _fill(stream, value.reshape(-1).view(np.uint8).data)
    return value


def _exactly(stream: IO[bytes], count: int) -> bytes:
    buffer = bytearray(count)
    _fill(stream, memoryview(buffer))
    return bytes(buffer)


def _fill(stream: IO[bytes], target: memoryview) -> None:
    while target.nbytes:
        count = stream.readinto(target)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        target = target[count:]
