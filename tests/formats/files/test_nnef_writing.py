"""What is written of NNEF: the text, labels, files of tensors, folders and archives.

Texts are judged by Khronos' own parser, files of tensors by the package's own writer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import Array, ArrayWeight, FileWeight, OpenFile, Weight
from serde.errors import OptionError, Unsupported, UnsupportedModelError
from serde.nnef import codec, writer
from serde.nnef.dat import HEADER_BYTES, write_header
from serde.nnef.exporter import from_relay
from serde.nnef.model import NnefModel, Operation, Quantization, Ref
from serde.nnef.names import Identifiers, Labels
from serde.nnef.options import NnefExportOptions
from serde.nnef.text.printer import graph_text, literal, quantization_text
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.transform.infer_type import InferType

nnef = pytest.importorskip("nnef")


def model(
    params: list[Var], body: Any, weights: dict[str, Any], outputs: tuple[str, ...] = ("out",)
) -> RelayModel:
    """A model of a function."""
    module = InferType()(IRModule.from_expr(Function(params, body)))
    inputs = tuple(each.name_hint for each in params if each.name_hint not in weights)
    held = {
        name: each if isinstance(each, Weight) else ArrayWeight(each)
        for name, each in weights.items()
    }
    return RelayModel(module, held, ModelMeta(inputs, outputs))


def written(given: RelayModel, report: Report | None = None) -> NnefModel:
    """A model as NNEF, whose text Khronos' parser reads and whose shapes it infers."""
    native = from_relay(given, NnefExportOptions(), Report() if report is None else report)
    parsed(graph_text(native))
    return native


def parsed(text: str, quantization: str | None = None) -> Any:
    """What Khronos' parser reads, with the shapes that the package infers."""
    graph = nnef.parse_string(text, quantization, stdlib="", lowered=[])
    nnef.infer_shapes(graph)
    return graph


def lines(native: NnefModel) -> list[str]:
    """The assignments of a text."""
    text = graph_text(native)
    return [line.strip() for line in text[text.index("{") + 1 : text.rindex("}")].split("\n")[1:-1]]


def add(*names: str) -> RelayModel:
    """The sum of an input and weights."""
    variables = [relay.var(name, shape=(2, 3)) for name in names]
    body: Expr = variables[0]
    for each in variables[1:]:
        body = relay.add(body, each)
    weights = {name: np.full((2, 3), i, "float32") for i, name in enumerate(names[1:])}
    return model(variables, body, weights)


# The text.


def test_a_text_is_what_one_would_write() -> None:
    x, w, b = relay.var("x", shape=(1, 2, 4, 4)), relay.var("conv/w", shape=(3, 2, 3, 3)), None
    b = relay.var("conv/b", shape=(3,))
    y = relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1)), b)
    weights = {"conv/w": np.ones((3, 2, 3, 3), "float32"), "conv/b": np.ones(3, "float32")}
    assert graph_text(written(model([x, w, b], relay.nn.relu(y), weights))) == (
        "version 1.0;\n\n"
        "graph network(x) -> (out)\n{\n"
        "    x = external(shape = [1, 2, 4, 4]);\n"
        "    conv_w = variable(shape = [3, 2, 3, 3], label = 'conv/w');\n"
        "    conv_b = variable(shape = [1, 3], label = 'conv/b');\n"
        "    conv2d = conv(x, conv_w, conv_b, padding = [(1, 1), (1, 1)]);\n"
        "    out = relu(conv2d);\n"
        "}\n"
    )


def test_names_that_are_no_identifiers_are_told() -> None:
    report = Report()
    native = written(add("in put:0", "../w", "graph"), report)
    assert native.inputs == ("in_put_0",)
    assert "in_put_0 = external(shape = [2, 3]);  # in put:0" in lines(native)
    assert "w = variable(shape = [2, 3], label = '_/w');  # ../w" in lines(native)
    assert "_graph = variable(shape = [2, 3], label = 'graph');" in lines(native)
    assert report.notes == ["'in put:0' is called in_put_0"]


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("x", "x"), ("_x", "_x"), ("a.b", "a_b"), ("9", "_9"), ("", "x"), ("ä", "x"),
        ("shape_of", "_shape_of"), ("in", "_in"), ("a\nb", "a_b"), ("relu", "relu1"),
    ],
)  # fmt: skip
def test_identifiers(name: str, identifier: str) -> None:
    found = Identifiers().claim(name)
    assert found == identifier
    text = (
        f"version 1.0; graph g(i) -> ({found}) {{ i = external(shape = [1]); {found} = relu(i);}}"
    )
    assert parsed(text).outputs == [found]


