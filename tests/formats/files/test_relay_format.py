"""Relay as a format: text, TVM's parameter files and TVM's JSON, read and written."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.programs import programs
from support.tvm_layout import JsonGraph, container, param_file

import serde
import serde.relay as relay
from serde.command.cli import main
from serde.core.weights import ArrayWeight, FileWeight
from serde.errors import FormatError, OptionError, ParseError, RelayError, UnsupportedModelError
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.transform import InferType
from serde.relayfile.codec import load

RNG = np.random.default_rng(5)
KERNEL = RNG.normal(size=(4, 3, 3, 3)).astype("float32")
BIAS = RNG.normal(size=4).astype("float32")
PARAMS = {"conv.weight": KERNEL, "conv_weight": BIAS}

TEXT = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 3, 6, 6), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  nn.relu(nn.conv2d(%data, %w, padding=[1, 1, 1, 1]))
}
"""


def module(batch: int | str = 1) -> relay.IRModule:
    """A convolution whose parameters have names that text must spell alike."""
    data = relay.var("data", shape=(batch, 3, 6, 6))
    weight = relay.var("conv.weight", shape=KERNEL.shape)
    bias = relay.var("conv_weight", shape=BIAS.shape)
    conv = relay.nn.conv2d(data, weight, padding=(1, 1), kernel_size=(3, 3))
    out = relay.nn.relu(relay.nn.bias_add(conv, bias))
    return relay.IRModule.from_expr(relay.Function([data, weight, bias], out))


def model(batch: int | str = 1, **facts: Any) -> RelayModel:
    weights = {name: ArrayWeight(value) for name, value in PARAMS.items()}
    meta = ModelMeta(inputs=("data",), outputs=("score",), **facts)
    return RelayModel(InferType()(module(batch)), weights, meta)


def run(found: RelayModel, **inputs: np.ndarray) -> np.ndarray:
    arguments = [
        inputs[p.name_hint] if p.name_hint in inputs else found.params[p.name_hint].array()
        for p in found.main.params
    ]
    return relay.create_executor("debug", mod=found.mod).evaluate()(*arguments)


def relu_conv(data: np.ndarray, kernel: np.ndarray, pad: int = 1) -> np.ndarray:
    """The convolution of TEXT, written out in numpy."""
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,ocij->nohw", windows, kernel), 0)


# ---- The parameter file.


def test_parameter_file_has_the_documented_bytes(tmp_path: Path) -> None:
    serde.from_relay(model(), path=tmp_path / "net.relay")
    raw = (tmp_path / "net.params").read_bytes()
    reserved = slice(8, 16)  # TVM passes over this word, which holds the mark of the pair.
    assert raw[reserved] != bytes(8)
    assert raw[: reserved.start] + bytes(8) + raw[reserved.stop :] == param_file(PARAMS)


@pytest.mark.parametrize(
    "dtype", ["int8", "int32", "int64", "uint8", "bool", "float16", "float32", "float64"]
)
def test_parameter_dict_of_each_dtype(dtype: str) -> None:
    arrays = {"a": np.arange(6).reshape(2, 3).astype(dtype), "b": np.array(1, dtype)}
    raw = relay.save_param_dict(arrays)
    assert raw == param_file(arrays)
    back = relay.load_param_dict(raw)
    assert list(back) == ["a", "b"]
    for name, value in arrays.items():
        assert back[name].dtype == value.dtype
        np.testing.assert_array_equal(back[name], value)
        assert back[name].flags.owndata or back[name].base.flags.owndata
        for give in (back[name].numpy, back[name].asnumpy):
            assert type(give()) is np.ndarray
            np.testing.assert_array_equal(give(), value)


def test_bfloat16_is_type_code_4() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = np.array([1.0, -2.0], ml_dtypes.bfloat16)
    raw = relay.save_param_dict({"w": value})
    assert struct.pack("<BBH", 4, 16, 1) in raw
    assert raw.endswith(b"\x80\x3f\x00\xc0")
    np.testing.assert_array_equal(relay.load_param_dict(raw)["w"], value)


def test_a_dtype_that_tvm_lacks_is_refused() -> None:
    with pytest.raises(RelayError, match="complex64"):
        relay.save_param_dict({"w": np.zeros(2, "complex64")})


