"""Models whose weights stay in the source's files, judged by onnx and ONNX Runtime."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import nnef_files, params_layout, tvm_layout
from support.onnx_models import model_of, same_bits, tensor, values

import serde
import serde.relay as relay
from serde.bridge import get_bridge
from serde.command.cli import main
from serde.compat import import_mxnet
from serde.errors import FormatError, OptionError
from serde.io.fingerprint import MOST_RANGES, Fingerprint
from serde.onnx import codec
from serde.onnx.elements import CODES
from serde.onnx.links import linkable_weights
from serde.report import Report
from serde.weights import Array, ArrayWeight, FileWeight, OpenFile

mx = import_mxnet()

RNG = np.random.default_rng(3)
WEIGHTS = {
    "first": RNG.normal(size=(40, 24)).astype(np.float32),
    "second": RNG.normal(size=(24, 40)).astype(np.float32),
    "bias": RNG.normal(size=(40,)).astype(np.float32),
}


def dense_net() -> relay.RelayModel:
    """Two dense layers; the weight of each is what ONNX's Gemm takes."""
    x = relay.var("x", shape=(2, 24))
    weights = {name: relay.var(name, shape=value.shape) for name, value in WEIGHTS.items()}
    hidden = relay.nn.bias_add(relay.nn.dense(x, weights["first"]), weights["bias"])
    body = relay.nn.dense(relay.tanh(hidden), weights["second"])
    mod = relay.IRModule.from_expr(relay.Function([x, *weights.values()], body))
    params = {name: ArrayWeight(value) for name, value in WEIGHTS.items()}
    meta = relay.ModelMeta(inputs=("x",), outputs=("y",))
    return relay.RelayModel(relay.transform.InferType()(mod), params, meta)


