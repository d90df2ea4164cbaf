"""Folders of TVMScript and parameters: what TVM reads of them, and what comes back."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any as AnyValue, TypeVar

import numpy as np
import pytest
from support.relax_folders import HEAD, SCRIPT, layered_model, write_model

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import as_weight, numpy_dtype
from serde.errors import FormatError, OptionError
from serde.relax import codec
from serde.relax.codec import read_folder, write_weights
from serde.relax.exporter import from_relay
from serde.relax.framework import load
from serde.relax.options import RelaxExportOptions
from serde.relax.text.metadata import read_metadata, split_metadata
from serde.relax.text.parsing import parse_script
from serde.relax.text.syntax import check_script
from serde.relay.ir.dims import DimLike, symbol
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

tvm = pytest.importorskip("tvm")

GOLDEN = Path(__file__).parents[2] / "golden" / "relax"
RNG = np.random.default_rng(7)


def built(model: RelayModel) -> AnyValue:
    return from_relay(model, RelaxExportOptions(), Report()).module


def parsed(text: str) -> AnyValue:
    """Return what TVM parses of a text, in this process."""
    document, rest = split_metadata(text)
    script = check_script(rest)
    metadata = {} if document is None else read_metadata(document)
    return parse_script(script.text, script.names, metadata)


def model_of(make: Callable[..., AnyValue], **shapes: Sequence[DimLike]) -> RelayModel:
    """Return a model of inputs by name that are float32."""
    variables = [relay.var(name, shape=shape, dtype="float32") for name, shape in shapes.items()]
    module = IRModule.from_expr(relay.Function(variables, make(*variables)))
    return RelayModel(module, {}, ModelMeta(inputs=tuple(shapes), outputs=("y",)))


def constant(value: AnyValue, dtype: str = "float32") -> AnyValue:
    return relay.const(np.asarray(value, numpy_dtype(dtype)))


def arange_to(rows: AnyValue) -> AnyValue:
    """Return numbers whose count the values of a tensor tell."""
    return relay.arange(constant(0), rows, constant(1))


def mirror_ends(x: AnyValue) -> AnyValue:
    """Return a tensor that goes on at both ends of its last axis."""
    return relay.nn.mirror_pad(x, ((0, 0), (0, 0), (0, 0), (1, 2)))


N, M = symbol("n"), symbol("m")
MODELS = {
    "layers": layered_model(),
    "nothing": model_of(lambda x: x, x=(2,)),
    "scalars": model_of(lambda x: relay.add(x, constant(np.pi)), x=()),
    "NaN and infinities": model_of(
        lambda x: relay.where(relay.less(x, constant(-np.inf)), constant(np.nan), constant(np.inf)),
        x=(3,),
    ),
    "an infinite padding": model_of(
        lambda x: relay.nn.pad(x, ((0, 1), (1, 0)), constant(-np.inf)), x=(2, 3)
    ),
    "a function of TIR": model_of(mirror_ends, x=(1, 6, 3, 4)),
    "a function of TIR of a symbol": model_of(mirror_ends, x=(N, 6, M, 4)),
    "names of Python": model_of(relay.add, exec=(2,), input=(2,)),
    "symbols": model_of(lambda x: relay.reshape(x, (-1,)), x=(N, M)),
    "offsets of buffers": model_of(relay.argwhere, x=(N, M)),
    "a length that values tell": model_of(arange_to, rows=()),
    "two lengths of one axis": model_of(relay.add, x=(2, N), y=(M,)),
}  # fmt: skip


SHORT = frozenset(("layers", "a length that values tell"))


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in SHORT else pytest.mark.wide) for each in MODELS]
)
def test_tvm_prints_the_same_text_of_what_it_parsed(name: str) -> None:
    text = built(MODELS[name]).script(show_meta=True)
    again = parsed(text).script(show_meta=True)
    assert split_metadata(again)[1].strip() == split_metadata(text)[1].strip()


@pytest.mark.wide
@pytest.mark.parametrize("name", ["layers", "scalars", "symbols", "names of Python"])
def test_tvm_itself_reads_what_is_written(name: str, tmp_path: Path) -> None:
    """TVM's own parser, its own metadata and its own parameter files, of the same module."""
    folder = write_model(tmp_path / "net_relax", MODELS[name])
    text = (folder / "model.py").read_text()
    literal = re.match(r'metadata = tvm.ir.load_json\((""".*?""")\)', text, re.DOTALL)
    known: dict[str, AnyValue] = {}
    if literal is not None:
        known["metadata"] = tvm.ir.load_json(ast.literal_eval(literal[1]))
        text = text[literal.end() :]
    framework = load()
    package = framework.tvm.script.parser
    known |= {"I": package.ir, "R": package.relax, "T": package.tirx, "TypeVar": TypeVar}
    found = tvm.script.from_source(text, extra_vars=known)
    tvm.ir.assert_structural_equal(found, built(MODELS[name]))
    arrays = tvm.runtime.load_param_dict((folder / "model.params").read_bytes())
    assert [each.shape for each in arrays.values()] == [
        tuple(map(int, framework.type_of(each).shape.values))
        for each in found["main"].params[len(MODELS[name].meta.inputs) :]
    ]


DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("float8_e4m3fnuz", "float8_e5m2fnuz"),
)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tvm_reads_the_weights_of_every_dtype(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    data = RNG.integers(0, 2, shape).astype(numpy_dtype(dtype))
    write_weights({"w": as_weight(data), "other": as_weight(data)}, tmp_path)
    arrays = tvm.runtime.load_param_dict((tmp_path / "model.params").read_bytes())
    assert list(arrays) == ["w", "other"]
    for found in arrays.values():
        assert str(found.dtype) == dtype
        assert tuple(found.shape) == shape
        assert found.numpy().tobytes() == data.tobytes()


@pytest.mark.wide
def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    model = layered_model()
    folder = write_model(tmp_path / "net_relax", model)
    found = serde.to_relay(folder)
    assert found.meta.inputs == ("data:0",)
    assert found.meta.outputs == ("prob/1", 'other "one"')
    assert {'b"\n\\', "conv.weight"} <= set(found.params)
    kernel = model.params["conv.weight"].array()
    np.testing.assert_array_equal(found.params["conv.weight"].array(), kernel)
    assert sorted(codec.load(folder, None).files) == sorted(folder.iterdir())


@pytest.mark.wide
@pytest.mark.parametrize("name", ["layers", "a function of TIR", "a length that values tell"])
def test_a_folder_computes_what_its_model_does(name: str, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "net_relax", MODELS[name])
    assert ("call_tir" in (folder / "model.py").read_text()) == (name != "layers")
    report = serde.check(MODELS[name], folder)
    assert report.passed
    assert report.engines is not None
    assert report.engines[1].startswith("tvm ")


@pytest.mark.wide
def test_a_folder_is_written_again_in_the_same_bytes(tmp_path: Path) -> None:
    first = write_model(tmp_path / "first_relax")
    second = write_model(tmp_path / "second_relax")
    read = serde.to_relay(first)
    third = write_model(tmp_path / "third_relax", read)
    fourth = write_model(tmp_path / "fourth_relax", serde.to_relay(third))
    for name in ("model.py", "model.params"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
        assert (third / name).read_bytes() == (fourth / name).read_bytes()


@pytest.mark.wide
def test_frozen_weights_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "net_relax"
    model = layered_model()
    serde.export_model(model, format="relax", path=folder, freeze_vars=True)
    module, weights = read_folder(folder)
    assert not weights
    assert len(module["main"].params) == 1
    assert serde.check(model, folder).passed


@pytest.mark.wide
@pytest.mark.parametrize("release", ["0.25.0.post1", "0.26.0"])
def test_the_text_of_an_older_release_is_read(release: str) -> None:
    """What that release printed of a convolution, a softmax in TIR and lengths of a symbol."""
    text = (GOLDEN / f"printed_{release}.txt").read_text()
    found = parsed(text)
    names = [each.name_hint for each in found.functions.keys()]  # noqa: SIM118
    assert sorted(names) == ["main", "softmax"]
    shape = load().type_of(found["main"].params[0]).shape
    assert str(shape.values[0]) == "n"
    assert [int(each) for each in shape.values[1:]] == [3, 8, 8]
    again = found.script(show_meta=True)
    assert re.search(r"R.call_tir\(cls.softmax, \(lv4,\), out_\w+=R.Tensor\(\(n, 4, 8, 8\)", again)
    assert re.search(r'\("?n"?, T.int64\(4\), T.int64\(8\), T.int64\(8\)\)', again)
    tvm.compile(found, target="llvm")


def test_lengths_that_tvm_numbers_as_it_prints_them_are_read() -> None:
    framework = load()
    lengths = [framework.tir.Var("_", "int64") for _ in range(2)]
    x = framework.relax.Var("x", framework.TensorType(lengths, "float32"))
    builder = framework.relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(framework.relax.op.nn.relu(x)))
    text = builder.get().script()
    assert "__1" in text
    tvm.ir.assert_structural_equal(parsed(text), builder.get())


@pytest.mark.parametrize("edit", ["missing", "further", "shape", "dtype"])
def test_weights_that_main_does_not_take_are_refused(edit: str, tmp_path: Path) -> None:
    module = built(layered_model())
    good = {"conv_weight": np.zeros((4, 3, 3, 3), "float32"), "b": np.zeros(4, "float32")}
    names = [name for name in _parameters(module) if name != "data_0"]
    good = dict(zip(names, good.values(), strict=True))
    first = names[0]
    given: dict[str, AnyValue] = {
        "missing": {first: good[first]},
        "further": {**good, "more": good[first]},
        "shape": {**good, first: np.zeros((4, 3, 3, 2), "float32")},
        "dtype": {**good, first: np.zeros((4, 3, 3, 3), "float16")},
    }[edit]
    codec.load(module, good)
    with pytest.raises(OptionError, match=r"params: (no value for|no weight of|expected)"):
        codec.load(module, given)


def _parameters(module: AnyValue) -> list[str]:
    from serde.relax.reflection import name_of

    return [name_of(each) for each in module["main"].params]


def test_a_folder_without_a_module_is_refused(tmp_path: Path) -> None:
    write_weights({}, tmp_path)
    with pytest.raises(FormatError, match=r"expected a file model\.py in the folder"):
        read_folder(tmp_path)


def test_a_folder_without_weights_is_read_where_the_module_has_none(tmp_path: Path) -> None:
    folder = tmp_path / "net_relax"
    folder.mkdir()
    (folder / "model.py").write_text(HEAD + SCRIPT)
    report = serde.convert(folder, tmp_path / "net.onnx")
    assert [each["name"] for each in report.facts["inputs"]] == ["x"]


def test_a_folder_without_the_weights_of_its_module_is_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "net_relax")
    (folder / "model.params").unlink()
    told = r"expected a file model\.params in the folder.* no value for conv_weight, b"
    with pytest.raises(FormatError, match=told):
        serde.to_relay(folder)


def test_a_parameter_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("")
    (tmp_path / "model.params").write_bytes(b"PK")
    with pytest.raises(FormatError, match="expected a parameter file of TVM's"):
        read_folder(tmp_path)


def test_a_text_that_is_none_is_refused(tmp_path: Path) -> None:
    write_weights({}, tmp_path)
    (tmp_path / "model.py").write_bytes(b"ab\xff")
    with pytest.raises(FormatError, match=r"model.py: .*at byte 2: a text that is not UTF-8"):
        read_folder(tmp_path)