def test_an_array_of_another_device_is_read(tmp_path: Path) -> None:
    raw = param_file({"w": KERNEL}).replace(container(KERNEL), container(KERNEL, device=(2, 3)))
    np.testing.assert_array_equal(relay.load_param_dict(raw)["w"], KERNEL)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: b"\0" + raw[1:], "at byte 0: expected a parameter file"),
        (lambda raw: raw[:-1], "values of float32"),
        (lambda raw: raw + b"\0", "expected the end of the file, found 1 bytes"),
        (lambda raw: raw[:16] + struct.pack("<Q", 2**63) + raw[24:], "names do not fit"),
        (lambda raw: raw.replace(struct.pack("<BBH", 2, 32, 1), b"\x02\x20\x04\x00"), "4 lanes"),
    ],
)
def test_damage_of_a_parameter_file_is_named(damage: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        relay.load_param_dict(damage(param_file({"w": KERNEL})))


# ---- Text with parameters.


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "net.relay").write_text(TEXT)
    (tmp_path / "net.params").write_bytes(param_file({"w": KERNEL}))
    return tmp_path


@pytest.mark.parametrize(
    "names",
    [
        ["net.relay"],
        ["net.params"],
        ["net"],
        ["net.relay", "net.params"],
        ["net.params", "net.relay"],
    ],
)
def test_files_in_any_order(files: Path, names: list[str]) -> None:
    paths = [files / name for name in names]
    found = serde.to_relay(paths[0] if len(paths) == 1 else paths)
    assert [p.name_hint for p in found.inputs()] == ["data"]
    assert found.meta.inputs == ("data",)
    assert isinstance(found.params["w"], FileWeight)
    data = RNG.normal(size=(1, 3, 6, 6)).astype("float32")
    np.testing.assert_allclose(run(found, data=data), relu_conv(data, KERNEL), atol=1e-5)


@pytest.mark.parametrize("swap", [False, True])
def test_text_and_bytes(swap: bool) -> None:
    pair = [TEXT, param_file({"w": KERNEL})]
    found = serde.to_relay(pair[::-1] if swap else pair, format="relay")
    np.testing.assert_array_equal(found.params["w"].array(), KERNEL)


def test_a_spelling_of_tvm_finds_its_parameter() -> None:
    text = TEXT.replace("%w", "%v0_w")
    found = serde.to_relay((text, {"0_w": KERNEL}), format="relay")
    assert list(found.params) == ["v0_w"]


def test_parameters_of_another_model(files: Path) -> None:
    (files / "net.params").write_bytes(param_file({"other": BIAS}))
    with pytest.raises(FormatError, match=r"parameters of another model \(other\)"):
        serde.to_relay(files / "net.relay")


def test_a_parameter_of_another_shape(files: Path) -> None:
    (files / "net.params").write_bytes(param_file({"w": KERNEL[:2]}))
    with pytest.raises(FormatError, match=r"parameter w: expected Tensor\[\(4, 3, 3, 3\)"):
        serde.to_relay(files / "net.relay")


def test_parameters_that_main_lacks_are_noted(files: Path) -> None:
    (files / "net.params").write_bytes(param_file({"w": KERNEL, "momentum": BIAS}))
    report = serde.Report()
    assert list(serde.to_relay(files / "net.relay", report=report).params) == ["w"]
    assert report.notes == ["parameters that main does not have: momentum"]


def test_parameters_alone(files: Path) -> None:
    (files / "net.relay").unlink()
    with pytest.raises(FormatError, match=r"no net\.relay beside them"):
        serde.to_relay(files / "net.params")


def test_a_fault_in_text_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "net.relay"
    path.write_text(TEXT.replace("nn.relu", "nn.rule"))
    with pytest.raises(ParseError, match=r"net\.relay:3:3: no Relay operator is called nn\.rule"):
        serde.to_relay(path)


def test_shapes_of_inputs_may_be_made_exact(tmp_path: Path) -> None:
    serde.from_relay(model("N"), path=tmp_path / "net.relay")
    found = serde.to_relay(tmp_path / "net.relay", input_shapes={"data": (2, 3, 6, 6)})
    assert repr(found.main.body.checked_type) == "Tensor[(2, 4, 6, 6), float32]"
    with pytest.raises(OptionError, match=r"input data: expected .*found Tensor\[\(2, 5, 6, 6\)"):
        serde.to_relay(tmp_path / "net.relay", input_shapes={"data": (2, 5, 6, 6)})
    with pytest.raises(OptionError, match=r"no input image \(there are: data\)"):
        serde.to_relay(tmp_path / "net.relay", input_shapes={"image": (1,)})


