"""Models whose weights stay in the source's files, judged by onnx and ONNX Runtime."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support import nnef_files, params_layout, tvm_layout
from support.onnx_links import RNG, WEIGHTS, dense_net, link, places, run, write
from support.onnx_models import model_of, same_bits, tensor, values

import serde
from serde.bridge.formats import get_bridge
from serde.compat import import_mxnet
from serde.core.report import Report
from serde.core.weights import Array, FileWeight, OpenFile
from serde.errors import OptionError
from serde.onnx import codec
from serde.onnx.elements import CODES
from serde.onnx.links import linkable_weights

mx = import_mxnet()


# Sources.


def write_nnef(folder: Path) -> Path:
    text = """version 1.0;
graph net( x ) -> ( y )
{
    x = external<scalar>(shape = [2, 24]);
    first = variable<scalar>(shape = [40, 24], label = 'one/first');
    second = variable<scalar>(shape = [24, 40], label = 'two');
    y = linear(tanh(linear(x, first)), second);
}
"""
    tensors = {"one/first": WEIGHTS["first"], "two": WEIGHTS["second"]}
    return nnef_files.write_folder(folder / "net", text, tensors)


def write_relay(folder: Path) -> Path:
    """A text and parameters whose names are so long that the values are aligned."""
    path = write(folder / "net.relay", "relay")
    weights = {name: WEIGHTS[name] for name in ("first", "second", "bias")}
    names = dict(zip(("first", "second", "bias"), ("firstA", "secondAB", "bi"), strict=True))
    text = path.read_text()
    for old, new in names.items():
        text = text.replace(f"%{old}", f"%{new}")
    path.write_text(text)
    params = {names[name]: value for name, value in weights.items()}
    path.with_suffix(".params").write_bytes(tvm_layout.param_file(params))
    return path


def write_onnx(folder: Path) -> Path:
    """A model with texts of such lengths before its large weights that both are aligned."""
    path = write(folder / "n.onnx", "onnx")
    for lengths in itertools.product(range(4), repeat=3):
        model = onnx.load(path)
        tensors = model.graph.initializer
        model.graph.name = "g" * (1 + lengths[0])
        for each, length in zip(tensors, lengths[1:], strict=False):
            each.doc_string = "d" * length
        data = model.SerializeToString()
        large = [each.raw_data for each in tensors if len(each.raw_data) > 1024]
        if all(data.index(each) % 4 == 0 for each in large):
            path.write_bytes(data)
            return path
    raise AssertionError("no texts are as long as that takes")


SOURCES: dict[str, tuple[Callable[[Path], Path], set[str]]] = {
    "mxnet": (lambda folder: write(folder / "n-symbol.json", "mxnet"), {"n-0000.params"}),
    "onnx": (write_onnx, {"n.onnx"}),
    "onnx with data": (
        lambda folder: write(folder / "n.onnx", "onnx", save_as_external_data=True),
        {"n.onnx.data"},
    ),
    "coreml": (
        lambda folder: write(folder / "n.mlpackage", "coreml", compute_precision="float32"),
        {"n.mlpackage/Data/com.apple.CoreML/weights/weight.bin"},
    ),
    "nnef": (write_nnef, {"net/one/first.dat", "net/two.dat"}),
    "relay": (write_relay, {"net.params"}),
}


# Whose check runs a model that is not in its place yet: one file, two, one for each weight.
CHECKED = ("onnx", "onnx with data", "nnef")


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("folder", ["", "deep/er"])
def test_weights_stay_in_the_files_of_each_format(kind: str, folder: str, tmp_path: Path) -> None:
    make, files = SOURCES[kind]
    source = make(tmp_path / folder)
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    target, plain = tmp_path / "linked.onnx", tmp_path / "plain.onnx"
    checks = not folder and kind in CHECKED
    report = link(source, target, check=checks)
    assert report.passed == checks
    serde.convert(source, plain)
    found = places(target)
    prefix = f"{folder}/" if folder else ""
    assert {place for place, _, _ in found.values()} == {f"{prefix}{each}" for each in files}
    assert sorted(length for _, _, length in found.values()) == [3840, 3840]
    assert report.facts["linked_weights"] == 2
    assert report.facts["linked_bytes"] == 7680
    assert target.stat().st_size < 4000
    assert {each: each.read_bytes() for each in before} == before
    for name, (place, offset, length) in found.items():
        stored = np.frombuffer((tmp_path / place).read_bytes()[offset : offset + length], "f4")
        value = next(each for each in onnx.load(plain).graph.initializer if each.name == name)
        assert same_bits(stored, numpy_helper.to_array(value).reshape(-1))
    inputs = {"x": RNG.normal(size=(2, 24)).astype(np.float32)}
    for one, other in zip(run(target, inputs), run(plain, inputs), strict=True):
        assert same_bits(one, other)


@pytest.mark.parametrize("version", [params_layout.legacy, params_layout.v1, params_layout.v2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
def test_parameters_of_each_version_and_type(
    dtype: str, version: Callable[[Array], bytes], tmp_path: Path
) -> None:
    symbol = mx.sym.broadcast_add(mx.sym.var("x"), mx.sym.var("w"))
    symbol.save(str(tmp_path / "n-symbol.json"))
    value = RNG.integers(0, 100, (64, 40)).astype(dtype)
    (tmp_path / "n-0000.params").write_bytes(params_layout.listing([version(value)], ["arg:w"]))
    options = {"input_shapes": {"x": (64, 40)}, "input_dtypes": {"x": dtype}}
    report = link(tmp_path / "n-symbol.json", tmp_path / "m.onnx", **options)
    offset = (tmp_path / "n-0000.params").read_bytes().index(value.tobytes())
    aligned = offset % value.itemsize == 0
    assert aligned or dtype == "float64"
    assert report.facts["linked_weights"] == int(aligned)
    (kept,) = onnx.load(tmp_path / "m.onnx").graph.initializer
    assert same_bits(numpy_helper.to_array(kept), value)
    assert aligned == (
        places(tmp_path / "m.onnx") == {"w": ("n-0000.params", offset, value.nbytes)}
    )


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", sorted(CODES))
def test_each_type_of_onnx(dtype: str, tmp_path: Path) -> None:
    array = values(dtype)
    onnx.save_model(
        model_of(tensor("w", array)), tmp_path / "n.onnx", save_as_external_data=True, location="d"
    )
    model = codec.load(tmp_path / "n.onnx")
    model.to_link = linkable_weights(model.weights, Report())
    codec.save(model, tmp_path / "m.onnx")
    (_, _, length) = places(tmp_path / "m.onnx")["w"]
    assert places(tmp_path / "m.onnx") == {"w": ("d", 0, length)}
    (kept,) = onnx.load(tmp_path / "m.onnx").graph.initializer
    assert same_bits(numpy_helper.to_array(kept), array)
    again = codec.load(tmp_path / "m.onnx")
    assert same_bits(again.weights["w"].array(), array)


def test_small_and_empty_tensors_lie_in_the_model(tmp_path: Path) -> None:
    parts = {"w": (300,), "scalar": (), "none": (0, 5), "edge": (256,), "below": (255,)}
    arrays = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in parts.items()}
    model = model_of(*(tensor(name, array) for name, array in arrays.items()))
    onnx.save_model(
        model, tmp_path / "n.onnx", save_as_external_data=True, location="d", size_threshold=0
    )
    loaded, report = codec.load(tmp_path / "n.onnx"), Report()
    loaded.to_link = linkable_weights(loaded.weights, report)
    codec.save(loaded, tmp_path / "m.onnx")
    assert set(places(tmp_path / "m.onnx")) == {"w", "edge"}
    assert report.facts["linked_bytes"] == 300 * 4 + 1024
    assert report.facts["written_bytes"] == 4 + 1020
    for kept in onnx.load(tmp_path / "m.onnx").graph.initializer:
        assert same_bits(numpy_helper.to_array(kept), arrays[kept.name])


@pytest.mark.wide
@pytest.mark.parametrize("opset", [11, 13, 17, 21, "auto"])
def test_each_opset(opset: int | str, tmp_path: Path) -> None:
    source = write(tmp_path / "n-symbol.json", "mxnet")
    link(source, tmp_path / "m.onnx", opset=opset)
    serde.convert(source, tmp_path / "p.onnx", opset=opset)
    inputs = {"x": RNG.normal(size=(2, 24)).astype(np.float32)}
    assert len(places(tmp_path / "m.onnx")) == 2
    assert same_bits(run(tmp_path / "m.onnx", inputs)[0], run(tmp_path / "p.onnx", inputs)[0])


# What is changed, and what is not.


def convolution_net(folder: Path) -> Path:
    x = mx.sym.Convolution(mx.sym.var("x"), kernel=(3, 3), num_filter=16, name="conv")
    x = mx.sym.BatchNorm(x, name="bn", fix_gamma=False)
    symbol = mx.sym.FullyConnected(x, num_hidden=9, name="dense")
    symbol.save(str(folder / "n-symbol.json"))
    args, _, aux = symbol.infer_shape(x=(1, 4, 8, 8))
    shapes = {f"arg:{k}": s for k, s in zip(symbol.list_arguments(), args, strict=True)}
    shapes |= {f"aux:{k}": s for k, s in zip(symbol.list_auxiliary_states(), aux, strict=True)}
    del shapes["arg:x"]
    arrays = {k: mx.nd.array(RNG.uniform(0.5, 1, s).astype("f4")) for k, s in shapes.items()}
    mx.nd.save(str(folder / "n-0000.params"), arrays)
    return folder / "n-symbol.json"


IMAGE = {"input_shapes": {"x": (1, 4, 8, 8)}}


@pytest.mark.parametrize("keep", [False, True])
def test_what_batch_norms_change_is_written(keep: bool, tmp_path: Path) -> None:
    source = convolution_net(tmp_path)
    report = link(source, tmp_path / "m.onnx", keep_batch_norm=keep, **IMAGE)
    serde.convert(source, tmp_path / "p.onnx", keep_batch_norm=keep, **IMAGE)
    inputs = {"x": RNG.normal(size=(1, 4, 8, 8)).astype(np.float32)}
    assert same_bits(run(tmp_path / "m.onnx", inputs)[0], run(tmp_path / "p.onnx", inputs)[0])
    own = {"dense_weight": "n-0000.params"}
    other = {"conv_weight": "n-0000.params" if keep else "m.onnx.data"}
    assert {
        name: place for name, (place, _, _) in places(tmp_path / "m.onnx").items()
    } == own | other
    notes = " ".join(report.notes)
    hint = "batch normalisations are folded into 1 weight of 2.3 kB; with keep_batch_norm"
    assert (hint in notes) == (not keep)
    anew = "not linked, made anew by the conversion: 1 weight of 2.3 kB (conv_weight)"
    assert (anew in notes) == (not keep)
    assert (tmp_path / "m.onnx.data").exists() == (not keep)


def test_a_weight_the_other_way_round_is_transposed_in_the_graph(tmp_path: Path) -> None:
    """As float32 of more than 64 KiB; ONNX has no dense layer of other than two axes."""
    x = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=200, flatten=False, name="d")
    x.save(str(tmp_path / "n-symbol.json"))
    weight, bias = RNG.normal(size=(200, 100)), RNG.normal(size=(200,))
    values = {"arg:d_weight": weight, "arg:d_bias": bias}
    mx.nd.save(
        str(tmp_path / "n-0000.params"), {k: mx.nd.array(v.astype("f4")) for k, v in values.items()}
    )
    options = {"input_shapes": {"x": (2, 5, 100)}}
    link(tmp_path / "n-symbol.json", tmp_path / "m.onnx", **options)
    serde.convert(tmp_path / "n-symbol.json", tmp_path / "p.onnx", **options)
    assert set(places(tmp_path / "m.onnx")) == {"d_weight"}
    kinds = [[node.op_type for node in onnx.load(tmp_path / f"{n}.onnx").graph.node] for n in "mp"]
    assert [sorted(each) for each in kinds] == [["Add", "MatMul", "Transpose"], ["Add", "MatMul"]]
    inputs = {"x": RNG.normal(size=(2, 5, 100)).astype(np.float32)}
    assert same_bits(run(tmp_path / "m.onnx", inputs)[0], run(tmp_path / "p.onnx", inputs)[0])


def test_without_the_option_nothing_is_linked(tmp_path: Path) -> None:
    source = write(tmp_path / "n-symbol.json", "mxnet")
    report = serde.convert(source, tmp_path / "m.onnx")
    assert places(tmp_path / "m.onnx") == {}
    assert not onnx.load(tmp_path / "m.onnx").metadata_props[0].key.startswith("serde")
    assert not [name for name in report.facts if name.startswith(("linked", "written"))]


def test_in_memory_nothing_can_be_linked(tmp_path: Path) -> None:
    report = Report()
    serde.from_relay(dense_net(), path=tmp_path / "m.onnx", link_weights=True, report=report)
    assert places(tmp_path / "m.onnx") == {}
    assert report.facts["linked_weights"] == 0
    assert any("in no file: 2 weights of 7.7 kB" in note for note in report.notes)
    source = write(tmp_path / "n-symbol.json", "mxnet")
    with pytest.raises(OptionError, match="link_weights: give a path beside"):
        serde.export_model(source, format="onnx", link_weights=True)


def test_a_checksum_needs_links() -> None:
    with pytest.raises(OptionError, match="link_digest='full': only with link_weights"):
        get_bridge("onnx").bind_export({"link_digest": "full"})


def test_shared_bytes_are_one_range_and_overlapping_ones_are_written(tmp_path: Path) -> None:
    data = RNG.normal(size=1200).astype(np.float32)
    (tmp_path / "d").write_bytes(data.tobytes())
    with OpenFile.open(tmp_path / "d") as opened:
        whole = opened.range(0, 4000)
        part = opened.range(2000, 2000)
        apart = opened.range(4000, 800)
        odd = opened.range(2, 4000)
    weights = {
        "one": FileWeight(whole, (1000,), "float32"),
        "tied": FileWeight(whole, (10, 100), "float32"),
        "part": FileWeight(part, (500,), "float32"),
        "short": FileWeight(apart, (200,), "float32"),
        "odd": FileWeight(odd, (1000,), "float32"),
    }
    model, report = codec.OnnxModel(model_of(), weights), Report()
    model.to_link = linkable_weights(weights, report)
    assert model.to_link == {"one", "tied"}
    codec.save(model, tmp_path / "m.onnx")
    found = {n: p for n, p in places(tmp_path / "m.onnx").items() if p[0] == "d"}
    assert found == {"one": ("d", 0, 4000), "tied": ("d", 0, 4000)}
    kept = {
        each.name: numpy_helper.to_array(each)
        for each in onnx.load(tmp_path / "m.onnx").graph.initializer
    }
    assert same_bits(kept["part"], data[500:1000])
    assert same_bits(kept["tied"], data[:1000].reshape(10, 100))
    notes = " ".join(report.notes)
    assert "overlapping others: 1 weight of 2.0 kB (part)" in notes
    assert "not aligned to their elements: 1 weight of 4.0 kB (odd)" in notes
    codec.load(tmp_path / "m.onnx")


@pytest.mark.wide
def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    source = write_nnef(tmp_path)
    link(source, tmp_path / "m.onnx")
    first = (tmp_path / "m.onnx").read_bytes()
    os.utime(tmp_path / "net" / "two.dat")
    link(source, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == first


# Where the model may be.


def test_a_model_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "a" / "n-symbol.json", "mxnet")
    (tmp_path / "b").mkdir()
    with pytest.raises(OptionError) as told:
        link(source, tmp_path / "b" / "m.onnx")
    assert str(told.value) == (
        f"{tmp_path}/b/m.onnx: cannot refer to the weights in {tmp_path}/a/n-0000.params, as ONNX "
        f"takes none from outside of the model's folder; write it to {tmp_path}/a or a folder above"
    )
    assert os.listdir(tmp_path / "b") == []


def test_links_are_followed(tmp_path: Path) -> None:
    """A source under a symbolic link lies where that leads."""
    source = write(tmp_path / "a" / "n-symbol.json", "mxnet")
    (tmp_path / "b").mkdir()
    for name in ("n-symbol.json", "n-0000.params"):
        (tmp_path / "b" / name).symlink_to(tmp_path / "a" / name)
    with pytest.raises(OptionError, match="cannot refer to the weights"):
        link(tmp_path / "b" / "n-symbol.json", tmp_path / "b" / "m.onnx")
    (tmp_path / "c").symlink_to("a")
    link(tmp_path / "b" / "n-symbol.json", tmp_path / "c" / "m.onnx")
    assert {place for place, _, _ in places(source.with_name("m.onnx")).values()} == {
        "n-0000.params"
    }
    onnx.checker.check_model(tmp_path / "c" / "m.onnx")


def test_what_lies_there_for_one_run_alone_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "n-symbol.json", "mxnet")
    for name in ("n-symbol.json", "n-0000.params"):
        (tmp_path / ".serde-abcdefgh").mkdir(exist_ok=True)
        (tmp_path / name).rename(tmp_path / ".serde-abcdefgh" / name)
    with pytest.raises(OptionError, match=r"in n-0000\.params, which was fetched or unpacked"):
        link(tmp_path / ".serde-abcdefgh" / "n-symbol.json", tmp_path / "m.onnx")


def test_quantising_leaves_nothing_to_link(tmp_path: Path) -> None:
    source = write(tmp_path / "n.onnx", "onnx")
    with pytest.raises(OptionError, match="link_weights has nothing to refer to"):
        link(source, tmp_path / "m.onnx", int8="dynamic")


def test_a_file_with_several_names_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "n-symbol.json", "mxnet")
    os.link(tmp_path / "n-0000.params", tmp_path / "other")
    with pytest.raises(OptionError, match=r"n-0000.params: has several hard links.*copy of it"):
        link(source, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_a_source_is_not_written_over(tmp_path: Path) -> None:
    source = write(tmp_path / "n.onnx", "onnx", save_as_external_data=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "m.onnx").symlink_to("n.onnx.data")
    for target in (source, tmp_path / "n.onnx.data", tmp_path / "m.onnx"):
        with pytest.raises(OptionError):
            link(source, target, target_format="onnx")
    assert {path: path.read_bytes() for path in before} == before


def test_data_of_others_that_is_linked_to_stays(tmp_path: Path) -> None:
    """It may be called as the model's own data is, and its own model be gone."""
    write(tmp_path / "m.onnx", "onnx", save_as_external_data=True)
    (tmp_path / "m.onnx").rename(tmp_path / "n.onnx")
    data = (tmp_path / "m.onnx.data").read_bytes()
    link(tmp_path / "n.onnx", tmp_path / "m.onnx")
    other = write(tmp_path / "other-symbol.json", "mxnet")
    (tmp_path / "n.onnx").unlink()
    serde.convert(other, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").read_bytes() == data
