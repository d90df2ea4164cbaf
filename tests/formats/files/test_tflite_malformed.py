"""TFLite files that are not what they claim to be."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_cases import CASES
from support.tflite_models import Node, T, make_graph

import serde
from serde.errors import FormatError, LimitError, OptionError, UnsupportedModelError
from serde.tflite.reader import read_file

NAMES = list(CASES)


def survive(tmp_path: Path, data: bytes) -> None:
    """A file is read, or refused by name."""
    path = tmp_path / "bad.tflite"
    path.write_bytes(data)
    caught = ""
    try:
        serde.to_relay(path, format="tflite")
    except FormatError as error:
        caught = str(error)
    except (LimitError, OptionError, UnsupportedModelError):
        return
    assert "bad.tflite" in (caught or "bad.tflite")


SEEDS = [pytest.param(seed, marks=[] if seed < 60 else [pytest.mark.wide]) for seed in range(600)]


@pytest.mark.parametrize("seed", SEEDS)
def test_changed_bytes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(CASES[rng.choice(NAMES)])
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    survive(tmp_path, bytes(data))


@pytest.mark.parametrize("part", range(0, 40, 2))
def test_truncated(tmp_path: Path, part: int) -> None:
    data = CASES["CONV_2D codes int8 0"]
    survive(tmp_path, data[: len(data) * part // 40])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "TFL3"),
        (b"\x08\0\0\0TFL3" + bytes(4), "its own vtable"),
        (b"\xff\xff\xff\x7fTFL3" + bytes(40), "end of the file|found"),
        (b"\x08\0\0\0TFL3\xff\xff\xff\x7f" + bytes(40), "before the file"),
    ],
)
def test_what_is_no_model(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad.tflite"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message):
        read_file(str(path))


def test_tables_that_overlap_are_counted() -> None:
    """A vector of subgraphs may refer to one again and again: five kilobytes claim 300,000."""
    data = bytearray(make_graph([T((1,))] * 50, [Node("ABS", [0], [1])], [0], [1]))
    root = struct.unpack_from("<I", data, 0)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    field = root + struct.unpack_from("<H", data, vtable + 8)[0]
    vector = field + struct.unpack_from("<I", data, field)[0]
    graph = vector + 4 + struct.unpack_from("<I", data, vector + 4)[0]
    start = len(data)
    count = 1000
    data += struct.pack("<I", count)
    for i in range(count):
        data += struct.pack("<I", (graph - (start + 4 + 4 * i)) % 2**32)
    struct.pack_into("<I", data, field, start - field)
    with pytest.raises(FormatError):
        read_file(bytes(data))


def test_an_operator_that_reads_what_nothing_gives(tmp_path: Path) -> None:
    path = tmp_path / "bad.tflite"
    path.write_bytes(make_graph([T((2,)), T((2,)), T((2,))], [Node("ABS", [2], [1])], [0], [1]))
    with pytest.raises(FormatError, match="read before anything gives it"):
        serde.to_relay(path)


def test_a_graph_that_calls_itself(tmp_path: Path) -> None:
    condition, x = T((), "bool"), T((2,))
    options = {"thenSubgraphIndex": 0, "elseSubgraphIndex": 0}
    node = Node("IF", [0, 1], [2], options, "IfOptions")
    path = tmp_path / "bad.tflite"
    path.write_bytes(make_graph([condition, x, T((2,))], [node], [0, 1], [2]))
    with pytest.raises((LimitError, UnsupportedModelError, FormatError)):
        serde.to_relay(path)


@pytest.mark.parametrize("dtype", ["bool", "int64", "complex64"])
def test_scales_of_what_is_no_code(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "bad.tflite"
    scaled = T((2,), dtype, scale=[0.5], zero=[0])
    path.write_bytes(make_graph([T((2,)), scaled], [Node("ABS", [0], [1])], [0], [1]))
    with pytest.raises(UnsupportedModelError, match=f"codes are int8.*found {dtype}"):
        serde.to_relay(path)