def test_large_constants_become_weights() -> None:
    found = relay.IRModule.from_expr(
        relay.nn.conv2d(relay.var("data", shape=(1, 3, 6, 6)), relay.const(KERNEL), padding=(1, 1))
    )
    text = InferType()(found).astext(strict=True)
    lifted = serde.to_relay(text, format="relay")
    assert [p.name_hint for p in lifted.main.params] == ["data", "constant0"]
    np.testing.assert_array_equal(lifted.params["constant0"].array(), KERNEL)
    kept = serde.to_relay(text, format="relay", lift_constants=None)
    assert kept.params == {}
    data = RNG.normal(size=(1, 3, 6, 6)).astype("float32")
    np.testing.assert_array_equal(run(lifted, data=data), run(kept, data=data))


def test_a_constant_of_an_inner_function_stays() -> None:
    x = relay.var("x", shape=(100,))
    y = relay.var("y", shape=(100,))
    ones = np.ones(100, "float32")
    inner = relay.Function([y], relay.add(y, relay.const(ones)), None, attrs={"Primitive": 1})
    body = relay.add(inner(x), relay.const(2 * ones))
    found = serde.to_relay(InferType()(relay.IRModule.from_expr(body)))
    assert list(found.params) == ["constant0"]
    np.testing.assert_array_equal(found.params["constant0"].array(), 2 * ones)
    np.testing.assert_array_equal(run(found, x=ones), 4 * ones)


def test_a_constant_that_a_type_depends_on_stays() -> None:
    shape = relay.Constant(np.array([1, 3], "int64"))
    data = relay.var("x", shape=(2, 3))
    mod = InferType()(relay.IRModule.from_expr(relay.collapse_sum_to(data, shape)))
    found = serde.to_relay(mod, lift_constants=0)
    assert found.params == {}
    assert repr(found.main.body.checked_type) == "Tensor[(1, 3), float32]"


# ---- Writing.


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("batch", [1, "N"])
def test_round_trip_keeps_names_types_and_facts(
    tmp_path: Path, strict: bool, batch: int | str
) -> None:
    facts: dict[str, Any] = {
        "source_format": "mxnet",
        "source_version": "1.9.1",
        "description": 'says "hello"\nin two lines',
        "labels": ("cat", "Hündchen & Katze"),
        "extra": {"author": "a=b&c"},
    }
    given = model(batch, **facts)
    path = tmp_path / "net.relay"
    assert serde.from_relay(given, path=path, strict=strict) == path
    found = serde.to_relay(path)
    relay.assert_structural_equal(found.mod, given.mod)
    assert [p.name_hint for p in found.main.params] == ["data", "conv.weight", "conv_weight"]
    assert found.meta == given.meta
    for name, value in PARAMS.items():
        np.testing.assert_array_equal(found.params[name].array(), value)


@pytest.mark.parametrize("strict", [False, True])
def test_same_model_same_bytes(tmp_path: Path, strict: bool) -> None:
    serde.from_relay(model(), path=tmp_path / "a.relay", strict=strict)
    serde.convert(tmp_path / "a.relay", tmp_path / "b.relay", strict=strict)
    for suffix in (".relay", ".params"):
        first, second = ((tmp_path / f"{stem}{suffix}").read_bytes() for stem in "ab")
        assert first == second


def test_strict_text_does_not_round_in_silence(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2,))
    rounded = relay.IRModule.from_expr(relay.clip(x, 0.1234567890123, 1.0))
    with pytest.raises(UnsupportedModelError, match="six-digit-floats"):
        serde.export_model(rounded, format="relay", path=tmp_path / "net.relay", strict=True)
    assert list(tmp_path.iterdir()) == []
    report = serde.Report()
    serde.export_model(
        rounded, format="relay", path=tmp_path / "net.relay", strict=True,
        allow={"six-digit-floats"}, report=report,
    )  # fmt: skip
    assert [issue.node for issue in report.allowed] == ["main"]
    assert "a_min=0.123457f" in (tmp_path / "net.relay").read_text()


