"""Seeded random weights with which a net behaves like a trained one.

Freshly initialised nets are poor witnesses: with BatchNorm's default statistics (mean 0,
variance 1) activations grow or vanish with depth, gamma is one everywhere, biases are
zero, and the outputs hardly depend on the input, so that a wrong conversion can look
right. Here weights are scaled by their fan-in, everything that has a neutral default is
drawn away from it, and BatchNorm's moving statistics are measured on data.

Biases and betas lie well above zero. Around zero, each ReLU would cut its input in half
and enlarge differences by a factor of 1.2 relative to what is left; a hundred layers then
turn rounding errors into visible ones, which no trained net does. The same happens where
large values meet an exponential, a softmax or a place at which a deformable convolution
looks: the layers in front of them can be given a deviation that their outputs shall have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from serde.compat import import_mxnet

MATRIX_OPS = {
    "Convolution": 1,
    "Deconvolution": 1,
    "FullyConnected": 1,
    "_contrib_DeformableConvolution": 2,
    "_contrib_ModulatedDeformableConvolution": 3,
}
"""Operators that multiply by a matrix, and the position of its weight."""

BATCH_NORMS = {"BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm"}
SCALED_NORMS = {"LayerNorm", "InstanceNorm", "GroupNorm", *BATCH_NORMS}
LOSS_HEADS = {
    "SoftmaxOutput",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
}
CALIBRATION_BATCH = 4
FEW_SAMPLES = 64
PATCH = 32


def calibrate(
    net_or_symbol: Any,
    input_shapes: Mapping[str, tuple[int, ...]],
    seed: int = 0,
    batch: int = CALIBRATION_BATCH,
    deviations: Mapping[str, float] | None = None,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Draws parameters for a net and measures its BatchNorm statistics.

    Args:
        net_or_symbol: A Gluon ``HybridBlock``, initialised or not (its own weights are
            not looked at), or a ``Symbol``.
        input_shapes: Shape of each input, in the order in which a block takes them.
        seed: Equal seeds give equal parameters.
        batch: Samples on which statistics are measured, where the shapes have one; must be
            1 for a net that mixes samples.
        deviations: How much the outputs of a layer shall deviate within a channel, by a
            regular expression that is found in the name of its weight.

    Returns:
        The symbol, its arguments without inputs and labels, and its auxiliary states;
        both as dictionaries of float32 ``NDArray`` by bare name.
    """
    mx = import_mxnet()
    rng = np.random.default_rng(seed)
    symbol, constants = as_symbol(mx, net_or_symbol, input_shapes)
    nodes = json.loads(symbol.tojson())["nodes"]
    consumers = first_consumers(nodes)
    labels = {name for name, (node, at) in consumers.items() if is_label(node, at)}

    arg_shapes, _, aux_shapes = symbol.infer_shape(**input_shapes)
    args = {}
    for name, shape in zip(symbol.list_arguments(), arg_shapes, strict=True):
        if name not in input_shapes and name not in labels:
            values = constants.get(name)
            args[name] = draw(rng, shape, *consumers[name]) if values is None else values
    aux = {}
    for name, shape in zip(symbol.list_auxiliary_states(), aux_shapes, strict=True):
        _, position = consumers[name]
        aux[name] = np.full(shape, 1.0 if position == 4 else 0.0, np.float32)

    shapes = larger_batch(symbol, input_shapes, batch)
    scale_weights(mx, nodes, symbol, shapes, args, aux, rng, deviations or {})
    measure_batch_norms(mx, symbol, nodes, shapes, args, aux, rng)
    to_nd = {name: mx.nd.array(values) for name, values in args.items()}
    return symbol, to_nd, {name: mx.nd.array(values) for name, values in aux.items()}


def as_symbol(
    mx: Any, net_or_symbol: Any, input_shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Any, dict[str, np.ndarray]]:
    """The symbol of a net, and the values of a block's Constant parameters."""
    if isinstance(net_or_symbol, mx.sym.Symbol):
        return net_or_symbol, {}
    outputs = net_or_symbol(*[mx.sym.var(name) for name in input_shapes])
    symbol = mx.sym.Group(flatten(outputs)) if isinstance(outputs, (list, tuple)) else outputs
    constants = {
        name: parameter.value.asnumpy()
        for name, parameter in net_or_symbol.collect_params().items()
        if isinstance(parameter, mx.gluon.Constant)
    }
    return symbol, constants


