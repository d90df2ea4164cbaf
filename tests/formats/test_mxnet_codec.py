"""Parameter files of every version, and how sources are found and put together."""

import io
import json
import os
import struct
import tarfile
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from support.params_layout import (
    CPU,
    CSR,
    LIST_MAGIC,
    ROW_SPARSE,
    V1,
    V2,
    V3,
    legacy,
    listing,
    shape64,
    sparse,
    v1,
    v2,
)

import serde
from serde.bridge import source_bridge
from serde.command.inspection import inspect_model
from serde.compat import import_mxnet
from serde.errors import FormatError, MissingDependency, OptionError
from serde.mxnet.codec import detect, load
from serde.mxnet.params import read_params
from serde.report import Report
from serde.weights import FileWeight, OpenFile

DTYPES = [
    *("float16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64", "bfloat16"),
]
MXNET_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
MXNET_DTYPES = ["float16", "float32", "float64", "bool", "int8", "uint8", "int32", "int64"]


@pytest.fixture(scope="module")
def mx() -> ModuleType:
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


def numbers(dtype, shape=(2, 3, 4)):
    values = np.random.default_rng(5).integers(0, 100, shape)
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def read_file(path):
    with OpenFile.open(path) as opened:
        return read_params(opened)


@pytest.fixture(params=["file", "bytes"])
def read(request, tmp_path):
    """Reads parameters that are bytes, from a file and from memory."""

    def from_file(data):
        (tmp_path / "m.params").write_bytes(data)
        return read_file(tmp_path / "m.params")

    return from_file if request.param == "file" else read_params


# ---- arrays


@pytest.mark.parametrize("dtype", MXNET_DTYPES)
def test_arrays_written_by_mxnet(mx, tmp_path, dtype):
    path = str(tmp_path / "m.params")
    arrays = {
        "arg:a": mx.nd.array(numbers(dtype), dtype=dtype),
        "b": mx.nd.array(numbers(dtype, (7,)), dtype=dtype),
    }
    mx.nd.save(path, arrays)
    names, weights = read_file(path)
    assert names == ["arg:a", "b"]
    for name, weight in zip(names, weights, strict=True):
        expected = arrays[name].asnumpy()
        assert isinstance(weight, FileWeight)
        assert (weight.shape, weight.dtype) == (expected.shape, dtype)
        np.testing.assert_array_equal(weight.array(), expected)


def test_bfloat16_written_by_mxnet(mx, tmp_path):
    path = str(tmp_path / "m.params")
    mx.nd.save(path, [mx.nd.array([1.0, -2.5, 3.0]).astype(MXNET_BFLOAT16)])
    names, [weight] = read_file(path)
    assert (names, weight.dtype) == (None, "bfloat16")
    np.testing.assert_array_equal(weight.array().astype("float32"), [1.0, -2.5, 3.0])


def test_numpy_mode_written_by_mxnet(mx, tmp_path):
    path = str(tmp_path / "m.params")
    with mx.util.np_shape(True), mx.util.np_array(True):
        arrays = [mx.np.array(3.5), mx.np.zeros((0, 3)), mx.np.ones((2, 2))]
        mx.nd.save(path, [array.as_nd_ndarray() for array in arrays])
    _, weights = read_file(path)
    assert [weight.shape for weight in weights] == [(), (0, 3), (2, 2)]
    assert weights[0].array() == np.float32(3.5)
    assert weights[1].array().size == 0
    np.testing.assert_array_equal(weights[2].array(), np.ones((2, 2)))


@pytest.mark.parametrize("layout", [legacy, v1, v2], ids=lambda layout: layout.__name__)
def test_layouts_by_hand_are_what_mxnet_reads(mx, tmp_path, layout):
    path = str(tmp_path / "m.params")
    data = listing([layout(numbers("float32")), layout(numbers("int8", (3,)))], ["a", "b"])
    (tmp_path / "m.params").write_bytes(data)
    expected = mx.nd.load(path)
    names, weights = read_file(path)
    for name, weight in zip(names, weights, strict=True):
        np.testing.assert_array_equal(weight.array(), expected[name].asnumpy())
        assert weight.dtype == np.dtype(expected[name].dtype).name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", [legacy, v1, v2], ids=lambda layout: layout.__name__)
def test_every_dtype_in_every_layout(read, layout, dtype):
    value = numbers(dtype)
    _, [weight] = read(listing([layout(value)], ["x"]))
    assert (weight.shape, weight.dtype) == (value.shape, dtype)
    np.testing.assert_array_equal(weight.array(), value)
    np.testing.assert_array_equal(weight.rows(1, 2), value[1:2])
    assert b"".join(weight.chunks()) == value.tobytes()


