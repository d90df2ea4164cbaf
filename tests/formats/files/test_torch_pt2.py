"""Archives of ``torch.export``, read without PyTorch and compared with what it computed."""

from __future__ import annotations

import functools
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.pt2 import CONSTANTS, GOLDEN, archive_of, changed, members_of, runs_of, write

import serde
from serde.core.weights import FileWeight, OpenFile
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError
from serde.relay.ir.dims import symbol
from serde.torch import strided
from serde.torch.codec import detect
from serde.torch.dimensions import parse_dim
from serde.torch.model import Graph, Ref
from serde.torch.pt2.reader import load_archive
from serde.torch.signature import Given, name_leaves, name_results
from serde.torch.source_lines import source_line
from serde.torch.strided import StridedWeight, is_contiguous, is_same_view, span, view_of

NAMES = sorted(path.stem for path in GOLDEN.glob("*.pt2"))

RUNS = [(name, place) for name in NAMES for place in range(len(runs_of(name)))]


@functools.cache
def relay_of(name: str) -> serde.RelayModel:
    return serde.to_relay(GOLDEN / f"{name}.pt2")


@pytest.mark.parametrize(("name", "place"), RUNS)
def test_values_are_those_of_torch(name: str, place: int) -> None:
    arguments, outputs, new = runs_of(name)[place]
    model = relay_of(name)
    found = RelayEngine(model).run(dict(zip(model.meta.inputs, arguments, strict=True)))
    values = dict(zip(model.meta.outputs, found, strict=True))
    assert sorted(key for key in values if key.endswith("_new")) == sorted(new)
    for value, expected in zip(
        found, [*outputs, *(new[key] for key in model.meta.outputs[len(outputs) :])], strict=True
    ):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.thin(2)
@pytest.mark.parametrize(("name", "place"), RUNS)
def test_values_of_onnx_files_are_those_of_torch(tmp_path: Path, name: str, place: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    arguments, outputs, _ = runs_of(name)[place]
    path = tmp_path / "a.onnx"
    serde.convert(GOLDEN / f"{name}.pt2", path)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, dict(zip(names, arguments, strict=True)))
    for value, expected in zip(found[: len(outputs)], outputs, strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["counter", "counter_in_place"])
def test_new_values_of_what_is_changed_are_the_last_outputs(name: str) -> None:
    assert relay_of(name).meta.outputs[1:] == ("count_new", "cache_new", "x_new")


def test_what_is_changed_is_noted() -> None:
    model = load_archive(GOLDEN / "counter.pt2")
    assert "count is changed: its new value is the output count_new" in model.notes


def test_ranges_of_symbols_are_dimensions() -> None:
    (first,) = load_archive(GOLDEN / "cnn.pt2").inputs
    length = first.shape[0]
    assert length == symbol(str(length))
    assert first.shape[1:] == [3, 12, 12]


def test_products_of_symbols_and_numbers_as_inputs() -> None:
    x, scale = load_archive(GOLDEN / "dynamic.pt2").inputs
    (half,) = x.shape[2].symbols()
    assert x.shape[2] == symbol(half) * 2
    assert (scale.number, scale.dtype, scale.shape) == (True, "int64", ())


def test_none_is_no_output_and_constants_are_no_inputs() -> None:
    model = load_archive(GOLDEN / "dynamic.pt2")
    assert list(model.outputs) == ["flat", "half", "length"]
    assert [each.name for each in model.inputs] == ["x", "scale"]


def test_nodes_name_the_line_of_the_program() -> None:
    model = load_archive(GOLDEN / "branches.pt2")
    lines = {node.where.partition(":")[0] for node in model.nodes()}
    assert lines == {"tests/support/torch_archives.py"}


def test_graphs_inside_nodes() -> None:
    model = load_archive(GOLDEN / "branches.pt2")
    loop = next(node for node in model.graph.nodes if node.op == "higher_order::while_loop")
    values = [value for _, value in loop.arguments]
    assert [type(value) for value in values] == [Graph, Graph, list, list]
    assert values[1].outputs == [Ref("add"), Ref("tanh")]
    assert [name for name, _ in loop.arguments] == ["arg0", "arg1", "arg2", "arg3"]


