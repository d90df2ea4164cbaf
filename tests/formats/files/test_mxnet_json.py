"""Symbol JSON of every release: upgrades as MXNet's own loader does them, and refusals."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import serde
from serde.compat import import_mxnet
from serde.errors import FormatError, MissingDependency
from serde.mxnet.model import Entry, Graph
from serde.mxnet.symbol_json import parse_symbol
from serde.mxnet.upgrades import AUXILIARY

COMPAT = Path(__file__).parents[2] / "golden" / "compat"


@pytest.fixture(scope="module")
def mx() -> ModuleType:
    try:
        return import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))


def variable(name, **fields):
    return {"op": "null", "name": name, "inputs": [], **fields}


def document(nodes, heads, version=10901, **fields):
    """A graph's JSON text; no version before 0.9."""
    arguments = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    graph = {"nodes": nodes, "arg_nodes": arguments, "heads": heads, **fields}
    if version is not None:
        graph["attrs"] = {"mxnet_version": ["int", version]}
    return json.dumps(graph)


def plain(graph: Graph):
    """A graph as what MXNet writes of it."""
    return [
        (
            node.op,
            node.name,
            {**node.attrs, **node.hidden},
            [[entry.node, entry.index] for entry in node.inputs],
            [plain(subgraph) for subgraph in node.subgraphs],
        )
        for node in graph.nodes
    ], [[head.node, head.index] for head in graph.heads]


def written(graph):
    """The same of MXNet's JSON."""
    return [
        (
            node["op"],
            node["name"],
            node.get("attrs", {}),
            [entry[:2] for entry in node["inputs"]],
            [written(subgraph) for subgraph in node.get("subgraphs", [])],
        )
        for node in graph["nodes"]
    ], [head[:2] for head in graph["heads"]]


def as_mxnet(mx, text):
    return written(json.loads(mx.sym.load_json(text).tojson()))


@pytest.mark.parametrize("path", sorted(COMPAT.glob("*-symbol.json")), ids=lambda path: path.name)
def test_old_symbols_are_upgraded_as_mxnet_does(mx, path):
    text = path.read_text()
    assert plain(parse_symbol(text.encode())) == as_mxnet(mx, text)


LAYERS = [
    ("Activation", {"act_type": "relu"}),
    ("BatchNorm", {}),
    ("BatchNorm_v1", {}),
    ("BilinearSampler", {}),
    ("Convolution", {"kernel": "(1,1)", "num_filter": "1"}),
    ("Convolution", {"kernel": "(1,1)", "num_filter": "1", "no_bias": "1"}),
    ("Convolution_v1", {"kernel": "(1,1)", "num_filter": "1", "no_bias": "True"}),
    ("Correlation", {}),
    ("Deconvolution", {"kernel": "(1,1)", "num_filter": "1"}),
    ("Deconvolution", {"kernel": "(1,1)", "num_filter": "1", "no_bias": "False"}),
    ("Embedding", {"input_dim": "3", "output_dim": "3"}),
    ("FullyConnected", {"num_hidden": "1"}),
    ("FullyConnected", {"num_hidden": "1", "no_bias": "true"}),
    ("IdentityAttachKLSparseReg", {}),
    ("InstanceNorm", {}),
    ("LeakyReLU", {}),
    ("LeakyReLU", {"act_type": "prelu"}),
    ("LinearRegressionOutput", {}),
    ("LogisticRegressionOutput", {}),
    ("MAERegressionOutput", {}),
    ("RNN", {"mode": "gru", "num_layers": "1", "state_size": "1"}),
    ("RNN", {"mode": "lstm", "num_layers": "1", "state_size": "1"}),
    ("ROIPooling", {"pooled_size": "(1,1)", "spatial_scale": "1"}),
    ("SVMOutput", {}),
    ("SequenceLast", {}),
    ("SequenceLast", {"use_sequence_length": "true"}),
    ("SequenceMask", {"use_sequence_length": "1"}),
    ("SequenceReverse", {"use_sequence_length": "True"}),
    ("SoftmaxOutput", {}),
    ("SpatialTransformer", {"transform_type": "affine", "sampler_type": "bilinear"}),
    ("softmax_cross_entropy", {}),
]