def flatten(outputs: Any) -> list[Any]:
    """The symbols of nested lists; what recurrent blocks return has states inside."""
    if not isinstance(outputs, (list, tuple)):
        return [outputs]
    return [symbol for part in outputs for symbol in flatten(part)]


def first_consumers(nodes: list[dict[str, Any]]) -> dict[str, tuple[dict[str, Any], int]]:
    """For each variable, the first node that reads it and the position it reads it at."""
    found: dict[str, tuple[dict[str, Any], int]] = {}
    for node in nodes:
        for position, (source, *_) in enumerate(node["inputs"]):
            if nodes[source]["op"] == "null":
                found.setdefault(nodes[source]["name"], (node, position))
    return found


def is_label(node: dict[str, Any], position: int) -> bool:
    """Whether a variable at `position` of `node` only serves training."""
    return node["op"] in LOSS_HEADS and position == 1


def draw(
    rng: np.random.Generator, shape: tuple[int, ...], node: dict[str, Any], position: int
) -> np.ndarray:
    """Values for the parameter at `position` of `node`."""
    op, attrs = node["op"], node.get("attrs", {})
    if position == MATRIX_OPS.get(op):
        values = rng.standard_normal(shape, dtype=np.float32)
        values *= np.float32(np.sqrt(2.0 / fan_in(op, attrs, shape)))
        if shape[1] > 1:  # a constant offset of the input cancels, what varies passes
            values -= values.mean(axis=tuple(range(1, len(shape))), keepdims=True)
    elif op in MATRIX_OPS or op in SCALED_NORMS:
        values = rng.uniform(0.5, 1.5, shape)
    elif op == "LeakyReLU":
        values = rng.uniform(0.05, 0.45, shape)
    else:
        values = rng.standard_normal(shape) * 0.5
    return values.astype(np.float32, copy=False)


def fan_in(op: str, attrs: dict[str, str], shape: tuple[int, ...]) -> float:
    """How many products one output element of a layer with this weight sums up."""
    if op != "Deconvolution":
        return float(np.prod(shape[1:]))
    taps = np.prod(shape[2:]) / np.prod(integers(attrs.get("stride", "1")))
    return float(max(shape[0] / int(attrs.get("num_group", "1")) * taps, 1.0))


def integers(text: str) -> list[int]:
    """The numbers of an attribute such as ``(2, 2)``."""
    return [int(part) for part in text.strip("()[] ").split(",") if part.strip()]


def measure_batch_norms(
    mx: Any,
    symbol: Any,
    nodes: list[dict[str, Any]],
    input_shapes: Mapping[str, tuple[int, ...]],
    args: dict[str, np.ndarray],
    aux: dict[str, np.ndarray],
    rng: np.random.Generator,
) -> None:
    """Sets the moving statistics in `aux` to those of each BatchNorm's input.

    In training mode every BatchNorm normalises by its batch, so one pass shows each of
    them the input that it will have once all the layers before it are calibrated.
    """
    norms = [node for node in nodes if node["op"] in BATCH_NORMS]
    if not norms:
        return
    read = [tuple(node["inputs"][0][:2]) for node in norms]
    outputs = training_outputs(mx, symbol, read, input_shapes, args, aux, rng)
    for node, output in zip(norms, outputs, strict=True):
        axis = int(node.get("attrs", {}).get("axis", "1"))
        mean, variance = statistics(output, axis)
        aux[nodes[node["inputs"][3][0]]["name"]] = mean
        aux[nodes[node["inputs"][4][0]]["name"]] = variance


def scale_weights(
    mx: Any,
    nodes: list[dict[str, Any]],
    symbol: Any,
    input_shapes: Mapping[str, tuple[int, ...]],
    args: dict[str, np.ndarray],
    aux: dict[str, np.ndarray],
    rng: np.random.Generator,
    deviations: Mapping[str, float],
) -> None:
    """Scales the weights named in `deviations` in `args`, those in front first.

    A weight that several layers share is scaled for the first of them.
    """
    scaled = set()
    for at, node in enumerate(nodes):
        if node["op"] not in MATRIX_OPS:
            continue
        weight = nodes[node["inputs"][MATRIX_OPS[node["op"]]][0]]["name"]
        wanted = next((v for name, v in deviations.items() if re.search(name, weight)), None)
        if wanted is None or weight in scaled:
            continue
        scaled.add(weight)
        (output,) = training_outputs(mx, symbol, [(at, 0)], input_shapes, args, aux, rng)
        _, variance = statistics(output, 1)
        args[weight] *= np.float32(wanted / np.sqrt(variance.mean()))


