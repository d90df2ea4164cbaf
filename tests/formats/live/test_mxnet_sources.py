"""How sources of MXNet are found and put together: symbols, parameters, archives."""

import io
import json
import os
import struct
import tarfile

import numpy as np
import pytest
from support.params_layout import V2, listing, v2

import serde
from serde.bridge.formats import source_bridge
from serde.command.inspection import inspect_model
from serde.core.report import Report
from serde.core.weights import FileWeight
from serde.errors import FormatError, OptionError
from serde.mxnet.codec import detect, load

ONES = np.ones((2, 3), "float32")
GOOD = v2(np.random.default_rng(5).integers(0, 100, (2, 3, 4)).astype("float32"))


def symbol_text(op="BatchNorm", names=("data", "bn_gamma", "bn_beta", "bn_mean", "bn_var")):
    nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
    inputs = [[i, 0, 0] for i in range(len(names))]
    nodes.append({"op": op, "name": "bn", "inputs": inputs})
    return json.dumps(
        {
            "nodes": nodes,
            "arg_nodes": list(range(len(names))),
            "heads": [[len(names), 0, 0]],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
    )


def params_bytes(fill, names=("arg:bn_gamma", "arg:bn_beta", "aux:bn_mean", "aux:bn_var")):
    return listing([v2(np.full(3, fill + i, "float32")) for i in range(len(names))], names)


@pytest.fixture
def model(tmp_path):
    """A folder with a symbol and the parameters of three epochs."""
    (tmp_path / "m-symbol.json").write_text(symbol_text())
    for epoch in (0, 7, 12):
        (tmp_path / f"m-{epoch:04}.params").write_bytes(params_bytes(epoch))
    (tmp_path / "m-x-0099.params").write_bytes(b"another model's")
    return tmp_path


def fill(loaded):
    """What distinguishes the epochs, after a look at the whole model."""
    assert loaded.inputs == ["data"]
    assert list(loaded.arg) == ["bn_gamma", "bn_beta"]
    assert list(loaded.aux) == ["bn_mean", "bn_var"]
    return int(loaded.arg["bn_gamma"].array()[0])


SOURCES = {
    "symbol": lambda d: d / "m-symbol.json",
    "string": lambda d: str(d / "m-symbol.json"),
    "newest parameters": lambda d: d / "m-0012.params",
    "prefix": lambda d: d / "m",
    "directory": lambda d: d,
    "pair": lambda d: (d / "m-symbol.json", d / "m-0012.params"),
    "pair, other order": lambda d: [d / "m-0012.params", str(d / "m-symbol.json")],
    "bytes": lambda d: ((d / "m-symbol.json").read_bytes(), (d / "m-0012.params").read_bytes()),
    "bytes, other order": lambda d: (params_bytes(12), symbol_text().encode()),
    "text and path": lambda d: (symbol_text(), d / "m-0012.params"),
    "path and array": lambda d: (d / "m-symbol.json", bytearray(params_bytes(12))),
    "path and arrays": lambda d: (
        d / "m",
        {"bn_gamma": np.full(3, 12), "bn_beta": ONES, "bn_mean": ONES, "bn_var": ONES},
    ),
    "path and two dicts": lambda d: (
        d / "m-symbol.json",
        ({"bn_gamma": np.full(3, 12), "arg:bn_beta": ONES}, {"bn_mean": ONES, "bn_var": ONES}),
    ),
}


@pytest.mark.parametrize("case", SOURCES)
def test_sources(model, case):
    assert fill(load(SOURCES[case](model))) == 12


@pytest.mark.parametrize("case", ["symbol", "prefix", "directory"])
@pytest.mark.parametrize("epoch", [0, 7, 12])
def test_an_epoch_is_chosen(model, case, epoch):
    assert fill(load(SOURCES[case](model), epoch=epoch)) == epoch


def test_parameters_name_their_epoch(model):
    assert fill(load(model / "m-0007.params")) == 7
    with pytest.raises(OptionError, match="not of epoch 3"):
        load(model / "m-0007.params", epoch=3)
    with pytest.raises(FormatError, match="no parameters of epoch 3"):
        load(model / "m", epoch=3)


def test_names_beside_are_not_needed_for_a_relative_path(model, monkeypatch):
    monkeypatch.chdir(model)
    assert fill(load("m-symbol.json")) == 12
    assert fill(load("m")) == 12


def test_parameters_without_an_epoch(tmp_path):
    (tmp_path / "net.json").write_text(symbol_text())
    (tmp_path / "net.params").write_bytes(params_bytes(4))
    assert fill(load(tmp_path / "net.json")) == 4
    assert fill(load(tmp_path / "net.params")) == 4


@pytest.mark.parametrize("aux_first", [False, True])
def test_bare_names_go_where_the_graph_uses_them(aux_first):
    names = ["bn_gamma", "bn_beta", "bn_mean", "bn_var"]
    loaded = load((symbol_text(), params_bytes(3, names[::-1] if aux_first else names)))
    assert sorted(loaded.arg) == ["bn_beta", "bn_gamma"]
    assert sorted(loaded.aux) == ["bn_mean", "bn_var"]


def test_a_symbol_without_parameters(tmp_path):
    (tmp_path / "sum-symbol.json").write_text(symbol_text("add_n", ("a", "b", "c")))
    loaded = load(tmp_path / "sum-symbol.json")
    assert loaded.inputs == ["a", "b", "c"]
    assert load(symbol_text("add_n", ("a", "b"))).inputs == ["a", "b"]


def test_an_array_without_a_value_is_listed():
    names = ["arg:bn_gamma", "aux:bn_mean"]
    loaded = load((symbol_text(), listing([v2(ONES), struct.pack("<Iii", V2, 0, 0)], names)))
    assert loaded.uninitialized == {"bn_mean"}
    assert list(loaded.arg) == ["bn_gamma"]


@pytest.mark.parametrize(
    "names",
    [
        ["arg:bn_gamma", "arg:bn_beta", "arg:bn_mean", "arg:bn_var"],
        ["aux:bn_gamma", "aux:bn_beta", "aux:bn_mean", "aux:bn_var"],
        ["aux:bn_gamma", "bn_beta", "arg:bn_mean", "bn_var"],
    ],
)
def test_the_graph_knows_better_than_a_prefix(names):
    loaded = load((symbol_text(), params_bytes(3, names)))
    assert sorted(loaded.arg) == ["bn_beta", "bn_gamma"]
    assert sorted(loaded.aux) == ["bn_mean", "bn_var"]


def test_of_two_the_one_with_the_right_prefix_counts():
    names = ["arg:bn_mean", "aux:bn_mean", "arg:other"]
    loaded = load((symbol_text(), params_bytes(3, names)))
    assert list(loaded.arg) == ["other"]
    assert loaded.aux["bn_mean"].array().tolist() == [4, 4, 4]


@pytest.mark.parametrize("name", ["n-0003.params", "n.params"])
def test_parameters_alone_can_be_looked_at_but_not_converted(tmp_path, name):
    path = write(tmp_path, name, params_bytes(3, ["arg:w", "bn_mean"]))
    found = inspect_model(path)
    shown = {"w": "float32 [3]", "bn_mean": "float32 [3]"}
    assert found.summary.facts == ({"epoch": 3} if "-" in name else {}) | shown
    assert found.summary.parameters == 6
    with pytest.raises(FormatError, match="parameters alone are no model"):
        serde.to_relay(path)


def test_the_epoch_is_named(tmp_path):
    write(tmp_path, "n-symbol.json", symbol_text())
    for epoch in (0, 3, 7):
        write(tmp_path, f"n-{epoch:04d}.params", params_bytes(epoch))
    shapes = {"data": (1, 3)}
    report = Report()
    serde.to_relay(tmp_path / "n-symbol.json", input_shapes=shapes, report=report)
    assert report.facts["epoch"] == 7
    assert report.notes == ["weights of epoch 7; --epoch (epoch=) chooses 0, 3"]
    report = Report()
    serde.to_relay(tmp_path / "n-symbol.json", input_shapes=shapes, epoch=3, report=report)
    assert report.facts["epoch"] == 3
    with pytest.raises(FormatError, match="no parameters of epoch 4 beside it, but of 0, 3, 7"):
        load(tmp_path / "n-symbol.json", epoch=4)


def write(folder, name, data):
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder / name


BAD_SOURCES = {
    "missing": (lambda d: d / "other", "no such file, and no other-symbol.json"),
    "foreign JSON": (
        lambda d: write(d, "n-symbol.json", '{"architectures": ["A"], "model_type": "bert"}'),
        "JSON, but no symbol of MXNet: it has no 'nodes', but 'architectures', 'model_type'",
    ),
    "foreign JSON beside": (
        lambda d: (write(d, "n.json", '{"a": 1}'), write(d, "n.params", params_bytes(1)))[1],
        "JSON, but no symbol of MXNet",
    ),
    "foreign list": (
        lambda d: write(d, "n-symbol.json", '["a", "b"]'),
        "expected an object, found list",
    ),
    "no archive": (
        lambda d: write(d, "n.tar.gz", params_bytes(1)),
        "expected a tar archive, found",
    ),
    "swapped": (
        lambda d: (write(d, "a", symbol_text()), write(d, "b.params", symbol_text())),
        "may be swapped",
    ),
    "swapped names": (
        lambda d: write(d, "s-symbol.json", params_bytes(1)),
        "expected a symbol's JSON, found parameters: the two files may be swapped",
    ),
    "two parameter files": (lambda d: (d / "m-0000.params", d / "m-0007.params"), "found a param"),
    "of another model": (
        lambda d: (d / "m-symbol.json", params_bytes(1, ["0.gamma", "0.beta"])),
        "Block.save_parameters",
    ),
    "without names": (lambda d: (symbol_text(), listing([GOOD])), "arrays without names"),
    "prefixed and bare": (
        lambda d: (symbol_text(), params_bytes(1, ["arg:bn_gamma", "bn_gamma"])),
        "two parameters are called arg:bn_gamma",
    ),
    "foreign": (lambda d: write(d, "x.onnx", b"\x08\x08\x12\x07pytorch"), "found 08 08 12"),
    "empty symbol": (lambda d: write(d, "e-symbol.json", b""), "found nothing"),
    "named as parameters": (lambda d: write(d, "e.params", symbol_text()), "may be swapped"),
    "bytes of parameters": (lambda d: params_bytes(0), "found a parameter file"),
    "two symbols": (lambda d: write(d, "z-symbol.json", b"{}").parent, "expected one *-symbol"),
}


@pytest.mark.parametrize("case", BAD_SOURCES)
def test_bad_sources_are_refused(model, case):
    make, message = BAD_SOURCES[case]
    with pytest.raises(FormatError) as caught:
        load(make(model))
    assert message in str(caught.value)


@pytest.mark.parametrize("source", [3, None, ("m",), ("a", "b", "c"), (3, "m"), ("{}", {3: ONES})])
def test_what_is_no_source(source):
    with pytest.raises((OptionError, FormatError)):
        load(source)


def test_a_fifo_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "m-symbol.json")
    assert not detect(tmp_path / "m-symbol.json")
    with pytest.raises(FormatError, match="regular file"):
        load(tmp_path / "m-symbol.json")