def test_identifiers_are_distinct_and_bounded() -> None:
    names = Identifiers()
    found = [names.claim(each) for each in ("a", "a", "a_1", "a.1", "b" * 500, "b" * 499 + "c")]
    assert found[:4] == ["a", "a_1", "a_1_1", "a_1_2"]
    assert len(set(found)) == 6
    assert max(map(len, found)) <= 120


@pytest.mark.parametrize(
    "value",
    [
        0.1, -0.0, 0.0, 1e-45, 3.4028235e38, 1.17549435e-38, 16777216.0, 1e22, -1.5, 1 / 3,
        2.0**-149, float(np.nextafter(np.float32(1), np.float32(2))),
    ],
)  # fmt: skip
def test_a_literal_is_the_number(value: float) -> None:
    text = f"version 1.0; graph g(x) -> (y) {{ x = external(shape = [1]); y = add(x, {literal(value)});}}"  # noqa: E501
    found = parsed(text).operations[1].inputs["y"]
    assert np.float32(found).tobytes() == np.float32(value).tobytes()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_no_literal_says_is_a_variable(value: float) -> None:
    x = relay.var("x", shape=(2,))
    native = written(model([x], relay.add(x, relay.const(np.float32(value))), {}))
    (label,) = native.weights
    assert native.weights[label].shape == ()
    np.testing.assert_array_equal(native.weights[label].array(), np.float32(value))


@pytest.mark.parametrize(("dtype", "count"), [("float32", 0), ("float64", 1)])
def test_a_number_that_takes_64_bits_is_a_variable(dtype: str, count: int) -> None:
    x = relay.var("x", shape=(2,), dtype=dtype)
    native = written(model([x], relay.add(x, relay.const(0.1, dtype)), {}))
    assert len(native.weights) == count


def test_negative_zero_is_no_default() -> None:
    x = Operation("external", {}, {"shape": (1, 2)}, ("x",), "scalar")
    pads = {"padding": ((0, 0), (1, 1)), "border": "constant"}
    for value, told in ((0.0, ""), (-0.0, ", value = -0.0")):
        pad = Operation("pad", {"input": Ref("x")}, {**pads, "value": value}, ("y",))
        native = NnefModel("g", ("x",), ("y",), [x, pad])
        assert lines(native)[1] == f"y = pad(x, padding = [(0, 0), (1, 1)]{told});"
        parsed(graph_text(native))


def test_constants_stand_in_front_and_are_written_once() -> None:
    x = relay.var("x", shape=(4, 3))
    small = relay.const(np.array([1, 2, 3], "float32"))
    large = relay.const(np.arange(12, dtype="float32").reshape(4, 3))
    y = relay.multiply(relay.add(relay.add(x, small), small), large)
    native = written(model([x], relay.multiply(y, large), {}))
    assert [each.op for each in native.operations] == [
        "external", "variable", "constant", *["add"] * 2, *["mul"] * 2,
    ]  # fmt: skip


def test_an_output_that_is_an_input_or_a_constant_is_copied() -> None:
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    body = relay.Tuple([x, w, relay.const(np.float32(2.5)), x])
    names = ("x", "b", "c", "d")
    native = written(model([x, w], body, {"w": np.ones(2, "float32")}, names))
    assert lines(native)[2:] == [
        "x_1 = copy(x);  # x", "b = copy(w);", "c = constant(shape = [], value = [2.5]);",
        "d = copy(x);",
    ]  # fmt: skip


# Weights.


def test_a_weight_in_two_shapes_is_stored_once() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 2, 3))
    w = relay.var("w", shape=(3,))
    body = relay.Tuple([relay.add(x, w), relay.add(y, w), relay.multiply(w, x)])
    native = written(model([x, y, w], body, {"w": np.ones(3, "float32")}, ("a", "b", "c")))
    assert list(native.weights) == ["w"]
    variables = [each for each in native.operations if each.op == "variable"]
    assert len(variables) == 1
    reshapes = [each for each in native.operations if each.op == "reshape"]
    assert [each.attributes["shape"] for each in reshapes] == [[1, 1, 3]]


def test_a_weight_that_is_used_twice_is_stored_once(tmp_path: Path) -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(2, 3))
    native = written(model([x, w], relay.add(relay.multiply(x, w), w), {"w": np.ones((2, 3), "f")}))
    writer.save(native, tmp_path / "net")
    assert sorted(each.name for each in (tmp_path / "net").iterdir()) == ["graph.nnef", "w.dat"]


