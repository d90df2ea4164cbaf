"""TVM's JSON as it is written, against what TVM itself saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.golden import FOLDER, golden_calls
from support.samples import build

import serde
import serde.relay as relay
from serde.compat import tvm
from serde.errors import RelayError
from serde.relay.ir import all_ops

SAVED = json.loads((FOLDER / "saved.json").read_text())["graphs"]
BY_IDENTITY = ("relay.Var", "relay.Id", "relay.Call", "relay.Function", "tir.Var", "TypeVar")


def tvm_text(name: str) -> str:
    """Return what TVM saved, in its own layout."""
    nodes = []
    for key, fields, rest in ([*node, None, None][:3] for node in SAVED[name]["nodes"]):
        texts = {field: str(value) for field, value in (fields or {}).items()}
        nodes.append({"type_key": key, **(rest or {}), **({"attrs": texts} if fields else {})})
    return json.dumps({
        "root": SAVED[name]["root"], "nodes": nodes, "b64ndarrays": SAVED[name]["arrays"],
        "attrs": {"tvm_version": "0.17.0"},
    })  # fmt: skip


class _Comparison:
    """Compares a graph with one of TVM's, whatever the numbers of the nodes."""

    def __init__(self, name: str, text: str) -> None:
        self.theirs = SAVED[name]
        self.ours = json.loads(text)
        self.pairs: dict[int, int] = {}

    def run(self) -> set[int]:
        """Return which nodes of TVM's were compared."""
        pending = [(self.theirs["root"], self.ours["root"])]
        seen = set()
        while pending:
            pair = pending.pop()
            if pair not in seen:
                seen.add(pair)
                pending += self.check(*pair)
        assert len({*self.pairs.values()}) == len(self.pairs)
        return {theirs for theirs, _ in seen}

    def check(self, theirs: int, ours: int) -> list[tuple[int, int]]:
        key, fields, rest = [*self.theirs["nodes"][theirs], None, None][:3]
        node = self.ours["nodes"][ours]
        assert node["type_key"] == key
        if key in BY_IDENTITY:
            assert self.pairs.setdefault(theirs, ours) == ours
        found = node.get("attrs", {})
        assert found.keys() == (fields or {}).keys(), key
        below = []
        for name, value in (fields or {}).items():
            # We have types before any pass, and tags of our own.
            if (name, value) == ("_checked_type_", 0) or name == "tag":
                continue
            if isinstance(value, int):
                below.append((value, int(found[name])))
            elif key == "relay.Constant":
                mine = self.ours["b64ndarrays"][int(found[name])]
                assert mine == self.theirs["arrays"][int(value)]
            else:
                assert found[name] == value, (key, name)
        rest = rest or {}
        for name in ("repr_str", "repr_b64"):
            assert node.get(name) == rest.get(name)
        return below + self.items(key, rest, node)

    def items(self, key: str, theirs: Any, ours: Any) -> list[tuple[int, int]]:
        mine, other = ours.get("data", []), theirs.get("data", [])
        assert len(mine) == len(other)
        if "keys" in theirs:
            assert sorted(ours["keys"]) == sorted(theirs["keys"])
            at = dict(zip(ours["keys"], mine, strict=True))
            return [(b, at[k]) for k, b in zip(theirs["keys"], other, strict=True)]
        if key != "Map":
            return list(zip(other, mine, strict=True))
        named = {self.our_name(mine[i]): mine[i : i + 2] for i in range(0, len(mine), 2)}
        pairs = [
            (other[i : i + 2], named[self.their_name(other[i])]) for i in range(0, len(other), 2)
        ]
        return [pair for both in pairs for pair in zip(*both, strict=True)]

    def our_name(self, index: int) -> str:
        name = self.ours["nodes"][index]["attrs"]["name_hint"]
        return self.ours["nodes"][int(name)]["repr_str"]

    def their_name(self, index: int) -> str:
        return self.theirs["nodes"][self.theirs["nodes"][index][1]["name_hint"]][2]["repr_str"]


@pytest.mark.parametrize("name", SAVED)
def test_what_tvm_saved_is_written_as_tvm_does(name: str) -> None:
    comparison = _Comparison(name, relay.save_json(relay.load_json(tvm_text(name))))
    # The first stands for nothing.
    assert {0, *comparison.run()} == {*range(len(comparison.theirs["nodes"]))}


@pytest.mark.thin(8)
@pytest.mark.parametrize("case", golden_calls(), ids=lambda case: case.name)
def test_calls_read_back(case: Any) -> None:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(case.build()))
    relay.assert_structural_equal(relay.load_json(relay.save_json(mod)), mod)


