"""Parameter files of MXNet of every version."""

import os
import struct
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

from serde.compat import import_mxnet
from serde.core.weights import FileWeight, OpenFile
from serde.errors import FormatError, LimitError, MissingDependency
from serde.mxnet.params import read_params

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


@pytest.mark.parametrize("storage", ["row_sparse", "csr"])
def test_sparse_values_that_were_not_counted(mx, read, tmp_path, storage):
    """MXNet writes how much is stored before it has waited for it: then that is 0."""
    path = tmp_path / "m.params"
    dense = mx.nd.array([[0, 2, 3], [0, 0, 0], [4, 0, 5]])
    array = dense.tostype(storage)
    mx.nd.waitall()
    mx.nd.save(str(path), [array])
    stored = 36
    data = bytearray(path.read_bytes())
    assert struct.unpack_from("<q", data, stored) == (2 if storage == "row_sparse" else 4,)
    struct.pack_into("<q", data, stored, 0)
    path.write_bytes(data)
    np.testing.assert_array_equal(mx.nd.load(str(path))[0].asnumpy(), dense.asnumpy())
    _, [weight] = read(bytes(data))
    np.testing.assert_array_equal(weight.array(), dense.asnumpy())


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


def test_a_sparse_array_out_of_proportion_is_limited(read):
    with pytest.raises(LimitError, match=r"row_sparse array, .* bytes of which 40 are stored"):
        read(listing([sparse(ROW_SPARSE, (2**40, 3), ONES, [indices(0, 1)])], ["w"]))


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


@pytest.mark.thin(2)
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