def test_weights_that_are_the_same_bytes_are_stored_once(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(np.arange(12, dtype="float32").tobytes())
    with OpenFile.open(tmp_path / "data") as opened:
        tied, apart = (
            [FileWeight(opened.range(start, 24), (2, 3), "float32") for _ in range(2)]
            for start in (0, 24)
        )
    x = relay.var("x", shape=(2, 3))
    variables = [relay.var(name, shape=(2, 3)) for name in ("a", "b", "c")]
    body: Expr = x
    for each in variables:
        body = relay.add(body, each)
    weights = {"a": tied[0], "b": tied[1], "c": apart[0]}
    native = written(model([x, *variables], body, weights))
    assert list(native.weights) == ["a", "c"]
    assert lines(native)[3] == "add1 = add(x, a);"
    assert lines(native)[4] == "add2 = add(add1, a);"


DTYPES = [
    *("float16", "float32", "float64", "bool"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
]
SHAPES = [
    (), (0,), (9,), (3, 5), (2, 0, 3), (2, 3, 4), (1, 2, 3, 4), (1, 2, 1, 3, 2), (1,) * 6,
    (2, 1, 2, 1, 2, 1, 2), (2,) * 8,
]  # fmt: skip


def values(shape: tuple[int, ...], dtype: str) -> Array:
    """Numbers of a dtype."""
    found = np.random.default_rng(3).integers(0, 200, shape)
    return (found % 2 == 0 if dtype == "bool" else found).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_file_of_a_tensor_is_that_of_the_package(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    data = values(shape, dtype)
    with (tmp_path / "own.dat").open("wb") as file:
        nnef.write_tensor(file, data)
    native = NnefModel("g", (), (), [], {"a/w": ArrayWeight(data)})
    writer.save(native, tmp_path / "net")
    assert (tmp_path / "net" / "a" / "w.dat").read_bytes() == (tmp_path / "own.dat").read_bytes()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint64"])
def test_quantised_data_are_those_of_the_package(dtype: str, tmp_path: Path) -> None:
    data = values((3, 4), dtype)
    with (tmp_path / "own.dat").open("wb") as file:
        nnef.write_tensor(file, data, quantized=True)
    native = NnefModel("g", (), (), [], {"w": ArrayWeight(data)}, stored_quantized=frozenset(["w"]))
    writer.save(native, tmp_path / "net")
    assert (tmp_path / "net" / "w.dat").read_bytes() == (tmp_path / "own.dat").read_bytes()


@pytest.mark.parametrize(
    ("shape", "dtype", "told"),
    [
        ((2**30,), "float32", "4 GiB"),
        ((2**32, 0), "float32", "4 GiB"),
        ((1,) * 9, "float32", "8 axes"),
        ((2,), "bfloat16", "bfloat16"),
        ((2,), "int4", "int4"),
    ],
)
def test_tensors_that_no_file_holds_are_refused(
    shape: tuple[int, ...], dtype: str, told: str
) -> None:
    with pytest.raises(Unsupported, match=told):
        write_header(shape, dtype)


def test_a_weight_of_4_gib_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.truncate(2**32)
    x, w = relay.var("x", shape=(2**30,)), relay.var("w", shape=(2**30,))
    with OpenFile.open(path) as opened:
        weight = FileWeight(opened.range(0, 2**32), (2**30,), "float32")
    given = model([x, w], relay.add(x, w), {"w": weight})
    with pytest.raises(UnsupportedModelError, match="4 GiB"):
        serde.from_relay(given, format="nnef", path=tmp_path / "net_nnef")
    assert not (tmp_path / "net_nnef").exists()


# Labels.


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("a/b.weight", "a/b.weight"), ("../a", "_/a"), ("a/../b", "a/_/b"), ("/a/b", "a/b"),
        ("C:\\x\\y", "C__x_y"), ("a./b.", "a/b"), ("a//b/", "a/b"), ("..", "_"), ("", "_"),
        ("./a", "_/a"), ("a b", "a b"), ("日本/重", "日本/重"), ("it's \"w\"\n", "it_s _w__"),
        ("w:0", "w_0"), ("aux/nul.x", "_aux/_nul.x"), ("graph.nnef/w", "graph.nnef_/w"),
        ("W.DAT/w", "W.DAT_/w"), ("a\0b", "a_b"), ("\ud800", "_"),
    ],
)  # fmt: skip
def test_a_label_is_the_path_of_a_file_in_the_folder(name: str, label: str, tmp_path: Path) -> None:
    native = written(add("x", name))
    assert list(native.weights) == [label]
    root = writer.save(native, tmp_path / "net")
    files = sorted(each.relative_to(root).as_posix() for each in root.rglob("*") if each.is_file())
    assert files == sorted(["graph.nnef", f"{label}.dat"])
    graph = nnef.load_graph(str(root), stdlib="", lowered=[])
    assert graph.operations[1].attribs["label"] == label
    assert list(codec.load(root).weights) == [label]


@pytest.mark.parametrize(
    "names",
    [
        ("w", "W"), ("é", "e\u0301"), ("a/b", "A/b"), ("a", "a/b"), ("a.dat/b", "a"),
        ("a b", "a_b", "a:b"), ("w_1", "w", "w."), ("../w", "/w", "w"), ("ﬁ", "fi"),
    ],
    ids=str,
)  # fmt: skip
def test_labels_are_apart_on_every_system(names: tuple[str, ...]) -> None:
    labels = Labels()
    found = [labels.claim(each) for each in names]
    assert len({each.casefold() for each in found}) == len(names)
    files = {f"{each}.dat".casefold() for each in found}
    folders = {each.casefold() for path in found for each in path.split("/")[:-1]}
    assert not files & folders


def test_long_labels_end_in_a_digest(tmp_path: Path) -> None:
    names = ["x" * 300, "x" * 299 + "y", "é" * 300, "/".join(["part"] * 400)]
    native = written(add("x", *names))
    assert len(native.weights) == len(names)
    root = writer.save(native, tmp_path / "net")
    assert len(nnef.load_graph(str(root), stdlib="", lowered=[]).operations) == 9


@pytest.mark.parametrize("label", ["../w", "/w", "a/../../w", "C:/w", ""])
def test_a_label_that_leaves_the_folder_is_never_written(label: str, tmp_path: Path) -> None:
    native = NnefModel("g", (), (), [], {label: ArrayWeight(np.ones(2, "float32"))})
    for name in ("net", "net.tgz"):
        with pytest.raises(serde.FormatError, match="label"):
            writer.save(native, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# What graph.quant says.


def test_quantisation_is_read_by_the_parser(tmp_path: Path) -> None:
    operations = [
        Operation("external", {}, {"shape": (1, 4)}, ("x",), "scalar"),
        Operation("variable", {}, {"shape": (1, 4), "label": "w"}, ("w",), "scalar"),
        Operation("add", {"x": Ref("x"), "y": Ref("w")}, {}, ("y",)),
    ]
    entries = {
        "w": Quantization(
            "zero_point_linear_quantize",
            {"zero_point": -3, "scale": 0.1, "bits": 8, "signed": True, "symmetric": False},
        ),
        "y": Quantization("linear_quantize", {"min": -1.0, "max": 1.0, "bits": 8}),
    }
    native = NnefModel(
        "g", ("x",), ("y",), operations, {"w": ArrayWeight(np.arange(4, dtype="int8")[None])},
        quantization=entries, stored_quantized=frozenset(["w"]),
    )  # fmt: skip
    tensors = parsed(graph_text(native), quantization_text(native)).tensors
    for name, entry in entries.items():
        found = tensors[name].quantization
        assert found["op-name"] == entry.op
        for key, value in entry.attributes.items():
            assert np.float32(found[key]) == np.float32(value)
    root = writer.save(native, tmp_path / "net")
    assert nnef.load_graph(str(root), stdlib="", lowered=[]).tensors["y"].quantization
    assert codec.load(root).quantization == entries
    assert codec.load(writer.save(native, tmp_path / "net.tgz")).quantization == entries


# Folders and archives.


def content(path: Path) -> dict[str, bytes]:
    """The files of a folder by their paths."""
    files = (each for each in path.rglob("*") if each.is_file())
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in files}


@pytest.mark.parametrize("suffix", [".nnef.tgz", ".nnef.tar.gz"])
def test_an_archive_holds_what_the_folder_has(suffix: str, tmp_path: Path) -> None:
    native = written(add("x", "b/w", "a", "n" * 190 + "/" + "m" * 190))
    root = writer.save(native, tmp_path / "net")
    path = writer.save(native, tmp_path / f"net{suffix}")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        found = {each.name: archive.extractfile(each).read() for each in members}  # type: ignore[union-attr]
    assert found == content(root)
    assert [each.name for each in members[1:]] == sorted(each.name for each in members[1:])
    assert {(each.mtime, each.uid, each.uname, each.mode) for each in members} == {
        (0, 0, "", 0o644)
    }
    assert path.read_bytes()[4:8] == bytes(4)


def test_an_archive_is_the_same_under_any_name(tmp_path: Path) -> None:
    native = written(add("x", "w"))
    one, other = (writer.save(native, tmp_path / f"{name}.nnef.tgz") for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("name", "replaced"),
    [
        ("graph.quant", True),
        ("old.dat", True),
        ("a/w.dat", False),
        ("activations.dat", False),
        ("notes.txt", False),
        ("a/graph.quant", False),
    ],
)
def test_which_folders_are_replaced(name: str, replaced: bool, tmp_path: Path) -> None:
    root = writer.save(written(add("x", "old")), tmp_path / "net_nnef")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(b"")
    before = content(root)
    if replaced:
        writer.save(written(add("x", "new")), root)
        assert content(root).keys() == {"graph.nnef", "new.dat"}
        return
    with pytest.raises(OptionError, match="package to replace"):
        writer.check_target(root)
    with pytest.raises(OptionError, match="package to replace"):
        writer.save(written(add("x", "new")), root)
    assert content(root) == before


def test_a_folder_with_a_link_is_not_replaced(tmp_path: Path) -> None:
    root = writer.save(written(add("x", "w")), tmp_path / "net_nnef")
    (root / "v.dat").symlink_to(root / "w.dat")
    with pytest.raises(OptionError, match="package to replace"):
        writer.save(written(add("x", "w")), root)


@pytest.mark.parametrize("name", ["net_nnef", "net.nnef.tgz"])
def test_a_disk_that_fails_leaves_what_was_there(name: str, tmp_path: Path) -> None:
    class Broken(Weight):
        shape = (2, 3)
        dtype = "float32"

        def rows(self, start: int, stop: int) -> Array:
            raise OSError("the disk is gone")

    path = writer.save(written(add("x", "w")), tmp_path / name)
    before = content(tmp_path)
    given = add("x", "a", "w")
    broken = given.evolve(params={**given.params, "w": Broken()})
    with pytest.raises(OSError, match="the disk is gone"):
        writer.save(written(broken), path)
    assert content(tmp_path) == before


class _Zeros(Weight):
    """A weight of 256 MiB that is nowhere."""

    shape = (2**20, 64)
    dtype = "float32"

    def rows(self, start: int, stop: int) -> Array:
        return np.zeros((stop - start, 64), "float32")

    def chunks(self) -> Iterator[memoryview]:
        for _ in range(64):
            yield memoryview(bytes(2**22))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["net", "net.tgz"])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_memory_does_not_grow_with_weights(name: str, dtype: str, tmp_path: Path) -> None:
    """In a process of its own, since the system tells the most of its whole life."""
    program = (
        "import resource, sys; sys.path[:0] = sys.argv[1:3]\n"
        "from test_nnef_writing import _Zeros; from serde.nnef import writer\n"
        "from serde.nnef.model import NnefModel; from pathlib import Path\n"
        "weight = _Zeros(); weight.dtype = sys.argv[4]\n"
        "if weight.dtype == 'bool': weight.shape = (2**28,)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "writer.save(NnefModel('g', (), (), [], {'w': weight}), Path(sys.argv[3]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    here = str(Path(__file__).parent)
    paths = [here, str(Path(here).parents[2])]
    done = subprocess.run(
        [sys.executable, "-c", program, *paths, str(tmp_path / name), dtype],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 2**16  # KiB


# Graphs in memory.


def test_without_a_path_the_result_is_a_graph_of_the_package() -> None:
    given = add("x y", "b/w")
    graph = serde.from_relay(given, format="nnef")
    assert isinstance(graph, nnef.Graph)
    assert graph.inputs == ["x_y"]
    np.testing.assert_array_equal(graph.tensors["b_w"].data, given.params["b/w"].array())
    back = serde.to_relay(graph)
    assert list(back.params) == ["b/w"]


# What the package is needed for.


@pytest.mark.wide
def test_writing_needs_no_package(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['nnef'] = sys.modules['_nnef'] = None\n"
        "import serde; from serde.testing.models import small_model\n"
        "from serde.errors import MissingDependency\n"
        "serde.from_relay(small_model(), format='nnef', path=sys.argv[1])\n"
        "try: serde.to_relay(sys.argv[1])\n"
        "except MissingDependency as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(serde.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "net_nnef")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert "serde-relay[nnef]" in done.stdout
    assert (tmp_path / "net_nnef" / "scale.dat").stat().st_size == HEADER_BYTES + 12
