"""Inputs of a user for a check: arrays, files, directories and images."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.checking.data import as_check_data
from serde.core.report import Report
from serde.errors import FormatError, MissingDependency, OptionError
from serde.relay.ir.expr import Expr, Var

X = np.arange(12, dtype="float32").reshape(2, 6)
IDS = np.array([3, 1], "int32")


def model_of(body: Expr, *params: Var, facts: Mapping[str, str] | None = None) -> Any:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, body)))
    return relay.RelayModel(mod, {}, relay.ModelMeta(outputs=("out",), extra=facts or {}))


def one_input(*shape: Any, dtype: str = "float32", facts: Mapping[str, str] | None = None) -> Any:
    x = relay.var("x", shape=shape, dtype=dtype)
    return model_of(relay.copy(x), x, facts=facts)


def two_inputs() -> Any:
    x = relay.var("x", shape=("N", 6))
    ids = relay.var("ids", shape=("N",), dtype="int32")
    return model_of(relay.Tuple([relay.copy(x), relay.copy(ids)]), x, ids)


def read(given: Any, model: Any, **options: Any) -> list[dict[str, np.ndarray]]:
    report = options.pop("report", None) or Report()
    dims = options.pop("dims", {})
    return list(as_check_data(given, **options).samples(model, dims, report))


def assert_read(found: Sequence[Mapping[str, Any]], *wanted: Mapping[str, Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert list(one) == list(other)
        for name, value in other.items():
            assert one[name].dtype == value.dtype
            np.testing.assert_array_equal(one[name], value)


# Files that are none.


def npy(header: str, version: int = 1, length: int | None = None) -> bytes:
    text = header.encode("latin1") + b"\n"
    count = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + count.to_bytes(2 * version, "little") + text


def described(descr: str = "'<f4'", shape: str = "(2, 6)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


HEADERS = {
    "nothing": b"",
    "a bracket that is not closed": npy("{'descr': '<f4', 'shape': (2, 6"),
    "a text that is not closed": npy("{'descr': '<f4"),
    "a text of three quotes": npy("'''{"),
    "brackets in brackets": npy("(" * 9000),
    "lists in lists": npy("[" * 900 + "]" * 900),
    "minus signs": npy("-" * 9000 + "1"),
    "no names": npy("[1, 2]"),
    "names that are none": npy("{[]: 1}"),
    "indents": npy("  {\n 'a'\n:}"),
    "a null": npy("{'descr': '\0'}"),
    "a dtype that is none": npy(described("'<x9'")),
    "a dtype of nothing": npy(described("()")),
    "a dtype of names": npy(described("[('a', '<f4')]")),
    "a dtype of itself": npy(described("[('a', [('a', [])])]")),
    "a dtype that is a number": npy(described("5")),
    "a dtype of dates": npy(described("'<M8[99999999999999s]'")),
    "pickled objects": npy(described("'|O'")),
    "a shape that is a number": npy(described(shape="5")),
    "a shape of texts": npy(described(shape="('a',)")),
    "a shape below zero": npy(described(shape="(-2, -6)")),
    "a shape beyond all numbers": npy(described(shape=f"({10**30}, 6)")),
    "a shape of a number of 5000 digits": npy(described(shape=f"({'9' * 5000}, 6)")),
    "a shape that is not there": npy(described(shape="(2000000000, 6)")),
    "an order that is none": npy(described(order="5")),
    "a header of four gigabytes": npy(described(), 2, 2**32 - 1),
    "a header that ends early": npy(described(), 1, 60_000),
    "another version": npy(described(), 2)[:6] + b"\x09\x00" + npy(described(), 2)[8:],
    "values that end early": npy(described()) + bytes(20),
}


@pytest.mark.parametrize("kind", ["npy", "npz"])
@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS.keys())
def test_a_file_that_is_no_array_is_one_line(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    path.write_bytes(data)
    if kind == "npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", data)
    with pytest.raises((FormatError, OptionError), match="check_data: ") as caught:
        read(path, one_input("N", 6))
    assert "\n" not in str(caught.value)


@pytest.mark.wide
def test_an_archive_that_unpacks_to_far_more_than_it_has_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", npy(described(shape="(2000000, 6)")) + bytes(48_000_000))
    with pytest.raises(FormatError, match="unpacks to more than 2000 times"):
        read(tmp_path / "x.npz", one_input("N", 6))


@pytest.mark.parametrize("name", ["x\u00b2.npy", "\u00b2", "a\u0663.npy"])
def test_names_of_samples_may_have_any_digits(tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "x.npy", X)
    (tmp_path / name).write_bytes((tmp_path / "x.npy").read_bytes())
    count = 1 + name.endswith("npy")
    assert_read(read(tmp_path, one_input(2, 6)), *[{"x": X}] * count)


def test_a_tensor_that_is_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "input_0.pb")
    with pytest.raises(OptionError, match="expected files"):
        read(tmp_path, one_input(2, 6))


# Arrays.


@pytest.mark.parametrize("given", [X, {"x": X}, [X], [{"x": X}], ({"x": X.tolist()},)])
def test_arrays_of_python(given: Any) -> None:
    model = one_input(2, 6, dtype="float64" if isinstance(given, tuple) else "float32")
    dtype = "float64" if isinstance(given, tuple) else "float32"
    assert_read(read(given, model), {"x": X.astype(dtype)})


def test_several_samples_may_differ_in_dynamic_lengths() -> None:
    assert_read(read([X, X[:1]], one_input("N", 6)), {"x": X}, {"x": X[:1]})


def test_inputs_of_other_names_go_by_their_place() -> None:
    assert_read(read({"a": X, "b": IDS}, two_inputs()), {"x": X, "ids": IDS})


def test_integers_of_64_bits_become_those_that_the_model_takes() -> None:
    given = {"ids": IDS.astype("int64"), "x": X}
    assert_read(read(given, two_inputs()), {"x": X, "ids": IDS})


def test_floats_of_64_bits_are_rounded_unless_they_become_infinite() -> None:
    wide = X.astype("float64") * (1 + 1e-12)
    assert_read(read({"x": wide, "ids": IDS}, two_inputs()), {"x": X, "ids": IDS})
    with pytest.raises(OptionError, match="input x: expected float32, found float64 with"):
        read({"x": wide * 1e300, "ids": IDS}, two_inputs())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": X}, r"sample 0: input ids: expected a value, found none \(there are: x\)"),
        ({"x": X, "ids": IDS, "y": X}, r"no input is called y \(there are: x, ids\)"),
        ({"x": X[:, :5], "ids": IDS}, r"input x: expected Tensor\[.*N, 6.*found float32\[2, 5\]"),
        ({"x": X, "ids": IDS[:1]}, r"input ids: expected N=2, found int32\[1\]"),
        ({"x": X + 2.0**-30, "ids": IDS + 0.5}, "input ids: expected int32, found float64 with"),
        ({"x": X, "ids": np.array([2**40, 1])}, "input ids: expected int32, found int64 with"),
        ({"x": X, "ids": np.array(["a", "b"])}, "input ids: expected int32, found str"),
        (X, "an array is for a model with one input, found inputs x, ids"),
    ],
)
def test_arrays_that_do_not_fit(given: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"^check_data: sample 0: .*{message}|{message}"):
        read(given, two_inputs())


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(OptionError, match="sample 1: expected an array or a mapping, found str"):
        as_check_data([X, "x"])


def test_a_length_that_was_given_must_be_that_of_the_data() -> None:
    with pytest.raises(OptionError, match="input x: expected N=3, found float32"):
        read(X, one_input("N", 6), dims={"N": 3})


# Files.


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
def test_an_npy_file(tmp_path: Path, order: Any, endian: str) -> None:
    np.save(tmp_path / "a.npy", np.asarray(X, f"{endian}f4", order=order))
    assert_read(read(tmp_path / "a.npy", one_input(2, 6)), {"x": X})


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_file_has_inputs_by_name(tmp_path: Path, save: Any) -> None:
    save(tmp_path / "a.npz", ids=IDS, x=X)
    assert_read(read(str(tmp_path / "a.npz"), two_inputs()), {"x": X, "ids": IDS})


def test_an_npz_file_that_is_encrypted(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=X)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    for head, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(head) + flags] |= 1
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(FormatError, match="encrypted"):
        read(tmp_path / "x.npz", one_input(2, 6))


def test_rows_of_several_lengths_are_no_array() -> None:
    with pytest.raises(OptionError, match="input x: expected an array, found list"):
        read({"x": [[1.0, 2.0], [3.0]]}, one_input(2, 2))


def test_an_npz_file_without_names_goes_by_place(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X, IDS)
    assert_read(read(tmp_path / "a.npz", two_inputs()), {"x": X, "ids": IDS})


def test_a_directory_has_a_file_for_each_sample_in_the_order_of_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        np.save(tmp_path / f"s{number}.npy", X + number)
    (tmp_path / "notes.txt").write_text("about them")
    (tmp_path / ".hidden").write_text("")
    report = Report()
    found = read(tmp_path, one_input(2, 6), report=report)
    assert_read(found, {"x": X + 1}, {"x": X + 9}, {"x": X + 10})
    assert report.notes == [f"check_data: {tmp_path}: not read: notes.txt"]


def save_tensors(folder: Path, named: bool, **values: np.ndarray) -> None:
    from onnx import numpy_helper

    folder.mkdir(parents=True)
    for index, (name, value) in enumerate(values.items()):
        tensor = numpy_helper.from_array(value, name if named else "")
        (folder / f"input_{index}.pb").write_bytes(tensor.SerializeToString())
    (folder / "output_0.pb").write_bytes(b"")


@pytest.mark.parametrize("named", [True, False])
def test_test_data_of_onnx(tmp_path: Path, named: bool) -> None:
    save_tensors(tmp_path / "test_data_set_0", named, x=X, ids=IDS)
    save_tensors(tmp_path / "test_data_set_1", named, x=-X, ids=IDS)
    (tmp_path / "model.onnx").write_bytes(b"")
    found = read(tmp_path, two_inputs())
    assert_read(found, {"x": X, "ids": IDS}, {"x": -X, "ids": IDS})
    assert_read(read(tmp_path / "test_data_set_1", two_inputs()), {"x": -X, "ids": IDS})


def test_names_in_test_data_count_more_than_their_order(tmp_path: Path) -> None:
    save_tensors(tmp_path / "test_data_set_0", True, ids=IDS, x=X)
    assert_read(read(tmp_path, two_inputs()), {"x": X, "ids": IDS})


def bad_npz(path: Path) -> Path:
    path.write_bytes(b"PK no archive")
    return path


def short_npy(path: Path) -> Path:
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-8])
    return path


def no_npy(path: Path) -> Path:
    path.write_bytes(b"nothing of the kind")
    return path


def short_npz(path: Path) -> Path:
    np.savez(path, x=X)
    data = path.read_bytes()
    at = data.index(X.tobytes())
    path.write_bytes(data[:at] + b"\0" * 8 + data[at + 8 :])
    return path


@pytest.mark.parametrize(
    ("write", "name", "message"),
    [
        (bad_npz, "a.npz", r"a\.npz: check_data: expected a .npz file"),
        (short_npz, "a.npz", r"a\.npz: check_data: expected a .npz file: Bad CRC"),
        (no_npy, "a.npy", r"a\.npy: check_data: expected a .npy array"),
        (short_npy, "a.npy", r"a\.npy: check_data: the values end early|found a file of"),
    ],
)
def test_malformed_files(tmp_path: Path, write: Any, name: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(write(tmp_path / name), one_input(2, 6))


def test_a_malformed_tensor(tmp_path: Path) -> None:
    save_tensors(tmp_path / "test_data_set_0", False, x=X)
    (tmp_path / "test_data_set_0" / "input_0.pb").write_bytes(b"\xff" * 9)
    with pytest.raises(FormatError, match=r"input_0\.pb: check_data: expected an ONNX tensor"):
        read(tmp_path, one_input(2, 6))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(OptionError, match="input x: expected numbers, found pickled Python"):
        read(tmp_path / "a.npy", one_input(1))


def test_a_wrong_shape_is_found_before_anything_is_read(tmp_path: Path) -> None:
    """A header that announces more than there is memory for does no harm."""
    with open(tmp_path / "a.npy", "wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (10**14, 6)}
        np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(OptionError, match=r"a\.npy: input x: expected .* found float32\[1000000"):
        read(tmp_path / "a.npy", one_input(2, 6))
    with pytest.raises(FormatError, match="found a file of 128"):
        read(tmp_path / "a.npy", one_input("N", 6))


@pytest.mark.parametrize("name", ["nowhere.npy", "m.txt", "empty"])
def test_paths_without_inputs(tmp_path: Path, name: str) -> None:
    (tmp_path / "m.txt").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(OptionError, match=f"^check_data: .*{name}: (there is no such|expected)"):
        as_check_data(tmp_path / name)


# Images.


PIXELS = np.random.default_rng(0).integers(0, 256, (4, 5, 3)).astype("uint8")


def save_image(path: Path, pixels: np.ndarray = PIXELS) -> Path:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((1, 3, 4, 5), PIXELS.transpose(2, 0, 1)[None]),
        ((1, 4, 5, 3), PIXELS[None]),
        (("N", 3, "H", "W"), PIXELS.transpose(2, 0, 1)[None]),
    ],
)
def test_an_image_gives_its_pixels(tmp_path: Path, shape: Any, wanted: np.ndarray) -> None:
    path = save_image(tmp_path / "a.png")
    assert_read(read(path, one_input(*shape)), {"x": wanted.astype("float32")})
    assert_read(read(path, one_input(*shape, dtype="uint8")), {"x": wanted})


def test_channels_are_in_the_order_of_the_layout(tmp_path: Path) -> None:
    path = save_image(tmp_path / "a.png")
    wanted = PIXELS[..., ::-1].transpose(2, 0, 1)[None].astype("float32")
    facts = {"x.color_space": "BGR"}
    assert_read(read(path, one_input(1, 3, 4, 5, facts=facts)), {"x": wanted})
    assert_read(read(path, one_input(1, 3, 4, 5), images={"x": "BGR"}), {"x": wanted})


def test_one_channel_is_grey(tmp_path: Path) -> None:
    path = save_image(tmp_path / "a.png", PIXELS[..., 0])
    wanted = PIXELS[None, None, ..., 0].astype("float32")
    assert_read(read(path, one_input(1, 1, 4, 5)), {"x": wanted})


def test_an_image_of_another_size_is_refused(tmp_path: Path) -> None:
    path = save_image(tmp_path / "a.png")
    with pytest.raises(OptionError, match=r"a\.png: input x: expected .*224, 224.* \[1, 3, 4, 5\]"):
        read(path, one_input(1, 3, 224, 224))


def test_an_image_of_16_bits_is_refused(tmp_path: Path) -> None:
    path = save_image(tmp_path / "a.png", PIXELS[..., 0].astype("uint16"))
    with pytest.raises(OptionError, match="expected an image of 8 bits, found mode I;16"):
        read(path, one_input(1, 1, 4, 5))


def test_the_input_that_images_are_for_must_be_known(tmp_path: Path) -> None:
    path = save_image(tmp_path / "a.png")
    with pytest.raises(OptionError, match="no input is called y"):
        read(path, one_input(1, 3, 4, 5), images={"y": ""})
    with pytest.raises(OptionError, match="an image file is for a model with one input"):
        read(path, two_inputs())
    with pytest.raises(OptionError, match=r"expected an image of 1 or 3 channels"):
        read(path, one_input(1, 5, 4, 5))
    with pytest.raises(OptionError, match="expected one of BGR, GRAYSCALE"):
        read(path, one_input(1, 3, 4, 5), images={"x": "CMYK"})


def test_a_malformed_image(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(FormatError, match=r"a\.png: check_data: expected an image"):
        read(tmp_path / "a.png", one_input(1, 3, 4, 5))


def test_without_pillow_arrays_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Any:
        raise MissingDependency(name, extra="check")

    monkeypatch.setattr("serde.checking.data.require", absent)
    np.save(tmp_path / "a.npy", X)
    assert_read(read(tmp_path / "a.npy", one_input(2, 6)), {"x": X})
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(MissingDependency, match=r"Pillow is not installed; .*\[check\]"):
        read(tmp_path / "a.png", one_input(1, 3, 4, 5))


# Through the public functions.


def write_onnx(path: Path, op: str = "Tanh", dtype: str = "FLOAT") -> Path:
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", getattr(TensorProto, dtype), ["N", 6])
    y = helper.make_tensor_value_info("y", getattr(TensorProto, dtype), ["N", 6])
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_given_inputs_decide_a_check(tmp_path: Path) -> None:
    """Relu and Abs agree where nothing is negative, and nowhere else."""
    one, other = write_onnx(tmp_path / "a.onnx", "Relu"), write_onnx(tmp_path / "b.onnx", "Abs")
    np.save(tmp_path / "x.npy", X)
    report = serde.check(one, other, check_data=tmp_path / "x.npy")
    assert report.passed
    assert f"checked with 1 given inputs ({tmp_path / 'x.npy'})" in report.notes
    assert not serde.check(one, other, check_data=[X, -X]).passed
    assert not serde.check(one, other).passed


def test_given_inputs_ask_for_a_check_of_a_conversion(tmp_path: Path) -> None:
    report = serde.convert(
        write_onnx(tmp_path / "a.onnx"), tmp_path / "b.relay", check_data={"x": X}
    )
    assert report.passed
    assert report.notes == ["checked with 1 given inputs (arrays)"]


def test_given_inputs_that_do_not_fit_withhold_the_target(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="input x: expected"):
        serde.convert(write_onnx(tmp_path / "a.onnx"), tmp_path / "b.relay", check_data=X.T)
    assert not (tmp_path / "b.relay").exists()


def test_the_command_line_takes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from serde.command.cli import main

    np.savez(tmp_path / "x.npz", x=X)
    paths = [str(write_onnx(tmp_path / "a.onnx")), str(tmp_path / "b.relay")]
    assert main(["convert", *paths, "--check-data", str(tmp_path / "x.npz")]) == 0
    assert "checked with 1 given inputs" in capsys.readouterr().err
    assert main(["check", *paths, "--check-data", str(tmp_path / "none.npz")]) == 2
    assert "none.npz: there is no such file" in capsys.readouterr().err


def test_images_are_pixels_for_a_core_ml_model_that_scales_them(tmp_path: Path) -> None:
    """The source gets what the package makes of the pixels, blue first."""
    pytest.importorskip("coremltools")
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 4, 5])
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    source = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), source)
    (tmp_path / "photos").mkdir()
    for name in ("a.png", "b.png"):
        save_image(tmp_path / "photos" / name)
    options = {"compute_precision": "float32", "check_data": tmp_path / "photos"}
    image = {"x": {"color_layout": "BGR", "scale": 1 / 255, "bias": [-0.5, 0.0, 0.5]}}
    report = serde.convert(source, tmp_path / "m.mlpackage", images=image, **options)
    assert report.passed
    assert f"checked with 2 given inputs ({tmp_path / 'photos'})" in report.notes
    save_image(tmp_path / "photos" / "c.png", PIXELS[:3])
    with pytest.raises(OptionError, match=r"c\.png: input x: expected .*4, 5.*\[1, 3, 3, 5\]"):
        serde.convert(source, tmp_path / "n.mlpackage", images=image, **options)
