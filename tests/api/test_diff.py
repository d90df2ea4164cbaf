"""What differs between two models; differences are put in by hand."""

from __future__ import annotations

import copy
import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.toy_format import MODEL, TOY

import serde
import serde.bridge.formats
import serde.relay as relay
from serde.checking.difference import PortDiff, WeightDiff
from serde.command.cli import main
from serde.core.weights import ArrayWeight, Weight
from serde.errors import OptionError, UnsupportedModelError
from serde.relay.run.computed import ComputedWeight


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and the toy format beside those there are."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [TOY])
    monkeypatch.chdir(tmp_path)
    write("m.toy", MODEL)
    return tmp_path


def write(name: str, model: Any) -> None:
    Path(name).write_text(json.dumps(model))


def changed(**changes: Any) -> dict[str, Any]:
    return {**MODEL, **changes}


def weights(**changes: Any) -> dict[str, Any]:
    return changed(weights={**MODEL["weights"], **changes})


def test_equal_models(work: Path) -> None:
    found = serde.diff("m.toy", "m.toy")
    assert found.equal
    assert not found
    assert (found.formats, found.same_weights) == (("toy", "toy"), 2)


def test_names_inside_do_not_count(work: Path) -> None:
    nodes = copy.deepcopy(MODEL["nodes"])
    nodes[0]["name"] = nodes[1]["inputs"][0] = "other"
    write("n.toy", changed(nodes=nodes))
    assert serde.diff("m.toy", "n.toy").equal


def test_ports(work: Path) -> None:
    inputs = [["data", [4, 3], "float32"]]
    write("n.toy", changed(inputs=inputs, outputs=["out", "shifted"]))
    found = serde.diff("m.toy", "n.toy")
    described = [
        (p.kind, p.name, p.left and p.left.shape, p.right and p.right.shape) for p in found.ports
    ]
    assert described == [
        ("input", "data", (2, 3), (4, 3)),
        ("output", "out", (2, 3), (4, 3)),
        ("output", "limited", (2, 3), None),
        ("output", "shifted", None, (4, 3)),
    ]
    assert isinstance(found.ports[0], PortDiff)
    assert found.graph is not None


def test_the_order_of_outputs(work: Path) -> None:
    write("n.toy", changed(outputs=["limited", "out"]))
    found = serde.diff("m.toy", "n.toy")
    assert (found.ports, found.ordered, found.equal) == ((), False, False)


def test_operators_of_the_format_and_the_place_in_the_graph(work: Path) -> None:
    nodes = copy.deepcopy(MODEL["nodes"])
    nodes[1]["op"] = "Times"
    write("n.toy", changed(nodes=nodes))
    found = serde.diff("m.toy", "n.toy")
    assert found.operators == {"Plus": (1, 0), "Times": (1, 2)}
    assert found.operator_set == "toy"
    assert found.graph is not None
    assert "'add' and 'multiply'" in found.graph


def test_an_attribute(work: Path) -> None:
    nodes = copy.deepcopy(MODEL["nodes"])
    nodes[2]["low"] = -0.5
    write("n.toy", changed(nodes=nodes))
    found = serde.diff("m.toy", "n.toy")
    assert found.operators == {}
    assert found.graph is not None
    assert found.graph.endswith(".attrs.a_min: -1.0 and -0.5")


def test_values_of_weights(work: Path) -> None:
    write("n.toy", weights(w=["float32", [0.5, -1.25, 2.5]]))
    found = serde.diff("m.toy", "n.toy")
    assert found.weights == (WeightDiff("w", None, ((3,), (3,)), ("float32", "float32"), 0.5, 2),)
    assert (found.same_weights, found.graph) == (1, None)
    assert not found.equal
    only_graph = serde.diff("m.toy", "n.toy", weights=False)
    assert only_graph.equal
    assert only_graph.same_weights is None


def test_shapes_of_weights(work: Path) -> None:
    write("n.toy", weights(w=["float32", [0.5]], b=["float32", [0.5, 0.25, 0.0]]))
    found = serde.diff("m.toy", "n.toy")
    described = {w.name: (w.shapes, w.max_abs) for w in found.weights}
    assert described["w"] == (((3,), (1,)), None)
    assert described["b"][1] == pytest.approx(0.4)
    assert found.graph is not None


def test_renamed_weights_are_matched_by_their_bytes(work: Path) -> None:
    nodes = copy.deepcopy(MODEL["nodes"])
    nodes[0]["inputs"] = ["data", "scale"]
    values = MODEL["weights"]
    write("n.toy", changed(nodes=nodes, weights={"scale": values["w"], "b": values["b"]}))
    found = serde.diff("m.toy", "n.toy")
    assert found.weights == (WeightDiff("w", "scale", ((3,), (3,)), ("float32", "float32")),)
    assert found.graph is None
    assert found.same_weights == 1


def relay_model(**values: Any) -> relay.RelayModel:
    """The sum of an input and some weights."""
    x = relay.var("x", shape=(3,), dtype="float32")
    body: Any = x
    params: dict[str, Weight] = {}
    variables = [x]
    for name, value in values.items():
        weight = value if isinstance(value, Weight) else ArrayWeight(np.asarray(value))
        params[name] = weight
        variables.append(relay.var(name, shape=weight.shape, dtype=weight.dtype))
        body = relay.add(body, relay.sum(relay.cast(variables[-1], "float32")))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(variables, body)))
    return relay.RelayModel(mod, params, relay.ModelMeta(inputs=("x",), outputs=("y",)))