def test_layouts_may_be_mixed(read):
    values = [numbers("float32", (k + 1, 2)) for k in range(4)]
    data = [legacy(values[0]), v1(values[1]), v2(values[2]), v2(values[3], V3)]
    names, weights = read(listing(data, "wxyz"))
    assert names == ["w", "x", "y", "z"]
    for weight, value in zip(weights, values, strict=True):
        np.testing.assert_array_equal(weight.array(), value)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", 0),
        struct.pack("<Ii", V1, 0),
        struct.pack("<Iii", V2, 0, 0),
        struct.pack("<Iii", V3, 0, -1),
    ],
    ids=["legacy", "v1", "v2", "v3"],
)
def test_an_array_without_a_value(read, data):
    _, weights = read(listing([data, legacy(numbers("int8"))], ["a", "b"]))
    assert weights[0] is None
    np.testing.assert_array_equal(weights[1].array(), numbers("int8"))


def test_an_empty_list_written_by_mxnet(mx, read, tmp_path):
    mx.nd.save(str(tmp_path / "e.params"), {})
    assert read((tmp_path / "e.params").read_bytes()) == ([], [])


def test_no_values_are_read(tmp_path, monkeypatch):
    """A file of 64 GB, most of it a hole, costs some small reads."""
    path = tmp_path / "m.params"
    count, length = 16, 2**30
    head = struct.pack("<Iii", V2, 0, 1) + struct.pack("<q", length) + CPU + struct.pack("<i", 0)
    with path.open("wb") as file:
        file.write(struct.pack("<QQQ", LIST_MAGIC, 0, count))
        for _ in range(count):
            file.write(head)
            file.seek(4 * length, os.SEEK_CUR)
        file.write(struct.pack("<Q", count))
        file.write(b"".join(struct.pack("<Q", 3) + f"a{i:02}".encode() for i in range(count)))
    asked = []
    read_into = OpenFile.read_into
    monkeypatch.setattr(
        OpenFile,
        "read_into",
        lambda self, buffer, offset: (asked.append(len(buffer)), read_into(self, buffer, offset)),
    )
    names, weights = read_file(path)
    assert names[-1] == "a15"
    assert weights[15].nbytes == 2**32
    assert sum(asked) < 100_000


# ---- sparse storage


def test_row_sparse_written_by_mxnet(mx, tmp_path):
    path = str(tmp_path / "m.params")
    array = mx.nd.sparse.row_sparse_array((np.arange(6.0).reshape(2, 3) + 1, [0, 3]), shape=(5, 3))
    mx.nd.save(path, [array, mx.nd.sparse.zeros("row_sparse", (4, 2))])
    _, [weight, zeros] = read_file(path)
    expected = array.tostype("default").asnumpy()
    assert weight.sparse
    np.testing.assert_array_equal(weight.array(), expected)
    np.testing.assert_array_equal(weight.rows(1, 4), expected[1:4])
    np.testing.assert_array_equal(zeros.array(), np.zeros((4, 2)))


def test_csr_written_by_mxnet(mx, tmp_path):
    path = str(tmp_path / "m.params")
    array = mx.nd.sparse.csr_matrix(([1.0, 2, 3], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 4))
    mx.nd.save(path, [array, mx.nd.sparse.zeros("csr", (4, 2))])
    _, [weight, zeros] = read_file(path)
    expected = array.tostype("default").asnumpy()
    assert (weight.sparse, weight.dtype) == (True, np.dtype(array.dtype).name)
    np.testing.assert_array_equal(weight.array(), expected)
    np.testing.assert_array_equal(weight.rows(2, 3), expected[2:3])
    np.testing.assert_array_equal(zeros.array(), np.zeros((4, 2)))


def indices(*values):
    return np.array(values, "int64")


ONES = np.ones((2, 3), "float32")
BAD_SPARSE = {
    "row beyond the end": (ROW_SPARSE, (5, 3), ONES, [indices(0, 5)]),
    "negative row": (ROW_SPARSE, (5, 3), ONES, [indices(-1, 2)]),
    "rows not ascending": (ROW_SPARSE, (5, 3), ONES, [indices(2, 2)]),
    "too few rows": (ROW_SPARSE, (5, 3), ONES, [indices(1)]),
    "more rows than there are": (ROW_SPARSE, (1, 3), ONES, [indices(0, 1)]),
    "rows of another length": (ROW_SPARSE, (5, 4), ONES, [indices(0, 1)]),
    "float indices": (ROW_SPARSE, (5, 3), ONES, [np.ones(2, "float32")]),
    "out of proportion": (ROW_SPARSE, (2**40, 3), ONES, [indices(0, 1)]),
    "column beyond the end": (CSR, (2, 3), ONES[0], [indices(0, 2, 3), indices(0, 3, 1)]),
    "columns not ascending": (CSR, (2, 3), ONES[0], [indices(0, 2, 3), indices(1, 1, 1)]),
    "negative column": (CSR, (2, 3), ONES[0], [indices(0, 2, 3), indices(0, -1, 1)]),
    "pointers descend": (CSR, (2, 3), ONES[0], [indices(0, 4, 3), indices(0, 1, 2)]),
    "pointers end early": (CSR, (2, 3), ONES[0], [indices(0, 1, 2), indices(0, 1, 2)]),
    "pointers too few": (CSR, (2, 3), ONES[0], [indices(0, 3), indices(0, 1, 2)]),
    "csr of rank 3": (CSR, (2, 3, 1), ONES[0], [indices(0, 2, 3), indices(0, 1, 2)]),
}