def test_without_a_path_module_and_arrays_are_returned() -> None:
    mod, params = serde.from_relay(model(), format="relay")
    assert isinstance(mod, relay.IRModule)
    np.testing.assert_array_equal(params["conv.weight"], KERNEL)


def test_foreign_parameters_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "net.params").write_bytes(b"precious")
    with pytest.raises(OptionError, match=r"net\.params: would be replaced"):
        serde.from_relay(model(), path=tmp_path / "net.relay")
    assert (tmp_path / "net.params").read_bytes() == b"precious"
    assert not (tmp_path / "net.relay").exists()


def test_a_source_is_not_written_over(files: Path) -> None:
    with pytest.raises(OptionError, match="is the same file as the source"):
        serde.convert(files / "net.relay", files / "net.relay")
    assert (files / "net.relay").read_text() == TEXT


def test_text_without_parameters_gets_no_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "net.relay"
    serde.from_relay(model(), path=path)
    serde.export_model(module(), format="relay", path=path)
    assert [p.name_hint for p in serde.to_relay(path).inputs()] == ["data", *PARAMS]


# ---- Programs of TVM's.


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", [n for n, p in programs().items() if p["reads_back"] is True])
def test_programs_of_tvm(name: str, tmp_path: Path) -> None:
    (tmp_path / "in.relay").write_text(programs()[name]["typed"])
    first = serde.to_relay(tmp_path / "in.relay")
    serde.from_relay(first, path=tmp_path / "out.relay", keep_batch_norm=True)
    expected = relay.fromtext(programs()[name]["typed"])
    relay.assert_structural_equal(first.mod, expected)
    text = load(tmp_path / "out.relay")
    assert [p.name_hint for p in text.mod["main"].params] == [
        p.name_hint for p in expected["main"].params
    ]


# ---- TVM's JSON.


def conv_graph(*, groups: int = 1, axis_object: bool = False) -> dict[str, Any]:
    """``take(conv2d(data, kernel) + constant, indices)`` with attributes of every form."""
    graph = JsonGraph()
    data = graph.var("data", graph.tensor_type(1, 3 * groups, 6, 6))
    kernel = graph.var("kernel", graph.tensor_type(4, 3, 3, 3))
    conv = graph.op("nn.conv2d")
    attrs = graph.object("relay.attrs.Conv2DAttrs")
    pair = [graph.array(graph.integer(1), graph.integer(1)) for _ in range(2)]
    padding = graph.array(*[graph.integer(1) for _ in range(4)])
    size = graph.array(graph.integer(3), graph.integer(3))
    fields = {
        "strides": pair[0],
        "padding": padding,
        "dilation": pair[1],
        "groups": groups,
        "channels": graph.integer(4),
        "kernel_size": size,
        "data_layout": "NCHW",
        "kernel_layout": "OIHW",
        "out_layout": "",
        "out_dtype": "float32",
        "auto_scheduler_rewritten_layout": "",
    }
    graph.nodes[attrs]["attrs"] = {name: str(value) for name, value in fields.items()}
    layer = graph.object(
        "Span", source_name=graph.add("SourceName", repr_str="conv0"),
        line=0, column=0, end_line=0, end_column=0,
    )  # fmt: skip
    found = graph.call(conv, data, kernel, attrs=attrs, span=layer)
    one = graph.constant(np.array([0.5], "float32"))
    total = graph.call(graph.op("add"), found, one)
    take = graph.object("relay.attrs.TakeAttrs")
    axis = graph.integer(1)
    batch = graph.integer(0) if axis_object else 0
    fields = {"axis": axis, "batch_dims": batch, "mode": graph.text("clip")}
    graph.nodes[take]["attrs"] = {name: str(value) for name, value in fields.items()}
    indices = graph.constant(np.array([2, 0], "int32"))
    body = graph.call(graph.op("take"), total, indices, attrs=take)
    return graph.module(main=graph.function([data, kernel], body))


