"""Archives of ``torch.export`` that are not what they claim to be."""

from __future__ import annotations

import functools
import json
import random
import struct
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.pt2 import (
    CONSTANTS,
    GOLDEN,
    MODEL,
    WEIGHTS,
    archive_of,
    changed,
    edited,
    members_of,
    mutate as mutate_json,
)

import serde
from serde.core.report import Report
from serde.errors import FormatError, LimitError, UnsupportedModelError
from serde.io import zips as archive
from serde.torch.codec import detect
from serde.torch.importer import to_relay
from serde.torch.model import Argument, Graph, Input, Node, Ref, TorchModel
from serde.torch.options import TorchImportOptions
from serde.torch.pt2 import document
from serde.torch.pt2.reader import load_archive

NAMES = ("cnn", "dynamic", "shared", "branches", "lstm")


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "bad.pt2"
    path.write_bytes(data)
    return path


def read_all(path: Path) -> None:
    """Read a program and its weights, and convert it."""
    detect(path)
    for weight in load_archive(path).weights.values():
        for _ in weight.chunks():
            pass
    serde.to_relay(path, format="torch")


def refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(FormatError, match=message) as found:
        load_archive(path)
    assert "bad.pt2" in str(found.value)


# Any bytes.


@functools.cache
def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.pt2").read_bytes()