@pytest.mark.parametrize("case", BAD_SPARSE)
def test_bad_indices_are_refused(read, case):
    with pytest.raises(FormatError):
        read(listing([sparse(*BAD_SPARSE[case])], ["w"]))[1][0].array()


# ---- malformed lists


GOOD = v2(numbers("float32"))
HEAD = struct.pack("<QQ", LIST_MAGIC, 0)


def dense(shape, *, kind=0, storage=0, magic=V2):
    head = struct.pack("<Ii", magic, storage)
    return head + shape + CPU + struct.pack("<i", kind) + b"\0" * 24


BAD_PARAMS = {
    "nothing": (b"", "found nothing", 0),
    "zeros": (bytes(64), "found 00 00", 0),
    "JSON": (b'{"nodes": []}', "may be swapped", 0),
    "zip": (b"PK\x03\x04" + bytes(60), "npz of MXNet 2", 0),
    "gzip": (b"\x1f\x8b\x08" + bytes(60), "gzip data", 0),
    "other magic": (struct.pack("<Q", 0xF7E58D4F05049CB7) + bytes(64), "found b7 9c", 0),
    "2^63 arrays": (HEAD + struct.pack("<Q", 2**63), "9223372036854775808 arrays", 16),
    "a foreign array": (listing([struct.pack("<I", 0xF993FAC7)], ["a"]), "0xf993fac7", 24),
    "legacy rank 33": (listing([struct.pack("<I", 33) + bytes(300)], ["a"]), "0x21", 24),
    "rank 2^31 - 1": (listing([dense(struct.pack("<i", 2**31 - 1))], ["a"]), "rank", 32),
    "rank -1": (listing([dense(struct.pack("<i", -1))], ["a"]), "found -1", 32),
    "rank -2": (listing([dense(struct.pack("<i", -2), magic=V3)], ["a"]), "found -2", 32),
    "negative length": (listing([dense(shape64((2, -3)))], ["a"]), "negative length", None),
    "overflow": (listing([dense(shape64((2**32, 2**32)))], ["a"]), "beyond any memory", None),
    "overflow with 0": (listing([dense(shape64((0, 2**62, 2**62)))], ["a"]), "beyond any", None),
    "2^61 with 0": (listing([dense(shape64((0, 2**30, 2**31)))], ["a"]), "beyond any", None),
    "2^40 values": (listing([dense(shape64((2**40,)))], ["a"]), "expected 4398046511104", None),
    "type 13": (listing([dense(shape64((2, 3)), kind=13)], ["a"]), "found 13", 60),
    "type -1": (listing([dense(shape64((2, 3)), kind=-1)], ["a"]), "found -1", 60),
    "storage 3": (listing([dense(shape64((2, 3)), storage=3)], ["a"]), "found 3", 28),
    "storage -1": (listing([dense(shape64((2, 3)), storage=-1)], ["a"]), "found -1", 28),
    "more names": (listing([GOOD], ["a", "b"]), "expected 0 or 1 names", None),
    "fewer names": (listing([GOOD, GOOD], ["a"]), "expected 0 or 2 names", None),
    "repeated name": (listing([GOOD, GOOD], ["a", "a"]), "'a' occurs twice", None),
    "not UTF-8": (listing([GOOD], [b"\xff\xfe"]), "not UTF-8", None),
    "long name": (listing([GOOD])[:-8] + struct.pack("<QQ", 1, 2**40), "a name of 1099", None),
    "bytes after it": (listing([GOOD], ["a"]) + b"\0", "expected the end", None),
}


@pytest.mark.parametrize("case", BAD_PARAMS)
def test_bad_parameter_files_are_refused(read, case):
    data, message, offset = BAD_PARAMS[case]
    with pytest.raises(FormatError) as caught:
        read(data)
    assert message in str(caught.value)
    assert offset in (None, caught.value.offset)


@pytest.mark.parametrize("length", range(0, len(listing([GOOD, legacy(ONES)], "ab")), 5))
def test_every_truncation_is_refused(read, length):
    with pytest.raises(FormatError):
        read(listing([GOOD, legacy(ONES)], "ab")[:length])


def test_a_file_that_changes_is_found_out(tmp_path):
    path = tmp_path / "m.params"
    path.write_bytes(listing([GOOD], ["a"]))
    _, [weight] = read_file(path)
    path.write_bytes(listing([GOOD], ["a"])[:100])
    with pytest.raises(FormatError, match="changed"):
        weight.array()


# ---- sources


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
    "without names": (
        lambda d: (symbol_text(), listing([GOOD])),
        "arrays without names",
    ),
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