@pytest.mark.parametrize("axis_object", [False, True])
def test_json_of_a_module(tmp_path: Path, axis_object: bool) -> None:
    (tmp_path / "net.json").write_text(json.dumps(conv_graph(axis_object=axis_object), indent=2))
    (tmp_path / "net.params").write_bytes(param_file({"kernel": KERNEL}))
    found = serde.to_relay(tmp_path / "net.json")
    data = RNG.normal(size=(1, 3, 6, 6)).astype("float32")
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    expected = (np.einsum("nchwij,ocij->nohw", windows, KERNEL) + 0.5)[:, [2, 0]]
    np.testing.assert_allclose(run(found, data=data), expected, atol=1e-5)
    names = {node.span.source_name for node in relay_calls(found) if node.span}
    assert names == {"conv0"}


def relay_calls(found: RelayModel) -> list[relay.Call]:
    from serde.relay.ir.visit import post_order

    return [node for node in post_order(found.main) if isinstance(node, relay.Call)]


def test_a_plain_number_that_is_also_a_node_stays_a_number() -> None:
    graph = conv_graph(groups=2)
    # Read as a reference, the two groups would be six.
    assert graph["nodes"][2]["attrs"]["value"] == "6"
    found = serde.to_relay(json.dumps(graph), format="relay")
    assert [call.attrs["groups"] for call in relay_calls(found) if "groups" in call.attrs] == [2]


def test_json_of_a_function_with_control_flow() -> None:
    graph = JsonGraph()
    x = graph.var("x", graph.tensor_type(2))
    cond = graph.var("cond", graph.tensor_type(dtype="bool"))
    y = graph.var("y", 0)
    both = graph.expr("relay.Tuple", fields=graph.array(y, x))
    first = graph.expr("relay.TupleGetItem", tuple_value=both, index=0)
    choice = graph.expr("relay.If", cond=cond, true_branch=first, false_branch=x)
    value = graph.call(graph.op("exp"), x)
    body = graph.expr("relay.Let", var=y, value=value, body=choice)
    text = json.dumps(graph.whole(graph.function([x, cond], body)))
    found = serde.to_relay(text, format="relay")
    data = np.array([1, 2], "float32")
    np.testing.assert_allclose(run(found, x=data, cond=np.array(True)), np.exp(data), rtol=1e-6)
    np.testing.assert_array_equal(run(found, x=data, cond=np.array(False)), data)


def loose_json(kind: str) -> str:
    """JSON of one node, as TVM writes what is no module."""
    graph = JsonGraph()
    if kind == "type":
        pair = graph.array(graph.tensor_type(2), graph.tensor_type(3, dtype="int8"))
        root = graph.object("TupleType", fields=pair, span=0)
    elif kind == "operator":
        root = graph.op("nn.relu")
    elif kind == "function":
        x = graph.var("x", graph.tensor_type(2))
        root = graph.function([x], graph.call(graph.op("exp"), x))
    elif kind == "array":
        root = graph.array(graph.integer(1))
    else:
        x, two = graph.var("x", 0), graph.constant(np.array([2, 3], "float32"))
        root = graph.call(graph.op("add"), x, two)
    return json.dumps(graph.whole(root))


LOOSE = {
    "type": "(Tensor[(2), float32], Tensor[(3), int8])",
    "operator": "nn.relu",
    "function": "fn (%x: Tensor[(2), float32]) {\n  exp(%x)\n}",
    "expression": "free_var %x;\nadd(%x, meta[relay.Constant][0])",
}


@pytest.mark.parametrize("kind", LOOSE)
def test_json_of_a_loose_node(kind: str) -> None:
    assert str(relay.load_json(loose_json(kind))) == LOOSE[kind]


def test_json_of_a_module_is_typed() -> None:
    graph = JsonGraph()
    x = graph.var("x", graph.tensor_type(2))
    text = json.dumps(graph.module(main=graph.function([x], graph.call(graph.op("exp"), x))))
    found = relay.load_json(text.encode())
    assert isinstance(found, relay.IRModule)
    assert str(found["main"].body.checked_type) == "Tensor[(2), float32]"


def test_json_of_a_variable_on_a_device_is_read_without_it() -> None:
    graph = JsonGraph()
    x = graph.var("x", graph.tensor_type(2))
    device = graph.object("VirtualDevice", device_type_int=1, virtual_device_id=0, target=0)
    graph.nodes[x]["attrs"]["virtual_device_"] = str(device)
    found = relay.load_json(json.dumps(graph.whole(x)))
    assert str(found) == "free_var %x: Tensor[(2), float32];\n%x"