@pytest.mark.parametrize(("op", "param"), LAYERS, ids=str)
def test_inputs_that_0_8_did_not_write_are_added(mx, op, param):
    node = {"op": op, "name": "n", "param": param, "attr": {"lr_mult": "3"}, "inputs": [[0, 0]]}
    text = document([variable("x"), node], [[1, 0]], version=None)
    assert plain(parse_symbol(text.encode())) == as_mxnet(mx, text)


def test_an_operator_without_a_name_gives_bare_names(mx):
    node = {"op": "BatchNorm", "name": "", "param": {}, "inputs": [[0, 0]]}
    text = document([variable("x"), node], [[1, 0]], version=None)
    assert plain(parse_symbol(text.encode())) == as_mxnet(mx, text)


@pytest.mark.parametrize("version", [899, 900, 903, 904, 905, 10000, 10900, 10901])
def test_each_upgrade_ends_with_its_release(mx, version):
    nodes = [
        variable("x", attr={"lr_mult": "2", "weight_lr_mult": "3", "xwd_mult": "4"}),
        *(variable(name) for name in ("g", "b", "m", "v")),
        {"op": "BatchNorm", "name": "bn", "inputs": [[i, 0] for i in range(5)]},
        {"op": "argmax", "name": "am", "attr": {"axis": "-1"}, "inputs": [[5, 0]]},
        {"op": "BatchNorm", "name": "short", "inputs": [[0, 0], [1, 0], [2, 0]]},
    ]
    text = document(nodes, [[6, 0], [7, 0]], version)
    assert plain(parse_symbol(text.encode())) == as_mxnet(mx, text)


@pytest.mark.parametrize(
    "fields",
    [
        {"param": {"act_type": "relu"}, "attr": {"__a__": "1", "act_type": "tanh"}},
        {"attr": {"__a__": "1", "act_type": "tanh"}, "param": {"act_type": "relu", "__b__": "2"}},
        {"attr": {"act_type": "tanh"}, "attrs": {"act_type": "relu"}},
        {"attrs": {"act_type": "relu"}, "attr": {"act_type": "tanh"}},
        {"attrs": {"__a__": "2"}, "param": {"act_type": "relu"}},
    ],
    ids=str,
)
def test_spellings_of_attributes_are_merged(mx, fields):
    nodes = [variable("x"), {"op": "Activation", "name": "a", "inputs": [[0, 0]], **fields}]
    text = document(nodes, [[1, 0]])
    assert plain(parse_symbol(text.encode())) == as_mxnet(mx, text)


# Only builds with cuDNN or oneDNN have these.
OPTIONAL_BUILDS = {"CuDNNBatchNorm", "_contrib_BatchNormWithReLU"}


@pytest.mark.parametrize("op", sorted(set(AUXILIARY) - OPTIONAL_BUILDS))
def test_auxiliary_states_are_those_of_mxnet(mx, op):
    param = {"key": "k"} if op == "_contrib_SyncBatchNorm" else {}
    names = [f"x{i}" for i in range(max(AUXILIARY[op]) + 1)]
    inputs = [[i, 0] for i in range(len(names))]
    node = {"op": op, "name": "n", "attrs": param, "inputs": inputs}
    symbol = mx.sym.load_json(document([*map(variable, names), node], [[len(names), 0]]))
    assert symbol.list_auxiliary_states() == [names[i] for i in AUXILIARY[op]]


def test_hidden_attributes_are_apart():
    graph = parse_symbol((COMPAT / "convnet-0.8.0-symbol.json").read_bytes())
    nodes = {node.name: node for node in graph.nodes}
    assert nodes["conv1"].attrs == {
        "kernel": "(3,3)",
        "num_filter": "8",
        "no_bias": "False",
        "pad": "(1,1)",
        "workspace": "1024",
    }
    assert nodes["conv1"].hidden == {"__ctx_group__": "dev1", "__mirror_stage__": "True"}
    assert nodes["conv1_weight"].hidden == {"__lr_mult__": "2", "__wd_mult__": "0"}
    assert graph.version == 800