def write(path: Path, format: str, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return serde.from_relay(dense_net(), format=format, path=path, **options)


def run(path: Path, inputs: dict[str, Array]) -> list[Array]:
    """What ONNX Runtime computes without its optimisations, after ONNX's own checks."""
    onnx.checker.check_model(path, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def places(path: Path) -> dict[str, tuple[str, int, int]]:
    """Where the external tensors of a model lie: file, offset and length."""
    found = {}
    for each in onnx.load(path, load_external_data=False).graph.initializer:
        entries = {entry.key: entry.value for entry in each.external_data}
        if entries:
            found[each.name] = (
                entries["location"],
                int(entries["offset"]),
                int(entries["length"]),
            )
    return found


def link(source: Path, target: Path, **options: Any) -> Report:
    report = Report()
    return serde.convert(source, target, link_weights=True, report=report, **options)


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
    with pytest.raises(OptionError, match="link_weights: int8 makes the weights anew"):
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


# What becomes of the source.


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    link(write(tmp_path / "n-symbol.json", "mxnet"), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def change(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def told_of(path: Path) -> str:
    with pytest.raises(FormatError) as told:
        serde.to_relay(path)
    return str(told.value)


def test_the_same_bytes_in_a_new_file_are_fine(linked: Path) -> None:
    params = linked.with_name("n-0000.params")
    shutil.copyfile(params, params.with_name("copy"))
    params.with_name("copy").replace(params)
    os.utime(params, (0, 0))
    found = serde.to_relay(linked)
    assert same_bits(next(iter(found.params.values())).array(), WEIGHTS["first"])


def test_a_changed_file_is_an_error(linked: Path) -> None:
    params = linked.with_name("n-0000.params")
    _, offset, length = places(linked)["second"]
    for at in (0, offset, offset + length // 2, offset + length - 1, params.stat().st_size - 1):
        change(params, at)
        start = f"{linked}: its weights were linked to 'n-0000.params', which has changed since: "
        assert told_of(linked).startswith(f"{start}expected ")
        assert told_of(linked).endswith("convert the model again, or bring that file back")
        change(params, at)
    serde.to_relay(linked)


def test_a_file_of_another_length_is_an_error(linked: Path) -> None:
    params = linked.with_name("n-0000.params")
    data = params.read_bytes()
    for other in (data[:-1], data + b"x", b""):
        params.write_bytes(other)
        wanted = f"has changed since: expected {len(data)} bytes, found {len(other)}"
        assert wanted in told_of(linked)


@pytest.mark.parametrize("command", ["inspect", "convert", "check", "diff"])
@pytest.mark.parametrize("fault", ["changed", "gone", "renamed"])
def test_every_command_tells(
    command: str, fault: str, linked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = linked.with_name("n-0000.params")
    other = linked.with_name("other.onnx")
    serde.convert(linked, other)
    if fault == "changed":
        change(params, 200)
    elif fault == "gone":
        params.unlink()
    else:
        params.rename(params.with_name("weights.params"))
    arguments = {
        "inspect": [linked],
        "convert": [linked, linked.with_name("again.onnx")],
        "check": [other, linked],
        "diff": [other, linked],
    }
    assert main([command, *map(str, arguments[command])]) == 3
    told = capsys.readouterr().err.splitlines()[-1]
    reason = "which has changed since" if fault == "changed" else "cannot be read: No such file"
    assert "its weights were linked to 'n-0000.params'" in told
    assert reason in told


def test_inspection_tells_of_the_links(linked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(linked), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["linked to"] == "n-0000.params: 2 weights of 7.7 kB, unchanged"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A source of which a fingerprint does not see everything."""
    array = RNG.normal(size=(300, 300)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 300])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 300])],
        [tensor("w", array)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, tmp_path / "n.onnx", save_as_external_data=True, location="d")
    return tmp_path / "n.onnx"


@pytest.mark.parametrize("digest", ["sampled", "full"])
def test_only_a_checksum_sees_every_byte(digest: str, large: Path) -> None:
    target, copy = large.with_name("m.onnx"), large.with_name("copy.onnx")
    link(large, target, link_digest=digest)
    serde.convert(large, copy)
    onnx.checker.check_model(target)
    assert main(["check", str(copy), str(target)]) == 0
    change(large.with_name("d"), 120_000)  # In the middle lie bytes 179,488 to 180,512.
    serde.to_relay(target)
    assert main(["check", str(copy), str(target), "--atol", "1"]) == (3 if digest == "full" else 0)
    change(large.with_name("d"), 180_000)
    with pytest.raises(FormatError, match="has changed since"):
        serde.to_relay(target)


def test_a_linked_model_is_a_source_like_any_other(linked: Path) -> None:
    inputs = {"x": RNG.normal(size=(2, 24)).astype(np.float32)}
    expected = run(linked, inputs)[0]
    folder = linked.parent
    for name in ("again.onnx", "back-symbol.json", "back.mlpackage"):
        serde.convert(linked, folder / name)
    link(linked, folder / "second.onnx")
    assert set(places(folder / "second.onnx").values()) == set(places(linked).values())
    (folder / "n-0000.params").unlink()
    assert places(folder / "again.onnx") == {}
    assert "serde.linked" not in {p.key for p in onnx.load(folder / "again.onnx").metadata_props}
    assert same_bits(run(folder / "again.onnx", inputs)[0], expected)
    serde.convert(folder / "back-symbol.json", folder / "third.onnx")
    assert same_bits(run(folder / "third.onnx", inputs)[0], expected)


def test_a_file_that_changes_during_the_conversion_is_an_error(tmp_path: Path) -> None:
    source = write(tmp_path / "n.onnx", "onnx", save_as_external_data=True)
    bridge = get_bridge("onnx")
    options = bridge.bind_export({"link_weights": True})
    native = bridge.from_relay(serde.to_relay(source), options, report=Report())
    change(tmp_path / "n.onnx.data", 0)
    with pytest.raises(FormatError, match="changed while it was being read"):
        bridge.save(native, tmp_path / "m.onnx", options)
    assert not (tmp_path / "m.onnx").exists()


# Models that lie.


def rewrite(path: Path, value: str) -> None:
    model = onnx.load(path, load_external_data=False)
    (entry,) = [each for each in model.metadata_props if each.key == "serde.linked"]
    entry.value = value
    path.write_bytes(model.SerializeToString())


GOOD = {"location": "n-0000.params", "bytes": 10, "ranges": [[0, 5]], "fingerprint": "0" * 32}
LIES: dict[str, Any] = {
    "no JSON": "{",
    "deep": "[" * 100_000,
    "no list": GOOD,
    "no files": [1],
    "twice": [GOOD, GOOD],
    "no location": [{**GOOD, "location": 1}],
    "truth for a length": [{**GOOD, "bytes": True}],
    "long digest": [{**GOOD, "fingerprint": "0" * 33}],
    "range beyond the end": [{**GOOD, "ranges": [[6, 5]]}],
    "range of texts": [{**GOOD, "ranges": [["0", 5]]}],
    "range of three": [{**GOOD, "ranges": [[0, 5, 5]]}],
    "range before the begin": [{**GOOD, "ranges": [[-1, 5]]}],
    "ranges out of order": [{**GOOD, "ranges": [[1, 1], [0, 1]]}],
    "a range twice": [{**GOOD, "ranges": [[0, 1], [0, 1]]}],
    "too long": [{**GOOD, "bytes": 2**63}],
    "too many ranges": [
        {**GOOD, "bytes": 10_000, "ranges": [[at, 1] for at in range(MOST_RANGES + 2)]}
    ],
    "too much": [{**GOOD, "comment": "x" * 2**21}],
}


@pytest.mark.parametrize("lie", LIES)
def test_malformed_facts_are_refused(lie: str, linked: Path) -> None:
    value = LIES[lie]
    rewrite(linked, value if isinstance(value, str) else json.dumps(value))
    assert f"{linked}: metadata serde.linked: expected files with location" in told_of(linked)


def test_facts_are_told_once(linked: Path) -> None:
    model = onnx.load(linked, load_external_data=False)
    model.metadata_props.append(model.metadata_props[-1])
    linked.write_bytes(model.SerializeToString())
    assert "metadata serde.linked: expected files with location" in told_of(linked)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "elsewhere", "up/secret"])
def test_facts_of_files_that_no_weight_lies_in_open_nothing(location: str, linked: Path) -> None:
    linked.parent.joinpath("up").symlink_to("..")
    rewrite(linked, json.dumps([{**GOOD, "location": location}]))
    serde.to_relay(linked)


def test_a_name_of_a_hidden_folder_does_not_lead_out_of_it(linked: Path) -> None:
    """Only while serde writes a model there, its data may lie beside its later place."""
    hidden = linked.parent / ".serde-abcdefgh" / "new"
    hidden.mkdir(parents=True)
    shutil.copyfile(linked, hidden / "m.onnx")
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        serde.to_relay(hidden / "m.onnx")


def test_fingerprints_of_many_ranges_look_into_some(tmp_path: Path) -> None:
    size = 40 * (MOST_RANGES + 1000)
    (tmp_path / "d").write_bytes(bytes(size))
    with OpenFile.open(tmp_path / "d") as opened:
        found = Fingerprint.take(opened, [(40 * i, 40) for i in range(MOST_RANGES + 1000)])
        assert len(found.ranges) == MOST_RANGES
        assert found.fault(opened) is None
    change(tmp_path / "d", found.ranges[2000][0])
    with OpenFile.open(tmp_path / "d") as opened:
        fault = found.fault(opened)
    assert fault is not None
    assert fault.startswith(f"expected {found.digest}, found ")
