"""Models of NNEF in all their forms: folders, texts, archives, graphs in memory."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any as AnyValue

import nnef
import numpy as np
import pytest
from support.nnef_files import (
    EXTENSIONS,
    NET,
    WEIGHT,
    Array,
    dat,
    graph,
    header,
    pack,
    write_folder,
)

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError, OptionError, UnsupportedModelError
from serde.nnef.bridge import BRIDGE
from serde.nnef.codec import detect, load

X = np.array([[-2, -1, 0], [0.5, 1, 2]], np.float32)
Y = np.maximum(X + WEIGHT, 0)


def run(source: AnyValue, x: Array = X, **options: AnyValue) -> list[Array]:
    """Return the outputs of a model whose input is ``x``."""
    return RelayEngine(serde.to_relay(source, format="nnef", **options)).run({"x": x})


# Files


FORMS = {
    "folder": lambda folder, tmp: folder,
    "graph.nnef": lambda folder, tmp: folder / "graph.nnef",
    "tgz": lambda folder, tmp: pack(folder, tmp / "net.nnef.tgz"),
    "tar": lambda folder, tmp: pack(folder, tmp / "net.tar", mode="w"),
    "dotted": lambda folder, tmp: pack(folder, tmp / "net.tgz", top="./"),
    "top folder": lambda folder, tmp: pack(folder, tmp / "net.tar.gz", top="packed/net/"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(form: str, tmp_path: Path) -> None:
    source = FORMS[form](write_folder(tmp_path / "net"), tmp_path)
    assert detect(source)
    np.testing.assert_array_equal(run(source)[0], Y)


def test_a_text_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "net.nnef"
    path.write_text(graph("y = relu(x);"))
    assert detect(path)
    np.testing.assert_array_equal(run(path)[0], np.maximum(X, 0))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "# caf\u00e9\r# version 2.0;\n" + text,
        lambda text: text.replace(" ", "\t\v\f"),
        lambda text: text.replace("'block/w'", '"block/w"'),
    ],
    ids=["mark", "crlf", "cr", "comments", "blanks", "quotes"],
)
def test_texts_as_editors_leave_them(change: AnyValue, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "net", change(NET))
    assert detect(source / "graph.nnef")
    np.testing.assert_array_equal(run(source)[0], Y)


def test_weights_stay_in_their_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net")
    model = load(folder)
    assert model.files == (folder / "graph.nnef", folder / "block/w.dat")
    source = model.weights["block/w"].source
    assert source is not None
    assert (source.path, source.offset, source.length) == (str(folder / "block/w.dat"), 128, 24)
    packed = load(pack(folder, tmp_path / "net.tgz")).weights["block/w"]
    assert packed.source is not None
    np.testing.assert_array_equal(packed.array(), WEIGHT)


def test_labels_outside_of_ascii(tmp_path: Path) -> None:
    text = NET.replace("block/w", "bl\u00f6ck/\u91cd\u307f")
    folder = write_folder(tmp_path / "net", text, {"bl\u00f6ck/\u91cd\u307f": WEIGHT})
    np.testing.assert_array_equal(run(folder)[0], Y)
    np.testing.assert_array_equal(run(pack(folder, tmp_path / "net.tgz"))[0], Y)


def test_variables_of_one_label_share_its_data(tmp_path: Path) -> None:
    body = (
        "v = variable(shape = [2, 3], label = 'w'); u = variable(shape = [2, 3], label = 'w'); "
        "s = add(x, v); y = add(s, u);"
    )
    model = serde.to_relay(write_folder(tmp_path / "net", graph(body), {"w": WEIGHT}))
    np.testing.assert_allclose(RelayEngine(model).run({"x": X})[0], X + 2 * WEIGHT)
    assert len({id(each) for each in model.params.values()}) == 1


# Tensor files


ELEMENTS = {"f": "scalar", "i": "integer", "u": "integer", "b": "logical"}
RNG = np.random.default_rng(0)


def stored(folder: Path, data: bytes, shape: AnyValue, element: str) -> AnyValue:
    """Return what is read of a tensor file."""
    body = f"v = variable<{element}>(shape = {list(shape)}, label = 'v'); y = copy(v);"
    return load(write_folder(folder, graph(body), {"v": data})).weights["v"]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (11,), (1, 2, 1, 2, 1, 2, 1, 3)])
@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "float64", "int8", "int16", "int32", "int64",
     "uint8", "uint16", "uint32", "uint64", "bool"],
)  # fmt: skip
def test_tensors_that_the_package_writes(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    value = RNG.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    found = stored(tmp_path, dat(np.asarray(value)), shape, ELEMENTS[value.dtype.kind])
    assert (found.dtype, found.shape) == (dtype, shape)
    np.testing.assert_array_equal(found.array(), value, strict=True)
    assert b"".join(found.chunks()) == np.asarray(value).tobytes()


@pytest.mark.parametrize(
    ("fields", "data", "expected"),
    [
        ({"bits": 8, "kind": 5, "length": 6}, bytes([0, 1, 0, 2, 255, 0]), [0, 1, 0, 1, 1, 0]),
        ({"bits": 1, "kind": 5, "length": 1}, bytes([0b10110111]), [1, 0, 1, 1, 0, 1]),
        ({"bits": 8, "kind": 1, "length": 6, "reserved": 1}, bytes(range(251, 257 - 1)) + b"\1",
         [-5, -4, -3, -2, -1, 1]),
        ({"extents": (2, 3, 7, 9)}, WEIGHT.tobytes(), WEIGHT.reshape(-1)),
    ],
    ids=["bytes for logical", "bits behind the last", "signed as first writers have it", "extents"],
)  # fmt: skip
def test_tensors_that_others_write(
    fields: dict[str, AnyValue], data: bytes, expected: AnyValue, tmp_path: Path
) -> None:
    element = {0: "scalar", 1: "integer", 5: "logical"}[fields.get("kind", 0)]
    found = stored(tmp_path, header(**fields) + data, (2, 3), element)
    np.testing.assert_array_equal(found.array().reshape(-1), expected)


def test_one_logical_value_ignores_the_bits_behind_it(tmp_path: Path) -> None:
    fields = header(rank=1, extents=(1,), bits=1, kind=5, length=1)
    assert not stored(tmp_path, fields + b"\x7f", (1,), "logical").array()[0]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16"])
def test_files_tell_what_is_quantised(dtype: str, tmp_path: Path) -> None:
    body = "v = variable(shape = [3], label = 'v'); y = copy(v);"
    value = np.array([1, 2, 3], dtype)
    quantization = '"v": linear_quantize(min = 0.0, max = 6.0, bits = 8);'
    folder = write_folder(tmp_path, graph(body), {"v": dat(value, quantized=True)}, quantization)
    assert load(folder).stored_quantized == {"v"}
    (folder / "v.dat").write_bytes(dat(value))
    assert load(folder).stored_quantized == {"v"}


# Graphs in memory


def snapshot(graph_: AnyValue) -> AnyValue:
    """Return all that a graph holds, for a comparison."""
    tensors = {
        name: (each.dtype, each.shape, None if each.data is None else each.data.tobytes())
        for name, each in graph_.tensors.items()
    }
    return copy.deepcopy((graph_.inputs, graph_.outputs, graph_.operations, tensors))


def test_a_graph_in_memory_is_read_and_left_alone(tmp_path: Path) -> None:
    source = nnef.load_graph(str(write_folder(tmp_path / "net")))
    before = snapshot(source)
    np.testing.assert_array_equal(run(source)[0], Y)
    assert snapshot(source) == before


def test_a_modified_graph_is_taken_as_it_is(tmp_path: Path) -> None:
    source = nnef.load_graph(str(write_folder(tmp_path / "net")))
    source.tensors["w"] = source.tensors["w"]._replace(data=WEIGHT * 2)
    last = source.operations[-1]
    source.operations[-1] = last._replace(inputs={"x": "s"}, outputs={"y": "z"})
    source.outputs[:] = ["z"]
    np.testing.assert_array_equal(run(source)[0], np.maximum(X + WEIGHT * 2, 0))


def operation(
    name: str, attributes: AnyValue, inputs: AnyValue, outputs: AnyValue, dtype: AnyValue = None
) -> AnyValue:
    names = {key: nnef.Identifier(each) if isinstance(each, str) else each
             for key, each in inputs.items()}  # fmt: skip
    return nnef.Operation(name, attributes, names, outputs, dtype)


def built(*operations: AnyValue, data: Array | None = WEIGHT, **changes: AnyValue) -> AnyValue:
    """Return a graph made by hand, as programs make them."""
    external = operation("external", {"shape": [2, np.int64(3)]}, {}, {"output": "x"}, "scalar")
    variable = operation(
        "variable", {"shape": np.array([2, 3]), "label": "the/label"}, {}, {"output": "w"}
    )
    tensors = {
        name: nnef.Tensor(name, "scalar", None, data if name == "w" else None, {})
        for name in ("x", "w", "y")
    }
    fields = {"name": "net", "tensors": tensors, "inputs": ["x"], "outputs": ["y"]}
    return nnef.Graph(**{**fields, **changes}, operations=[external, variable, *operations])


ADD = operation("add", {}, {"y": "w", "x": "x"}, {"z": "y"})


def test_operands_stand_in_any_order_and_literals_are_of_any_kind() -> None:
    pool = operation(
        "max_pool",
        {"size": (np.int32(1), 2), "padding": [[0, 0], np.array([0, 1])], "stride": []},
        {"input": "s"},
        {"output": "y"},
    )
    add = operation("add", {}, {"y": np.float32(0.5), "x": "w"}, {"z": "s"})
    model = load(built(add, pool))
    assert model.operations[2].operands()[1] == 0.5
    assert model.operations[3].attributes["padding"] == ((0, 0), (0, 1))
    assert [type(each) for each in model.operations[3].attributes["size"]] == [int, int]
    np.testing.assert_array_equal(run(built(ADD))[0], X + WEIGHT)


def test_operands_that_are_left_out_have_their_defaults() -> None:
    convolution = operation(
        "conv", {"padding": [(0, 0), (0, 0)]}, {"input": "x", "filter": "w"}, {"output": "y"}
    )
    assert load(built(convolution)).operations[2].inputs["bias"] == 0.0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (built(ADD, data=None), "variable 'the/label' has no data"),
        (built(ADD, data=WEIGHT.astype(object)), "'the/label': expected numbers, found object"),
        (built(ADD, data=WEIGHT[:1]), r"'the/label': expected shape \[2, 3\], found \[1, 3\]"),
        (built(ADD, data=WEIGHT.astype(int)), "'the/label': expected elements of type scalar"),
        (built(ADD, ADD), "tensor 'y' is given twice"),
        (built(ADD, outputs=["other"]), "output 'other' is no result of an operation"),
        (built(ADD, outputs=["y", "y"]), "a second output is called 'y'"),
        (built(ADD, inputs=[]), "external 'x' is no parameter"),
        (built(ADD, inputs=["x", "k"]), "input 'k' is not declared"),
        (built(operation("relu", {}, {"x": "late"}, {"y": "y"}), ADD), "nothing gives .* 'late'"),
        (built(operation("relu", {}, {}, {"y": "y"})), "relu without its operand 'x'"),
        (built(operation("relu", {}, {"x": "x", "q": "x"}, {"y": "y"})), "no operand 'q'"),
        (built(operation("relu", {}, {"x": "x"}, {"y": 3})), "expected the name of a tensor"),
        (built(operation("relu", {}, {"x": object()}, {"y": "y"})), "expected a number"),
        (built(operation("external", {"shape": [-1]}, {}, {"output": "y"})), "expected a shape"),
        (built(operation("external", {"shape": [1.5]}, {}, {"output": "y"})), "expected a shape"),
        (built(operation("copy", {}, {"x": "x"}, {"y": "y"}, "text")), "elements of type text"),
        (built(operation("update", {}, {"variable": "x", "value": "w"}, {"result": "y"})),
         "update: expected a variable, found 'x'"),
        (built(ADD, tensors=None), "expected a graph of the package nnef"),
    ],
)  # fmt: skip
def test_graphs_in_memory_that_are_not_sound(source: AnyValue, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(source)


def test_what_is_neither_a_path_nor_a_graph() -> None:
    with pytest.raises(OptionError, match=r"expected a path or an nnef.Graph, found int"):
        load(3)


# States


STATES = graph(
    "v = variable<scalar>(shape = [2, 3], label = 'states/v'); "
    "u = variable<scalar>(shape = [2, 3], label = 'u'); "
    "s = add(v, x); n = update(v, s); y = add(v, u); m = update(u, 0.0);"
)


def test_what_a_graph_updates_is_an_input_and_an_output(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", STATES, {"states/v": WEIGHT, "u": WEIGHT})
    report = Report()
    model = serde.to_relay(folder, report=report)
    assert model.meta.inputs == ("x", "v", "u")
    assert model.meta.outputs == ("y", "n", "m")
    assert model.meta.extra["v.state"] == "n"
    assert not model.params
    assert "v is a state: an input, at first the data of variable 'states/v'" in report.notes[0]
    v, u = X * 2, X * 3
    found = RelayEngine(model).run({"x": X, "v": v, "u": u})
    for value, expected in zip(found, (v + u, v + X, np.zeros_like(X)), strict=True):
        np.testing.assert_array_equal(value, expected)


def test_states_are_named_among_inputs_and_outputs(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", STATES, {"states/v": WEIGHT, "u": WEIGHT})
    names, model = BRIDGE.names(load(folder)), serde.to_relay(folder)
    assert (names.inputs, names.outputs) == (model.meta.inputs, model.meta.outputs)
    assert names.weights == tuple(model.params)
    assert [each.name for each in BRIDGE.summary(load(folder)).inputs] == ["x", "v", "u"]


def test_an_update_that_is_an_output_comes_once(tmp_path: Path) -> None:
    text = STATES.replace("-> (y)", "-> (n, y)")
    model = serde.to_relay(write_folder(tmp_path, text, {"states/v": WEIGHT, "u": WEIGHT}))
    assert model.meta.outputs == ("n", "y", "m")


def test_states_of_integers_are_as_wide_as_their_files(tmp_path: Path) -> None:
    body = "v = variable<integer>(shape = [2], label = 'v'); n = update(v, v); y = relu(x);"
    model = serde.to_relay(write_folder(tmp_path, graph(body), {"v": np.arange(2)}))
    assert model.inputs()[1].type == relay.TensorType((2,), "int64")


def test_an_update_of_another_shape_is_refused(tmp_path: Path) -> None:
    body = "v = variable(shape = [3, 2], label = 'v'); n = update(v, x); y = relu(x);"
    folder = write_folder(tmp_path, graph(body), {"v": WEIGHT.reshape(3, 2)})
    with pytest.raises(UnsupportedModelError, match="update"):
        serde.to_relay(folder)


# Options


def test_from_nnef_gives_module_and_parameters(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net")
    mod, params = relay.frontend.from_nnef(str(folder))
    assert list(params) == ["block/w"]
    executor = relay.create_executor("graph", mod=mod, params=params)
    np.testing.assert_array_equal(executor.evaluate()(X).numpy(), Y)
    frozen, rest = relay.frontend.from_nnef(nnef.load_graph(str(folder)), freeze_vars=True)
    assert rest == {}
    assert [each.name_hint for each in frozen["main"].params] == ["x"]
    np.testing.assert_array_equal(relay.create_executor("graph", frozen).evaluate()(X).numpy(), Y)


def test_inputs_take_other_shapes_and_dtypes(tmp_path: Path) -> None:
    path = tmp_path / "net.nnef"
    path.write_text(graph("y = relu(x);"))
    model = serde.to_relay(path, input_shapes={"x": ("n", 4)}, input_dtypes={"x": "float64"})
    assert repr(model.inputs()[0].type) == "Tensor[(n, 4), float64]"
    value = np.array([[-1.0, 2, 3, 4]])
    np.testing.assert_array_equal(RelayEngine(model).run({"x": value})[0], np.maximum(value, 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_shapes": {"x": (2,)}}, "expected 2 axes, found 1"),
        ({"input_shapes": {"w": (2, 3)}}, "w is a weight of the model"),
        ({"input_dtypes": {"q": "int32"}}, "no input is called q"),
        ({"custom_convert_map": {"relu": 3}}, "expected functions by name"),
    ],
)
def test_options_that_do_not_fit(
    options: dict[str, AnyValue], message: str, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=message):
        serde.to_relay(write_folder(tmp_path), **options)


def test_params_beside_a_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="holds its weights"):
        serde.to_relay(write_folder(tmp_path), {"w": WEIGHT})


@pytest.mark.wide
def test_commands_take_nnef(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from serde.command.cli import main

    folder = write_folder(tmp_path / "net", EXTENSIONS + NET.partition("\n")[2])
    assert main(["inspect", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "NNEF" in shown
    assert "x" in shown
    target = str(tmp_path / "net.onnx")
    assert main(["convert", str(folder), target]) == 0
    assert main(["check", str(folder), target]) == 0


@pytest.mark.wide
def test_the_parser_is_loaded_only_for_texts(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, serde.nnef.bridge as b; from pathlib import Path; "
        f"assert b.BRIDGE.detect(Path({str(write_folder(tmp_path))!r})); "
        "assert not b.BRIDGE.accepts(3); assert 'nnef' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
