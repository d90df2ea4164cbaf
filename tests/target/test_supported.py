"""Lists of what a toolchain takes: what each key means, and what each mistake says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import OptionError
from serde.onnx.profile import Bounds, OperatorRule, read_supported
from serde.target.partition import partition_for_onnx

TOOLCHAINS = Path(__file__).parents[2] / "examples" / "toolchains"


@pytest.mark.parametrize("source", [["Relu", "Conv"], {"Relu", "Conv"}, ("Conv", "Relu"),
                                    frozenset({"Conv", "Relu"}),
                                    {"operators": ["Conv", "Relu"]},
                                    {"operators": {"Conv": True, "Relu": {}}}])  # fmt: skip
def test_names_are_operators_without_constraints(source: Any) -> None:
    found = read_supported(source).operators
    assert found == {"Conv": OperatorRule(), "Relu": OperatorRule()}


def test_nothing_is_everything() -> None:
    assert read_supported(None).operators is None
    assert read_supported(read_supported(["Relu"])).operators == {"Relu": OperatorRule()}


DOCUMENT = {
    "name": "a chip",
    "max_opset": 13,
    "dynamic_shapes": False,
    "dtypes": ["float32"],
    "max_rank": 4,
    "operators": {
        "Relu": True,
        "Conv": {
            "versions": [11],
            "dtypes": {"T": ["float16"]},
            "ranks": {"X": [4], "Y": [4, 5]},
            "max_rank": 5,
            "constant": ["W"],
            "max_inputs": 2,
            "attributes": {"group": [1], "dilations": {"max": 2}, "auto_pad": ["NOTSET", "VALID"],
                           "strides": [[1, 1], [2, 2]]},
        },
    },
}  # fmt: skip

TOML = """
name = "a chip"
max_opset = 13
dynamic_shapes = false
dtypes = ["float32"]
max_rank = 4

[operators]
Relu = true

[operators.Conv]
versions = [11]
dtypes = { T = ["float16"] }
ranks = { X = [4], Y = [4, 5] }
max_rank = 5
constant = ["W"]
max_inputs = 2