@pytest.mark.parametrize("part", range(48))
def test_truncated(tmp_path: Path, part: int) -> None:
    data = golden("cnn")
    refused(tmp_path, data[: len(data) * part // 48], ".")


def survive(tmp_path: Path, data: bytes) -> None:
    start = time.process_time()
    path = write(tmp_path, data)
    caught: Exception | None = None
    try:
        read_all(path)
    except (FormatError, LimitError, UnsupportedModelError) as error:
        caught = error
    assert not isinstance(caught, FormatError) or "bad.pt2" in str(caught)
    assert time.process_time() - start < 10


SEEDS = [pytest.param(seed, marks=[] if seed < 120 else [pytest.mark.wide]) for seed in range(900)]


@pytest.mark.sparse(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_changed_bytes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(golden(rng.choice(NAMES)))
    # Most of the bytes are those of values and of members that nobody opens.
    first = data.rfind(b"PK\1\2", 0, len(data) // 2) if seed % 2 else 0
    first = data.find(b"PK\1\2") if seed % 2 else first
    for _ in range(rng.choice((1, 1, 2, 8))):
        value = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        data[rng.randrange(first, len(data))] = value
    survive(tmp_path, bytes(data))


@pytest.mark.sparse(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_changed_json(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    members = members_of(GOLDEN / f"{rng.choice(NAMES)}.pt2")
    member = rng.choice([MODEL, MODEL, WEIGHTS, CONSTANTS])
    members[member] = json.dumps(mutate_json(json.loads(members[member]), rng)).encode()
    survive(tmp_path, archive_of(members))


# What nodes claim.


LIMITED = r"y \(aten::\w+\): an array of .* would take .* constants"

HUGE: dict[str, tuple[dict[str, Argument], str]] = {
    "aten::tril_indices": ({"row": 2**20, "col": 2**20}, LIMITED),
    "aten::hann_window": ({"window_length": 2**40}, LIMITED),
    "aten::upsample_nearest1d": ({"self": Ref("x"), "output_size": [2**50]}, LIMITED),
    "aten::adaptive_max_pool1d": ({"self": Ref("x"), "output_size": [2**34]}, LIMITED),
    "aten::as_strided": ({"self": Ref("x"), "size": [2**40], "stride": [1]}, "of 4194304 elements"),
    "aten::histc": ({"self": Ref("x"), "bins": 2**40}, LIMITED),
    "aten::combinations": ({"self": Ref("n"), "r": 20}, LIMITED),
    "aten::diff": ({"self": Ref("x"), "n": 2**40}, "would take .* nodes"),
    "aten::mvlgamma": ({"self": Ref("x"), "p": 2**31}, "would take .* nodes"),
    "aten::tensor_split.sections": ({"self": Ref("x"), "sections": 2**30}, "1073741824 parts"),
    "aten::unbind": ({"self": Ref("x"), "dim": 2}, "4194304 parts"),
    "aten::split.Tensor": ({"self": Ref("x"), "split_size": -1, "dim": 2}, "-4194304 parts"),
    "aten::chunk": ({"self": Ref("x"), "chunks": 0, "dim": 2}, "0 chunks"),
}
"""Operators by name, with arguments of which no constant may be made, and what is said of them."""


@pytest.mark.parametrize("op", HUGE)
def test_no_constant_is_larger_than_the_limit(op: str) -> None:
    arguments, message = HUGE[op]
    graph = Graph(["x", "n"], [Node(op, "y", list(arguments.items()), ["y"])], [Ref("y")])
    inputs = [Input("x", "x", (1, 1, 2**22), "float32"), Input("n", "n", (100,), "float32")]
    model = TorchModel(graph, inputs, ["y"], {}, "pt2")
    start = time.process_time()
    with pytest.raises((LimitError, UnsupportedModelError), match=message):
        to_relay(model, TorchImportOptions(), Report())
    assert time.process_time() - start < 5


def test_an_argument_twice(tmp_path: Path) -> None:
    def change(text: dict[str, Any]) -> None:
        inputs = text["graph_module"]["graph"]["nodes"][0]["inputs"]
        inputs.append(inputs[0])

    refused(tmp_path, edited("cnn", MODEL, change), "two arguments of one name")


# The archive.


def test_a_member_twice(tmp_path: Path) -> None:
    path = write(tmp_path, golden("cnn"))
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("cnn/models/model.json", b"{}")
    refused(tmp_path, path.read_bytes(), r"'cnn/models/model\.json' occurs twice")


@pytest.mark.parametrize(
    "name", ["../up", "a/../../up", "/root", "C:/drive", "a\\..\\up", "a/nul\0l"]
)
def test_members_that_lead_out(tmp_path: Path, name: str) -> None:
    members = members_of(GOLDEN / "cnn.pt2")
    info = zipfile.ZipInfo("x")
    info.filename = name
    path = write(tmp_path, archive_of(members))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(info, b"")
    refused(tmp_path, path.read_bytes(), "the member .* (leaves|absolute|names a drive|null)")


def central(data: bytes, name: str) -> int:
    """Return where the directory describes a member."""
    at = data.rfind(name.encode()) - 46
    assert data[at : at + 4] == b"PK\1\2"
    return at


@pytest.mark.parametrize(
    ("offset", "layout", "value", "message"),
    [
        (8, "<H", 1, "is encrypted"),
        (10, "<H", 12, "is compressed by method 12"),
        (10, "<H", 8, "Error -3 while decompressing|Bad CRC-32"),
        (16, "<L", 7, r"models/model\.json: the checksum is not that"),
        (20, "<L", 7, "two lengths"),
        (42, "<L", 2**31, "Truncated file header"),
        (42, "<L", 3, "Bad magic number for file header"),
        (24, "<L", 2**32 - 1, "two lengths|Corrupt zip64"),
    ],
)
def test_directory_entries_that_lie(
    tmp_path: Path, offset: int, layout: str, value: int, message: str
) -> None:
    data = bytearray(archive_of(members_of(GOLDEN / "cnn.pt2")))
    struct.pack_into(layout, data, central(bytes(data), "any/models/model.json") + offset, value)
    refused(tmp_path, bytes(data), message)


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_TORCH_ARCHIVE_MEMBERS", 10)
    refused(tmp_path, golden("cnn"), "19 members, at most 10")


def test_too_long_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_TORCH_ARCHIVE_MEMBERS", 1)
    monkeypatch.setattr(archive, "CHUNK_BYTES", 100)
    refused(tmp_path, golden("cnn"), "a directory of .* bytes")


def bomb(size: int) -> bytes:
    """Return an archive whose only weight unpacks to a given length."""
    members = members_of(GOLDEN / "cnn.pt2")
    members["data/weights/weight_0"] = b""
    data = archive_of(members, compression=zipfile.ZIP_DEFLATED)
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = b"".join(packed.compress(bytes(2**20)) for _ in range(size >> 20)) + packed.flush()
    at = central(data, "any/data/weights/weight_0")
    (header,) = struct.unpack_from("<L", data, at + 42)
    name = b"any/data/weights/weight_0"
    begin = len(data) - 22 - struct.unpack_from("<L", data, len(data) - 10)[0]
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, 0, 0, 0, len(name), 0)
    moved = bytearray(data)
    struct.pack_into("<L", moved, at + 20, len(content))
    struct.pack_into("<L", moved, at + 24, size)
    struct.pack_into("<L", moved, at + 42, begin)
    struct.pack_into("<L", moved, len(moved) - 6, begin + len(local) + len(name) + len(content))
    assert header < begin
    return bytes(moved[:begin]) + local + name + content + bytes(moved[begin:])


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    data = bomb(64 * 2**20)
    assert len(data) < 2**18
    at = central(data, "any/data/weights/weight_0")
    larger = bytearray(data)
    struct.pack_into("<L", larger, at + 24, 2**31)
    tracemalloc.start()
    refused(tmp_path, bytes(larger), "unpacks to more than 1000 times its size")
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.wide
def test_a_member_that_unpacks_to_more_than_it_says(tmp_path: Path) -> None:
    data = bytearray(bomb(64 * 2**20))
    struct.pack_into("<L", data, central(bytes(data), "any/data/weights/weight_0") + 24, 864)
    refused(tmp_path, bytes(data), "Bad CRC-32")


def test_a_member_that_does_not_unpack(tmp_path: Path) -> None:
    data = bytearray(archive_of(members_of(GOLDEN / "cnn.pt2"), compression=zipfile.ZIP_DEFLATED))
    (header,) = struct.unpack_from("<L", data, central(bytes(data), "any/models/model.json") + 42)
    start = header + 30 + len("any/models/model.json")
    data[start : start + 40] = bytes(range(215, 255))
    refused(tmp_path, bytes(data), r"model\.json': Error -3")


# Members.


@pytest.mark.parametrize("member", [MODEL, WEIGHTS, CONSTANTS, "data/weights/weight_1"])
def test_missing_members(tmp_path: Path, member: str) -> None:
    refused(tmp_path, changed("cnn", {member: None}), "missing|expected a program")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "expected an object, found"),
        (b"{}", "the key 'schema_version' is missing"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"9" * 100_000, "expected an object|not JSON"),
        (b"\x80\x04\x95", "not JSON"),
    ],
)
def test_what_is_no_program(tmp_path: Path, content: bytes, message: str) -> None:
    refused(tmp_path, changed("cnn", {MODEL: content}), message)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"s77": {"min_val": 64, "max_val": 1}}, "s77: a range from 64 to 1"),
        ({"s77": {"min_val": "1", "max_val": 2}}, "s77.min_val: expected an integer"),
        ({"s77": {"min_val": 2**70, "max_val": None}}, "an integer beyond 64 bits"),
        ({"s77": [1, 2]}, "s77: expected an object"),
        ({"77 s": {"min_val": 1, "max_val": 2}}, "expected the length of an axis, found '77 s'"),
        ([1], "range_constraints: expected an object"),
    ],
)
def test_ranges_that_are_none(tmp_path: Path, ranges: Any, message: str) -> None:
    data = edited("cnn", MODEL, lambda model: {**model, "range_constraints": ranges})
    refused(tmp_path, data, message)


