"""Bad ONNX models through the public functions: one error each, in time, and nothing is written."""

from __future__ import annotations

import copy
import gzip
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import serde
from serde.errors import FormatError, LimitError, SerdeError, UnsupportedModelError

DATA = np.arange(500, dtype=np.float32)
HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>'
SECONDS = 5.0
"""A bound that a loaded machine keeps; each takes far less than one."""
MEMORY = 64 * 2**20


def graph_of(nodes: str, more: str = "") -> onnx.ModelProto:
    """A model of one input and one output of 500 numbers."""
    return parser.parse_model(f"{HEAD} g (float[500] x) => (float[500] y) {{ {nodes} }} {more}")


def weighted() -> onnx.ModelProto:
    """A sound model with a weight."""
    proto = graph_of("y = Neg (x)")
    proto.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "w"], ["y"], name="add"))
    proto.graph.initializer.append(numpy_helper.from_array(DATA, "w"))
    return proto


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    """The sound model with something wrong."""
    proto = weighted()
    change(proto)
    return proto


def opset(version: int) -> onnx.ModelProto:
    proto = weighted()
    proto.opset_import[0].version = version
    return proto


def external(**entries: str) -> onnx.ModelProto:
    """The sound model with its weight described by `entries`."""
    proto = weighted()
    tensor = TensorProto(name="w", data_type=1, dims=[500], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    proto.graph.initializer[0].CopyFrom(tensor)
    return proto


OWN = '<domain: "own", opset_import: ["" : 17, "own" : 1]>'
FUNCTION = OWN + " {name} (a) => (b) {{ b = own.{calls} (a) }}"
EXPANDING = OWN + " f{n} (a) => (c) {{ b = own.f{m} (a) c = own.f{m} (b) }}"


def functions(*pairs: tuple[str, str]) -> onnx.ModelProto:
    more = " ".join(FUNCTION.format(name=name, calls=calls) for name, calls in pairs)
    return graph_of("y = own.f (x)", more)


def exploding() -> onnx.ModelProto:
    """Functions of two calls each: 30 of them expand to a thousand million nodes."""
    more = " ".join(EXPANDING.format(n=n + 1, m=n) for n in range(30))
    leaf = '<domain: "own", opset_import: ["" : 17]> f0 (a) => (b) { b = Neg (a) }'
    return graph_of("y = own.f30 (x)", f"{leaf} {more}")


def second_function() -> onnx.ModelProto:
    proto = functions(("f", "g"), ("g", "h"))
    proto.functions.append(copy.deepcopy(proto.functions[0]))
    return proto


def initializer(**fields: object) -> onnx.ModelProto:
    """The sound model with another tensor as its weight."""
    proto = weighted()
    proto.graph.initializer[0].CopyFrom(TensorProto(name="w", **fields))
    return proto


RAW = DATA.tobytes()

UNSOUND: dict[str, Callable[[], onnx.ModelProto]] = {
    "cycle": lambda: graph_of("a = Neg (b) b = Neg (a) y = Neg (a)"),
    "cycle of one": lambda: graph_of("y = Neg (y)"),
    "missing input": lambda: graph_of("y = Add (x, nothing)"),
    "missing output": lambda: graph_of("z = Neg (x)"),
    "two writers": lambda: graph_of("y = Neg (x) y = Abs (x)"),
    "input written": lambda: graph_of("x = Neg (x) y = Abs (x)"),
    "initializer written": lambda: changed(lambda p: p.graph.node[0].output.append("w")),
    "second initializer": lambda: changed(
        lambda p: p.graph.initializer.append(p.graph.initializer[0])
    ),
    "second input": lambda: changed(lambda p: p.graph.input.append(p.graph.input[0])),
    "attribute twice": lambda: graph_of("y = Softmax <axis = 0, axis = 0> (x)"),
    "no outputs": lambda: changed(lambda p: p.graph.ClearField("output")),
    "opset 0": lambda: opset(0),
    "opset -1": lambda: opset(-1),
    "opset 999": lambda: opset(999),
    "opset missing": lambda: changed(lambda p: p.ClearField("opset_import")),
    "two opsets": lambda: changed(lambda p: p.opset_import.add(domain="ai.onnx", version=11)),
    "IR 0": lambda: changed(lambda p: setattr(p, "ir_version", 0)),
    "IR negative": lambda: changed(lambda p: setattr(p, "ir_version", -1)),
    "IR 999": lambda: changed(lambda p: setattr(p, "ir_version", 999)),
    "dims too few": lambda: initializer(data_type=1, dims=[499], raw_data=RAW),
    "dims too many": lambda: initializer(data_type=1, dims=[501], raw_data=RAW),
    "dims negative": lambda: initializer(data_type=1, dims=[-500], raw_data=RAW),
    "dims overflow": lambda: initializer(data_type=1, dims=[2**62, 2**62], raw_data=RAW),
    "dtype wider": lambda: initializer(data_type=11, dims=[500], raw_data=RAW),
    "dtype unknown": lambda: initializer(data_type=99, dims=[500], raw_data=RAW),
    "raw and typed": lambda: initializer(
        data_type=1, dims=[500], raw_data=RAW, float_data=DATA.tolist()
    ),
    "typed too few": lambda: initializer(data_type=1, dims=[3], float_data=[1.0, 2.0]),
    "typed elsewhere": lambda: initializer(data_type=1, dims=[2], int64_data=[1, 2]),
    "no data": lambda: initializer(data_type=1, dims=[500]),
    "small no data": lambda: initializer(data_type=1, dims=[1000000000000]),
    "function of itself": lambda: functions(("f", "f")),
    "functions in a circle": lambda: functions(("f", "g"), ("g", "h"), ("h", "f")),
    "function defined twice": second_function,
    "location above": lambda: external(location="../secret"),
    "location absolute": lambda: external(location="/etc/hostname"),
    "location of a drive": lambda: external(location="C:\\secret"),
    "location of a share": lambda: external(location="\\\\server\\share"),
    "location null": lambda: external(location="w.data\0"),
    "location link": lambda: external(location="link"),
    "location hard link": lambda: external(location="hard"),
    "location pipe": lambda: external(location="fifo"),
    "location folder": lambda: external(location="sub"),
    "location missing": lambda: external(location="none"),
    "offset negative": lambda: external(location="w.data", offset="-4"),
    "offset behind": lambda: external(location="w.data", offset="1999"),
    "offset no number": lambda: external(location="w.data", offset="0x10"),
    "length negative": lambda: external(location="w.data", length="-2000"),
    "length huge": lambda: external(location="w.data", length=str(2**60)),
    "length wrong": lambda: external(location="w.data", length="1996"),
    "key unknown": lambda: external(location="w.data", colour="red"),
    "key dunder": lambda: external(location="w.data", __class__="x"),
}
"""Models that are not sound."""

REFUSED = {
    "too few inputs": lambda: graph_of("y = Add (x)"),
    "too many inputs": lambda: graph_of("y = Neg (x, x)"),
    "no inputs": lambda: graph_of("y = Neg ()"),
    "a required input empty": lambda: graph_of("y = Add (, x)"),
    "unknown operator": lambda: graph_of("y = Gate (x)"),
    "unknown domain": lambda: graph_of("y = other.Neg (x)"),
    "unknown attribute": lambda: graph_of("y = Neg <scale = 2> (x)"),
    "attribute of another kind": lambda: graph_of('y = Softmax <axis = "last"> (x)'),
    "axis outside": lambda: graph_of("y = Softmax <axis = 7> (x)"),
    "shapes that do not fit": lambda: graph_of(
        "a = Constant <value_floats=[1.0, 2.0]> () y = Add (x, a)"
    ),
    "dtypes that do not fit": lambda: graph_of("a = Constant <value_int=1> () y = Add (x, a)"),
    "a function with too many inputs": lambda: functions(("f", "g")),
}
"""Models that are sound as graphs, but name what no operator allows."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with good data, beside a file that a model in it must not reach."""
    (tmp_path / "secret").write_bytes(RAW)
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    (inside / "w.data").write_bytes(RAW)
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "hard").hardlink_to(tmp_path / "secret")
    os.mkfifo(inside / "fifo")
    return inside