[operators.Conv.attributes]
group = [1]
dilations = { max = 2 }
auto_pad = ["NOTSET", "VALID"]
strides = [[1, 1], [2, 2]]
"""


def test_a_file_says_what_a_mapping_says(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text(TOML)
    (tmp_path / "chip.json").write_text(json.dumps(DOCUMENT))
    found = read_supported(DOCUMENT)
    assert read_supported(tmp_path / "chip.toml") == found
    assert read_supported(str(tmp_path / "chip.json")) == found
    assert (found.name, found.max_opset, found.dynamic_shapes) == ("a chip", 13, False)
    assert found.operators is not None
    assert found.operators["Relu"] == OperatorRule(dtypes={"": frozenset({"float32"})}, max_rank=4)
    assert found.operators["Conv"] == OperatorRule(
        versions=frozenset({11}),
        dtypes={"T": frozenset({"float16"})},
        ranks={"X": frozenset({4}), "Y": frozenset({4, 5})},
        max_rank=5,
        constant=frozenset({"W"}),
        max_inputs=2,
        attributes={
            "group": (1,),
            "dilations": Bounds(None, 2),
            "auto_pad": ("NOTSET", "VALID"),
            "strides": ((1, 1), (2, 2)),
        },
    )


@pytest.mark.parametrize(
    "path",
    sorted({*TOOLCHAINS.rglob("*.toml"), *TOOLCHAINS.glob("*.json")}),
    ids=lambda path: path.name,
)
def test_the_examples_are_lists(path: Path) -> None:
    found = read_supported(path)
    assert found.name
    assert found.operators is not None
    assert "Relu" in found.operators


def conv(**rule: Any) -> dict[str, Any]:
    return {"operators": {"Conv": rule}}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "expected names, a mapping or a path, found int 5"),
        ({}, "supported: expected a key operators"),
        ({"operators": 3}, "operators: expected names or tables, found int 3"),
        (
            {"operators": [], "operator": 1},
            "unknown key 'operator'; known: composites, date, domains, dtypes, dynamic_shapes",
        ),
        (["Convolution"], "'Convolution' is no operator of ONNX"),
        (["relu"], "'relu' is no operator of ONNX; meant Relu?"),
        ([3], "3 is no operator of ONNX"),
        ({"operators": ["Relu"], "name": 3}, "name: expected a text, found int 3"),
        ({"operators": ["Relu"], "max_opset": "13"}, "max_opset: expected a number from 0 on"),
        ({"operators": ["Relu"], "max_opset": True}, "max_opset: expected a number from 0 on"),
        ({"operators": ["Relu"], "max_rank": -1}, "max_rank: expected a number from 0 on"),
        ({"operators": ["Relu"], "dynamic_shapes": 1}, "dynamic_shapes: expected true or false"),
        ({"operators": ["Relu"], "dtypes": ["float"]}, "expected the name of a dtype such as"),
        ({"operators": ["Relu"], "dtypes": {"T": ["float32"]}}, "dtypes: unknown key 'T'"),
        ({"operators": {"Relu": False}}, "Relu: expected a table or true, found bool False"),
        ({"operators": {"Relu": None}}, "Relu: expected a table or true"),
        (conv(version=[11]), "Conv: unknown key 'version'; known: attributes, constant, dtypes"),
        (conv(versions=[12]), "expected a version at which Conv changed (1, 11, 22), found int 12"),
        (conv(versions=11), "versions: expected a list that is not empty, found int 11"),
        (conv(versions=[]), "versions: expected a list that is not empty, found list []"),
        (conv(dtypes=["double"]), "expected the name of a dtype such as float32, found str"),
        (conv(dtypes={"T2": ["int8"]}), "Conv: dtypes: unknown key 'T2'; known: T"),
        (conv(ranks=[-1]), "ranks: expected a rank of 0 to 32, found int -1"),
        (conv(ranks=["4"]), "ranks: expected a rank of 0 to 32, found str '4'"),
        (conv(ranks={"Z": [4]}), "ranks: unknown key 'Z'; known: B, W, X, Y"),
        (conv(max_rank="4"), "max_rank: expected a number from 0 on, found str '4'"),
        (conv(max_inputs=2.0), "max_inputs: expected a number from 0 on, found float 2.0"),
        (conv(constant=["weight"]), "expected the name of an input (B, W, X), found str 'weight'"),
        (conv(constant="W"), "constant: expected a list that is not empty, found str 'W'"),
        (conv(attributes=["group"]), "attributes: expected a table, found list"),
        (conv(attributes={"groups": [1]}), "attributes: unknown key 'groups'; known: auto_pad"),
        (conv(attributes={"group": 1}), "expected a list of values, or min and max, found int 1"),
        (conv(attributes={"group": []}), "expected a list of values, or min and max, found list"),
        (conv(attributes={"group": {"least": 1}}), "unknown key 'least'; known: max, min"),
        (conv(attributes={"group": {}}), "group: expected min or max"),
        (conv(attributes={"group": {"min": "1"}}), "min: expected a number, found str '1'"),
        (conv(attributes={"group": {"min": 3, "max": 2}}), "min 3 is above max 2"),
        (conv(attributes={"group": [True]}), "expected a number, a text or a list of these"),
        (conv(attributes={"group": [None]}), "expected a number, a text or a list of these"),
    ],
)
def test_each_mistake_is_told(source: Any, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_supported(source)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "", "expected a name ending in .toml or .json"),
        ("missing.toml", None, "No such file or directory"),
        ("a.toml", "operators = [", "a.toml: "),
        ("a.json", "{", "a.json: "),
        ("a.json", "[" * 100_000, "a.json: "),
        ("a.json", "[]", "a.json: expected a table, found list []"),
        ("a.json", '{"operators": ["Reluu"]}', "a.json: 'Reluu' is no operator of ONNX; meant"),
        ("a.json", '{"operators": []' + " " * 2**20 + "}", "expected at most 1048576 bytes"),
        ("a.toml", b"\xff", "a.toml: "),
    ],
)
def test_each_mistake_of_a_file_is_told(
    name: str, text: str | bytes | None, message: str, tmp_path: Path
) -> None:
    if text is not None:
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
    with pytest.raises(OptionError) as caught:
        read_supported(tmp_path / name)
    assert message in str(caught.value)


def test_a_newer_operator_set_is_refused() -> None:
    mod = relay.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(2,))))
    with pytest.raises(OptionError, match="opset 17: a chip reads at most 13"):
        partition_for_onnx(mod, supported=DOCUMENT)


def model(name: str) -> relay.IRModule:
    """One layer or two of each kind whose constraints are tested."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    h = relay.var("h", shape=(1, 4, 8, 8), dtype="float16")
    w = relay.var("w", shape=(4, 4, 3, 3))
    held = relay.const(np.full((4, 4, 3, 3), 0.5, np.float32))
    bodies = {
        "conv": relay.nn.conv2d(x, held, channels=4, kernel_size=(3, 3)),
        "conv of inputs": relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3)),
        "wide conv": relay.nn.conv2d(x, held, channels=4, kernel_size=(3, 3), strides=(3, 3)),
        "conv and bias": relay.nn.bias_add(
            relay.nn.conv2d(x, held, channels=4, kernel_size=(3, 3)), relay.const([1.0] * 4)
        ),
        "relu": relay.nn.relu(x),
        "half relu": relay.nn.relu(h),
        "leaky": relay.nn.leaky_relu(x, alpha=0.1),
        "reshape": relay.reshape(x, (4, 4, 4, 4)),
        "flat": relay.reshape(x, (256,)),
        "five axes": relay.reshape(x, (1, 2, 2, 8, 8)),
        "dynamic": relay.nn.relu(relay.var("d", shape=(relay.Any(), 4))),
        "named": relay.nn.relu(relay.var("d", shape=("N", 4))),
    }
    return relay.IRModule.from_expr(bodies[name])