def test_facts_of_the_graph_are_kept():
    text = json.dumps(
        {
            "nodes": [variable("x")],
            "arg_nodes": [0],
            "heads": [[0, 0, 0]],
            "attrs": {"mxnet_version": ["int", 10700], "is_np_shape": ["int", 1]},
        }
    )
    graph = parse_symbol(text.encode())
    assert (graph.version, graph.attrs) == (10700, {"is_np_shape": 1})
    assert graph.heads == (Entry(0, 0),)


@pytest.mark.wide
def test_a_chain_of_100000_nodes_loads():
    nodes = [variable("x")]
    nodes += [{"op": "relu", "name": f"r{i}", "inputs": [[i, 0, 0]]} for i in range(100_000)]
    graph = parse_symbol(document(nodes, [[100_000, 0, 0]]).encode())
    assert len(graph.nodes) == 100_001
    assert graph.nodes[-1].inputs == (Entry(99_999, 0),)


X = variable("x")


def relu(**fields):
    return {"op": "relu", "name": "r", "inputs": [[0, 0, 0]], **fields}


def without(node, key):
    return {name: value for name, value in node.items() if name != key}


BAD_DOCUMENTS = {
    "empty": ("", "not JSON"),
    "half": (document([X], [[0, 0]])[:30], "not JSON"),
    "text after it": (document([X], [[0, 0]]) + " x", "not JSON"),
    "a list": ("[]", "expected an object"),
    "NaN": ('{"nodes": NaN}', "NaN is not"),
    "infinity": ('{"nodes": -Infinity}', "Infinity is not"),
    "long number": ('{"nodes": ' + "9" * 10_000 + "}", "not a symbol's JSON"),
    "repeated key": ('{"nodes": [], "nodes": []}', "'nodes' occurs twice"),
    "unknown key": (document([X], [[0, 0]], extra=1), "unknown key 'extra'"),
    "unknown key of a node": (document([X, relu(y=1)], [[1, 0]]), "unknown key 'y'"),
    "no nodes": ('{"arg_nodes": [], "heads": []}', "nodes: expected a list, found nothing"),
    "no arg_nodes": ('{"nodes": [], "heads": []}', "arg_nodes: expected a list"),
    "no heads": (document([X], []), "at least one output"),
    "no op": (document([X, {**relu(), "op": ""}], [[1, 0]]), "expected an operator's name"),
    "no name": (document([without(X, "name")], [[0, 0]]), "name: expected a string, found nothing"),
    "no inputs": (document([without(X, "inputs")], [[0, 0]]), "inputs: expected a list"),
    "op of 1 MB": (document([X, relu(op="(" * 10**6)], [[1, 0]]), "1000000 characters"),
    "op a number": (document([X, relu(op=3)], [[1, 0]]), "expected a string, found 3"),
    "attribute a number": (document([X, relu(attrs={"k": 3})], [[1, 0]]), "k: expected a string"),
    "attribute of 2 MB": (document([X, relu(attrs={"k": "1" * 2**21})], [[1, 0]]), "at most"),
    "surrogate": (document([variable("\ud800")], [[0, 0]]), "surrogate"),
    "cycle": (document([X, relu(inputs=[[1, 0]])], [[1, 0]]), "one of the 1 nodes before"),
    "forward edge": (document([relu(inputs=[[1, 0]]), X], [[0, 0]]), "one of the 0 nodes before"),
    "negative node": (document([X, relu(inputs=[[-1, 0]])], [[1, 0]]), "found -1"),
    "negative output": (document([X, relu(inputs=[[0, -1]])], [[1, 0]]), "found -1"),
    "huge output": (document([X, relu(inputs=[[0, 2**64]])], [[1, 0]]), "found 184467"),
    "true as a number": (document([X, relu(inputs=[[True, 0]])], [[1, 0]]), "found True"),
    "fraction": (document([X, relu(inputs=[[0.0, 0]])], [[1, 0]]), "found 0.0"),
    "entry of one": (document([X, relu(inputs=[[0]])], [[1, 0]]), "expected [node, output]"),
    "entry of four": (document([X], [[0, 0, 0, 0]]), "expected [node, output]"),
    "head out of range": (document([X], [[1, 0]]), "heads[0]: expected one of the 1 nodes"),
    "variable with inputs": (document([X, variable("y") | {"inputs": [[0, 0]]}], [[1, 0]]), "with"),
    "argument out of range": (document([X], [[0, 0]]).replace('_nodes": [0', '_nodes": [4'), "4"),
    "argument an operator": (
        document([X, relu()], [[1, 0]]).replace('_nodes": [0', '_nodes": [1'),
        "node 1 is no variable but relu",
    ),
    "control forward": (document([X, relu(control_deps=[1])], [[1, 0]]), "control_deps: expected"),
    "bad subgraph": (document([X, relu(subgraphs=[{}])], [[1, 0]]), "subgraphs[0].nodes"),
    "version text": (document([X], [[0, 0]], version="1.9"), "mxnet_version: expected a number"),
    "version 2": (
        document([X], [[0, 0]], version=20000),
        "2.0.0; the newest version known is 1.9.1",
    ),
    "facts unpaired": (document([X], [[0, 0]], None, attrs={"a": 1}), "expected [type, value]"),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_bad_documents_are_refused(case):
    text, message = BAD_DOCUMENTS[case]
    with pytest.raises(FormatError) as caught:
        parse_symbol(text.encode(), path="m-symbol.json")
    assert message in str(caught.value)
    assert str(caught.value).startswith("m-symbol.json: ")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 201 + "]" * 201])
