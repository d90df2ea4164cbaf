"""Relay text and TVM's JSON with slips in them: read as they are, or refused at their place."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mutations import mutate_json, mutate_text
from support.programs import call_texts, programs
from support.tiers import first_of
from support.tvm_layout import module_json

import serde
import serde.relay as relay
from serde.command.cli import main
from serde.core.outcome import exit_code
from serde.errors import FormatError, IllTypedError, SerdeError, UnsupportedModelError
from serde.relay.ir.compare import assert_structural_equal
from serde.relayfile.codec import load

COUNT = 150
HEADER = '#[version = "0.0.5"]\n'
_PLACE = re.compile(r"<text>:\d+:\d+: |at byte 0: |<bytes>: the module has no function main")
_NODE = re.compile(r"node \d+|expected TVM's JSON|<bytes>: the module has no function main")


@cache
def texts() -> list[str]:
    """What TVM printed, as far as it reads back."""
    names = {**call_texts(), **programs()}
    found = [names[name][form] for name in sorted(names) for form in ("text", "typed")]
    return [text for text in found if _reads(text)]


@cache
def graphs() -> list[str]:
    return [module_json(relay.fromtext(text)) for text in texts()[1::2]]


def _reads(text: str) -> bool:
    try:
        relay.fromtext(text)
    except SerdeError:
        return False
    return True


def convert(source: str) -> SerdeError | None:
    """Return the error that ends reading; what ends the writing must be a refusal."""
    with np.errstate(all="ignore"):
        try:
            model = serde.to_relay(source.encode(), format="relay")
        except SerdeError as error:
            return error
        try:
            serde.from_relay(model, format="onnx")
        except UnsupportedModelError:
            return None
    return None


def check(source: str, place: re.Pattern[str]) -> None:
    """Require that a source converts, is refused, or has a fault at a place that is named."""
    error = convert(source)
    assert error is None or (exit_code(error) == 3 and place.match(str(error))), error


@pytest.mark.wide
@pytest.mark.parametrize("seed", first_of(range(COUNT), range(60)))
def test_text_with_slips(seed: int) -> None:
    rng = random.Random(seed)
    check(mutate_text(texts()[rng.randrange(len(texts()))], rng), _PLACE)


@pytest.mark.wide
@pytest.mark.parametrize("seed", first_of(range(COUNT), range(60)))
def test_json_with_slips(seed: int) -> None:
    rng = random.Random(seed)
    check(mutate_json(graphs()[rng.randrange(len(graphs()))], rng), _NODE)


@pytest.mark.parametrize("name", sorted(set(programs()) - {"odd_name", "composite", "primitive"}))
def test_json_of_programs(name: str) -> None:
    """What the mutations begin with is sound."""
    mod = relay.fromtext(programs()[name]["typed"])
    assert_structural_equal(load(module_json(mod)).mod, mod)


FN = f"{HEADER}def @main(%x: Tensor[(2, 3), float32], %n: Tensor[(4), int32]) {{\n"


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        ("  %0 = exp(%x);\n  add(%0, %n)\n", "4:3", "add: dtypes differ: float32, int32"),
        ("  %0 = nn.dense(%x,\n    %n, units=None);\n  exp(%0)\n", "3:8", "nn.dense: "),
        ("  (%x, sum(%x, axis=[7]))\n", "3:8", "sum: "),
        ("  if (%x) { %x } else { %x }\n", "3:3", "a condition must be a scalar bool"),
        ("  if (True) { %x } else { %n }\n", "3:3", "the branches of an if differ"),
        ("  let %y: float32 = %x;\n  %y\n", "3:3", "expected float32, found Tensor[(2, 3)"),
        ("  let %f = fn (%a: int32) -> bool { %a };\n  %x\n", "3:12", "expected a result of bool"),
        ("  %0 = split(%x, indices_or_sections=3, axis=1);\n  %0.3\n", "4:3", "no such field"),
        ("  %x(%n)\n", "3:3", "Var(x) is called but is Tensor[(2, 3), float32]"),
        ("  %0 = fn (%a: int32) { %a };\n  %0(%x)\n", "4:3", "argument 0: expected int32"),
        ("  full(1f, shape=[-9], dtype=\"float32\")\n", "3:3", "full: expected a dimension of 0"),
        ("  let %a = { let %b = exp(%x); %0 = exp(%b); %0 };\n  exp(%0)\n", "3:37", "outside what"),
    ],
)  # fmt: skip
def test_where_text_does_not_type(body: str, place: str, message: str) -> None:
    with pytest.raises(IllTypedError) as raised:
        relay.fromtext(f"{FN}{body}}}\n", name="net.relay")
    assert str(raised.value).startswith(f"net.relay:{place}: ")
    assert message in str(raised.value)
    assert f"{raised.value.line}:{raised.value.column}" == place


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        (("relay.TensorType", "dtype", "float16"), r"node (\d+): add: dtypes differ: float16, flo"),
        (("relay.Call", "span", "2"), r"node (\d+): a span is no place in a source"),
        (("relay.Call", "op", "{add}"), None),
        (("relay.Call", "args", "-7"), r"node (\d+): "),
    ],
)
def test_where_json_does_not_type(slip: tuple[str, str, str], message: str | None) -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.exp(x + y)))
    graph: dict[str, Any] = json.loads(module_json(mod))
    kind, field, value = slip
    place = next(i for i, node in enumerate(graph["nodes"]) if node["type_key"] == kind)
    graph["nodes"][place]["attrs"][field] = value.format(add=place + 1)
    with pytest.raises(FormatError) as raised:
        load(json.dumps(graph))
    found = re.search(message or r"node (\d+): ", str(raised.value))
    assert found, raised.value
    named = graph["nodes"][int(found[1])]["type_key"]
    assert named == "relay.Call"


def test_json_that_uses_a_variable_outside_its_scope_is_refused() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Let(y, x, relay.exp(y))))
    graph = json.loads(module_json(mod))
    let = next(node for node in graph["nodes"] if node["type_key"] == "relay.Let")
    function = next(node for node in graph["nodes"] if node["type_key"] == "relay.Function")
    function["attrs"]["body"] = let["attrs"]["body"]
    with pytest.raises(FormatError, match=r"node \d+: main: Var\(y\): the variable is used but"):
        load(json.dumps(graph))


@pytest.mark.parametrize("target", ["x.onnx", "x.mlpackage", "x-symbol.json"])
def test_the_command_names_line_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    path = tmp_path / "bad.relay"
    path.write_text(f"{FN}  %0 = exp(%x);\n  add(%0, %n)\n}}\n")
    assert main(["convert", str(path), str(tmp_path / target)]) == 3
    shown = capsys.readouterr().err
    assert f"{path}:4:3: add: dtypes differ: float32, int32" in shown.replace("\n", "")
    assert "defect" not in shown
    assert not (tmp_path / target).exists()


def test_a_shape_that_operators_do_not_take_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.relay"
    body = '  nn.dense(%x, ones(shape=[5, 4], dtype="float32"), units=5)\n'
    path.write_text(f"{HEADER}def @main(%x: Tensor[(N, K), float32]) {{\n{body}}}\n")
    target = str(tmp_path / "net.onnx")
    assert main(["convert", str(path), target, "--input-shape", "x:2,7"]) == 2
    shown = capsys.readouterr().err.replace("\n", " ")
    assert "the model does not take x Tensor[(2, 7), float32]: nn.dense: " in shown
    assert main(["convert", str(path), target, "--input-shape", "x:2,4"]) == 0