# Weights.


def test_weights_in_order_are_ranges_of_the_archive() -> None:
    path = GOLDEN / "shared.pt2"
    weights = load_archive(path).weights
    data = path.read_bytes()
    members = members_of(path)
    for name in ("linear.bias", "narrow", "flags"):
        source = weights[name].source
        assert source is not None
        assert data[source.offset : source.offset + source.length] in members.values()


@pytest.mark.parametrize("name", ["transposed", "left", "right", "steps", "expanded", "permuted"])
def test_weights_out_of_order_are_views(name: str) -> None:
    weight = load_archive(GOLDEN / "shared.pt2").weights[name]
    assert isinstance(weight, StridedWeight)
    whole = weight.array()
    pieces = [weight.rows(place, place + 1) for place in range(weight.shape[0])]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert b"".join(weight.chunks()) == whole.tobytes()


@pytest.mark.parametrize("seed", range(60))
def test_views_of_a_file(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of a view are read one by one where it does not fit into one piece."""
    monkeypatch.setattr(strided, "CHUNK_BYTES", [2**24, 512, 64][seed % 3])
    monkeypatch.setattr(strided, "_SHORT", [2**16, 64, 8][seed % 3])
    rng = np.random.default_rng(seed)
    shape = tuple(int(each) for each in rng.integers(1, 6, rng.integers(1, 5)))
    storage = rng.standard_normal(4000).astype("float32")
    order = rng.permutation(len(shape))
    steps = np.zeros(len(shape), int)
    step = 1
    for axis in order:
        steps[axis] = 0 if rng.random() < 0.1 else step * int(rng.integers(1, 3))
        step = max(step, int(steps[axis]) * shape[axis])
    strides, offset = tuple(int(each) for each in steps), int(rng.integers(0, 20))
    assert offset + span(shape, strides) <= storage.size
    expected = np.lib.stride_tricks.as_strided(storage[offset:], shape, [4 * s for s in strides])
    path = write(tmp_path, storage.tobytes())
    with OpenFile.open(path) as opened:
        whole = opened.range(0, storage.nbytes)
    weight = view_of(whole, shape, strides, offset, "float32")
    assert isinstance(weight, FileWeight) == is_contiguous(shape, strides)
    np.testing.assert_array_equal(weight.array(), expected)
    start = int(rng.integers(0, shape[0]))
    np.testing.assert_array_equal(weight.rows(start, shape[0]), expected[start:])


@pytest.mark.wide
def test_a_large_transposed_weight_is_read_in_pieces(tmp_path: Path) -> None:
    import tracemalloc

    storage = np.arange(6000 * 3000, dtype="float32").reshape(6000, 3000)
    path = write(tmp_path, storage.tobytes())
    with OpenFile.open(path) as opened:
        weight = view_of(opened.range(0, storage.nbytes), (3000, 6000), (1, 3000), 0, "float32")
    expected = np.ascontiguousarray(storage.T)
    tracemalloc.start()
    place = 0
    for chunk in weight.chunks():
        assert chunk == memoryview(expected).cast("B")[place : place + len(chunk)]
        place += len(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert place == expected.nbytes
    assert peak < 60 * 2**20 < expected.nbytes


def test_tensors_of_one_storage_are_stored_once_and_written_alike() -> None:
    members = members_of(GOLDEN / "shared.pt2")
    config = json.loads(members["data/weights/model_weights_config.json"])["config"]
    assert config["left"]["path_name"] == config["right"]["path_name"]
    assert config["tied"]["path_name"] == config["linear.weight"]["path_name"]


def test_compressed_members(tmp_path: Path) -> None:
    members = members_of(GOLDEN / "shared.pt2")
    path = write(tmp_path, archive_of(members, compression=zipfile.ZIP_DEFLATED))
    found, expected = load_archive(path).weights, load_archive(GOLDEN / "shared.pt2").weights
    assert list(found) == list(expected)
    for name, weight in expected.items():
        np.testing.assert_array_equal(found[name].array(), weight.array())


def test_an_archive_without_a_folder(tmp_path: Path) -> None:
    path = write(tmp_path, archive_of(members_of(GOLDEN / "cnn.pt2"), folder=""))
    assert list(load_archive(path).weights) == list(load_archive(GOLDEN / "cnn.pt2").weights)


# Nothing is run, and PyTorch is not needed.


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return os.mkdir, (self.path,)


def test_sample_inputs_are_never_opened(tmp_path: Path) -> None:
    made = tmp_path / "made"
    pickle.loads(pickle.dumps(Bomb(os.fspath(made))))
    assert made.is_dir()
    made.rmdir()
    data = changed("cnn", {"data/sample_inputs/model.pt": pickle.dumps(Bomb(os.fspath(made)))})
    serde.to_relay(write(tmp_path, data))
    assert not made.exists()


def test_a_pickle_in_place_of_a_weight_is_its_bytes(tmp_path: Path) -> None:
    made = tmp_path / "made"
    data = changed("cnn", {"data/weights/weight_0": pickle.dumps(Bomb(os.fspath(made)))})
    with pytest.raises(FormatError, match=r"sizes \[8, 3, 3, 3\].* need 864 bytes, found"):
        load_archive(write(tmp_path, data))
    assert not made.exists()


@pytest.mark.wide
def test_torch_is_not_imported() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import serde\n"
        f"print(serde.to_relay({os.fspath(GOLDEN / 'lstm.pt2')!r}).meta.outputs)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("('linear', 'getitem_1')\n", "")


# Files.


@pytest.mark.parametrize("name", NAMES)
def test_archives_are_recognised(name: str) -> None:
    assert detect(GOLDEN / f"{name}.pt2")


@pytest.mark.parametrize(
    "members",
    [{"data.pkl": b"", "version": b"3"}, {"constants.pkl": b""}, {"archive_format": b"x"}],
)
def test_other_archives_of_torch_are_recognised(tmp_path: Path, members: dict[str, bytes]) -> None:
    assert detect(write(tmp_path, archive_of(members), "a.zip"))


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\3\4", archive_of({"a": b""}), b"\x80\x02}q\0."])
def test_other_files_are_not(tmp_path: Path, data: bytes) -> None:
    assert not detect(write(tmp_path, data, "a.zip"))


def test_pickles_of_torch_save(tmp_path: Path) -> None:
    path = write(tmp_path, archive_of({"data.pkl": b"", "data/0": b"", "version": b"3"}), "a.pt")
    with pytest.raises(FormatError, match=r"a\.pt: holds a pickle of torch\.save"):
        serde.to_relay(path)


def test_written_folders_are_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "net_torch"
    folder.mkdir()
    for name in ("model.py", "config.json", "model.safetensors"):
        (folder / name).write_bytes(b"")
    assert detect(folder)
    with pytest.raises(FormatError):
        serde.to_relay(folder)


# Parts.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Symbol('s77', positive=True, integer=True)", "s77"),
        ("s77", "s77"),
        ("Mul(Integer(2), Symbol('s0', integer=True))", "2*s0"),
        ("2*s0 - 3", "2*s0 - 3"),
        ("Add(Symbol('a'), Mul(Integer(-1), Symbol('b')))", "a - b"),
        ("Pow(Symbol('a'), Integer(2))", "a*a"),
        ("a**2", "a*a"),
        ("FloorDiv(Symbol('a'), Integer(2))", "floordiv(a, 2)"),
        ("((a//2))", "floordiv(a, 2)"),
        ("Integer(7)", "7"),
        ("Max(Integer(1), Symbol('a'))", "?"),
        ("Mod(Symbol('a'), Integer(2))", "?"),
        ("PythonMod(a, 2)", "?"),
        ("a % 2", "?"),
        ("a // 0", "?"),
        ("(a + b + c + d) ** 16", "?"),
        ("a" + " + a" * 5000, "?"),
    ],
)
def test_lengths_of_axes(text: str, expected: str) -> None:
    assert str(parse_dim(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        "'a'",
        "a.b",
        "a[0]",
        "Symbol()",
        "Symbol(3)",
        "Symbol('')",
        "Symbol('a b')",
        "lambda: 0",
        "(" * 300 + ")" * 300,
        "-" * 9000 + "a",
        "__import__('os').mkdir('x')",
        "2.5",
        "True",
    ],
)
def test_what_is_no_length(text: str) -> None:
    with pytest.raises(ValueError, match="expected the length of an axis"):
        parse_dim(text)


def tree(kind: str | None, context: object, *children: dict) -> dict:
    text = None if kind is None else json.dumps(context)
    return {"type": kind, "context": text, "children_spec": list(children)}


LEAF = tree(None, None)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ([1, tree("builtins.tuple", None, LEAF, LEAF)], ["a", "b"]),
        ([1, tree("builtins.dict", ["x", "y"], LEAF, LEAF)], ["x", "y"]),
        ([1, tree("a.Output", ["x"], tree("builtins.list", None, LEAF, LEAF))], ["x_0", "x_1"]),
        ([1, tree("builtins.tuple", None, LEAF, tree("builtins.dict", ["k"], LEAF))], ["a", "1_k"]),
        ([1, tree("builtins.dict", ["x", "x"], LEAF, LEAF)], ["x", "x_1"]),
        ([1, tree("builtins.dict", ["in", "y"], LEAF, LEAF)], ["in_1", "y"]),
        ([1, tree("builtins.dict", ["x"], LEAF)], ["a", "b"]),
        ([1, tree("builtins.dict", "[[", LEAF, LEAF)], ["a", "b"]),
        ([1], ["a", "b"]),
        ({}, ["a", "b"]),
        (functools.reduce(lambda inner, _: [inner], range(900), []), ["a", "b"]),
    ],
)
def test_outputs_are_called_by_their_keys(spec: object, names: list[str]) -> None:
    given = [
        Given("token", Ref("t")),
        Given("user_output", Ref("a")),
        Given("user_output", Ref("b")),
    ]
    named = name_leaves(given, json.dumps(spec))
    assert name_results(named, ["in"]).names == names


@pytest.mark.parametrize(
    ("trace", "line"),
    [
        ("", ""),
        ('  File "a.py", line 3, in f\n    x\n  File "b.py", line 4, in g\n    y', "b.py:4"),
        ('File "a.py", line 3\nFile "/x/site-packages/torch/nn/m.py", line 4\n', "a.py:3"),
        ('File "a.py", line 3\nFile "<eval_with_key>.7", line 4\n', "a.py:3"),
        ('File "/x/site-packages/torch/nn/m.py", line 4', "/x/site-packages/torch/nn/m.py:4"),
    ],
)
def test_the_line_that_a_user_wrote(trace: str, line: str) -> None:
    assert source_line(trace) == line


@pytest.mark.parametrize(
    ("size", "stride", "offset", "same"),
    [
        ([2, 3, 1], [3, 1, 1], None, True),
        ([2, 3, 1], [3, 1, 7], 0, True),
        ([2, 3, 1], [3, 1, 1], 1, False),
        ([2, 3, 1], [1, 2, 1], None, False),
        ([2, 3], [3, 1], None, False),
        ([Ref("n"), 3, 1], [3, 1, 1], None, False),
        (None, [3, 1, 1], None, False),
    ],
)
def test_strides_that_are_restated(
    size: object, stride: object, offset: object, same: bool
) -> None:
    arguments = {"self": Ref("x"), "size": size, "stride": stride, "storage_offset": offset}
    assert is_same_view(arguments, [2, 3, 1], [3, 1, 1]) == same


def test_buffers_that_are_not_persistent_are_constants() -> None:
    config = json.loads(members_of(GOLDEN / "shared.pt2")[CONSTANTS])["config"]
    assert "narrow" in config
    assert "narrow" in load_archive(GOLDEN / "shared.pt2").weights