@contextmanager
def bounded() -> Iterator[None]:
    """Check that what is done takes little time and memory."""
    serde.to_relay(weighted())
    tracemalloc.start()
    start = time.perf_counter()
    try:
        yield
    finally:
        taken, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert taken < SECONDS
    assert peak < MEMORY


def refuses(path: Path, kind: type[SerdeError]) -> None:
    """Check that a file is refused by every way in, and that none of them writes."""
    before = {each: each.lstat().st_mtime_ns for each in path.parent.rglob("*")}
    target = path.parent.parent / "out"
    target.mkdir()
    with bounded():
        with pytest.raises(kind):
            serde.to_relay(path)
        with pytest.raises(kind):
            serde.convert(path, target / "m.onnx")
    assert list(target.iterdir()) == []
    assert {each: each.lstat().st_mtime_ns for each in path.parent.rglob("*")} == before


def test_the_sound_models_are_sound(place: Path) -> None:
    onnx.save(weighted(), place / "m.onnx")
    serde.convert(place / "m.onnx", place / "again.onnx")
    assert (place / "again.onnx").exists()
    (place / "e.onnx").write_bytes(
        external(location="w.data", offset="0", length="2000").SerializeToString()
    )
    np.testing.assert_array_equal(serde.to_relay(place / "e.onnx").params["w"].array(), DATA)


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound(place: Path, name: str) -> None:
    path = place / "m.onnx"
    path.write_bytes(UNSOUND[name]().SerializeToString())
    refuses(path, FormatError)