def test_detection(model, tmp_path):
    for name in ("m-symbol.json", "m-0007.params", "m", ""):
        assert detect(model / name), name
    assert not detect(write(model, "config.json", '{"epochs": 3}'))
    assert not detect(write(model, "x.onnx", b"\x08\x08\x12\x07pytorch"))
    assert not detect(write(model, "empty.params", b""))
    assert not detect(model / "nothing")
    assert not detect(tmp_path.parent)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_recognised(kind, order):
    pair = [kind(symbol_text().encode()), kind(params_bytes(3))][::order]
    assert source_bridge(pair) is source_bridge(pair[0]) is source_bridge(symbol_text())
    assert source_bridge(pair).name == "mxnet"
    assert fill(load(pair)) == 3
    with pytest.raises(OptionError, match="no format accepts"):
        source_bridge(kind(b"\x08\x08\x12"))


# ---- archives


def archive(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


SAGEMAKER = [
    ("model-shapes.json", b'[{"shape": [1, 3], "name": "data"}]'),
    ("model_algo_1-0003.params", params_bytes(3)),
    ("./model_algo_1-0010.params", params_bytes(10)),
    ("model_algo_1-symbol.json", symbol_text().encode()),
    ("hyperparams.json", b"{}"),
]


@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_a_sagemaker_archive(tmp_path, mode):
    path = archive(tmp_path / "model.tar.gz", SAGEMAKER, mode)
    assert detect(path)
    assert fill(load(path)) == 10
    loaded = load(path, epoch=3)
    assert fill(loaded) == 3
    assert isinstance(loaded.arg["bn_beta"], FileWeight)
    assert sorted(os.listdir(tmp_path)) == ["model.tar.gz"]


def test_the_ranges_of_an_archive_outlive_it(tmp_path):
    path = archive(tmp_path / "model.tar.gz", SAGEMAKER)
    loaded = load(path)
    path.unlink()
    weight = loaded.aux["bn_var"]
    del loaded
    np.testing.assert_array_equal(weight.array(), [13, 13, 13])
    assert weight.source.read(0, 4) == np.float32(13).tobytes()


def test_an_archive_of_semantic_segmentation(tmp_path):
    path = archive(tmp_path / "model.tar.gz", [("model_algo-1", params_bytes(0)), ("h.json", b"")])
    with pytest.raises(FormatError, match="semantic segmentation"):
        load(path)


def test_an_archive_of_something_else(tmp_path):
    path = archive(tmp_path / "model.tar.gz", [("graph.nnef", b"version 1.0;")])
    assert not detect(path)
    with pytest.raises(FormatError, match=r"no \*-symbol.json in the archive, which holds graph"):
        load(path)


def test_an_archive_with_two_symbols(tmp_path):
    symbol = symbol_text().encode()
    path = archive(tmp_path / "m.tar.gz", [("a-symbol.json", symbol), ("b-symbol.json", symbol)])
    with pytest.raises(FormatError, match=r"found a-symbol\.json, b-symbol\.json"):
        load(path)
