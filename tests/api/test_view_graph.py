"""What a page is told: the graph of a model, how it is folded, and the figures of its weights."""

import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from support import view_models

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight, Weight
from serde.relay.transform.cutting import named_values
from serde.viewing.blocks import MOST_CHILDREN, Group, Leaves, fold
from serde.viewing.graph import read_graph
from serde.viewing.page import Page
from serde.viewing.statistics import MOST_BINS, measure, measure_weights


def page_data(page: Page) -> dict[str, Any]:
    """The data that a page holds."""
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', page.html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def boxes(items: list[Any]) -> Iterator[Group]:
    for item in items:
        if isinstance(item, Group):
            yield item
            yield from boxes(item.children)


def nodes_of(item: Any) -> list[int]:
    return (
        [n for each in item.children for n in nodes_of(each)] if isinstance(item, Group) else [item]
    )


def plain(sources: list[list[int]], names: list[str] | None = None, kinds: int = 3) -> Leaves:
    """Nodes with these sources, of a few kinds."""
    count = len(sources)
    known = names or [""] * count
    return Leaves(
        dict(enumerate(sources)), dict(enumerate(known)), {i: i % kinds for i in range(count)}
    )


@pytest.mark.wide
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_folding_keeps_every_node_once_and_an_order(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 300))
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sources = [
        sorted({int(s) for s in seed.integers(max(0, i - 9), i, seed.integers(1, 3))}) if i else []
        for i in range(count)
    ]
    scopes = data.draw(st.sampled_from(["", "s{}/op", "b{}_{}_op", "a.b{}.c"]))
    names = [scopes.format(int(seed.integers(0, 6)), i % 4) for i in range(count)]
    items = fold(list(range(count)), plain(sources, names))
    assert sorted(n for item in items for n in nodes_of(item)) == list(range(count))
    for level in [items, *(box.children for box in boxes(items))]:
        assert len(level) <= MOST_CHILDREN
        place = {n: at for at, item in enumerate(level) for n in nodes_of(item)}
        late = [n for n in place for s in sources[n] if s in place and place[s] > place[n]]
        assert late == []