@pytest.mark.parametrize(
    ("name", "rule", "expected"),
    [
        ("conv", {"Conv": {}}, True),
        ("conv", {"Relu": {}}, False),
        ("conv", {"Conv": {"versions": [11]}}, True),
        ("conv", {"Conv": {"versions": [1, 22]}}, False),
        ("conv", {"Conv": {"dtypes": ["float32"]}}, True),
        ("conv", {"Conv": {"dtypes": ["float16"]}}, False),
        ("conv", {"Conv": {"dtypes": {"T": ["float32"]}}}, True),
        ("conv", {"Conv": {"ranks": [4]}}, True),
        ("conv", {"Conv": {"ranks": [3]}}, False),
        ("conv", {"Conv": {"ranks": {"W": [4], "Y": [4]}}}, True),
        ("conv", {"Conv": {"ranks": {"W": [3]}}}, False),
        ("conv", {"Conv": {"max_rank": 4}}, True),
        ("conv", {"Conv": {"max_rank": 3}}, False),
        ("conv", {"Conv": {"constant": ["W"]}}, True),
        ("conv", {"Conv": {"constant": ["W", "B"]}}, True),
        ("conv of inputs", {"Conv": {"constant": ["W"]}}, False),
        ("conv of inputs", {"Conv": {}}, True),
        ("conv", {"Conv": {"max_inputs": 2}}, True),
        ("conv and bias", {"Conv": {}}, True),
        ("conv", {"Conv": {"attributes": {"group": [1]}}}, True),
        ("conv", {"Conv": {"attributes": {"group": [2, 4]}}}, False),
        ("conv", {"Conv": {"attributes": {"auto_pad": ["NOTSET"]}}}, True),
        ("conv", {"Conv": {"attributes": {"auto_pad": ["VALID"]}}}, False),
        ("conv", {"Conv": {"attributes": {"kernel_shape": [[3, 3]]}}}, True),
        ("conv", {"Conv": {"attributes": {"kernel_shape": [[1, 1], [5, 5]]}}}, False),
        ("conv", {"Conv": {"attributes": {"kernel_shape": {"min": 1, "max": 3}}}}, True),
        ("conv", {"Conv": {"attributes": {"kernel_shape": {"max": 2}}}}, False),
        ("wide conv", {"Conv": {"attributes": {"strides": {"max": 2}}}}, False),
        ("wide conv", {"Conv": {"attributes": {"strides": {"min": 2}}}}, True),
        ("leaky", {"LeakyRelu": {"attributes": {"alpha": [0.1]}}}, True),
        ("leaky", {"LeakyRelu": {"attributes": {"alpha": [0.2]}}}, False),
        ("relu", {"Relu": {"dtypes": ["float32"]}}, True),
        ("half relu", {"Relu": {"dtypes": ["float32"]}}, False),
        ("half relu", {"Relu": {"dtypes": ["float16", "float32"]}}, True),
        # The dtype of a shape is fixed by the operator and does not count.
        ("reshape", {"Reshape": {"dtypes": ["float32"], "constant": ["shape"]}}, True),
        ("reshape", {"Reshape": {"max_rank": 3}}, False),
        ("flat", {"Reshape": {"ranks": {"reshaped": [1]}}}, True),
        ("flat", {"Reshape": {"ranks": {"reshaped": [2]}}}, False),
        ("five axes", {"Reshape": {"max_rank": 4}}, False),
        ("five axes", {"Reshape": {"ranks": [4]}}, True),
        ("dynamic", {"Relu": {}}, True),
        ("named", {"Relu": {}}, True),
    ],
)
def test_a_constraint_decides(name: str, rule: dict[str, Any], expected: bool) -> None:
    mod = partition_for_onnx(model(name), supported={"operators": rule})
    assert ("tvmgen_default_onnx_main_0" in mod) is expected


@pytest.mark.parametrize("name", ["dynamic", "named"])
def test_a_toolchain_of_fixed_shapes_takes_none_that_are_not(name: str) -> None:
    supported = {"operators": ["Relu"], "dynamic_shapes": False}
    assert len(partition_for_onnx(model(name), supported=supported).functions) == 1
    assert len(partition_for_onnx(model("relu"), supported=supported).functions) == 2


@pytest.mark.parametrize(
    ("common", "own", "expected"),
    [
        ({"dtypes": ["float16"]}, {}, False),
        ({"dtypes": ["float16"]}, {"dtypes": ["float32"]}, True),
        ({"max_rank": 3}, {}, False),
        ({"max_rank": 3}, {"max_rank": 4}, True),
    ],
)
def test_an_operator_overrides_what_is_common(
    common: dict[str, Any], own: dict[str, Any], expected: bool
) -> None:
    mod = partition_for_onnx(model("relu"), supported={**common, "operators": {"Relu": own}})
    assert (len(mod.functions) == 2) is expected
