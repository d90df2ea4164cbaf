"""TVM's JSON of modules and of loose nodes, read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tvm_layout import JsonGraph, param_file

import serde
import serde.relay as relay
from serde.compat import tvm
from serde.errors import FormatError
from serde.relay.ir.model import RelayModel

RNG = np.random.default_rng(5)
KERNEL = RNG.normal(size=(4, 3, 3, 3)).astype("float32")


def run(found: RelayModel, **inputs: np.ndarray) -> np.ndarray:
    arguments = [
        inputs[p.name_hint] if p.name_hint in inputs else found.params[p.name_hint].array()
        for p in found.main.params
    ]
    return relay.create_executor("debug", mod=found.mod).evaluate()(*arguments)


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


@pytest.mark.parametrize("kind", ["TypeVar", "GlobalTypeVar"])
def test_json_of_before_0_7_names_type_variables_by_others(kind: str) -> None:
    graph = JsonGraph()
    name = graph.object("Variable", dtype="int32", name="elements")
    text = json.dumps(graph.whole(graph.object(f"relay.{kind}", kind=0, span=0, var=name)))
    found = relay.load_json(text)
    assert isinstance(found, getattr(relay, kind))
    assert found.name_hint == "elements"


def test_json_of_before_0_7_computes_lengths_by_other_keys() -> None:
    graph = JsonGraph()
    count = graph.object("SizeVar", dtype="int32", name="count")
    assert str(tvm.ir.load_json(json.dumps(graph.whole(count)))) == "count"
    more = graph.object("Add", dtype="int32", a=count, b=graph.integer(2))
    half = graph.object("FloorDiv", dtype="int32", a=more, b=graph.integer(2))
    type_ = graph.object("relay.TensorType", shape=graph.array(more, half), dtype="int8", span=0)
    found = relay.load_json(json.dumps(graph.whole(type_)))
    assert found == relay.TensorType(
        (relay.symbol("count") + 2, (relay.symbol("count") + 2) // 2), "int8"
    )


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