def chain_of(layers: int, width: int, name: str) -> Leaves:
    """An input, and layers of so many nodes one after the other."""
    count = layers * width + 1
    names = ["", *(name.format((i - 1) // width, i % width) for i in range(1, count))]
    sources = {i: [i - 1] if i else [] for i in range(count)}
    tokens = {i: (i - 1) % width if i else "input" for i in range(count)}
    return Leaves(sources, dict(enumerate(names)), tokens)


@pytest.mark.parametrize("name", ["encoder/layer{}/op{}", "encoder.layer{}.op{}"])
def test_layers_alike_fold_into_one_box_with_their_names(name: str) -> None:
    _, repeat = fold(list(range(61)), chain_of(12, 5, name))
    assert (repeat.kind, len(repeat.children)) == ("repeat", 12)
    assert repeat.title == "layer0 \N{EN DASH} layer11"


@pytest.mark.parametrize("name", ["", "op{1}_{0}"])
def test_layers_that_names_do_not_tell_are_found(name: str) -> None:
    _, repeat = fold(list(range(281)), chain_of(40, 7, name))
    assert (repeat.kind, [child.size for child in repeat.children]) == ("repeat", [7] * 40)


def test_a_long_chain_without_repeats_is_cut_into_sections() -> None:
    count = 20_000
    leaves = plain([[i - 1] if i else [] for i in range(count)], kinds=count)
    start = time.perf_counter()
    items = fold(list(range(count)), leaves)
    assert time.perf_counter() - start < 20
    assert {box.kind for box in boxes(items)} == {"section"}
    assert len(items) <= MOST_CHILDREN


def graph_of(path: Path) -> Any:
    model, names = named_values(serde.to_relay(path))
    return read_graph(model, names)[0]


def test_branches_hold_what_only_they_use(tmp_path: Path) -> None:
    graph = graph_of(view_models.branches(tmp_path / "if.onnx"))
    where = {node.name: graph.boxes[node.box].title for node in graph.nodes if node.name}
    assert where["pre"] == "model"
    assert where["choice/then/square"] == "then"
    assert where["choice/else/neg"] == where["choice/else/e"] == "else"
    choice = next(i for i, node in enumerate(graph.nodes) if node.op == "if")
    assert [box.owner for box in graph.boxes] == [-1, choice, choice]


def test_a_recursive_function_is_shown_with_its_call() -> None:
    module = relay.fromtext(
        """#[version = "0.0.5"]
        def @main(%n: Tensor[(), int32]) -> Tensor[(), int32] {
          let %loop = fn (%i: Tensor[(), int32]) -> Tensor[(), int32] {
            if (less(%i, 10)) { %loop(add(%i, 1)) } else { %i }
          };
          %loop(%n)
        }
        def @other(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { nn.relu(%x) }
        """
    )
    page = serde.view(module)
    (model,) = page_data(page)["models"]
    assert model["relay"] is None
    titles = {group[0] for group in model["graph"]["groups"]}
    assert {"then", "else", "body", "@other", "model"} <= titles


def test_a_foreign_operator_and_the_reasons_of_gaps_are_marked(tmp_path: Path) -> None:
    page = serde.view(view_models.with_gap(tmp_path / "gap.onnx"))
    (model,) = page_data(page)["models"]
    texts, nodes = model["graph"]["texts"], model["graph"]["nodes"]
    ops = [texts[node[0]] for node in nodes]
    assert ops == ["input", "Relu", "corp.Gate", "Tanh", "output"]
    assert [node[1] for node in nodes] == [1, 0, 3, 0, 2]
    reads = [node[6][1::3] for node in nodes]
    assert reads == [[], [0], [1], [2], [3]]
    assert "'corp'" in model["issues"][0][2]


def read_shown(graph: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Operator, name and what is read, by name, of each operator of a page's graph."""
    texts, nodes = graph["texts"], graph["nodes"]
    return [
        (texts[op], texts[name], [texts[nodes[n][3]] for n in operands[1::3] if n >= 0])
        for op, kind, _, name, _, _, operands, *_ in nodes
        if kind == 0
    ]


@pytest.mark.parametrize("net", [view_models.passing, view_models.quantized])
def test_nodes_and_edges_are_those_of_the_file(net: Any, tmp_path: Path) -> None:
    path = net(tmp_path / "net.onnx")
    file = onnx.load(path).graph
    gives = {"x": "x"} | {name: node.name for node in file.node for name in node.output}
    expected = [
        (node.op_type, node.name, [gives[name] for name in node.input if name in gives])
        for node in file.node
    ]
    (model,) = page_data(serde.view(path))["models"]
    assert sorted(read_shown(model["graph"])) == sorted(expected)
    assert {op for op, *_ in read_shown(model["relay"])}.isdisjoint({"Conv", "Identity", "Relu"})


def test_a_conditional_of_two_types_is_shown_with_its_branches(tmp_path: Path) -> None:
    (model,) = page_data(serde.view(view_models.ranks(tmp_path / "net.onnx")))["models"]
    assert read_shown(model["graph"]) == [
        ("If", "rank", ["c"]),
        ("Flatten", "rank/then/ownFlatten", ["x"]),
        ("Neg", "rank/else/ownNeg", ["x"]),
        ("ReduceSum", "sum", ["rank"]),
    ]


def test_a_symbol_shows_the_operators_of_mxnet(tmp_path: Path) -> None:
    view_models.passing(tmp_path / "net.onnx")
    symbol = tmp_path / "net-symbol.json"
    serde.convert(tmp_path / "net.onnx", symbol)
    nodes = json.loads(symbol.read_text())["nodes"]
    (model,) = page_data(serde.view(symbol, input_shapes={"x": (1, 3, 5, 5)}))["models"]
    shown = read_shown(model["graph"])
    names = {place: each["name"] for place, each in enumerate(nodes)}
    inputs = {"x", *(each["name"] for each in nodes if each["op"] != "null")}
    assert shown == [
        (each["op"], each["name"], [names[n] for n, *_ in each["inputs"] if names[n] in inputs])
        for each in nodes
        if each["op"] != "null"
    ]


def test_operators_are_documented_as_their_libraries_do(tmp_path: Path) -> None:
    (model,) = page_data(serde.view(view_models.passing(tmp_path / "net.onnx")))["models"]
    schema = " ".join(onnx.defs.get_schema("Conv", 17).doc.split())
    assert model["docs"]["Conv"] == schema
    assert "matrix" not in model["docs"]
    assert model["relayDocs"]["nn.conv2d"].startswith("``y[")
    row = next(row for row in model["graph"]["nodes"] if model["graph"]["texts"][row[3]] == "conv")
    parts = [model["graph"]["texts"][part] for part in row[9]]
    assert parts == ["nn.conv2d", "nn.bias_add"]
    assert set(parts) <= set(model["relayDocs"])


@pytest.mark.parametrize("kind", ["graph", "relay"])
def test_a_dequantised_weight_stands_in_the_stage_that_reads_it(kind: str, tmp_path: Path) -> None:
    (model,) = page_data(serde.view(view_models.quantized(tmp_path / "net.onnx")))["models"]
    graph = model[kind]
    names = [graph["texts"][row[3]] for row in graph["nodes"]]
    inside = {
        title: {names[child] for child in children if child >= 0}
        for title, _, _, _, children in graph["groups"]
    }
    for i in range(4):
        assert {f"dq{i}", f"stage{i}/MatMul"} <= inside[f"stage{i}"]


VALUES = np.random.default_rng(5)
ARRAYS = {
    "normal": VALUES.standard_normal((300, 401)).astype(np.float32),
    "half": VALUES.standard_normal((50, 41)).astype(np.float16),
    "bfloat16": VALUES.standard_normal((70, 3)).astype(ml_dtypes.bfloat16),
    "int4": VALUES.integers(-8, 8, (9, 11)).astype(ml_dtypes.int4),
    "bytes": VALUES.integers(0, 256, (1000,)).astype(np.uint8),
    "int64": VALUES.integers(-(2**62), 2**62, (77,)),
    "bool": VALUES.integers(0, 2, (100,)).astype(bool),
    "scalar": np.array(2.5, np.float32),
    "constant": np.full((4, 5), 0.1, np.float32),
    "tiny": np.array([5e-324, 1e-320, 0.0]),
    "huge": np.array([-1.7e308, 1.7e308, 1.0]),
    "far apart": np.array([1e-30, 1.0, 1e30, -1e30]),
    "holes": np.array([np.nan, np.inf, -np.inf, 1.0, 0.0, -0.0, 3.0], np.float32),
    "nothing": np.zeros((0, 3), np.float32),
    "only nan": np.full(3, np.nan, np.float32),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_figures_are_those_of_numpy(name: str) -> None:
    array = ARRAYS[name]
    found = measure(ArrayWeight(array))
    assert found is not None
    values = array.astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    assert found.count == values.size
    assert found.zeros == (values == 0).sum()
    assert (found.nan, found.infinite) == (np.isnan(values).sum(), np.isinf(values).sum())
    assert found.histogram.counts.sum() == finite.size
    if not finite.size:
        return
    assert (found.low, found.high) == (finite.min(), finite.max())
    if name != "huge":
        assert math.isclose(found.mean, finite.mean(), rel_tol=1e-9, abs_tol=1e-300)
        assert math.isclose(found.deviation, finite.std(), rel_tol=1e-9, abs_tol=1e-300)
    assert len(found.histogram.counts) <= MOST_BINS + 1
    low, high = found.histogram.edges
    assert low <= finite.min()
    assert finite.max() < high or high == finite.max()
    if name in ("normal", "half", "int4"):
        edges = np.linspace(low, high, len(found.histogram.counts) + 1)
        assert (found.histogram.counts == np.histogram(finite, edges)[0]).all()


class Pieces(Weight):
    """A weight in pieces of which each has another range."""

    shape, dtype = (6, 4), "float32"

    def rows(self, start: int, stop: int) -> np.ndarray:
        return np.concatenate([np.full((1, 4), 10.0**i, np.float32) for i in range(start, stop)])

    def row_ranges(self) -> Iterator[tuple[int, int]]:
        yield from ((i, i + 1) for i in range(6))


def test_pieces_of_other_ranges_join_into_one_histogram() -> None:
    found = measure(Pieces())
    assert found is not None
    whole = measure(ArrayWeight(Pieces().rows(0, 6)))
    assert whole is not None
    assert (found.histogram.counts == whole.histogram.counts).all()
    assert found.histogram.edges == whole.histogram.edges
    assert math.isclose(found.deviation, whole.deviation, rel_tol=1e-12)


def test_what_time_does_not_allow_is_sampled_or_told(tmp_path: Path) -> None:
    large = np.zeros((4096, 1024), np.float32)
    found, failed = measure_weights({"large": ArrayWeight(large)}, 0)
    assert failed == {}
    assert found["large"].sampled
    assert found["large"].count == 2**18
    row = np.zeros((1, 2**20), np.float32)
    assert measure_weights({"row": ArrayWeight(row)}, 0)[1] == {"row": "not read: the time was up"}


@pytest.mark.slow
def test_a_page_of_twenty_thousand_nodes_stays_small(tmp_path: Path) -> None:
    path = view_models.chain(tmp_path / "big.onnx", 5_000)
    page = serde.view(path, path=tmp_path / "big.html")
    assert (tmp_path / "big.html").stat().st_size < 5_000_000
    graph = page_data(page)["models"][0]["graph"]
    assert len(graph["nodes"]) == 20_002
    assert max(len(group[4]) for group in graph["groups"]) <= MOST_CHILDREN


def test_a_page_lets_nothing_in_or_out(tmp_path: Path) -> None:
    page = serde.view(view_models.hostile(tmp_path / "x.onnx")).html
    assert "default-src &#x27;none&#x27;" in page
    assert view_models.HOSTILE not in page
    assert len(page) < 200_000
    assert page.count("<script") == 8
    outside = re.sub(r'<script id="data".*?</script>', "", page, flags=re.DOTALL)
    assert re.findall(r"\b(?:src|href|srcdoc|action)=", outside) == []


def test_two_models_have_a_verdict_for_each_node(tmp_path: Path) -> None:
    left = view_models.chain(tmp_path / "a.onnx", 6)
    right = view_models.chain(tmp_path / "b.onnx", 6, changed=3)
    found = page_data(serde.view(left, right, dims={"N": 5}))
    for model in found["models"]:
        texts, nodes = model["graph"]["texts"], model["graph"]["nodes"]
        verdicts = {
            texts[node[3]]: verdict[0]
            for node, verdict in zip(nodes, model["verdicts"], strict=True)
            if verdict is not None
        }
        assert verdicts["MatMul_2"] == verdicts["Tanh_2"] == "agrees"
        assert verdicts["MatMul_3"] == "fault"
        assert verdicts["Tanh_5"] == "differs"
        (note,) = model["weightNotes"].values()
        assert note.startswith("8 elements differ")


def test_without_values_attributes_tell(tmp_path: Path) -> None:
    left = view_models.chain(tmp_path / "a.onnx", 2)
    found = page_data(serde.view(left, left, values=False))
    assert found["comparison"]["lines"][0].startswith("the models are equal")
    assert {v[0] for v in found["models"][0]["verdicts"] if v} == {""}


def test_a_model_with_gaps_is_not_compared(tmp_path: Path) -> None:
    left = view_models.chain(tmp_path / "a.onnx", 2)
    found = page_data(serde.view(left, view_models.with_gap(tmp_path / "gap.onnx")))
    assert found["comparison"]["lines"] == [
        "not compared: a model has nodes that cannot be converted"
    ]


def test_a_notebook_gets_the_page_in_a_frame(tmp_path: Path) -> None:
    page = serde.view(view_models.chain(tmp_path / "a.onnx", 1))
    shown = page._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads"')
    assert shown.count("<") == 2
