"""What scripts written for TVM find, against what TVM 0.17 printed and computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.golden import tvm_ops

import serde.relay as relay
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir.device import Device
from serde.relay.ir.registry import find

GOLDEN = json.loads((Path(__file__).parent.parent / "golden/tvm/relay_api.json").read_text())
X = relay.var("x", shape=(2, 3))


@pytest.mark.parametrize("case", range(len(GOLDEN["recast"])))
def test_recast(case: int) -> None:
    record = GOLDEN["recast"][case]
    mod = relay.transform.recast(relay.fromtext(record["before"]), **record["options"])
    assert relay.transform.InferType()(mod).astext(strict=True) == record["after"]


def test_recast_refuses_what_yields_several_tensors() -> None:
    with pytest.raises(RelayError, match="which no cast takes"):
        relay.transform.recast(relay.split(X, 3, 1), "float16", "", ops=["split"])


@pytest.mark.parametrize("name", GOLDEN["losses"])
def test_losses(name: str) -> None:
    generator = np.random.RandomState(0)
    values = [generator.rand(2, 3).astype("float32") for _ in range(2)]
    mod = relay.IRModule.from_expr(getattr(relay.nn, name)(X, relay.var("y", shape=(2, 3))))
    found = relay.create_executor(mod=mod).evaluate()(*values)
    np.testing.assert_allclose(found, GOLDEN["losses"][name], rtol=1e-6)
    with pytest.raises(TypeInferenceError):
        getattr(relay.nn, name)(X, relay.var("y", shape=(3, 2)))


def test_values_on_devices_are_the_values() -> None:
    copied = relay.device_copy(relay.annotation.on_device(X, "llvm -mcpu=x"), "cpu", "cuda")
    value = np.ones((2, 3), "float32")
    found = relay.create_executor(mod=relay.IRModule.from_expr(copied)).evaluate()(value)
    np.testing.assert_array_equal(found, value)
    assert str(copied.attrs.dst_virtual_device).startswith("VirtualDevice(device_type=2,")
    with pytest.raises(TypeInferenceError, match="src_virtual_device"):
        relay.device_copy(X, "abacus", "cpu")


def test_devices_are_read_from_json_and_those_of_variables_go() -> None:
    copy = relay.load_json(GOLDEN["json"])["main"].body
    assert list(copy.attrs.values()) == [Device(1, 0), Device(2, 1)]
    main = relay.fromtext(GOLDEN["placed"])["main"]
    assert main.attrs == {}
    assert main.body.args == main.params


def test_support_levels() -> None:
    known = {name: fact.get("support_level") for name, fact in tvm_ops().items() if find(name)}
    facts = {name: level for name, level in known.items() if level}
    assert {name: relay.op.get(name).support_level for name in facts} == facts
    assert relay.op.get("serde.gelu").support_level == 10


CALLS = """#[version = "0.0.5"]
def @main(%x: float32) { add(@a(%x), @b(@a(%x))) }
def @a(%x: float32) -> float32 { @b(%x) }
def @b(%x: float32) -> float32 { %x }
def @r(%x: float32) -> float32 { if (less(%x, 1f)) { @r(%x) } else { %x } }
def @t(%x: float32) -> float32 { let %f = @b; %f(@main(%x)) }
"""


def test_the_graph_of_calls() -> None:
    graph = relay.analysis.CallGraph(relay.fromtext(CALLS))
    facts: dict[str, Any] = {
        name: (graph.ref_count(name), graph.global_call_count(name), graph.is_recursive(name))
        for name in ["main", "a", "b", "r", "t"]
    }
    assert facts == {
        "main": (1, 2, False), "a": (1, 1, False), "b": (3, 0, False), "r": (1, 1, True),
        "t": (0, 2, False),
    }  # fmt: skip
    sites = "  call site: <t> calls b\n  call site: <t> calls main\n\n"
    assert graph.print_var("t") == f"Call graph node: t,  #refs = 0\n{sites}"
    assert graph.print_var("r") in str(graph)
    with pytest.raises(RelayError, match="no function is called z"):
        graph.ref_count("z")


BOUNDS = [
    ({"begin": [-1], "end": [], "strides": [-1]}, (7, 9)),
    ({"begin": [], "end": [-9], "strides": [-1]}, (8, 9)),
    ({"begin": [-1, -1], "end": [-9], "strides": [-1]}, (8, 1)),
    ({"begin": [-1], "end": [-9], "strides": [-1, -1]}, (8, 8)),
    ({"begin": [], "end": [3], "strides": [-1]}, (4, 9)),
]


@pytest.mark.parametrize("case", range(len(BOUNDS)))
def test_bounds_that_are_not_given(case: int) -> None:
    bounds, shape = BOUNDS[case]
    assert relay.strided_slice(relay.var("x", shape=(8, 9)), **bounds).type.shape == shape


def test_modules_tell_and_print_what_they_have(capsys: pytest.CaptureFixture[str]) -> None:
    mod = relay.fromtext(CALLS).with_attrs({"a": 1, "b": 2}).without_attr("a")
    assert mod.attrs == {"b": 2}
    assert [each.name_hint for each, _ in mod.functions_items()] == ["a", "b", "main", "r", "t"]
    relay.transform.Sequential([relay.transform.PrintIR("here")])(mod)
    assert capsys.readouterr().out == f"PrintIR(here):\n{mod}\n"


@pytest.mark.parametrize(
    "path", ["analysis.detect_feature", "transform.gradient", "frontend.from_keras"]
)
def test_names_that_are_left_out_say_why(path: str) -> None:
    module, _, name = path.partition(".")
    with pytest.raises(AttributeError, match=f"relay.{path} is not in serde: "):
        getattr(getattr(relay, module), name)