def test_weights_of_equal_bytes_are_not_matched_at_random() -> None:
    ones = np.ones(3, "float32")
    found = serde.diff(relay_model(a=ones, b=ones), relay_model(c=ones, d=ones))
    sides = [(w.name, w.renamed, w.shapes) for w in found.weights]
    assert sides == [
        ("a", None, ((3,), None)),
        ("b", None, ((3,), None)),
        ("c", None, (None, (3,))),
        ("d", None, (None, (3,))),
    ]


@pytest.mark.parametrize(
    ("left", "right", "max_abs", "elements"),
    [
        (np.float32([0.0, 1.0]), np.float32([-0.0, 1.0]), None, 0),
        (np.float32([np.nan, 1.0]), np.float32([np.nan, 1.0]), None, 0),
        (np.float32([np.nan, 1.0]), np.float32([2.0, 1.0]), math.inf, 1),
        (np.float32([np.inf, 1.0]), np.float32([np.inf, 1.5]), 0.5, 1),
        (np.float32([np.inf]), np.float32([-np.inf]), math.inf, 1),
        (np.float32([0.5, 1.0]), np.float16([0.5, 1.0]), 0.0, 0),
        (np.int64([2**60]), np.int64([2**60 + 1]), 1.0, 1),
        (np.int32([7, 1]), np.int32([3, 1]), 4.0, 1),
        (np.uint8([0, 255]), np.uint8([255, 255]), 255.0, 1),
        (np.bool_([True, False]), np.bool_([True, True]), 1.0, 1),
        (np.float32(2.0), np.float32(2.5), 0.5, 1),
    ],
)
def test_numbers_are_compared_as_numbers(
    left: Any, right: Any, max_abs: float | None, elements: int
) -> None:
    found = serde.diff(relay_model(w=left), relay_model(w=right)).weights
    if max_abs is None:
        assert found == ()
        return
    assert (found[0].max_abs, found[0].elements) == (max_abs, elements)


class Rows(Weight):
    """A large weight that makes its rows when they are asked for."""

    def __init__(self, shift: float) -> None:
        self.shape = (1000, 100_000)
        self.dtype = "float32"
        self._shift = shift

    def rows(self, start: int, stop: int) -> np.ndarray:
        value = np.zeros((stop - start, self.shape[1]), "float32")
        if start <= 999 < stop:
            value[-1, -1] = self._shift
        return value


@pytest.mark.wide
def test_weights_are_compared_in_pieces() -> None:
    models = relay_model(w=Rows(0.0)), relay_model(w=Rows(0.25))
    tracemalloc.start()
    found = serde.diff(*models)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(w.max_abs, w.elements) for w in found.weights] == [(0.25, 1)]
    # The weights have 400 MB each.
    assert peak < 200e6


def test_computed_weights_are_compared() -> None:
    x = relay.var("v", shape=(3,), dtype="float32")
    doubled = relay.multiply(x, relay.const(np.float32(2.0)))
    base = ArrayWeight(np.float32([1.0, 2.0, 3.0]))
    computed = ComputedWeight(doubled, {x: base})
    assert serde.diff(relay_model(w=computed), relay_model(w=np.float32([2.0, 4.0, 6.0]))).equal


def test_models_of_two_formats(work: Path) -> None:
    write("n.toy", changed(outputs=["out"]))
    serde.convert("n.toy", "n.relay")
    found = serde.diff("n.toy", "n.relay")
    assert found.equal
    assert found.formats == ("toy", "relay")
    assert found.operator_set == "relay"
    assert found.versions[0] == "2"


def test_a_shape_is_given_to_both(work: Path) -> None:
    write("m.toy", changed(inputs=[["data", None, "float32"]]))
    write("n.toy", changed(inputs=[["data", [2, 3], "float32"]]))
    assert serde.diff("m.toy", "n.toy", input_shapes={"data": (2, 3)}).equal
    with pytest.raises(OptionError, match="unknown option opset"):
        serde.diff("m.toy", "n.toy", opset=17)


def test_a_model_that_cannot_be_read_as_relay(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fold = {"op": "Fold", "name": "out", "inputs": ["data"]}
    write("n.toy", changed(nodes=[fold], outputs=["out"]))
    with pytest.raises(UnsupportedModelError):
        serde.diff("m.toy", "n.toy")
    assert main(["diff", "m.toy", "n.toy"]) == 5
    assert "not compared: toy -> relay: 1 of 1 nodes" in capsys.readouterr().err


def test_exit_codes(work: Path) -> None:
    write("n.toy", weights(w=["float32", [0.5, -1.25, 2.5]]))
    assert main(["diff", "m.toy", "m.toy", "-q"]) == 0
    assert main(["diff", "m.toy", "n.toy", "-q"]) == 1
    assert main(["diff", "m.toy", "n.toy", "-q", "--no-weights"]) == 0
    assert main(["diff", "m.toy"]) == 2
    assert main(["diff", "m.toy", "absent.toy"]) == 2


def test_json(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("n.toy", weights(w=["float32", [0.5, float("nan"), 2.5]]))
    assert main(["diff", "m.toy", "n.toy", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["equal"], found["exit_code"], found["graph"]) == (False, 1, None)
    assert found["weights"] == [
        {
            "name": "w",
            "renamed": None,
            "shapes": [[3], [3]],
            "dtypes": ["float32", "float32"],
            "max_abs": "inf",
            "elements": 2,
        }
    ]