def test_functions_that_explode(place: Path) -> None:
    path = place / "m.onnx"
    path.write_bytes(exploding().SerializeToString())
    refuses(path, LimitError)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(place: Path, name: str) -> None:
    path = place / "m.onnx"
    path.write_bytes(REFUSED[name]().SerializeToString())
    refuses(path, UnsupportedModelError)


@pytest.mark.wide
@pytest.mark.parametrize("name", [name for name in UNSOUND if not name.startswith("location")])
def test_unsound_messages(name: str) -> None:
    """The same in memory: a message and its bytes."""
    proto = UNSOUND[name]()
    for source in (proto, proto.SerializeToString()):
        with bounded(), pytest.raises(SerdeError):
            serde.to_relay(source)


HUGE = 10**12

LARGE = {
    "Constant": f"c = Constant <value_ints=[{HUGE}]> () a = ConstantOfShape (c) b = ReduceSum (a)",
    "Expand": f"c = Constant <value_ints=[{HUGE}, 500]> () a = Expand (x, c) b = ReduceSum (a)",
    "Tile": f"c = Constant <value_ints=[{HUGE}]> () a = Tile (x, c) b = ReduceSum (a)",
    "Range": f"o = Constant <value_int=0> () n = Constant <value_int={HUGE}> () "
    "d = Constant <value_int=1> () r = Range (o, n, d) a = Cast <to=1> (r) b = ReduceSum (a)",
    "Pad": f"c = Constant <value_ints=[0, {HUGE}]> () a = Pad (x, c) b = ReduceSum (a)",
    "OneHot": f"i = Constant <value_ints=[1]> () n = Constant <value_int={HUGE}> () "
    "v = Constant <value_floats=[0.0, 1.0]> () a = OneHot (i, n, v) b = ReduceSum (a)",
    "EyeLike": "c = Constant <value_ints=[1000000, 1000000]> () z = ConstantOfShape (c) "
    "a = EyeLike (z) b = ReduceSum (a)",
}
"""Nodes that would take terabytes if they were evaluated beforehand."""


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_is_not_evaluated(place: Path, name: str) -> None:
    """It is taken as it is or refused; either way, in little time and memory."""
    path = place / "m.onnx"
    path.write_bytes(graph_of(f"{LARGE[name]} y = Add (x, b)").SerializeToString())
    with bounded():
        try:
            serde.to_relay(path)
            serde.convert(path, place / "again.onnx")
        except SerdeError:
            assert not (place / "again.onnx").exists()


@pytest.mark.parametrize("part", [1, 7, 31, 63])
def test_truncated(place: Path, part: int) -> None:
    data = weighted().SerializeToString()
    (place / "m.onnx").write_bytes(data[: len(data) * part // 64])
    refuses(place / "m.onnx", FormatError)


@pytest.mark.wide
def test_a_compressed_file_is_not_unpacked(place: Path) -> None:
    (place / "m.onnx").write_bytes(gzip.compress(bytes(2**28), 1))
    refuses(place / "m.onnx", FormatError)
