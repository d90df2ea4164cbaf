"""Damaged files of every format: each loads or is refused, in bounded time and memory.

`CASES` is a table of readers; a format joins by adding a line.
"""

import gzip
import io
import json
import random
import struct
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
from support.params_layout import CSR, ROW_SPARSE, V3, legacy, listing, sparse, v1, v2
from support.tvm_layout import JsonGraph, param_file

from serde.core.weights import OpenFile
from serde.errors import FormatError, SerdeError
from serde.mxnet.codec import load
from serde.mxnet.symbol_json import parse_symbol
from serde.relayfile.codec import load as load_relay

SEED = 20
FLIPS = 400
SECONDS = 1.0
MEMORY = 64 * 2**20


class Case(NamedTuple):
    """A reader under attack.

    Attributes:
        name: Name of the file that `read` gets.
        make: Returns the bytes of a valid file, some kilobytes at most.
        read: Reads a path, all values included.
        whole: Whether each part of the file is needed, so that no truncation
            loads; archives end in padding, and any reader of them reads them all.
    """

    name: str
    make: Callable[[], bytes]
    read: Callable[[str], object]
    whole: bool = True


# ---- MXNet


def mxnet_symbol() -> bytes:
    """A graph with attributes, a subgraph and shared nodes, as 1.9 writes it."""
    body = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "relu", "name": "y", "inputs": [[0, 0, 0]]},
        ],
        "arg_nodes": [0],
        "node_row_ptr": [0, 1, 2],
        "heads": [[1, 0, 0]],
    }
    nodes = [
        {"op": "null", "name": "data", "attrs": {"__shape__": "(1, 3)"}, "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        {
            "op": "FullyConnected",
            "name": "fc",
            "attrs": {"no_bias": "True", "num_hidden": "2"},
            "inputs": [[0, 0, 0], [1, 0, 0]],
        },
        {"op": "_foreach", "name": "loop", "inputs": [[2, 0, 0]], "subgraphs": [body]},
    ]
    graph = {
        "nodes": nodes,
        "arg_nodes": [0, 1],
        "node_row_ptr": [0, 1, 2, 3, 4],
        "heads": [[3, 0, 0], [2, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return json.dumps(graph, indent=2).encode()


def mxnet_params() -> bytes:
    """Arrays of every layout and storage."""
    dense = np.arange(12, dtype="float32").reshape(3, 4)
    rows = sparse(ROW_SPARSE, (5, 4), dense, [np.array([0, 2, 4])])
    pointers, columns = np.array([0, 1, 1, 3]), np.array([2, 0, 1])
    cells = sparse(CSR, (3, 4), dense[0, :3], [pointers, columns])
    arrays = [legacy(dense), v1(dense), v2(dense), v2(dense[:0], V3), rows, cells]
    arrays += [v2(dense.astype(dtype)) for dtype in ("float16", "int8", "int64", "bool")]
    return listing(arrays, ["arg:w", *(f"aux:state{i}" for i in range(1, len(arrays)))])


def mxnet_archive() -> bytes:
    """Symbol and parameters as SageMaker packs them, not compressed."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in (("m-symbol.json", mxnet_symbol()), ("m-0000.params", mxnet_params())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    # Without the blank blocks that fill up the last record.
    return file.getvalue().rstrip(b"\0") + bytes(1024)


def mxnet_archive_packed() -> bytes:
    """The same, compressed."""
    return gzip.compress(mxnet_archive(), mtime=0)


def read_symbol(path: str) -> object:
    with OpenFile.open(path) as opened:
        buffer = bytearray(opened.size)
        opened.read_into(buffer, 0)
    return parse_symbol(bytes(buffer), path=path)


def read_mxnet_values(source: object) -> None:
    model = load(source)
    for weight in (*model.arg.values(), *model.aux.values()):
        for _ in weight.chunks():
            pass


def read_params(path: str) -> None:
    read_mxnet_values((mxnet_symbol(), path))


def read_params_bytes(path: str) -> None:
    with open(path, "rb") as file:
        read_mxnet_values((mxnet_symbol(), file.read()))


# ---- Relay and TVM


def relay_text() -> bytes:
    """A function with attributes, a constant in the metadata and a carried name."""
    text = JsonGraph()
    constant = text.constant(np.arange(6, dtype="float32").reshape(2, 3))
    root = text.add("Map", keys=["relay.Constant"], data=[text.array(constant)])
    body = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w_0: Tensor[(3), float32], serde.names="w_0=w.0") {
  %0 = add(%x, meta[relay.Constant][0]);
  let %y = nn.softmax(%0, axis=1);
  %1 = split(%y, indices_or_sections=[1, 2], axis=1);
  if (True) { (multiply(%y, %w_0), %1.0) } else { (%y, exp(%1.0) * 2f) }
}

#[metadata]
"""
    return body.encode() + json.dumps(text.whole(root)).encode()


def tvm_params() -> bytes:
    """Arrays of several types, one of them the text's."""
    values = np.arange(3, dtype="float32")
    params = {"w.0": values, "scalar": values[0].reshape(()), "none": values[:0]}
    return param_file({**params, "codes": values.astype("int8"), "on": values.astype("bool")})


def tvm_json() -> bytes:
    """A module with a convolution, a constant, a let and a condition."""
    graph = JsonGraph()
    x = graph.var("x", graph.tensor_type(1, 2, 4, 4))
    kernel = graph.constant(np.ones((3, 2, 3, 3), "float32"))
    ones = [graph.array(graph.integer(1), graph.integer(1)) for _ in range(3)]
    attrs = graph.object(
        "relay.attrs.Conv2DAttrs",
        strides=ones[0],
        padding=ones[1],
        dilation=ones[2],
        groups=1,
        channels=graph.integer(3),
        kernel_size=0,
        data_layout="NCHW",
        kernel_layout="OIHW",
        out_layout="",
        out_dtype="",
    )
    conv = graph.call(graph.op("nn.conv2d"), x, kernel, attrs=attrs)
    y = graph.var("y", 0)
    branches = [graph.call(graph.op(name), y) for name in ("exp", "nn.relu")]
    yes = graph.constant(np.array(True))
    choice = graph.expr("relay.If", cond=yes, true_branch=branches[0], false_branch=branches[1])
    body = graph.expr("relay.Let", var=y, value=conv, body=choice)
    return json.dumps(graph.module(main=graph.function([x], body))).encode()


def read_relay_values(source: object) -> None:
    for weight in load_relay(source).params.values():
        for _ in weight.chunks():
            pass


def read_tvm_params(path: str) -> None:
    read_relay_values((relay_text(), path))


def read_tvm_params_bytes(path: str) -> None:
    with open(path, "rb") as file:
        read_relay_values((relay_text(), file.read()))


CASES = [
    Case("m-symbol.json", mxnet_symbol, read_symbol),
    Case("m-0000.params", mxnet_params, read_params),
    Case("bytes.params", mxnet_params, read_params_bytes),
    Case("model.tar", mxnet_archive, read_mxnet_values, whole=False),
    Case("model.tar.gz", mxnet_archive_packed, read_mxnet_values, whole=False),
    Case("net.relay", relay_text, read_relay_values),
    Case("net.json", tvm_json, read_relay_values),
    Case("tvm.params", tvm_params, read_tvm_params),
    Case("tvm-bytes.params", tvm_params, read_tvm_params_bytes),
]


# ---- attacks


def truncations(data: bytes) -> Iterator[bytes]:
    """The file cut at every 64th of its length."""
    for cut in range(64):
        yield data[: len(data) * cut // 64]


def bit_flips(data: bytes) -> Iterator[bytes]:
    """The file with one bit changed, at places that the seed chooses."""
    rng = random.Random(SEED)
    for _ in range(FLIPS):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        yield bytes(damaged)


def claims(data: bytes) -> Iterator[bytes]:
    """The file with a number of eight or four bytes replaced by an extreme one."""
    rng = random.Random(SEED)
    extremes = [2**63, 2**63 - 1, 2**64 - 1, 2**40, 2**32, 0]
    numbers = [struct.pack("<Q", number) for number in extremes]
    numbers += [struct.pack("<I", number) for number in (2**31 - 1, 2**31, 2**32 - 1, 33, 0)]
    for number in numbers:
        for at in rng.sample(range(len(data) - 8), min(40, len(data) - 8)):
            yield data[:at] + number + data[at + len(number) :]


def shuffles(data: bytes) -> Iterator[bytes]:
    """The file with a piece left out, doubled or moved, and noise of its length."""
    rng = random.Random(SEED)
    for _ in range(50):
        low, high = sorted(rng.sample(range(len(data)), 2))
        yield data[:low] + data[high:]
        yield data[:high] + data[low:]
        yield data[high:] + data[low:high] + data[:low]
    yield rng.randbytes(len(data))
    yield bytes(len(data))


ATTACKS = [truncations, bit_flips, claims, shuffles]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


def outcome(case: Case, path, data: bytes) -> tuple[str | None, float]:
    """What reading `data` ends with, and its seconds; any other error fails the test."""
    path.write_bytes(data)
    start = time.perf_counter()
    try:
        case.read(str(path))
    except SerdeError as error:
        return str(error), time.perf_counter() - start
    return None, time.perf_counter() - start


def test_the_undamaged_file_loads(case, tmp_path):
    assert outcome(case, tmp_path / case.name, case.make())[0] is None


@pytest.mark.wide
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.thin(2)
def test_damage_is_refused_or_harmless(case, tmp_path, attack):
    outcomes = [outcome(case, tmp_path / case.name, data) for data in attack(case.make())]
    assert max(seconds for _, seconds in outcomes) < SECONDS, f"seed {SEED}"
    assert any(message for message, _ in outcomes), "an attack that does no harm tests nothing"


@pytest.mark.parametrize("case", [case for case in CASES if case.whole], ids=lambda case: case.name)
def test_no_truncation_loads(case, tmp_path):
    for data in truncations(case.make()):
        assert outcome(case, tmp_path / case.name, data)[0]


@pytest.mark.parametrize("attack", [bit_flips, claims], ids=lambda attack: attack.__name__)
def test_damage_costs_no_memory(case, tmp_path, attack):
    samples = list(attack(case.make()))[::8]
    outcome(case, tmp_path / case.name, case.make())
    tracemalloc.start()
    try:
        for data in samples:
            outcome(case, tmp_path / case.name, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MEMORY, f"seed {SEED}"


FOREIGN = [
    pytest.param(case, other, id=f"{case.name} as {other.name}")
    for case in CASES
    for other in CASES
    if other.make is not case.make and other.read is not case.read and (case.whole or other.whole)
]


@pytest.mark.parametrize(("case", "other"), FOREIGN)
def test_a_format_named_as_another_is_refused(case, tmp_path, other):
    path = tmp_path / other.name
    path.write_bytes(case.make())
    with pytest.raises(FormatError):
        other.read(str(path))