def test_too_many_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_TORCH_CONTAINERS", 100)
    refused(tmp_path, changed("cnn", {MODEL: b"[" + b"[]," * 100 + b"[]]"}), "102 lists and obj")


def test_too_long_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_TORCH_JSON_BYTES", 100)
    refused(tmp_path, golden("cnn"), r"model\.json: expected at most 100 bytes")


def test_subgraphs_nested_too_deep(tmp_path: Path) -> None:
    def edit(model: Any) -> None:
        graph = model["graph_module"]["graph"]
        inner: Any = {"inputs": [], "outputs": [], "nodes": []}
        for _ in range(40):
            argument = {"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}, "kind": 1}
            node = {"target": "torch.ops.higher_order.cond", "inputs": [argument]}
            node |= {"outputs": [], "metadata": {}}
            inner = {"inputs": [], "outputs": [], "nodes": [node]}
        graph["nodes"][:0] = inner["nodes"]

    path = write(tmp_path, edited("cnn", MODEL, edit))
    with pytest.raises(LimitError, match="--limit depth="):
        load_archive(path)


# The program.


def node(place: int, change: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda model: change(model["graph_module"]["graph"]["nodes"][place])


def reads(name: str) -> Callable[[Any], None]:
    return lambda found: found["inputs"][0].update(arg={"as_tensor": {"name": name}})


def gives(name: str) -> Callable[[Any], None]:
    return lambda found: found["outputs"][0]["as_tensor"].update(name=name)


def argument(value: Any) -> Callable[[Any], None]:
    return lambda found: found["inputs"][0].update(arg=value)


EDITS: dict[str, tuple[Callable[[Any], None], str]] = {
    "dangling": (node(0, reads("nowhere")), "reads 'nowhere', which nothing before it gives"),
    "cyclic": (node(0, reads("relu")), "reads 'relu', which nothing before it gives"),
    "itself": (node(0, reads("conv2d")), "reads 'conv2d', which nothing before it gives"),
    "name twice": (node(1, gives("conv2d")), "the name 'conv2d' is given twice"),
    "name of an input": (node(0, gives("x")), "the name 'x' is given twice"),
    "no name": (node(0, gives("")), "a value without a name"),
    "unknown kind": (node(0, argument({"as_new": 1})), "the unknown kind 'as_new'"),
    "two kinds": (node(0, argument({"as_int": 1, "as_bool": True})), "expected one key, found 2"),
    "no kind": (node(0, argument({})), "expected one key, found 0"),
    "no object": (node(0, argument(None)), "expected an object, found None"),
    "text as number": (node(0, argument({"as_int": "1"})), "expected an integer, found .1.$"),
    "true as number": (node(0, argument({"as_int": True})), "expected an integer, found True"),
    "number as float": (node(0, argument({"as_float": {}})), "expected a number"),
    "unknown dtype": (node(0, argument({"as_scalar_type": 77})), "the unknown number 77"),
    "object of C++": (
        node(0, argument({"as_custom_obj": {"name": "o", "class_fqn": "a.B"}})),
        r"'o' is an object of a\.B, which is not read",
    ),
    "graph as output": (
        node(0, lambda found: found.update(outputs=[{"as_graph": {"name": "", "graph": {}}}])),
        "a graph where there can be none",
    ),
    "number as output": (
        node(0, lambda found: found.update(outputs=[{"as_int": 3}])),
        "a node that gives 3",
    ),
    "outputs missing": (
        lambda model: model["graph_module"]["signature"].update(output_specs=[]),
        "0 outputs, where the graph has 1",
    ),
    "output dangling": (
        lambda model: model["graph_module"]["graph"].update(
            outputs=[{"as_tensor": {"name": "nowhere"}}]
        ),
        "reads 'nowhere'",
    ),
    "input without type": (
        lambda model: model["graph_module"]["graph"]["tensor_values"].update(x=None),
        "expected an object, found None",
    ),
    "negative length": (
        lambda model: model["graph_module"]["graph"]["tensor_values"]["x"]["sizes"].append(
            {"as_int": -4}
        ),
        "a length of -4",
    ),
    "too many axes": (
        lambda model: model["graph_module"]["graph"]["tensor_values"]["x"].update(
            sizes=[{"as_int": 1}] * 40
        ),
        "40 axes, at most 32",
    ),
    "no length": (
        lambda model: model["graph_module"]["graph"]["tensor_values"]["x"].update(
            sizes=[{"as_expr": {"expr_str": "__import__('os')"}}]
        ),
        "expected the length of an axis",
    ),
    "unknown input": (
        lambda model: model["graph_module"]["signature"]["input_specs"].append({"new": {}}),
        "an input of the unknown kind 'new'",
    ),
    "weight twice": (
        lambda model: model["graph_module"]["signature"]["input_specs"].append(
            model["graph_module"]["signature"]["input_specs"][0]
        ),
        "is given twice",
    ),
    "weight missing": (
        lambda model: model["graph_module"]["signature"]["input_specs"][0]["parameter"].update(
            parameter_name="nobody"
        ),
        "the tensor 'nobody' has no entry among the weights",
    ),
}


@pytest.mark.parametrize("kind", EDITS)
def test_programs_that_are_not_sound(tmp_path: Path, kind: str) -> None:
    edit, message = EDITS[kind]
    refused(tmp_path, edited("cnn", MODEL, edit), message)


def test_operators_that_nobody_knows_are_all_reported(tmp_path: Path) -> None:
    def edit(model: Any) -> None:
        for place, found in enumerate(model["graph_module"]["graph"]["nodes"][:2]):
            found["target"] = f"torch.ops.mine.gate{place}.default"

    path = write(tmp_path, edited("cnn", MODEL, edit))
    with pytest.raises(UnsupportedModelError) as found:
        serde.to_relay(path)
    assert [issue.op for issue in found.value.report.issues] == ["mine::gate0", "mine::gate1"]
    assert "tests/support/torch_archives.py:" in str(found.value)


# Weights.


def entry(**changes: Any) -> Callable[[Any], None]:
    return lambda config: config["config"]["stem.0.weight"].update(changes)


def meta(**changes: Any) -> Callable[[Any], None]:
    return lambda config: config["config"]["stem.0.weight"]["tensor_meta"].update(changes)


def ints(*values: int) -> list[dict[str, int]]:
    return [{"as_int": value} for value in values]


LIES: dict[str, tuple[Callable[[Any], None], str]] = {
    "sizes": (meta(sizes=ints(80, 3, 3, 3)), "need 8640 bytes, found 864"),
    "huge sizes": (meta(sizes=ints(2**61, 2**61, 3, 3)), "need .* bytes, found 864"),
    "strides": (meta(strides=ints(270, 9, 3, 1)), "need .* bytes, found 864"),
    "negative strides": (meta(strides=ints(-27, 9, 3, 1)), "expected a length"),
    "offset": (meta(storage_offset={"as_int": 1}), "need 868 bytes, found 864"),
    "negative offset": (meta(storage_offset={"as_int": -1}), "expected a length"),
    "axes": (meta(sizes=ints(*[1] * 40), strides=ints(*[1] * 40)), "40 axes, at most 32"),
    "fewer strides": (meta(strides=ints(1)), "4 lengths and 1 strides"),
    "empty and huge": (meta(sizes=ints(0, 2**61, 2**61, 3)), "are too large"),
    "symbolic": (meta(sizes=[{"as_expr": {"expr_str": "s0"}}] * 4), "expected a length"),
    "dtype": (meta(dtype=8), "need 1728 bytes, found 864"),
    "unknown dtype": (meta(dtype=14), "a weight of dtype 14"),
    "dtype of halves": (meta(dtype=9), "a weight of dtype 9"),
    "sparse": (meta(layout=1), "a sparse weight"),
    "pickle": (entry(use_pickle=True), "'stem.0.weight' is a pickle, which is not read"),
    "no facts": (entry(tensor_meta=None), "expected an object, found None"),
    "path out": (entry(path_name="../../models/model.json"), "leaves the directory"),
    "absolute path": (entry(path_name="/etc/passwd"), "is an absolute path"),
    "no member": (entry(path_name="weight_99"), "'data/weights/weight_99' is missing"),
}


@pytest.mark.parametrize("kind", LIES)
def test_weights_that_lie(tmp_path: Path, kind: str) -> None:
    edit, message = LIES[kind]
    tracemalloc.start()
    refused(tmp_path, edited("cnn", WEIGHTS, edit), message)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_a_weight_that_repeats_its_values_without_end(tmp_path: Path) -> None:
    path = write(tmp_path, edited("cnn", WEIGHTS, meta(sizes=ints(2**40, 3), strides=ints(0, 1))))
    with pytest.raises(LimitError, match=r"13,194,139,533,312 bytes of which 864 .* constants="):
        serde.to_relay(path)


def test_weights_that_were_left_out(tmp_path: Path) -> None:
    data = changed("cnn", {"data/weights/weight_0": b""})
    refused(tmp_path, data, "exported without its weights")


def test_a_file_that_shrinks(tmp_path: Path) -> None:
    path = write(tmp_path, golden("cnn"))
    model = load_archive(path)
    path.write_bytes(golden("cnn")[:1000])
    with pytest.raises(FormatError, match="the file changed while it was being read"):
        model.weights["head.weight"].array()


def test_weights_of_the_other_byte_order(tmp_path: Path) -> None:
    refused(tmp_path, changed("cnn", {"byteorder": b"big"}), "byte order 'big'")