def test_deep_nesting_is_refused(text):
    with pytest.raises(FormatError, match="nested"):
        parse_symbol(text.encode())


@pytest.mark.parametrize("text", ['{"nodes": "' + '\\"' * 10**6, '"' * 10**6 + "[", '"\\'])
def test_unclosed_strings_take_no_time(text):
    with pytest.raises(FormatError, match="not JSON"):
        parse_symbol(text.encode())


@pytest.mark.wide
@pytest.mark.parametrize("node", ["{}", "[]", '{"op":"null","name":"x","inputs":[]}'])
def test_ten_million_nodes_are_refused_unparsed(node):
    text = '{"nodes":[' + ",".join([node] * (10**7 if node == "[]" else 2 * 10**6)) + "]}"
    with pytest.raises(FormatError, match="at most"):
        parse_symbol(text.encode())


def test_brackets_in_strings_do_not_nest():
    graph = parse_symbol(document([variable("[" * 1000 + '"{\\')], [[0, 0]]).encode())
    assert graph.nodes[0].name == "[" * 1000 + '"{\\'


def test_nested_subgraphs_are_bounded():
    graph = json.loads(document([X], [[0, 0]], None))
    for _ in range(60):
        graph = json.loads(document([X, relu(subgraphs=[graph])], [[1, 0]], None))
    with pytest.raises(FormatError, match="nested"):
        parse_symbol(json.dumps(graph).encode())


def test_text_that_is_not_utf8_is_refused():
    with pytest.raises(FormatError, match="UTF-8") as caught:
        parse_symbol(b'{"nodes": "\xff"}')
    assert caught.value.offset == 11


COMPILED: dict[str, Any] = {
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {
            "op": "tvm_op",
            "name": "fused_nn_relu",
            "attrs": {"func_name": "fused_nn_relu", "num_inputs": "1", "flatten_data": "0"},
            "inputs": [[0, 0, 0]],
        },
    ],
    "arg_nodes": [0],
    "heads": [[1, 0, 0]],
    "node_row_ptr": [0, 1, 2],
    "attrs": {
        "dltype": ["list_str", ["float32", "float32"]],
        "storage_id": ["list_int", [0, 1]],
        "shape": ["list_shape", [[1, 3], [1, 3]]],
    },
}


@pytest.mark.parametrize("kept", [2, 1], ids=["functions", "inputs alone"])
def test_the_graph_of_the_executor_of_tvm_is_named(kept: int, tmp_path: Path) -> None:
    graph = {**COMPILED, "nodes": COMPILED["nodes"][:kept], "heads": [[kept - 1, 0, 0]]}
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph))
    with pytest.raises(FormatError, match="the graph of TVM's executor, whose nodes are compiled"):
        serde.to_relay(path)
