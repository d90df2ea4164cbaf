"""Symbols that claim what no model has: refused in a sentence, whatever an attribute says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.mxnet_operators import run_mxnet_operator
from support.params_layout import ROW_SPARSE, listing, sparse

import serde
from serde.core.limits import spending
from serde.core.parsing import nesting_depth
from serde.errors import ConverterBug, FormatError, LimitError, SerdeError, UnsupportedModelError
from serde.mxnet.attributes import decode_attribute
from serde.mxnet.params import read_params
from serde.mxnet.symbol_json import parse_symbol

FAR = 2**32 - 1


def symbol(
    op: str, *shapes: tuple[int, ...], heads: int = 0, bodies: tuple[Any, ...] = (), **attrs: str
) -> dict[str, Any]:
    """Return a graph of one node that reads variables of these shapes."""
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": f"x{i}", "attrs": {"__shape__": str(shape)}, "inputs": []}
        for i, shape in enumerate(shapes)
    ]
    inputs = [[i, 0, 0] for i in range(len(shapes))]
    node = {"op": op, "name": "node", "attrs": attrs, "inputs": inputs}
    if bodies:
        node["subgraphs"] = list(bodies)
    return {
        "nodes": [*nodes, node],
        "arg_nodes": list(range(len(shapes))),
        "heads": [[len(shapes), heads, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }


def body(results: int) -> dict[str, Any]:
    """Return a graph that gives its only variable so many times."""
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    return {"nodes": nodes, "arg_nodes": [0], "heads": [[0, 0, 0]] * results}


REFUSED: dict[str, tuple[dict[str, Any], type[SerdeError], str]] = {
    "output": (symbol("relu", (2,), heads=FAR), UnsupportedModelError, f"output {FAR} is used"),
    "gap's output": (symbol("nonesuch", (2,), heads=FAR), UnsupportedModelError, "no importer"),
    "parts": (
        symbol("SliceChannel", (2, 2**31), num_outputs=str(2**31)), SerdeError, "parts|depth"
    ),
    "endless range": (symbol("_arange", start="0", stop="inf"), UnsupportedModelError, "a range"),
    "range to NaN": (symbol("_arange", start="nan", stop="3"), UnsupportedModelError, "a range"),
    "linspace": (
        symbol("_linspace", start="0", stop="1", num=str(2**40)), LimitError, "--limit constants="
    ),
    "bins": (
        symbol("_histogram", (4,), bin_cnt=str(2**40), range="(0, 1)"), LimitError, "constants="
    ),
    "differences": (symbol("_npi_diff", (2**40,), n=str(2**40)), LimitError, "--limit nodes="),
    "layers": (
        symbol(
            "RNN", (1, 1, 1), (8,), (1, 1, 1),
            mode="rnn_tanh", state_size="1", num_layers=str(2**40),
        ), LimitError, "--limit nodes=",
    ),
    "window": (symbol("_npi_hanning", M=str(2**40)), LimitError, "--limit constants="),
    "number beyond 64 bits": (
        symbol("sum", (2,), axis=str(2**64)), UnsupportedModelError, "attribute axis: expected"
    ),
    "thousands of digits": (
        symbol("sum", (2,), axis="9" * 5000), UnsupportedModelError, "attribute axis: expected"
    ),
    "dtype": (symbol("Cast", (2,), dtype="(i4,i4"), UnsupportedModelError, "attribute dtype"),
    "rank": (symbol("broadcast_like", (2,), (2,), lhs_axes="(0,)", rhs_axes="(5,)"),
             UnsupportedModelError, "axis 5 is outside a tensor of rank 1"),
    "no sizes": (
        symbol("_contrib_MultiBoxPrior", (1, 1, 2, 2), ratios="()"),
        UnsupportedModelError, "make no boxes",
    ),
    "image": (
        symbol("_image_resize", (3, 3, 3), size="(2, -5)"), UnsupportedModelError, "resized to"
    ),
    "condition": (
        symbol(
            "_cond", (1,), bodies=(body(2), body(1), body(1)), num_outputs="1",
            cond_input_locs="(0,)", then_input_locs="(0,)", else_input_locs="(0,)",
        ), UnsupportedModelError, "a condition of 2 results",
    ),
    "branches": (
        symbol(
            "_cond", (1,), bodies=(body(1), body(1), body(1)), num_outputs=str(2**40),
            cond_input_locs="(0,)", then_input_locs="(0,)", else_input_locs="(0,)",
        ), UnsupportedModelError, "results of both branches",
    ),
    "places": (
        symbol(
            "_cond", (1,), bodies=(body(1), body(1), body(1)), num_outputs="1",
            cond_input_locs="(7,)", then_input_locs="(0,)", else_input_locs="(0,)",
        ), UnsupportedModelError, "places among 1 inputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("graph", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_a_claim_is_refused(graph: dict[str, Any], error: type[SerdeError], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        serde.to_relay(json.dumps(graph).encode(), format="mxnet")
    assert not isinstance(raised.value, ConverterBug)


def test_sparse_tensors_claim_together_what_one_may() -> None:
    """Each of them is within its bounds, and 50 bytes of the file claim 8 MB."""
    nothing, none = np.zeros((0, 2), "float32"), np.zeros(0, "int64")
    empty = sparse(ROW_SPARSE, (2**20, 2), nothing, [none])
    names = [f"arg:w{i}" for i in range(20)]
    (read,) = read_params(listing([empty], names[:1]))[1]
    assert read is not None
    assert not read.array().any()
    with spending(), pytest.raises(LimitError, match="--limit constants="):
        read_params(listing([empty] * 20, names))
    with spending({"constants": 10**9}):
        assert len(read_params(listing([empty] * 20, names))[1]) == 20


def test_a_variable_has_one_output() -> None:
    graph = symbol("relu", (2,))
    graph["nodes"][1]["inputs"] = [[0, 1, 0]]
    with pytest.raises(FormatError, match="'x0' has no output 1"):
        parse_symbol(json.dumps(graph).encode())


@pytest.mark.parametrize(
    "text", [str(2**63), str(-(2**63) - 1), "1e400", "-1e400", "٣", "9" * 5000], ids=lambda t: t[:8]
)
def test_a_number_has_64_bits(text: str) -> None:
    with pytest.raises(ValueError, match=r"64 bits|no number"):
        decode_attribute(text, float)
    assert decode_attribute(str(2**63 - 1), int) == 2**63 - 1
    assert decode_attribute("-inf", float) == -np.inf


def test_a_large_tensor_of_one_value_is_made_when_it_runs() -> None:
    graph = symbol("_full", shape=f"({2**31 - 1},)", value="2.5")
    model = serde.to_relay(json.dumps(graph).encode(), format="mxnet")
    written, _params = serde.from_relay(model, format="mxnet")
    nodes = json.loads(written.tojson())["nodes"]
    assert [node["op"] for node in nodes] == ["_full"]
    assert nodes[0]["attrs"]["value"] == "2.5"


@pytest.mark.parametrize("scalar", [0.0, 1.0, 1e-200])
def test_smooth_l1_of_no_scale(scalar: float) -> None:
    data = np.array([-3.0, -0.25, 0.0, 0.5, 4.0], np.float32)
    graph = json.dumps(symbol("smooth_l1", (5,), scalar=str(scalar))).encode()
    model = serde.to_relay(graph, format="mxnet")
    found = serde.relay.create_executor(mod=model.mod).evaluate()(data).numpy()
    expected = run_mxnet_operator("smooth_l1", data, scalar=scalar)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (b"", 0),
        (b'{"a": [1, {"b": []}]}', 4),
        (rb'["[[[", "\"[[", "\\", [1]]', 2),
        (rb'["\\\"[[", {"]": "\\\\"}]', 2),
        (b"[" * 70_000 + b"]" * 70_000, 70_000),
        (b'["' + b"[" * 600_000 + b'", [[1]]]', 3),
    ],
    ids=["nothing", "nested", "strings", "escapes", "deep", "pieces"],
)
def test_nesting_is_told(text: bytes, depth: int) -> None:
    assert nesting_depth(text) == depth