def test_json_of_before_0_7_has_other_keys() -> None:
    graph = JsonGraph()
    operator = graph.add("relay.Op", global_key="nn.conv2d")
    assert relay.load_json(json.dumps(graph.whole(operator))) == relay.op.get("nn.conv2d")
    name = graph.object("relay.GlobalVar", name_hint="x", span=0, _checked_type_=0)
    assert str(relay.load_json(json.dumps(graph.whole(name)))) == "@x"


def test_json_of_a_dynamic_operator_has_the_attributes_of_the_plain_one() -> None:
    graph = JsonGraph()
    data, reps = graph.var("x", 0), graph.var("reps", 0)
    attrs = graph.object("relay.attrs.TileAttrs", reps=graph.array())
    found = relay.load_json(
        json.dumps(graph.whole(graph.call(graph.op("dyn.tile"), data, reps, attrs=attrs)))
    )
    assert str(found) == "free_var %x;\nfree_var %reps;\ndyn.tile(%x, %reps)"
    assert "dyn.tile(%x, %reps, reps=[])" in found.astext(strict=True)


def test_json_of_an_attribute_without_a_value_has_the_default() -> None:
    graph = JsonGraph()
    attrs = graph.object("relay.attrs.ScanopAttrs", axis=graph.integer(1), dtype="", exclusive=0)
    call = graph.call(graph.op("cumsum"), graph.var("x", 0), attrs=attrs)
    assert str(relay.load_json(json.dumps(graph.whole(call)))) == "free_var %x;\ncumsum(%x, axis=1)"


def test_json_of_typed_copies_is_read() -> None:
    graph = JsonGraph()
    kind = graph.tensor_type(dtype="int32")
    stop = graph.var("stop", kind)
    zero, one = (graph.constant(np.array(value, "int32")) for value in (0, 1))

    def copy(index: int) -> int:
        node = graph.nodes[index]
        return graph.object(node["type_key"], **{**node["attrs"], "_checked_type_": kind})

    names = dict(zip(("start", "stop", "step"), (zero, stop, one), strict=True))
    attrs = graph.object("relay.attrs.ArangeAttrs", dtype="int32", **names)
    operands = copy(zero), copy(stop), graph.constant(np.array(1, "int32"))
    call = graph.call(graph.op("arange"), *operands, attrs=attrs)
    found = relay.load_json(json.dumps(graph.whole(call)))
    assert str(found).endswith('arange(0, %stop, 1, dtype="int32")')


def test_json_of_a_list_is_refused() -> None:
    with pytest.raises(FormatError, match="expected a module or a function at the root"):
        relay.load_json(loose_json("array"))


@pytest.mark.wide
def test_json_of_a_deep_graph() -> None:
    graph = JsonGraph()
    x = value = graph.var("x", graph.tensor_type(1))
    negative = graph.op("negative")
    for _ in range(20_000):
        value = graph.call(negative, value)
    found = serde.to_relay(
        json.dumps(graph.module(main=graph.function([x], value))), format="relay"
    )
    assert len(relay_calls(found)) == 20_000


