"""Fragments of a graph's own, as they are written: functions that are kept, blocks that repeat.

Khronos' parser expands them, and what it gives must be the graph that is written without them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight, Weight
from serde.nnef.folding import fold
from serde.nnef.model import NnefModel, Operation, Quantization, Ref
from serde.nnef.text.printer import graph_text
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.transform.infer_type import InferType

nnef = pytest.importorskip("nnef")


class Net:
    """A model that is being made, with its weights."""

    def __init__(self, *shape: int) -> None:
        self.data = relay.var("data", shape=shape)
        self.vars: list[Var] = [self.data]
        self.params: dict[str, Weight] = {}
        self._rng = np.random.default_rng(8)

    def weight(self, name: str, *shape: int) -> Var:
        """A weight of random values."""
        values = self._rng.standard_normal(shape).astype("float32") * np.float32(0.3)
        self.params[name] = ArrayWeight(values)
        self.vars.append(relay.var(name, shape=shape))
        return self.vars[-1]

    def model(self, body: Any, functions: dict[str, Function] | None = None) -> RelayModel:
        """The model."""
        module = {GlobalVar("main"): Function(self.vars, body)}
        module |= {_GLOBALS[name]: each for name, each in (functions or {}).items()}
        typed = InferType()(IRModule(module))
        count = len(getattr(body, "fields", [None]))
        names = tuple(f"out{place}" for place in range(count))
        return RelayModel(typed, self.params, ModelMeta(("data",), names))


_GLOBALS = {name: GlobalVar(name) for name in ("my.block", "relu")}


def convolution(net: Net, name: str, x: Expr, stride: int = 1, to: int = 4, of: int = 4) -> Expr:
    """A convolution with a bias."""
    w = net.weight(f"{name}/weight", to, of, 3, 3)
    y = relay.nn.conv2d(x, w, strides=(stride, stride), padding=(1, 1))
    return relay.nn.bias_add(y, net.weight(f"{name}/bias", to))


def residual(count: int) -> RelayModel:
    """Blocks of two convolutions around which the data goes, too."""
    net = Net(1, 4, 6, 6)
    x: Expr = net.data
    for place in range(count):
        y = relay.nn.relu(convolution(net, f"block{place}/a", x))
        x = relay.nn.relu(relay.add(convolution(net, f"block{place}/b", y), x))
    return net.model(x)


def stages() -> RelayModel:
    """Stages of different strides and widths, each of a first block and three others."""
    net = Net(1, 4, 16, 16)
    x: Expr = net.data
    width = 4
    for stage in range(3):
        x = relay.nn.relu(convolution(net, f"{stage}/down", x, 2, width * 2, width))
        width *= 2
        for place in range(3):
            name = f"{stage}/{place}"
            y = relay.nn.relu(convolution(net, f"{name}/a", x, 1, width, width))
            x = relay.nn.relu(relay.add(convolution(net, f"{name}/b", y, 1, width, width), x))
    return net.model(x)


def skips() -> RelayModel:
    """Values that are read far below."""
    net = Net(1, 4, 8, 8)
    x: Expr = net.data
    kept = []
    for place in range(6):
        x = relay.nn.relu(convolution(net, f"down{place}", relay.tanh(x)))
        kept.append(x)
    for place in range(6):
        x = relay.nn.relu(convolution(net, f"up{place}", relay.tanh(relay.add(x, kept.pop()))))
    return net.model(x)


def layers() -> RelayModel:
    """Layers of attention."""
    net = Net(1, 5, 8)
    x: Expr = net.data
    for place in range(4):
        q, k, v = (
            relay.nn.batch_matmul(x, net.weight(f"{place}/{name}", 1, 8, 8), transpose_b=True)
            for name in "qkv"
        )
        scores = relay.nn.softmax(relay.nn.batch_matmul(q, k, transpose_b=True), axis=-1)
        x = relay.add(x, relay.nn.batch_matmul(scores, v, transpose_b=False))
    return net.model(x)


def several() -> RelayModel:
    """Blocks that give two values each."""
    net = Net(2, 3)
    a: Expr = net.data
    b: Expr = relay.tanh(a)
    for place in range(5):
        w = net.weight(f"w{place}", 2, 3)
        s = relay.sigmoid(relay.multiply(a, w))
        a, b = relay.add(relay.multiply(b, s), a), relay.tanh(relay.add(b, s))
    return net.model(relay.Tuple([a, b]))


NETS = [residual, stages, skips, layers, several]


def texts(model: RelayModel, folder: Path) -> tuple[str, str]:
    """The texts of a model without and with fragments; the parser reads both."""
    found = []
    for fragments in (False, True):
        path = folder / f"{fragments}_nnef"
        serde.from_relay(model, format="nnef", path=path, nnef_fragments=fragments)
        found.append((path / "graph.nnef").read_text(encoding="utf-8"))
    return found[0], found[1]


def names_of(text: str) -> list[str]:
    """The fragments that a text defines."""
    return re.findall(r"^fragment (\w+)", text, re.MULTILINE)


def structure(text: str) -> tuple[list[Any], list[Any]]:
    """A graph as the parser expands it, its tensors numbered in order, and shapes of outputs."""
    graph = nnef.parse_string(text, stdlib="", lowered=names_of(text))
    nnef.infer_shapes(graph)
    numbers: dict[str, int] = {}

    def number(value: Any) -> Any:
        if isinstance(value, nnef.Identifier):
            return numbers.setdefault(value, len(numbers))
        if isinstance(value, list):
            return [number(each) for each in value]
        return value

    found = [
        (each.name, [*map(number, each.inputs.values())], dict(each.attribs),
         [*map(number, each.outputs.values())])
        for each in graph.operations
    ]  # fmt: skip
    return found, [graph.tensors[each].shape for each in graph.outputs]


@pytest.mark.wide
@pytest.mark.parametrize("make", [lambda: residual(5), *NETS[1:]], ids=[x.__name__ for x in NETS])
def test_the_parser_expands_fragments_to_the_graph(
    make: Callable[[], RelayModel], tmp_path: Path
) -> None:
    plain, folded = texts(make(), tmp_path)
    assert "extension" not in plain
    assert folded.splitlines()[1] == "extension KHR_enable_fragment_definitions;"
    assert structure(folded) == structure(plain)
    assert len(folded.splitlines()) < len(plain.splitlines())
    assert serde.check(tmp_path / "False_nnef", tmp_path / "True_nnef").passed


def test_a_residual_net_reads_as_its_blocks(tmp_path: Path) -> None:
    _plain, folded = texts(residual(4), tmp_path)
    assert names_of(folded) == ["residual_block"]
    block = folded[folded.index("fragment residual") : folded.index("graph network")]
    assert block == (
        "fragment residual_block(\n"
        "    x: tensor<scalar>,\n"
        "    filter: tensor<scalar>,\n"
        "    bias: tensor<scalar>,\n"
        "    filter_1: tensor<scalar>,\n"
        "    bias_1: tensor<scalar>)\n"
        "-> (y: tensor<scalar>)\n"
        "{\n"
        "    conv1 = conv(x, filter, bias, padding = [(1, 1), (1, 1)]);\n"
        "    relu1 = relu(conv1);\n"
        "    conv2 = conv(relu1, filter_1, bias_1, padding = [(1, 1), (1, 1)]);\n"
        "    add1 = add(conv2, x);\n"
        "    y = relu(add1);\n"
        "}\n\n"
    )
    assert len(re.findall(r" = residual_block\(", folded)) == 4


def test_blocks_of_all_stages_are_one_fragment(tmp_path: Path) -> None:
    _plain, folded = texts(stages(), tmp_path)
    assert names_of(folded) == ["residual_block"]
    assert len(re.findall(r" = residual_block\(", folded)) == 9


def test_an_attention_layer_is_called_so(tmp_path: Path) -> None:
    _plain, folded = texts(layers(), tmp_path)
    assert names_of(folded) == ["attention_block"]


def test_what_does_not_repeat_is_written_without_the_extension(tmp_path: Path) -> None:
    plain, folded = texts(residual(1), tmp_path)
    assert folded == plain


def test_the_same_fragments_every_time(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert texts(stages(), tmp_path / "a") == texts(stages(), tmp_path / "b")


# Functions of the source.


def composite(name: str, *, key: str = "Composite") -> Function:
    """A function of two operators."""
    a, b = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3))
    return Function([a, b], relay.nn.relu(relay.add(a, b))).with_attr(key, name)


def test_functions_stay_whole(tmp_path: Path) -> None:
    net = Net(2, 3)
    w, v = net.weight("w", 2, 3), net.weight("v", 2, 3)
    p, q = relay.var("p", shape=(2, 3)), relay.var("q", shape=(2, 3))
    inner = relay.tanh(Call(composite("dense.relu"), [p, q]))
    y = Call(composite("dense.relu"), [net.data, w])
    y = Call(_GLOBALS["my.block"], [y, v])
    model = net.model(y, {"my.block": Function([p, q], inner)})
    plain, folded = texts(model, tmp_path)
    assert "extension" not in plain
    assert names_of(folded) == ["dense_relu", "my_block"]
    assert "    relu1 = dense_relu(data, w);" in folded
    assert "    out0 = my_block(relu1, v);" in folded
    assert structure(folded) == structure(plain)
    assert serde.check(tmp_path / "False_nnef", tmp_path / "True_nnef").passed


def test_a_function_called_like_a_standard_fragment_is_numbered(tmp_path: Path) -> None:
    net = Net(2, 3)
    p, q = relay.var("p", shape=(2, 3)), relay.var("q", shape=(2, 3))
    body = relay.nn.relu(relay.add(p, q))
    y = Call(_GLOBALS["relu"], [net.data, net.weight("w", 2, 3)])
    plain, folded = texts(net.model(y, {"relu": Function([p, q], body)}), tmp_path)
    assert names_of(folded) == ["relu1"]
    assert structure(folded) == structure(plain)


def test_zeros_that_become_padding_leave_functions_whole(tmp_path: Path) -> None:
    net = Net(1, 4, 6, 6)
    w = net.weight("w", 4, 4, 3, 3)
    pads = ((0, 0), (0, 0), (1, 1), (1, 1))
    y = relay.nn.conv2d(relay.nn.pad(net.data, pads), w)
    a, b = relay.var("a", shape=(1, 4, 6, 6)), relay.var("b", shape=(4, 4, 3, 3))
    body = relay.tanh(relay.nn.conv2d(relay.nn.pad(a, pads), b))
    y = Call(Function([a, b], body).with_attr("Composite", "padded"), [y, w])
    plain, folded = texts(net.model(relay.nn.relu(y)), tmp_path)
    assert names_of(folded) == ["padded"]
    assert structure(folded) == structure(plain)


# What cannot be a fragment.


def chain(count: int) -> NnefModel:
    """A graph of the same three operations again and again."""
    operations = [Operation("external", {}, {"shape": (1, 2)}, ("x",), "scalar")]
    last = "x"
    for place in range(count):
        for op in ("relu", "tanh", "neg"):
            operations.append(Operation(op, {"x": Ref(last)}, {}, (f"{op}{place}",)))
            last = f"{op}{place}"
    return NnefModel("g", ("x",), (last,), operations)


def test_quantised_tensors_stay_in_the_graph() -> None:
    entry = Quantization("linear_quantize", {"min": -1.0, "max": 1.0, "bits": 8})
    given = chain(8)
    native = NnefModel(
        "g", given.inputs, given.outputs, given.operations, quantization={"tanh3": entry}
    )
    folded = fold(native)
    assert [each.name for each in fold(given).definitions] == ["relu_tanh_neg"]
    assert "tanh3" in [name for each in folded.operations for name in each.results()]
    text = graph_text(folded)
    assert structure(text) == structure(graph_text(native))


@pytest.mark.parametrize("count", [2, 3, 8, 64])
def test_a_fragment_is_made_where_it_saves_lines(count: int) -> None:
    native = chain(count)
    folded = fold(native)
    assert structure(graph_text(folded)) == structure(graph_text(native))
    fewer = len(graph_text(folded).splitlines()) < len(graph_text(native).splitlines())
    assert fewer == bool(folded.definitions) == (count > 3)


def test_long_runs_that_repeat_are_folded_in_no_time() -> None:
    """Two of 150 assignments hold thousands of shorter ones, few of which need be looked at."""
    ops = ["tanh", "exp", "sin", "cos", "abs", "relu", "sqrt", "floor", "ceil"]
    drawn = np.random.default_rng(0).choice(ops, 150)
    operations = [Operation("external", {}, {"shape": [2]}, ("x",), "scalar")]
    for tower, first in enumerate(("sinh", "cosh")):
        last = "x"
        for place, op in enumerate([first, *drawn]):
            name = f"{op}_{tower}_{place}"
            operations.append(Operation(op, {"x": Ref(last)}, {}, (name,)))
            last = name
    ends = [operations[len(drawn) + 1], operations[-1]]
    inputs = {name: Ref(each.results()[0]) for name, each in zip("xy", ends, strict=True)}
    operations.append(Operation("add", inputs, {}, ("y",)))
    start = time.process_time()
    folded = fold(NnefModel("network", ("x",), ("y",), operations))
    assert time.process_time() - start < 3
    assert len(folded.operations) == 6
    assert [len(each.operations) for each in folded.definitions] == [len(drawn)]