@pytest.mark.thin(8)
@pytest.mark.parametrize("name", [n for n, op in all_ops().items() if op.decompose is not None])
def test_extension_calls_read_back_as_themselves(name: str) -> None:
    function = build(all_ops()[name], all_ops()[name].samples[0]).function
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    if "Sequence" in mod.astext():
        pytest.skip("TVM has no sequences")
    relay.assert_structural_equal(relay.load_json(relay.save_json(mod)), mod)


def test_the_names_of_tvm() -> None:
    assert tvm.ir.save_json(relay.op.get("add")) == relay.save_json(relay.op.get("add"))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("exclusive", [None, False, True])
def test_scans_take_no_word_of_what_they_leave_out(name: str, exclusive: bool | None) -> None:
    found = getattr(relay, name)(relay.var("x", shape=(2, 3)), 0, exclusive=exclusive)
    assert found.attrs["exclusive"] is bool(exclusive)
    relay.assert_structural_equal(relay.load_json(relay.save_json(found)), found, True)


def test_dimensions_are_one_variable_each() -> None:
    x, y = relay.var("x", shape=("n", "m")), relay.var("y", shape=("m", "n"))
    body = relay.concatenate([relay.reshape(each, (-1,)) for each in (x, y)], 0)
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x, y], body)))
    text = relay.save_json(mod)
    names = [node for node in json.loads(text)["nodes"] if node["type_key"] == "tir.Var"]
    assert len(names) == 2
    relay.assert_structural_equal(relay.load_json(text), mod)


def test_a_type_to_be_found_is_one_of_its_own_at_each_place() -> None:
    part = relay.TupleType([relay.IncompleteType()])
    text = relay.save_json(relay.TupleType([part, part]))
    kinds = [node["type_key"] for node in json.loads(text)["nodes"]]
    assert kinds.count("IncompleteType") == 2


def test_a_deep_graph() -> None:
    x = value = relay.var("x", shape=(2,))
    for _ in range(20_000):
        value = relay.tanh(value)
    mod = relay.IRModule.from_expr(relay.Function([x], value))
    graph = json.loads(relay.save_json(mod))
    assert sum(node["type_key"] == "relay.Call" for node in graph["nodes"]) == 20_000
    assert sum(node["type_key"] == "relay.TensorType" for node in graph["nodes"]) == 1


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (relay.TensorType((2,), "complex64"), "no element type complex64"),
        ([], "expected a module, an expression or a type, found list"),
        (relay.SequenceType(relay.TensorType(())), "cannot hold a Sequence"),
        (relay.Call(relay.op.get("serde.eig"), [relay.var("x", shape=(2, 2))]), "no body in plain"),
    ],
)
def test_what_tvm_lacks_is_refused(node: Any, message: str) -> None:
    with pytest.raises(RelayError, match=message):
        relay.save_json(node)


def test_what_a_builder_hands_out_for_a_tuple() -> None:
    parts = relay.split(relay.var("x", shape=(4,)), 2)
    text = relay.save_json(parts)
    assert '"repr_str": "2"' in text
    assert repr(relay.load_json(text)) == repr(parts.astuple())


def test_an_element_type_that_tvm_calls_otherwise() -> None:
    type_ = relay.TensorType((2,), "float8_e4m3fn")
    text = relay.save_json(type_)
    assert '"e4m3_float8"' in text
    assert relay.load_json(text) == type_


# ---- As files.


def model() -> serde.RelayModel:
    x, w = relay.var("x", shape=("n", 4)), relay.var("w.é", shape=(3, 4))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.serde.gelu(relay.nn.dense(x, w))))
    return serde.to_relay((mod, {"w.é": np.eye(3, 4, dtype="float32")}), format="relay")


def test_a_model_as_json_and_parameters(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    expected = model()
    for _ in range(2):  # Its own parameters are replaced.
        serde.from_relay(expected, format="relay", path=path)
    found = serde.to_relay(path)
    relay.assert_structural_equal(found.mod, expected.mod)
    assert found.meta.outputs == expected.meta.outputs
    np.testing.assert_array_equal(found.params["w.é"].array(), np.eye(3, 4))
    read = relay.load_json(path.read_text())
    relay.assert_structural_equal(read["main"], found.mod["main"])


def test_parameters_of_other_json_are_refused(tmp_path: Path) -> None:
    w = relay.var("w.é", shape=(3, 4))
    other = relay.IRModule.from_expr(relay.Function([w], relay.tanh(w)))
    for name, value in (("a", model()), ("b", (other, {"w.é": np.eye(3, 4, dtype="float32")}))):
        serde.from_relay(value, format="relay", path=tmp_path / f"{name}.json")
    (tmp_path / "b.params").replace(tmp_path / "a.params")
    with pytest.raises(serde.FormatError, match="mismatched pair"):
        serde.to_relay(tmp_path / "a.json")