def broken_graph(what: str) -> dict[str, Any]:
    graph = JsonGraph()
    x = graph.var("x", graph.tensor_type(1))
    body = graph.call(graph.op("exp"), x)
    if what == "match":
        body = graph.expr("relay.Match", data=x, clauses=graph.array(), complete=1)
    if what == "reference":
        body = graph.expr("relay.RefRead", ref=x)
    if what == "constructor":
        owner = graph.object("GlobalTypeVar", name_hint=graph.text("List"), kind=5, span=0)
        nil = graph.expr(
            "relay.Constructor", name_hint=graph.text("Nil"), inputs=graph.array(), belong_to=owner
        )
        body = graph.call(nil)
    if what == "cycle":
        arguments = int(graph.nodes[body]["attrs"]["args"])
        graph.nodes[arguments]["data"] = [body]
    if what == "operator":
        body = graph.call(graph.op("nn.unheard_of"), x)
    if what == "operands":
        body = graph.call(graph.op("add"), x)
    if what == "far":
        graph.nodes[body]["attrs"]["op"] = "9999"
    if what == "attribute":
        attrs = graph.object("relay.attrs.ReduceAttrs", axis=0, keepdims=0, exclude=0, odd=1)
        body = graph.call(graph.op("sum"), x, attrs=attrs)
    return graph.module(main=graph.function([x], body))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("match", "no clause for _"),
        ("reference", "expected"),
        ("constructor", "belongs to no definition of a type|has no type"),
        ("cycle", "is below itself"),
        ("operator", "no Relay operator is called nn.unheard_of"),
        ("operands", "add: expected 2 operands, found 1"),
        ("far", "the graph has no node 9999"),
        ("attribute", "sum: unknown attribute odd"),
    ],
)
def test_json_that_the_pivot_lacks(what: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        serde.to_relay(json.dumps(broken_graph(what)), format="relay")


# ---- To and from other formats.


def test_to_onnx_is_called_as_tvms(tmp_path: Path) -> None:
    proto = relay.to_onnx(module(), PARAMS, "net", opset_version=17, path=tmp_path / "net.onnx")
    assert proto.graph.name == "net"
    assert [item.name for item in proto.graph.input] == ["data"]
    assert onnx.load(tmp_path / "net.onnx") == proto
    assert relay.to_onnx(module(), PARAMS, "net") == proto


@pytest.mark.wide
def test_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = str(files / "net.relay"), str(files / "net.onnx")
    assert main(["convert", source, target, "--check"]) == 0
    assert main(["inspect", source, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out[-10_000:].partition("\n{")[2].join(["{", ""]))
    assert shown["format"] == "relay"
    assert shown["parameters"] == KERNEL.size
    assert shown["inputs"] == [{"name": "data", "shape": [1, 3, 6, 6], "dtype": "float32"}]
    assert shown["operators"] == {"nn.conv2d": 1, "nn.relu": 1}
    (files / "net.relay").write_text('#[version = "0.0.5"]\ndef')
    assert main(["inspect", source]) == 3


def mxnet_net(folder: Path) -> Path:
    """A symbol and parameters, written by hand."""
    from support.params_layout import listing, v2

    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "fc.weight", "inputs": []},
        {"op": "null", "name": "fc_weight", "inputs": []},
        {
            "op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "4"},
            "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
        },
        {
            "op": "softmax", "name": "sm", "attrs": {"axis": "-1", "temperature": "3.0"},
            "inputs": [[3, 0, 0]],
        },
    ]  # fmt: skip
    graph = {"nodes": nodes, "arg_nodes": [0, 1, 2], "heads": [[4, 0, 0]],
             "attrs": {"mxnet_version": ["int", 10901]}}  # fmt: skip
    (folder / "m-symbol.json").write_text(json.dumps(graph))
    weight = RNG.normal(size=(4, 5)).astype("float32")
    (folder / "m-0000.params").write_bytes(
        listing([v2(weight), v2(BIAS)], ["arg:fc.weight", "arg:fc_weight"])
    )
    return folder / "m-symbol.json"


@pytest.mark.wide
@pytest.mark.parametrize("strict", [False, True])
def test_mxnet_through_files_to_onnx(tmp_path: Path, strict: bool) -> None:
    """Equal but for the names of nodes, which text does not hold."""
    symbol = mxnet_net(tmp_path)
    shapes = {"data": ("N", 5)}
    allow = {"six-digit-floats"}
    serde.convert(symbol, tmp_path / "direct.onnx", input_shapes=shapes)
    path = tmp_path / "r.relay"
    report = serde.convert(
        symbol, path, input_shapes=shapes, strict=strict, allow=allow, check=not strict
    )
    assert report.passed is not strict
    serde.convert(tmp_path / "r.relay", tmp_path / "through.onnx", check=not strict)
    direct, through = (onnx.load(tmp_path / f"{n}.onnx") for n in ("direct", "through"))
    assert [n.op_type for n in direct.graph.node] == [n.op_type for n in through.graph.node]
    assert [n.attribute for n in direct.graph.node] == [n.attribute for n in through.graph.node]
    assert direct.graph.input == through.graph.input
    assert direct.graph.output == through.graph.output
    assert direct.metadata_props == through.metadata_props
    assert {"fc.weight", "fc_weight"} <= {tensor.name for tensor in through.graph.initializer}
    ours, theirs = (
        {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer if t.dims}
        for proto in (direct, through)
    )
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name])