def training_outputs(
    mx: Any,
    symbol: Any,
    entries: list[tuple[int, int]],
    input_shapes: Mapping[str, tuple[int, ...]],
    args: Mapping[str, np.ndarray],
    aux: Mapping[str, np.ndarray],
    rng: np.random.Generator,
) -> Iterator[np.ndarray]:
    """The tensors at `entries`, nodes and their outputs, as random inputs make them in training."""
    graph = training_graph(mx, symbol, entries)
    arguments = set(graph.list_arguments())
    with mx.test_utils.environment("MXNET_SUBGRAPH_BACKEND", "NONE"):  # fusion is for inference
        executor = graph.simple_bind(
            mx.cpu(), grad_req="null", **{k: v for k, v in input_shapes.items() if k in arguments}
        )
    nodes = json.loads(symbol.tojson())["nodes"]
    for name, array in executor.arg_dict.items():
        array[:] = args[name] if name in args else data(rng, array.shape, name, nodes)
    for name, array in executor.aux_dict.items():
        array[:] = aux[name]
    for output in executor.forward(is_train=True):
        yield output.asnumpy()


def training_graph(mx: Any, symbol: Any, entries: list[tuple[int, int]]) -> Any:
    """A symbol of tensors of a net, without randomness and with statistics of the batch.

    Dropout is set to keep everything, and use_global_stats is taken off, in a copy. Tensors
    are told by place, since layers that are called more than once give names twice.
    """
    graph = json.loads(symbol.tojson())
    for node in graph["nodes"]:
        if node["op"] == "Dropout":
            node["attrs"] = {**node.get("attrs", {}), "p": "0"}
        elif node["op"] in BATCH_NORMS:
            node["attrs"] = {**node.get("attrs", {}), "use_global_stats": "False"}
    graph["heads"] = [[node, output, 0] for node, output in entries]
    return mx.sym.load_json(json.dumps(graph))


def larger_batch(
    symbol: Any, input_shapes: Mapping[str, tuple[int, ...]], batch: int
) -> dict[str, tuple[int, ...]]:
    """The input shapes with `batch` samples, where the graph allows another batch size."""
    given = dict(input_shapes)
    batched = {k: (batch, *v[1:]) if v[:1] == (1,) else v for k, v in given.items()}
    try:
        symbol.infer_shape(**batched)
    except Exception:  # MXNet raises its own error class for shapes that do not fit
        return given
    return batched


def data(
    rng: np.random.Generator, shape: tuple[int, ...], name: str, nodes: list[dict[str, Any]]
) -> np.ndarray:
    """Values for an input: indices where an Embedding reads it, else like images."""
    consumer = first_consumers(nodes).get(name)
    if consumer is not None and consumer[0]["op"] == "Embedding" and consumer[1] == 0:
        rows = int(consumer[0]["attrs"]["input_dim"])
        return rng.integers(0, rows, shape).astype(np.float32)
    return images(rng, shape)


def images(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal values with patches as well as grain along the axes behind the second.

    White noise alone averages out within a few poolings; what is left of it drowns in
    the rounding of the layers that follow.
    """
    coarse = tuple(-(-length // PATCH) for length in shape[2:])
    patches = rng.standard_normal((*shape[:2], *coarse))
    for axis, length in enumerate(shape[2:], 2):
        patches = np.repeat(patches, PATCH, axis).take(range(length), axis)
    grain = rng.standard_normal(shape)
    return (0.9 * patches + 0.45 * grain).astype(np.float32)


def statistics(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance over all axes but one.

    The variance of a handful of samples may come out near zero by chance; it is then
    mixed with the mean variance of all channels.
    """
    others = tuple(i for i in range(values.ndim) if i != axis % values.ndim)
    mean = values.mean(others, dtype=np.float64)
    variance = values.var(others, dtype=np.float64)
    if values.size // values.shape[axis] < FEW_SAMPLES:
        variance = (variance + variance.mean()) / 2
    return mean.astype(np.float32), np.maximum(variance, 1e-6).astype(np.float32)
